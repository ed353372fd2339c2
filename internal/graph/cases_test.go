package graph

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	public  int64 = 1
	private int64 = 2
	knows   int64 = 10
	master  int64 = 11
	pupil   int64 = 12
	aboard  int64 = 13
	keeper  int64 = 14
	sameAs  int64 = 99
)

// build makes an adjacency with the given entities and relations, written as
// subject, predicate, object. Relations have the ids from 1000.
func build(ids []int64, triples ...[3]int64) *Adjacency {
	var es []Edge
	for i, t := range triples {
		es = append(es, Edge{ID: 1000 + int64(i), Subject: t[0], Predicate: t[1], Object: t[2], Scope: public})
	}
	return Build(sameAs, slices.Values(nodes(public, ids...)), slices.Values(es))
}

func nodes(scope int64, ids ...int64) []Node {
	var ns []Node
	for _, id := range ids {
		ns = append(ns, Node{ID: id, Scope: scope})
	}
	return ns
}

func view(a *Adjacency, r Rules) *View {
	return a.Snapshot().View(Filter{Scopes: []int64{public}}, r)
}

// same compares lists; an empty one equals nil.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func wantEgo(t *testing.T, v *View, root int64, depth, limit int, want ...int64) {
	t.Helper()
	got, err := v.EgoIDs(root, depth, limit, Out)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "ego", got, want)
}

func wantPath(t *testing.T, v *View, from, to int64, want ...int64) {
	t.Helper()
	got, err := v.PathIDs(from, to, Out)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "path", got, want)
}

func wantCounts(t *testing.T, v *View, nodes, edges, components int) {
	t.Helper()
	same(t, "node, edge and component counts", []int{v.NodeCount(), v.EdgeCount(), v.ComponentCount()}, []int{nodes, edges, components})
}

func TestS1Counts(t *testing.T) {
	v := view(build([]int64{1, 2, 3, 4}, [3]int64{1, knows, 2}, [3]int64{2, knows, 3}), nil)
	wantCounts(t, v, 4, 2, 2)
	wantEgo(t, v, 1, 1, 10, 2)
	wantEgo(t, v, 1, 2, 10, 2, 3)
	wantEgo(t, v, 1, 0, 10)
	wantPath(t, v, 1, 4)
}

func TestS2Directed(t *testing.T) {
	v := view(build([]int64{1, 2, 3, 4}, [3]int64{1, knows, 2}, [3]int64{2, knows, 3}), nil)
	wantEgo(t, v, 3, 1, 10)
	wantPath(t, v, 1, 3, 1, 2, 3)
	wantPath(t, v, 3, 1)
	wantPath(t, v, 1, 1, 1)
}

func TestS3ShortestAndLimit(t *testing.T) {
	v := view(build([]int64{1, 2, 3, 4, 5}, [3]int64{1, knows, 2}, [3]int64{2, knows, 3}, [3]int64{3, knows, 5},
		[3]int64{1, knows, 4}, [3]int64{4, knows, 5}), nil)
	wantPath(t, v, 1, 5, 1, 4, 5)
	v = view(build([]int64{1, 2, 3, 4, 5, 6}, [3]int64{1, knows, 6}, [3]int64{1, knows, 5}, [3]int64{1, knows, 4},
		[3]int64{1, knows, 3}, [3]int64{1, knows, 2}), nil)
	wantEgo(t, v, 1, 1, 3, 2, 3, 4)
}

func TestS4StronglyConnected(t *testing.T) {
	same(t, "two ways", view(build([]int64{1, 2}, [3]int64{1, knows, 2}, [3]int64{2, knows, 1}), nil).StronglyConnected(), [][]int64{{1, 2}})
	same(t, "chain", view(build([]int64{1, 2, 3}, [3]int64{1, knows, 2}, [3]int64{2, knows, 3}), nil).StronglyConnected(), [][]int64{})
	same(t, "loop", view(build([]int64{1}, [3]int64{1, knows, 1}), nil).StronglyConnected(), [][]int64{})
	same(t, "order", view(build([]int64{1, 2, 3, 4, 5}, [3]int64{5, knows, 2}, [3]int64{2, knows, 5},
		[3]int64{5, knows, 4}, [3]int64{4, knows, 3}, [3]int64{3, knows, 1}, [3]int64{1, knows, 4}), nil).StronglyConnected(),
		[][]int64{{1, 3, 4}, {2, 5}})
}

