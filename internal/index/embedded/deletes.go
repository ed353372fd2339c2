package embedded

import (
	"sort"
	"sync"
)

// pageDocs is how many documents one page of a deleteSet covers.
const pageDocs = 4096

// deleteSet is the set of a segment's deleted documents at one revision. It is
// immutable once it is part of a snapshot; pages without deletes are nil.
type deleteSet struct {
	pages []*[pageDocs / 64]uint64
	count uint32
	owned []bool // pages made by this set, only while it is being built
}

func newDeleteSet(numDocs uint32) *deleteSet {
	return &deleteSet{pages: make([]*[pageDocs / 64]uint64, (numDocs+pageDocs-1)/pageDocs)}
}

func (s *deleteSet) has(doc uint32) bool {
	if s.count == 0 {
		return false
	}
	p := s.pages[doc/pageDocs]
	return p != nil && p[doc%pageDocs/64]&(1<<(doc%64)) != 0
}

// word gives the marks of the 64 documents from doc on as bits; there need not be
// so many.
func (s *deleteSet) word(doc uint32) uint64 {
	if s.count == 0 {
		return 0
	}
	at := func(w uint32) uint64 { // the word w of all pages
		if i := w / (pageDocs / 64); int(i) < len(s.pages) && s.pages[i] != nil {
			return s.pages[i][w%(pageDocs/64)]
		}
		return 0
	}
	low, shift := at(doc/64), doc%64
	if shift == 0 {
		return low
	}
	return low>>shift | at(doc/64+1)<<(64-shift)
}

// clone gives a set that can be added to without changing s.
func (s *deleteSet) clone() *deleteSet {
	return &deleteSet{pages: append([]*[pageDocs / 64]uint64(nil), s.pages...), count: s.count, owned: make([]bool, len(s.pages))}
}

// add marks doc and says whether it was not yet marked.
func (s *deleteSet) add(doc uint32) bool {
	if s.has(doc) {
		return false
	}
	i := doc / pageDocs
	if s.pages[i] == nil {
		s.pages[i] = new([pageDocs / 64]uint64)
	} else if !s.owned[i] {
		p := *s.pages[i]
		s.pages[i] = &p
	}
	s.owned[i] = true
	s.pages[i][doc%pageDocs/64] |= 1 << (doc % 64)
	s.count++
	return true
}

// each calls f for every marked document that old, an earlier state of the same
// set, does not have. old may be nil.
func (s *deleteSet) each(old *deleteSet, f func(doc uint32)) {
	for i, p := range s.pages {
		if p == nil || old != nil && old.pages[i] == p {
			continue
		}
		for w, bits := range p {
			if old != nil && old.pages[i] != nil {
				bits &^= old.pages[i][w]
			}
			for ; bits != 0; bits &= bits - 1 {
				f(uint32(i*pageDocs+w*64) + uint32(trailingZeros(bits)))
			}
		}
	}
}

// history is a count over revisions: at revision r it is the sum of the last
// stamp that is not later. Old stamps fold into the first.
type history []stamp

type stamp struct {
	rev int64
	sum int64
}

func (h history) at(rev int64) int64 {
	i := sort.Search(len(h), func(i int) bool { return h[i].rev > rev })
	if i == 0 {
		return 0
	}
	return h[i-1].sum
}

// add counts n more from rev on; no snapshot older than oldest is looked at any
// more.
func (h history) add(rev, n, oldest int64) history {
	if k := len(h); k > 0 && h[k-1].rev == rev {
		h[k-1].sum += n
		return h
	}
	if len(h) >= 4 {
		// The last stamp not later than oldest answers for all before it.
		i := sort.Search(len(h), func(i int) bool { return h[i].rev > oldest })
		if i > 1 {
			h = append(h[:0], h[i-1:]...)
		}
	}
	var sum int64
	if k := len(h); k > 0 {
		sum = h[k-1].sum
	}
	return append(h, stamp{rev, sum + n})
}

// take undoes add(rev, n).
func (h history) take(rev, n int64) history {
	k := len(h)
	if k == 0 || h[k-1].rev != rev {
		return h
	}
	h[k-1].sum -= n
	if k == 1 && h[0].sum == 0 || k > 1 && h[k-1].sum == h[k-2].sum {
		return h[:k-1]
	}
	return h
}

// statsHistory is a history of stats.
type statsHistory []statsStamp

func (h statsHistory) at(rev int64) fieldStats {
	i := sort.Search(len(h), func(i int) bool { return h[i].rev > rev })
	if i == 0 {
		return fieldStats{}
	}
	return h[i-1].stats
}

func (h statsHistory) add(rev int64, st fieldStats, oldest int64) statsHistory {
	if k := len(h); k > 0 && h[k-1].rev == rev {
		h[k-1].stats.add(&st, 1)
		return h
	}
	if len(h) >= 4 {
		i := sort.Search(len(h), func(i int) bool { return h[i].rev > oldest })
		if i > 1 {
			h = append(h[:0], h[i-1:]...)
		}
	}
	if k := len(h); k > 0 {
		st.add(&h[k-1].stats, 1)
	}
	return append(h, statsStamp{rev, st})
}

func (h statsHistory) take(rev int64, st fieldStats) statsHistory {
	k := len(h)
	if k == 0 || h[k-1].rev != rev {
		return h
	}
	h[k-1].stats.add(&st, -1)
	if k == 1 && h[0].stats == (fieldStats{}) || k > 1 && h[k-1].stats == h[k-2].stats {
		return h[:k-1]
	}
	return h
}

type statsStamp struct {
	rev   int64
	stats fieldStats
}

// deleteCounters say, for each partition of a segment, how many of a term's
// documents were deleted and what the deleted documents' stats sum up to, at
// any revision that a snapshot still holds. They keep document frequencies
// exact without touching the postings.
type deleteCounters struct {
	mu    sync.RWMutex
	terms map[uint64]history // by partition<<32 | term
	stats map[uint32]statsHistory
}

func counterKey(part int, term uint32) uint64 { return uint64(part)<<32 | uint64(term) }

// termCount is how many of a term's documents in a partition were deleted by
// rev.
func (c *deleteCounters) termCount(part int, term uint32, rev int64) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.terms[counterKey(part, term)].at(rev)
}

// statsAt are the stats of a partition's documents deleted by rev.
func (c *deleteCounters) statsAt(part int, rev int64) fieldStats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.stats[uint32(part)].at(rev)
}

// remove counts a document as deleted at rev.
func (c *deleteCounters) remove(s *segment, part int, doc uint32, rev, oldest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terms == nil {
		c.terms = map[uint64]history{}
		c.stats = map[uint32]statsHistory{}
	}
	s.forward(doc, func(term uint32) {
		k := counterKey(part, term)
		c.terms[k] = c.terms[k].add(rev, 1, oldest)
	})
	c.stats[uint32(part)] = c.stats[uint32(part)].add(rev, statsOf(s.codes(doc)), oldest)
}

// restore undoes remove.
func (c *deleteCounters) restore(s *segment, part int, doc uint32, rev int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.forward(doc, func(term uint32) {
		k := counterKey(part, term)
		c.terms[k] = c.terms[k].take(rev, 1)
	})
	c.stats[uint32(part)] = c.stats[uint32(part)].take(rev, statsOf(s.codes(doc)))
}
