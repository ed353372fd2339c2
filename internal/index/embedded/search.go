package embedded

import (
	"fmt"
	"slices"
	"sync"

	"github.com/loci-memory/loci/internal/index"
)

// windowDocs is how many documents are looked at together: their scores fit
// into the first-level cache.
const windowDocs = 4096

// searcher is the scratch of one search.
type searcher struct {
	v     *view
	q     *index.Query
	f     *index.Filter
	class byte
	len   int // length column
	text  bool

	terms   []string // keys of the query's distinct terms
	numbers map[string]int
	groups  []group
	scored  []int // terms that count in the first two rounds
	chars   []int // terms of the last round
	kinds   []*searchKind

	// Storage for kinds, parts and their slices, by the piece.
	kindSlab   []searchKind
	partSlab   []searchPart
	cursorSlab []cursor
	df         []int64

	acc   [windowDocs]uint32
	seen  [windowDocs / 64]uint64
	tmp   [windowDocs / 64]uint64
	bufs  []*filterBuffers // filters' storage, part by part
	nbufs int
	order []int
	bound []uint32
	sums  []uint32 // of a filter's listed documents
	best  []uint32 // the highest of them
	taken []int64  // ids of hits of earlier rounds, ascending
	heaps [3]topK  // by round
}

// group is a query word: any alternative, all of whose terms must be there.
type group struct {
	alts [][]int
}

// simple is the group's only term, or -1.
func (g *group) simple() int {
	if len(g.alts) == 1 && len(g.alts[0]) == 1 {
		return g.alts[0][0]
	}
	return -1
}

// searchKind is a partition over all segments of the snapshot.
type searchKind struct {
	key     partKey
	parts   []*searchPart
	weights []float32 // by term: idf * (k1+1) * scale
	norms   normTable
}

// searchPart is a partition's share of one segment or of the tail.
type searchPart struct {
	kind   *searchKind
	seg    segView
	part   int
	tail   *tailPart // tailCopy; nil for a segment
	rev    int64
	lo, hi uint32
	lens   []uint8
	sorted bool // ids ascend with document numbers
	filter docFilter
	tf     tailFilter
	cur    []cursor

	tailCopy tailPart // of the slices as they were under the lock
	bounds   []int    // block pointer of each term, for window bounds
	// threads are the tail's documents by thread, in the order of their
	// positions; made when first asked for.
	threads map[uint32][]uint32
}

func (p *searchPart) id(doc uint32) int64 {
	if p.tail != nil {
		return p.tail.ids[doc]
	}
	return p.seg.id(doc)
}

func (p *searchPart) thread(doc uint32) int64 {
	if p.tail != nil {
		return int64(p.tail.thread[doc])
	}
	return int64(p.seg.thread(doc))
}

func (p *searchPart) position(doc uint32) int64 {
	if p.tail != nil {
		return p.tail.position[doc]
	}
	return p.seg.position(doc)
}

func (p *searchPart) deleted(doc uint32) bool {
	if p.tail != nil {
		d := p.tail.stamp(doc).Load()
		return d != 0 && d <= p.rev
	}
	return p.seg.del.has(doc)
}

// accept says whether a document may be a hit.
func (p *searchPart) accept(doc uint32) bool { return p.filter.accept(doc) && !p.deleted(doc) }

// minID is a lower bound of the ids from doc on.
func (p *searchPart) minID(doc uint32) int64 {
	if p.sorted {
		return p.id(doc)
	}
	return 0
}

func (p *searchPart) norm(doc uint32) float32 {
	if len(p.lens) == 0 {
		return p.kind.norms[0]
	}
	return p.kind.norms[p.lens[doc]]
}

var searchers = sync.Pool{New: func() any { return &searcher{numbers: map[string]int{}} }}

// Search implements index.View.
func (v *view) Search(q index.Query, f index.Filter, o index.Options) (res index.Result, err error) {
	s := searchers.Get().(*searcher)
	defer s.finish(&err)
	s.prepare(v, &q, &f)
	if len(s.kinds) == 0 || len(s.terms) == 0 {
		return res, nil
	}
	if o.Total {
		res.Total = s.total()
	}
	if o.Limit > 0 {
		res.Hits = s.rounds(o)
	}
	return res, nil
}

