package embedded

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"
)

// segmentData is what a segment file is written from: columns in the order of
// their documents, and streams of terms and attributes in ascending order.
type segmentData struct {
	parts    []partRange // keys and ranges; the writer fills in the stats
	ids      []int64
	lens     [numLens][]uint8
	scope    []uint32
	thread   []uint32
	position []int64
	created  []int64
	bounds   [numBounds][]boundEntry // in any order

	// terms yields each term's key with its postings, ascending; the slices are
	// the source's until the next step.
	terms iter.Seq2[[]byte, []posting]
	// attrs yields each attribute's key with its documents, ascending.
	attrs iter.Seq2[[]byte, []uint32]
	// forward appends the numbers of a document's terms, ascending. It is asked
	// document by document after all terms were taken.
	forward func(doc uint32, dst []uint32) []uint32
}

// writeSegment writes and syncs a segment file under a temporary name and
// renames it to name. The directory is not yet synced.
func writeSegment(fs FS, name string, d *segmentData) error {
	return writeSections(fs, name, textForm, func(w *sectionWriter) error {
		for _, part := range []func(*segmentData) error{w.columns, w.dictionary, w.attributes, w.threads, w.forward, w.lives} {
			if err := part(d); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *sectionWriter) columns(d *segmentData) error {
	var buf []byte
	for i := range d.parts {
		p := &d.parts[i]
		p.stats = fieldStats{}
		for doc := p.lo; doc < p.hi; doc++ {
			st := statsOf(d.codes(doc))
			p.stats.add(&st, 1)
		}
		buf = appendPartRange(buf, p)
	}
	if err := w.all(secPartitions, buf); err != nil {
		return err
	}
	if err := w.int64s(secIDs, d.ids); err != nil {
		return err
	}
	for i := range numLens {
		col := d.lens[i]
		if i >= lenName && !slices.ContainsFunc(col, func(c uint8) bool { return c != 0 }) {
			col = nil
		}
		if err := w.all(secLenAll+section(i), col); err != nil {
			return err
		}
	}
	if err := w.uint32s(secScope, d.scope); err != nil {
		return err
	}
	if err := w.uint32s(secThread, d.thread); err != nil {
		return err
	}
	pos := d.position
	if !slices.ContainsFunc(pos, func(p int64) bool { return p != noPosition }) {
		pos = nil
	}
	if err := w.int64s(secPosition, pos); err != nil {
		return err
	}
	return w.int64s(secCreated, d.created)
}

func (d *segmentData) codes(doc uint32) (c [numLens]uint8) {
	for i := range c {
		c[i] = d.lens[i][doc]
	}
	return c
}

func (w *sectionWriter) int64s(s section, col []int64) error {
	if err := w.begin(s); err != nil {
		return err
	}
	buf := make([]byte, 0, 8*1024)
	for chunk := range slices.Chunk(col, 1024) {
		buf = buf[:0]
		for _, v := range chunk {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(v))
		}
		if err := w.write(buf); err != nil {
			return err
		}
	}
	return nil
}

func (w *sectionWriter) uint32s(s section, col []uint32) error {
	if err := w.begin(s); err != nil {
		return err
	}
	buf := make([]byte, 0, 4*1024)
	for chunk := range slices.Chunk(col, 1024) {
		buf = buf[:0]
		for _, v := range chunk {
			buf = binary.LittleEndian.AppendUint32(buf, v)
		}
		if err := w.write(buf); err != nil {
			return err
		}
	}
	return nil
}

// dictionary writes the postings as they come and keeps the dictionary in
// memory until then: some 40 bytes a term.
func (w *sectionWriter) dictionary(d *segmentData) error {
	if err := w.begin(secPostings); err != nil {
		return err
	}
	var terms, dict, buf []byte
	var hashes []uint64
	var off uint64
	for key, list := range d.terms {
		if len(list) == 0 {
			continue
		}
		e := dictEntry{termOff: uint32(len(terms)), df: uint32(len(list)), termLen: uint32(len(key))}
		terms = append(terms, key...)
		if len(terms) > 1<<32-1 {
			return fmt.Errorf("more than 4 GiB of terms in one segment")
		}
		if len(list) == 1 {
			e.post = inlinePosting(list[0])
		} else {
			e.post = off
			buf = appendPostings(buf[:0], list, d.lensOfClass(key[0]))
			if err := w.write(buf); err != nil {
				return err
			}
			off += uint64(len(buf))
		}
		dict = e.append(dict)
		hashes = append(hashes, xxhash.Sum64(key))
	}
	if err := w.all(secTerms, terms); err != nil {
		return err
	}
	if err := w.all(secDict, dict); err != nil {
		return err
	}
	return w.uint32s(secHash, hashTable(hashes))
}

// lensOfClass are the lengths that a class's block bounds are taken from.
func (d *segmentData) lensOfClass(class byte) []uint8 {
	switch class {
	case className:
		return d.lens[lenName]
	case classPath:
		return d.lens[lenPath]
	default:
		return d.lens[lenAll]
	}
}

// hashTable places term i at hashes[i], by linear probing, at most two thirds
// full.
func hashTable(hashes []uint64) []uint32 {
	if len(hashes) == 0 {
		return nil
	}
	size := uint32(1) << bits.Len(uint(len(hashes)*3/2))
	table := make([]uint32, size)
	for i, h := range hashes {
		slot := uint32(h) & (size - 1)
		for table[slot] != 0 {
			slot = (slot + 1) & (size - 1)
		}
		table[slot] = uint32(i) + 1
	}
	return table
}

// rawListMax is the longest document list that is stored as plain numbers;
// longer ones are roaring bitmaps.
const rawListMax = 32

func (w *sectionWriter) attributes(d *segmentData) error {
	if err := w.begin(secAttrDocs); err != nil {
		return err
	}
	var keys, dict, buf []byte
	var off uint64
	for key, docs := range d.attrs {
		if len(docs) == 0 {
			continue
		}
		e := dictEntry{post: off, termOff: uint32(len(keys)), df: uint32(len(docs)), termLen: uint32(len(key))}
		keys = append(keys, key...)
		if len(keys) > 1<<32-1 {
			return fmt.Errorf("more than 4 GiB of metadata values in one segment")
		}
		buf = buf[:0]
		if len(docs) <= rawListMax {
			for _, doc := range docs {
				buf = binary.LittleEndian.AppendUint32(buf, doc)
			}
		} else {
			bm := roaring.BitmapOf(docs...)
			bm.RunOptimize()
			b, err := bm.ToBytes()
			if err != nil {
				return err
			}
			buf = append(buf, b...)
		}
		// Roaring reads its containers in place, which wants them aligned.
		buf = append(buf, make([]byte, alignUp(uint64(len(buf)))-uint64(len(buf)))...)
		if err := w.write(buf); err != nil {
			return err
		}
		off += uint64(len(buf))
		dict = e.append(dict)
	}
	if err := w.all(secAttrKeys, keys); err != nil {
		return err
	}
	return w.all(secAttrDict, dict)
}

// threads groups the documents of each partition by thread, in the order of
// their positions.
func (w *sectionWriter) threads(d *segmentData) error {
	var entries []byte
	var all []uint32
	for part, p := range d.parts {
		start := len(all)
		for doc := p.lo; doc < p.hi; doc++ {
			if d.thread[doc] != 0 {
				all = append(all, doc)
			}
		}
		docs := all[start:]
		slices.SortFunc(docs, func(a, b uint32) int {
			switch {
			case d.thread[a] != d.thread[b]:
				return cmpInt(d.thread[a] < d.thread[b])
			case d.position[a] != d.position[b]:
				return cmpInt(d.position[a] < d.position[b])
			default:
				return cmpInt(a < b)
			}
		})
		for i := 0; i < len(docs); {
			j := i
			for j < len(docs) && d.thread[docs[j]] == d.thread[docs[i]] {
				j++
			}
			le := binary.LittleEndian
			entries = le.AppendUint32(entries, uint32(part))
			entries = le.AppendUint32(entries, d.thread[docs[i]])
			entries = le.AppendUint32(entries, uint32(start+i))
			entries = le.AppendUint32(entries, uint32(j-i))
			i = j
		}
	}
	if err := w.all(secThreads, entries); err != nil {
		return err
	}
	return w.uint32s(secThreadDocs, all)
}

func cmpInt(less bool) int {
	if less {
		return -1
	}
	return 1
}

func (w *sectionWriter) forward(d *segmentData) error {
	if err := w.begin(secForward); err != nil {
		return err
	}
	offs := make([]uint32, 1, len(d.ids)+1)
	var nums []uint32
	var buf []byte
	var off uint64
	for doc := range d.ids {
		nums = d.forward(uint32(doc), nums[:0])
		buf = buf[:0]
		prev := uint32(0)
		for _, n := range nums {
			buf = binary.AppendUvarint(buf, uint64(n-prev))
			prev = n
		}
		if err := w.write(buf); err != nil {
			return err
		}
		off += uint64(len(buf))
		if off > 1<<32-1 {
			return fmt.Errorf("more than 4 GiB of term lists in one segment")
		}
		offs = append(offs, uint32(off))
	}
	return w.uint32s(secForwardOff, offs)
}
