package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// segment is an open, mapped segment file. It is immutable but for its delete
// counters.
type segment struct {
	*mappedFile

	parts   []partRange
	numDocs uint32
	ids     []int64
	sec     [numSections][]byte
	hashLen uint32
	lives   []partLives // by partition

	deletes deleteCounters
}

// openSegment verifies a segment file's length and checksums, then maps it.
func openSegment(fs FS, name string) (*segment, error) {
	m, sec, err := openSections(fs, name, textForm)
	if err != nil {
		return nil, err
	}
	s := &segment{mappedFile: m}
	copy(s.sec[:], sec)
	if err := s.check(); err != nil {
		m.file.Close()
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	return s, nil
}

// check verifies what the accessors rely on, so that even a file with valid
// checksums cannot make them read out of bounds.
func (s *segment) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s", errDamaged, what) }
	if len(s.sec[secIDs])%8 != 0 || len(s.sec[secPartitions])%partEntrySize != 0 {
		return bad("column lengths")
	}
	n := len(s.sec[secIDs]) / 8
	if uint64(n) >= uint64(none) {
		return bad("too many documents")
	}
	s.numDocs, s.ids = uint32(n), column[int64](s.sec[secIDs])
	optional := func(sec section, width int) bool { l := len(s.sec[sec]); return l == 0 || l == n*width }
	if len(s.sec[secLenAll]) != n || len(s.sec[secLenText]) != n || !optional(secLenName, 1) || !optional(secLenPath, 1) ||
		len(s.sec[secScope]) != 4*n || len(s.sec[secThread]) != 4*n || !optional(secPosition, 8) ||
		len(s.sec[secCreated]) != 8*n || len(s.sec[secForwardOff]) != 4*(n+1) {
		return bad("column lengths")
	}
	if len(s.sec[secDict])%dictEntrySize != 0 || len(s.sec[secAttrDict])%attrEntrySize != 0 ||
		len(s.sec[secThreads])%threadEntrySize != 0 || len(s.sec[secHash])%4 != 0 {
		return bad("dictionary lengths")
	}
	s.hashLen = uint32(len(s.sec[secHash]) / 4)
	if s.hashLen&(s.hashLen-1) != 0 || (s.numTerms() > 0 && int(s.hashLen) <= s.numTerms()) {
		return bad("hash table length")
	}
	var next uint32
	for p := s.sec[secPartitions]; len(p) > 0; p = p[partEntrySize:] {
		r := readPartRange(p)
		if r.lo != next || r.hi <= r.lo || r.hi > s.numDocs {
			return bad("partition ranges")
		}
		if k := len(s.parts); k > 0 && !s.parts[k-1].key.less(r.key) {
			return bad("partition order")
		}
		next = r.hi
		s.parts = append(s.parts, r)
	}
	if next != s.numDocs {
		return bad("partition ranges")
	}
	if !s.readLives() {
		return bad("bounds of lives")
	}
	return nil
}

func (s *segment) id(doc uint32) int64 { return s.ids[doc] }

func (s *segment) scope(doc uint32) uint32 {
	return binary.LittleEndian.Uint32(s.sec[secScope][4*doc:])
}

func (s *segment) thread(doc uint32) uint32 {
	return binary.LittleEndian.Uint32(s.sec[secThread][4*doc:])
}

func (s *segment) position(doc uint32) int64 {
	if len(s.sec[secPosition]) == 0 {
		return noPosition
	}
	return int64(binary.LittleEndian.Uint64(s.sec[secPosition][8*doc:]))
}

func (s *segment) created(doc uint32) int64 {
	return int64(binary.LittleEndian.Uint64(s.sec[secCreated][8*doc:]))
}

// lens are the length codes of column i by document; nil when all are zero.
func (s *segment) lens(i int) []uint8 { return s.sec[secLenAll+section(i)] }

func (s *segment) codes(doc uint32) (c [numLens]uint8) {
	for i := range c {
		if l := s.lens(i); len(l) > 0 {
			c[i] = l[doc]
		}
	}
	return c
}

// partition finds a partition's number.
func (s *segment) partition(key partKey) (int, bool) {
	i := sort.Search(len(s.parts), func(i int) bool { return !s.parts[i].key.less(key) })
	return i, i < len(s.parts) && s.parts[i].key == key
}

// partitionOf is the number of the partition that holds doc.
func (s *segment) partitionOf(doc uint32) int {
	return sort.Search(len(s.parts), func(i int) bool { return s.parts[i].hi > doc })
}

// find gives the document of a record, deleted or not.
func (s *segment) find(part int, id int64) (uint32, bool) {
	p := &s.parts[part]
	i := p.lo + uint32(seek(s.ids[p.lo:p.hi], id))
	return i, i < p.hi && s.ids[i] == id
}