// finish is deferred: it gives the scratch back, or turns a panic into an error.
func (s *searcher) finish(err *error) {
	if r := recover(); r != nil {
		// A file whose checksums are right but whose content is not: the
		// scratch may be half-way through anything, so it is not reused.
		*err = fmt.Errorf("%w: %v", errDamaged, r)
		return
	}
	s.release()
}

func (s *searcher) release() {
	s.v, s.q, s.f = nil, nil, nil
	s.kinds = s.kinds[:0]
	for i := range s.partSlab {
		// Nothing of the snapshot may stay reachable.
		s.partSlab[i] = searchPart{bounds: s.partSlab[i].bounds}
	}
	for i := range s.cursorSlab {
		c := &s.cursorSlab[i]
		c.plist, c.view, c.looked = plist{}, blockView{}, blockView{}
	}
	for i := range s.heaps {
		clear(s.heaps[i].heap)
	}
	clear(s.numbers)
	searchers.Put(s)
}

// prepare resolves the query's terms and opens every partition that the filter
// names.
func (s *searcher) prepare(v *view, q *index.Query, f *index.Filter) {
	s.v, s.q, s.f = v, q, f
	s.terms, s.groups, s.scored, s.chars = s.terms[:0], s.groups[:0], s.scored[:0], s.chars[:0]
	s.nbufs, s.taken = 0, s.taken[:0]
	s.text = false
	switch q.Field {
	case index.FieldName:
		s.class, s.len = className, lenName
	case index.FieldPath:
		s.class, s.len = classPath, lenPath
	case index.FieldText:
		s.class, s.len, s.text = classAll, lenText, true
	default:
		s.class, s.len = classAll, lenAll
	}
	for _, g := range q.Groups {
		var r group
		for _, alt := range g.Alternatives {
			var terms []int
			for _, t := range alt {
				terms = append(terms, s.scoredTerm(t))
			}
			if len(terms) > 0 {
				r.alts = append(r.alts, terms)
			}
		}
		if len(r.alts) > 0 {
			s.groups = append(s.groups, r)
		}
		for _, t := range g.Optional {
			s.scoredTerm(t)
		}
	}
	for _, c := range q.Chars {
		if n := s.termNumber(c); !slices.Contains(s.chars, n) {
			s.chars = append(s.chars, n)
		}
	}
	parts := len(f.Kinds) * (len(v.segs) + len(v.tails))
	s.kindSlab = slices.Grow(s.kindSlab[:0], len(f.Kinds))
	s.partSlab = slices.Grow(s.partSlab[:0], parts)
	s.cursorSlab = slices.Grow(s.cursorSlab[:0], parts*len(s.terms))
	for _, kind := range f.Kinds {
		s.addKind(partKey{f.Namespace, kind})
	}
}

// newPart takes a part with its cursors from the slabs, which never move while
// they are in use.
func (s *searcher) newPart(k *searchKind) *searchPart {
	s.partSlab = s.partSlab[:len(s.partSlab)+1]
	p := &s.partSlab[len(s.partSlab)-1]
	bounds := p.bounds
	*p = searchPart{kind: k, rev: s.v.rev}
	at := len(s.cursorSlab)
	s.cursorSlab = s.cursorSlab[:at+len(s.terms)]
	p.cur = s.cursorSlab[at:]
	for i := range p.cur {
		p.cur[i].reset(plist{})
	}
	p.bounds = slices.Grow(bounds[:0], len(s.terms))[:len(s.terms)]
	return p
}

func (s *searcher) termNumber(term string) int {
	key := string(s.class) + term
	n, ok := s.numbers[key]
	if !ok {
		n = len(s.terms)
		s.numbers[key] = n
		s.terms = append(s.terms, key)
	}
	return n
}

func (s *searcher) scoredTerm(term string) int {
	n := s.termNumber(term)
	if !slices.Contains(s.scored, n) {
		s.scored = append(s.scored, n)
	}
	return n
}

