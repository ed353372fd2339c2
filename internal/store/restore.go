package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/loci-memory/loci/internal/errs"
)

// Restore makes a data directory of a snapshot: a file that Backup wrote, or the
// database of a store that was closed well. The directory must not exist; it has
// its name only when what is in it has been checked and is on disk. The snapshot
// is only read. The new store is a store of its own, with a lineage of its own:
// what derived from the old one does not fit it. progress is told of bytes.
func Restore(ctx context.Context, snapshot, dir string, opts Options, progress func(done, total int64)) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return errs.Wrap(errs.IO, err, "the directory's path could not be resolved")
	}
	if _, err := os.Lstat(dir); err == nil {
		return errDirectoryExists(dir)
	}
	in, err := openSnapshot(snapshot, opts)
	if err != nil {
		return err
	}
	defer in.f.Close()
	parent := filepath.Dir(dir)
	undo, err := makeFolders(parent)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the folder above the directory cannot be made")
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	partial, err := os.MkdirTemp(parent, PartialPrefix+"*")
	if err != nil {
		return errs.Wrap(errs.IO, err, "the folder above the directory cannot be written")
	}
	defer func() {
		if err != nil {
			os.RemoveAll(partial)
		}
	}()
	path := filepath.Join(partial, DatabaseFile)
	if err := in.copyTo(ctx, path, progress); err != nil {
		return err
	}
	if err := checkRestored(ctx, partial, opts); err != nil {
		return err
	}
	if err := newLineage(path, opts); err != nil {
		return err
	}
	if err := syncFile(path); err != nil {
		return errs.Wrap(errs.IO, err, "the restored database could not be written out")
	}
	syncFolder(partial)
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	if err := renameNew(partial, dir); errors.Is(err, fs.ErrExist) {
		return errDirectoryExists(dir)
	} else if err != nil {
		return errs.Wrap(errs.IO, err, "the restored store could not be given its name")
	}
	syncFolder(parent)
	return nil
}

func errDirectoryExists(dir string) error {
	return &errs.Error{Code: errs.IO, Field: "directory", Message: dir + " exists and stays as it is: name a new directory"}
}

// makeFolders makes a folder and those above it, and gives what takes those
// away again that were made and are still empty.
func makeFolders(path string) (undo func(), err error) {
	var made []string
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, p)
	}
	undo = func() {
		for _, p := range made {
			os.Remove(p)
		}
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		undo()
		return nil, err
	}
	for _, p := range made {
		syncFolder(filepath.Dir(p))
	}
	return undo, nil
}

// snapshotFile is a snapshot that has been found to be one, from the outside.
type snapshotFile struct {
	f      *os.File
	length int64 // of the database in it
	sum    uint64
	sealed bool
}

// openSnapshot checks what can be told without copying.
func openSnapshot(path string, opts Options) (_ *snapshotFile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, atSnapshot(errs.Wrap(errs.IO, err, "the file cannot be opened"))
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, atSnapshot(errs.Wrap(errs.IO, err, "the file cannot be looked at"))
	}
	if !info.Mode().IsRegular() {
		return nil, errs.Invalid("snapshot", "is not a file: name one that a backup wrote")
	}
	var header [headerSize]byte
	n, err := io.ReadFull(f, header[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, atSnapshot(errs.Wrap(errs.IO, err, "the file cannot be read"))
	}
	const magic = "SQLite format 3\x00"
	if n < len(magic) || string(header[:len(magic)]) != magic {
		return nil, errs.Invalid("snapshot", "is no snapshot of a store: name a file that a backup wrote")
	}
	if n < headerSize {
		return nil, errDamaged("it is cut short")
	}
	version := SchemaVersion
	if opts.migrations != nil {
		version = len(opts.migrations)
	}
	application, userVersion := binary.BigEndian.Uint32(header[68:]), binary.BigEndian.Uint32(header[60:])
	if application != applicationID {
		return nil, errs.Invalid("snapshot", "belongs to another program (SQLite application id %#x): name a file that a backup wrote", application)
	}
	if err := checkIdentity(path, int64(application), int64(userVersion), version); err != nil {
		return nil, atSnapshot(err)
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if beside, err := os.Stat(path + suffix); err == nil && beside.Size() > 0 {
			return nil, errs.Invalid("snapshot", "has changes beside it in a file %s, so it is in use or was not closed: open that store, and make a backup of it", suffix)
		}
	}
	s := &snapshotFile{f: f}
	if s.length, s.sum, s.sealed, err = readSeal(f, info.Size()); err != nil {
		return nil, atSnapshot(errs.Wrap(errs.IO, err, "the file cannot be read"))
	}
	pageSize := int64(binary.BigEndian.Uint16(header[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	switch whole := pageSize * int64(binary.BigEndian.Uint32(header[28:])); {
	case s.length < whole:
		return nil, errDamaged("it is cut short")
	case s.length > whole:
		return nil, errDamaged("it is longer than its header says")
	}
	return s, nil
}

// atSnapshot says which input an error is about.
func atSnapshot(err error) error {
	if e, ok := err.(*errs.Error); ok && e.Field == "" {
		c := *e
		c.Field = "snapshot"
		return &c
	}
	return err
}

// copyTo copies the database in the snapshot and compares it with the seal.
func (s *snapshotFile) copyTo(ctx context.Context, path string, progress func(done, total int64)) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the database could not be made")
	}
	var sum xxhash.Digest
	sum.Reset()
	in := io.NewSectionReader(s.f, 0, s.length)
	n, err := copyContext(ctx, out, io.TeeReader(in, &sum), func(done int64) { progress(done, s.length) })
	if err = errors.Join(err, out.Close()); err != nil {
		return errs.Wrap(errs.IO, err, "the snapshot could not be copied")
	}
	if n != s.length || s.sealed && sum.Sum64() != s.sum {
		return errDamaged("it has changed since it was made")
	}
	return nil
}

// checkRestored opens the copy as a store, which takes an older schema to the
// present one, and checks all of it.
func checkRestored(ctx context.Context, dir string, opts Options) error {
	s, err := Open(ctx, dir, opts)
	if err != nil {
		return atSnapshot(err)
	}
	check, err := s.DeepCheck(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return atSnapshot(errs.Wrap(errs.Storage, err, "the copy could not be checked"))
	}
	if check.Integrity != "ok" {
		return errDamaged(check.Integrity)
	}
	if check.ForeignKeyErrors > 0 {
		return errDamaged(itoa(check.ForeignKeyErrors) + " references lead to nothing")
	}
	return nil
}

// newLineage makes a database that nobody has open one of its own.
func newLineage(path string, opts Options) error {
	random := opts.Random
	if random == nil {
		random = rand.Reader
	}
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return errs.Wrap(errs.IO, err, "no random bytes for a new store")
	}
	c, err := openSQLite(path, opts.VFS, openWriter)
	if err != nil {
		return err
	}
	err = c.exec("UPDATE meta SET lineage = '" + hex.EncodeToString(id[:]) + "' WHERE one = 1")
	return errors.Join(err, c.close())
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
