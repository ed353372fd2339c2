package graph

import (
	"cmp"
	"iter"
	"slices"
)

// A base is a graph in compressed rows. It never changes. Nodes are numbered
// by ascending id; edges are numbered by subject, then id, so that the row of
// a node going out is a range of edge numbers.
type base struct {
	ids   []int64  // of nodes, ascending
	label []uint32 // of nodes
	gone  int      // how many nodes are labelled so

	out      []uint32 // node n owns the edges out[n] to out[n+1]
	object   []uint32 // of edges
	edge     []uint32 // label of edges
	edgeID   []int64
	created  []int64
	in       []uint32 // node n is reached by sources in[n] to in[n+1]
	source   []uint32 // subject of each edge, by object
	incoming []uint32 // edge number of the same
	arriving []uint32 // label of the same
	byID     []uint32 // edge numbers by ascending edge id
	same     []uint32 // edges that say two entities are the same one
}

// find gives the number of the node with that id. O(log nodes).
func (b *base) find(id int64) (uint32, bool) {
	i, ok := slices.BinarySearch(b.ids, id)
	return uint32(i), ok
}

// findEdge gives the number of the edge with that id. O(log edges).
func (b *base) findEdge(id int64) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(b.byID, id, func(e uint32, id int64) int { return cmp.Compare(b.edgeID[e], id) })
	if !ok {
		return 0, false
	}
	return b.byID[i], true
}

// subject gives the subject of an edge. O(log nodes): only rows are stored.
func (b *base) subject(e uint32) uint32 {
	// The last row that begins at or before e; empty rows begin there too.
	i, _ := slices.BinarySearch(b.out, e+1)
	return uint32(i - 1)
}

func (b *base) bytes() int {
	return 8*(cap(b.ids)+cap(b.edgeID)+cap(b.created)) +
		4*(cap(b.label)+cap(b.out)+cap(b.object)+cap(b.edge)+cap(b.in)+cap(b.source)+cap(b.incoming)+cap(b.arriving)+cap(b.byID)+cap(b.same))
}

// rawNode and rawEdge are what a base is assembled from.
type rawNode struct {
	id    int64
	label uint32
}

type rawEdge struct {
	id, created     int64
	subject, object int64 // ids, then node numbers
	label           uint32
}

// gather reads both streams and puts them in order. Of two records with one id
// the later counts.
func gather(in *interner, nodes iter.Seq[Node], edges iter.Seq[Edge]) ([]rawNode, []rawEdge) {
	var ns []rawNode
	var es []rawEdge
	if nodes != nil {
		for n := range nodes {
			ns = push(ns, rawNode{n.ID, in.node(&n)})
		}
	}
	if edges != nil {
		for e := range edges {
			es = push(es, rawEdge{e.ID, e.CreatedAt, e.Subject, e.Object, in.edge(&e)})
		}
	}
	ns = arrange(ns, func(n rawNode) int64 { return n.id })
	es = arrange(es, func(e rawEdge) int64 { return e.id })
	return ns, es
}

// push appends, with twice the room when it runs out: append gives a long slice
// a quarter more at a time, which copies a large graph several times over.
func push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, max(len(s), 1024))
	}
	return append(s, v)
}

// arrange sorts by id and keeps the last of equals. Streams come by id from
// the store, so mostly there is nothing to do.
func arrange[T any](s []T, id func(T) int64) []T {
	strict := true
	for i := 1; i < len(s) && strict; i++ {
		strict = id(s[i-1]) < id(s[i])
	}
	if strict {
		return s
	}
	// Sorting small keys and moving each record once beats sorting records.
	type key struct {
		id    int64
		place int
	}
	keys := make([]key, len(s))
	for i := range s {
		keys[i] = key{id(s[i]), i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.id != b.id {
			return cmp.Compare(a.id, b.id)
		}
		return a.place - b.place
	})
	sorted := make([]T, 0, len(s))
	for i, k := range keys {
		if i+1 == len(keys) || k.id != keys[i+1].id {
			sorted = append(sorted, s[k.place])
		}
	}
	return sorted
}

// resolve turns the ids at the ends of edges into node numbers. Ends that are
// no nodes become ones, labelled gone.
func resolve(ns []rawNode, es []rawEdge) []rawNode {
	look := finder(ns)
	var missing []rawNode
	for i := range es {
		for _, id := range [...]int64{es[i].subject, es[i].object} {
			if look(id) < 0 {
				missing = append(missing, rawNode{id, gone})
			}
		}
	}
	if missing != nil {
		ns = arrange(append(ns, missing...), func(n rawNode) int64 { return n.id })
		look = finder(ns)
	}
	for i := range es {
		es[i].subject, es[i].object = int64(look(es[i].subject)), int64(look(es[i].object))
	}
	return ns
}

// finder gives the place of an id in ns, or -1. Ids are mostly dense enough
// for a plain array, which is several times faster than a map.
func finder(ns []rawNode) func(int64) int32 {
	if len(ns) == 0 {
		return func(int64) int32 { return -1 }
	}
	low, high := ns[0].id, ns[len(ns)-1].id
	if spread := uint64(high) - uint64(low); spread < uint64(16*len(ns)+1024) {
		place := make([]int32, spread+1)
		for i := range place {
			place[i] = -1
		}
		for i, n := range ns {
			place[n.id-low] = int32(i)
		}
		return func(id int64) int32 {
			if id < low || id > high {
				return -1
			}
			return place[id-low]
		}
	}
	place := make(map[int64]int32, len(ns))
	for i, n := range ns {
		place[n.id] = int32(i)
	}
	return func(id int64) int32 {
		if i, ok := place[id]; ok {
			return i
		}
		return -1
	}
}

// assemble lays out nodes, ascending by id, and edges, ascending by id with
// node numbers at their ends. O(nodes + edges).
func assemble(ns []rawNode, es []rawEdge, labels []label, sameAs int64) *base {
	b := &base{
		ids: make([]int64, len(ns)), label: make([]uint32, len(ns)),
		out: make([]uint32, len(ns)+1), in: make([]uint32, len(ns)+1),
		object: make([]uint32, len(es)), edge: make([]uint32, len(es)),
		edgeID: make([]int64, len(es)), created: make([]int64, len(es)),
		source: make([]uint32, len(es)), incoming: make([]uint32, len(es)), arriving: make([]uint32, len(es)), byID: make([]uint32, len(es)),
	}
	for i, n := range ns {
		b.ids[i], b.label[i] = n.id, n.label
		if n.label == gone {
			b.gone++
		}
	}
	for i := range es {
		b.out[es[i].subject+1]++
		b.in[es[i].object+1]++
	}
	for i := range ns {
		b.out[i+1] += b.out[i]
		b.in[i+1] += b.in[i]
	}
	free := make([]uint32, len(ns))
	copy(free, b.out)
	for i := range es {
		r := &es[i]
		e := free[r.subject]
		free[r.subject]++
		b.object[e], b.edge[e], b.edgeID[e], b.created[e] = uint32(r.object), r.label, r.id, r.created
		b.byID[i] = e
		if sameAs != 0 && labels[r.label].pred == sameAs {
			b.same = append(b.same, e)
		}
	}
	copy(free, b.in)
	for n := range ns {
		for e := b.out[n]; e < b.out[n+1]; e++ {
			i := free[b.object[e]]
			free[b.object[e]]++
			b.source[i], b.incoming[i], b.arriving[i] = uint32(n), e, b.edge[e]
		}
	}
	return b
}
