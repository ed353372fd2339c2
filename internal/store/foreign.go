package store

import (
	"context"
	"errors"
	"os"

	"github.com/loci-memory/loci/internal/errs"
	sqlite3 "github.com/ncruces/go-sqlite3"
)

// ForeignRow is a row of another program's database. Columns count from 0.
type ForeignRow struct{ s *sqlite3.Stmt }

// Int is a column as a whole number.
func (r ForeignRow) Int(column int) int64 { return r.s.ColumnInt64(column) }

// Text is a column as text.
func (r ForeignRow) Text(column int) string { return r.s.ColumnText(column) }

// Null says whether a column holds nothing.
func (r ForeignRow) Null(column int) bool { return r.s.ColumnType(column) == sqlite3.NULL }

// ForeignDB is a moment of another program's database, for reading only.
type ForeignDB struct{ c *sqlite3.Conn }

// ReadForeign runs f on one snapshot of the SQLite database in a file. The
// database is only read, and the program that it belongs to may go on writing.
func ReadForeign(ctx context.Context, path string, f func(db ForeignDB) error) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the database could not be opened")
	}
	if !info.Mode().IsRegular() {
		return errs.Invalid("path", "is no regular file")
	}
	if err := isSQLite(path); err != nil {
		return err
	}
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
	if err != nil {
		return foreignErr(err)
	}
	defer func() {
		if end := c.Close(); err == nil && end != nil {
			err = foreignErr(end)
		}
	}()
	if _, err := c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return foreignErr(err)
	}
	if err := c.BusyTimeout(busyTimeout); err != nil {
		return foreignErr(err)
	}
	c.SetInterrupt(ctx)
	// The file is somebody else's: its schema runs no functions of its own.
	if err := c.Exec("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; BEGIN"); err != nil {
		return foreignErr(err)
	}
	return f(ForeignDB{c})
}

// isSQLite says whether a file begins as an SQLite database does.
func isSQLite(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the database could not be opened")
	}
	defer f.Close()
	var head [16]byte
	if n, err := f.Read(head[:]); err != nil || string(head[:n]) != "SQLite format 3\x00" {
		return errs.Invalid("path", "is no SQLite database")
	}
	return nil
}

// Rows gives the rows of a query one by one. A row is valid until f returns.
func (db ForeignDB) Rows(query string, f func(ForeignRow) error) error {
	s, _, err := db.c.Prepare(query)
	if err != nil {
		return foreignErr(err)
	}
	defer s.Close()
	for s.Step() {
		if err := f(ForeignRow{s}); err != nil {
			return err
		}
	}
	return foreignErr(s.Err())
}

// foreignErr says that the fault lies with the other program's file, not with
// the store.
func foreignErr(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sqlite3.INTERRUPT) {
		return errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	return errs.Wrap(errs.IO, err, "the other program's database could not be read")
}
