// Package faultvfs is a file system for tests of the store: the operating
// system's, with failures and delays on request.
package faultvfs

import (
	"errors"
	"strings"
	"sync"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Op is a set of operations that can fail.
type Op uint8

// The operations.
const (
	Open Op = 1 << iota
	Read
	Write
	Sync
	Truncate
	Delete

	Any = Open | Read | Write | Sync | Truncate | Delete
)

// The errors to fail with.
var (
	ErrIO       error = sqlite3.IOERR
	ErrDiskFull error = sqlite3.FULL
	ErrCorrupt  error = sqlite3.CORRUPT
)

// FS is a registered file system. It counts the operations of all files opened
// through it.
type FS struct {
	name string
	os   vfs.VFSFilename

	mu        sync.Mutex
	count     int64
	failAt    int64 // 0: never
	failOps   Op
	failErr   error
	goesOn    bool
	failed    bool
	torn      bool
	syncDelay time.Duration
	writeDown map[string]int64 // bytes written, by suffix of the file's name
}

// Register makes a file system that stores open by name; Close ends it.
func Register(name string) *FS {
	fs := &FS{name: name, os: vfs.Find("os").(vfs.VFSFilename), writeDown: map[string]int64{}}
	vfs.Register(name, fs)
	return fs
}

// Close unregisters the file system.
func (fs *FS) Close() { vfs.Unregister(fs.name) }

// Name is the name to open by.
func (fs *FS) Name() string { return fs.name }

// FailAt makes the n-th operation from now on of those in ops fail with err;
// with goesOn, every later one too. n below 1 ends it.
func (fs *FS) FailAt(n int64, ops Op, err error, goesOn bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.count, fs.failAt, fs.failOps, fs.failErr, fs.goesOn, fs.failed = 0, max(n, 0), ops, err, goesOn, false
}

// TearWrites makes a write that fails leave its first half in the file.
func (fs *FS) TearWrites(torn bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.torn = torn
}

// Failed says whether a failure has happened since FailAt.
func (fs *FS) Failed() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.failed
}

// DelaySyncs makes every sync take that much longer.
func (fs *FS) DelaySyncs(d time.Duration) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.syncDelay = d
}

// Written is the number of bytes written to files whose name ends in suffix,
// which is one of "-wal" and "".
func (fs *FS) Written(suffix string) int64 {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.writeDown[suffix]
}

func (fs *FS) check(op Op) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.failAt == 0 || fs.failOps&op == 0 {
		return nil
	}
	fs.count++
	if fs.count == fs.failAt || fs.goesOn && fs.count > fs.failAt {
		fs.failed = true
		return fs.failErr
	}
	return nil
}

// Open implements vfs.VFS.
func (fs *FS) Open(string, vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return nil, 0, errors.ErrUnsupported // OpenFilename is called instead
}

// OpenFilename implements vfs.VFSFilename.
func (fs *FS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if err := fs.check(Open); err != nil {
		return nil, flags, sqlite3.CANTOPEN
	}
	f, flags, err := fs.os.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	suffix := ""
	if name != nil && strings.HasSuffix(name.String(), "-wal") {
		suffix = "-wal"
	}
	return &file{File: f, fs: fs, suffix: suffix}, flags, nil
}

// Delete implements vfs.VFS.
func (fs *FS) Delete(name string, syncDir bool) error {
	if err := fs.check(Delete); err != nil {
		return err
	}
	return fs.os.Delete(name, syncDir)
}

// Access implements vfs.VFS.
func (fs *FS) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return fs.os.Access(name, flags)
}

// FullPathname implements vfs.VFS.
func (fs *FS) FullPathname(name string) (string, error) { return fs.os.FullPathname(name) }

type file struct {
	vfs.File
	fs     *FS
	suffix string
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.check(Read); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.check(Write); err != nil {
		f.fs.mu.Lock()
		torn := f.fs.torn
		f.fs.mu.Unlock()
		if torn {
			f.File.WriteAt(p[:len(p)/2], off)
		}
		return 0, err
	}
	f.fs.mu.Lock()
	f.fs.writeDown[f.suffix] += int64(len(p))
	f.fs.mu.Unlock()
	return f.File.WriteAt(p, off)
}

func (f *file) Sync(flags vfs.SyncFlag) error {
	if err := f.fs.check(Sync); err != nil {
		return err
	}
	f.fs.mu.Lock()
	d := f.fs.syncDelay
	f.fs.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
	return f.File.Sync(flags)
}

func (f *file) Truncate(size int64) error {
	if err := f.fs.check(Truncate); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// What follows hands through the optional abilities that the store relies on.

func (f *file) Unwrap() vfs.File { return f.File }

func (f *file) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *file) LockState() vfs.LockLevel { return f.File.(vfs.FileLockState).LockState() }

func (f *file) PersistWAL() bool { return f.File.(vfs.FilePersistWAL).PersistWAL() }

func (f *file) SetPersistWAL(keep bool) { f.File.(vfs.FilePersistWAL).SetPersistWAL(keep) }

func (f *file) PowersafeOverwrite() bool {
	return f.File.(vfs.FilePowersafeOverwrite).PowersafeOverwrite()
}

func (f *file) SetPowersafeOverwrite(on bool) {
	f.File.(vfs.FilePowersafeOverwrite).SetPowersafeOverwrite(on)
}
