package embedded

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/loci-memory/loci/internal/index"
)

// docFilter is a filter evaluated over a partition of a segment: the documents
// that may be hits, deleted ones not yet taken out.
type docFilter struct {
	mode filterMode
	lo   uint32
	bits []uint64 // with filterSome: the documents, from lo on
	list []uint32 // with filterSome: the same, ascending, when they are few
	n    uint32   // with filterSome: how many they are
	life hiding   // what of them was taken out for its life; unless filterNone
	tail *tailFilter
}

type filterMode uint8

const (
	filterAll filterMode = iota
	filterNone
	filterSome
	filterTail // ask tail, document by document
)

// sparseShare is how few documents of a partition (one in this many) a filter
// leaves to be listed as well.
const sparseShare = 32

func (f *docFilter) accept(doc uint32) bool {
	switch f.mode {
	case filterAll:
		return true
	case filterSome:
		return f.has(doc)
	case filterTail:
		return f.tail.accept(doc)
	default:
		return false
	}
}

func (f *docFilter) has(doc uint32) bool {
	doc -= f.lo
	return f.bits[doc>>6]&(1<<(doc&63)) != 0
}

// window are the bits of documents w..end; w is a multiple of 64 from lo.
func (f *docFilter) window(w, end uint32) []uint64 {
	return f.bits[(w-f.lo)/64 : (end-f.lo+63)/64]
}

// touches says whether any document of w..end may pass.
func (f *docFilter) touches(w, end uint32) bool {
	if f.mode != filterSome {
		return f.mode != filterNone
	}
	for _, b := range f.window(w, end) {
		if b != 0 {
			return true
		}
	}
	return false
}

// intersect takes out of set, which stands for w..end, what does not pass, and
// gives the number that is left.
func (f *docFilter) intersect(w, end uint32, set *[windowDocs / 64]uint64) (n int) {
	for i, b := range f.window(w, end) {
		set[i] &= b
		n += bits.OnesCount64(set[i])
	}
	return n
}

// filterBuffers are the storage of one evaluated filter.
type filterBuffers struct {
	bits, tmp []uint64
	list      []uint32
}

