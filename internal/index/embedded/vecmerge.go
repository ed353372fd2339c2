package embedded

import (
	"cmp"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

const (
	// vecFanIn is how many vector segments of one tier make a segment of the
	// next; vecTierBase is the size of the lowest tier in rows. Fewer segments
	// than of text are worth more merging: each is probed on its own.
	vecFanIn    = 4
	vecTierBase = 2000
)

// vecTier is a vector segment's size class: each holds four times the last.
func vecTier(rows int64) int {
	if rows < vecTierBase {
		return 0
	}
	return 1 + int(math.Log(float64(rows)/vecTierBase)/math.Log(vecFanIn))
}

// pickVecMerge chooses vector segments to merge or to write anew, or none.
func (ix *Index) pickVecMerge(snap *snapshot) []vecSegView {
	tiers := map[int][]vecSegView{}
	for _, v := range snap.vecSegs {
		live := v.live(snap.dropped)
		if live == 0 && len(v.lateDeletes(ix.checkpointed.Load())) > 0 {
			continue // its rows have to wait for the next checkpoint
		}
		if gone := int64(v.rows) - live; gone > 0 && float64(gone) >= maxDeletedShare*float64(v.rows) &&
			int64(len(v.lateDeletes(ix.checkpointed.Load()))) < gone/2 {
			return []vecSegView{v}
		}
		tiers[vecTier(live)] = append(tiers[vecTier(live)], v)
	}
	for t := range 24 {
		if len(tiers[t]) >= vecFanIn {
			return tiers[t]
		}
	}
	for _, v := range snap.vecSegs {
		if slices.ContainsFunc(v.parts, func(p vecPart) bool { return p.ends == nil && int(p.n) >= ix.opts.MinLists }) {
			return []vecSegView{v}
		}
	}
	return nil
}

// vecMerging is the state of one merge of vector segments.
type vecMerging struct {
	ix    *Index
	in    []vecSegView
	late  []map[uint32]bool // per segment: rows that no checkpoint takes out yet
	place [][]uint32        // per segment: row -> row of the new segment, or none
	rows  []vecRows
	n     uint32
}

// mergeRow is a row of segment seg of the merge, counted from its partition.
type mergeRow struct {
	id   int64
	seg  uint32
	row  uint32
	part *vecPart
}

// mergeVectors writes the live rows of some vector segments as one and puts it
// in their place. The caller holds a snapshot with them.
func (ix *Index) mergeVectors(in []vecSegView, dropped []int64) error {
	m := &vecMerging{ix: ix, in: in, late: make([]map[uint32]bool, len(in)), place: make([][]uint32, len(in))}
	covered := ix.checkpointed.Load()
	for i, v := range in {
		m.late[i] = map[uint32]bool{}
		for _, d := range v.lateDeletes(covered) {
			m.late[i][d.row] = true
		}
		m.place[i] = make([]uint32, v.rows)
		for row := range m.place[i] {
			m.place[i][row] = none
		}
	}
	if err := m.gather(dropped); err != nil {
		return err
	}
	out, err := ix.newVecSegment(m.rows)
	if err != nil {
		return err
	}
	ix.write.Lock()
	defer ix.write.Unlock()
	var segs []vecSegView
	var v vecSegView
	if out != nil {
		v = vecSegView{out, newDeleteSet(out.rows)}
	}
	for _, s := range ix.vecSegs {
		i := slices.IndexFunc(in, func(o vecSegView) bool { return o.vecSegment == s.vecSegment })
		if i < 0 {
			segs = append(segs, s)
			continue
		}
		// What was deleted since the merge began, or is not yet covered, is in
		// the new segment.
		revs := map[uint32]int64{}
		for _, d := range s.lateDeletes(0) {
			revs[d.row] = d.rev
		}
		s.del.each(nil, func(row uint32) {
			if to := m.place[i][row]; to != none {
				v.markDeleted(to, revs[row], ix.cur.rev)
			}
		})
		ix.obsolete = append(ix.obsolete, s.mappedFile)
	}
	if out != nil {
		segs = append(segs, v)
	}
	ix.vecSegs = segs
	ix.install(ix.newSnapshot(ix.cur.rev))
	return nil
}

// gather lays out the new segment, partition by partition.
func (m *vecMerging) gather(dropped []int64) error {
	type name struct {
		key  vecKey
		form rowForm
	}
	parts := map[name][]mergeRow{}
	var order []name
	for seg, v := range m.in {
		for i := range v.parts {
			p := &v.parts[i]
			if slices.Contains(dropped, p.key.space) {
				continue
			}
			rows := parts[name{p.key, p.form}]
			for row := range p.n {
				if at := p.lo + row; !v.del.has(at) || m.late[seg][at] {
					rows = append(rows, mergeRow{p.ids[row], uint32(seg), row, p})
				}
			}
			if len(rows) > 0 && parts[name{p.key, p.form}] == nil {
				order = append(order, name{p.key, p.form})
			}
			parts[name{p.key, p.form}] = rows
		}
	}
	slices.SortFunc(order, func(a, b name) int {
		if c := a.key.compare(b.key); c != 0 {
			return c
		}
		return a.form.compare(b.form)
	})
	for _, k := range order {
		rows := parts[k]
		delete(parts, k)
		// A record whose scope changed may be there twice, once deleted.
		slices.SortFunc(rows, func(a, b mergeRow) int {
			if a.id != b.id {
				return cmp.Compare(a.id, b.id)
			}
			return cmp.Compare(a.seg, b.seg)
		})
		if err := m.add(k.key, k.form, rows); err != nil {
			return err
		}
	}
	return nil
}

// add lays out one partition of the new segment from its rows by ascending id.
func (m *vecMerging) add(key vecKey, form rowForm, rows []mergeRow) error {
	var lists *vecLists
	if len(rows) >= m.ix.opts.MinLists {
		var err error
		if lists, rows, err = m.divide(form, rows); err != nil {
			return err
		}
	}
	r := vecRows{key: key, form: form, lists: lists, ids: make([]int64, len(rows)), scopes: make([]uint32, len(rows)), scales: make([]float32, len(rows))}
	for i, at := range rows {
		r.ids[i], r.scopes[i], r.scales[i] = at.id, at.part.scopes[at.row], at.part.scales[at.row]
		m.place[at.seg][at.part.lo+at.row] = m.n + uint32(i)
	}
	m.n += uint32(len(rows))
	r.row = func(i int) ([]byte, error) { return m.codes(rows[i]) }
	r.fine = func(i int) ([]byte, error) { return m.in[rows[i].seg].readFine(rows[i].part, rows[i].row) }
	m.rows = append(m.rows, r)
	return nil
}

func (m *vecMerging) codes(at mergeRow) ([]byte, error) {
	return m.in[at.seg].readCodes(at.part, at.row, 1)
}

const (
	// trainRows bounds the sample that centroids are found from, and trainShare
	// is how many rows of it each list gets if there are as many.
	trainRows  = 30_000
	trainShare = 32
	trainTurns = 6
	// regrow and reshrink are how much a partition may grow or shrink before its
	// centroids are found anew.
	regrow   = 2
	reshrink = 4
)

// divide finds lists for a partition and gives its rows in their order: list by
// list, each by ascending id. It reads the rows twice, from the files, and never
// holds them all.
func (m *vecMerging) divide(form rowForm, rows []mergeRow) (*vecLists, []mergeRow, error) {
	l := m.inherited(rows)
	if l == nil {
		var err error
		if l, err = m.train(form, rows); err != nil {
			return nil, nil, err
		}
	}
	of := make([]uint32, len(rows))
	stride := form.codeStride()
	const block = 64
	codes := make([]int8, block*stride)
	q := rowReader{form}
	for i := 0; i < len(rows); i += block {
		if m.ix.quitting() {
			return nil, nil, errNothing
		}
		end := min(i+block, len(rows))
		for k, at := range rows[i:end] {
			row, err := m.codes(at)
			if err != nil {
				return nil, nil, err
			}
			q.codes(codes[k*stride:(k+1)*stride], row)
		}
		vec.AssignInt8(codes, stride, int(form.dim), l.centroids, l.weights, of[i:end])
	}
	// A counting sort keeps each list in the order of the ids.
	next := make([]uint32, len(l.weights))
	for _, list := range of {
		next[list]++
	}
	var sum uint32
	l.ends = make([]uint32, len(l.weights))
	for i, n := range next {
		next[i] = sum
		sum += n
		l.ends[i] = sum
	}
	out := make([]mergeRow, len(rows))
	l.sorted = make([]uint32, len(rows))
	for i, list := range of {
		l.sorted[i] = next[list]
		out[next[list]] = rows[i]
		next[list]++
	}
	return l, out, nil
}

// inherited gives the centroids of the largest partition that has some, unless
// there are too few or too many of them by now.
func (m *vecMerging) inherited(rows []mergeRow) *vecLists {
	var best *vecPart
	for i := range rows {
		if p := rows[i].part; p.ends != nil && (best == nil || p.trained > best.trained) {
			best = p
		}
	}
	if best == nil || len(rows) >= regrow*int(best.trained) || len(rows)*reshrink < int(best.trained) {
		return nil
	}
	return &vecLists{weights: best.weights, centroids: best.centroids, trained: best.trained}
}

// train finds centroids from a sample of rows that lie evenly among the ids.
func (m *vecMerging) train(form rowForm, rows []mergeRow) (*vecLists, error) {
	k := vec.Lists(len(rows))
	n := min(len(rows), trainRows, trainShare*k)
	dim := int(form.dim)
	points := make([]float32, 0, n*dim)
	q := rowReader{form}
	for i := range n {
		row, err := m.codes(rows[i*len(rows)/n])
		if err != nil {
			return nil, err
		}
		at := len(points)
		points = q.floats(points, row)
		if _, ok := vec.Normalize(points[at:], points[at:]); !ok {
			points = points[:at] // a zero vector has no direction
		}
	}
	n = len(points) / dim
	l := &vecLists{trained: uint32(len(rows))}
	stride := form.codeStride()
	if n == 0 {
		l.weights, l.centroids = make([]float32, 1), make([]int8, stride)
		return l, nil
	}
	centroids := vec.KMeans(points, n, dim, k, trainTurns, 1, m.ix.quitting)
	if centroids == nil {
		return nil, errNothing
	}
	l.weights = make([]float32, len(centroids)/dim)
	l.centroids = make([]int8, len(l.weights)*stride)
	vec.QuantizeRows(l.centroids, stride, l.weights, centroids, dim)
	return l, nil
}

// rowReader reads rows of either encoding as codes or as numbers.
type rowReader struct{ form rowForm }

// codes writes a row's int8 codes to dst; their scale changes no list.
func (q rowReader) codes(dst []int8, row []byte) {
	if q.form.encoding == index.EncodingSQ8 {
		copy(dst, codesOf(row))
		return
	}
	vec.Quantize(dst[:q.form.dim], column[float32](row)[:q.form.dim])
}

// floats appends a row as numbers, up to its scale.
func (q rowReader) floats(dst []float32, row []byte) []float32 {
	if q.form.encoding == index.EncodingF32 {
		return append(dst, column[float32](row)[:q.form.dim]...)
	}
	for _, c := range codesOf(row)[:q.form.dim] {
		dst = append(dst, float32(c))
	}
	return dst
}
