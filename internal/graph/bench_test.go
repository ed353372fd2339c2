package graph

import (
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	benchNodes = 100_000
	benchEdges = 500_000
)

// benchData gives entities and relations as a store would: ids by order of
// writing, twenty predicates, a few scopes and tags, objects skewed so that
// few entities are in most relations.
func benchData(n, m int) ([]Node, []Edge) {
	rng := rand.New(rand.NewPCG(7, 7))
	ns := make([]Node, n)
	for i := range ns {
		ns[i] = Node{ID: int64(i + 1), Scope: public}
	}
	es := make([]Edge, m)
	for i := range es {
		u := rng.Float64()
		es[i] = Edge{
			ID: int64(n + i + 1), Subject: 1 + rng.Int64N(int64(n)), Predicate: 100 + rng.Int64N(20),
			Object: 1 + int64(u*u*u*float64(n)), Scope: public, CreatedAt: int64(i),
		}
		if i%50 == 0 {
			es[i].Scope = private
		}
		if i%3 == 0 {
			es[i].Tags = []int64{200 + rng.Int64N(8)}
		}
	}
	return ns, es
}

func benchAdjacency(n, m int) *Adjacency {
	ns, es := benchData(n, m)
	return Build(sameAs, slices.Values(ns), slices.Values(es))
}

// modes are the views that figures are given for: nothing to check, a filter
// that looks at every edge, rules that make both rows matter, an overlay.
func modes(a *Adjacency) []struct {
	name string
	view *View
} {
	type mode = struct {
		name string
		view *View
	}
	s := a.Snapshot()
	rules := Rules{105: {Symmetric: true}, 106: {Inverse: 107}}
	list := []mode{
		{"all", s.View(Filter{}, nil)},
		{"scope", s.View(Filter{Scopes: []int64{public}}, nil)},
		{"rules", s.View(Filter{Scopes: []int64{public}}, rules)},
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		var c Changes
		for j := range 100 {
			id := int64(10_000_000 + i*100 + j)
			c.Edges = append(c.Edges, Edge{ID: id, Subject: 1 + rng.Int64N(benchNodes), Predicate: 100, Object: 1 + rng.Int64N(benchNodes), Scope: public})
			c.Removed = append(c.Removed, int64(benchNodes)+1+rng.Int64N(benchEdges))
		}
		a.Apply(c)
	}
	return append(list, mode{"overlay", a.Snapshot().View(Filter{Scopes: []int64{public}}, rules)})
}

func BenchmarkBuild(b *testing.B) {
	ns, es := benchData(benchNodes, benchEdges)
	for b.Loop() {
		a := Build(sameAs, slices.Values(ns), slices.Values(es))
		b.ReportMetric(float64(a.Snapshot().Bytes())/1e6, "MB")
	}
}

func BenchmarkBuildUnordered(b *testing.B) {
	ns, es := benchData(benchNodes, benchEdges)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
	for b.Loop() {
		Build(sameAs, slices.Values(ns), slices.Values(es))
	}
}

func BenchmarkCompact(b *testing.B) {
	a := benchAdjacency(benchNodes, benchEdges)
	i := int64(0)
	for b.Loop() {
		i++
		a.Apply(Changes{Edges: []Edge{{ID: 10_000_000 + i, Subject: 1, Predicate: 100, Object: 2, Scope: public}}})
		a.Compact()
	}
}

// BenchmarkWrite is one change, then a view and two steps around its subject.
func BenchmarkWrite(b *testing.B) {
	a := benchAdjacency(benchNodes, benchEdges)
	rng := rand.New(rand.NewPCG(5, 5))
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		i++
		at := 1 + rng.Int64N(benchNodes)
		s := a.Apply(Changes{Edges: []Edge{{ID: 10_000_000 + i, Subject: at, Predicate: 100, Object: 1 + rng.Int64N(benchNodes), Scope: public}}})
		if _, err := s.View(Filter{Scopes: []int64{public}}, nil).EgoIDs(at, 2, 100, Out); err != nil {
			b.Fatal(err)
		}
		if s.NeedsCompaction() {
			b.StopTimer()
			a.Compact()
			b.StartTimer()
		}
	}
}

func BenchmarkEgo(b *testing.B) {
	for _, m := range modes(benchAdjacency(benchNodes, benchEdges)) {
		for _, d := range []struct {
			name string
			d    Direction
		}{{"out", Out}, {"both", Both}} {
			b.Run(m.name+"/"+d.name, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(5, 5))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.view.EgoIDs(1+rng.Int64N(benchNodes), 2, 1000, d.d); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPath(b *testing.B) {
	for _, m := range modes(benchAdjacency(benchNodes, benchEdges)) {
		b.Run(m.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(5, 5))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.view.PathIDs(1+rng.Int64N(benchNodes), 1+rng.Int64N(benchNodes), Out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStronglyConnected(b *testing.B) {
	for _, m := range modes(benchAdjacency(benchNodes, benchEdges)) {
		b.Run(m.name, func(b *testing.B) {
			for b.Loop() {
				m.view.StronglyConnected()
			}
		})
	}
}

func BenchmarkCounts(b *testing.B) {
	for _, m := range modes(benchAdjacency(benchNodes, benchEdges)) {
		b.Run(m.name, func(b *testing.B) {
			for b.Loop() {
				m.view.count()
			}
		})
	}
}

// BenchmarkViewContracted makes a view where 20,000 entities are declared the same as
// another.
func BenchmarkViewContracted(b *testing.B) {
	ns, es := benchData(benchNodes, benchEdges)
	for i := range int64(20_000) {
		es = append(es, Edge{ID: 20_000_000 + i, Subject: 1 + 2*i, Predicate: sameAs, Object: 2 + 2*i, Scope: public})
	}
	s := Build(sameAs, slices.Values(ns), slices.Values(es)).Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		s.View(Filter{Scopes: []int64{public}}, nil)
	}
}
