package embedded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// words is the tests' analyzer: terms are what blanks separate.
func words(s string, emit func([]byte)) (n int) {
	for _, w := range strings.Fields(s) {
		emit([]byte(w))
		n++
	}
	return n
}

// model is the index as a list that is searched from end to end.
type model map[int64]*index.Document

type modelTerm struct{ tf, extra int }

// fieldTerms gives a document's terms of a class, and its length.
func fieldTerms(d *index.Document, f index.Field) (map[string]modelTerm, int) {
	m := map[string]modelTerm{}
	n := 0
	add := func(pieces []string, units int, text bool) {
		for _, p := range pieces {
			for _, w := range strings.Fields(p) {
				t := m[w]
				t.tf = min(t.tf+units, 255)
				if !text {
					t.extra = min(t.extra+units, 255)
				}
				m[w] = t
				n++
			}
		}
	}
	switch f {
	case index.FieldName:
		add(d.Name, unitsPerOccurrence, true)
	case index.FieldPath:
		add(d.Path, unitsPerOccurrence, true)
	case index.FieldText:
		add(d.Text, unitsText, true)
		n0 := n
		add(d.Name, unitsName, false)
		add(d.Tag, unitsTag, false)
		n = n0
	default:
		add(d.Text, unitsText, true)
		add(d.Name, unitsName, false)
		add(d.Tag, unitsTag, false)
	}
	return m, n
}

func (m model) search(q index.Query, f index.Filter, limit int) (hits []index.Hit, total int64) {
	var rounds [3][]candidate
	for _, kind := range f.Kinds {
		type entry struct {
			d     *index.Document
			terms map[string]modelTerm
			code  uint8
		}
		var docs []entry
		var n, sum int64
		df := map[string]int64{}
		for _, d := range m {
			if d.Namespace != f.Namespace || d.Kind != kind {
				continue
			}
			terms, length := fieldTerms(d, q.Field)
			e := entry{d: d, terms: terms, code: lenCode(length)}
			docs = append(docs, e)
			if length > 0 || q.Field == index.FieldAll || q.Field == index.FieldText {
				n++
				sum += int64(lenOf[e.code])
			}
			for t := range terms {
				df[t]++
			}
		}
		if n == 0 {
			continue
		}
		var norms normTable
		norms.fill(float64(sum) / float64(n))
		for _, e := range docs {
			if !modelAccepts(&f, e.d) {
				continue
			}
			share := func(t string) uint32 {
				x, ok := e.terms[t]
				if !ok {
					return 0
				}
				if q.Field == index.FieldText {
					if x.tf -= x.extra; x.tf == 0 {
						return 0
					}
				}
				w := float32(idf(n, df[t]) * (k1 + 1) * scale)
				return max(contribution(w, uint8(x.tf), norms[e.code]), 1)
			}
			scored := map[string]bool{}
			every := len(q.Groups) > 0
			for _, g := range q.Groups {
				any := false
				for _, alt := range g.Alternatives {
					all := true
					for _, t := range alt {
						scored[t] = true
						all = all && share(t) > 0
					}
					any = any || all
				}
				every = every && any
				for _, t := range g.Optional {
					scored[t] = true
				}
			}
			var words, chars uint32
			for t := range scored {
				words += share(t)
			}
			for _, t := range q.Chars {
				chars += share(t)
			}
			c := candidate{id: e.d.ID, score: words}
			switch {
			case every:
				rounds[0] = append(rounds[0], c)
			case words > 0:
				rounds[1] = append(rounds[1], c)
			case chars > 0:
				c.score = chars
				rounds[2] = append(rounds[2], c)
			default:
				continue
			}
			total++
		}
	}
	var kept [3][]candidate
	left := limit
	for i, r := range rounds {
		sort.Slice(r, func(a, b int) bool { return r[a].before(&r[b]) })
		r = r[:min(len(r), left)]
		left -= len(r)
		kept[i] = r
	}
	raise := 0.0
	for i := 2; i >= 0; i-- {
		top := raise
		for k, c := range kept[i] {
			bm := float64(c.score) / scale
			if k == 0 {
				top = bm + raise
			}
			hits = append(hits, index.Hit{ID: c.id, Kind: m[c.id].Kind, Round: index.Round(i), BM25: bm, Score: bm + raise, Thread: m[c.id].Thread})
		}
		raise = top
	}
	slices.SortFunc(hits, compareHits)
	return hits, total
}

