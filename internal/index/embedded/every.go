package embedded

import (
	"math/bits"
	"slices"
)

// every finds the best documents that hold every group of the query.
func (s *searcher) every(p *searchPart, h *topK) {
	order := make([]int, len(s.groups))
	cost := make([]int, len(s.groups))
	for i := range s.groups {
		order[i] = i
		cost[i] = s.groupDF(p, &s.groups[i])
		if cost[i] == 0 {
			return
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		if cost[a] != cost[b] {
			return cost[a] - cost[b]
		}
		return a - b
	})
	if p.filter.list != nil && len(p.filter.list)*seekCost < cost[order[0]] {
		for _, doc := range p.filter.list {
			if s.holdsAll(p, order, doc) {
				s.offer(p, doc, s.score(p, s.scored, doc), h)
			}
		}
		return
	}
	if len(s.groups) == 1 && len(s.scored) == 1 {
		s.single(p, s.scored[0], h)
		return
	}
	p.resetBounds()
	lead := &s.groups[order[0]]
	for w := p.lo; w < p.hi; w += windowDocs {
		next := s.groupNext(p, lead, w)
		if next >= p.hi {
			return
		}
		w += (next - w) / windowDocs * windowDocs
		end := min(w+windowDocs, p.hi)
		if h.full() {
			if sum, _ := s.windowBounds(p, s.scored, w, end); sum < h.need(p.minID(w)) {
				continue
			}
		}
		s.everyWindow(p, order, w, end, h)
	}
}

// groupDF is at least the number of documents that hold a group.
func (s *searcher) groupDF(p *searchPart, g *group) (n int) {
	for _, alt := range g.alts {
		least := -1
		for _, t := range alt {
			if df := int(p.cur[t].df); least < 0 || df < least {
				least = df
			}
		}
		n += max(least, 0)
	}
	return n
}

// groupNext is the first document from doc on that may hold a group.
func (s *searcher) groupNext(p *searchPart, g *group, doc uint32) uint32 {
	next := none
	for _, alt := range g.alts {
		at := uint32(0)
		for _, t := range alt {
			at = max(at, p.cur[t].seek(doc))
		}
		next = min(next, at)
	}
	return next
}

// holds says whether a document holds a group.
func (s *searcher) holds(p *searchPart, g *group, doc uint32) bool {
alternatives:
	for _, alt := range g.alts {
		for _, t := range alt {
			if !s.holdsTerm(p, t, doc) {
				continue alternatives
			}
		}
		return true
	}
	return false
}

// holdsTerm says whether a document holds a term in the field that is looked at.
func (s *searcher) holdsTerm(p *searchPart, term int, doc uint32) bool {
	tf, extra, ok := p.cur[term].find(doc)
	return ok && (!s.text || tf != extra)
}

func (s *searcher) holdsAll(p *searchPart, order []int, doc uint32) bool {
	for _, g := range order {
		if !s.holds(p, &s.groups[g], doc) {
			return false
		}
	}
	return true
}

// seekMax is how many documents of a window are looked up one by one before
// their bitmap is intersected instead.
const seekMax = 32

// everyWindow intersects the groups within a window, rarest first, and scores
// what is left.
func (s *searcher) everyWindow(p *searchPart, order []int, w, end uint32, h *topK) {
	left := s.groupBits(p, &s.groups[order[0]], w, end, &s.seen)
	if p.filter.mode == filterSome {
		left = p.filter.intersect(w, end, &s.seen)
	}
	for _, g := range order[1:] {
		if left == 0 {
			break
		}
		grp := &s.groups[g]
		if left <= seekMax {
			for word := range s.seen {
				for b := s.seen[word]; b != 0; b &= b - 1 {
					n := trailingZeros(b)
					if !s.holds(p, grp, w+uint32(word*64+n)) {
						s.seen[word] &^= 1 << n
						left--
					}
				}
			}
			continue
		}
		s.groupBits(p, grp, w, end, &s.tmp)
		left = 0
		for i := range s.seen {
			s.seen[i] &= s.tmp[i]
			left += bits.OnesCount64(s.seen[i])
		}
	}
	for word, b := range s.seen {
		s.seen[word] = 0
		for ; b != 0; b &= b - 1 {
			doc := w + uint32(word*64+trailingZeros(b))
			if !p.accept(doc) {
				continue
			}
			if score := s.score(p, s.scored, doc); score >= h.need(p.id(doc)) {
				h.add(candidate{score: score, id: p.id(doc), part: p, doc: doc})
			}
		}
	}
}

