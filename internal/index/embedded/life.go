package embedded

import (
	"encoding/binary"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/loci-memory/loci/internal/index"
)

// The bounds of a life, in the order of their sections.
const (
	boundExpires = iota
	boundFrom
	boundTo
	numBounds
)

// boundEntry says at which time a document has a bound.
type boundEntry struct {
	time int64
	doc  uint32
}

// boundEntrySize is the size of a boundEntry in a file.
const boundEntrySize = 12

// boundsOf gives a life's bounds by number; 0: none.
func boundsOf(l *index.Life) [numBounds]int64 {
	return [numBounds]int64{boundExpires: l.Expires, boundFrom: l.ValidFrom, boundTo: l.ValidTo}
}

// addLife notes the bounds of a document that a segment file is to hold.
func (d *segmentData) addLife(l *index.Life, doc uint32) {
	for i, time := range boundsOf(l) {
		if time != 0 {
			d.bounds[i] = append(d.bounds[i], boundEntry{time, doc})
		}
	}
}

// lives writes the bounds of each partition by time, so that what a filter hides
// is a run of them at one end.
func (w *sectionWriter) lives(d *segmentData) error {
	for i, entries := range d.bounds {
		if err := w.begin(secExpires + section(i)); err != nil {
			return err
		}
		// Partitions are ranges of documents.
		slices.SortFunc(entries, func(a, b boundEntry) int { return cmpInt(a.doc < b.doc) })
		var buf []byte
		for _, p := range d.parts {
			n := sort.Search(len(entries), func(i int) bool { return entries[i].doc >= p.hi })
			mine := entries[:n]
			entries = entries[n:]
			slices.SortFunc(mine, func(a, b boundEntry) int {
				if a.time != b.time {
					return cmpInt(a.time < b.time)
				}
				return cmpInt(a.doc < b.doc)
			})
			buf = buf[:0]
			for _, e := range mine {
				buf = binary.LittleEndian.AppendUint64(buf, uint64(e.time))
				buf = binary.LittleEndian.AppendUint32(buf, e.doc)
			}
			if err := w.write(buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// span is a run of a section's entries.
type span struct{ lo, hi uint32 }

// partLives are the bounds of a segment's partition.
type partLives struct {
	bounds [numBounds]span
	last   atomic.Pointer[hiddenSet]
}

// hiddenSet are the documents of a partition that a hiding hides, as bits from
// its first on.
type hiddenSet struct {
	by   hiding
	bits []uint64
}

func (s *segment) boundAt(bound int, i uint32) boundEntry {
	b := s.sec[secExpires+section(bound)][int(i)*boundEntrySize:]
	return boundEntry{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])}
}

// readLives finds each partition's bounds. It gives false when they are not in
// order or name documents that are not there.
func (s *segment) readLives() bool {
	s.lives = make([]partLives, len(s.parts))
	for bound := range numBounds {
		size := len(s.sec[secExpires+section(bound)])
		if size%boundEntrySize != 0 || size/boundEntrySize > int(s.numDocs) {
			return false
		}
		n, at := uint32(size/boundEntrySize), uint32(0)
		for i := range s.parts {
			p := &s.parts[i]
			from := at
			var last boundEntry
			for ; at < n; at++ {
				e := s.boundAt(bound, at)
				if e.doc >= p.hi {
					break
				}
				if e.doc < p.lo || e.time == 0 || at > from && (e.time < last.time || e.time == last.time && e.doc <= last.doc) {
					return false
				}
				last = e
			}
			s.lives[i].bounds[bound] = span{from, at}
		}
		if at != n {
			return false
		}
	}
	return true
}

// eachBound calls f with every bound of a segment.
func (s *segment) eachBound(f func(bound int, e boundEntry)) {
	for bound := range numBounds {
		for i := range uint32(len(s.sec[secExpires+section(bound)]) / boundEntrySize) {
			f(bound, s.boundAt(bound, i))
		}
	}
}

// hiding are the entries of each bound whose documents a filter hides; the zero
// value hides none.
type hiding [numBounds]span

// entries is how many they are: at least as many as the documents.
func (h *hiding) entries() (n int) {
	for _, s := range h {
		n += int(s.hi - s.lo)
	}
	return n
}

// hides works out which documents of a partition f hides for their life.
func (s *segment) hides(part int, f *index.Filter) (h hiding) {
	all := &s.lives[part].bounds
	// ended is the run of the bounds that are not later than time.
	ended := func(bound int, time int64) span {
		r := all[bound]
		if r.lo == r.hi || s.boundAt(bound, r.lo).time > time {
			return span{}
		}
		n := sort.Search(int(r.hi-r.lo), func(i int) bool { return s.boundAt(bound, r.lo+uint32(i)).time > time })
		return span{r.lo, r.lo + uint32(n)}
	}
	if f.Now != 0 {
		h[boundExpires] = ended(boundExpires, f.Now)
	}
	if !f.HasValid {
		return h
	}
	h[boundTo] = ended(boundTo, f.ValidAt)
	if r := all[boundFrom]; r.lo < r.hi && s.boundAt(boundFrom, r.hi-1).time > f.ValidAt {
		begun := ended(boundFrom, f.ValidAt)
		h[boundFrom] = span{r.lo + begun.hi - begun.lo, r.hi}
	}
	return h
}

// eachHidden calls f with every document that h hides, those with two bounds
// perhaps twice.
func (s *segment) eachHidden(h *hiding, f func(doc uint32)) {
	for bound, r := range h {
		for i := r.lo; i < r.hi; i++ {
			f(s.boundAt(bound, i).doc)
		}
	}
}

// hide clears the bits, from the partition's first document on, of those that h
// hides.
func (s *segment) hide(part int, h *hiding, bits []uint64) {
	lo := s.parts[part].lo
	if h.entries() < len(bits) {
		s.eachHidden(h, func(doc uint32) {
			doc -= lo
			bits[doc>>6] &^= 1 << (doc & 63)
		})
		return
	}
	// What was replaced long ago stays hidden: most filters find what the last
	// one did.
	last := &s.lives[part].last
	set := last.Load()
	if set == nil || set.by != *h {
		set = &hiddenSet{*h, make([]uint64, len(bits))}
		s.eachHidden(h, func(doc uint32) {
			doc -= lo
			set.bits[doc>>6] |= 1 << (doc & 63)
		})
		last.Store(set)
	}
	for i, w := range set.bits {
		bits[i] &^= w
	}
}

// tailLives are the lives of a tail's documents and their outermost bounds.
type tailLives struct {
	byDoc   []index.Life // nil while no document has a bound
	expires int64        // the least; 0: none
	from    int64        // the greatest
	to      int64        // the least
}

// add appends the life of document number doc.
func (t *tailLives) add(l *index.Life, doc uint32) {
	if *l != (index.Life{}) && t.byDoc == nil {
		t.byDoc = make([]index.Life, doc, doc+stampChunk)
	}
	if t.byDoc == nil {
		return
	}
	t.byDoc = append(t.byDoc, *l)
	least := func(a *int64, b int64) {
		if b != 0 && (*a == 0 || b < *a) {
			*a = b
		}
	}
	least(&t.expires, l.Expires)
	least(&t.to, l.ValidTo)
	if l.ValidFrom != 0 && (t.from == 0 || l.ValidFrom > t.from) {
		t.from = l.ValidFrom
	}
}

// truncate keeps the first n documents. The outermost bounds stay what they were:
// they only say when there is nothing to look for.
func (t *tailLives) truncate(n uint32) {
	if t.byDoc != nil {
		t.byDoc = t.byDoc[:n]
	}
}

// mayHide says whether f may hide any document.
func (t *tailLives) mayHide(f *index.Filter) bool {
	bounds := index.Life{Expires: t.expires, ValidFrom: t.from, ValidTo: t.to}
	return !bounds.Shows(f.Now, f.ValidAt, f.HasValid)
}

// at is the life of a document.
func (t *tailLives) at(doc uint32) (l index.Life) {
	if t.byDoc != nil {
		l = t.byDoc[doc]
	}
	return l
}

// shows says whether f lets see a document, as far as its life goes.
func (t *tailLives) shows(doc uint32, f *index.Filter) bool {
	return t.byDoc[doc].Shows(f.Now, f.ValidAt, f.HasValid)
}
