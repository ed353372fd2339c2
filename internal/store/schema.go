package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/loci-memory/loci/internal/errs"
)

// SchemaVersion is the version of the schema that this code writes.
const SchemaVersion = 4

// A migration takes a database from one version to the next inside the
// transaction that also records the new version.
type migration func(conn, dialect) error

// migrations holds, at index v, the step from version v to v+1. A file of
// version 0 is one that was never initialised, so index 0 is empty.
var migrations = []migration{nil, addVectors, addContexts, addAgent}

// headerSize is the length of the part of an SQLite file that says what it is.
const headerSize = 100

// checkHeader looks at a file without opening it as a database, so that a file
// that is not ours, or newer, is not touched at all. Changes may still stand in
// the log, so the answer nil only means that it is worth opening.
func checkHeader(path string, version int) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errs.Wrap(errs.IO, err, "the database file could not be opened")
	}
	defer f.Close()
	var header [headerSize]byte
	n, err := io.ReadFull(f, header[:])
	if n == 0 && errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return errs.Wrap(errs.IO, err, "the database file could not be read")
	}
	if n < headerSize || string(header[:16]) != "SQLite format 3\x00" {
		return errs.New(errs.Validation, "%s is not a database: choose another folder or move the file away", path)
	}
	userVersion := binary.BigEndian.Uint32(header[60:])
	application := binary.BigEndian.Uint32(header[68:])
	if application == 0 {
		return nil // not initialised, or not ours: the tables tell
	}
	return checkIdentity(path, int64(application), int64(userVersion), version)
}

func checkIdentity(path string, application, userVersion int64, version int) error {
	if application != applicationID {
		return errs.New(errs.Validation, "%s belongs to another program (SQLite application id %#x): choose another folder",
			path, application)
	}
	if userVersion > int64(version) {
		return errs.New(errs.SchemaVersion, "the data has schema version %d, this program knows up to %d: use a newer one",
			userVersion, version)
	}
	return nil
}

// probe opens the file without changing it and gives its version; 0 means that
// it has to be initialised.
func (s *Store) probe(version int) (int, error) {
	if err := checkHeader(s.path, version); err != nil {
		return 0, err
	}
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return 0, nil
	}
	c, err := s.open(openProbe)
	if err != nil {
		return 0, err
	}
	defer c.close()
	application, err := queryInt(c, s.dialect.application)
	if err != nil {
		return 0, err
	}
	userVersion, err := queryInt(c, s.dialect.version)
	if err != nil {
		return 0, err
	}
	if application == 0 {
		tables, err := queryInt(c, s.dialect.tables)
		if err != nil {
			return 0, err
		}
		if tables > 0 || userVersion != 0 {
			return 0, errs.New(errs.Validation, "%s is an SQLite database of another program: choose another folder", s.path)
		}
		return 0, nil
	}
	if err := checkIdentity(s.path, application, userVersion, version); err != nil {
		return 0, err
	}
	return int(userVersion), nil
}

// initialise writes the schema into an empty file.
func (s *Store) initialise(c conn, version int, lineage string) error {
	return inTransaction(c, s.dialect, func() error {
		if err := c.exec(s.dialect.schemaSQL(schemaText + schemaGraph + schemaNotes + schemaVectors + schemaContexts + schemaAgent)); err != nil {
			return err
		}
		st, err := c.prepare("INSERT INTO meta (one, lineage, revision, next_id, next_string, journal_floor) VALUES (1, $1, 0, 1, 1, 0)")
		if err != nil {
			return err
		}
		defer st.close()
		st.bindText(1, lineage)
		if err := st.run(); err != nil {
			return err
		}
		return c.exec(fmt.Sprintf(s.dialect.setIdentity+"; "+s.dialect.setVersion, applicationID, version))
	})
}

// migrate copies the database beside itself and takes it to version, one
// transaction for all steps.
func (s *Store) migrate(c conn, from, version int, steps []migration) error {
	if from >= version {
		return nil
	}
	if from < 1 || version > len(steps) {
		return errs.New(errs.SchemaVersion, "no way from schema version %d to %d", from, version)
	}
	copied := fmt.Sprintf("%s.v%d", s.path, from)
	for n := 2; ; n++ {
		if _, err := os.Lstat(copied); errors.Is(err, fs.ErrNotExist) {
			break
		}
		copied = fmt.Sprintf("%s.v%d-%d", s.path, from, n)
	}
	if err := s.copyTo(c, copied); err != nil {
		return errs.Wrap(errs.IO, err, "the copy before the migration failed")
	}
	return inTransaction(c, s.dialect, func() error {
		for v := from; v < version; v++ {
			if err := steps[v](c, s.dialect); err != nil {
				return errs.Wrap(errs.Storage, err, "the migration from schema version %d failed, nothing was changed", v)
			}
		}
		return c.exec(fmt.Sprintf(s.dialect.setVersion, version))
	})
}

// copyTo writes a consistent copy of the database to a file that does not
// exist yet.
func (s *Store) copyTo(c conn, path string) error {
	st, err := c.prepare(s.dialect.copyInto)
	if err != nil {
		return err
	}
	defer st.close()
	st.bindText(1, path)
	return st.run()
}

func inTransaction(c conn, d dialect, fn func() error) error {
	if err := c.exec(d.beginWrite); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil && c.inTransaction() {
		c.exec("ROLLBACK")
	}
	return err
}

func queryInt(c conn, sql string) (int64, error) {
	st, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	defer st.close()
	if _, err := st.step(); err != nil {
		return 0, err
	}
	return st.columnInt(0), nil
}
