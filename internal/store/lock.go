package store

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
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
	// Endpoint is where the holder serves other processes; nil while it does not.
	Endpoint *Endpoint `json:"endpoint,omitempty"`
}

// Endpoint is where the holder of a lock serves other processes of its user.
type Endpoint struct {
	Protocol int `json:"protocol"`
	// Network is "unix" or "tcp"; Address is the socket's path, relative to the
	// data directory where it lies in it, or a loopback address. Both are empty
	// when the holder wanted to serve and could not: Trouble says why.
	Network string `json:"network,omitempty"`
	Address string `json:"address,omitempty"`
	// Instance tells one holder from the next, and Secret is what a peer shows to
	// prove that it can read this file. Both are random and made for each holder.
	Instance string `json:"instance,omitempty"`
	Secret   string `json:"secret,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
}

// Lock is the exclusive right to a data directory. The operating system drops
// it when the process ends, however that happens.
type Lock struct {
	mu   sync.Mutex
	f    *os.File // nil once released
	info LockInfo
}

// errHeld says that somebody else holds a lock.
var errHeld = errors.New("held")

// LockDirectory takes the lock of a data directory, which must exist. If it is
// held the error has code locked and names the holder.
func LockDirectory(dir, version string, now time.Time) (*Lock, error) {
	path := filepath.Join(dir, LockFile)
	// Whatever else bears the name would be written over, and a link leads to a
	// file that is none of ours.
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errs.New(errs.IO, "%s is no regular file, and is left as it is: remove it, or choose another folder", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
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
	l := &Lock{f: f, info: LockInfo{PID: os.Getpid(), StartedAtUS: now.UnixMicro(), Version: version, SchemaVersion: SchemaVersion}}
	if err := l.write(); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// write puts what there is to say about the holder into the file. Who reads it at
// that moment may find a mixture, which is no JSON.
func (l *Lock) write() error {
	text, err := json.Marshal(l.info)
	if err == nil {
		text = append(text, '\n')
		_, err = l.f.WriteAt(text, 0)
	}
	if err == nil {
		err = l.f.Truncate(int64(len(text)))
	}
	return errs.Wrap(errs.IO, err, "the lock file could not be written")
}

// Announce puts into the lock file where the holder serves other processes; nil
// takes it out again. The file is made the user's own first, since what it holds
// then opens the store. It is errs.Closed after Release.
func (l *Lock) Announce(e *Endpoint) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return errs.New(errs.Closed, "the lock is released")
	}
	if e != nil {
		if err := l.f.Chmod(0o600); err != nil {
			return errs.Wrap(errs.IO, err, "the lock file could not be made the user's own")
		}
	}
	l.info.Endpoint = e
	return l.write()
}

func readLock(f *os.File) (info LockInfo, ok bool) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	return info, err == nil && json.Unmarshal(text, &info) == nil && info.PID != 0
}

// Release gives the lock back. The file stays, emptied: removing it would let
// two processes lock two files of the same name.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	f.Truncate(0)
	err := unlockFile(f)
	return errors.Join(err, f.Close())
}
