package embedded

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// vecSpaces are the spaces of the tests: dimension and encoding by number.
var vecSpaces = map[int64]rowForm{
	1: {index.EncodingSQ8, 24},
	2: {index.EncodingF32, 7},
	3: {index.EncodingSQ8, 33},
}

// vecModel is an index with vectors as maps.
type vecModel struct {
	docs    model
	vectors map[int64]map[int64][]float32 // by space and record
	dropped map[int64]bool
}

func newVecModel() *vecModel {
	return &vecModel{docs: model{}, vectors: map[int64]map[int64][]float32{1: {}, 2: {}, 3: {}}, dropped: map[int64]bool{}}
}

func (m *vecModel) remove(id int64) {
	delete(m.docs, id)
	for _, v := range m.vectors {
		delete(v, id)
	}
}

// codeScore is the score of the scanned form.
func codeScore(e index.Encoding, q, v []float32) float32 {
	if e == index.EncodingF32 {
		var out [1]float32
		vec.ScanFloat32(q, v, len(v), out[:])
		return out[0]
	}
	a, b := make([]int8, len(q)), make([]int8, len(v))
	sa, sb := vec.Quantize(a, q), vec.Quantize(b, v)
	return float32(vec.DotInt8(a, b)) * sb * sa
}

// fineScore is the score by all codes.
func fineScore(q, v []float32) float32 {
	n := len(q)
	a, b, fine := make([]int8, n), make([]int8, n), make([]int8, n)
	sa, sb := vec.Quantize(a, q), vec.Quantize(b, v)
	vec.Refine(fine, b, sb, v)
	left, rest := make([]float32, n), make([]int8, n)
	for i, x := range q {
		left[i] = x - float32(a[i])*sa
	}
	sr := vec.Quantize(rest, left)
	whole := func(c []int8) float64 {
		return float64(vec.DotInt8(c, b)) + float64(vec.DotInt8(c, fine))/vec.FineSteps
	}
	return float32(float64(sb) * (float64(sa)*whole(a) + float64(sr)*whole(rest)))
}

// best is what an exact answer holds: the best by the scanned form, more of them than
// are asked for, in the order of all codes.
func (m *vecModel) best(q index.VectorQuery, f index.Filter) []index.VectorHit {
	hits := m.nearest(q, f)
	want := q.Limit
	if q.Want > 0 {
		want = min(want, q.Want)
	}
	hits = m.refined(q, hits[:min(len(hits), max(q.Limit, want+want/2+10))])
	return hits[:min(len(hits), q.Limit)]
}

// refined scores hits by all codes.
func (m *vecModel) refined(q index.VectorQuery, hits []index.VectorHit) []index.VectorHit {
	if vecSpaces[q.Space].encoding == index.EncodingF32 {
		return hits
	}
	for i := range hits {
		hits[i].Score = fineScore(q.Values, m.vectors[q.Space][hits[i].ID])
	}
	sortHits(hits)
	return hits
}

func (m *vecModel) nearest(q index.VectorQuery, f index.Filter) (hits []index.VectorHit) {
	if m.dropped[q.Space] {
		return nil
	}
	for id, v := range m.vectors[q.Space] {
		d := m.docs[id]
		if d.Namespace != f.Namespace || !slices.Contains(f.Kinds, d.Kind) || !modelAccepts(&f, d) {
			continue
		}
		if _, ok := slices.BinarySearch(q.IDs, id); !ok && q.IDs != nil {
			continue
		}
		hits = append(hits, index.VectorHit{ID: id, Kind: d.Kind, Thread: d.Thread, Score: codeScore(vecSpaces[q.Space].encoding, q.Values, v)})
	}
	sortHits(hits)
	return hits
}

