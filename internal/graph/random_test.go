package graph

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// Ids of entities are 1..entities, those of relations from firstEdge. Few of
// each make collisions likely.
const (
	entities  = 9
	firstEdge = 101
	relations = 24
)

var predicates = []int64{knows, master, pupil, aboard, sameAs}

func drawChanges(t *rapid.T, rev int64, least, most int) Changes {
	c := Changes{Revision: rev}
	seen := map[int64]bool{}
	for range rapid.IntRange(least, most).Draw(t, "changes") {
		var id int64
		isNode := rapid.IntRange(0, 2).Draw(t, "kind") == 2
		if isNode {
			id = rapid.Int64Range(1, entities).Draw(t, "entity")
		} else {
			id = rapid.Int64Range(firstEdge, firstEdge+relations).Draw(t, "relation")
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		scope := rapid.SampledFrom([]int64{public, public, private}).Draw(t, "scope")
		tags := rapid.SliceOfN(rapid.Int64Range(1, 3), 0, 3).Draw(t, "tags")
		switch {
		case rapid.IntRange(0, 6).Draw(t, "remove") == 6:
			c.Removed = append(c.Removed, id)
		case isNode:
			c.Nodes = append(c.Nodes, Node{id, scope, tags})
		default:
			c.Edges = append(c.Edges, Edge{
				ID: id, Scope: scope, Tags: tags,
				Subject:   rapid.Int64Range(1, entities).Draw(t, "subject"),
				Predicate: rapid.SampledFrom(predicates).Draw(t, "predicate"),
				Object:    rapid.Int64Range(1, entities).Draw(t, "object"),
				CreatedAt: rapid.Int64Range(0, 9).Draw(t, "time"),
			})
		}
	}
	return c
}

func drawFilter(t *rapid.T) Filter {
	f := Filter{
		Scopes: rapid.SampledFrom([][]int64{nil, {public}, {private}, {private, public, 5}, {5}, {}}).Draw(t, "scopes"),
		Tags:   rapid.SampledFrom([][]int64{nil, nil, nil, {1}, {3, 2}}).Draw(t, "tags"),
	}
	if rapid.IntRange(0, 3).Draw(t, "window") == 3 {
		f.Edge = func(e Edge) bool { return e.CreatedAt >= 3 && (e.ID+e.Subject+2*e.Object)%5 != 0 }
	}
	if rapid.IntRange(0, 3).Draw(t, "sieve") == 3 {
		f.Node = func(n Node) bool { return n.ID%4 != 0 && !slices.Contains(n.Tags, 3) }
	}
	return f
}

func drawRules(t *rapid.T) Rules {
	r := Rules{}
	for _, p := range predicates {
		switch rapid.IntRange(0, 3).Draw(t, "rule") {
		case 0:
			r[p] = Rule{Symmetric: true}
		case 1:
			r[p] = Rule{Inverse: pupil}
		}
	}
	return r
}

// TestRandomHistories applies random changes, with and without compaction, and
// compares what views of old and new snapshots say with the twin.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tw := newTwin()
		tw.apply(drawChanges(t, 0, 0, 40))
		a := Build(sameAs, maps.Values(tw.nodes), maps.Values(tw.edges))
		type moment struct {
			snap *Snapshot
			twin *twin
		}
		history := []moment{{a.Snapshot(), tw.clone()}}
		for rev := range rapid.IntRange(0, 6).Draw(t, "steps") {
			c := drawChanges(t, int64(rev+1), 1, 20)
			tw.apply(c)
			snap := a.Apply(c)
			if rapid.IntRange(0, 3).Draw(t, "compact") == 3 {
				snap = a.Compact()
			}
			history = append(history, moment{snap, tw.clone()})
		}
		for range 2 {
			m := rapid.SampledFrom(history).Draw(t, "moment")
			if m.snap.Relations() != len(m.twin.edges) || m.snap.Entities() != len(m.twin.nodes) {
				t.Fatalf("%d entities, %d relations, want %d, %d", m.snap.Entities(), m.snap.Relations(), len(m.twin.nodes), len(m.twin.edges))
			}
			f, r := drawFilter(t), drawRules(t)
			compare(t, m.snap.View(f, r), m.twin.view(f, r))
		}
	})
}

