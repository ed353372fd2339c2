package embedded

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// filled is an index with records of one kind and a vector each, in segments
// with lists, and what it should hold.
func filled(t *testing.T, opts Options, ids []int64, doc func(id int64) *index.Document, vector func(id int64) []float32) (*Index, *vecModel) {
	t.Helper()
	opts.Analyze, opts.Version, opts.StoreID = words, 1, "s"
	opts.OnError = func(err error) { t.Error(err) }
	ix, err := Open(DirFS(t.TempDir()), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	m := newVecModel()
	var changes []index.Change
	for _, id := range ids {
		d := doc(id)
		m.docs[id], m.vectors[1][id] = d, vector(id)
		changes = append(changes, index.Change{ID: id, Namespace: d.Namespace, Kind: d.Kind, Doc: ix.Prepare(d)},
			index.Change{ID: id, Namespace: d.Namespace, Kind: d.Kind, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: d.Scope, Values: m.vectors[1][id]}})
	}
	ix.Stage(1, changes)
	ix.Publish()
	if err := errors.Join(ix.Flush(), ix.mergeAll()); err != nil {
		t.Fatal(err)
	}
	return ix, m
}

// TestSetsOfRecords filters by tags over ids that follow each other, in runs and
// with gaps, near and far from 0: the set that a filter becomes takes another
// form each time.
func TestSetsOfRecords(t *testing.T) {
	w := world{rand.New(rand.NewPCG(21, 1))}
	for _, first := range []int64{1, 63, 1 << 40} {
		for _, gap := range []int{0, 100, 3} {
			var ids []int64
			id := first
			for range 1500 {
				ids = append(ids, id)
				id++
				if gap > 0 && w.IntN(gap) == 0 {
					id += int64(w.IntN(5))
				}
			}
			ids = append(ids, id+1<<30) // far away
			if w.IntN(2) == 0 {
				ids = ids[:1500]
			}
			ix, m := filled(t, Options{MinLists: 100, ScanRows: 200, ProbeRows: 1}, ids, func(id int64) *index.Document {
				d := &index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 10, CreatedAt: id}
				for tag := int64(20); tag < 23; tag++ {
					if w.IntN(1<<(2*(tag-20))) == 0 {
						d.Tags = append(d.Tags, tag)
					}
				}
				return d
			}, func(int64) []float32 { return w.vector(24) })
			// Some are gone, so that both ways through a part are taken.
			v, _ := ix.View(ix.Revision())
			check := func() {
				for range 30 {
					q := index.VectorQuery{Space: 1, Values: w.vector(24), Limit: 20, Exact: w.IntN(2) == 0}
					f := index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10}, Tags: []int64{20 + int64(w.IntN(3))}}
					if w.IntN(3) == 0 {
						f.HasFrom, f.CreatedFrom = true, ids[w.IntN(1500)]
					}
					got, err := v.Nearest(q, f)
					if err != nil {
						t.Fatal(err)
					}
					want := m.best(q, f)
					if got.Exact && !slices.Equal(got.Hits, want) || len(got.Hits) != len(want) {
						t.Fatalf("first %d, gap %d, filter %+v, exact %v:\n got %v\nwant %v", first, gap, f, got.Exact, got.Hits, want)
					}
				}
			}
			check()
			v.Close()
			var gone []index.Change
			for _, id := range ids {
				if w.IntN(50) == 0 {
					gone = append(gone, index.Change{ID: id, Namespace: 1, Kind: 1})
					m.remove(id)
				}
			}
			ix.Stage(2, gone)
			ix.Publish()
			v, _ = ix.View(2)
			check()
			v.Close()
		}
	}
}

