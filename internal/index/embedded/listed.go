package embedded

import "slices"

// frequent says whether to look the filter's listed documents up in a term's list
// takes less than to walk over the list.
func (p *searchPart) frequent(term int) bool {
	return len(p.filter.list)*seekCost < int(p.cur[term].df)
}

// anyListed is any where the filter leaves few documents: term by term, rarest
// first, the rare ones by walking over their lists and the frequent ones by looking
// up what the filter lists. Documents that the terms left cannot lift above the best
// ones so far are not looked up any more.
func (s *searcher) anyListed(p *searchPart, terms []int, h *topK) {
	list := p.filter.list
	s.sums = slices.Grow(s.sums[:0], len(list))[:len(list)]
	clear(s.sums)
	s.order, s.bound = s.order[:0], s.bound[:0]
	for i, t := range terms {
		s.bound = append(s.bound, 0)
		if p.cur[t].nonEmpty {
			s.order = append(s.order, i)
		}
	}
	slices.SortFunc(s.order, func(a, b int) int { return int(p.cur[terms[a]].df) - int(p.cur[terms[b]].df) })
	var left uint32 // what the terms from the next one on can add
	for _, i := range s.order {
		s.bound[i] = s.most(p, terms[i])
		left += s.bound[i]
	}
	need := h.need(p.minID(p.lo))
	for _, i := range s.order {
		if t := terms[i]; !p.frequent(t) {
			s.walkListed(p, t)
		} else {
			need = max(need, s.kthSum(p, h.k))
			for k, doc := range list {
				if s.sums[k]+left >= need {
					s.sums[k] += s.share(p, t, doc, p.norm(doc))
				}
			}
		}
		left -= s.bound[i]
	}
	for k, sum := range s.sums {
		if sum > 0 {
			s.offer(p, list[k], sum, h)
		}
	}
}

// most is the most that a term can add to any document.
func (s *searcher) most(p *searchPart, term int) (most uint32) {
	c := &p.cur[term]
	for i := c.b0; i < c.b1; i++ {
		maxTF, minLen := c.plist.bounds(i)
		if s.text || s.len != lenAll {
			minLen = 0
		}
		most = max(most, contribution(p.kind.weights[term], maxTF, p.kind.norms[minLen]), 1)
	}
	return most
}

// walkListed adds a term's shares to the sums of the filter's listed documents.
func (s *searcher) walkListed(p *searchPart, term int) {
	c, list := &p.cur[term], p.filter.list
	for doc := c.seek(p.lo); doc < p.hi; doc = c.seek(doc + 1) {
		if !p.filter.has(doc) {
			continue
		}
		if k, ok := slices.BinarySearch(list, doc); ok {
			s.sums[k] += s.share(p, term, doc, p.norm(doc))
		}
	}
}

// bestMax is how many hits may be asked for at most for the search to look how high
// the last of them stands before all terms are counted.
const bestMax = 128

// kthSum is a score that k listed documents that may be hits have reached already; 0
// when there are not so many.
func (s *searcher) kthSum(p *searchPart, k int) uint32 {
	if k > bestMax || k >= len(s.sums) {
		return 0
	}
	best := s.best[:0] // ascending
	for i, sum := range s.sums {
		if sum == 0 || len(best) == k && (k == 0 || sum <= best[0]) {
			continue
		}
		if doc := p.filter.list[i]; p.deleted(doc) || s.isTaken(p.id(doc)) {
			continue
		}
		if len(best) == k {
			best = append(best[:0], best[1:]...)
		}
		at, _ := slices.BinarySearch(best, sum)
		best = slices.Insert(best, at, sum)
	}
	s.best = best
	if len(best) < k || k == 0 {
		return 0
	}
	return best[0]
}
