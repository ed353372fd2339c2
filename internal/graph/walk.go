package graph

import (
	"cmp"
	"slices"
)

// EgoIDs gives the entities at most depth steps from root, nearest first and
// by ascending id within a distance, without root itself and at most limit of
// them. Nothing is within a depth or a limit of zero. An entity that the view
// does not cover is ErrUnknown.
//
// O(edges at what is nearer than the last entity returned).
func (v *View) EgoIDs(root int64, depth, limit int, d Direction) ([]int64, error) {
	start, ok := v.locate(root)
	if !ok {
		return nil, unknown("root")
	}
	found := []int64{}
	if depth <= 0 || limit <= 0 {
		return found, nil
	}
	s := v.snap
	x := s.scratch()
	x.from.start(s.nodes())
	x.from.set(start, 0)
	layer, next := append(x.queue[:0], start), x.queue2[:0]
	for dist := uint32(1); len(layer) > 0 && len(found) < limit && int64(dist) <= int64(depth); dist++ {
		next = v.beyond(x, next[:0], layer, &x.from, dist, d)
		s.sort(next, &x.from, dist)
		for _, n := range next[:min(len(next), limit-len(found))] {
			found = append(found, s.id(n))
		}
		layer, next = next, layer
	}
	x.queue, x.queue2 = layer, next
	s.release(x)
	return found, nil
}

// beyond appends to next the neighbours of a layer that have no mark yet and
// marks them with dist.
func (v *View) beyond(x *scratch, next, layer []uint32, m *marks, dist uint32, d Direction) []uint32 {
	for _, n := range layer {
		x.buf = v.neighbours(x.buf[:0], n, d)
		for _, to := range x.buf {
			if !m.has(to) {
				m.set(to, dist)
				next = append(next, to)
			}
		}
	}
	return next
}

// sort puts the nodes that m marks with dist in the order of their ids.
func (s *Snapshot) sort(layer []uint32, m *marks, dist uint32) {
	switch {
	case !s.ordered:
		slices.SortFunc(layer, func(a, b uint32) int { return cmp.Compare(s.id(a), s.id(b)) })
	case len(layer) > s.nodes()/32:
		// A large layer is read off the marks faster than sorted.
		i := 0
		for n := range uint32(s.nodes()) {
			if m.is(n, dist) {
				layer[i] = n
				i++
			}
		}
	default:
		slices.Sort(layer)
	}
}

// PathIDs gives a shortest path by number of steps, both ends included: just
// the one entity if they are the same in this view, nothing if no path leads
// from one to the other. Among several shortest paths it is the one with the
// lowest id in the first place where they differ, so the same question always
// has the same answer. An entity that the view does not cover is ErrUnknown.
//
// The search goes from both ends, always on the cheaper side, and takes
// O(nodes + edges) at worst.
func (v *View) PathIDs(from, to int64, d Direction) ([]int64, error) {
	a, ok := v.locate(from)
	if !ok {
		return nil, unknown("from")
	}
	z, ok := v.locate(to)
	if !ok {
		return nil, unknown("to")
	}
	if a == z {
		return []int64{v.snap.id(a)}, nil
	}
	x := v.snap.scratch()
	path := v.path(x, a, z, d)
	v.snap.release(x)
	return path, nil
}

// A side of a search is all that lies within some steps of one end.
type side struct {
	marks *marks
	queue []uint32 // by distance
	last  int      // where the last layer begins in queue
	dist  uint32   // of the last layer
	d     Direction
}

func (f *side) layer() []uint32 { return f.queue[f.last:] }

func (v *View) path(x *scratch, a, z uint32, d Direction) []int64 {
	x.from.start(v.snap.nodes())
	x.to.start(v.snap.nodes())
	x.from.set(a, 0)
	x.to.set(z, 0)
	fore := side{&x.from, append(x.queue[:0], a), 0, 0, d}
	aft := side{&x.to, append(x.queue2[:0], z), 0, 0, d.reversed()}
	met := false
	for !met && len(fore.layer()) > 0 && len(aft.layer()) > 0 {
		if v.cost(fore.layer(), fore.d) <= v.cost(aft.layer(), aft.d) {
			met = v.grow(x, &fore, &aft)
		} else {
			met = v.grow(x, &aft, &fore)
		}
	}
	var path []int64
	if met {
		v.fillIn(x, &fore, &aft)
		path = v.trace(x, a, fore.dist+aft.dist, d)
	}
	x.queue, x.queue2 = fore.queue, aft.queue
	return path
}

// grow adds a layer to one side and says whether it touches the other. All of
// the layer is done even after the first touch: the best path may lead through
// any of its nodes. Since the sides did not touch before, a touch is always
// with the other side's last layer.
func (v *View) grow(x *scratch, f, other *side) bool {
	layer := f.layer()
	f.last = len(f.queue)
	f.dist++
	f.queue = v.beyond(x, f.queue, layer, f.marks, f.dist, f.d)
	return slices.ContainsFunc(f.layer(), other.marks.has)
}

// cost is about how many edges a step from these nodes looks at.
func (v *View) cost(layer []uint32, d Direction) int {
	b := v.snap.base
	out, in := v.needs(d)
	n := len(layer)
	for _, node := range layer {
		if int(node) >= len(b.ids) {
			continue
		}
		if out != 0 {
			n += int(b.out[node+1] - b.out[node])
		}
		if in != 0 {
			n += int(b.in[node+1] - b.in[node])
		}
	}
	return n
}

// fillIn marks those nodes on the near side that lie on a shortest path with
// their distance from the far end, layer by layer from where the sides met.
func (v *View) fillIn(x *scratch, fore, aft *side) {
	total := fore.dist + aft.dist
	end := fore.last
	for dist := fore.dist; dist > 0; dist-- {
		begin := end
		for begin > 0 && fore.marks.is(fore.queue[begin-1], dist-1) {
			begin--
		}
		for _, n := range fore.queue[begin:end] {
			x.buf = v.neighbours(x.buf[:0], n, fore.d)
			for _, to := range x.buf {
				if aft.marks.is(to, total-dist) {
					aft.marks.set(n, total-dist+1)
					break
				}
			}
		}
		end = begin
	}
}

// trace walks from a to the far end, each time to the lowest id among the
// nodes that are one step nearer to it.
func (v *View) trace(x *scratch, a, total uint32, d Direction) []int64 {
	path := make([]int64, 1, total+1)
	path[0] = v.snap.id(a)
	for n, left := a, total; left > 0; left-- {
		x.buf = v.neighbours(x.buf[:0], n, d)
		first := true
		var best int64
		for _, to := range x.buf {
			if !x.to.is(to, left-1) {
				continue
			}
			if id := v.snap.id(to); first || id < best {
				first, best, n = false, id, to
			}
		}
		path = append(path, best)
	}
	return path
}
