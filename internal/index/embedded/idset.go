package embedded

import "slices"

// idSet is a set of record ids: bits over the range that they lie in, or a list
// when they are few there.
type idSet struct {
	ready bool
	bits  []uint64
	base  int64   // the id of the first bit
	list  []int64 // without bits; ascending
	// Storage of bits, and of the list unless it is somebody else's.
	bitBuf  []uint64
	listBuf []int64
}

// empty makes an empty list of the set.
func (s *idSet) empty() {
	*s = idSet{list: s.listBuf[:0], bitBuf: s.bitBuf, listBuf: s.listBuf}
}

// reset empties the set for about so many of the ids from low on, of which there
// are span.
func (s *idSet) reset(low int64, span uint64, about int) {
	s.empty()
	if span <= maxBits && uint64(about) >= span/sparseSpan {
		s.clear(low, span)
	}
}

// clear gives the set bits for the ids from low on, of which there are span.
func (s *idSet) clear(low int64, span uint64) {
	words := int((span + 63) / 64)
	s.bits, s.base = slices.Grow(s.bitBuf[:0], words)[:words], low
	s.bitBuf = s.bits
	clear(s.bits)
}

// of makes the set ids, which ascend and stay the caller's.
func (s *idSet) of(ids []int64) {
	s.empty()
	s.list, s.ready = ids, true
}

// add puts an id of the range into the set, which can be asked after done.
func (s *idSet) add(id int64) {
	if s.bits == nil {
		s.list = append(s.list, id)
		return
	}
	at := uint64(id - s.base)
	s.bits[at/64] |= 1 << (at % 64)
}

func (s *idSet) done() {
	s.listBuf = s.list
	if !slices.IsSorted(s.list) {
		slices.Sort(s.list)
	}
	s.ready = true
}

// widen gives a list bits beside it, for so many questions, unless its ids lie too
// far apart for that.
func (s *idSet) widen(questions int) {
	if s.bits != nil || len(s.list) == 0 {
		return
	}
	low := s.list[0]
	span := uint64(s.list[len(s.list)-1]-low) + 1
	if span > maxBits || span/64 > 8*uint64(questions) {
		return
	}
	s.clear(low, span)
	for _, id := range s.list {
		at := uint64(id - low)
		s.bits[at/64] |= 1 << (at % 64)
	}
}

// enlist gives bits a list beside them.
func (s *idSet) enlist() {
	if s.bits == nil || len(s.list) > 0 {
		return
	}
	for w, b := range s.bits {
		for ; b != 0; b &= b - 1 {
			s.list = append(s.list, s.base+int64(w*64+trailingZeros(b)))
		}
	}
	s.listBuf = s.list
}

func (s *idSet) has(id int64) bool {
	if s.bits == nil {
		_, ok := slices.BinarySearch(s.list, id)
		return ok
	}
	at := uint64(id - s.base)
	return at < uint64(len(s.bits))*64 && s.bits[at/64]>>(at%64)&1 != 0
}