// groupBits writes the documents of [w, end) that hold a group to set and gives
// their number.
func (s *searcher) groupBits(p *searchPart, g *group, w, end uint32, set *[windowDocs / 64]uint64) (n int) {
	clear(set[:])
	if t := g.simple(); t >= 0 {
		s.termBits(p, t, w, end, set)
	} else {
		for _, alt := range g.alts {
			// An alternative's terms are few and rare: the first one's documents
			// are looked up in the others.
			var first [windowDocs / 64]uint64
			s.termBits(p, alt[0], w, end, &first)
			one := group{alts: [][]int{alt}}
			for word, b := range first {
				for ; b != 0; b &= b - 1 {
					k := trailingZeros(b)
					if s.holds(p, &one, w+uint32(word*64+k)) {
						set[word] |= 1 << k
					}
				}
			}
		}
	}
	for _, b := range set {
		n += bits.OnesCount64(b)
	}
	return n
}

// termBits sets the documents of [w, end) that hold a term.
func (s *searcher) termBits(p *searchPart, term int, w, end uint32, set *[windowDocs / 64]uint64) {
	c := &p.cur[term]
	if c.seek(w) >= end {
		return
	}
	for {
		for i := c.pos; i < c.view.n; i++ {
			doc := c.buf[i&(blockSize-1)]
			if doc >= end {
				c.pos = i
				return
			}
			if s.text {
				if tf, extra := c.view.freq(i); tf == extra {
					continue
				}
			}
			at := doc - w
			set[at/64&(windowDocs/64-1)] |= 1 << (at & 63)
		}
		if c.blk+1 >= c.b1 {
			return
		}
		c.load(c.blk + 1)
	}
}

// single finds the best documents of one term, skipping blocks that cannot hold
// any.
func (s *searcher) single(p *searchPart, term int, h *topK) {
	c := &p.cur[term]
	if !c.nonEmpty {
		return
	}
	weight := p.kind.weights[term]
	norms := &p.kind.norms
	filtered := p.filter.mode == filterSome
	for i := c.b0; i < c.b1; i++ {
		if h.full() {
			maxTF, minLen := c.plist.bounds(i)
			if s.text || s.len != lenAll {
				minLen = 0
			}
			need := h.heap0()
			if most := max(contribution(weight, maxTF, norms[minLen]), 1); most < need {
				continue
			} else if most == need && p.sorted && p.id(max(c.firstDoc(i), p.lo)) > h.heap[0].id {
				continue
			}
		}
		c.load(i)
		for k := range c.view.n {
			doc := c.buf[k&(blockSize-1)]
			if doc < c.lo {
				continue
			}
			if doc >= c.hi {
				return
			}
			if filtered && !p.filter.has(doc) {
				continue
			}
			tf, extra := c.view.freq(k)
			if s.text {
				if tf -= extra; tf == 0 {
					continue
				}
			}
			score := max(contribution(weight, tf, p.norm(doc)), 1)
			if !h.full() || score >= h.heap0() {
				s.offer(p, doc, score, h)
			}
		}
	}
}

// heap0 is the worst score in a full heap.
func (t *topK) heap0() uint32 {
	if t.k == 0 {
		return none
	}
	return t.heap[0].score
}

// total counts the documents that match in any round.
func (s *searcher) total() (n int64) {
	terms := slices.Clone(s.scored)
	for _, c := range s.chars {
		if !slices.Contains(terms, c) {
			terms = append(terms, c)
		}
	}
	s.each(func(p *searchPart) {
		if p.filter.list != nil && len(p.filter.list)*len(terms)*seekCost < s.totalDF(p, terms) {
			for _, doc := range p.filter.list {
				if !p.deleted(doc) && slices.ContainsFunc(terms, func(t int) bool { return s.holdsTerm(p, t, doc) }) {
					n++
				}
			}
			return
		}
		for w := p.lo; w < p.hi; w += windowDocs {
			end := min(w+windowDocs, p.hi)
			if !p.filter.touches(w, end) {
				continue
			}
			for _, t := range terms {
				s.termBits(p, t, w, end, &s.seen)
			}
			for word, b := range s.seen {
				s.seen[word] = 0
				for ; b != 0; b &= b - 1 {
					if p.accept(w + uint32(word*64+trailingZeros(b))) {
						n++
					}
				}
			}
		}
	})
	return n
}