// addKind opens a partition in every segment and works out its statistics,
// which no other partition has a part in.
func (s *searcher) addKind(key partKey) {
	s.kindSlab = s.kindSlab[:len(s.kindSlab)+1]
	k := &s.kindSlab[len(s.kindSlab)-1]
	k.key, k.parts, k.weights = key, k.parts[:0], k.weights[:0]
	var stats fieldStats
	s.df = slices.Grow(s.df[:0], len(s.terms))[:len(s.terms)]
	clear(s.df)
	df := s.df
	for _, seg := range s.v.segs {
		part, ok := seg.partition(key)
		if !ok {
			continue
		}
		r := &seg.parts[part]
		p := s.newPart(k)
		p.seg, p.part, p.lo, p.hi, p.lens, p.sorted = seg, part, r.lo, r.hi, seg.lens(s.len), true
		stats.add(&r.stats, 1)
		gone := seg.deletes.statsAt(part, s.v.rev)
		stats.add(&gone, -1)
		for i, t := range s.terms {
			if n, ok := seg.lookup([]byte(t)); ok {
				p.cur[i].reset(seg.list(n, r.lo, r.hi))
				df[i] += int64(p.cur[i].df)
				if seg.del.count > 0 {
					df[i] -= seg.deletes.termCount(part, n, s.v.rev)
				}
			}
		}
		k.parts = append(k.parts, p)
	}
	for _, tv := range s.v.tails {
		if p := s.addTail(k, tv, df, &stats); p != nil {
			k.parts = append(k.parts, p)
		}
	}
	n := stats.docs[s.len]
	if n <= 0 || len(k.parts) == 0 {
		return
	}
	k.norms.fill(float64(stats.sum[s.len]) / float64(n))
	for i := range df {
		k.weights = append(k.weights, float32(idf(n, max(df[i], 0))*(k1+1)*scale))
	}
	for _, p := range k.parts {
		if p.tail != nil {
			p.tf = tailFilter{p.tail, s.f, p.tail.lives.mayHide(s.f)}
			p.filter = docFilter{mode: filterTail, tail: &p.tf}
			continue
		}
		if s.nbufs == len(s.bufs) {
			s.bufs = append(s.bufs, new(filterBuffers))
		}
		p.filter = segmentFilter(p.seg.segment, p.part, s.f, s.bufs[s.nbufs])
		if p.filter.mode == filterSome {
			s.nbufs++
		}
	}
	s.kinds = append(s.kinds, k)
}

// addTail takes what the snapshot covers of a partition's documents in the
// tail.
func (s *searcher) addTail(k *searchKind, tv tailView, df []int64, stats *fieldStats) *searchPart {
	tv.mu.RLock()
	defer tv.mu.RUnlock()
	tp := tv.parts[k.key]
	if tp == nil {
		return nil
	}
	n := tp.count(tv.covered)
	if n == 0 {
		return nil
	}
	st := tp.statsAt(n, s.v.rev)
	stats.add(&st, 1)
	p := s.newPart(k)
	p.tailCopy = *tp
	p.tail, p.hi, p.lens, p.sorted = &p.tailCopy, n, tp.lens[s.len], tp.sorted
	for i, t := range s.terms {
		l, gone := tp.list(t, n, s.v.rev)
		p.cur[i].reset(l)
		df[i] += int64(l.df) - gone
	}
	return p
}

// rounds runs the three rounds and puts their hits one behind the other.
func (s *searcher) rounds(o index.Options) []index.Hit {
	all, anyOf, chars := &s.heaps[index.RoundAll], &s.heaps[index.RoundAny], &s.heaps[index.RoundChar]
	for i := range s.heaps {
		s.heaps[i].reset(0)
	}
	if len(s.groups) > 0 {
		all.reset(o.Limit)
		s.each(func(p *searchPart) { s.every(p, all) })
		found := len(all.heap)
		s.take(all.heap)
		if found < o.Limit && (len(s.groups) > 1 || s.groups[0].simple() < 0 || len(s.scored) > 1) {
			anyOf.reset(o.Limit - found)
			s.each(func(p *searchPart) { s.any(p, s.scored, anyOf) })
		}
	}
	if n := len(all.heap) + len(anyOf.heap); n < o.Limit && len(s.chars) > 0 {
		s.take(anyOf.heap)
		chars.reset(o.Limit - n)
		s.each(func(p *searchPart) { s.any(p, s.chars, chars) })
	}
	found := make([]ranked, 0, len(all.heap)+len(anyOf.heap)+len(chars.heap))
	emit := func(t *topK, round index.Round, raise float64) float64 {
		top := raise
		for i, c := range t.sorted() {
			bm25 := float64(c.score) / scale
			if i == 0 {
				top = bm25 + raise
			}
			found = append(found, ranked{part: c.part, doc: c.doc, hit: index.Hit{
				ID: c.id, Kind: c.part.kind.key.kind, Round: round, BM25: bm25, Score: bm25 + raise, Thread: c.part.thread(c.doc)}})
		}
		return top
	}
	// From the last round to the first, since each stands above the next by its
	// best score.
	raise := emit(chars, index.RoundChar, 0)
	raise = emit(anyOf, index.RoundAny, raise)
	emit(all, index.RoundAll, raise)
	if o.NeighbourWeight > 0 || o.ThreadWeight > 0 || o.ByThread {
		found = s.rankThreads(found, o)
	}
	hits := make([]index.Hit, len(found))
	for i := range found {
		hits[i] = found[i].hit
	}
	slices.SortFunc(hits, compareHits)
	return hits[:min(len(hits), o.Limit)]
}