func modelAccepts(f *index.Filter, d *index.Document) bool {
	if !slices.Contains(f.Scopes, d.Scope) || len(f.Threads) > 0 && !slices.Contains(f.Threads, d.Thread) || !inWindow(f, d.CreatedAt) {
		return false
	}
	if e := d.Life.Expires; f.Now != 0 && e != 0 && f.Now >= e {
		return false
	}
	if l := d.Life; f.HasValid && (l.ValidFrom != 0 && f.ValidAt < l.ValidFrom || l.ValidTo != 0 && f.ValidAt >= l.ValidTo) {
		return false
	}
	for _, t := range f.Tags {
		if !slices.Contains(d.Tags, t) {
			return false
		}
	}
	for _, c := range f.Where {
		if !index.Match(c, d.Metadata) {
			return false
		}
	}
	return true
}

// world makes random documents and queries over a small vocabulary, so that
// everything collides.
type world struct{ *rand.Rand }

// fixedWorld is always the same one.
func fixedWorld() world { return world{rand.New(rand.NewPCG(1, 2))} }

func (w world) word() string {
	// Zipf-like: low numbers are common.
	n := int(float64(60) * w.Float64() * w.Float64() * w.Float64())
	return fmt.Sprintf("w%d", n)
}

func (w world) text(max int) string {
	n := w.IntN(max)
	var b strings.Builder
	for range n {
		b.WriteString(w.word() + " ")
	}
	return b.String()
}

func (w world) value() index.Value {
	switch w.IntN(4) {
	case 0:
		return index.Value{Type: index.TypeBool, Number: float64(w.IntN(2))}
	case 1:
		return index.Value{Type: index.TypeNumber, Number: float64(w.IntN(7)-3) / 2}
	case 2:
		return index.Value{Type: index.TypeString, String: []string{"", "a", "ab", "b"}[w.IntN(4)]}
	default:
		return index.Value{Type: index.TypeNull}
	}
}

func (w world) doc(id int64) *index.Document {
	d := &index.Document{ID: id, Namespace: 1 + int64(w.IntN(2)), Kind: index.Kind(1 + w.IntN(2)), Scope: 10 + int64(w.IntN(3)), CreatedAt: int64(w.IntN(20))}
	if w.IntN(3) == 0 {
		d.Life = w.life()
	}
	d.Text = []string{w.text(30), w.text(8)}
	if w.IntN(3) == 0 {
		d.Name = []string{w.text(4)}
		d.Path = []string{w.text(4)}
	}
	for t := int64(20); t < 23; t++ {
		if w.IntN(3) == 0 {
			d.Tags = append(d.Tags, t)
			d.Tag = append(d.Tag, fmt.Sprintf("w%d", t))
		}
	}
	if w.IntN(2) == 0 {
		d.Thread = 30 + int64(w.IntN(5))
		if w.IntN(4) > 0 {
			d.HasPosition, d.Position = true, id
		}
	}
	for _, k := range []string{"a", "b"} {
		if w.IntN(2) == 0 {
			d.Metadata = append(d.Metadata, index.Attribute{Key: k, Value: w.value()})
		}
	}
	return d
}

// life gives bounds among 20 times, some of them before 1970.
func (w world) life() (l index.Life) {
	for _, b := range []*int64{&l.Expires, &l.ValidFrom, &l.ValidTo} {
		if w.IntN(2) == 0 {
			*b = int64(w.IntN(20)) - 5
		}
	}
	return l
}