func sortHits(hits []index.VectorHit) {
	slices.SortFunc(hits, func(a, b index.VectorHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
}

// vector gives one of few directions, a little off, so that ties and clusters
// occur.
func (w world) vector(dim uint32) []float32 {
	v := make([]float32, dim)
	base := rand.New(rand.NewPCG(uint64(w.IntN(9)), 3))
	noise := float32(w.IntN(3)) * 0.2
	for i := range v {
		v[i] = float32(base.NormFloat64()) + noise*float32(w.NormFloat64())
	}
	if w.IntN(8) == 0 {
		// One large number makes the steps of the codes coarse for all others.
		v[w.IntN(len(v))] = float32(w.IntN(1000))
	}
	vec.Normalize(v, v)
	return v
}

func (w world) vectorQuery(m *vecModel) index.VectorQuery {
	space := 1 + int64(w.IntN(3))
	q := index.VectorQuery{Space: space, Values: w.vector(vecSpaces[space].dim), Limit: 1 + w.IntN(30), Exact: w.IntN(2) == 0, Want: w.IntN(40)}
	if w.IntN(5) == 0 {
		q.IDs = []int64{}
		for id := range m.docs {
			if w.IntN(3) == 0 {
				q.IDs = append(q.IDs, id)
			}
		}
		q.IDs = append(q.IDs, 1_000_000)
		slices.Sort(q.IDs)
	}
	return q
}

// checkNearest holds that a view finds what the model does: all of it when the
// answer says that it is exact, else as much, with the right scores.
func checkNearest(t *testing.T, v index.View, m *vecModel, w world) {
	t.Helper()
	compareNearest(t, v, m, w.vectorQuery(m), w.filter())
	checkCertain(t, v, m, w.vectorQuery(m), w.filter())
}

// checkCertain holds a certain answer to the cosines themselves: the nearest are all
// in it, scores are off by no more than they say, and nothing that is left out is
// above the rest.
func checkCertain(t *testing.T, v index.View, m *vecModel, q index.VectorQuery, f index.Filter) {
	t.Helper()
	q.Certain = true
	got, err := v.Nearest(q, f)
	if err != nil {
		t.Fatal(err)
	}
	type exact struct {
		id     int64
		cosine float64
	}
	var all []exact
	for _, h := range m.nearest(q, f) {
		var sum, a, b float64
		for i, x := range m.vectors[q.Space][h.ID] {
			sum += float64(x) * float64(q.Values[i])
			a, b = a+float64(x)*float64(x), b+float64(q.Values[i])*float64(q.Values[i])
		}
		all = append(all, exact{h.ID, sum / math.Sqrt(a*b)})
	}
	slices.SortFunc(all, func(a, b exact) int { return cmp.Compare(b.cosine, a.cosine) })
	found := map[int64]index.VectorHit{}
	for i, h := range got.Hits {
		found[h.ID] = h
		if i > 0 && (h.Score > got.Hits[i-1].Score || h.Score == got.Hits[i-1].Score && h.ID <= got.Hits[i-1].ID) {
			t.Fatalf("%+v: hits out of order", q)
		}
	}
	if !got.Exact || len(found) != len(got.Hits) || len(found) > len(all) || len(found) < min(len(all), q.Limit) {
		t.Fatalf("%+v: %d hits of %d, exact %v", q, len(got.Hits), len(all), got.Exact)
	}
	if len(all) < q.Limit && got.Rest >= -1 {
		t.Fatalf("%+v: all %d are there, yet the rest is %v", q, len(all), got.Rest)
	}
	for i, e := range all {
		h, ok := found[e.id]
		switch {
		case ok && math.Abs(float64(h.Score)-e.cosine) > float64(h.Slack):
			t.Fatalf("%+v: record %d has cosine %v, the score %v is off by more than %v", q, e.id, e.cosine, h.Score, h.Slack)
		case !ok && (e.cosine > float64(got.Rest) || i < q.Limit && e.cosine > all[min(q.Limit, len(all))-1].cosine):
			t.Fatalf("%+v: record %d with cosine %v, place %d, was left out; the rest is %v", q, e.id, e.cosine, i, got.Rest)
		}
	}
}

func compareNearest(t *testing.T, v index.View, m *vecModel, q index.VectorQuery, f index.Filter) {
	t.Helper()
	got, err := v.Nearest(q, f)
	if err != nil {
		t.Fatal(err)
	}
	if q.Exact && !got.Exact {
		t.Fatalf("%+v: an exact search is not", q)
	}
	if got.Exact {
		if want := m.best(q, f); !slices.Equal(got.Hits, want) {
			t.Fatalf("query %+v\nfilter %+v\n got %+v\nwant %+v", q, f, got.Hits, want)
		}
		return
	}
	all := m.refined(q, m.nearest(q, f))
	if len(got.Hits) != min(len(all), q.Limit) {
		t.Fatalf("query %+v\nfilter %+v: %d hits of %d", q, f, len(got.Hits), len(all))
	}
	for _, h := range got.Hits {
		if !slices.Contains(all, h) {
			t.Fatalf("query %+v\nfilter %+v: %+v is no hit", q, f, h)
		}
	}
}

// checkCounts compares CountVectors, Missing and Adjacent with the model.
func checkCounts(t *testing.T, v index.View, m *vecModel, w world) {
	t.Helper()
	space, ns, kind := 1+int64(w.IntN(3)), 1+int64(w.IntN(2)), index.Kind(1+w.IntN(2))
	var c index.VectorCount
	var missing []int64
	for id, d := range m.docs {
		if d.Namespace != ns || d.Kind != kind {
			continue
		}
		c.Records++
		if _, ok := m.vectors[space][id]; ok && !m.dropped[space] {
			c.Vectors++
		} else {
			missing = append(missing, id)
		}
	}
	if got := v.CountVectors(space, ns, kind); got != c {
		t.Fatalf("space %d: counts %+v, want %+v", space, got, c)
	}
	slices.Sort(missing)
	slices.Reverse(missing)
	skip := func(id int64) bool { return id%3 == 0 }
	want := slices.DeleteFunc(missing, skip)
	limit := 1 + w.IntN(20)
	if got := v.Missing(space, ns, kind, limit, skip); !slices.Equal(got, want[:min(len(want), limit)]) {
		t.Fatalf("space %d: missing %v, want %v", space, got, want[:min(len(want), limit)])
	}
	f := w.filter()
	compareCount(t, v, m.docs, f)
	var ids []int64
	var kinds []index.Kind
	for id, d := range m.docs {
		if len(ids) < 10 {
			ids, kinds = append(ids, id), append(kinds, d.Kind)
		}
	}
	for i, got := range v.Adjacent(f, ids, kinds) {
		if want := m.docs.adjacent(f, ids[i]); got != want {
			t.Fatalf("filter %+v: beside %d are %v, want %v", f, ids[i], got, want)
		}
	}
}

func (m model) adjacent(f index.Filter, id int64) (out [2]int64) {
	d := m[id]
	if d.Thread == 0 || !d.HasPosition || d.Namespace != f.Namespace || !slices.Contains(f.Kinds, d.Kind) {
		return out
	}
	for _, o := range m.thread(f, d) {
		switch {
		case !o.HasPosition:
		case o.Position < d.Position:
			out[0] = o.ID
		case o.Position > d.Position && out[1] == 0:
			out[1] = o.ID
		}
	}
	return out
}

// vecHistory drives an index through random changes and keeps what it should
// hold, with a journal as a store would: ids of records, and of vectors with
// their space.
type vecHistory struct {
	m       *vecModel
	kept    map[int64]partKey
	journal map[int64][]journalEntry
	rev     int64
	nextID  int64
}

type journalEntry struct{ id, space int64 }

func newVecHistory() *vecHistory {
	return &vecHistory{m: newVecModel(), kept: map[int64]partKey{}, journal: map[int64][]journalEntry{}}
}

func (h *vecHistory) someRecord(w world) int64 {
	if h.nextID == 0 {
		return 0
	}
	return 1 + int64(w.IntN(int(h.nextID)))
}

// change makes one change: to the index and, as a function, to the model.
func (h *vecHistory) change(ix *Index, w world) (index.Change, journalEntry, func()) {
	id := h.someRecord(w)
	d := h.m.docs[id]
	if id == 0 || d == nil || w.IntN(3) == 0 {
		h.nextID++
		d = w.doc(h.nextID)
		h.kept[d.ID] = partKey{d.Namespace, d.Kind}
		return index.Change{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind, Doc: ix.Prepare(d)}, journalEntry{d.ID, 0}, func() { h.m.docs[d.ID] = d }
	}
	c := index.Change{ID: id, Namespace: d.Namespace, Kind: d.Kind}
	switch w.IntN(10) {
	case 0:
		return c, journalEntry{id, 0}, func() { h.m.remove(id) }
	case 1, 2:
		n := w.doc(id)
		n.Namespace, n.Kind = d.Namespace, d.Kind
		c.Doc = ix.Prepare(n)
		return c, journalEntry{id, 0}, func() { h.m.docs[id] = n }
	}
	space := 1 + int64(w.IntN(3))
	form := vecSpaces[space]
	c.Vector = &index.VectorChange{Space: space, Encoding: form.encoding, Scope: d.Scope}
	if w.IntN(6) == 0 || h.m.dropped[space] {
		return c, journalEntry{id, space}, func() { delete(h.m.vectors[space], id) }
	}
	v := w.vector(form.dim)
	c.Vector.Values = v
	return c, journalEntry{id, space}, func() { h.m.vectors[space][id] = v }
}

// step publishes or discards a batch. Each record is changed at most once in it,
// since a change reads the model.
func (h *vecHistory) step(ix *Index, w world, size int) {
	var changes []index.Change
	var entries []journalEntry
	var apply []func()
	seen := map[int64]bool{}
	for range 1 + w.IntN(size) {
		c, e, f := h.change(ix, w)
		if seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		changes, entries, apply = append(changes, c), append(entries, e), append(apply, f)
	}
	step := 1 + int64(w.IntN(3))
	ix.Stage(h.rev+step, changes)
	if w.IntN(4) == 0 {
		ix.Discard()
		return
	}
	ix.Publish()
	h.rev += step
	for _, f := range apply {
		f()
	}
	h.journal[h.rev] = entries
}

// replay brings an index up to the truth: records as they are now, vectors where
// they were changed.
func (h *vecHistory) replay(ix *Index) {
	var changes []index.Change
	for r := ix.Checkpointed() + 1; r <= h.rev; r++ {
		for _, e := range h.journal[r] {
			k := h.kept[e.id]
			c := index.Change{ID: e.id, Namespace: k.namespace, Kind: k.kind}
			d := h.m.docs[e.id]
			if e.space == 0 {
				if d != nil {
					c.Doc = ix.Prepare(d)
				}
			} else {
				c.Vector = &index.VectorChange{Space: e.space, Encoding: vecSpaces[e.space].encoding}
				if d != nil && !h.m.dropped[e.space] {
					c.Vector.Scope, c.Vector.Values = d.Scope, h.m.vectors[e.space][e.id]
				}
			}
			changes = append(changes, c)
		}
	}
	ix.Stage(h.rev, changes)
	ix.Publish()
}

func (h *vecHistory) check(t *testing.T, ix *Index, w world) {
	t.Helper()
	v, ok := ix.View(ix.Revision())
	if !ok {
		t.Fatal("no view of the current revision")
	}
	defer v.Close()
	checkNearest(t, v, h.m, w)
	checkCounts(t, v, h.m, w)
}

func vecOptions(w world) Options {
	return Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 20 + w.IntN(400), VectorBytes: 1000 + w.IntN(60_000),
		MinLists: 10 + w.IntN(60), ScanRows: 1 + w.IntN(60), ProbeRows: 1}
}

// TestRandomVectorHistories compares vectors, through files, merges, crashes,
// discarded batches and dropped spaces, with maps.
func TestRandomVectorHistories(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			vectorHistory(t, seed, DirFS(t.TempDir()))
		})
	}
}

