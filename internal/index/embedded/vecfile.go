package embedded

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/loci-memory/loci/internal/index"
)

// vecForm is the form of a vector segment's file (docs/format/vector-index.md).
var vecForm = fileForm{magic: "LOCIVEC1", version: 2, sections: int(numVecSections), lazy: vsCodes}

// Sections of a vector segment. Columns are by row, rows by partition.
const (
	vsDirectory      section = iota // entries of the partitions
	vsIDs                           // int64 by row
	vsScopes                        // uint32 by row
	vsScales                        // float32 by row
	vsSortedIDs                     // int64, ascending in each partition that has lists
	vsSortedRows                    // uint32: the row, counted from the partition's first
	vsListEnds                      // uint32 by list: the row behind its last, counted likewise
	vsCentroidScales                // float32 by list
	vsCentroids                     // int8 codes by list
	vsCodes                         // by partition: the vectors as they are scanned, by row; what that leaves of them
	vsBlockSums                     // CRC-32C of each block of the codes
	numVecSections
)

const (
	vecEntrySize = 40
	// blockBytes is how much of the codes one checksum covers: it is verified
	// when one of them is first read.
	blockBytes = 64 << 10
	// maxDim bounds the dimension: a sum of that many products of codes fits
	// into 32 bits.
	maxDim = 1 << 16
)

// vecKey names a partition of vectors: what one search of one kind reads.
type vecKey struct {
	space     int64
	namespace int64
	kind      index.Kind
}

func (k vecKey) compare(o vecKey) int {
	if c := cmp.Compare(k.space, o.space); c != 0 {
		return c
	}
	if c := cmp.Compare(k.namespace, o.namespace); c != 0 {
		return c
	}
	return cmp.Compare(k.kind, o.kind)
}

// rowForm is how a partition's rows are stored. All rows of a partition of a
// segment or a tail have one form; a key may have partitions of several.
type rowForm struct {
	encoding index.Encoding
	dim      uint32
}

func (f rowForm) compare(o rowForm) int {
	if c := cmp.Compare(f.encoding, o.encoding); c != 0 {
		return c
	}
	return cmp.Compare(f.dim, o.dim)
}

// stride is the length of a row in bytes: a multiple of 32, zeros at its end.
func (f rowForm) stride() int {
	n := int(f.dim)
	if f.encoding == index.EncodingF32 {
		n *= 4
	}
	return (n + 31) &^ 31
}

// fineStride is the length in bytes of what a row's codes leave of its vector: 0 where
// they are the vector itself.
func (f rowForm) fineStride() int {
	if f.encoding == index.EncodingF32 {
		return 0
	}
	return f.stride()
}

// codeStride is the length in bytes of a centroid, which is int8 always.
func (f rowForm) codeStride() int { return (int(f.dim) + 31) &^ 31 }

func (f rowForm) valid() bool {
	return (f.encoding == index.EncodingF32 || f.encoding == index.EncodingSQ8) && f.dim > 0 && f.dim <= maxDim
}

// vecPart is a partition of a vector segment. Row numbers in it count from its
// first row.
type vecPart struct {
	key     vecKey
	form    rowForm
	lo, n   uint32 // first row, number of rows
	codes   uint64 // where its rows begin in the codes
	trained uint32 // how many rows there were when its lists were made

	ids       []int64
	scopes    []uint32
	scales    []float32
	sortedIDs []int64   // ids, ascending; the same slice when there are no lists
	sorted    []uint32  // the row of each of them; nil: the same number
	ends      []uint32  // by list
	weights   []float32 // scales of the centroids
	centroids []int8
}

// find gives the row of a record that is not in del.
func (p *vecPart) find(id int64, del *deleteSet) (uint32, bool) {
	n := len(p.sortedIDs)
	if n == 0 || id < p.sortedIDs[0] || id > p.sortedIDs[n-1] {
		return 0, false
	}
	i, _ := slices.BinarySearch(p.sortedIDs, id)
	return p.liveAt(i, id, del)
}