// ranked is a hit with its place in the index.
type ranked struct {
	part *searchPart
	doc  uint32
	hit  index.Hit
}

func compareHits(a, b index.Hit) int {
	switch {
	case a.Score != b.Score:
		return cmpInt(a.Score > b.Score)
	case a.ID != b.ID:
		return cmpInt(a.ID < b.ID)
	default:
		return 0
	}
}

// take notes hits that later rounds must leave out.
func (s *searcher) take(hits []candidate) {
	for _, c := range hits {
		s.taken = append(s.taken, c.id)
	}
	slices.Sort(s.taken)
}

func (s *searcher) isTaken(id int64) bool {
	if len(s.taken) == 0 {
		return false
	}
	_, ok := slices.BinarySearch(s.taken, id)
	return ok
}

func (s *searcher) each(f func(p *searchPart)) {
	for _, k := range s.kinds {
		for _, p := range k.parts {
			if p.filter.mode != filterNone {
				f(p)
			}
		}
	}
}

// share is what a term adds to the score of a document; 0 when it does not hold it.
func (s *searcher) share(p *searchPart, term int, doc uint32, norm float32) uint32 {
	tf, extra, ok := p.cur[term].find(doc)
	if s.text {
		tf -= extra
		ok = ok && tf != 0
	}
	if !ok {
		return 0
	}
	return max(contribution(p.kind.weights[term], tf, norm), 1)
}

// score is the whole score of a document over some terms.
func (s *searcher) score(p *searchPart, terms []int, doc uint32) (sum uint32) {
	norm := p.norm(doc)
	for _, t := range terms {
		sum += s.share(p, t, doc, norm)
	}
	return sum
}

// offer puts a document into the heap unless it is deleted, filtered out or
// taken.
func (s *searcher) offer(p *searchPart, doc uint32, score uint32, h *topK) {
	if id := p.id(doc); score >= h.need(id) && p.accept(doc) && !s.isTaken(id) {
		h.add(candidate{score: score, id: id, part: p, doc: doc})
	}
}

// windowBounds writes to s.bound the most that each term can add to a document
// of [w, end), and gives their sum and, when it is 0, the first document at which
// any term has a posting.
func (s *searcher) windowBounds(p *searchPart, terms []int, w, end uint32) (sum uint32, next uint32) {
	s.bound = s.bound[:0]
	next = none
	for _, t := range terms {
		c := &p.cur[t]
		var most uint32
		if c.nonEmpty {
			i := c.findBlock(p.bounds[t], w)
			p.bounds[t] = i
			for ; i < c.b1; i++ {
				first := c.firstDoc(i)
				if first >= end {
					next = min(next, first)
					break
				}
				maxTF, minLen := c.plist.bounds(i)
				if s.text || s.len != lenAll {
					minLen = 0
				}
				most = max(most, contribution(p.kind.weights[t], maxTF, p.kind.norms[minLen]), 1)
				if c.lastDoc(i) >= end {
					break
				}
			}
		}
		s.bound = append(s.bound, most)
		sum += most
	}
	return sum, next
}

// firstDoc is the first document of block i.
func (l *plist) firstDoc(i int) uint32 {
	v := l.block(i)
	return v.doc(0)
}

// resetBounds starts window bounds from the first block again.
func (p *searchPart) resetBounds() {
	for i := range p.bounds {
		p.bounds[i] = p.cur[i].b0
	}
}

