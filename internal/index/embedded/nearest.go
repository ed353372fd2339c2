package embedded

import (
	"fmt"
	"slices"
	"sync"

	"github.com/loci-memory/loci/internal/index"
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
	lists listOrder
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
	if res.Hits, err = n.hits(); err != nil {
		return index.VectorResult{}, err
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
	for i := range n.runs {
		n.runs[i].number = uint32(i)
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
			codes: p.codes[:int(c)*p.form.stride()], fine: p.fine[:int(c)*p.form.fineStride()], deleted: p.deleted, rev: n.v.rev})
		k.rows += int(c)
	}
}

const (
	// lookUpCost is what looking a row up by its id and scoring it costs, in rows
	// of a scan.
	lookUpCost = 6
	// lookUpMost says up to which cost records are looked up where lists could be
	// searched, in rows that are scanned before lists are: somewhat longer, since the
	// answer is exact then.
	lookUpMost = 2
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
			most = min(most, lookUpMost*n.v.ix.opts.ScanRows)
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
