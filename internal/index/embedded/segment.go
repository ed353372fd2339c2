package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged marks a file that is not what was written.
var errDamaged = errors.New("damaged index file")

// segment is an open, mapped segment file. It is immutable but for its delete
// counters and lives until the last snapshot that holds it is closed.
type segment struct {
	name string
	file ReadFile
	size int64
	refs atomic.Int64
	drop atomic.Bool // remove the file when the last reference goes

	parts   []partRange
	numDocs uint32
	sec     [numSections][]byte
	hashLen uint32

	deletes deleteCounters
}

// openSegment verifies a segment file's length and checksums, then maps it.
func openSegment(fs FS, name string) (*segment, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	s, err := readSegment(f, name)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("segment %s: %w", name, err)
	}
	return s, nil
}

func readSegment(f ReadFile, name string) (*segment, error) {
	size := f.Size()
	if size < segHeaderSize+trailerSize {
		return nil, fmt.Errorf("%w: %d bytes are too few", errDamaged, size)
	}
	var tr [trailerSize]byte
	if _, err := f.ReadAt(tr[:], size-trailerSize); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if string(tr[24:]) != segMagic || int64(le.Uint64(tr[16:])) != size {
		return nil, fmt.Errorf("%w: no trailer, or of another length", errDamaged)
	}
	tableOff := int64(le.Uint64(tr[:]))
	tableLen := size - trailerSize - tableOff
	const wantLen = 8 + int(numSections)*24
	if tableOff < segHeaderSize || tableLen != int64(wantLen) {
		return nil, fmt.Errorf("%w: section table out of place", errDamaged)
	}
	table := make([]byte, tableLen)
	if _, err := f.ReadAt(table, tableOff); err != nil {
		return nil, err
	}
	if crc32.Checksum(table, castagnoli) != le.Uint32(tr[8:]) || le.Uint64(table) != uint64(numSections) {
		return nil, fmt.Errorf("%w: section table", errDamaged)
	}
	if err := verifySections(f, table, tableOff); err != nil {
		return nil, err
	}
	var head [segHeaderSize]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if string(head[:8]) != segMagic || le.Uint32(head[8:]) != segVersion {
		return nil, fmt.Errorf("%w: header, or another version", errDamaged)
	}
	data, err := f.Map()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%w: file changed while it was opened", errDamaged)
	}
	s := &segment{name: name, file: f, size: size}
	s.refs.Store(1)
	for i := range s.sec {
		e := table[8+24*i:]
		off, n := le.Uint64(e), le.Uint64(e[8:])
		s.sec[i] = data[off : off+n : off+n]
	}
	return s, s.check()
}

// verifySections reads every section through the file, not the mapping, so that
// verifying does not make its pages resident.
func verifySections(f ReadFile, table []byte, end int64) error {
	buf := crcBuffers.Get().(*[]byte)
	defer crcBuffers.Put(buf)
	le := binary.LittleEndian
	for i := range int(numSections) {
		e := table[8+24*i:]
		off, n, want := le.Uint64(e), le.Uint64(e[8:]), le.Uint32(e[16:])
		if off > uint64(end) || n > uint64(end)-off {
			return fmt.Errorf("%w: section %d out of the file", errDamaged, i)
		}
		crc := uint32(0)
		for n > 0 {
			p := (*buf)[:min(n, uint64(len(*buf)))]
			if _, err := f.ReadAt(p, int64(off)); err != nil {
				return err
			}
			crc = crc32.Update(crc, castagnoli, p)
			off += uint64(len(p))
			n -= uint64(len(p))
		}
		if crc != want {
			return fmt.Errorf("%w: checksum of section %d", errDamaged, i)
		}
	}
	return nil
}

var crcBuffers = sync.Pool{New: func() any { b := make([]byte, 1<<20); return &b }}

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
	s.numDocs = uint32(n)
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
	return nil
}

func (s *segment) acquire() { s.refs.Add(1) }

// release gives a reference back; the last one unmaps the file and, when it was
// replaced by a merge, removes it.
func (s *segment) release(fs FS) error {
	if s.refs.Add(-1) != 0 {
		return nil
	}
	err := s.file.Close()
	if s.drop.Load() {
		if rerr := fs.Remove(s.name); err == nil {
			err = rerr
		}
	}
	return err
}

func (s *segment) id(doc uint32) int64 {
	return int64(binary.LittleEndian.Uint64(s.sec[secIDs][8*doc:]))
}

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
	p := s.parts[part]
	i := p.lo + uint32(sort.Search(int(p.hi-p.lo), func(i int) bool { return s.id(p.lo+uint32(i)) >= id }))
	return i, i < p.hi && s.id(i) == id
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