// TestFilterAgainstTheQuery searches with a filter that leaves out just the
// clusters that the query lies in: the lists nearest to it hold nothing, and it
// must look further until it has seen enough.
func TestFilterAgainstTheQuery(t *testing.T) {
	w := world{rand.New(rand.NewPCG(22, 1))}
	var ids []int64
	for id := range int64(8000) {
		ids = append(ids, id+1)
	}
	centres := make([][]float32, 40)
	for i := range centres {
		centres[i] = w.direction(24)
	}
	vector := func(id int64) []float32 {
		v := w.direction(24)
		for i := range v {
			v[i] = centres[id%40][i] + 0.4*v[i]
		}
		return normalized(v)
	}
	ix, m := filled(t, Options{MinLists: 100, ScanRows: 200, ProbeRows: 1}, ids, func(id int64) *index.Document {
		return &index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 10 + id%40}
	}, vector)
	v, _ := ix.View(1)
	defer v.Close()
	found, all := 0, 0
	for c := range int64(40) {
		q := index.VectorQuery{Space: 1, Values: vector(c), Limit: 10}
		f := index.Filter{Namespace: 1, Kinds: []index.Kind{1}}
		for s := range int64(30) {
			f.Scopes = append(f.Scopes, 10+(c+5+s)%40)
		}
		got, err := v.Nearest(q, f)
		if err != nil {
			t.Fatal(err)
		}
		if got.Exact {
			t.Fatal("the lists were not used: the test proves nothing")
		}
		for _, h := range m.best(q, f) {
			all++
			if slices.Contains(got.Hits, h) {
				found++
			}
		}
	}
	if recall := float64(found) / float64(all); recall < 0.95 {
		t.Errorf("recall %.3f", recall)
	}
}

// TestDroppedSpaces holds that a space's vectors are gone for views made later,
// also after a restart, that open ones keep them, and that files shed them.
func TestDroppedSpaces(t *testing.T) {
	f := newFaultFS()
	opts := Options{Analyze: words, Version: 1, StoreID: "s"}
	ix, err := Open(f, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := fixedWorld()
	var changes []index.Change
	for id := int64(1); id <= 100; id++ {
		changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(&index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 1})})
		for space := int64(1); space <= 2; space++ {
			if space == 1 || id <= 10 {
				changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: space, Encoding: index.EncodingSQ8, Scope: 1, Values: w.vector(24)}})
			}
		}
	}
	ix.Stage(1, changes)
	ix.Publish()
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	hits := func(v index.View, space int64) int {
		res, err := v.Nearest(index.VectorQuery{Space: space, Values: w.vector(24), Limit: 1000}, index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{1}})
		if err != nil {
			t.Fatal(err)
		}
		return len(res.Hits)
	}
	before, _ := ix.View(1)
	ix.DropSpace(2)
	after, _ := ix.View(1)
	if a, b := hits(before, 2), hits(after, 2); a != 10 || b != 0 {
		t.Errorf("%d hits before, %d after", a, b)
	}
	if c := after.CountVectors(2, 1, 1); c.Vectors != 0 || c.Records != 100 {
		t.Errorf("counts %+v", c)
	}
	if st := ix.Stats(); st.Vectors != 100 {
		t.Errorf("%d vectors beside the dropped space", st.Vectors)
	}
	before.Close()
	after.Close()
	if err := errors.Join(ix.mergeAll(), ix.Close()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(f.files[manifestName].data), `"dropped":[2]`) {
		t.Errorf("the manifest does not name the space: %s", f.files[manifestName].data)
	}
	if ix, err = Open(f, opts); err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	v, _ := ix.View(1)
	if n := hits(v, 2); n != 0 {
		t.Errorf("%d hits after a restart", n)
	}
	v.Close()
	// Dropping the larger one is reason enough to write the file anew, now
	// without either.
	ix.DropSpace(1)
	if err := ix.mergeAll(); err != nil {
		t.Fatal(err)
	}
	if st := ix.Stats(); st.Vectors != 0 || st.Segments != 1 {
		t.Errorf("%+v", st)
	}
	if data := string(f.files[manifestName].data); strings.Contains(data, "dropped") || strings.Contains(data, "vec-") {
		t.Errorf("the manifest still names what is gone: %s", data)
	}
}

// direction is a unit vector, all directions being equally likely.
func (w world) direction(dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(w.NormFloat64())
	}
	return normalized(v)
}

func normalized(v []float32) []float32 {
	vec.Normalize(v, v)
	return v
}
