package embedded

import (
	"slices"
	"sort"

	"github.com/loci-memory/loci/internal/index"
)

// threadKey names a thread: threads of two scopes that have one name are two.
type threadKey struct {
	kind   *searchKind
	scope  uint32
	thread uint32
}

// rankThreads adds to the hits what their neighbours and their threads are
// worth, or ranks the threads themselves.
//
// A record's score becomes path + w_n * max(bm25(previous), bm25(next)) + w_t *
// T(thread), where T is BM25 over the thread as one document: term frequencies
// and lengths summed over its records, the records' idf, and the mean length of
// the threads at hand as average. A thread's own score is half its best
// record's BM25 and half T. Only records that the filter lets see take part.
// Both forms were chosen on conversations (docs/adr).
func (s *searcher) rankThreads(found []ranked, o index.Options) []ranked {
	if o.NeighbourWeight > 0 && !o.ByThread {
		found = s.addNeighbours(found, o.NeighbourWeight)
	}
	if o.ThreadWeight <= 0 && !o.ByThread {
		return found
	}
	scores := s.threadScores(found)
	if !o.ByThread {
		for i := range found {
			r := &found[i]
			r.hit.ThreadAdd = o.ThreadWeight * scores[s.threadOf(r)]
			r.hit.Score += r.hit.ThreadAdd
		}
		return found
	}
	best := map[threadKey]int{}
	out := found[:0:0]
	for _, r := range found {
		key := s.threadOf(&r)
		if key.thread == 0 {
			r.hit.Score = r.hit.BM25
			out = append(out, r)
			continue
		}
		i, ok := best[key]
		if !ok {
			best[key] = len(out)
			out = append(out, r)
		} else if b := &out[i].hit; r.hit.BM25 > b.BM25 || r.hit.BM25 == b.BM25 && r.hit.ID < b.ID {
			out[i] = r
		}
	}
	for key, i := range best {
		h := &out[i].hit
		h.ThreadAdd = scores[key] / 2
		h.Score = h.BM25/2 + h.ThreadAdd
	}
	return out
}

func (s *searcher) threadOf(r *ranked) threadKey {
	return threadKey{r.part.kind, r.part.scope(r.doc), uint32(r.hit.Thread)}
}

func (p *searchPart) scope(doc uint32) uint32 {
	if p.tail != nil {
		return p.tail.scope[doc]
	}
	return p.seg.scope(doc)
}

// addNeighbours gives every hit its share of the better neighbour, after taking
// in the neighbours themselves.
func (s *searcher) addNeighbours(found []ranked, weight float64) []ranked {
	in := make(map[int64]bool, 3*len(found))
	for i := range found {
		in[found[i].hit.ID] = true
	}
	for i := range len(found) {
		for _, forward := range [2]bool{false, true} {
			part, doc, ok := s.neighbour(&found[i], forward)
			if !ok {
				continue
			}
			id := part.id(doc)
			if in[id] {
				continue
			}
			in[id] = true
			bm25 := float64(s.score(part, s.scored, doc)) / scale
			found = append(found, ranked{part: part, doc: doc, hit: index.Hit{
				ID: id, Kind: part.kind.key.kind, Round: index.RoundAny, BM25: bm25, Score: bm25, Thread: part.thread(doc)}})
		}
	}
	for i := range found {
		var best uint32
		for _, forward := range [2]bool{false, true} {
			if part, doc, ok := s.neighbour(&found[i], forward); ok {
				best = max(best, s.score(part, s.scored, doc))
			}
		}
		h := &found[i].hit
		h.NeighbourAdd = weight * float64(best) / scale
		h.Score += h.NeighbourAdd
	}
	return found
}

// neighbour finds the next visible record before or after a hit in its thread.
func (s *searcher) neighbour(r *ranked, forward bool) (part *searchPart, doc uint32, ok bool) {
	pos := r.part.position(r.doc)
	if r.hit.Thread == 0 || pos == noPosition {
		return nil, 0, false
	}
	scope := r.part.scope(r.doc)
	var at int64
	for _, p := range r.part.kind.parts {
		if p.filter.mode == filterNone {
			continue
		}
		n, docAt := p.threadDocs(uint32(r.hit.Thread))
		// The first place beyond pos, or the last before it.
		i := sort.Search(n, func(i int) bool { return p.position(docAt(i)) > pos })
		step := 1
		if !forward {
			step = -1
			i = sort.Search(n, func(i int) bool { return p.position(docAt(i)) >= pos }) - 1
		}
		for ; i >= 0 && i < n; i += step {
			d := docAt(i)
			dp := p.position(d)
			if dp == noPosition {
				break
			}
			if ok && (forward && dp >= at || !forward && dp <= at) {
				break
			}
			if p.scope(d) == scope && p.accept(d) {
				part, doc, at, ok = p, d, dp, true
				break
			}
		}
	}
	return part, doc, ok
}

// threadDocs gives a thread's documents in the part, by position.
func (p *searchPart) threadDocs(thread uint32) (n int, doc func(i int) uint32) {
	if p.tail == nil {
		return p.seg.threadDocs(p.part, thread)
	}
	if p.threads == nil {
		p.threads = map[uint32][]uint32{}
		for d := range p.hi {
			if t := p.tail.thread[d]; t != 0 {
				p.threads[t] = append(p.threads[t], d)
			}
		}
		for _, docs := range p.threads {
			slices.SortStableFunc(docs, func(a, b uint32) int {
				if pa, pb := p.tail.position[a], p.tail.position[b]; pa != pb {
					return cmpInt(pa < pb)
				}
				return 0
			})
		}
	}
	docs := p.threads[thread]
	return len(docs), func(i int) uint32 { return docs[i] }
}

// threadScores works out T for the thread of every hit.
func (s *searcher) threadScores(found []ranked) map[threadKey]float64 {
	type sums struct {
		tf     []float64 // by s.scored
		length float64
	}
	threads := map[threadKey]*sums{}
	var order []threadKey
	for i := range found {
		key := s.threadOf(&found[i])
		if key.thread == 0 || threads[key] != nil {
			continue
		}
		t := &sums{tf: make([]float64, len(s.scored))}
		threads[key] = t
		order = append(order, key)
		for _, p := range key.kind.parts {
			if p.filter.mode == filterNone {
				continue
			}
			n, docAt := p.threadDocs(key.thread)
			for i := range n {
				doc := docAt(i)
				if p.scope(doc) != key.scope || !p.accept(doc) {
					continue
				}
				if len(p.lens) > 0 {
					t.length += float64(lenOf[p.lens[doc]])
				}
				for j, term := range s.scored {
					c := &p.cur[term]
					if c.seek(doc) != doc {
						continue
					}
					tf, extra := c.freq()
					if s.text {
						tf -= extra
					}
					t.tf[j] += float64(tf) / unitsPerOccurrence
				}
			}
		}
	}
	mean := 0.0
	for _, key := range order {
		mean += threads[key].length
	}
	mean = max(mean/float64(max(len(order), 1)), 1)
	scores := make(map[threadKey]float64, len(order))
	for _, key := range order {
		t := threads[key]
		norm := k1 * (1 - b + b*t.length/mean)
		sum := 0.0
		for j, term := range s.scored {
			if t.tf[j] > 0 {
				// The weight holds idf and k1+1 already.
				sum += float64(key.kind.weights[term]) / scale * t.tf[j] / (t.tf[j] + norm)
			}
		}
		scores[key] = sum
	}
	return scores
}
