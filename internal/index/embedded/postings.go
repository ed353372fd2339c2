package embedded

import (
	"encoding/binary"
	"sort"
)

// A postings list is stored in blocks of up to 128 documents. In front stands
// a skip table with one entry a block:
//
//	last document u32, offset of the block's data from the list's start u32,
//	greatest tf u8, smallest length code u8, flags u8, documents-1 u8
//
// and a block's data is: first document u32; documents as offsets from the
// first, in 1, 2 or 4 bytes each; tf bytes unless all are equal; bytes of "extra"
// if any is not zero. tf is the weighted frequency in units; extra is the part
// of it that does not come from field text.
//
// Offsets of a fixed width cost a little more space than bit packing, and buy
// that any document of a block can be reached without decoding it.
const (
	blockSize     = 128
	skipEntrySize = 12

	flagWidth   = 3 // 0, 1, 2: 1, 2, 4 bytes a document
	flagConstTF = 4
	flagExtra   = 8
)

// posting is one document of a list that is being written.
type posting struct {
	doc   uint32
	tf    uint8
	extra uint8
}

// appendPostings appends the stored form of list, which is ascending by
// document; lens are the length codes by document number.
func appendPostings(dst []byte, list []posting, lens []uint8) []byte {
	nblk := (len(list) + blockSize - 1) / blockSize
	start := len(dst)
	dst = append(dst, make([]byte, nblk*skipEntrySize)...)
	for i := range nblk {
		blk := list[i*blockSize : min((i+1)*blockSize, len(list))]
		first, last := blk[0].doc, blk[len(blk)-1].doc
		off := len(dst) - start
		var maxTF, minLen, flags, anyExtra uint8
		minLen = 255
		constTF := true
		for _, p := range blk {
			maxTF = max(maxTF, p.tf)
			minLen = min(minLen, lens[p.doc])
			anyExtra |= p.extra
			constTF = constTF && p.tf == blk[0].tf
		}
		switch span := last - first; {
		case span < 1<<8:
			flags = 0
		case span < 1<<16:
			flags = 1
		default:
			flags = 2
		}
		dst = binary.LittleEndian.AppendUint32(dst, first)
		for _, p := range blk {
			switch d := p.doc - first; flags {
			case 0:
				dst = append(dst, uint8(d))
			case 1:
				dst = binary.LittleEndian.AppendUint16(dst, uint16(d))
			default:
				dst = binary.LittleEndian.AppendUint32(dst, d)
			}
		}
		if constTF {
			flags |= flagConstTF
		} else {
			for _, p := range blk {
				dst = append(dst, p.tf)
			}
		}
		if anyExtra != 0 {
			flags |= flagExtra
			for _, p := range blk {
				dst = append(dst, p.extra)
			}
		}
		s := dst[start+i*skipEntrySize:]
		binary.LittleEndian.PutUint32(s, last)
		binary.LittleEndian.PutUint32(s[4:], uint32(off))
		s[8], s[9], s[10], s[11] = maxTF, minLen, flags, uint8(len(blk)-1)
	}
	return dst
}

// plist is a postings list cut to the document range of a partition. It comes
// from a segment file (data), from the dictionary itself (one posting), or from
// the tail (docs).
type plist struct {
	df       uint32 // postings in the range, deleted documents included
	nblk     int    // blocks of the list
	b0, b1   int    // blocks that overlap the range
	lo, hi   uint32 // the range
	data     []byte
	one      posting
	posts    []posting // tail
	maxTF    uint8     // tail: over the whole list
	minLen   uint8
	nonEmpty bool
}

func (l *plist) skip(i int) []byte { return l.data[i*skipEntrySize : i*skipEntrySize+skipEntrySize] }

// lastDoc is the last document of block i.
func (l *plist) lastDoc(i int) uint32 {
	switch {
	case l.posts != nil:
		return l.posts[min((i+1)*blockSize, len(l.posts))-1].doc
	case l.data != nil:
		return binary.LittleEndian.Uint32(l.skip(i))
	default:
		return l.one.doc
	}
}

