package embedded

import (
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// CountVectors implements index.View.
func (v *view) CountVectors(space, namespace int64, kind index.Kind) index.VectorCount {
	var c index.VectorCount
	text := partKey{namespace, kind}
	for _, s := range v.segs {
		if part, ok := s.partition(text); ok {
			gone := s.deletes.statsAt(part, v.rev)
			c.Records += s.parts[part].stats.docs[lenAll] - gone.docs[lenAll]
		}
	}
	key := vecKey{space, namespace, kind}
	dropped := slices.Contains(v.dropped, space)
	for _, t := range v.tails {
		t.mu.RLock()
		if p := t.parts[text]; p != nil {
			st := p.statsAt(p.count(t.covered), v.rev)
			c.Records += st.docs[lenAll]
		}
		for _, p := range t.tail.vectors.parts[key] {
			if !dropped {
				c.Vectors += int64(p.count(t.vectors)) - p.gone.at(v.rev)
			}
		}
		t.mu.RUnlock()
	}
	for _, s := range v.vecSegs {
		from, to := s.group(key)
		for i := from; i < to && !dropped; i++ {
			c.Vectors += int64(s.parts[i].n) - s.goneAt(i, v.rev)
		}
	}
	return c
}

// Missing implements index.View.
func (v *view) Missing(space, namespace int64, kind index.Kind, limit int, skip func(id int64) bool) (out []int64) {
	c := v.CountVectors(space, namespace, kind)
	left := c.Records - c.Vectors
	if left <= 0 || limit <= 0 {
		return nil
	}
	records := v.records(partKey{namespace, kind})
	vectors := v.vectorIDs(vecKey{space, namespace, kind})
	for left > 0 && len(out) < limit {
		id, ok := records.next()
		if !ok {
			break
		}
		if vectors.has(id) {
			continue
		}
		left--
		if skip == nil || !skip(id) {
			out = append(out, id)
		}
	}
	return out
}

// descending walks the live ids of several parts from the greatest down.
type descending struct{ parts []idWalk }

// idWalk is one part: n ids in ascending order, and which of them are live.
type idWalk struct {
	n    int
	id   func(i int) int64
	live func(i int) bool
}

// skip leaves out what is not live at the end.
func (w *idWalk) skip() {
	for w.n > 0 && !w.live(w.n-1) {
		w.n--
	}
}

func (d *descending) add(w idWalk) {
	if w.skip(); w.n > 0 {
		d.parts = append(d.parts, w)
	}
}

// peek gives the greatest id that is left.
func (d *descending) peek() (id int64, part int, ok bool) {
	for i := range d.parts {
		if w := &d.parts[i]; w.n > 0 {
			if top := w.id(w.n - 1); !ok || top > id {
				id, part, ok = top, i, true
			}
		}
	}
	return id, part, ok
}

func (d *descending) next() (int64, bool) {
	id, part, ok := d.peek()
	if ok {
		d.parts[part].n--
		d.parts[part].skip()
	}
	return id, ok
}

// has says whether id is there, and goes on to what is below it. Ids must be
// asked for in descending order.
func (d *descending) has(id int64) bool {
	found := false
	for i := range d.parts {
		w := &d.parts[i]
		for w.n > 0 && w.id(w.n-1) >= id {
			found = found || w.id(w.n-1) == id
			w.n--
			w.skip()
		}
	}
	return found
}

// records walks the live records of a partition.
func (v *view) records(key partKey) (d descending) {
	for _, s := range v.segs {
		if part, ok := s.partition(key); ok {
			p := s.parts[part]
			d.add(idWalk{int(p.hi - p.lo), func(i int) int64 { return s.id(p.lo + uint32(i)) }, func(i int) bool { return !s.del.has(p.lo + uint32(i)) }})
		}
	}
	for _, t := range v.tails {
		t.mu.RLock()
		if p := t.parts[key]; p != nil {
			d.addTail(p.ids[:p.count(t.covered)], p.deleted, p.sorted, v.rev)
		}
		t.mu.RUnlock()
	}
	return d
}

// vectorIDs walks the records with a live vector in a partition.
func (v *view) vectorIDs(key vecKey) (d descending) {
	if slices.Contains(v.dropped, key.space) {
		return d
	}
	for _, s := range v.vecSegs {
		from, to := s.group(key)
		for part := from; part < to; part++ {
			p := &s.parts[part]
			d.add(idWalk{int(p.n), func(i int) int64 { return p.sortedIDs[i] }, func(i int) bool { return !s.del.has(p.lo + p.row(i)) }})
		}
	}
	for _, t := range v.tails {
		t.mu.RLock()
		for _, p := range t.tail.vectors.parts[key] {
			d.addTail(p.ids[:p.count(t.vectors)], p.deleted, p.sorted, v.rev)
		}
		t.mu.RUnlock()
	}
	return d
}

// addTail adds a tail's ids, sorting them unless they are.
func (d *descending) addTail(ids []int64, deleted []*deleteStamps, sorted bool, rev int64) {
	live := func(i int) bool {
		del := deleted[i/stampChunk][i%stampChunk].Load()
		return del == 0 || del > rev
	}
	if !sorted {
		var kept []int64
		for i, id := range ids {
			if live(i) {
				kept = append(kept, id)
			}
		}
		slices.Sort(kept)
		ids, live = kept, func(int) bool { return true }
	}
	d.add(idWalk{len(ids), func(i int) int64 { return ids[i] }, live})
}
