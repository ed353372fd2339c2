package embedded

import (
	"bytes"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/loci-memory/loci/internal/index"
)

// An Analyzer calls emit for each term of s, again for each occurrence; term is
// valid during the call only. It gives the length of s in words.
type Analyzer func(s string, emit func(term []byte)) (length int)

// analysed is a document's terms with their frequencies.
type analysed struct {
	lens  [numLens]uint8
	terms []analysedTerm
}

type analysedTerm struct {
	key       string // class and term
	tf, extra uint8
}

// analysis is the scratch of one document's analysis.
type analysis struct {
	arena []byte
	terms []scratchTerm
	table []uint32 // open addressing: term number + 1
}

type scratchTerm struct {
	off, end  uint32
	hash      uint64
	tf, extra uint8
}

var analyses = sync.Pool{New: func() any { return &analysis{table: make([]uint32, 256)} }}

func saturate(a uint8, n int) uint8 { return uint8(min(int(a)+n, 255)) }

func (s *analysis) reset() {
	s.arena = s.arena[:0]
	s.terms = s.terms[:0]
	clear(s.table)
}

// count adds an occurrence of a term worth `units`, of which `extra` are not
// field text's.
func (s *analysis) count(class byte, term []byte, units, extra int) {
	off := len(s.arena)
	s.arena = append(append(s.arena, class), term...)
	key := s.arena[off:]
	hash := xxhash.Sum64(key)
	mask := uint64(len(s.table) - 1)
	for slot := hash & mask; ; slot = (slot + 1) & mask {
		n := s.table[slot]
		if n == 0 {
			s.terms = append(s.terms, scratchTerm{off: uint32(off), end: uint32(len(s.arena)), hash: hash,
				tf: saturate(0, units), extra: saturate(0, extra)})
			s.table[slot] = uint32(len(s.terms))
			if 2*len(s.terms) > len(s.table) {
				s.grow()
			}
			return
		}
		t := &s.terms[n-1]
		if t.hash == hash && bytes.Equal(s.arena[t.off:t.end], key) {
			s.arena = s.arena[:off]
			t.tf = saturate(t.tf, units)
			t.extra = saturate(t.extra, extra)
			return
		}
	}
}

func (s *analysis) grow() {
	s.table = make([]uint32, 2*len(s.table))
	mask := uint64(len(s.table) - 1)
	for i, t := range s.terms {
		slot := t.hash & mask
		for s.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		s.table[slot] = uint32(i) + 1
	}
}

// analyse finds a document's terms.
func analyse(az Analyzer, d *index.Document) *analysed {
	s := analyses.Get().(*analysis)
	defer analyses.Put(s)
	s.reset()
	field := func(pieces []string, emit func(term []byte)) (n int) {
		for _, p := range pieces {
			if p != "" {
				n += az(p, emit)
			}
		}
		return n
	}
	text := field(d.Text, func(t []byte) { s.count(classAll, t, unitsText, 0) })
	name := field(d.Name, func(t []byte) {
		s.count(classAll, t, unitsName, unitsName)
		s.count(className, t, unitsPerOccurrence, 0)
	})
	tags := field(d.Tag, func(t []byte) { s.count(classAll, t, unitsTag, unitsTag) })
	path := field(d.Path, func(t []byte) { s.count(classPath, t, unitsPerOccurrence, 0) })
	a := &analysed{terms: make([]analysedTerm, len(s.terms))}
	a.lens[lenAll] = lenCode(text + name + tags)
	a.lens[lenText] = lenCode(text)
	a.lens[lenName] = lenCode(name)
	a.lens[lenPath] = lenCode(path)
	arena := string(s.arena)
	for i, t := range s.terms {
		a.terms[i] = analysedTerm{arena[t.off:t.end], t.tf, t.extra}
	}
	return a
}