// liveAt gives the row of a record that is not in del, given where its id
// begins. There may be two, one of them deleted.
func (p *vecPart) liveAt(i int, id int64, del *deleteSet) (uint32, bool) {
	for ; i < len(p.sortedIDs) && p.sortedIDs[i] == id; i++ {
		if row := p.row(i); !del.has(p.lo + row) {
			return row, true
		}
	}
	return 0, false
}

// row gives the row of the i-th id in ascending order.
func (p *vecPart) row(i int) uint32 {
	if p.sorted == nil {
		return uint32(i)
	}
	return p.sorted[i]
}

// list gives the rows of a list: from and behind.
func (p *vecPart) list(i int) (from, to uint32) {
	if i > 0 {
		from = p.ends[i-1]
	}
	return from, p.ends[i]
}

// vecSegment is an open, mapped vector segment. It is immutable but for its
// counters of deleted rows.
type vecSegment struct {
	*mappedFile

	parts  []vecPart
	rows   uint32
	spaces []int64 // ascending
	codes  []byte
	sums   []uint32
	seen   []atomic.Bool // blocks of codes whose checksum was verified

	goneMu sync.RWMutex
	gone   []history // by partition: rows deleted
	// late are the deletions that no checkpoint covers yet. Until one does, a
	// row stays in the files: a record that only changed its scope takes its
	// vector along from there, also when that is done again after a crash.
	late []lateDelete
}

type lateDelete struct {
	row uint32
	rev int64
}

// vecSegView is a vector segment with the rows that are deleted in a snapshot.
type vecSegView struct {
	*vecSegment
	del *deleteSet
}

// openVecSegment verifies a vector segment's length and the checksums of all but
// its codes, then maps it.
func openVecSegment(fs FS, name string) (*vecSegment, error) {
	m, sec, err := openSections(fs, name, vecForm)
	if err != nil {
		return nil, err
	}
	s := &vecSegment{mappedFile: m}
	if err := s.read(sec); err != nil {
		m.file.Close()
		return nil, fmt.Errorf("vector segment %s: %w", name, err)
	}
	return s, nil
}

