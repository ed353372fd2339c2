package embedded

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// vecTail holds the vectors of a tail, under the tail's lock. Like its documents
// they are only ever added; deletes carry their revision.
type vecTail struct {
	parts map[vecKey][]*vecTailPart
	rows  uint32 // in all partitions
	bytes int
	// places says where a record's live vector is, by space and id. It belongs
	// to the writer.
	places map[int64]map[int64]vecPlace
}

// vecTailPart is a partition's share of a tail, with row numbers of its own.
// Slices are by row.
type vecTailPart struct {
	key     vecKey
	form    rowForm
	seqs    []uint32 // number in the whole tail: what a snapshot covers
	ids     []int64
	scopes  []uint32
	scales  []float32
	codes   []byte // as in a file
	fine    []byte // likewise
	deleted []*deleteStamps
	gone    history
	sorted  bool // ids ascend
}

type vecPlace struct {
	part *vecTailPart
	row  uint32
}

func (p *vecTailPart) stamp(row uint32) *stampCell { return &p.deleted[row/stampChunk][row%stampChunk] }

func (p *vecTailPart) rowCodes(row uint32) []byte {
	n := p.form.stride()
	return p.codes[int(row)*n : int(row+1)*n]
}

func (p *vecTailPart) rowFine(row uint32) []byte {
	n := p.form.fineStride()
	return p.fine[int(row)*n : int(row+1)*n]
}

// count is how many of the partition's rows a snapshot of `covered` rows has.
func (p *vecTailPart) count(covered uint32) uint32 {
	return uint32(sort.Search(len(p.seqs), func(i int) bool { return p.seqs[i] >= covered }))
}

// vecRow is a vector in the form in which it is stored.
type vecRow struct {
	id    int64
	scope uint32
	form  rowForm
	scale float32
	codes []byte
	fine  []byte // what the codes leave of it, if they do
}

