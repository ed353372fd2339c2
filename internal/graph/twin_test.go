package graph

import (
	"cmp"
	"maps"
	"slices"
)

// A twin is the graph done the plain way: maps, everything from scratch for
// every question.
type twin struct {
	nodes map[int64]Node
	edges map[int64]Edge
}

func newTwin() *twin { return &twin{map[int64]Node{}, map[int64]Edge{}} }

func (t *twin) clone() *twin { return &twin{maps.Clone(t.nodes), maps.Clone(t.edges)} }

func (t *twin) apply(c Changes) {
	for _, id := range c.Removed {
		delete(t.nodes, id)
		delete(t.edges, id)
	}
	for _, n := range c.Nodes {
		t.nodes[n.ID] = n
	}
	for _, e := range c.Edges {
		t.edges[e.ID] = e
	}
}

// A twinView is what a filter and rules leave of a twin.
type twinView struct {
	rep   map[int64]int64 // of every entity covered
	next  map[int64]map[int64]bool
	edges int
}

func (t *twin) view(f Filter, r Rules) *twinView {
	v := &twinView{map[int64]int64{}, map[int64]map[int64]bool{}, 0}
	inScope := func(s int64) bool { return f.Scopes == nil || slices.Contains(f.Scopes, s) }
	for id, n := range t.nodes {
		if inScope(n.Scope) && (f.Node == nil || f.Node(n)) {
			v.rep[id] = id
		}
	}
	var covered []Edge
	for _, e := range t.edges {
		_, subject := v.rep[e.Subject]
		_, object := v.rep[e.Object]
		ok := subject && object && inScope(e.Scope) && (f.Edge == nil || f.Edge(e))
		for _, tag := range f.Tags {
			ok = ok && slices.Contains(e.Tags, tag)
		}
		if ok {
			covered = append(covered, e)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range covered {
			if a, b := v.rep[e.Subject], v.rep[e.Object]; e.Predicate == sameAs && a != b {
				v.rep[e.Subject], v.rep[e.Object] = min(a, b), min(a, b)
				changed = true
			}
		}
	}
	for _, id := range v.rep {
		v.next[id] = map[int64]bool{}
	}
	for _, e := range covered {
		if e.Predicate == sameAs {
			continue
		}
		a, b, rule := v.rep[e.Subject], v.rep[e.Object], r[e.Predicate]
		v.next[a][b] = true
		v.edges++
		if rule.Symmetric && a != b || !rule.Symmetric && rule.Inverse != 0 {
			v.edges++
		}
		if rule.Symmetric || rule.Inverse != 0 {
			v.next[b][a] = true
		}
	}
	return v
}

// steps gives the nodes one step from id in a direction.
func (v *twinView) steps(id int64, d Direction) []int64 {
	found := map[int64]bool{}
	for to := range v.next[id] {
		found[to] = found[to] || d != In
	}
	for from, next := range v.next {
		if next[id] && d != Out {
			found[from] = true
		}
	}
	var ids []int64
	for to, ok := range found {
		if ok {
			ids = append(ids, to)
		}
	}
	return ids
}

// paths gives the best shortest path from id to everything it leads to. The
// best path to a node extends the best path to one of the nodes before it.
func (v *twinView) paths(id int64, d Direction) map[int64][]int64 {
	best := map[int64][]int64{id: {id}}
	for layer := []int64{id}; len(layer) > 0; {
		found := map[int64][]int64{}
		for _, at := range layer {
			for _, to := range v.steps(at, d) {
				p := append(slices.Clone(best[at]), to)
				if best[to] == nil && (found[to] == nil || slices.Compare(p, found[to]) < 0) {
					found[to] = p
				}
			}
		}
		maps.Copy(best, found)
		layer = slices.Collect(maps.Keys(found))
	}
	return best
}

func (v *twinView) ego(root int64, depth, limit int, d Direction) []int64 {
	paths := v.paths(root, d)
	var ids []int64
	for id, p := range paths {
		if len(p) > 1 && len(p) <= depth+1 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Or(cmp.Compare(len(paths[a]), len(paths[b])), cmp.Compare(a, b)) })
	return ids[:min(len(ids), limit)]
}

// sets gives the groups of nodes that lead to each other.
func (v *twinView) sets(d Direction) [][]int64 {
	reach := map[int64]map[int64][]int64{}
	for id := range v.next {
		reach[id] = v.paths(id, d)
	}
	var sets [][]int64
	for id := range v.next {
		var set []int64
		for other := range reach[id] {
			if reach[other][id] != nil {
				set = append(set, other)
			}
		}
		slices.Sort(set)
		if set[0] == id {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b []int64) int { return cmp.Compare(a[0], b[0]) })
	return sets
}
