package loci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/index/embedded"
)

// hookFS asks before every operation on the files of an index; an error of the
// hook is the operation's.
type hookFS struct {
	embedded.FS
	before func(op, name string) error
}

// hookIndexFS makes an Options.indexFS.
func hookIndexFS(before func(op, name string) error) func(embedded.FS) embedded.FS {
	return func(fs embedded.FS) embedded.FS { return &hookFS{fs, before} }
}

func (f *hookFS) MkdirAll() error {
	if err := f.before("mkdir", ""); err != nil {
		return err
	}
	return f.FS.MkdirAll()
}

func (f *hookFS) ReadDir() ([]string, error) {
	if err := f.before("readdir", ""); err != nil {
		return nil, err
	}
	return f.FS.ReadDir()
}

func (f *hookFS) ReadFile(name string) ([]byte, error) {
	if err := f.before("read", name); err != nil {
		return nil, err
	}
	return f.FS.ReadFile(name)
}

func (f *hookFS) Create(name string) (embedded.WriteFile, error) {
	if err := f.before("create", name); err != nil {
		return nil, err
	}
	w, err := f.FS.Create(name)
	return &hookWriter{w, f, name}, err
}

func (f *hookFS) Open(name string) (embedded.ReadFile, error) {
	if err := f.before("open", name); err != nil {
		return nil, err
	}
	r, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &hookReader{r, f, name}, nil
}

func (f *hookFS) Rename(from, to string) error {
	if err := f.before("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *hookFS) Remove(name string) error {
	if err := f.before("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *hookFS) SyncDir() error {
	if err := f.before("syncdir", ""); err != nil {
		return err
	}
	return f.FS.SyncDir()
}

type hookWriter struct {
	embedded.WriteFile
	fs   *hookFS
	name string
}

func (w *hookWriter) Write(p []byte) (int, error) {
	if err := w.fs.before("write", w.name); err != nil {
		n, _ := w.WriteFile.Write(p[:len(p)/2]) // torn
		return n, err
	}
	return w.WriteFile.Write(p)
}

func (w *hookWriter) Sync() error {
	if err := w.fs.before("sync", w.name); err != nil {
		return err
	}
	return w.WriteFile.Sync()
}

type hookReader struct {
	embedded.ReadFile
	fs   *hookFS
	name string
}

func (r *hookReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.fs.before("readat", r.name); err != nil {
		return 0, err
	}
	return r.ReadFile.ReadAt(p, off)
}

func (r *hookReader) Map() ([]byte, error) {
	if err := r.fs.before("map", r.name); err != nil {
		return nil, err
	}
	return r.ReadFile.Map()
}

var errInjected = errors.New("injected fault")

// barrier holds the index's files up at one operation, once armed, until it is
// opened.
type barrier struct {
	mu      sync.Mutex
	op      string // "" holds nothing up
	reached chan struct{}
	open    chan struct{}
}

// arm makes the next op wait.
func (b *barrier) arm(op string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.op, b.reached, b.open = op, make(chan struct{}), make(chan struct{})
}

func (b *barrier) before(op, _ string) error {
	b.mu.Lock()
	if op != b.op {
		b.mu.Unlock()
		return nil
	}
	b.op = ""
	reached, open := b.reached, b.open
	b.mu.Unlock()
	close(reached)
	<-open
	return nil
}

// settle brings everything into the index's files and forgets the journal, so
// that a lost index cannot be had back without reading the records.
func settle(t testing.TB, db *DB) {
	t.Helper()
	ix := db.eng.index.Load()
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := db.eng.store.PruneJournal(t.Context(), ix.Checkpointed()); err != nil {
		t.Fatal(err)
	}
	if c := db.eng.store.Counters(); c.JournalFloor == 0 {
		t.Fatalf("the journal is still whole: %+v", c)
	}
}

// copyDir copies the folder of a closed store.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// copyOpenDir copies the folder of an open store to which nobody writes, as a
// crash would leave it. The store's background may still write and remove files
// of its own, so a copy counts only if the folder was the same before and after.
func copyOpenDir(t testing.TB, from string) string {
	t.Helper()
	listing := func() (files []string, err error) {
		err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				files = append(files, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
			}
			return err
		})
		return files, err
	}
	for {
		before, err := listing()
		var after []string
		to := t.TempDir()
		if err == nil {
			err = os.CopyFS(to, os.DirFS(from))
		}
		if err == nil {
			after, err = listing()
		}
		switch {
		case err == nil && slices.Equal(before, after):
			return to
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
	}
}

// indexFiles lists the index's files below a data directory.
func indexFiles(t testing.TB, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, indexFolder), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// folders lists what the index folder holds.
func folders(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, indexFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