// any finds the best documents that hold any of the terms: MaxScore (Turtle and
// Flood, "Query Evaluation: Strategies and Optimizations", 1995) by windows. In
// each window the terms that together cannot lift a document into the heap are
// only looked up for documents that the others have found.
func (s *searcher) any(p *searchPart, terms []int, h *topK) {
	if p.filter.list != nil && slices.ContainsFunc(terms, func(t int) bool { return p.frequent(t) }) {
		s.anyListed(p, terms, h)
		return
	}
	p.resetBounds()
	for w := p.lo; w < p.hi; {
		end := min(w+windowDocs, p.hi)
		sum, next := s.windowBounds(p, terms, w, end)
		if sum == 0 {
			if next >= p.hi {
				return
			}
			w += (next - w) / windowDocs * windowDocs
			continue
		}
		if need := h.need(p.minID(w)); sum >= need && p.filter.touches(w, end) {
			s.anyWindow(p, terms, w, end, need, h)
		}
		w = end
	}
}

// seekCost is what looking up a document in a list costs, in postings that are
// walked over.
const seekCost = 8

// lookUpShare is how many times longer than those that find documents a list must
// be for it to be cheaper to look them up in it than to walk over it.
const lookUpShare = 2

func (s *searcher) totalDF(p *searchPart, terms []int) (n int) {
	for _, t := range terms {
		n += int(p.cur[t].df)
	}
	return n
}

func (s *searcher) anyWindow(p *searchPart, terms []int, w, end, need uint32, h *topK) {
	// Terms by what they can add, least first.
	s.order = s.order[:0]
	for i, m := range s.bound {
		if m > 0 {
			s.order = append(s.order, i)
		}
	}
	slices.SortFunc(s.order, func(a, b int) int {
		if s.bound[a] != s.bound[b] {
			return cmpInt(s.bound[a] < s.bound[b])
		}
		return a - b
	})
	rest := uint32(0) // what the terms that are only looked up can add
	first := 0
	for first < len(s.order) && rest+s.bound[s.order[first]] < need {
		rest += s.bound[s.order[first]]
		first++
	}
	found := 0
	for _, i := range s.order[first:] {
		s.accumulate(p, terms[i], w, end)
		found += int(p.cur[terms[i]].df)
	}
	lookups := s.order[:0]
	for _, i := range s.order[:first] {
		if int(p.cur[terms[i]].df) > lookUpShare*found {
			lookups = append(lookups, i)
			continue
		}
		s.accumulate(p, terms[i], w, end)
		rest -= s.bound[i]
	}
	for word, bits := range s.seen {
		if bits == 0 {
			continue
		}
		s.seen[word] = 0
		for ; bits != 0; bits &= bits - 1 {
			n := uint32(word*64 + trailingZeros(bits))
			score := s.acc[n]
			s.acc[n] = 0
			if score+rest < need {
				continue
			}
			doc := w + n
			left := rest
			norm := p.norm(doc)
			for j := len(lookups) - 1; j >= 0; j-- {
				i := lookups[j]
				left -= s.bound[i]
				score += s.share(p, terms[i], doc, norm)
				if score+left < need {
					break
				}
			}
			if score >= need {
				s.offer(p, doc, score, h)
				need = h.need(p.minID(w))
			}
		}
	}
}

// accumulate adds a term's shares to the window's scores.
func (s *searcher) accumulate(p *searchPart, term int, w, end uint32) {
	c := &p.cur[term]
	doc := c.seek(w)
	if doc >= end {
		return
	}
	weight := p.kind.weights[term]
	norms := &p.kind.norms
	filtered := p.filter.mode == filterSome
	for {
		n := c.view.n
		tfs, posts := c.view.tfs, c.view.posts
		for i := c.pos; i < n; i++ {
			doc := c.buf[i&(blockSize-1)]
			if doc >= end {
				c.pos = i
				return
			}
			if filtered && !p.filter.has(doc) {
				continue
			}
			tf := c.view.tf
			if tfs != nil {
				tf = tfs[i]
			} else if posts != nil {
				tf = posts[i].tf
			}
			if s.text {
				_, extra := c.view.freq(i)
				if tf -= extra; tf == 0 {
					continue
				}
			}
			norm := norms[0]
			if len(p.lens) != 0 {
				norm = norms[p.lens[doc]]
			}
			at := doc - w
			s.acc[at&(windowDocs-1)] += max(contribution(weight, tf, norm), 1)
			s.seen[at/64&(windowDocs/64-1)] |= 1 << (at & 63)
		}
		if c.blk+1 >= c.b1 {
			return
		}
		c.load(c.blk + 1)
	}
}