// bitmap gives an attribute's documents.
func (s *segment) bitmap(e dictEntry) *roaring.Bitmap {
	data := s.sec[secAttrDocs][e.post:]
	bm := roaring.New()
	if e.df <= rawListMax {
		for i := range e.df {
			bm.Add(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return bm
	}
	if _, err := bm.FromBuffer(data); err != nil {
		// The checksum was right when the file was opened.
		panic(errDamaged)
	}
	return bm
}

// attrExact gives the documents of one attribute key; nil when there are none.
func (s *segment) attrExact(key []byte) *roaring.Bitmap {
	e, ok := s.attrEntry(key)
	if !ok {
		return nil
	}
	return s.bitmap(e)
}

// attrEntry finds one attribute key.
func (s *segment) attrEntry(key []byte) (e dictEntry, ok bool) {
	i := s.findAttr(key)
	if i == s.numAttrs() {
		return e, false
	}
	k, e := s.attr(i)
	return e, bytes.Equal(k, key)
}

// inScopes gives the documents of some scopes and how many of them lie in lo..hi;
// nil when those are all or none. Scopes share no documents, so that counting them
// mostly is enough.
func (s *segment) inScopes(scopes []int64, lo, hi uint32) (*roaring.Bitmap, uint32) {
	var entries []dictEntry
	total := uint32(0)
	key := make([]byte, 0, 8)
	for i, scope := range scopes {
		if slices.Contains(scopes[:i], scope) {
			continue
		}
		if e, ok := s.attrEntry(scopeKey(key, uint32(scope))); ok {
			entries = append(entries, e)
			total += e.df
		}
	}
	if total == 0 || total == s.numDocs {
		return nil, min(total, hi-lo)
	}
	all := make([]*roaring.Bitmap, len(entries))
	n := uint32(0)
	for i, e := range entries {
		all[i] = s.bitmap(e)
		n += uint32(all[i].CardinalityInRange(uint64(lo), uint64(hi)))
	}
	switch {
	case n == 0 || n == hi-lo:
		return nil, n
	case len(all) == 1:
		return all[0], n
	default:
		return roaring.FastOr(all...), n
	}
}

// segmentFilter evaluates f over a partition of a segment, in buf.
func segmentFilter(s *segment, part int, f *index.Filter, buf *filterBuffers) docFilter {
	p := &s.parts[part]
	size := int(p.hi-p.lo+63) / 64
	narrowed := false
	narrow := func(bm *roaring.Bitmap) {
		dst := &buf.bits
		if narrowed {
			dst = &buf.tmp
		}
		*dst = slices.Grow((*dst)[:0], size)[:size]
		clear(*dst)
		dense(bm, p.lo, p.hi, s.numDocs, *dst)
		if narrowed {
			for i, w := range buf.tmp {
				buf.bits[i] &= w
			}
		}
		narrowed = true
	}
	key := make([]byte, 0, 64)
	switch scopes, n := s.inScopes(f.Scopes, p.lo, p.hi); {
	case n == 0:
		return docFilter{mode: filterNone}
	case scopes != nil:
		narrow(scopes)
	}
	for _, t := range f.Tags {
		bm := s.attrExact(tagKey(key[:0], uint32(t)))
		if bm == nil {
			return docFilter{mode: filterNone}
		}
		narrow(bm)
	}
	if len(f.Threads) > 0 {
		bm := roaring.New()
		for _, thread := range f.Threads {
			if thread>>32 != 0 {
				continue // no column holds it
			}
			n, doc := s.threadDocs(part, uint32(thread))
			for i := range n {
				bm.Add(doc(i))
			}
		}
		narrow(bm)
	}
	for _, c := range f.Where {
		bm := s.where(c, p.lo, p.hi)
		if bm == nil {
			return docFilter{mode: filterNone}
		}
		narrow(bm)
	}
	if f.HasFrom || f.HasTo {
		narrow(s.createdWithin(f, p.lo, p.hi))
	}
	life := s.hides(part, f)
	if life != (hiding{}) {
		if !narrowed {
			buf.bits = slices.Grow(buf.bits[:0], size)[:size]
			fill(buf.bits, p.hi-p.lo)
			narrowed = true
		}
		s.hide(part, &life, buf.bits)
	}
	if !narrowed {
		return docFilter{mode: filterAll}
	}
	n := 0
	for _, w := range buf.bits {
		n += bits.OnesCount64(w)
	}
	switch n {
	case 0:
		return docFilter{mode: filterNone, life: life}
	case int(p.hi - p.lo):
		return docFilter{mode: filterAll}
	}
	out := docFilter{mode: filterSome, lo: p.lo, bits: buf.bits, n: uint32(n), life: life}
	if n <= int(p.hi-p.lo)/sparseShare {
		buf.list = buf.list[:0]
		for i, w := range buf.bits {
			for ; w != 0; w &= w - 1 {
				buf.list = append(buf.list, p.lo+uint32(i*64+trailingZeros(w)))
			}
		}
		out.list = buf.list
	}
	return out
}

// fill sets the first n bits and clears what is behind them.
func fill(dst []uint64, n uint32) {
	for i := range dst {
		dst[i] = ^uint64(0)
	}
	if n%64 != 0 {
		dst[len(dst)-1] = 1<<(n%64) - 1
	}
}

// dense sets a bit, counted from lo, for each document of bm in lo..hi.
func dense(bm *roaring.Bitmap, lo, hi, numDocs uint32, dst []uint64) {
	if lo == 0 && hi == numDocs {
		bm.WriteDenseTo(dst)
		return
	}
	it := bm.Iterator()
	for it.AdvanceIfNeeded(lo); it.HasNext(); {
		doc := it.Next()
		if doc >= hi {
			return
		}
		doc -= lo
		dst[doc>>6] |= 1 << (doc & 63)
	}
}

// orBitmaps unites the documents of n keys; nil when there are none.
func orBitmaps(s *segment, n int, key func(i int) []byte) *roaring.Bitmap {
	var all []*roaring.Bitmap
	for i := range n {
		if bm := s.attrExact(key(i)); bm != nil {
			all = append(all, bm)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	default:
		return roaring.FastOr(all...)
	}
}

// where gives the documents that satisfy a metadata condition; nil when there
// are none.
func (s *segment) where(c index.Condition, lo, hi uint32) *roaring.Bitmap {
	switch c.Op {
	case index.OpMissing:
		bm := roaring.New()
		bm.AddRange(uint64(lo), uint64(hi))
		if exists := s.attrExact(existsKey(nil, c.Key)); exists != nil {
			bm.AndNot(exists)
		}
		return bm
	case index.OpExists:
		return s.attrExact(existsKey(nil, c.Key))
	case index.OpEq, index.OpIn:
		return orBitmaps(s, len(c.Values), func(i int) []byte { return valueKey(nil, c.Key, c.Values[i]) })
	case index.OpNe:
		exists := s.attrExact(existsKey(nil, c.Key))
		if exists == nil || c.Values[0].Type == index.TypeOther {
			return exists
		}
		if eq := s.attrExact(valueKey(nil, c.Key, c.Values[0])); eq != nil {
			return roaring.AndNot(exists, eq)
		}
		return exists
	}
	// An ordering is a run of the attribute dictionary.
	prefix := valuePrefix(nil, c.Key, c.Values[0].Type)
	bound := valueKey(nil, c.Key, c.Values[0])
	var all []*roaring.Bitmap
	from := prefix
	if c.Op == index.OpGt || c.Op == index.OpGe {
		from = bound
	}
	for i := s.findAttr(from); i < s.numAttrs(); i++ {
		k, e := s.attr(i)
		if !bytes.HasPrefix(k, prefix) {
			break
		}
		o := bytes.Compare(k, bound)
		if o > 0 && (c.Op == index.OpLt || c.Op == index.OpLe) {
			break
		}
		if o == 0 && (c.Op == index.OpLt || c.Op == index.OpGt) {
			continue
		}
		all = append(all, s.bitmap(e))
	}
	if len(all) == 0 {
		return nil
	}
	return roaring.FastOr(all...)
}

func (s *segment) createdWithin(f *index.Filter, lo, hi uint32) *roaring.Bitmap {
	bm := roaring.New()
	run := none // start of the current run
	for doc := lo; doc < hi; doc++ {
		if inWindow(f, s.created(doc)) {
			if run == none {
				run = doc
			}
		} else if run != none {
			bm.AddRange(uint64(run), uint64(doc))
			run = none
		}
	}
	if run != none {
		bm.AddRange(uint64(run), uint64(hi))
	}
	return bm
}

func inWindow(f *index.Filter, created int64) bool {
	return (!f.HasFrom || created >= f.CreatedFrom) && (!f.HasTo || created < f.CreatedTo)
}

// tailFilter evaluates a filter over the tail, where a document's attributes
// are at hand.
type tailFilter struct {
	part  *tailPart
	f     *index.Filter
	hides bool // some document, perhaps, for its life
}

func (t *tailFilter) accept(doc uint32) bool {
	p, f := t.part, t.f
	if !slices.Contains(f.Scopes, int64(p.scope[doc])) {
		return false
	}
	if len(f.Threads) > 0 && !slices.Contains(f.Threads, int64(p.thread[doc])) {
		return false
	}
	if !inWindow(f, p.created[doc]) || t.hides && !p.lives.shows(doc, f) {
		return false
	}
	for _, tag := range f.Tags {
		if !slices.Contains(p.tags[doc], tag) {
			return false
		}
	}
	for _, c := range f.Where {
		if !index.Match(c, p.attrs[doc]) {
			return false
		}
	}
	return true
}
