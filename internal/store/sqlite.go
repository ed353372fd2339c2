package store

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	sqlite3 "github.com/ncruces/go-sqlite3"
)

// sqliteConn adapts a native SQLite connection.
type sqliteConn struct {
	c     *sqlite3.Conn
	vfs   string
	pages int
}

type openMode int

const (
	openWriter openMode = iota // may create the file
	openReader                 // refuses to write
	openProbe                  // leaves the file as it is when closed
	openCopy                   // reads a file that nobody else knows
)

const (
	busyTimeout   = 5 * time.Second
	applicationID = 0x4c4f4349 // "LOCI"
)

func openSQLite(path, vfs string, mode openMode) (_ conn, err error) {
	name, flags := sqliteName(path, vfs), sqlite3.OPEN_READWRITE
	if vfs != "" {
		flags |= sqlite3.OPEN_URI
	}
	switch mode {
	case openWriter:
		flags |= sqlite3.OPEN_CREATE
	case openCopy:
		flags = flags&^sqlite3.OPEN_READWRITE | sqlite3.OPEN_READONLY
	}
	c, err := sqlite3.OpenFlags(name, flags)
	if err != nil {
		return nil, mapSQLite(err)
	}
	sc := &sqliteConn{c: c, vfs: vfs}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err := sc.busyTimeout(busyTimeout); err != nil {
		return nil, err
	}
	if mode == openProbe || mode == openCopy {
		_, err := c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
		return sc, mapSQLite(err)
	}
	if readOnly, _ := c.ReadOnly("main"); readOnly {
		return nil, errs.New(errs.IO, "%s cannot be written: change its permissions", path)
	}
	if err := c.WALAutoCheckpoint(0); err != nil { // a goroutine of the store does it
		return nil, mapSQLite(err)
	}
	settings := sqliteDialect.settings
	if mode == openWriter {
		settings += sqliteDialect.writerSettings
	} else {
		settings += sqliteDialect.readerSettings
	}
	if err := sc.exec(settings); err != nil {
		return nil, err
	}
	c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		sc.pages = pages
		return nil
	})
	return sc, nil
}

// sqliteName is a file's name as the driver takes it.
func sqliteName(path, vfs string) string {
	if vfs == "" {
		return path
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "vfs=" + url.PathEscape(vfs)}
	return u.String()
}

func (s *sqliteConn) exec(sql string) error { return mapSQLite(s.c.Exec(sql)) }

func (s *sqliteConn) prepare(sql string) (stmt, error) {
	st, _, err := s.c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, mapSQLite(err)
	}
	return &sqliteStmt{s: st}, nil
}

func (s *sqliteConn) interruptOn(ctx context.Context) { s.c.SetInterrupt(ctx) }
func (s *sqliteConn) inTransaction() bool             { return !s.c.GetAutocommit() }
func (s *sqliteConn) changes() int64                  { return s.c.Changes() }
func (s *sqliteConn) logPages() int                   { return s.pages }

func (s *sqliteConn) busyTimeout(d time.Duration) error {
	return mapSQLite(s.c.BusyTimeout(d))
}

func (s *sqliteConn) checkpoint(blocking bool) (bool, error) {
	mode := sqlite3.CHECKPOINT_PASSIVE
	if blocking {
		mode = sqlite3.CHECKPOINT_RESTART
	}
	logged, moved, err := s.c.WALCheckpoint("main", mode)
	if errors.Is(err, sqlite3.BUSY) {
		return false, nil
	}
	if err == nil && blocking {
		s.pages = 0
	}
	return logged == moved, mapSQLite(err)
}

// copyPages is the number of pages that are copied between two looks at the
// context.
const copyPages = 256

// copyTo copies the snapshot of the open transaction. Holding one is what keeps
// the copy from starting anew whenever somebody writes.
func (s *sqliteConn) copyTo(ctx context.Context, path string, progress func(done, total int64)) error {
	copied, err := s.c.BackupInit("main", sqliteName(path, s.vfs))
	if err != nil {
		return mapSQLite(err)
	}
	for done := false; !done && err == nil; {
		if err = ctx.Err(); err != nil {
			err = errs.Wrap(errs.Canceled, err, "the context ended first")
			break
		}
		if done, err = copied.Step(copyPages); err == nil {
			total := int64(copied.PageCount())
			progress(total-int64(copied.Remaining()), total)
		}
	}
	if end := copied.Close(); err == nil {
		err = end
	}
	return mapSQLite(err)
}

// restoreFrom copies a file's pages over the database's, in one transaction: there is
// nothing to be seen in between, so it is done in one step.
func (s *sqliteConn) restoreFrom(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	return mapSQLite(s.c.Restore("main", sqliteName(path, s.vfs)))
}

