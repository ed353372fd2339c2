package embedded

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// bm25 scores one record against a query's words, as search does, over a model.
func (m model) bm25(q index.Query, f index.Filter, id int64) float64 {
	only := f
	only.Scopes = []int64{m[id].Scope}
	hits, _ := m.search(index.Query{Groups: q.Groups, Field: q.Field}, only, len(m)+1)
	for _, h := range hits {
		if h.ID == id {
			return h.BM25
		}
	}
	return 0
}

// thread lists the records of a thread that a filter lets see, by position.
func (m model) thread(f index.Filter, d *index.Document) (out []*index.Document) {
	for _, o := range m {
		if o.Namespace == d.Namespace && o.Kind == d.Kind && o.Scope == d.Scope && o.Thread == d.Thread && modelAccepts(&f, o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *index.Document) int { return cmpInt(a.Position < b.Position) })
	return out
}

// TestNeighbours compares the neighbours' share with its definition, for hits
// that a window large enough for everything gives.
func TestNeighbours(t *testing.T) {
	for seed := range uint64(30) {
		w := world{rand.New(rand.NewPCG(seed, 11))}
		ix, m := randomIndex(t, w)
		v, _ := ix.View(ix.Revision())
		for range 30 {
			q, f := w.query(), w.filter()
			f.Where = nil
			got, err := v.Search(q, f, index.Options{Limit: 10000, NeighbourWeight: 0.5})
			if err != nil {
				t.Fatal(err)
			}
			plain, _ := m.search(q, f, 10000)
			path := map[int64]float64{}
			for _, h := range plain {
				path[h.ID] = h.Score
			}
			want := map[int64]float64{}
			add := func(d *index.Document) {
				if _, ok := want[d.ID]; ok {
					return
				}
				share := 0.0
				if d.Thread != 0 && d.HasPosition {
					seq := slices.DeleteFunc(m.thread(f, d), func(o *index.Document) bool { return !o.HasPosition })
					i := slices.IndexFunc(seq, func(o *index.Document) bool { return o.ID == d.ID })
					for _, k := range []int{i - 1, i + 1} {
						if k >= 0 && k < len(seq) {
							share = max(share, m.bm25(q, f, seq[k].ID))
						}
					}
				}
				s, ok := path[d.ID]
				if !ok {
					s = m.bm25(q, f, d.ID)
				}
				want[d.ID] = s + share/2
			}
			for _, h := range plain {
				d := m[h.ID]
				add(d)
				if d.Thread != 0 && d.HasPosition {
					seq := slices.DeleteFunc(m.thread(f, d), func(o *index.Document) bool { return !o.HasPosition })
					i := slices.IndexFunc(seq, func(o *index.Document) bool { return o.ID == d.ID })
					for _, k := range []int{i - 1, i + 1} {
						if k >= 0 && k < len(seq) {
							add(seq[k])
						}
					}
				}
			}
			if len(got.Hits) != len(want) {
				t.Fatalf("seed %d: %d hits, want %d", seed, len(got.Hits), len(want))
			}
			for _, h := range got.Hits {
				if math.Abs(h.Score-want[h.ID]) > 1e-9 {
					t.Fatalf("seed %d: query %+v\nfilter %+v\nrecord %d scores %v (neighbour %v), want %v", seed, q, f, h.ID, h.Score, h.NeighbourAdd, want[h.ID])
				}
			}
		}
		v.Close()
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThreads compares the score of threads with its definition.
func TestThreads(t *testing.T) {
	for seed := range uint64(30) {
		w := world{rand.New(rand.NewPCG(seed, 12))}
		ix, m := randomIndex(t, w)
		v, _ := ix.View(ix.Revision())
		for range 20 {
			q, f := w.query(), w.filter()
			q.Field = index.FieldAll
			f.Kinds = f.Kinds[:1]
			got, err := v.Search(q, f, index.Options{Limit: 10000, ByThread: true})
			if err != nil {
				t.Fatal(err)
			}
			plain, _ := m.search(q, f, 10000)
			type key struct{ scope, thread int64 }
			best := map[key]index.Hit{}
			single := 0
			for _, h := range plain {
				d := m[h.ID]
				if d.Thread == 0 {
					single++
					continue
				}
				k := key{d.Scope, d.Thread}
				if b, ok := best[k]; !ok || h.BM25 > b.BM25 || h.BM25 == b.BM25 && h.ID < b.ID {
					best[k] = h
				}
			}
			if len(got.Hits) != len(best)+single {
				t.Fatalf("seed %d: %d hits, want %d threads and %d single records", seed, len(got.Hits), len(best), single)
			}
			// T by its formula, with the idf of the records.
			scored := map[string]bool{}
			for _, g := range q.Groups {
				for _, alt := range g.Alternatives {
					for _, term := range alt {
						scored[term] = true
					}
				}
				for _, term := range g.Optional {
					scored[term] = true
				}
			}
			df, n := map[string]int64{}, int64(0)
			for _, d := range m {
				if d.Namespace == f.Namespace && d.Kind == f.Kinds[0] {
					n++
					terms, _ := fieldTerms(d, index.FieldAll)
					for term := range terms {
						df[term]++
					}
				}
			}
			length := func(k key) (sum float64, tf map[string]float64) {
				tf = map[string]float64{}
				for _, d := range m.thread(f, &index.Document{Namespace: f.Namespace, Kind: f.Kinds[0], Scope: k.scope, Thread: k.thread}) {
					terms, l := fieldTerms(d, index.FieldAll)
					sum += float64(lenOf[lenCode(l)])
					for term, x := range terms {
						tf[term] += float64(x.tf) / unitsPerOccurrence
					}
				}
				return sum, tf
			}
			mean := 0.0
			for k := range best {
				l, _ := length(k)
				mean += l
			}
			mean = max(mean/max(float64(len(best)), 1), 1)
			for _, h := range got.Hits {
				d := m[h.ID]
				if d.Thread == 0 {
					continue
				}
				k := key{d.Scope, d.Thread}
				l, tf := length(k)
				want := best[k].BM25 / 2
				for term := range scored {
					if tf[term] > 0 {
						want += idf(n, df[term]) * (k1 + 1) * tf[term] / (tf[term] + k1*(1-b+b*l/mean)) / 2
					}
				}
				if h.ID != best[k].ID || math.Abs(h.Score-want) > 1e-4 {
					t.Fatalf("seed %d: thread %v by record %d scores %v, want %v by %d", seed, k, h.ID, h.Score, want, best[k].ID)
				}
			}
		}
		v.Close()
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// randomIndex makes an index of a few segments and a tail, and its model.
func randomIndex(t *testing.T, w world) (*Index, model) {
	t.Helper()
	ix, err := Open(newFaultFS(), Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 30})
	if err != nil {
		t.Fatal(err)
	}
	h := newStory()
	h.run(ix, w, 12)
	return ix, h.m
}

// TestFewOfMany compares searches and counts with the model where a filter leaves
// few documents of many, as of one thread among hundreds.
func TestFewOfMany(t *testing.T) {
	w := world{rand.New(rand.NewPCG(3, 3))}
	ix, err := Open(newFaultFS(), Options{Analyze: words, Version: 1, StoreID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	m := model{}
	var changes []index.Change
	for i := range int64(2000) {
		d := w.doc(i + 1)
		d.Namespace, d.Kind, d.Thread = 1, 1, 100+i/10
		m[d.ID] = d
		changes = append(changes, index.Change{ID: d.ID, Namespace: 1, Kind: 1, Doc: ix.Prepare(d)})
	}
	ix.Stage(1, changes)
	ix.Publish()
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	changes = nil
	for id := range int64(400) {
		delete(m, 5*id+1)
		changes = append(changes, index.Change{ID: 5*id + 1, Namespace: 1, Kind: 1})
	}
	ix.Stage(2, changes)
	ix.Publish()
	v, _ := ix.View(2)
	defer v.Close()
	listed := false
	for range 400 {
		f := index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10, 11, 12}, Threads: []int64{100 + int64(w.IntN(210))}}
		if w.IntN(2) == 0 {
			f.Threads = append(f.Threads, 100+int64(w.IntN(210)), 1<<33+150)
		}
		q := w.query()
		compareSearch(t, v, m, q, f, 1+w.IntN(20))
		seg := v.(*view).segs[0].segment
		listed = listed || segmentFilter(seg, 0, &f, new(filterBuffers)).list != nil
	}
	if !listed {
		t.Error("no filter left few enough to be listed")
	}
}

// BenchmarkStage measures taking a document into the tail, flushes included.
func BenchmarkStage(b *testing.B) {
	w := world{rand.New(rand.NewPCG(1, 1))}
	ix, err := Open(newFaultFS(), Options{Analyze: words, Version: 1, StoreID: "s"})
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	docs := make([]*index.Document, 1000)
	for i := range docs {
		docs[i] = w.doc(int64(i + 1))
	}
	b.ReportAllocs()
	rev := int64(0)
	for i := 0; b.Loop(); i++ {
		d := *docs[i%len(docs)]
		d.ID = int64(i + 1)
		rev++
		ix.Stage(rev, []index.Change{{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind, Doc: ix.Prepare(&d)}})
		ix.Publish()
	}
}

// searchBenchView has 100,000 documents in segments, a tenth of which are expired
// at 100.
func searchBenchView(b *testing.B) index.View {
	w := world{rand.New(rand.NewPCG(1, 1))}
	ix, err := Open(newFaultFS(), Options{Analyze: words, Version: 1, StoreID: "s"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ix.Close() })
	for rev := range int64(100) {
		var changes []index.Change
		for i := range int64(1000) {
			d := w.doc(rev*1000 + i + 1)
			d.Namespace, d.Kind, d.Life = 1, 1, index.Life{}
			if inShare(d.ID, 100) {
				d.Life.Expires = 100
			}
			changes = append(changes, index.Change{ID: d.ID, Namespace: 1, Kind: 1, Doc: ix.Prepare(d)})
		}
		ix.Stage(rev+1, changes)
		ix.Publish()
	}
	if err := ix.Flush(); err != nil {
		b.Fatal(err)
	}
	v, _ := ix.View(ix.Revision())
	b.Cleanup(v.Close)
	return v
}

// BenchmarkSearch measures searches of one to three common words, with and without
// expired documents.
func BenchmarkSearch(b *testing.B) {
	v := searchBenchView(b)
	f := index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10, 11, 12}}
	for n := range 6 {
		n, now := 1+n%3, int64(n/3*100)
		b.Run(fmt.Sprintf("words=%d,now=%d", n, now), func(b *testing.B) {
			f.Now = now
			var q index.Query
			for i := range n {
				q.Groups = append(q.Groups, index.Group{Alternatives: [][]string{{fmt.Sprintf("w%d", 5*i+3)}}})
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Search(q, f, index.Options{Limit: 100}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCount counts all documents, those of one scope, and those that are not
// expired.
func BenchmarkCount(b *testing.B) {
	v := searchBenchView(b)
	for name, f := range map[string]index.Filter{"all": {Scopes: []int64{10, 11, 12}}, "scope": {Scopes: []int64{10}}, "expired": {Scopes: []int64{10, 11, 12}, Now: 100}} {
		b.Run(name, func(b *testing.B) {
			f.Namespace, f.Kinds = 1, []index.Kind{1}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Count(f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
