package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// run drives an index through steps with files written and merged at many of
// them. Failures to write are the point.
func (h *vecHistory) run(ix *Index, w world, steps int) {
	for range steps {
		h.step(ix, w, 30)
		if w.IntN(3) == 0 {
			_ = ix.Flush() // may fail
		}
		if w.IntN(4) == 0 {
			_ = ix.mergeAll() // likewise
		}
	}
}

// TestEveryVectorFault fails each file operation in turn, once or for good, then
// cuts the power. What was published must be found while the index is open, and
// after it was opened anew and the journal replayed.
func TestEveryVectorFault(t *testing.T) {
	run := func(f *faultFS) {
		w := world{rand.New(rand.NewPCG(13, 3))}
		opts := Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 60, VectorBytes: 4000, MinLists: 20, ScanRows: 10, ProbeRows: 1}
		ix, err := Open(f, opts)
		if err != nil {
			if !errors.Is(err, errFault) {
				t.Fatalf("fault %d: open: %v", f.failAt, err)
			}
			return
		}
		h := newVecHistory()
		h.run(ix, w, 9)
		for range 5 {
			h.check(t, ix, w)
		}
		ix.Abandon()
		after := f.crash()
		if ix, err = Open(after, opts); err != nil {
			t.Fatalf("fault %d: open after a power cut: %v", f.failAt, err)
		}
		h.replay(ix)
		for range 10 {
			h.check(t, ix, w)
		}
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
	}
	probe := newFaultFS()
	run(probe)
	total := probe.ops.Load()
	t.Logf("%d file operations", total)
	if total < 100 {
		t.Fatalf("only %d file operations: the history does not exercise files", total)
	}
	for n := int64(1); n <= total; n++ {
		f := newFaultFS()
		f.failAt, f.sticky = n, n%5 == 0
		run(f)
	}
}

