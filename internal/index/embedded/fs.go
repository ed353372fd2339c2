package embedded

import (
	"io"
	"os"
	"path/filepath"

	"github.com/edsrzf/mmap-go"
)

// FS is what the index needs of a file system, so that tests can make any of
// it fail. Names are relative to the index directory.
type FS interface {
	MkdirAll() error
	ReadDir() ([]string, error)
	// ReadFile reads a small file whole.
	ReadFile(name string) ([]byte, error)
	// Create makes a file for writing, replacing an old one.
	Create(name string) (WriteFile, error)
	// Open opens a file for reading.
	Open(name string) (ReadFile, error)
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes creations and renames durable.
	SyncDir() error
}

// WriteFile is a file being written.
type WriteFile interface {
	io.Writer
	Sync() error
	Close() error
}

// ReadFile is a file being read. Map gives its whole content for as long as the
// file is open; it must not be called before the length and the checksums were
// verified, since a truncated mapped file kills the process.
type ReadFile interface {
	io.ReaderAt
	Size() int64
	Map() ([]byte, error)
	Close() error
}

// DirFS is the FS over a directory of the operating system.
func DirFS(dir string) FS { return dirFS(dir) }

type dirFS string

func (d dirFS) path(name string) string { return filepath.Join(string(d), name) }

func (d dirFS) MkdirAll() error { return os.MkdirAll(string(d), 0o700) }

func (d dirFS) ReadDir() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (d dirFS) ReadFile(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

func (d dirFS) Create(name string) (WriteFile, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (d dirFS) Open(name string) (ReadFile, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &osReadFile{File: f, size: st.Size()}, nil
}

func (d dirFS) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d dirFS) Remove(name string) error { return os.Remove(d.path(name)) }

func (d dirFS) SyncDir() error { return syncDir(string(d)) }

type osReadFile struct {
	*os.File
	size int64
	data mmap.MMap
}

func (f *osReadFile) Size() int64 { return f.size }

func (f *osReadFile) Map() ([]byte, error) {
	if f.data == nil && f.size > 0 {
		m, err := mmap.Map(f.File, mmap.RDONLY, 0)
		if err != nil {
			return nil, err
		}
		f.data = m
	}
	return f.data, nil
}

func (f *osReadFile) Close() error {
	var err error
	if f.data != nil {
		err = f.data.Unmap()
		f.data = nil
	}
	if cerr := f.File.Close(); err == nil {
		err = cerr
	}
	return err
}