func TestS5Namespaces(t *testing.T) {
	wantCounts(t, view(build([]int64{1, 2}, [3]int64{1, knows, 2}), nil), 2, 1, 1)
	wantCounts(t, view(build([]int64{3}), nil), 1, 0, 1)
	wantCounts(t, view(Build(0, nil, nil), nil), 0, 0, 0)
}

func TestS6Inverse(t *testing.T) {
	a := build([]int64{1, 2}, [3]int64{1, master, 2})
	v := view(a, nil)
	wantEgo(t, v, 2, 1, 10)
	wantPath(t, v, 2, 1)
	v = view(a, Rules{master: {Inverse: pupil}})
	wantEgo(t, v, 2, 1, 10, 1)
	wantPath(t, v, 2, 1, 2, 1)
	wantCounts(t, v, 2, 2, 1)
	same(t, "stored relations", a.Snapshot().Relations(), 1)
}

func TestS7InverseOfItsOwnPredicateOnly(t *testing.T) {
	v := view(build([]int64{1, 2}, [3]int64{2, pupil, 1}), Rules{master: {Inverse: pupil}})
	wantEgo(t, v, 1, 1, 10)
	wantCounts(t, v, 2, 1, 1)
}

func TestS8Symmetric(t *testing.T) {
	v := view(build([]int64{1, 2}, [3]int64{1, aboard, 2}), Rules{aboard: {Symmetric: true}})
	wantEgo(t, v, 2, 1, 10, 1)
	wantCounts(t, v, 2, 2, 1)
	same(t, "strongly connected", v.StronglyConnected(), [][]int64{{1, 2}})
	v = view(build([]int64{1}, [3]int64{1, aboard, 1}), Rules{aboard: {Symmetric: true}})
	wantCounts(t, v, 1, 1, 1)
}

func TestS9RulesAreReplacedAndCopied(t *testing.T) {
	a := build([]int64{1, 2}, [3]int64{1, master, 2})
	r := Rules{master: {Inverse: pupil}}
	v := view(a, r)
	delete(r, master)
	wantEgo(t, v, 2, 1, 10, 1)
	wantEgo(t, view(a, r), 2, 1, 10)
}

func TestS10Contraction(t *testing.T) {
	a := build([]int64{1, 2, 3}, [3]int64{1, sameAs, 2}, [3]int64{2, keeper, 3})
	v := view(a, nil)
	wantCounts(t, v, 2, 1, 1)
	wantEgo(t, v, 1, 1, 10, 3)
	wantEgo(t, v, 2, 1, 10, 3)
	wantPath(t, v, 1, 3, 1, 3)
	wantPath(t, v, 2, 3, 1, 3)
}

func TestS11OneClass(t *testing.T) {
	a := build([]int64{3, 5, 7}, [3]int64{7, sameAs, 5}, [3]int64{5, sameAs, 3})
	for _, r := range []Rules{nil, {sameAs: {Symmetric: true}}} {
		v := view(a, r)
		wantCounts(t, v, 1, 0, 1)
		for _, id := range []int64{3, 5, 7} {
			wantPath(t, v, id, 10-id, 3)
			if got, ok := v.Resolve(id); !ok || got != 3 {
				t.Errorf("Resolve(%d) = %d, %v", id, got, ok)
			}
		}
	}
	// Without the middle one there is nothing that links the others.
	wantCounts(t, a.Snapshot().View(Filter{Node: func(n Node) bool { return n.ID != 5 }}, nil), 2, 0, 2)
}

func TestS12Unknown(t *testing.T) {
	a := build([]int64{1}, [3]int64{1, knows, 8})
	a.Apply(Changes{Nodes: nodes(private, 9)})
	for _, id := range []int64{0, 7, 8, 9} {
		v := view(a, nil)
		if _, err := v.EgoIDs(id, 1, 1, Out); !errors.Is(err, ErrUnknown) {
			t.Errorf("ego of %d: %v", id, err)
		}
		if _, err := v.PathIDs(id, 1, Out); !errors.Is(err, ErrUnknown) {
			t.Errorf("path from %d: %v", id, err)
		}
		if _, err := v.PathIDs(1, id, Out); !errors.Is(err, ErrUnknown) {
			t.Errorf("path to %d: %v", id, err)
		}
	}
	wantCounts(t, view(a, nil), 1, 0, 1)
}