// TestDamagedVectorFiles changes bytes of vector files behind the index's back.
// It must be noticed at open, or, if it is in the vectors themselves, by a
// search that reads them; no search may give another answer.
func TestDamagedVectorFiles(t *testing.T) {
	dir := t.TempDir()
	w := world{rand.New(rand.NewPCG(15, 5))}
	opts := Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 10_000, MinLists: 20, ScanRows: 10, ProbeRows: 1}
	ix, err := Open(DirFS(dir), opts)
	if err != nil {
		t.Fatal(err)
	}
	h := newVecHistory()
	for i := range 40 {
		h.step(ix, w, 60)
		if i == 30 {
			if err := errors.Join(ix.Flush(), ix.mergeAll()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(ix.Flush(), ix.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "vec-*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		damage := map[string][]byte{"empty": {}, "gone": nil, "longer": append(slices.Clone(whole), 0)}
		for range 60 {
			i := w.IntN(len(whole))
			b := slices.Clone(whole)
			b[i] ^= 1 << w.IntN(8)
			damage[fmt.Sprintf("byte %d", i)] = b
			damage[fmt.Sprintf("cut at %d", i)] = whole[:i]
		}
		for what, b := range damage {
			if b == nil {
				err = os.Remove(name)
			} else {
				err = os.WriteFile(name, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			ix, err := Open(DirFS(dir), opts)
			switch {
			case err != nil && !errors.Is(err, ErrUnusable):
				t.Errorf("%s: %s: %v", filepath.Base(name), what, err)
			case err == nil && len(b) != len(whole):
				t.Errorf("%s: %s: opened", filepath.Base(name), what)
			case err == nil:
				// In the vectors, or in padding, which belongs to nobody.
				if err := readAll(ix, h); err != nil && !errors.Is(err, errDamaged) {
					t.Errorf("%s: %s: %v", filepath.Base(name), what, err)
				}
			}
			if err == nil {
				ix.Abandon()
			}
			if err := os.WriteFile(name, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// readAll searches every vector exactly and compares what comes without an
// error with the model.
func readAll(ix *Index, h *vecHistory) error {
	v, ok := ix.View(ix.Revision())
	if !ok {
		return errors.New("no view of the current revision")
	}
	defer v.Close()
	w := fixedWorld()
	var all error
	for space, form := range vecSpaces {
		for ns := int64(1); ns <= 2; ns++ {
			q := index.VectorQuery{Space: space, Values: w.vector(form.dim), Limit: 10_000, Exact: true}
			f := index.Filter{Namespace: ns, Kinds: []index.Kind{1, 2}, Scopes: []int64{10, 11, 12}}
			got, err := v.Nearest(q, f)
			if err != nil {
				all = err
				continue
			}
			if want := h.m.best(q, f); !slices.Equal(got.Hits, want) {
				return fmt.Errorf("space %d, namespace %d: a search of damaged vectors gives %v, not %v", space, ns, got.Hits, want)
			}
		}
	}
	return all
}

// TestDamageIsFound changes one byte of the vectors in the middle of a file: a
// search that reads it must fail, also through lists, and so must a merge.
func TestDamageIsFound(t *testing.T) {
	for _, limit := range []int{5, 500} {
		f := newFaultFS()
		opts := Options{Analyze: words, Version: 1, StoreID: "s", MinLists: 20, ScanRows: 10, ProbeRows: 1}
		ix, err := Open(f, opts)
		if err != nil {
			t.Fatal(err)
		}
		w := fixedWorld()
		var changes []index.Change
		for id := int64(1); id <= 300; id++ {
			changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(&index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 1})},
				index.Change{ID: id, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: 1, Values: w.vector(24)}})
		}
		ix.Stage(1, changes)
		ix.Publish()
		if err := errors.Join(ix.Flush(), ix.mergeAll(), ix.Close()); err != nil {
			t.Fatal(err)
		}
		for name := range f.files {
			if name[:4] == "vec-" {
				_, sec, err := openSections(f, name, vecForm)
				if err != nil {
					t.Fatal(err)
				}
				sec[vsCodes][len(sec[vsCodes])/2] ^= 4 // the reader gives the file's own memory
			}
		}
		if ix, err = Open(f, opts); err != nil {
			t.Fatal(err)
		}
		v, _ := ix.View(1)
		_, err = v.Nearest(index.VectorQuery{Space: 1, Values: w.vector(24), Limit: limit}, index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{1}})
		if !errors.Is(err, errDamaged) {
			t.Errorf("limit %d: a search of damaged vectors: %v", limit, err)
		}
		snap := v.(*view).snapshot
		if err := ix.mergeVectors(snap.vecSegs, nil); !errors.Is(err, errDamaged) {
			t.Errorf("a merge of damaged vectors: %v", err)
		}
		v.Close()
		ix.Abandon()
	}
}

// TestVectorReadersWhileWriting searches many views while vectors change, are
// written and merged. Under the race detector it is the proof that snapshots
// share nothing that changes.
func TestVectorReadersWhileWriting(t *testing.T) {
	w := world{rand.New(rand.NewPCG(18, 8))}
	opts := Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 100, VectorBytes: 8000, MinLists: 20, ScanRows: 10, ProbeRows: 1, OnError: func(err error) { t.Error(err) }}
	ix, err := Open(newFaultFS(), opts)
	if err != nil {
		t.Fatal(err)
	}
	empty := newVecModel()
	var stop atomic.Bool
	var group sync.WaitGroup
	for r := range 3 {
		w := world{rand.New(rand.NewPCG(19, uint64(r)))}
		group.Go(func() {
			for !stop.Load() {
				v, ok := ix.View(ix.Revision())
				if !ok {
					continue
				}
				q, f := w.vectorQuery(empty), w.filter()
				q.IDs = nil
				first, err := v.Nearest(q, f)
				if err != nil {
					t.Error(err)
				}
				counts, missing := v.CountVectors(1, 1, 1), v.Missing(1, 1, 1, 10, nil)
				// The same view answers the same again, whatever came between.
				again, err := v.Nearest(q, f)
				if err != nil || !slices.Equal(first.Hits, again.Hits) {
					t.Errorf("a view changed its mind: %v, %v, %v", first.Hits, again.Hits, err)
				}
				if c := v.CountVectors(1, 1, 1); c != counts {
					t.Errorf("a view counts %+v, then %+v", counts, c)
				}
				if m := v.Missing(1, 1, 1, 10, nil); !slices.Equal(m, missing) {
					t.Errorf("a view misses %v, then %v", missing, m)
				}
				v.Close()
			}
		})
	}
	h := newVecHistory()
	h.run(ix, w, 120)
	stop.Store(true)
	group.Wait()
	for range 20 {
		h.check(t, ix, w)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestScopesOutliveACrash moves a record to another scope and loses power after
// a checkpoint that does not cover the move: the vector has to be there for the
// journal to move again.
func TestScopesOutliveACrash(t *testing.T) {
	f := newFaultFS()
	opts := Options{Analyze: words, Version: 1, StoreID: "s", VectorBytes: 1}
	ix, err := Open(f, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := fixedWorld()
	doc := func(ix *Index, scope int64) index.Change {
		return index.Change{ID: 7, Namespace: 1, Kind: 1, Doc: ix.Prepare(&index.Document{ID: 7, Namespace: 1, Kind: 1, Scope: scope})}
	}
	values := w.vector(24)
	ix.Stage(1, []index.Change{doc(ix, 1), {ID: 7, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: 1, Values: values}}})
	ix.Publish()
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	ix.opts.VectorBytes = 1 << 20 // the next change stays in the tail
	ix.Stage(2, []index.Change{doc(ix, 2)})
	ix.Publish()
	v, _ := ix.View(2)
	if err := errors.Join(ix.mergeVectors(v.(*view).vecSegs, nil), ix.checkpoint()); err != nil {
		t.Fatal(err)
	}
	v.Close()
	ix.Abandon()
	if ix, err = Open(f.crash(), opts); err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if ix.Checkpointed() != 1 {
		t.Fatalf("the files cover %d: the test proves nothing", ix.Checkpointed())
	}
	ix.Stage(2, []index.Change{doc(ix, 2)})
	ix.Publish()
	v, _ = ix.View(2)
	defer v.Close()
	for scope, want := range map[int64]int{1: 0, 2: 1} {
		res, err := v.Nearest(index.VectorQuery{Space: 1, Values: values, Limit: 5}, index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{scope}})
		if err != nil || len(res.Hits) != want {
			t.Errorf("scope %d: %v, %v", scope, res.Hits, err)
		}
	}
	if c := v.CountVectors(1, 1, 1); c != (index.VectorCount{Records: 1, Vectors: 1}) {
		t.Errorf("counts %+v", c)
	}
}

// TestManyNamespaces holds that many small namespaces share their files and are
// kept apart.
func TestManyNamespaces(t *testing.T) {
	const namespaces = 10_000
	dir := t.TempDir()
	opts := Options{Analyze: words, Version: 1, StoreID: "s"}
	ix, err := Open(DirFS(dir), opts)
	if err != nil {
		t.Fatal(err)
	}
	w := fixedWorld()
	var changes []index.Change
	vectors := map[int64][]float32{}
	for i := range int64(2 * namespaces) {
		id, ns := i+1, i%namespaces
		vectors[id] = w.vector(24)
		changes = append(changes, index.Change{ID: id, Namespace: ns, Kind: 1, Doc: ix.Prepare(&index.Document{ID: id, Namespace: ns, Kind: 1, Scope: 1})},
			index.Change{ID: id, Namespace: ns, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: 1, Values: vectors[id]}})
	}
	ix.Stage(1, changes)
	ix.Publish()
	if err := errors.Join(ix.Flush(), ix.Close()); err != nil {
		t.Fatal(err)
	}
	if ix, err = Open(DirFS(dir), opts); err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if st := ix.Stats(); st.Segments > 4 || st.Vectors != 2*namespaces {
		t.Errorf("%+v", st)
	}
	v, _ := ix.View(1)
	defer v.Close()
	for range 200 {
		ns := int64(w.IntN(namespaces))
		q := w.vector(24)
		res, err := v.Nearest(index.VectorQuery{Space: 1, Values: q, Limit: 10}, index.Filter{Namespace: ns, Kinds: []index.Kind{1}, Scopes: []int64{1}})
		if err != nil {
			t.Fatal(err)
		}
		want := []int64{ns + 1, ns + 1 + namespaces}
		slices.SortFunc(want, func(a, b int64) int {
			x, y := codeScore(index.EncodingSQ8, q, vectors[a]), codeScore(index.EncodingSQ8, q, vectors[b])
			if x != y {
				return cmpInt(x > y)
			}
			return cmpInt(a < b)
		})
		if len(res.Hits) != 2 || res.Hits[0].ID != want[0] || res.Hits[1].ID != want[1] {
			t.Fatalf("namespace %d: %v, want %v", ns, res.Hits, want)
		}
	}
}