// read takes the sections apart and verifies what the accessors rely on, so
// that even a file with valid checksums cannot make them read out of bounds.
func (s *vecSegment) read(sec [][]byte) error {
	bad := func(what string) error { return fmt.Errorf("%w: %s", errDamaged, what) }
	dir := sec[vsDirectory]
	n := len(sec[vsIDs]) / 8
	if len(dir)%vecEntrySize != 0 || uint64(n) >= uint64(none) || len(sec[vsIDs]) != 8*n || len(sec[vsScopes]) != 4*n || len(sec[vsScales]) != 4*n {
		return bad("column lengths")
	}
	s.rows = uint32(n)
	ids, scopes, scales := column[int64](sec[vsIDs]), column[uint32](sec[vsScopes]), column[float32](sec[vsScales])
	sortedIDs, sorted := column[int64](sec[vsSortedIDs]), column[uint32](sec[vsSortedRows])
	ends, weights, centroids := column[uint32](sec[vsListEnds]), column[float32](sec[vsCentroidScales]), codesOf(sec[vsCentroids])
	s.codes, s.sums = sec[vsCodes], column[uint32](sec[vsBlockSums])
	if uint64(len(s.sums)) != (uint64(len(s.codes))+blockBytes-1)/blockBytes {
		return bad("checksums of blocks")
	}
	s.seen = make([]atomic.Bool, len(s.sums))
	s.parts = make([]vecPart, 0, len(dir)/vecEntrySize)
	s.gone = make([]history, len(dir)/vecEntrySize)
	var row uint32
	var code uint64
	for ; len(dir) > 0; dir = dir[vecEntrySize:] {
		p, lists := readVecEntry(dir)
		p.lo, p.codes = row, code
		if k := len(s.parts); k > 0 {
			if last := &s.parts[k-1]; last.key.compare(p.key) > 0 || last.key == p.key && last.form.compare(p.form) >= 0 {
				return bad("partition order")
			}
		}
		size := uint64(p.n) * uint64(p.form.stride()+p.form.fineStride())
		if !p.form.valid() || p.n == 0 || uint64(p.n) > uint64(len(ids)) || size > uint64(len(s.codes))-code {
			return bad("partition ranges")
		}
		p.ids, ids = ids[:p.n:p.n], ids[p.n:]
		p.scopes, scopes = scopes[:p.n:p.n], scopes[p.n:]
		p.scales, scales = scales[:p.n:p.n], scales[p.n:]
		p.sortedIDs = p.ids
		row += p.n
		code += size
		if lists > 0 {
			width := uint64(lists) * uint64(p.form.codeStride())
			if uint64(p.n) > uint64(len(sortedIDs)) || uint64(p.n) > uint64(len(sorted)) || uint64(lists) > uint64(len(ends)) ||
				uint64(lists) > uint64(len(weights)) || width > uint64(len(centroids)) {
				return bad("list ranges")
			}
			p.sortedIDs, sortedIDs = sortedIDs[:p.n:p.n], sortedIDs[p.n:]
			p.sorted, sorted = sorted[:p.n:p.n], sorted[p.n:]
			p.ends, ends = ends[:lists:lists], ends[lists:]
			p.weights, weights = weights[:lists:lists], weights[lists:]
			p.centroids, centroids = centroids[:width:width], centroids[width:]
			if !slices.IsSorted(p.ends) || p.ends[lists-1] != p.n {
				return bad("list ends")
			}
			if slices.Max(p.sorted) >= p.n {
				return bad("sorted rows")
			}
		}
		if k := len(s.spaces); k == 0 || s.spaces[k-1] != p.key.space {
			s.spaces = append(s.spaces, p.key.space)
		}
		s.parts = append(s.parts, p)
	}
	if len(ids) != 0 || len(sortedIDs) != 0 || len(sorted) != 0 || len(ends) != 0 || len(weights) != 0 || len(centroids) != 0 || code != uint64(len(s.codes)) {
		return bad("sections longer than their partitions")
	}
	return nil
}

func readVecEntry(b []byte) (p vecPart, lists uint32) {
	le := binary.LittleEndian
	p.key = vecKey{int64(le.Uint64(b)), int64(le.Uint64(b[8:])), index.Kind(b[16])}
	p.form = rowForm{index.Encoding(b[17]), le.Uint32(b[20:])}
	p.n, p.trained = le.Uint32(b[24:]), le.Uint32(b[32:])
	return p, le.Uint32(b[28:])
}

func appendVecEntry(dst []byte, key vecKey, form rowForm, rows, lists, trained uint32) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(key.space))
	dst = le.AppendUint64(dst, uint64(key.namespace))
	dst = append(dst, byte(key.kind), byte(form.encoding), 0, 0)
	dst = le.AppendUint32(dst, form.dim)
	dst = le.AppendUint32(dst, rows)
	dst = le.AppendUint32(dst, lists)
	dst = le.AppendUint32(dst, trained)
	return le.AppendUint32(dst, 0)
}

// group gives the partitions of a key: from and behind.
func (s *vecSegment) group(key vecKey) (from, to int) {
	from = sort.Search(len(s.parts), func(i int) bool { return s.parts[i].key.compare(key) >= 0 })
	for to = from; to < len(s.parts) && s.parts[to].key == key; to++ {
	}
	return from, to
}

// partOf is the number of the partition that holds a row of the segment.
func (s *vecSegment) partOf(row uint32) int {
	return sort.Search(len(s.parts), func(i int) bool { return s.parts[i].lo+s.parts[i].n > row })
}

// readCodes gives the codes of n rows of a partition after their blocks' checksums
// were verified.
func (s *vecSegment) readCodes(p *vecPart, from, n uint32) ([]byte, error) {
	stride := uint64(p.form.stride())
	lo, hi := p.codes+uint64(from)*stride, p.codes+uint64(from+n)*stride
	if err := s.verify(lo, hi); err != nil {
		return nil, err
	}
	return s.codes[lo:hi:hi], nil
}