func TestS13ViewsDoNotChange(t *testing.T) {
	a := build([]int64{1, 2}, [3]int64{1, knows, 2})
	v := view(a, nil)
	a.Apply(Changes{Revision: 7, Nodes: nodes(public, 3), Edges: []Edge{{ID: 2000, Subject: 1, Predicate: knows, Object: 3, Scope: public}}})
	wantCounts(t, v, 2, 1, 1)
	wantEgo(t, v, 1, 1, 10, 2)
	next := view(a, nil)
	wantCounts(t, next, 3, 2, 1)
	wantEgo(t, next, 1, 1, 10, 2, 3)
	same(t, "revision", next.Snapshot().Revision(), int64(7))
}

func TestDirections(t *testing.T) {
	v := view(build([]int64{1, 2, 3}, [3]int64{1, knows, 2}, [3]int64{3, master, 2}), Rules{master: {Inverse: pupil}})
	for _, c := range []struct {
		d    Direction
		ego  []int64
		path []int64
	}{
		{Out, []int64{3}, nil},
		{In, []int64{1, 3}, []int64{2, 1}},
		{Both, []int64{1, 3}, []int64{2, 1}},
	} {
		ego, err := v.EgoIDs(2, 1, 10, c.d)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "ego", ego, c.ego)
		path, err := v.PathIDs(2, 1, c.d)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "path", path, c.path)
	}
}

func TestTies(t *testing.T) {
	// Two diamonds one after the other; the ids are against the order of writing.
	a := build([]int64{1, 9, 8, 5, 7, 6, 2}, [3]int64{1, knows, 9}, [3]int64{1, knows, 8}, [3]int64{9, knows, 5}, [3]int64{8, knows, 5},
		[3]int64{5, knows, 7}, [3]int64{5, knows, 6}, [3]int64{7, knows, 2}, [3]int64{6, knows, 2})
	wantPath(t, view(a, nil), 1, 2, 1, 8, 5, 6, 2)
}

func TestFilters(t *testing.T) {
	a := Build(sameAs, slices.Values(append(nodes(public, 1, 2, 3), nodes(private, 4)...)), slices.Values([]Edge{
		{ID: 10, Subject: 1, Predicate: knows, Object: 2, Scope: public, Tags: []int64{5, 3, 5}, CreatedAt: 100},
		{ID: 11, Subject: 2, Predicate: knows, Object: 3, Scope: private, Tags: []int64{3}, CreatedAt: 200},
		{ID: 12, Subject: 3, Predicate: knows, Object: 4, Scope: public, CreatedAt: 300},
	}))
	for _, c := range []struct {
		name                     string
		f                        Filter
		nodes, edges, components int
	}{
		{"everything", Filter{}, 4, 3, 1},
		{"public", Filter{Scopes: []int64{public}}, 3, 1, 2},
		{"both scopes", Filter{Scopes: []int64{private, public}}, 4, 3, 1},
		{"unknown scope", Filter{Scopes: []int64{77}}, 0, 0, 0},
		{"no scope", Filter{Scopes: []int64{}}, 0, 0, 0},
		{"tag", Filter{Tags: []int64{3}}, 4, 2, 2},
		{"two tags", Filter{Tags: []int64{5, 3}}, 4, 1, 3},
		{"unknown tag", Filter{Tags: []int64{4}}, 4, 0, 4},
		{"time", Filter{Edge: func(e Edge) bool { return e.CreatedAt >= 200 && e.CreatedAt < 300 }}, 4, 1, 3},
		{"node", Filter{Node: func(n Node) bool { return n.ID != 2 }}, 3, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) { wantCounts(t, a.Snapshot().View(c.f, nil), c.nodes, c.edges, c.components) })
	}
}

