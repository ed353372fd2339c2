package embedded

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// nearest is the scratch of one search for vectors.
type nearest struct {
	scanner
	v     *view
	q     *index.VectorQuery
	f     *index.Filter
	text  *searcher // the filter, evaluated over the records
	kinds []nearKind
	runs  []run
	lists listHeap
	found []uint32
}

// nearKind is a partition over all segments and tails of the snapshot.
type nearKind struct {
	key    vecKey
	text   *searchKind
	filter vecFilter
	rows   int  // in all runs, dead ones included
	listed int  // of them, in runs with lists
	byID   bool // few pass: they are looked up
}

var nearests = sync.Pool{New: func() any { return new(nearest) }}

// Nearest implements index.View.
func (v *view) Nearest(q index.VectorQuery, f index.Filter) (res index.VectorResult, err error) {
	s := searchers.Get().(*searcher)
	n := nearests.Get().(*nearest)
	defer func() {
		if r := recover(); r != nil {
			// As in Search: the scratch is not reused.
			err = fmt.Errorf("%w: %v", errDamaged, r)
			return
		}
		s.release()
		n.release()
	}()
	q.Exact = q.Exact || q.Certain
	n.v, n.q, n.f, n.text = v, &q, &f, s
	res.Rest = noneLeft
	res.Exact = true
	if q.Limit <= 0 || len(q.Values) == 0 || slices.Contains(v.dropped, q.Space) || !n.open() {
		return res, nil
	}
	s.prepare(v, &index.Query{}, &f)
	n.reset(&q)
	if res.Exact, err = n.run(); err != nil {
		return index.VectorResult{}, err
	}
	if q.Certain {
		if res.Hits, res.Rest, err = n.certain(); err != nil {
			return index.VectorResult{}, err
		}
		return res, nil
	}
	slices.SortFunc(n.top.heap, func(a, b vecHit) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	res.Hits = make([]index.VectorHit, len(n.top.heap))
	for i, h := range n.top.heap {
		res.Hits[i] = index.VectorHit{ID: h.id, Kind: h.kind, Score: h.score}
	}
	for i, h := range res.Hits {
		if p, doc, ok := s.kind(h.Kind).locate(h.ID); ok {
			res.Hits[i].Thread = p.thread(doc)
		}
	}
	return res, nil
}

func (n *nearest) release() {
	for i := range n.kinds {
		n.kinds[i].filter.none()
		n.kinds[i] = nearKind{filter: n.kinds[i].filter}
	}
	clear(n.runs)
	n.sure.release()
	n.v, n.q, n.f, n.text, n.values = nil, nil, nil, nil, nil
	nearests.Put(n)
}

// open finds the runs that the query reads; false when there is none.
func (n *nearest) open() bool {
	n.kinds = slices.Grow(n.kinds[:0], len(n.f.Kinds))
	n.runs = n.runs[:0]
	for _, kind := range n.f.Kinds {
		n.kinds = n.kinds[:len(n.kinds)+1]
		k := &n.kinds[len(n.kinds)-1]
		// The storage of a filter outlives the search.
		*k = nearKind{key: vecKey{n.q.Space, n.f.Namespace, kind}, filter: k.filter}
		for _, seg := range n.v.vecSegs {
			from, to := seg.group(k.key)
			for i := from; i < to; i++ {
				p := &seg.parts[i]
				if int(p.form.dim) != len(n.q.Values) {
					continue
				}
				n.runs = append(n.runs, run{kind: k, form: p.form, ids: p.ids, scopes: p.scopes, scales: p.scales, sorted: true, seg: seg, part: p})
				k.rows += int(p.n)
				if p.ends != nil {
					k.listed += int(p.n)
				}
			}
		}
		for _, t := range n.v.tails {
			n.openTail(k, t)
		}
	}
	return len(n.runs) > 0
}

func (n *nearest) openTail(k *nearKind, t tailView) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.tail.vectors.parts[k.key] {
		if int(p.form.dim) != len(n.q.Values) {
			continue
		}
		c := p.count(t.vectors)
		if c == 0 {
			continue
		}
		n.runs = append(n.runs, run{kind: k, form: p.form, ids: p.ids[:c], scopes: p.scopes[:c], scales: p.scales[:c], sorted: p.sorted,
			codes: p.codes[:int(c)*p.form.stride()], deleted: p.deleted, rev: n.v.rev})
		k.rows += int(c)
	}
}

const (
	// lookUpCost is what looking a row up by its id and scoring it costs, in rows
	// of a scan.
	lookUpCost = 6
	// probeShare: a search through lists looks at this many times the square
	// root of the rows, as 24 lists hold when there are twice the root of them.
	probeShare = 12
	// probeLeast is how many rows that pass a search through lists looks at at
	// least, unless it is more than it would without a filter.
	probeLeast = 1200
)

