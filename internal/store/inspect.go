package store

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/internal/errs"
)

// FileInfo is what a database file says of itself, read without opening it as
// a database.
type FileInfo struct {
	Exists        bool
	Bytes         int64
	LogBytes      int64  // of the log beside it, which is normal while it is open
	ApplicationID uint32 // 0 also while everything is still in the log
	SchemaVersion int
	Ours          bool
	Problem       error // why Open would refuse it, as far as its header tells
}

// InspectFile reads the header of a data directory's database. It changes
// nothing.
func InspectFile(dir string) (info FileInfo, err error) {
	path := filepath.Join(dir, DatabaseFile)
	stat, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil
	}
	if err != nil {
		return info, errs.Wrap(errs.IO, err, "the database file cannot be looked at")
	}
	info.Exists, info.Bytes = true, stat.Size()
	if log, err := os.Stat(path + "-wal"); err == nil {
		info.LogBytes = log.Size()
	}
	info.Problem = checkHeader(path, SchemaVersion)
	f, err := os.Open(path)
	if err != nil {
		return info, nil // the header check has said why
	}
	defer f.Close()
	var header [headerSize]byte
	if _, err := io.ReadFull(f, header[:]); err == nil {
		info.ApplicationID = binary.BigEndian.Uint32(header[68:])
		info.SchemaVersion = int(binary.BigEndian.Uint32(header[60:]))
		info.Ours = info.ApplicationID == applicationID
	}
	return info, nil
}

// Holder is what the lock file of a data directory says about who holds it;
// false when it names nobody.
func Holder(dir string) (LockInfo, bool) {
	f, err := os.Open(filepath.Join(dir, LockFile))
	if err != nil {
		return LockInfo{}, false
	}
	defer f.Close()
	return readLock(f)
}