// bounds are the greatest tf and the smallest length code in block i.
func (l *plist) bounds(i int) (maxTF, minLen uint8) {
	switch {
	case l.posts != nil:
		return l.maxTF, l.minLen
	case l.data != nil:
		s := l.skip(i)
		return s[8], s[9]
	default:
		return l.one.tf, 0
	}
}

// findBlock is the first block from block `from` on whose last document is not
// below doc, or b1.
func (l *plist) findBlock(from int, doc uint32) int {
	// Gallop: searches move forward in small steps.
	step, lo := 1, from
	for lo < l.b1 && l.lastDoc(lo) < doc {
		next := lo + step
		if next >= l.b1 {
			next = l.b1
		} else if l.lastDoc(next) < doc {
			lo, step = next, step*2
			continue
		}
		return lo + 1 + sort.Search(next-lo-1, func(i int) bool { return l.lastDoc(lo+1+i) >= doc })
	}
	return lo
}

// rankOf counts the postings of a stored list that lie below doc.
func rankOf(data []byte, nblk int, doc uint32) int {
	blk := sort.Search(nblk, func(i int) bool {
		return binary.LittleEndian.Uint32(data[i*skipEntrySize:]) >= doc
	})
	if blk == nblk {
		if nblk == 0 {
			return 0
		}
		return (nblk-1)*blockSize + int(data[(nblk-1)*skipEntrySize+11]) + 1
	}
	v := blockAt(data, blk)
	return blk*blockSize + v.search(doc)
}

// blockView is one block of a list, undecoded.
type blockView struct {
	n      int
	first  uint32
	width  uint8
	docs   []byte
	posts  []posting // tail
	tfs    []uint8   // nil: all constTF
	tf     uint8
	extras []uint8 // nil: all extra
	extra  uint8
	one    bool // a single document, the first
}

func blockAt(data []byte, i int) blockView {
	s := data[i*skipEntrySize:]
	off := binary.LittleEndian.Uint32(s[4:])
	maxTF, flags, n := s[8], s[10], int(s[11])+1
	p := data[off:]
	v := blockView{n: n, first: binary.LittleEndian.Uint32(p), width: flags & flagWidth, tf: maxTF}
	p = p[4:]
	size := n << v.width
	v.docs = p[:size]
	p = p[size:]
	if flags&flagConstTF == 0 {
		v.tfs = p[:n]
		p = p[n:]
	}
	if flags&flagExtra != 0 {
		v.extras = p[:n]
	}
	return v
}

// block gives block i of the list.
func (l *plist) block(i int) blockView {
	switch {
	case l.posts != nil:
		lo, hi := i*blockSize, min((i+1)*blockSize, len(l.posts))
		return blockView{n: hi - lo, posts: l.posts[lo:hi]}
	case l.data != nil:
		return blockAt(l.data, i)
	default:
		return blockView{n: 1, first: l.one.doc, one: true, tf: l.one.tf, extra: l.one.extra}
	}
}

func (v *blockView) doc(i int) uint32 {
	if v.posts != nil {
		return v.posts[i].doc
	}
	if v.one {
		return v.first
	}
	switch v.width {
	case 0:
		return v.first + uint32(v.docs[i])
	case 1:
		return v.first + uint32(binary.LittleEndian.Uint16(v.docs[2*i:]))
	default:
		return v.first + binary.LittleEndian.Uint32(v.docs[4*i:])
	}
}

