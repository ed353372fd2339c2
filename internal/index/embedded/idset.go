package embedded

import "slices"

// idSet is a set of record ids: bits over the range that they lie in, or a list
// when they are few there.
type idSet struct {
	bits []uint64
	base int64   // the id of the first bit
	list []int64 // without bits; ascending
	buf  []uint64
}

// reset empties the set for about so many of the ids from low on, of which there
// are span.
func (s *idSet) reset(low int64, span uint64, about int) {
	s.bits, s.list, s.base = nil, s.list[:0], low
	if span <= maxBits && uint64(about) >= span/sparseSpan {
		s.bits = zeroBits(s.buf, span)
		s.buf = s.bits
	}
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

func (s *idSet) done() { slices.Sort(s.list) }

func (s *idSet) has(id int64) bool {
	if s.bits == nil {
		_, ok := slices.BinarySearch(s.list, id)
		return ok
	}
	at := uint64(id - s.base)
	return at < uint64(len(s.bits))*64 && s.bits[at/64]>>(at%64)&1 != 0
}

// zeroBits gives n bits on buf, none of them set.
func zeroBits(buf []uint64, n uint64) []uint64 {
	words := int((n + 63) / 64)
	buf = slices.Grow(buf[:0], words)[:words]
	clear(buf)
	return buf
}