func (w world) query() (q index.Query) {
	for range w.IntN(4) {
		var g index.Group
		for range 1 + w.IntN(2)*w.IntN(2) {
			alt := []string{w.word()}
			if w.IntN(5) == 0 {
				alt = append(alt, w.word())
			}
			g.Alternatives = append(g.Alternatives, alt)
		}
		if w.IntN(4) == 0 {
			g.Optional = []string{w.word()}
		}
		q.Groups = append(q.Groups, g)
	}
	seen := map[string]bool{}
	for range w.IntN(3) {
		if c := w.word(); !seen[c] {
			seen[c] = true
			q.Chars = append(q.Chars, c)
		}
	}
	q.Field = []index.Field{index.FieldAll, index.FieldAll, index.FieldText, index.FieldName, index.FieldPath}[w.IntN(5)]
	return q
}

func (w world) filter() index.Filter {
	f := index.Filter{Namespace: 1 + int64(w.IntN(2)), Kinds: [][]index.Kind{{1}, {2}, {1, 2}}[w.IntN(3)],
		Scopes: [][]int64{{10}, {10, 11, 12}, {11, 99}, {10, 11}}[w.IntN(4)]}
	if w.IntN(4) == 0 {
		f.Tags = append(f.Tags, 20+int64(w.IntN(3)))
	}
	for w.IntN(6) == 0 {
		f.Threads = append(f.Threads, 30+int64(w.IntN(5)))
	}
	if w.IntN(6) == 0 {
		f.HasFrom, f.CreatedFrom = true, int64(w.IntN(20))
	}
	if w.IntN(6) == 0 {
		f.HasTo, f.CreatedTo = true, int64(w.IntN(20))
	}
	if w.IntN(3) == 0 {
		f.Now = int64(w.IntN(22)) - 6
	}
	if w.IntN(3) == 0 {
		f.HasValid, f.ValidAt = true, int64(w.IntN(22))-6
	}
	if w.IntN(3) == 0 {
		c := index.Condition{Key: []string{"a", "b", "c"}[w.IntN(3)], Op: index.Operator(w.IntN(9)), Values: []index.Value{w.value()}}
		if c.Op == index.OpIn {
			c.Values = append(c.Values, w.value())
		}
		f.Where = append(f.Where, c)
	}
	return f
}

func checkSearch(t *testing.T, ix *Index, m model, w world) {
	t.Helper()
	v, ok := ix.View(ix.Revision())
	if !ok {
		t.Fatal("no view of the current revision")
	}
	defer v.Close()
	q, f := w.query(), w.filter()
	limit := 1 + w.IntN(12)
	if w.IntN(6) == 0 {
		limit = 1000
	}
	compareSearch(t, v, m, q, f, limit)
}

// compareSearch holds that a view answers and counts as the model does.
func compareSearch(t *testing.T, v index.View, m model, q index.Query, f index.Filter, limit int) {
	t.Helper()
	got, err := v.Search(q, f, index.Options{Limit: limit, Total: true})
	if err != nil {
		t.Fatal(err)
	}
	want, total := m.search(q, f, limit)
	if !slices.Equal(got.Hits, want) {
		t.Fatalf("query %+v\nfilter %+v\nlimit %d\n got %+v\nwant %+v", q, f, limit, got.Hits, want)
	}
	if got.Total != total {
		t.Fatalf("query %+v\nfilter %+v\n got total %d, want %d", q, f, got.Total, total)
	}
	compareScores(t, v, m, q, f)
	compareCount(t, v, m, f)
	for _, h := range got.Hits[:min(len(got.Hits), 2)] {
		d := m[h.ID]
		sum := 0.0
		for _, e := range v.Explain(q, h.ID, d.Namespace, d.Kind) {
			sum += e.Score
		}
		if h.Round != index.RoundChar && sum < h.BM25-1e-9 {
			t.Fatalf("explanation of %d sums up to %v, score is %v", h.ID, sum, h.BM25)
		}
	}
}

