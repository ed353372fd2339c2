package embedded

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/loci-memory/loci/internal/index"
)

// docFilter is a filter evaluated over a partition of a segment: the documents
// that may be hits, deleted ones not yet taken out.
type docFilter struct {
	mode filterMode
	lo   uint32
	bits []uint64 // relative to lo
	list []uint32 // ascending
	tail *tailFilter
}

type filterMode uint8

const (
	filterAll filterMode = iota
	filterNone
	filterBits
	filterList
	filterTail // ask tail, document by document
)

// sparseShare is how few documents of a partition (one in this many) a filter
// leaves to be kept as a list.
const sparseShare = 64

func (f *docFilter) accept(doc uint32) bool {
	switch f.mode {
	case filterAll:
		return true
	case filterBits:
		doc -= f.lo
		return f.bits[doc>>6]&(1<<(doc&63)) != 0
	case filterList:
		_, ok := slices.BinarySearch(f.list, doc)
		return ok
	case filterTail:
		return f.tail.accept(doc)
	default:
		return false
	}
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
	i := s.findAttr(key)
	if i == s.numAttrs() {
		return nil
	}
	k, e := s.attr(i)
	if !bytes.Equal(k, key) {
		return nil
	}
	return s.bitmap(e)
}

// segmentFilter evaluates f over a partition of a segment. The dense form is
// written to buf, which is grown as needed.
func segmentFilter(s *segment, part int, f *index.Filter, buf *[]uint64) docFilter {
	p := &s.parts[part]
	var and []*roaring.Bitmap
	key := make([]byte, 0, 64)
	if scopes := orBitmaps(s, len(f.Scopes), func(i int) []byte { return scopeKey(key[:0], uint32(f.Scopes[i])) }); scopes == nil {
		return docFilter{mode: filterNone}
	} else if !coversRange(scopes, p.lo, p.hi) {
		and = append(and, scopes)
	}
	for _, t := range f.Tags {
		bm := s.attrExact(tagKey(key[:0], uint32(t)))
		if bm == nil {
			return docFilter{mode: filterNone}
		}
		and = append(and, bm)
	}
	if f.Thread != 0 {
		bm := roaring.New()
		n, doc := s.threadDocs(part, uint32(f.Thread))
		for i := range n {
			bm.Add(doc(i))
		}
		and = append(and, bm)
	}
	for _, c := range f.Where {
		bm := s.where(c, p.lo, p.hi)
		if bm == nil {
			return docFilter{mode: filterNone}
		}
		and = append(and, bm)
	}
	if f.HasFrom || f.HasTo {
		and = append(and, s.createdWithin(f, p.lo, p.hi))
	}
	if len(and) == 0 {
		return docFilter{mode: filterAll}
	}
	rng := roaring.New()
	rng.AddRange(uint64(p.lo), uint64(p.hi))
	res := roaring.FastAnd(append(and, rng)...)
	n := res.GetCardinality()
	switch {
	case n == 0:
		return docFilter{mode: filterNone}
	case n == uint64(p.hi-p.lo):
		return docFilter{mode: filterAll}
	case n <= uint64(p.hi-p.lo)/sparseShare:
		return docFilter{mode: filterList, list: res.ToArray()}
	}
	words := int(p.hi-p.lo+63) / 64
	if cap(*buf) < words {
		*buf = make([]uint64, words)
	}
	bits := (*buf)[:words]
	clear(bits)
	for it := res.ManyIterator(); ; {
		var docs [256]uint32
		k := it.NextMany(docs[:])
		if k == 0 {
			break
		}
		for _, d := range docs[:k] {
			d -= p.lo
			bits[d>>6] |= 1 << (d & 63)
		}
	}
	return docFilter{mode: filterBits, lo: p.lo, bits: bits}
}

func coversRange(bm *roaring.Bitmap, lo, hi uint32) bool {
	n := bm.Rank(hi - 1)
	if lo > 0 {
		n -= bm.Rank(lo - 1)
	}
	return n == uint64(hi-lo)
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
	exists := s.attrExact(existsKey(nil, c.Key))
	if c.Op == index.OpMissing {
		bm := roaring.New()
		bm.AddRange(uint64(lo), uint64(hi))
		if exists != nil {
			bm.AndNot(exists)
		}
		return bm
	}
	if exists == nil {
		return nil
	}
	switch c.Op {
	case index.OpExists:
		return exists
	case index.OpEq, index.OpIn:
		return orBitmaps(s, len(c.Values), func(i int) []byte { return valueKey(nil, c.Key, c.Values[i]) })
	case index.OpNe:
		if eq := s.attrExact(valueKey(nil, c.Key, c.Values[0])); eq != nil && c.Values[0].Type != index.TypeOther {
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
	part *tailPart
	f    *index.Filter
}

func (t *tailFilter) accept(doc uint32) bool {
	p, f := t.part, t.f
	if !slices.Contains(f.Scopes, int64(p.scope[doc])) {
		return false
	}
	if f.Thread != 0 && int64(p.thread[doc]) != f.Thread {
		return false
	}
	if !inWindow(f, p.created[doc]) {
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
