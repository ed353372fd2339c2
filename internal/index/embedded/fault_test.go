package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// faultFS is a file system in memory whose operation number failAt, and all
// after it when sticky, fails. It forgets what was not synced when it crashes.
type faultFS struct {
	mu     sync.Mutex
	files  map[string]*memFile
	synced map[string]*memFile // directory as it is on disk
	ops    atomic.Int64
	failAt int64
	sticky bool
	full   bool // writes fail, everything else works
}

type memFile struct {
	data   []byte
	synced []byte
}

var errFault = errors.New("injected fault")

func newFaultFS() *faultFS {
	return &faultFS{files: map[string]*memFile{}, synced: map[string]*memFile{}}
}

func (f *faultFS) step(write bool) error {
	n := f.ops.Add(1)
	if f.failAt > 0 && (n == f.failAt || f.sticky && n > f.failAt) || f.full && write {
		return errFault
	}
	return nil
}

func (f *faultFS) MkdirAll() error { return f.step(true) }

func (f *faultFS) ReadDir() (names []string, err error) {
	if err := f.step(false); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.files {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

func (f *faultFS) file(name string) (*memFile, error) {
	if err := f.step(false); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.files[name]
	if m == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return m, nil
}

func (f *faultFS) ReadFile(name string) ([]byte, error) {
	m, err := f.file(name)
	if err != nil {
		return nil, err
	}
	return m.data, nil
}

func (f *faultFS) Create(name string) (WriteFile, error) {
	if err := f.step(true); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &memFile{}
	f.files[name] = m
	return &memWriter{f, m}, nil
}

type memWriter struct {
	fs *faultFS
	m  *memFile
}

func (w *memWriter) Write(p []byte) (int, error) {
	if err := w.fs.step(true); err != nil {
		w.m.data = append(w.m.data, p[:len(p)/2]...) // torn
		return len(p) / 2, err
	}
	w.m.data = append(w.m.data, p...)
	return len(p), nil
}

func (w *memWriter) Sync() error {
	if err := w.fs.step(true); err != nil {
		return err
	}
	w.m.synced = slices.Clone(w.m.data)
	return nil
}

func (w *memWriter) Close() error { return w.fs.step(false) }

func (f *faultFS) Open(name string) (ReadFile, error) {
	m, err := f.file(name)
	if err != nil {
		return nil, err
	}
	return &memReader{f, m.data}, nil
}

type memReader struct {
	fs   *faultFS
	data []byte
}

func (r *memReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.fs.step(false); err != nil {
		return 0, err
	}
	if off >= int64(len(r.data)) {
		return 0, io.EOF
	}
	n := copy(p, r.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
func (r *memReader) Size() int64 { return int64(len(r.data)) }
func (r *memReader) Map() ([]byte, error) {
	if err := r.fs.step(false); err != nil {
		return nil, err
	}
	return r.data, nil
}
func (r *memReader) Close() error { return nil }

func (f *faultFS) Rename(from, to string) error {
	if err := f.step(true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[to] = f.files[from]
	delete(f.files, from)
	return nil
}

func (f *faultFS) Remove(name string) error {
	if err := f.step(false); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, name)
	return nil
}

func (f *faultFS) SyncDir() error {
	if err := f.step(true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = map[string]*memFile{}
	for n, m := range f.files {
		f.synced[n] = m
	}
	return nil
}

// crash gives the file system as a power cut leaves it: the directory as last
// synced, files as last synced.
func (f *faultFS) crash() *faultFS {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := newFaultFS()
	for n, m := range f.synced {
		c := &memFile{data: slices.Clone(m.synced), synced: m.synced}
		out.files[n], out.synced[n] = c, c
	}
	return out
}

// story drives an index through a fixed story with files written at every
// step, and gives what it should hold, with the revision of each change.
type story struct {
	m    model
	log  map[int64][]int64 // revision -> records
	kept map[int64]partKey
	rev  int64
}

func (h *story) run(ix *Index, w world, steps int) {
	for range steps {
		h.rev++
		var changes []index.Change
		for range 1 + w.IntN(20) {
			d := w.doc(1 + int64(w.IntN(60)))
			if k, ok := h.kept[d.ID]; ok {
				d.Namespace, d.Kind = k.namespace, k.kind
			}
			h.kept[d.ID] = partKey{d.Namespace, d.Kind}
			c := index.Change{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind}
			if w.IntN(4) > 0 {
				c.Doc = ix.Prepare(d)
				h.m[d.ID] = d
			} else {
				delete(h.m, d.ID)
			}
			changes = append(changes, c)
			h.log[h.rev] = append(h.log[h.rev], d.ID)
		}
		ix.Stage(h.rev, changes)
		ix.Publish()
		if w.IntN(3) == 0 {
			_ = ix.Flush() // may fail: that is the point
		}
		if w.IntN(6) == 0 {
			_ = ix.mergeAll()
		}
	}
}

// replay brings an index up to the truth.
func (h *story) replay(ix *Index) {
	var changes []index.Change
	for r := ix.Checkpointed() + 1; r <= h.rev; r++ {
		for _, id := range h.log[r] {
			c := index.Change{ID: id, Namespace: h.kept[id].namespace, Kind: h.kept[id].kind}
			if d := h.m[id]; d != nil {
				c.Doc = ix.Prepare(d)
			}
			changes = append(changes, c)
		}
	}
	ix.Stage(h.rev, changes)
	ix.Publish()
}

func newStory() *story {
	return &story{m: model{}, log: map[int64][]int64{}, kept: map[int64]partKey{}}
}

// TestEveryFault fails each file operation in turn, once or for good, then cuts
// the power. What was published must be found while the index is open, and
// after it was opened anew and the journal replayed.
func TestEveryFault(t *testing.T) {
	const steps = 14
	probe := newFaultFS()
	run := func(f *faultFS) (failed bool) {
		w := world{rand.New(rand.NewPCG(3, 3))}
		opts := Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 30}
		ix, err := Open(f, opts)
		if err != nil {
			if !errors.Is(err, errFault) {
				t.Fatalf("fault %d: open: %v", f.failAt, err)
			}
			return true
		}
		h := newStory()
		h.run(ix, w, steps)
		for range 5 {
			checkSearch(t, ix, h.m, w)
		}
		ix.Abandon()
		after := f.crash()
		ix, err = Open(after, opts)
		if err != nil {
			t.Fatalf("fault %d: open after a power cut: %v", f.failAt, err)
		}
		h.replay(ix)
		for range 10 {
			checkSearch(t, ix, h.m, w)
		}
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
		return f.ops.Load() >= f.failAt
	}
	run(probe)
	total := probe.ops.Load()
	if total < 50 {
		t.Fatalf("only %d file operations: the story does not exercise files", total)
	}
	for n := int64(1); n <= total; n++ {
		run(&faultFS{files: map[string]*memFile{}, synced: map[string]*memFile{}, failAt: n})
	}
	for n := int64(1); n <= total; n += 7 {
		run(&faultFS{files: map[string]*memFile{}, synced: map[string]*memFile{}, failAt: n, sticky: true})
	}
}

// TestDiskFull goes on in memory while nothing can be written, and writes it all
// when there is room again.
func TestDiskFull(t *testing.T) {
	w := world{rand.New(rand.NewPCG(4, 4))}
	f := newFaultFS()
	opts := Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 10}
	ix, err := Open(f, opts)
	if err != nil {
		t.Fatal(err)
	}
	f.full = true
	h := newStory()
	h.run(ix, w, 30)
	checkSearch(t, ix, h.m, w)
	if err := ix.Flush(); !errors.Is(err, errFault) {
		t.Fatalf("flush on a full disk: %v", err)
	}
	f.full = false
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	if ix.Checkpointed() != h.rev {
		t.Errorf("checkpoint covers %d, want %d", ix.Checkpointed(), h.rev)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if ix, err = Open(f, opts); err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for range 20 {
		checkSearch(t, ix, h.m, w)
	}
}

// buildSegments writes an index with several segments and deletes, and closes
// it.
func buildSegments(t *testing.T, dir string) *story {
	t.Helper()
	w := world{rand.New(rand.NewPCG(5, 5))}
	ix, err := Open(DirFS(dir), Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 40})
	if err != nil {
		t.Fatal(err)
	}
	h := newStory()
	h.run(ix, w, 25)
	// Merged but for one record, so that whoever opens it finds nothing to do.
	if err := errors.Join(ix.Flush(), ix.mergeAll()); err != nil {
		t.Fatal(err)
	}
	id := slices.Min(slices.Collect(maps.Keys(h.m)))
	h.rev++
	h.log[h.rev] = []int64{id}
	ix.Stage(h.rev, []index.Change{{ID: id, Namespace: h.kept[id].namespace, Kind: h.kept[id].kind, Doc: ix.Prepare(h.m[id])}})
	ix.Publish()
	if err := errors.Join(ix.Flush(), ix.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestDamagedFiles changes files behind the index's back: it must be noticed at
// open, whatever the byte.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	buildSegments(t, dir)
	opts := Options{Analyze: words, Version: 1, StoreID: "s"}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	w := rand.New(rand.NewPCG(6, 6))
	for _, name := range files {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		damage := map[string][]byte{"empty": {}, "gone": nil}
		for range 30 {
			i := w.IntN(len(whole))
			b := slices.Clone(whole)
			b[i] ^= 1 << w.IntN(8)
			damage[fmt.Sprintf("byte %d", i)] = b
			damage[fmt.Sprintf("cut at %d", i)] = whole[:i]
		}
		damage["longer"] = append(slices.Clone(whole), 0)
		for what, b := range damage {
			if b == nil {
				if filepath.Base(name) == manifestName {
					continue // without a manifest there is no index, which is no damage
				}
				err = os.Remove(name)
			} else {
				err = os.WriteFile(name, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			ix, err := Open(DirFS(dir), opts)
			if err == nil {
				// Padding between sections belongs to nobody.
				if s, serr := openSegment(DirFS(dir), filepath.Base(name)); serr != nil || filepath.Ext(name) != "" || what == "longer" {
					t.Errorf("%s: %s: opened", filepath.Base(name), what)
				} else {
					s.release(DirFS(dir))
				}
				ix.Abandon()
			} else if !errors.Is(err, ErrUnusable) {
				t.Errorf("%s: %s: %v", filepath.Base(name), what, err)
			}
			if err := os.WriteFile(name, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, o := range []Options{
		{Analyze: words, Version: 2, StoreID: "s"}, {Analyze: words, Version: 1, StoreID: "other"}, {Analyze: words, Version: 1, StoreID: "s", Building: true},
	} {
		if ix, err := Open(DirFS(dir), o); !errors.Is(err, ErrUnusable) {
			t.Errorf("%+v: %v", o, err)
			if err == nil {
				ix.Abandon()
			}
		}
	}
}

// TestReadersWhileWriting runs searches on many views while the index changes,
// flushes and merges. Under the race detector it is the proof that snapshots
// share nothing that changes.
func TestReadersWhileWriting(t *testing.T) {
	w := world{rand.New(rand.NewPCG(8, 8))}
	ix, err := Open(newFaultFS(), Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 50, OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var group sync.WaitGroup
	for r := range 4 {
		w := world{rand.New(rand.NewPCG(9, uint64(r)))}
		group.Go(func() {
			for !stop.Load() {
				v, ok := ix.View(ix.Revision())
				if !ok {
					continue
				}
				q, f := w.query(), w.filter()
				first, err := v.Search(q, f, index.Options{Limit: 10, NeighbourWeight: 0.5, ThreadWeight: 0.5})
				if err != nil {
					t.Error(err)
				}
				// The same view answers the same again, whatever came between.
				again, err := v.Search(q, f, index.Options{Limit: 10, NeighbourWeight: 0.5, ThreadWeight: 0.5})
				if err != nil || !slices.Equal(first.Hits, again.Hits) {
					t.Errorf("a view changed its mind: %v, %v, %v", first.Hits, again.Hits, err)
				}
				v.Close()
			}
		})
	}
	h := newStory()
	h.run(ix, w, 150)
	stop.Store(true)
	group.Wait()
	for range 20 {
		checkSearch(t, ix, h.m, w)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
}
