package embedded

import (
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// vecRemoval and vecSegRemoval say where a vector was deleted, for Discard.
type vecRemoval struct {
	t  *tail
	at vecPlace
}

type vecSegRemoval struct {
	s   *vecSegment
	row uint32
}

// vecFound is a record's live vector in one space: in a tail or, with t nil, in
// a segment.
type vecFound struct {
	space int64
	t     *tail
	at    vecPlace
	seg   int // in Index.vecSegs
	part  int
	row   uint32 // of the partition
}

// findVectors gives the live vectors of a record: in one space, or with space 0
// in all.
func (ix *Index) findVectors(dst []vecFound, space int64, c *index.Change) []vecFound {
	for _, t := range ix.tails {
		if space != 0 {
			if at, ok := t.vectors.places[space][c.ID]; ok {
				return append(dst, vecFound{space: space, t: t, at: at})
			}
			continue
		}
		for sp, places := range t.vectors.places {
			if at, ok := places[c.ID]; ok {
				dst = append(dst, vecFound{space: sp, t: t, at: at})
			}
		}
	}
	for i := range ix.vecSegs {
		v := &ix.vecSegs[i]
		for _, sp := range v.spaces {
			if space != 0 && sp != space {
				continue
			}
			from, to := v.group(vecKey{sp, c.Namespace, c.Kind})
			for part := from; part < to; part++ {
				p := &v.parts[part]
				if row, ok := p.find(c.ID, v.del); ok {
					dst = append(dst, vecFound{space: sp, seg: i, part: part, row: row})
				}
			}
		}
	}
	return dst
}

// removeVector deletes a found vector from rev on.
func (ix *Index) removeVector(f *vecFound, rev, oldest int64) {
	u := &ix.undo
	if f.t != nil {
		f.t.removeVector(f.at, rev, oldest)
		u.vecGone = append(u.vecGone, vecRemoval{f.t, f.at})
		return
	}
	v := &ix.vecSegs[f.seg]
	if v.del == u.vecSegs[f.seg].del {
		v.del = v.del.clone()
	}
	row := v.parts[f.part].lo + f.row
	v.del.add(row)
	v.countGone(row, rev, rev, oldest)
	u.vecSegGone = append(u.vecSegGone, vecSegRemoval{v.vecSegment, row})
}

// stageVector takes one change of a vector.
func (ix *Index) stageVector(c *index.Change, rev, oldest int64) {
	v := c.Vector
	ix.found = ix.findVectors(ix.found[:0], v.Space, c)
	for i := range ix.found {
		ix.removeVector(&ix.found[i], rev, oldest)
	}
	if len(v.Values) == 0 || slices.Contains(ix.dropped, v.Space) {
		return
	}
	row := encodeRow(ix.rowBuf, v)
	if !row.form.valid() {
		return
	}
	row.id, ix.rowBuf = c.ID, row.codes[:0]
	ix.tails[len(ix.tails)-1].addVector(vecKey{v.Space, c.Namespace, c.Kind}, row)
}

// stageVectorsOf follows a change of a record: its vectors go with it, or into
// its new scope.
func (ix *Index) stageVectorsOf(c *index.Change, rev, oldest int64) {
	ix.found = ix.findVectors(ix.found[:0], 0, c)
	for i := range ix.found {
		f := &ix.found[i]
		if c.Doc == nil {
			ix.removeVector(f, rev, oldest)
			continue
		}
		row := ix.vectorRow(f)
		if scope := uint32(c.Doc.Document.Scope); row.scope != scope {
			row.scope, row.id = scope, c.ID
			// Adding may move what a tail's row lies in.
			n := len(row.codes)
			ix.rowBuf = append(append(ix.rowBuf[:0], row.codes...), row.fine...)
			row.codes, row.fine = ix.rowBuf[:n], ix.rowBuf[n:]
			ix.removeVector(f, rev, oldest)
			ix.tails[len(ix.tails)-1].addVector(vecKey{f.space, c.Namespace, c.Kind}, row)
		}
	}
}

// vectorRow reads a found vector. It panics when its file is damaged, which
// makes the caller give the index up.
func (ix *Index) vectorRow(f *vecFound) vecRow {
	if f.t != nil {
		p := f.at.part
		return vecRow{scope: p.scopes[f.at.row], form: p.form, scale: p.scales[f.at.row], codes: p.rowCodes(f.at.row), fine: p.rowFine(f.at.row)}
	}
	v := &ix.vecSegs[f.seg]
	p := &v.parts[f.part]
	codes, err := v.readCodes(p, f.row, 1)
	if err != nil {
		panic(err)
	}
	fine, err := v.readFine(p, f.row)
	if err != nil {
		panic(err)
	}
	return vecRow{scope: p.scopes[f.row], form: p.form, scale: p.scales[f.row], codes: codes, fine: fine}
}

// discardVectors takes the staged changes of vectors back.
func (ix *Index) discardVectors() {
	u := &ix.undo
	cur := ix.tails[len(ix.tails)-1]
	for i := len(u.vecGone) - 1; i >= 0; i-- {
		r := u.vecGone[i]
		rows := r.t.vectors.rows
		if r.t == cur {
			rows = u.vecRows
		}
		r.t.restoreVector(r.at, u.rev, rows)
	}
	cur.truncateVectors(u.vecRows)
	for _, r := range u.vecSegGone {
		r.s.uncountGone(r.row, u.rev)
	}
	ix.vecSegs = u.vecSegs
}

// DropSpace implements index.Index.
func (ix *Index) DropSpace(space int64) {
	ix.write.Lock()
	defer ix.write.Unlock()
	if slices.Contains(ix.dropped, space) {
		return
	}
	ix.dropped = append(slices.Clip(ix.dropped), space)
	ix.forgetting = true
	ix.install(ix.newSnapshot(ix.cur.rev))
	ix.wakeMerge()
}