// run searches all runs. It says whether every row that passes was looked at.
func (n *nearest) run() (exact bool, err error) {
	scanned := 0
	for i := range n.kinds {
		k := &n.kinds[i]
		if k.text = n.text.kind(k.key.kind); k.text == nil || k.rows == 0 {
			k.filter.none()
			continue
		}
		k.filter.evaluate(n.q, n.f, k.text)
		if k.filter.mode == passNone {
			continue
		}
		most := k.rows
		if k.listed > 0 && !n.q.Exact {
			most = min(most, n.v.ix.opts.ScanRows)
		}
		few := func() bool { return lookUpCost*k.filter.count <= most }
		if !few() {
			k.filter.collect(k.text) // and counts what was estimated
		}
		if k.byID = few(); k.byID {
			k.filter.list(k.text)
		} else {
			scanned += k.rows
		}
	}
	probe := !n.q.Exact && scanned > n.v.ix.opts.ScanRows
	n.lists.reset()
	for i := range n.runs {
		r := &n.runs[i]
		switch k := r.kind; {
		case k.filter.mode == passNone:
		case k.byID && r.sorted:
			err = n.lookUp(r)
		case probe && !k.byID && r.part != nil && r.part.ends != nil:
			n.scoreLists(uint32(i), r)
		default:
			if k.byID {
				k.filter.set.widen(len(r.ids))
			}
			_, err = n.scan(r, 0, uint32(len(r.ids)))
		}
		if err != nil {
			return false, err
		}
	}
	return n.probe()
}

// lookUp offers the records that pass by their ids.
func (n *nearest) lookUp(r *run) error {
	f := &r.kind.filter
	n.found = n.found[:0]
	at := 0
	guess := newSlope(r.byID())
	for _, id := range f.set.list {
		row, next, ok := r.find(id, at, guess.at(id))
		at = next
		if ok && (f.scoped || f.inScope(r, row)) {
			n.found = append(n.found, row)
		}
		if at == len(r.ids) {
			break
		}
	}
	return n.scanRows(r, n.found)
}

// probe searches the lists that were scored, the nearest first.
func (n *nearest) probe() (exact bool, err error) {
	h := &n.lists
	if h.len() == 0 {
		return true, nil
	}
	rows, passing := 0, 0.0
	for _, ri := range h.runs {
		r := &n.runs[ri]
		rows += len(r.ids)
		passing += float64(len(r.ids)) * r.kind.filter.share()
	}
	h.heapify()
	// The more a filter leaves out, the more lists it takes to see enough, though
	// not in proportion. Rows that pass are counted rather than lists, so that a
	// filter that leaves out the query's own neighbourhood makes it look further.
	share := min(passing/float64(rows), 1)
	want := max(probeShare*math.Sqrt(float64(rows)), float64(n.v.ix.opts.ProbeRows))
	enough := max(want*math.Pow(share, 0.75), min(want, probeLeast)) * limitShare(n.q.Limit)
	seen, passed := 0.0, 0.0
	for h.len() > 0 {
		if seen >= want && passed >= enough && n.top.full() {
			return false, nil
		}
		ri, list := h.pop()
		r := &n.runs[ri]
		from, to := r.part.list(int(list))
		p, err := n.scan(r, from, to)
		if err != nil {
			return false, err
		}
		seen += float64(to - from)
		passed += p
	}
	return true, nil
}

// limitShare widens a search for more hits than the usual.
func limitShare(limit int) float64 { return max(1, math.Sqrt(float64(limit)/50)) }

// scoreLists scores the centroids of a run.
func (n *nearest) scoreLists(ri uint32, r *run) {
	p := r.part
	n.lists.runs = append(n.lists.runs, ri)
	stride := p.form.codeStride()
	for from := 0; from < len(p.weights); from += scanBlock {
		to := min(from+scanBlock, len(p.weights))
		vec.ScanInt8(n.codes, p.centroids[from*stride:], stride, n.sums[:to-from])
		for i, sum := range n.sums[:to-from] {
			n.lists.add(float32(sum)*p.weights[from+i], ri, uint32(from+i))
		}
	}
}

// listHeap gives lists by descending score.
type listHeap struct {
	items []listItem
	runs  []uint32 // that they belong to
}

type listItem struct {
	score float32
	run   uint32
	list  uint32
}

func (h *listHeap) reset() { h.items, h.runs = h.items[:0], h.runs[:0] }

func (h *listHeap) len() int { return len(h.items) }

func (h *listHeap) add(score float32, run, list uint32) {
	h.items = append(h.items, listItem{score, run, list})
}

func (h *listHeap) heapify() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *listHeap) pop() (run, list uint32) {
	best := h.items[0]
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	h.down(0)
	return best.run, best.list
}

func (h *listHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.items) {
			return
		}
		if c+1 < len(h.items) && h.items[c+1].score > h.items[c].score {
			c++
		}
		if h.items[i].score >= h.items[c].score {
			return
		}
		h.items[i], h.items[c] = h.items[c], h.items[i]
		i = c
	}
}