// encodeRow brings a vector into the form that it is stored in, on buf.
func encodeRow(buf []byte, c *index.VectorChange) (row vecRow) {
	row.form = rowForm{c.Encoding, uint32(len(c.Values))}
	row.scope, row.scale = uint32(c.Scope), 1
	stride := row.form.stride()
	buf = slices.Grow(buf[:0], stride+row.form.fineStride())
	if c.Encoding == index.EncodingF32 {
		for _, v := range c.Values {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
	} else {
		buf = buf[:2*stride]
		clear(buf)
		codes, fine := codesOf(buf[:row.form.dim]), codesOf(buf[stride:][:row.form.dim])
		row.scale = vec.Quantize(codes, c.Values)
		vec.Refine(fine, codes, row.scale, c.Values)
		row.codes, row.fine = buf[:stride], buf[stride:]
		return row
	}
	row.codes = append(buf, make([]byte, stride-len(buf))...)
	return row
}

// addVector appends a row. It is seen by snapshots that cover its number.
func (t *tail) addVector(key vecKey, r vecRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := &t.vectors
	i := slices.IndexFunc(v.parts[key], func(p *vecTailPart) bool { return p.form == r.form })
	if i < 0 {
		i = len(v.parts[key])
		if v.parts == nil {
			v.parts = map[vecKey][]*vecTailPart{}
		}
		v.parts[key] = append(v.parts[key], &vecTailPart{key: key, form: r.form, sorted: true})
	}
	p := v.parts[key][i]
	row := uint32(len(p.ids))
	if row > 0 && p.ids[row-1] >= r.id {
		p.sorted = false
	}
	p.seqs = append(p.seqs, v.rows)
	p.ids = append(p.ids, r.id)
	p.scopes = append(p.scopes, r.scope)
	p.scales = append(p.scales, r.scale)
	p.codes, p.fine = append(p.codes, r.codes...), append(p.fine, r.fine...)
	if row%stampChunk == 0 {
		p.deleted = append(p.deleted, new(deleteStamps))
	}
	p.stamp(row).Store(0)
	if v.places == nil {
		v.places = map[int64]map[int64]vecPlace{}
	}
	if v.places[key.space] == nil {
		v.places[key.space] = map[int64]vecPlace{}
	}
	v.places[key.space][r.id] = vecPlace{p, row}
	v.rows++
	v.bytes += len(r.codes) + len(r.fine) + 40
}

// removeVector marks a live row as deleted from rev on; oldest is as in
// history.add.
func (t *tail) removeVector(at vecPlace, rev, oldest int64) {
	delete(t.vectors.places[at.part.key.space], at.part.ids[at.row])
	t.mu.Lock()
	defer t.mu.Unlock()
	at.part.stamp(at.row).Store(rev)
	at.part.gone = at.part.gone.add(rev, 1, oldest)
}

// restoreVector undoes removeVector. A row that is about to be cut off again
// does not become its record's live one.
func (t *tail) restoreVector(at vecPlace, rev int64, rows uint32) {
	if at.part.seqs[at.row] < rows {
		t.vectors.places[at.part.key.space][at.part.ids[at.row]] = at
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at.part.stamp(at.row).Store(0)
	at.part.gone = at.part.gone.take(rev, 1)
}

// truncateVectors cuts the tail back to its first rows rows. No snapshot may
// cover the others.
func (t *tail) truncateVectors(rows uint32) {
	v := &t.vectors
	if v.rows == rows {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v.rows = rows
	for _, group := range v.parts {
		for _, p := range group {
			n := p.count(rows)
			places := v.places[p.key.space]
			for row := n; row < uint32(len(p.ids)); row++ {
				if places[p.ids[row]] == (vecPlace{p, row}) {
					delete(places, p.ids[row])
				}
			}
			p.seqs, p.ids, p.scopes, p.scales = p.seqs[:n], p.ids[:n], p.scopes[:n], p.scales[:n]
			p.codes, p.fine = p.codes[:int(n)*p.form.stride()], p.fine[:int(n)*p.form.fineStride()]
			p.deleted = p.deleted[:(n+stampChunk-1)/stampChunk]
		}
	}
}

// liveVectors counts the rows of a snapshot that are in no space of dropped.
func (t *tail) liveVectors(covered uint32, rev int64, dropped []int64) (n int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, group := range t.vectors.parts {
		if slices.Contains(dropped, key.space) {
			continue
		}
		for _, p := range group {
			n += int64(p.count(covered)) - p.gone.at(rev)
		}
	}
	return n
}

// vecRows gives a frozen tail's rows that are live at rev and in no space of
// dropped, in a segment's order, and where each comes from.
func (t *tail) vecRows(rev int64, dropped []int64) (parts []vecRows, places []vecPlace) {
	var all []*vecTailPart
	for key, group := range t.vectors.parts {
		if !slices.Contains(dropped, key.space) {
			all = append(all, group...)
		}
	}
	slices.SortFunc(all, func(a, b *vecTailPart) int {
		if c := a.key.compare(b.key); c != 0 {
			return c
		}
		return a.form.compare(b.form)
	})
	for _, p := range all {
		lo := len(places)
		for row := range uint32(len(p.ids)) {
			if del := p.stamp(row).Load(); del == 0 || del > rev {
				places = append(places, vecPlace{p, row})
			}
		}
		mine := places[lo:]
		if len(mine) == 0 {
			continue
		}
		if !p.sorted {
			slices.SortFunc(mine, func(a, b vecPlace) int { return cmpInt(p.ids[a.row] < p.ids[b.row]) })
		}
		r := vecRows{key: p.key, form: p.form, ids: make([]int64, len(mine)), scopes: make([]uint32, len(mine)), scales: make([]float32, len(mine))}
		for i, at := range mine {
			r.ids[i], r.scopes[i], r.scales[i] = p.ids[at.row], p.scopes[at.row], p.scales[at.row]
		}
		r.row = func(i int) ([]byte, error) { return p.rowCodes(mine[i].row), nil }
		r.fine = func(i int) ([]byte, error) { return p.rowFine(mine[i].row), nil }
		parts = append(parts, r)
	}
	return parts, places
}
