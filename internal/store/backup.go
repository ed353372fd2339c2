package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/loci-memory/loci/internal/errs"
)

// A snapshot is an SQLite database followed by a seal: a word, the length of the
// database and its checksum. SQLite takes no notice of what follows its last
// page, so a snapshot opens as any database does, and the seal tells of changed
// bytes that no check of the database itself can see. A snapshot without one is
// a database that was closed well, and restores as well.
const (
	sealWord = "loci snapshot 1\n"
	sealSize = len(sealWord) + 16
)

// PartialPrefix begins the names of snapshots and stores that are not complete.
// What a killed process leaves behind is called so.
const PartialPrefix = ".loci-partial-"

// Copied says what a snapshot holds.
type Copied struct {
	Revision int64
	Records  int64
	Bytes    int64
}

// Backup writes a copy of the database, as it is now, to a file that must not
// exist. Reads and writes go on. The copy has its name only when it is complete,
// checked and on disk; progress is told of pages.
func (s *Store) Backup(ctx context.Context, target string, progress func(done, total int64)) (report Copied, err error) {
	if target, err = filepath.Abs(target); err != nil {
		return report, errs.Wrap(errs.IO, err, "the target's path could not be resolved")
	}
	if _, err := os.Lstat(target); err == nil {
		return report, errTargetExists(target)
	}
	f, err := os.CreateTemp(filepath.Dir(target), PartialPrefix+"*")
	if err != nil {
		return report, errs.Wrap(errs.IO, err, "the target's folder cannot be written")
	}
	partial := f.Name()
	defer func() {
		f.Close()
		for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
			os.Remove(partial + suffix) // gone already when all went well
		}
	}()
	err = s.Read(ctx, func(tx *ReadTx) error {
		report.Revision = tx.revision
		return tx.c.copyTo(ctx, partial, progress)
	})
	if err != nil {
		return report, err
	}
	if err := settleFormat(f); err != nil {
		return report, errs.Wrap(errs.IO, err, "the copy could not be written")
	}
	if report.Records, err = s.checkCopy(ctx, partial, report.Revision); err != nil {
		return report, err
	}
	if report.Bytes, err = seal(ctx, f); err != nil {
		return report, errs.Wrap(errs.IO, err, "the copy could not be sealed")
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return report, errs.Wrap(errs.IO, err, "the copy could not be written out")
	}
	if err := ctx.Err(); err != nil {
		return report, errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	if err := renameNew(partial, target); errors.Is(err, fs.ErrExist) {
		return report, errTargetExists(target)
	} else if err != nil {
		return report, errs.Wrap(errs.IO, err, "the copy could not be given its name")
	}
	syncFolder(filepath.Dir(target))
	return report, nil
}

func errTargetExists(target string) error {
	return &errs.Error{Code: errs.IO, Field: "target", Message: target + " exists and stays as it is: name a new file"}
}

// renameUnlessThere is renameNew for systems that cannot do it in one step. A
// file is linked, which refuses an existing name; a folder is only looked for.
func renameUnlessThere(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
			if err == nil {
				os.Remove(from)
			}
			return err
		}
	}
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	}
	return os.Rename(from, to)
}

// syncFolder makes new names in a folder durable, where the system can.
func syncFolder(path string) {
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// settleFormat marks a copy as a database without a log of its own, so that it
// can be opened where nothing may be written, and leaves no files beside it.
func settleFormat(f *os.File) error {
	_, err := f.WriteAt([]byte{1, 1}, 18) // the file format's write and read version
	return err
}

// checkCopy looks at a copy as a stranger would and gives the number of its
// records.
func (s *Store) checkCopy(ctx context.Context, path string, revision int64) (records int64, err error) {
	c, err := openSQLite(path, s.opts.VFS, openCopy)
	if err != nil {
		return 0, err
	}
	defer c.close()
	c.interruptOn(ctx)
	for _, look := range []struct {
		sql  string
		want int64
		what string
	}{
		{s.dialect.application, applicationID, "application id"},
		{s.dialect.version, int64(len(s.opts.migrations)), "schema version"},
		{"SELECT revision FROM meta WHERE one = 1", revision, "revision"},
	} {
		got, err := queryInt(c, look.sql)
		if err != nil {
			return 0, err
		}
		if got != look.want {
			return 0, errs.New(errs.Storage, "the copy is not what it should be: its %s is %d, not %d: retry, and check this store", look.what, got, look.want)
		}
	}
	tx := &ReadTx{session: foreignSession(s, c), ctx: ctx}
	findings, err := tx.checkPages(s.dialect.checkPages)
	if err != nil {
		return 0, err
	}
	if len(findings) > 0 {
		return 0, errs.New(errs.Storage, "the copy is damaged, so the store is likely to be: %s", findings[0])
	}
	return queryInt(c, "SELECT coalesce(sum(n), 0) FROM counts")
}

// seal appends the seal and gives the length of the whole.
func seal(ctx context.Context, f *os.File) (int64, error) {
	var sum xxhash.Digest
	sum.Reset()
	size, err := copyContext(ctx, &sum, io.NewSectionReader(f, 0, 1<<62), nil)
	if err != nil {
		return 0, err
	}
	tail := binary.BigEndian.AppendUint64([]byte(sealWord), uint64(size))
	tail = binary.BigEndian.AppendUint64(tail, sum.Sum64())
	_, err = f.WriteAt(tail, size)
	return size + int64(len(tail)), err
}

// readSeal gives the length of the database in a snapshot of size bytes, and its
// checksum if it is sealed.
func readSeal(f *os.File, size int64) (length int64, sum uint64, sealed bool, err error) {
	if size < int64(sealSize) {
		return size, 0, false, nil
	}
	var tail [sealSize]byte
	if _, err := f.ReadAt(tail[:], size-int64(sealSize)); err != nil {
		return 0, 0, false, err
	}
	if !bytes.HasPrefix(tail[:], []byte(sealWord)) {
		return size, 0, false, nil
	}
	length = int64(binary.BigEndian.Uint64(tail[len(sealWord):]))
	if length != size-int64(sealSize) {
		return 0, 0, true, errDamaged("its length is not the one it was made with")
	}
	return length, binary.BigEndian.Uint64(tail[len(sealWord)+8:]), true, nil
}

func errDamaged(how string) error {
	return &errs.Error{Code: errs.Storage, Field: "snapshot", Message: "is damaged: " + how + ": use another snapshot"}
}

// copyBlock is how much is copied between two looks at the context.
const copyBlock = 1 << 20

// copyContext copies until the end of r, or of ctx.
func copyContext(ctx context.Context, w io.Writer, r io.Reader, progress func(done int64)) (int64, error) {
	buf := make([]byte, copyBlock)
	var done int64
	for {
		if err := ctx.Err(); err != nil {
			return done, errs.Wrap(errs.Canceled, err, "the context ended first")
		}
		n, err := io.ReadFull(r, buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return done, werr
		}
		done += int64(n)
		if progress != nil {
			progress(done)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
}
