package embedded

import (
	"math/bits"
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// vecFilter is a filter over the vectors of one kind. Scopes stand beside the
// vectors; what else narrows a search is evaluated over the records and becomes
// a set of ids.
type vecFilter struct {
	mode   passMode
	scopes []int64
	count  int // about how many records pass
	total  int // of so many
	ids    []int64
	// With passSet and no ids: the ids from base on, as bits.
	bits []uint64
	base int64
	buf  []uint64 // storage of bits
}

type passMode uint8

const (
	passNone  passMode = iota
	passScope          // those of the scopes
	passIDs            // those of ids, and of the scopes
	passSet            // those of bits
)

// maxBits bounds the range of ids that is kept as bits, 16 MiB of them. Beyond
// it ids are searched for one by one.
const maxBits = 1 << 27

// reset makes the filter pass what lies in scopes.
func (f *vecFilter) reset(mode passMode, scopes []int64) {
	*f = vecFilter{mode: mode, scopes: scopes, buf: f.buf}
}

func (f *vecFilter) none() { f.reset(passNone, nil) }

// all says that every row passes.
func (f *vecFilter) all() bool { return f.mode == passScope && f.count == f.total }

// share is about which part of the records passes.
func (f *vecFilter) share() float64 { return float64(f.count) / float64(max(f.total, 1)) }

// pass says whether a row passes.
func (f *vecFilter) pass(r *run, row uint32) bool {
	switch f.mode {
	case passScope:
		return f.inScope(r, row)
	case passSet:
		at := uint64(r.ids[row] - f.base)
		return at < uint64(len(f.bits))*64 && f.bits[at/64]>>(at%64)&1 != 0
	case passIDs:
		_, ok := slices.BinarySearch(f.ids, r.ids[row])
		return ok && f.inScope(r, row)
	default:
		return false
	}
}

// choose appends those of the rows from..to that pass.
func (f *vecFilter) choose(dst []uint32, r *run, from, to uint32) []uint32 {
	if f.mode != passSet {
		for row := from; row < to; row++ {
			if f.pass(r, row) {
				dst = append(dst, row)
			}
		}
		return dst
	}
	size := uint64(len(f.bits)) * 64
	for i, id := range r.ids[from:to] {
		if at := uint64(id - f.base); at < size && f.bits[at/64]>>(at%64)&1 != 0 {
			dst = append(dst, from+uint32(i))
		}
	}
	return dst
}

// inScope says whether a row's scope is among those asked for.
func (f *vecFilter) inScope(r *run, row uint32) bool {
	scope := int64(r.scopes[row])
	for _, s := range f.scopes {
		if s == scope {
			return true
		}
	}
	return false
}

// evaluate works a filter out over the records of a kind.
func (f *vecFilter) evaluate(q *index.VectorQuery, flt *index.Filter, k *searchKind) {
	f.reset(passScope, flt.Scopes)
	tails := false
	for _, p := range k.parts {
		f.total += int(p.hi - p.lo)
		f.count += p.passing()
		tails = tails || p.tail != nil
	}
	extra := len(flt.Tags) > 0 || len(flt.Where) > 0 || len(flt.Threads) > 0 || flt.HasFrom || flt.HasTo
	switch {
	case f.count == 0:
		f.none()
	case q.IDs != nil:
		f.mode, f.count = passIDs, len(q.IDs)
		f.ids = q.IDs
		if extra {
			f.ids = f.among(k, q.IDs)
			f.count = len(f.ids)
		}
		if f.count == 0 {
			f.none()
		}
	case extra:
		f.collect(k)
	case f.count == f.total && tails:
		// Tails are taken to pass as a whole, which is good enough to choose a
		// way, but not to leave the test out.
		f.total++
	}
}

// passing is how many of a part's documents pass its filter, deleted ones
// included; a tail's all, unless they are known.
func (p *searchPart) passing() int {
	switch p.filter.mode {
	case filterNone:
		return 0
	case filterSome:
		return int(p.filter.n)
	default:
		return int(p.hi - p.lo)
	}
}

// among gives those of ids whose records pass.
func (f *vecFilter) among(k *searchKind, ids []int64) []int64 {
	var out []int64
	for _, id := range ids {
		if p, doc, ok := k.locate(id); ok && p.filter.accept(doc) {
			out = append(out, id)
		}
	}
	return out
}

// each calls g with the id of every record of a part that passes.
func (p *searchPart) each(g func(id int64)) {
	if p.filter.mode != filterSome {
		for doc := p.lo; doc < p.hi; doc++ {
			if p.accept(doc) {
				g(p.id(doc))
			}
		}
		return
	}
	for w, b := range p.filter.bits {
		for ; b != 0; b &= b - 1 {
			if doc := p.lo + uint32(w*64+bits.TrailingZeros64(b)); !p.deleted(doc) {
				g(p.id(doc))
			}
		}
	}
}

// addBits sets the bit of every record of a part that passes.
func (f *vecFilter) addBits(p *searchPart) {
	add := func(id int64) {
		at := uint64(id - f.base)
		f.bits[at/64] |= 1 << (at % 64)
		f.count++
	}
	if p.filter.mode != filterSome || p.seg.del.count > 0 {
		p.each(add)
		return
	}
	// Most of the time would go into reading ids. Where 64 follow each other,
	// which is how records written together are numbered, a word is moved as it
	// is.
	ids := column[int64](p.seg.sec[secIDs])[p.lo:p.hi]
	for w, b := range p.filter.bits {
		if b == 0 {
			continue
		}
		part := ids[w*64 : min(w*64+64, len(ids))]
		if at := uint64(part[0] - f.base); part[len(part)-1]-part[0] == int64(len(part)-1) && at/64+1 < uint64(len(f.bits)) {
			f.bits[at/64] |= b << (at % 64)
			f.bits[at/64+1] |= b >> (64 - at%64)
			f.count += bits.OnesCount64(b)
			continue
		}
		for ; b != 0; b &= b - 1 {
			add(part[bits.TrailingZeros64(b)])
		}
	}
}

// collect turns the records that pass into bits, or into a list when few do or
// their ids lie far apart.
func (f *vecFilter) collect(k *searchKind) {
	low, high := int64(0), int64(-1)
	for _, p := range k.parts {
		lo, hi := p.idRange()
		if high < low {
			low, high = lo, hi
		}
		low, high = min(low, lo), max(high, hi)
	}
	span := uint64(high-low) + 1
	if span > maxBits || uint64(f.count) < span/256 {
		f.list(k)
		if f.mode, f.count = passIDs, len(f.ids); f.count == 0 {
			f.none()
		}
		return
	}
	f.mode, f.base = passSet, low
	words := int((span + 63) / 64)
	f.bits = slices.Grow(f.buf[:0], words)[:words]
	f.buf = f.bits
	clear(f.bits)
	f.count = 0
	for _, p := range k.parts {
		f.addBits(p)
	}
	if f.count == 0 {
		f.none()
	}
}

// list lists the records that pass.
func (f *vecFilter) list(k *searchKind) {
	f.ids = make([]int64, 0, f.count)
	for _, p := range k.parts {
		p.each(func(id int64) { f.ids = append(f.ids, id) })
	}
	slices.Sort(f.ids)
}

// listIDs makes sure that the records that pass are there as a list; it is
// asked for when few do.
func (f *vecFilter) listIDs(k *searchKind) {
	if f.mode != passIDs {
		f.list(k)
	}
}

// idRange gives the least and the greatest id of a part.
func (p *searchPart) idRange() (low, high int64) {
	if p.sorted {
		return p.id(p.lo), p.id(p.hi - 1)
	}
	return slices.Min(p.tail.ids[:p.hi]), slices.Max(p.tail.ids[:p.hi])
}
