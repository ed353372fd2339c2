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
	// With passShown: the records that are hidden for their life.
	hidden idSet
}

type passMode uint8

const (
	passNone  passMode = iota
	passScope          // those of the scopes
	passShown          // those of the scopes that are not in hidden
	passIDs            // those of ids, and of the scopes
	passSet            // those of bits
)

const (
	// maxBits bounds the range of ids that is kept as bits, 16 MiB of them. Beyond
	// it ids are searched for one by one.
	maxBits = 1 << 27
	// sparseSpan is how many ids there may be for each that is in a set before it
	// is kept as a list.
	sparseSpan = 256
	// hiddenShare: when more than one record in this many is hidden for its life,
	// it is the others that become a set.
	hiddenShare = 64
	// tailHides is the share of a tail's records, one in this many, that is taken
	// to be hidden when some may be.
	tailHides = 256
)

// reset makes the filter pass what lies in scopes.
func (f *vecFilter) reset(mode passMode, scopes []int64) {
	*f = vecFilter{mode: mode, scopes: scopes, buf: f.buf, hidden: idSet{buf: f.hidden.buf, list: f.hidden.list[:0]}}
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
	case passShown:
		return f.inScope(r, row) && !f.hidden.has(r.ids[row])
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
	tails, hidden := false, 0
	for _, p := range k.parts {
		f.total += int(p.hi - p.lo)
		f.count += p.passing()
		tails = tails || p.tail != nil
		hidden += p.filter.life.entries()
		if p.tf.hides {
			hidden += 1 + int(p.hi)/tailHides
		}
	}
	extra := len(flt.Tags) > 0 || len(flt.Where) > 0 || len(flt.Threads) > 0 || flt.HasFrom || flt.HasTo
	if hidden > f.total/hiddenShare {
		extra = true
	} else if hidden > 0 && !extra {
		f.hide(k, hidden)
	}
	switch {
	case f.count == 0:
		f.none()
	case q.IDs != nil:
		f.ids = q.IDs
		switch {
		case extra:
			f.ids = f.among(k, q.IDs)
		case f.mode == passShown:
			f.ids = slices.DeleteFunc(slices.Clone(q.IDs), f.hidden.has)
		}
		f.mode, f.count = passIDs, len(f.ids)
		if f.count == 0 {
			f.none()
		}
	case extra:
		f.collect(k)
	case f.mode == passScope && f.count == f.total && tails:
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
	low, span := k.idSpan()
	if span > maxBits || uint64(f.count) < span/sparseSpan {
		f.list(k)
		if f.mode, f.count = passIDs, len(f.ids); f.count == 0 {
			f.none()
		}
		return
	}
	f.mode, f.base = passSet, low
	f.bits = zeroBits(f.buf, span)
	f.buf = f.bits
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

// hide makes the filter pass what lies in the scopes and is not hidden for its
// life, which is about so many records.
func (f *vecFilter) hide(k *searchKind, about int) {
	f.mode = passShown
	low, span := k.idSpan()
	f.hidden.reset(low, span, about)
	for _, p := range k.parts {
		p.eachHidden(f.hidden.add)
	}
	f.hidden.done()
}

// eachHidden calls g with the id of every live record of a part that is hidden
// for its life.
func (p *searchPart) eachHidden(g func(id int64)) {
	if p.tail != nil {
		for doc := p.lo; doc < p.hi && p.tf.hides; doc++ {
			if !p.tail.lives.shows(doc, p.tf.f) && !p.deleted(doc) {
				g(p.id(doc))
			}
		}
		return
	}
	p.seg.eachHidden(&p.filter.life, func(doc uint32) {
		if !p.deleted(doc) {
			g(p.id(doc))
		}
	})
}

// idSpan gives the least id of a kind's parts and how far it is from there to
// behind the greatest.
func (k *searchKind) idSpan() (low int64, span uint64) {
	high := int64(-1)
	for _, p := range k.parts {
		lo, hi := p.idRange()
		if high < low {
			low, high = lo, hi
		}
		low, high = min(low, lo), max(high, hi)
	}
	return low, uint64(high-low) + 1
}

// idRange gives the least and the greatest id of a part.
func (p *searchPart) idRange() (low, high int64) {
	if p.sorted {
		return p.id(p.lo), p.id(p.hi - 1)
	}
	return slices.Min(p.tail.ids[:p.hi]), slices.Max(p.tail.ids[:p.hi])
}
