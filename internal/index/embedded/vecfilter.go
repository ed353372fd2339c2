package embedded

import (
	"math/bits"
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// vecFilter is a filter over the vectors of one kind. Scopes stand beside the
// vectors; what else narrows a search is evaluated over the records and becomes
// a set of ids, once it is known which form is wanted: see list and collect.
type vecFilter struct {
	mode   passMode
	scopes []int64
	count  int // about how many records pass
	total  int // of so many
	// set are the records that pass, with passShown those that do not.
	set idSet
	// scoped says that set was chosen by the scopes already.
	scoped bool
}

type passMode uint8

const (
	passNone  passMode = iota
	passScope          // those of the scopes
	passShown          // those of the scopes that are not hidden for their life
	passSet            // those of set, and of the scopes
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
	f.set.empty()
	*f = vecFilter{mode: mode, scopes: scopes, set: f.set}
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
		return f.inScope(r, row) && !f.set.has(r.ids[row])
	case passSet:
		return f.set.has(r.ids[row]) && (f.scoped || f.inScope(r, row))
	default:
		return false
	}
}

// choose appends those of the rows from..to that pass.
func (f *vecFilter) choose(dst []uint32, r *run, from, to uint32) []uint32 {
	if f.mode != passSet || f.set.bits == nil || !f.scoped {
		for row := from; row < to; row++ {
			if f.pass(r, row) {
				dst = append(dst, row)
			}
		}
		return dst
	}
	bits, base := f.set.bits, f.set.base
	size := uint64(len(bits)) * 64
	for i, id := range r.ids[from:to] {
		if at := uint64(id - base); at < size && bits[at/64]>>(at%64)&1 != 0 {
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

// evaluate works a filter out over the records of a kind, but for its set unless
// that was asked for by ids.
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
	if f.count == 0 {
		f.none()
		return
	}
	switch {
	case len(flt.Tags) > 0 || len(flt.Where) > 0 || len(flt.Threads) > 0 || flt.HasFrom || flt.HasTo, hidden > f.total/hiddenShare:
		f.mode, f.scoped = passSet, true
	case hidden > 0:
		f.hide(k, hidden)
	case f.count == f.total && tails:
		// Tails are taken to pass as a whole, which is good enough to choose a
		// way, but not to leave the test out.
		f.total++
	}
	if q.IDs == nil {
		return
	}
	ids := q.IDs
	switch f.mode {
	case passSet:
		ids = f.among(k, q.IDs)
	case passShown:
		ids = slices.DeleteFunc(slices.Clone(q.IDs), f.set.has)
	}
	f.set.of(ids)
	if f.mode, f.count = passSet, len(ids); f.count == 0 {
		f.none()
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
	if p.filter.list != nil {
		for _, doc := range p.filter.list {
			if !p.deleted(doc) {
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

// addBits sets the bit of every record of a part that passes, and gives their
// number.
func (f *vecFilter) addBits(p *searchPart) (n int) {
	set := f.set.bits
	if p.filter.mode != filterSome || p.seg.del.count > 0 || p.filter.list != nil {
		p.each(func(id int64) {
			f.set.add(id)
			n++
		})
		return n
	}
	// Most of the time would go into reading ids. Where 64 follow each other,
	// which is how records written together are numbered, a word is moved as it
	// is.
	ids := p.seg.ids[p.lo:p.hi]
	for w, b := range p.filter.bits {
		if b == 0 {
			continue
		}
		n += bits.OnesCount64(b)
		part := ids[w*64 : min(w*64+64, len(ids))]
		if at := uint64(part[0] - f.set.base); part[len(part)-1]-part[0] == int64(len(part)-1) && at/64+1 < uint64(len(set)) {
			set[at/64] |= b << (at % 64)
			set[at/64+1] |= b >> (64 - at%64)
			continue
		}
		for ; b != 0; b &= b - 1 {
			f.set.add(part[bits.TrailingZeros64(b)])
		}
	}
	return n
}

// collect makes the set of the records that pass, for testing many rows against
// it. It does nothing with other modes, or when the set is there.
func (f *vecFilter) collect(k *searchKind) {
	if f.mode != passSet || f.set.ready {
		return
	}
	low, span := k.idSpan()
	f.set.reset(low, span, f.count)
	if f.set.bits == nil {
		f.list(k)
		return
	}
	f.count = 0
	for _, p := range k.parts {
		f.count += f.addBits(p)
	}
	if f.set.ready = true; f.count == 0 {
		f.none()
	}
}

// list makes the set of the records that pass as a list, whatever the mode was:
// for looking them up. It does nothing when that is there.
func (f *vecFilter) list(k *searchKind) {
	if f.mode == passNone {
		return
	}
	if f.mode == passSet && f.set.ready {
		f.set.enlist()
		return
	}
	f.set.empty()
	for _, p := range k.parts {
		p.each(f.set.add)
	}
	f.set.done()
	f.mode, f.scoped = passSet, true
	if f.count = len(f.set.list); f.count == 0 {
		f.none()
	}
}

// hide makes the filter pass what lies in the scopes and is not hidden for its
// life, which is about so many records.
func (f *vecFilter) hide(k *searchKind, about int) {
	f.mode = passShown
	low, span := k.idSpan()
	f.set.reset(low, span, about)
	for _, p := range k.parts {
		p.eachHidden(f.set.add)
	}
	f.set.done()
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
	if others := int(p.hi-p.lo) - p.passing(); others <= 2*p.filter.life.entries() && p.filter.mode == filterSome {
		// Hardly anything else keeps records out, and nothing that could pass. In
		// the order of documents their ids are read faster than by time.
		for w, b := range p.filter.bits {
			doc := p.lo + uint32(w*64)
			if b = ^b &^ p.seg.del.word(doc); p.hi-doc < 64 {
				b &= 1<<(p.hi-doc) - 1
			}
			for ; b != 0; b &= b - 1 {
				g(p.id(doc + uint32(bits.TrailingZeros64(b))))
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