// readFine gives what the codes of a row of a partition leave of its vector, verified
// likewise; nothing where they are the vector itself.
func (s *vecSegment) readFine(p *vecPart, row uint32) ([]byte, error) {
	stride := uint64(p.form.fineStride())
	lo := p.codes + uint64(p.n)*uint64(p.form.stride()) + uint64(row)*stride
	hi := lo + stride
	if err := s.verify(lo, hi); err != nil {
		return nil, err
	}
	return s.codes[lo:hi:hi], nil
}

// verify holds the blocks of codes lo..hi against their checksums, each once.
func (s *vecSegment) verify(lo, hi uint64) error {
	if hi <= lo {
		return nil
	}
	for b := lo / blockBytes; b <= (hi-1)/blockBytes; b++ {
		if s.seen[b].Load() {
			continue
		}
		block := s.codes[b*blockBytes : min((b+1)*blockBytes, uint64(len(s.codes)))]
		if crc32.Checksum(block, castagnoli) != s.sums[b] {
			return fmt.Errorf("%w: vector segment %s: checksum of block %d", errDamaged, s.name, b)
		}
		s.seen[b].Store(true)
	}
	return nil
}

// goneAt is how many rows of a partition were deleted by rev.
func (s *vecSegment) goneAt(part int, rev int64) int64 {
	s.goneMu.RLock()
	defer s.goneMu.RUnlock()
	return s.gone[part].at(rev)
}

// countGone counts a row of the segment, deleted at rev, as gone from revision
// `from` on; oldest is as in history.add.
func (s *vecSegment) countGone(row uint32, rev, from, oldest int64) {
	part := s.partOf(row)
	s.goneMu.Lock()
	defer s.goneMu.Unlock()
	s.gone[part] = s.gone[part].add(from, 1, oldest)
	s.late = append(s.late, lateDelete{row, rev})
}

// uncountGone undoes the last countGone.
func (s *vecSegment) uncountGone(row uint32, rev int64) {
	part := s.partOf(row)
	s.goneMu.Lock()
	defer s.goneMu.Unlock()
	s.gone[part] = s.gone[part].take(rev, 1)
	s.late = slices.DeleteFunc(s.late, func(d lateDelete) bool { return d == lateDelete{row, rev} })
}

// lateDeletes gives the deletions after a revision.
func (s *vecSegment) lateDeletes(rev int64) (out []lateDelete) {
	s.goneMu.RLock()
	defer s.goneMu.RUnlock()
	for _, d := range s.late {
		if d.rev > rev {
			out = append(out, d)
		}
	}
	return out
}

// covered forgets the deletions up to a revision that a checkpoint covers.
func (s *vecSegment) covered(rev int64) {
	s.goneMu.Lock()
	defer s.goneMu.Unlock()
	s.late = slices.DeleteFunc(s.late, func(d lateDelete) bool { return d.rev <= rev })
}

// markDeleted marks a row, deleted at rev, of a segment that no snapshot before
// the one of revision `from` has seen.
func (v *vecSegView) markDeleted(row uint32, rev, from int64) {
	if v.del.owned == nil {
		v.del = v.del.clone()
	}
	if v.del.add(row) {
		v.countGone(row, rev, from, from)
	}
}

// live counts the rows that are not deleted and in no space of dropped. Only the
// partitions of those spaces are looked at: there may be one for every tenant.
func (v *vecSegView) live(dropped []int64) (n int64) {
	n = int64(v.rows - v.del.count)
	for _, space := range v.spaces {
		if !slices.Contains(dropped, space) {
			continue
		}
		from := sort.Search(len(v.parts), func(i int) bool { return v.parts[i].key.space >= space })
		for ; from < len(v.parts) && v.parts[from].key.space == space; from++ {
			p := &v.parts[from]
			for row := p.lo; row < p.lo+p.n; row++ {
				if !v.del.has(row) {
					n--
				}
			}
		}
	}
	return n
}
