package loci

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/rank"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/vec"
)

const (
	// leastRescored and rescoredPerHit say how many of the index's best are candidates
	// at least, whatever the window: for an exact answer their cosines are worked out
	// anew, in full precision.
	leastRescored  = 30
	rescoredPerHit = 3
	// defaultTruthScan bounds the records that are compared one by one while there
	// is no index: about half a second.
	defaultTruthScan = 50_000
)

// vectorHit is a candidate of the vector path.
type vectorHit struct {
	id           int64
	kind         index.Kind
	thread       int64
	cosine       float64
	score        float64 // the cosine and the shares of neighbours and thread
	neighbourAdd float64
	threadAdd    float64
}

// vectorPath finds the candidates by vectors, where the query has a vector and
// there are some to compare it with. Since it was prepared switches may have been
// turned and the space may have been deleted.
func (r *searchRun) vectorPath(ctx context.Context, v *vectorPath, some bool, t *trace) (err error) {
	if r.p.req.NoVector {
		return nil
	}
	asked := r.p.req.EmbedSpace
	if v.query != nil {
		asked = v.space.Name
	}
	r.scope, err = r.e.vectorScope(r.tx, r.view, r.p, asked)
	switch {
	case v.known && err != nil && errs.CodeOf(err) == errs.NotFound,
		err == nil && v.query != nil && r.scope.space != nil && r.scope.space.ID != v.space.ID:
		r.scope, err = vectorScope{code: DegradeNoSpace}, nil
	case err != nil:
		return err
	case len(r.scope.kinds) > 0 && v.query == nil:
		r.scope.code = cmp.Or(v.code, DegradeVectorNotReady)
	}
	if AccessFrom(r.tx.Context()).ReadsAll(r.p.filter.Namespace) { // it counts over all scopes
		r.d.VectorMissing = append(r.d.VectorMissing, r.scope.missing...)
	}
	if r.scope.code != "" {
		r.degrade(r.scope.code)
		return nil
	}
	if len(r.scope.kinds) == 0 {
		return nil
	}
	r.d.VectorUsed, r.d.Exact = true, true
	if some {
		if r.vectors, r.d.Exact, err = r.nearest(ctx, v); err != nil {
			return err
		}
	}
	t.stage("vector")
	return nil
}

// nearest gives the candidates by vectors, best first, ties by ascending id. The
// window grows as that of the text path does.
func (r *searchRun) nearest(ctx context.Context, v *vectorPath) (hits []vectorHit, exact bool, err error) {
	f := r.f
	f.Kinds = r.scope.kinds
	for window := r.p.candidates; ; window = min(window*windowGrowth, MaxPage) {
		most := max(window, leastRescored, rescoredPerHit*r.p.limit)
		if hits, exact, err = r.compare(ctx, v, f, most); err != nil {
			return nil, false, err
		}
		more := len(hits) >= most
		hits = hits[:min(len(hits), window)]
		if hits, err = r.share(v, f, hits); err != nil {
			return nil, false, err
		}
		hits = hits[:min(len(hits), window)]
		if !more || window >= MaxPage || r.p.req.CandidateLimit != nil || r.foldedVectors(hits) >= r.p.limit {
			return hits, exact, nil
		}
	}
}

// foldedVectors is how many hits would be left of these.
func (r *searchRun) foldedVectors(hits []vectorHit) int {
	notes := map[int64]bool{}
	n := 0
	for _, h := range hits {
		if h.kind != kindChunk {
			n++
		} else if !notes[h.thread] {
			notes[h.thread] = true
			n++
		}
	}
	return n
}

// compare gives the records with the highest cosines, at most limit, best first.
// The index knows them by codes, if that is the space's encoding, whose cosines are
// off by some millionths; then what it gives is scored again by the vectors in the
// truth if an exact answer is asked for. An index that fails is taken out of use.
func (r *searchRun) compare(ctx context.Context, v *vectorPath, f index.Filter, limit int) ([]vectorHit, bool, error) {
	if r.view == nil {
		return r.compareAll(ctx, v, limit)
	}
	q := index.VectorQuery{Space: v.space.ID, Values: v.query, Limit: limit, Exact: r.p.req.Exact}
	if v.pruned {
		q.IDs = v.ids
	}
	if r.p.req.NoText {
		// More than is given back is looked at for what moves hits up, but need not be
		// complete. Beside a text path all of them count.
		q.Want = r.p.limit
	}
	found, err := r.view.Nearest(q, f)
	if err != nil {
		r.indexFailed()
		return r.compareAll(ctx, v, limit)
	}
	hits := make([]vectorHit, 0, len(found.Hits))
	var buf []float32
	for _, h := range found.Hits {
		hit := vectorHit{id: h.ID, kind: h.Kind, thread: h.Thread, cosine: clampCosine(float64(h.Score))}
		if r.p.req.Exact && index.Encoding(v.space.Encoding) != index.EncodingF32 {
			var ok bool
			if hit.cosine, buf, ok, err = r.cosine(v, h.ID, buf); err != nil {
				return nil, false, err
			}
			if !ok {
				continue // its space is being deleted
			}
		}
		hit.score = hit.cosine
		hits = append(hits, hit)
	}
	sortVectors(hits)
	return hits, found.Exact, nil
}

