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

// idWalk is one part: ids in ascending order, and what says which of them are
// live: a segment's deletes or a tail's stamps; neither: all are.
type idWalk struct {
	ids     []int64
	del     *deleteSet
	lo      uint32   // the document or row of the first id
	rows    []uint32 // of each id, from lo on; nil: one after the other
	deleted []*deleteStamps
	rev     int64
}

func (w *idWalk) live(i int) bool {
	if w.deleted != nil {
		del := w.deleted[i/stampChunk][i%stampChunk].Load()
		return del == 0 || del > w.rev
	}
	if w.del == nil || w.del.count == 0 {
		return true
	}
	if w.rows != nil {
		return !w.del.has(w.lo + w.rows[i])
	}
	return !w.del.has(w.lo + uint32(i))
}

// pop takes the greatest id away, and those below it that are not live.
func (w *idWalk) pop() {
	w.ids = w.ids[:len(w.ids)-1]
	w.skip()
}

// skip takes away what is not live at the end.
func (w *idWalk) skip() {
	for len(w.ids) > 0 && !w.live(len(w.ids)-1) {
		w.ids = w.ids[:len(w.ids)-1]
	}
}

func (w *idWalk) top() int64 { return w.ids[len(w.ids)-1] }

func (d *descending) add(w idWalk) {
	if w.skip(); len(w.ids) > 0 {
		d.parts = append(d.parts, w)
	}
}

// next gives the greatest id that is left and goes on behind it.
func (d *descending) next() (id int64, ok bool) {
	part := 0
	for i := range d.parts {
		if w := &d.parts[i]; len(w.ids) > 0 && (!ok || w.top() > id) {
			id, part, ok = w.top(), i, true
		}
	}
	if ok {
		d.parts[part].pop()
	}
	return id, ok
}

// has says whether id is there, and goes on to what is below it. Ids must be
// asked for in descending order.
func (d *descending) has(id int64) bool {
	found := false
	for i := range d.parts {
		for w := &d.parts[i]; len(w.ids) > 0 && w.top() >= id; w.pop() {
			found = found || w.top() == id
		}
	}
	return found
}

// records walks the live records of a partition.
func (v *view) records(key partKey) (d descending) {
	for _, s := range v.segs {
		if part, ok := s.partition(key); ok {
			p := s.parts[part]
			d.add(idWalk{ids: s.ids[p.lo:p.hi], del: s.del, lo: p.lo})
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
			d.add(idWalk{ids: p.sortedIDs, del: s.del, lo: p.lo, rows: p.sorted})
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

// addTail adds a tail's ids, sorting those that are live unless all are sorted.
func (d *descending) addTail(ids []int64, deleted []*deleteStamps, sorted bool, rev int64) {
	w := idWalk{ids: ids, deleted: deleted, rev: rev}
	if !sorted {
		var live []int64
		for i, id := range ids {
			if w.live(i) {
				live = append(live, id)
			}
		}
		slices.Sort(live)
		w = idWalk{ids: live}
	}
	d.add(w)
}