func compare(t *rapid.T, v *View, w *twinView) {
	equal := func(what string, got, want any) {
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
	}
	equal("node count", v.NodeCount(), len(w.next))
	equal("edge count", v.EdgeCount(), w.edges)
	equal("component count", v.ComponentCount(), len(w.sets(Both)))
	equal("strongly connected", v.StronglyConnected(), slices.DeleteFunc(w.sets(Out), func(s []int64) bool { return len(s) < 2 }))
	d := rapid.SampledFrom([]Direction{Out, In, Both}).Draw(t, "direction")
	depth, limit := rapid.IntRange(0, 5).Draw(t, "depth"), rapid.IntRange(0, entities).Draw(t, "limit")
	for from := int64(0); from <= entities; from++ {
		rep, ok := w.rep[from]
		got, err := v.EgoIDs(from, depth, limit, d)
		if !ok {
			if !errors.Is(err, ErrUnknown) {
				t.Fatalf("ego of %d: %v", from, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		equal("ego", got, w.ego(rep, depth, limit, d))
		paths := w.paths(rep, d)
		for to, end := range w.rep {
			got, err := v.PathIDs(from, to, d)
			if err != nil {
				t.Fatal(err)
			}
			equal("path", got, paths[end])
		}
	}
}

// TestLargerRandom compares paths and neighbourhoods where layers are large
// enough for both ways of sorting, searches meet in the middle, and, since every
// relation has a tag of its own, labels are too many to be judged beforehand.
func TestLargerRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, degree := range []int{1, 2, 4} {
		const n = 400
		tw := newTwin()
		for id := range int64(n) {
			tw.nodes[id+1] = Node{ID: id + 1, Scope: public}
		}
		for i := range int64(n * degree) {
			p := predicates[rng.IntN(4)]
			tw.edges[1000+i] = Edge{ID: 1000 + i, Subject: 1 + rng.Int64N(n), Predicate: p, Object: 1 + rng.Int64N(1+rng.Int64N(n)), Scope: public, Tags: []int64{i}}
		}
		a := Build(sameAs, maps.Values(tw.nodes), maps.Values(tw.edges))
		v, w := a.Snapshot().View(Filter{}, Rules{aboard: {Symmetric: true}}), tw.view(Filter{}, Rules{aboard: {Symmetric: true}})
		for _, d := range []Direction{Out, In, Both} {
			for range 5 {
				from := 1 + rng.Int64N(n)
				paths := w.paths(from, d)
				for to := range int64(n) {
					got, err := v.PathIDs(from, to+1, d)
					if err != nil {
						t.Fatal(err)
					}
					same(t, "path", got, paths[to+1])
				}
				got, err := v.EgoIDs(from, 9, n, d)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "ego", got, w.ego(from, 9, n, d))
			}
		}
		parts, seen := 0, map[int64]bool{}
		for id := range w.next {
			if !seen[id] {
				parts++
				for other := range w.paths(id, Both) {
					seen[other] = true
				}
			}
		}
		wantCounts(t, v, n, w.edges, parts)
	}
}

// TestReadersAndWriter lets readers ask while a writer applies and compacts;
// meant for the race detector. The writer keeps one thing true: the path from
// 1 to the last entity is as long as the revision says.
func TestReadersAndWriter(t *testing.T) {
	a := Build(sameAs, slices.Values(nodes(public, 1)), nil)
	const steps = 300
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				s := a.Snapshot()
				v := s.View(Filter{Scopes: []int64{public}}, Rules{aboard: {Symmetric: true}})
				n := s.Revision() + 1
				p, err := v.PathIDs(1, n, Out)
				if err != nil || int64(len(p)) != n || v.NodeCount() != int(n) || len(v.StronglyConnected()) > 1 {
					t.Errorf("revision %d: path of %d, %d nodes, %v", s.Revision(), len(p), v.NodeCount(), err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				a.Compact()
			}
		}
	})
	for i := int64(1); i <= steps; i++ {
		a.Apply(Changes{Revision: i, Nodes: nodes(public, i+1), Removed: []int64{5000 + i - 1}, Edges: []Edge{
			{ID: 1000 + i, Subject: i, Predicate: aboard, Object: i + 1, Scope: public},
			{ID: 5000 + i, Subject: i + 1, Predicate: knows, Object: 1, Scope: private},
		}})
	}
	close(done)
	wg.Wait()
	same(t, "relations", a.Compact().Relations(), steps+1)
}

// TestCompactionUnasked fills an empty adjacency by Apply alone.
func TestCompactionUnasked(t *testing.T) {
	a := Build(0, nil, nil)
	const n = 30000
	for i := int64(0); i < n; i += 100 {
		var c Changes
		for j := i; j < i+100; j++ {
			c.Nodes = append(c.Nodes, Node{ID: 2*j + 1, Scope: public})
			c.Edges = append(c.Edges, Edge{ID: 2*j + 2, Subject: 2*j + 1, Predicate: knows, Object: max(1, 2*j-1), Scope: public})
		}
		a.Apply(c)
	}
	s := a.Snapshot()
	if len(s.base.ids) == 0 || s.Entities() != n || s.Relations() != n {
		t.Errorf("%d entities, %d of them in the base, %d relations", s.Entities(), len(s.base.ids), s.Relations())
	}
	v := s.View(Filter{}, nil)
	wantCounts(t, v, n, n, 1)
	p, err := v.PathIDs(2*n-1, 1, Out)
	if err != nil || len(p) != n {
		t.Errorf("path of %d entities, %v", len(p), err)
	}
}