// compareCount holds that a view counts the records that a filter lets see.
func compareCount(t *testing.T, v index.View, m model, f index.Filter) {
	t.Helper()
	want := int64(0)
	for _, d := range m {
		if d.Namespace == f.Namespace && slices.Contains(f.Kinds, d.Kind) && modelAccepts(&f, d) {
			want++
		}
	}
	if got, err := v.Count(f); err != nil || got != want {
		t.Fatalf("filter %+v\n got count %d, %v, want %d", f, got, err, want)
	}
}

// compareScores holds that a view scores records, those that are not there
// included, as a search for all of them does.
func compareScores(t *testing.T, v index.View, m model, q index.Query, f index.Filter) {
	t.Helper()
	words := q
	words.Chars = nil
	want := map[int64]float64{}
	hits, _ := m.search(words, f, len(m))
	for _, h := range hits {
		want[h.ID] = h.BM25
	}
	ids, kinds := []int64{1_000_000}, []index.Kind{1}
	for id, d := range m {
		if ids, kinds = append(ids, id), append(kinds, d.Kind); len(ids) == 40 {
			break
		}
	}
	scores, err := v.Scores(q, f, ids, kinds)
	if err != nil || len(scores) != len(ids) {
		t.Fatal(len(scores), err)
	}
	for i, id := range ids {
		if scores[i] != want[id] {
			t.Fatalf("query %+v\nfilter %+v\n%d has score %v, want %v", q, f, id, scores[i], want[id])
		}
	}
}

func TestRandomHistories(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomHistory(t, seed, DirFS(t.TempDir()))
		})
	}
}

func testOptions(w world) Options {
	return Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 1 + w.IntN(400)}
}

func randomHistory(t *testing.T, seed uint64, fs FS) {
	w := world{rand.New(rand.NewPCG(seed, 7))}
	opts := testOptions(w)
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
	m := model{}
	var nextID, rev int64
	// journal holds what changed since each revision, for replay.
	journal := map[int64][]int64{}
	kept := map[int64]partKey{}
	steps := 120
	for range steps {
		switch w.IntN(12) {
		case 0, 1, 2, 3, 4: // write
			var changes []index.Change
			next := model{}
			for range 1 + w.IntN(60) {
				nextID++
				d := w.doc(nextID)
				if len(m) > 0 && w.IntN(3) == 0 {
					for id, old := range m { // any record
						d.ID = id
						d.Namespace, d.Kind = old.Namespace, old.Kind
						break
					}
				}
				kept[d.ID] = partKey{d.Namespace, d.Kind}
				if w.IntN(5) == 0 {
					changes = append(changes, index.Change{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind})
					next[d.ID] = nil
				} else {
					changes = append(changes, index.Change{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind, Doc: ix.Prepare(d)})
					next[d.ID] = d
				}
			}
			step := 1 + int64(w.IntN(3))
			ix.Stage(rev+step, changes)
			if w.IntN(4) == 0 {
				ix.Discard()
				break
			}
			ix.Publish()
			rev += step
			for id, d := range next {
				if d == nil {
					delete(m, id)
				} else {
					m[id] = d
				}
				journal[rev] = append(journal[rev], id)
			}
		case 5:
			if err := ix.Flush(); err != nil {
				t.Fatal(err)
			}
		case 6: // close or crash, open, replay
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
			var changes []index.Change
			for r, ids := range journal {
				if r <= ix.Checkpointed() {
					continue
				}
				for _, id := range ids {
					c := index.Change{ID: id, Namespace: kept[id].namespace, Kind: kept[id].kind}
					if d := m[id]; d != nil {
						c.Doc = ix.Prepare(d)
					}
					changes = append(changes, c)
				}
			}
			ix.Stage(rev, changes)
			ix.Publish()
		default:
			checkSearch(t, ix, m, w)
		}
	}
	for range 20 {
		checkSearch(t, ix, m, w)
	}
	if got := ix.Stats().Documents; got != int64(len(m)) {
		t.Errorf("%d documents, want %d", got, len(m))
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
}