// cosine compares a record's vector with the query's; false when it has none. buf
// is room for the vector and is given back, grown.
func (r *searchRun) cosine(v *vectorPath, id int64, buf []float32) (cosine float64, grown []float32, ok bool, err error) {
	buf, norm, ok, err := r.tx.Vector(v.space.ID, id, buf)
	if err != nil || !ok || len(buf) != len(v.query) || !(norm > 0) {
		return 0, buf, false, err
	}
	return clampCosine(float64(vec.Dot(v.query, buf)) / norm), buf, true, nil
}

// clampCosine takes off what rounding adds.
func clampCosine(c float64) float64 { return min(max(c, -1), 1) }

func sortVectors(hits []vectorHit) {
	slices.SortFunc(hits, func(a, b vectorHit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
}

// compareAll is compare without an index: it goes through the records of the
// truth, oldest first, and ends inexact after so many of them.
func (r *searchRun) compareAll(ctx context.Context, v *vectorPath, limit int) (hits []vectorHit, exact bool, err error) {
	exact = true
	var buf []float32
	seen, most := 0, cmp.Or(r.e.models.truthScan, defaultTruthScan)
	keep := func() {
		sortVectors(hits)
		hits = hits[:min(len(hits), limit)]
	}
	for _, kind := range r.scope.kinds {
		filter, some := r.p.filter.of(store.Kind(kind))
		if !some {
			continue
		}
		err = r.tx.Scan(filter.Filter, 0, 0, func(s store.Stored) (bool, error) {
			if seen++; seen > most {
				exact = false
				return false, nil
			}
			head := s.Head()
			hit := vectorHit{id: head.ID, kind: kind, thread: head.ThreadID}
			covered := v.sees(head.ID)
			if c, ok := s.(*store.Chunk); ok {
				hit.thread, covered = c.NoteID, covered && filter.coversChunk(c)
			} else {
				covered = covered && filter.covers(head)
			}
			if covered {
				hidden, err := r.hides(s)
				if err != nil {
					return false, err
				}
				covered = !hidden
			}
			if !covered {
				return true, ctx.Err()
			}
			var ok bool
			var err error
			if hit.cosine, buf, ok, err = r.cosine(v, head.ID, buf); err != nil || !ok {
				return true, err
			}
			hit.score = hit.cosine
			if hits = append(hits, hit); len(hits) >= 2*limit {
				keep()
			}
			return true, ctx.Err()
		})
		if err != nil {
			return nil, false, err
		}
	}
	keep()
	return hits, exact, nil
}

// hides says whether a record is a point that the search must not show.
func (r *searchRun) hides(s store.Stored) (bool, error) {
	p, ok := s.(*store.Point)
	if !ok {
		return false, nil
	}
	life := pointText(p, nil).Life
	if !life.Shows(r.f.Now, r.f.ValidAt, r.f.HasValid) {
		return true, nil
	}
	return r.e.hiddenPoint(r.tx, s)
}

// share adds to the candidates what their neighbours and their threads are worth,
// or leaves the best of each thread when threads are ranked. The neighbours of
// candidates become candidates.
func (r *searchRun) share(v *vectorPath, f index.Filter, hits []vectorHit) (_ []vectorHit, err error) {
	byThread := r.p.req.GroupBy == GroupThread
	if len(hits) == 0 || !byThread && r.p.req.NeighbourWeight == 0 && r.p.req.ThreadWeight == 0 {
		return hits, nil
	}
	floor := hits[len(hits)-1].cosine
	if r.p.req.NeighbourWeight > 0 && !byThread && r.view != nil {
		if hits, err = r.addNeighbours(v, f, hits, floor); err != nil {
			return nil, err
		}
	}
	if byThread || r.p.req.ThreadWeight > 0 {
		if hits, err = r.addThreads(hits, floor, byThread); err != nil {
			return nil, err
		}
	}
	sortVectors(hits)
	return hits, nil
}

// addNeighbours gives every candidate its share of the better neighbour, after
// taking in the neighbours themselves. Whatever is no candidate even then lies
// farther from the query than all that are, so the better neighbour of those taken
// in is a candidate too.
func (r *searchRun) addNeighbours(v *vectorPath, f index.Filter, hits []vectorHit, floor float64) ([]vectorHit, error) {
	ids, kinds := make([]int64, len(hits)), make([]index.Kind, len(hits))
	at := make(map[int64]int, 3*len(hits))
	for i, h := range hits {
		ids[i], kinds[i], at[h.id] = h.id, h.kind, i
	}
	best := make([]float64, len(hits), 3*len(hits)) // of the neighbours' cosines
	for i := range best {
		best[i] = floor
	}
	var buf []float32
	for i, pair := range r.view.Adjacent(f, ids, kinds) {
		for _, id := range pair {
			if id == 0 {
				continue
			}
			k, known := at[id]
			if !known {
				if !v.sees(id) {
					continue
				}
				hit := vectorHit{id: id, kind: hits[i].kind, thread: hits[i].thread}
				var ok bool
				var err error
				if hit.cosine, buf, ok, err = r.cosine(v, id, buf); err != nil {
					return nil, err
				}
				if !ok {
					continue
				}
				hit.score = hit.cosine
				k, at[id] = len(hits), len(hits)
				hits, best = append(hits, hit), append(best, floor)
			}
			best[i], best[k] = max(best[i], hits[k].cosine), max(best[k], hits[i].cosine)
		}
	}
	for i := range hits {
		hits[i].score, hits[i].neighbourAdd = rank.Smoothed(hits[i].score, best[i], floor, r.p.req.NeighbourWeight)
	}
	return hits, nil
}

// addThreads gives every candidate its share of its thread's best candidate, or
// leaves only that one.
func (r *searchRun) addThreads(hits []vectorHit, floor float64, only bool) ([]vectorHit, error) {
	best := map[threadKey]int{}
	keys := make([]threadKey, len(hits))
	for i, h := range hits {
		key, err := r.threadKey(h.id, h.kind, h.thread)
		if err != nil {
			return nil, err
		}
		keys[i] = key
		if k, ok := best[key]; !ok || h.cosine > hits[k].cosine || h.cosine == hits[k].cosine && h.id < hits[k].id {
			best[key] = i
		}
	}
	out := hits[:0:0]
	for i, h := range hits {
		switch {
		case h.thread == 0:
		case !only:
			h.score, h.threadAdd = rank.Smoothed(h.score, hits[best[keys[i]]].cosine, floor, r.p.req.ThreadWeight)
		case best[keys[i]] != i:
			continue
		}
		out = append(out, h)
	}
	return out, nil
}

// threadKey names a thread: threads of two scopes that have one name are two.
type threadKey struct {
	kind   index.Kind
	scope  string // "" when the search looks at one scope only
	thread int64
}

func (r *searchRun) threadKey(id int64, kind index.Kind, thread int64) (threadKey, error) {
	key := threadKey{kind: kind, thread: thread}
	if thread == 0 || len(r.f.Scopes) < 2 {
		return key, nil
	}
	var err error
	_, _, key.scope, err = r.tx.Place(id)
	return key, err
}

// joinThreads makes the vector path's hits stand for the records that the text
// path has chosen for their threads, where threads are ranked.
func (r *searchRun) joinThreads(text []fusedHit) error {
	if r.p.req.GroupBy != GroupThread {
		return nil
	}
	chosen := map[threadKey]int64{}
	for _, h := range text {
		if h.Thread == 0 {
			continue
		}
		key, err := r.threadKey(h.ID, h.Kind, h.Thread)
		if err != nil {
			return err
		}
		chosen[key] = h.ID
	}
	for i := range r.vectors {
		h := &r.vectors[i]
		if h.thread == 0 {
			continue
		}
		key, err := r.threadKey(h.id, h.kind, h.thread)
		if err != nil {
			return err
		}
		if id, ok := chosen[key]; ok {
			h.id = id
		}
	}
	return nil
}
