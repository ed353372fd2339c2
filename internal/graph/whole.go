package graph

import (
	"cmp"
	"math"
	"slices"
)

type totals struct{ nodes, edges, components int }

// NodeCount is the number of nodes, isolated ones too; entities declared the
// same are one node.
//
// The three counts are found together in O(nodes + edges) when one of them is
// first asked for, and kept.
func (v *View) NodeCount() int { return v.counts().nodes }

// EdgeCount is the number of edges: one for each relation that the view
// covers, except declarations of sameness, and one more where a rule adds an
// edge back. Relations that say the same count each, and a rule adds its edge
// whether or not a relation says it too; only a symmetric relation from a node
// to itself has none added, being the same edge backwards.
func (v *View) EdgeCount() int { return v.counts().edges }

// ComponentCount is the number of parts that no edge connects, whichever way
// edges go; an isolated node is one.
func (v *View) ComponentCount() int { return v.counts().components }

func (v *View) counts() totals {
	v.once.Do(func() { v.totals = v.count() })
	return v.totals
}

func (v *View) count() totals {
	s := v.snap
	x := s.scratch()
	parent := x.lows(s.nodes())
	for n := range parent {
		parent[n] = uint32(n)
	}
	root := func(n uint32) uint32 {
		for parent[n] != n {
			parent[n] = parent[parent[n]]
			n = parent[n]
		}
		return n
	}
	var t totals
	for n := range uint32(s.nodes()) {
		if !v.shows(n) {
			continue
		}
		t.nodes++
		t.components++
		x.buf = v.expand(x.buf[:0], n, follow, 0)
		t.edges += len(x.buf)
		mine := root(n)
		for _, to := range x.buf {
			// Roots have the lowest number, which is what bounds the depth in
			// practice; a root met later joins the one at hand.
			if r := root(to); r != mine {
				if r < mine {
					mine, r = r, mine
				}
				parent[r] = mine
				t.components--
			}
		}
		if v.ruled {
			x.buf = v.expand(x.buf[:0], n, back, 0)
			t.edges += len(x.buf)
			x.buf = v.expand(x.buf[:0], n, symmetric, 0)
			for _, to := range x.buf {
				if to == n {
					t.edges--
				}
			}
		}
	}
	s.release(x)
	return t
}

// A frame is a node that the search for components is inside of.
type frame struct {
	node uint32
	lo   uint32 // where its neighbours begin in the scratch's buffer
	next uint32 // the neighbour to look at next
}

// finished marks nodes whose component is known.
const finished = math.MaxUint32

// StronglyConnected gives the sets of more than one node in which edges, those
// that rules add included, lead from each to every other. Each set is
// ascending, the sets are in the order of their first ids. Directions do not
// matter here: turning all edges round leaves the sets as they are.
//
// O(nodes + edges), without recursion.
func (v *View) StronglyConnected() [][]int64 {
	// Tarjan's algorithm. The neighbours of the nodes that the search is inside
	// of lie one after another in one buffer, which shrinks as it leaves them.
	s := v.snap
	x := s.scratch()
	low := x.lows(s.nodes()) // lowest number reachable; set when a node gets its number
	num := &x.from
	num.start(s.nodes())
	stack, frames, buf := x.queue[:0], x.frames[:0], x.buf[:0]
	count := uint32(0)
	var found [][]int64
	enter := func(n uint32) {
		num.set(n, count)
		low[n] = count
		count++
		stack = append(stack, n)
		lo := uint32(len(buf))
		buf = v.neighbours(buf, n, Out)
		frames = append(frames, frame{n, lo, lo})
	}
	for start := range uint32(s.nodes()) {
		if num.has(start) || !v.shows(start) {
			continue
		}
		enter(start)
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			if int(f.next) < len(buf) {
				to := buf[f.next]
				f.next++
				if !num.has(to) {
					enter(to)
				} else if low[to] != finished {
					low[f.node] = min(low[f.node], num.get(to))
				}
				continue
			}
			n := f.node
			buf = buf[:f.lo]
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				above := frames[len(frames)-1].node
				low[above] = min(low[above], low[n])
			}
			if low[n] == num.get(n) {
				stack, found = v.popSet(stack, n, low, found)
			}
		}
	}
	x.queue, x.frames, x.buf = stack, frames, buf
	s.release(x)
	slices.SortFunc(found, func(a, b []int64) int { return cmp.Compare(a[0], b[0]) })
	return found
}

// popSet takes the component of n off the stack and keeps it if it has more
// than one node.
func (v *View) popSet(stack []uint32, n uint32, low []uint32, found [][]int64) ([]uint32, [][]int64) {
	i := len(stack) - 1
	for stack[i] != n {
		i--
	}
	for _, m := range stack[i:] {
		low[m] = finished
	}
	if len(stack)-i > 1 {
		ids := make([]int64, 0, len(stack)-i)
		for _, m := range stack[i:] {
			ids = append(ids, v.snap.id(m))
		}
		slices.Sort(ids)
		found = append(found, ids)
	}
	return stack[:i], found
}
