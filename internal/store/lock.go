package store

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

// LockFile is the name of the lock file in a data directory.
const LockFile = "writer.lock"

// LockInfo is what a lock file says about its holder.
type LockInfo struct {
	PID           int    `json:"pid"`
	StartedAtUS   int64  `json:"started_at_us"`
	Version       string `json:"version"`
	SchemaVersion int    `json:"schema_version"`
}

// Lock is the exclusive right to a data directory. The operating system drops
// it when the process ends, however that happens.
type Lock struct{ f *os.File }

// errHeld says that somebody else holds a lock.
var errHeld = errors.New("held")

// LockDirectory takes the lock of a data directory, which must exist. If it is
// held the error has code locked and names the holder.
func LockDirectory(dir, version string, now time.Time) (*Lock, error) {
	path := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, errs.Wrap(errs.IO, err, "the folder cannot be written: change its permissions or choose another")
		}
		return nil, errs.Wrap(errs.IO, err, "the lock file could not be opened")
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if !errors.Is(err, errHeld) {
			return nil, errs.Wrap(errs.IO, err, "the file system of this folder cannot lock files: choose a local disk")
		}
		if info, ok := readLock(f); ok {
			return nil, errs.New(errs.Locked, "%s is in use by process %d since %s: close it or choose another folder",
				dir, info.PID, time.UnixMicro(info.StartedAtUS).UTC().Format(time.RFC3339))
		}
		return nil, errs.New(errs.Locked, "%s is in use by another process: close it or choose another folder", dir)
	}
	text, err := json.Marshal(LockInfo{PID: os.Getpid(), StartedAtUS: now.UnixMicro(), Version: version, SchemaVersion: SchemaVersion})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		f.Close()
		return nil, errs.Wrap(errs.IO, err, "the lock file could not be written")
	}
	return &Lock{f: f}, nil
}

func readLock(f *os.File) (info LockInfo, ok bool) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	return info, err == nil && json.Unmarshal(text, &info) == nil && info.PID != 0
}

// Release gives the lock back. The file stays, emptied: removing it would let
// two processes lock two files of the same name.
func (l *Lock) Release() error {
	if l == nil || l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	f.Truncate(0)
	err := unlockFile(f)
	return errors.Join(err, f.Close())
}