func (s *sqliteConn) truncateLog(wait time.Duration) (bool, error) {
	if err := s.busyTimeout(wait); err != nil {
		return false, err
	}
	_, _, err := s.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE)
	if end := s.busyTimeout(busyTimeout); err == nil && end != nil {
		return false, end
	}
	if errors.Is(err, sqlite3.BUSY) {
		return false, nil
	}
	if err == nil {
		s.pages = 0
	}
	return err == nil, mapSQLite(err)
}

func (s *sqliteConn) close() error {
	for _, st := range slices.Collect(s.c.Stmts()) {
		st.Close()
	}
	return mapSQLite(s.c.Close())
}

type sqliteStmt struct {
	s   *sqlite3.Stmt
	err error // first failed bind
}

func (t *sqliteStmt) keep(err error) {
	if err != nil && t.err == nil {
		t.err = err
	}
}

func (t *sqliteStmt) bindInt(i int, v int64)     { t.keep(t.s.BindInt64(i, v)) }
func (t *sqliteStmt) bindFloat(i int, v float64) { t.keep(t.s.BindFloat(i, v)) }
func (t *sqliteStmt) bindText(i int, v string)   { t.keep(t.s.BindText(i, v)) }
func (t *sqliteStmt) bindBlob(i int, v []byte)   { t.keep(t.s.BindBlob(i, v)) }
func (t *sqliteStmt) bindNull(i int)             { t.keep(t.s.BindNull(i)) }

func (t *sqliteStmt) takeErr() error {
	err := t.err
	t.err = nil
	return mapSQLite(err)
}

func (t *sqliteStmt) step() (bool, error) {
	if t.err != nil {
		return false, t.takeErr()
	}
	if t.s.Step() {
		return true, nil
	}
	return false, mapSQLite(t.s.Err())
}

func (t *sqliteStmt) run() error {
	if t.err != nil {
		return t.takeErr()
	}
	return mapSQLite(t.s.Exec())
}

func (t *sqliteStmt) reset()                    { t.s.Reset() }
func (t *sqliteStmt) columnNull(i int) bool     { return t.s.ColumnType(i) == sqlite3.NULL }
func (t *sqliteStmt) columnInt(i int) int64     { return t.s.ColumnInt64(i) }
func (t *sqliteStmt) columnFloat(i int) float64 { return t.s.ColumnFloat(i) }
func (t *sqliteStmt) columnText(i int) string   { return t.s.ColumnText(i) }
func (t *sqliteStmt) columnRaw(i int) []byte    { return t.s.ColumnRawBlob(i) }
func (t *sqliteStmt) close() error              { return mapSQLite(t.s.Close()) }

// errUnique marks a unique index that refused a row. It stays inside the
// package: whoever writes knows what to say about it.
var errUnique = errors.New("unique constraint")

// mapSQLite gives a driver's error a code and says what helps. The driver's
// own text names tables and columns, never values.
func mapSQLite(err error) error {
	if err == nil || errs.CodeOf(err) != "" {
		return err
	}
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return errs.Wrap(errs.Storage, err, "the database failed")
	}
	var extended sqlite3.ExtendedErrorCode
	errors.As(err, &extended)
	switch code {
	case sqlite3.INTERRUPT:
		return errs.New(errs.Canceled, "the context ended first")
	case sqlite3.FULL:
		return errs.Wrap(errs.Storage, err, "the disk is full: free space and retry, nothing was written")
	case sqlite3.IOERR:
		return errs.Wrap(errs.IO, err, "a database file could not be read or written: check the disk and retry")
	case sqlite3.CANTOPEN, sqlite3.PERM, sqlite3.AUTH:
		return errs.Wrap(errs.IO, err, "a database file could not be opened: check that it exists and its permissions")
	case sqlite3.CORRUPT, sqlite3.NOTADB:
		return errs.Wrap(errs.Storage, err, "the database is damaged: restore a backup")
	case sqlite3.READONLY:
		return errs.Wrap(errs.Storage, err, "the database is read-only: check the permissions of its folder and files")
	case sqlite3.BUSY, sqlite3.LOCKED:
		return errs.Wrap(errs.Storage, err, "another program holds the database: close it and retry")
	case sqlite3.TOOBIG:
		return errs.Wrap(errs.Validation, err, "a value is too large for the database")
	case sqlite3.CONSTRAINT:
		if extended == sqlite3.CONSTRAINT_UNIQUE || extended == sqlite3.CONSTRAINT_PRIMARYKEY {
			return errs.Wrap(errs.Conflict, errors.Join(errUnique, err), "a row with this key exists")
		}
		return errs.Wrap(errs.Conflict, err, "the write contradicts what is stored")
	}
	return errs.Wrap(errs.Storage, err, "the database failed")
}