func vectorHistory(t *testing.T, seed uint64, fs FS) {
	w := world{rand.New(rand.NewPCG(seed, 71))}
	opts := vecOptions(w)
	opts.OnError = func(err error) { t.Error(err) }
	ix, err := Open(fs, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			ix.Abandon()
		}
	}()
	h := newVecHistory()
	for range 150 {
		switch w.IntN(14) {
		case 0, 1, 2, 3, 4, 5:
			h.step(ix, w, 80)
		case 6:
			if err := ix.Flush(); err != nil {
				t.Fatal(err)
			}
		case 7:
			if err := ix.mergeAll(); err != nil {
				t.Fatal(err)
			}
		case 8: // close or crash, open, replay
			if w.IntN(2) == 0 {
				if err := ix.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				ix.Abandon()
			}
			if ix, err = Open(fs, opts); err != nil {
				t.Fatal(err)
			}
			for space := range h.m.dropped {
				ix.DropSpace(space) // as the truth says
			}
			h.replay(ix)
		case 9:
			if w.IntN(20) == 0 {
				space := 1 + int64(w.IntN(3))
				h.m.dropped[space] = true
				h.m.vectors[space] = map[int64][]float32{}
				ix.DropSpace(space)
			}
		default:
			h.check(t, ix, w)
		}
	}
	for range 20 {
		h.check(t, ix, w)
	}
	var n int64
	for _, v := range h.m.vectors {
		n += int64(len(v))
	}
	if got := ix.Stats(); got.Vectors != n || got.Documents != int64(len(h.m.docs)) {
		t.Errorf("%d vectors and %d documents, want %d and %d", got.Vectors, got.Documents, n, len(h.m.docs))
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
}