func (s *segment) numTerms() int { return len(s.sec[secDict]) / dictEntrySize }

type dictEntry struct {
	post    uint64 // offset of the list, or the one posting itself
	termOff uint32
	df      uint32
	termLen uint32
}

func readDictEntry(b []byte) dictEntry {
	le := binary.LittleEndian
	return dictEntry{le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:])}
}

func (e *dictEntry) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, e.post)
	dst = le.AppendUint32(dst, e.termOff)
	dst = le.AppendUint32(dst, e.df)
	return le.AppendUint32(dst, e.termLen)
}

func (s *segment) dict(term uint32) dictEntry {
	return readDictEntry(s.sec[secDict][int(term)*dictEntrySize:])
}

func (s *segment) term(e dictEntry) []byte {
	return s.sec[secTerms][e.termOff : e.termOff+e.termLen]
}

// lookup finds a term's number.
func (s *segment) lookup(key []byte) (uint32, bool) {
	if s.hashLen == 0 {
		return 0, false
	}
	mask := s.hashLen - 1
	h := uint32(xxhash.Sum64(key)) & mask
	for range s.hashLen {
		slot := binary.LittleEndian.Uint32(s.sec[secHash][4*h:])
		if slot == 0 {
			return 0, false
		}
		if bytes.Equal(s.term(s.dict(slot-1)), key) {
			return slot - 1, true
		}
		h = (h + 1) & mask
	}
	panic(errDamaged) // no empty slot
}

// listData is a stored list of df postings at off.
func (s *segment) listData(e dictEntry) (data []byte, nblk int) {
	return s.sec[secPostings][e.post:], int(e.df+blockSize-1) / blockSize
}

// list gives a term's postings within the documents lo..hi.
func (s *segment) list(term uint32, lo, hi uint32) plist {
	e := s.dict(term)
	l := plist{lo: lo, hi: hi}
	if e.df == 1 {
		l.one = unpackPosting(e.post)
		if l.one.doc >= lo && l.one.doc < hi {
			l.df, l.nblk, l.b1, l.nonEmpty = 1, 1, 1, true
		}
		return l
	}
	l.data, l.nblk = s.listData(e)
	if lo == 0 && hi == s.numDocs {
		l.df, l.b1 = e.df, l.nblk
	} else {
		from, to := rankOf(l.data, l.nblk, lo), rankOf(l.data, l.nblk, hi)
		l.df = uint32(to - from)
		l.b0, l.b1 = from/blockSize, (to+blockSize-1)/blockSize
	}
	l.nonEmpty = l.df > 0
	return l
}

// forward calls f with the number of each term of a document.
func (s *segment) forward(doc uint32, f func(term uint32)) {
	le := binary.LittleEndian
	off := s.sec[secForwardOff]
	p := s.sec[secForward][le.Uint32(off[4*doc:]):le.Uint32(off[4*doc+4:])]
	term := uint32(0)
	for len(p) > 0 {
		d, n := binary.Uvarint(p)
		if n <= 0 {
			return
		}
		term += uint32(d)
		f(term)
		p = p[n:]
	}
}

func (s *segment) numAttrs() int { return len(s.sec[secAttrDict]) / attrEntrySize }

func (s *segment) attr(i int) (key []byte, e dictEntry) {
	e = readDictEntry(s.sec[secAttrDict][i*attrEntrySize:])
	return s.sec[secAttrKeys][e.termOff : e.termOff+e.termLen], e
}

// findAttr is the number of the first attribute whose key is not below key.
func (s *segment) findAttr(key []byte) int {
	return sort.Search(s.numAttrs(), func(i int) bool {
		k, _ := s.attr(i)
		return bytes.Compare(k, key) >= 0
	})
}

type threadEntry struct {
	part, thread uint32
	off, count   uint32
}

func (s *segment) threadEntry(i int) threadEntry {
	le := binary.LittleEndian
	b := s.sec[secThreads][i*threadEntrySize:]
	return threadEntry{le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:])}
}

// threadDocs gives a thread's documents in a partition, by position and then
// document, as a function of their number.
func (s *segment) threadDocs(part int, thread uint32) (n int, doc func(i int) uint32) {
	total := len(s.sec[secThreads]) / threadEntrySize
	i := sort.Search(total, func(i int) bool {
		e := s.threadEntry(i)
		return e.part > uint32(part) || e.part == uint32(part) && e.thread >= thread
	})
	if i == total {
		return 0, nil
	}
	e := s.threadEntry(i)
	if e.part != uint32(part) || e.thread != thread {
		return 0, nil
	}
	docs := s.sec[secThreadDocs][4*e.off:]
	return int(e.count), func(i int) uint32 { return binary.LittleEndian.Uint32(docs[4*i:]) }
}