// search is the index of the first document not below doc, or n.
func (v *blockView) search(doc uint32) int {
	lo, hi := 0, v.n
	if v.posts == nil && !v.one && v.width < 2 {
		if doc <= v.first {
			return 0
		}
		if v.width == 0 {
			return searchBytes(v.docs[:v.n], doc-v.first)
		}
		off := doc - v.first
		for docs := v.docs[:2*v.n]; lo < hi; {
			m := int(uint(lo+hi) >> 1)
			if uint32(binary.LittleEndian.Uint16(docs[2*m:])) < off {
				lo = m + 1
			} else {
				hi = m
			}
		}
		return lo
	}
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if v.doc(m) < doc {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// searchBytes is the index of the first of some ascending offsets that is not below
// off, or their number.
func searchBytes(docs []uint8, off uint32) int {
	lo, hi := 0, len(docs)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if uint32(docs[m]) < off {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// decode writes the block's documents to buf.
func (v *blockView) decode(buf *[blockSize]uint32) {
	switch {
	case v.posts != nil:
		for i := range v.posts {
			buf[i&(blockSize-1)] = v.posts[i].doc
		}
	case v.one:
		buf[0] = v.first
	case v.width == 0:
		for i, d := range v.docs {
			buf[i&(blockSize-1)] = v.first + uint32(d)
		}
	case v.width == 1:
		docs := v.docs
		for i := 0; len(docs) >= 2; i++ {
			buf[i&(blockSize-1)] = v.first + uint32(binary.LittleEndian.Uint16(docs))
			docs = docs[2:]
		}
	default:
		docs := v.docs
		for i := 0; len(docs) >= 4; i++ {
			buf[i&(blockSize-1)] = v.first + binary.LittleEndian.Uint32(docs)
			docs = docs[4:]
		}
	}
}

func (v *blockView) freq(i int) (tf, extra uint8) {
	if v.posts != nil {
		return v.posts[i].tf, v.posts[i].extra
	}
	tf, extra = v.tf, v.extra
	if v.tfs != nil {
		tf = v.tfs[i]
	}
	if v.extras != nil {
		extra = v.extras[i]
	}
	return tf, extra
}

// cursor walks a list, and looks single documents up in it. It may move either
// way; moving forward is cheap.
type cursor struct {
	plist
	view blockView
	blk  int // block in view and buf; -1: none
	pos  int
	buf  [blockSize]uint32

	looked blockView // what find looked at last, undecoded
	at     int       // its block; -1: none
}

func (c *cursor) reset(l plist) {
	c.plist = l
	c.blk = -1
	c.pos = 0
	c.at = -1
}

// find looks a document up, wherever seek stands, and gives its frequency; false
// when the list does not have it. It decodes nothing: for a document here and there
// that is several times what finding one takes.
func (c *cursor) find(doc uint32) (tf, extra uint8, ok bool) {
	if !c.nonEmpty || doc < c.lo || doc >= c.hi {
		return 0, 0, false
	}
	if c.at < 0 || c.lastDoc(c.at) < doc || c.at > c.b0 && c.lastDoc(c.at-1) >= doc {
		from := c.b0
		if c.at >= 0 && c.lastDoc(c.at) < doc {
			from = c.at + 1
		}
		i := c.findBlock(from, doc)
		if i >= c.b1 {
			return 0, 0, false
		}
		c.looked, c.at = c.block(i), i
	}
	i := c.looked.search(doc)
	if i >= c.looked.n || c.looked.doc(i) != doc {
		return 0, 0, false
	}
	tf, extra = c.looked.freq(i)
	return tf, extra, true
}

func (c *cursor) load(i int) {
	c.view = c.block(i)
	c.view.decode(&c.buf)
	c.blk = i
	c.pos = 0
}

// none is the document number that no document has.
const none = ^uint32(0)

// seek moves to the first posting at or after doc and gives its document, or
// none when the range has no further one.
func (c *cursor) seek(doc uint32) uint32 {
	if !c.nonEmpty {
		return none
	}
	if c.blk < 0 || c.buf[c.view.n-1] < doc || c.buf[0] > doc && c.blk > c.b0 && c.lastDoc(c.blk-1) >= doc {
		from := c.b0
		if c.blk >= 0 && c.buf[c.view.n-1] < doc {
			from = c.blk + 1
		}
		i := c.findBlock(from, doc)
		if i >= c.b1 {
			return none
		}
		if i != c.blk {
			c.load(i)
		}
	}
	lo, hi := 0, c.view.n
	if c.pos < hi && c.buf[c.pos&(blockSize-1)] <= doc {
		lo = c.pos
	}
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if c.buf[m&(blockSize-1)] < doc {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == c.view.n {
		// Only when the block's last document was below doc, which findBlock
		// excludes.
		return none
	}
	c.pos = lo
	d := c.buf[lo]
	if d < doc {
		panic(errDamaged) // the list does not ascend
	}
	if d < c.hi {
		return d
	}
	return none
}

// freq is the frequency at the posting that seek moved to.
func (c *cursor) freq() (tf, extra uint8) { return c.view.freq(c.pos) }