func TestOutOfOrder(t *testing.T) {
	a := Build(sameAs, nil, nil)
	a.Apply(Changes{Edges: []Edge{{ID: 1, Subject: 30, Predicate: knows, Object: 10, Scope: public}}})
	wantCounts(t, view(a, nil), 0, 0, 0)
	a.Apply(Changes{Nodes: nodes(public, 30)})
	wantCounts(t, view(a, nil), 1, 0, 1)
	a.Apply(Changes{Nodes: nodes(public, 10)})
	wantCounts(t, view(a, nil), 2, 1, 1)
	a.Apply(Changes{Removed: []int64{10}})
	wantCounts(t, view(a, nil), 1, 0, 1)
	a.Compact()
	wantCounts(t, view(a, nil), 1, 0, 1)
	a.Apply(Changes{Nodes: nodes(public, 10)})
	wantEgo(t, view(a, nil), 30, 1, 10, 10)
	a.Apply(Changes{Removed: []int64{1, 77}})
	wantCounts(t, view(a, nil), 2, 0, 2)
}

func TestIdsAgainstTheOrderOfWriting(t *testing.T) {
	a := Build(sameAs, nil, nil)
	var c Changes
	for _, id := range []int64{50, 40, 60, 30, 20} {
		c.Nodes = append(c.Nodes, nodes(public, id)...)
		c.Edges = append(c.Edges, Edge{ID: 1000 + id, Subject: 50, Predicate: knows, Object: id, Scope: public})
	}
	for _, id := range []int64{20, 30, 40, 60} {
		c.Edges = append(c.Edges, Edge{ID: 2000 + id, Subject: id, Predicate: knows, Object: 70, Scope: public})
	}
	c.Nodes = append(c.Nodes, nodes(public, 70)...)
	a.Apply(c)
	for range 2 {
		v := view(a, nil)
		wantEgo(t, v, 50, 2, 10, 20, 30, 40, 60, 70)
		wantEgo(t, v, 50, 1, 2, 20, 30)
		wantPath(t, v, 50, 70, 50, 20, 70)
		a.Compact()
	}
	a = Build(sameAs, nil, nil)
	a.Apply(Changes{Nodes: nodes(public, 9, 3, 6), Edges: []Edge{
		{ID: 1, Subject: 9, Predicate: sameAs, Object: 6, Scope: public}, {ID: 2, Subject: 3, Predicate: sameAs, Object: 9, Scope: public},
	}})
	wantPath(t, view(a, nil), 9, 6, 3)
}

func TestUpdates(t *testing.T) {
	a := build([]int64{1, 2, 3})
	e := Edge{ID: 500, Subject: 1, Predicate: knows, Object: 2, Scope: public, Tags: []int64{4}, CreatedAt: 5}
	put := func(change func(*Edge)) *View {
		change(&e)
		return a.Apply(Changes{Edges: []Edge{e}}).View(Filter{Scopes: []int64{public}, Tags: []int64{4}, Edge: func(e Edge) bool { return e.CreatedAt == 5 }}, Rules{aboard: {Symmetric: true}})
	}
	for _, compact := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			change func(*Edge)
			edges  int
			near   []int64
		}{
			{"first", func(*Edge) {}, 1, []int64{2}},
			{"the same again", func(*Edge) {}, 1, []int64{2}},
			{"object", func(e *Edge) { e.Object = 3 }, 1, []int64{3}},
			{"subject", func(e *Edge) { e.Subject = 2 }, 1, nil},
			{"subject back", func(e *Edge) { e.Subject = 1 }, 1, []int64{3}},
			{"predicate", func(e *Edge) { e.Predicate = aboard }, 2, []int64{3}},
			{"scope", func(e *Edge) { e.Scope = private }, 0, nil},
			{"scope back", func(e *Edge) { e.Scope = public }, 2, []int64{3}},
			{"tags", func(e *Edge) { e.Tags = []int64{5} }, 0, nil},
			{"tags back", func(e *Edge) { e.Tags = []int64{5, 4} }, 2, []int64{3}},
			{"time", func(e *Edge) { e.CreatedAt = 6 }, 0, nil},
			{"time back", func(e *Edge) { e.CreatedAt = 5 }, 2, []int64{3}},
			{"turned round", func(e *Edge) { e.Subject, e.Object = 3, 1 }, 2, []int64{3}},
			{"from the start", func(e *Edge) { e.Subject, e.Predicate, e.Object = 1, knows, 2 }, 1, []int64{2}},
		} {
			v := put(c.change)
			same(t, c.name+": edges", v.EdgeCount(), c.edges)
			wantEgo(t, v, 1, 5, 10, c.near...)
			same(t, c.name+": relations", v.Snapshot().Relations(), 1)
			if compact {
				a.Compact()
			}
		}
	}
}
