package agent

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// selection is a Selection that was checked.
type selection struct {
	where   []index.Condition // what the index knows
	pairs   []meta.Member     // what has to be compared as JSON, by the truth
	content *string           // the text that a fact must have
	tags    []string
	thread  string
	validAt *int64
	// least is a procedure's least confidence.
	least float64
}

// check validates a selection.
func (f *Selection) check() (*selection, error) {
	out := &selection{validAt: f.AsOfValidUS}
	filter := f.Filter
	if string(bytes.TrimSpace(filter)) == "null" {
		filter = nil
	}
	members, err := meta.Scan(filter)
	if err != nil {
		return nil, errs.Invalid("filter", "%s", err)
	}
	for _, m := range members {
		if strings.HasPrefix(m.Key, reservedPrefix) {
			return nil, errs.Invalid("filter", "has a key that begins with %q: no metadata has one", reservedPrefix)
		}
		if m.Key == contentKey {
			text, ok := stringOf(m.Value)
			if !ok {
				return nil, errs.Invalid("filter", "compares %q with what is no string: it is the point's text", contentKey)
			}
			out.content = &text
			continue
		}
		c, whole := pairCondition(m)
		out.where = append(out.where, c)
		if !whole {
			out.pairs = append(out.pairs, m)
		}
	}
	raw := make([]meta.Condition, len(f.Where))
	for i, c := range f.Where {
		raw[i] = meta.Condition{Key: c.Key, Op: string(c.Op), Value: c.Value}
	}
	where, err := meta.Conditions("where", raw)
	if err != nil {
		return nil, err
	}
	out.where = append(out.where, where...)
	if out.tags, err = valid.Tags("tags", f.Tags, loci.MaxTags, loci.MaxTagBytes); err != nil {
		return nil, err
	}
	if f.Thread != nil {
		if err := valid.Label("thread", *f.Thread, loci.MaxLabelBytes); err != nil {
			return nil, err
		}
		out.thread = *f.Thread
	}
	return out, nil
}

// stringOf is the text of a JSON string.
func stringOf(raw []byte) (string, bool) {
	v := meta.Scalar(raw)
	return v.String, v.Type == index.TypeString
}

// pairCondition is a pair of a filter as a condition of the index, and whether that
// says all of it. The index knows that an object or an array is there but not what
// is in it, and numbers as float64 only, so that numbers that differ may be one.
func pairCondition(m meta.Member) (c index.Condition, whole bool) {
	v := meta.Scalar(m.Value)
	if v.Type == index.TypeOther {
		return index.Condition{Key: m.Key, Op: index.OpExists}, false
	}
	return index.Condition{Key: m.Key, Op: index.OpEq, Values: []index.Value{v}}, v.Type != index.TypeNumber
}

// narrow adds what the index has to know of a selection to a filter; false when
// nothing can meet it.
func (f *selection) narrow(tx *store.ReadTx, to *index.Filter) (bool, error) {
	to.Where = f.where
	for _, tag := range f.tags {
		id, ok, err := tx.StringID(tag)
		if err != nil || !ok {
			return false, err
		}
		to.Tags = append(to.Tags, id)
	}
	if f.thread != "" {
		id, ok, err := tx.StringID(f.thread)
		if err != nil || !ok {
			return false, err
		}
		to.Threads = []int64{id}
	}
	return true, nil
}

// guessed says that whatever has to be read of a point is nearly always as the index
// says: numbers, of which only those that differ by less than a float64 can tell are
// otherwise.
func (f *selection) guessed() bool {
	return f.content == nil && f.least == 0 &&
		!slices.ContainsFunc(f.pairs, func(m meta.Member) bool { return meta.Scalar(m.Value).Type != index.TypeNumber })
}

// open says whether a point has to be read to know whether it meets the selection.
func (f *selection) open() bool { return len(f.pairs) > 0 || f.content != nil || f.least > 0 }

// meets says whether a point meets what the index cannot answer for.
func (f *selection) meets(p *store.Point) bool {
	if f.content != nil && p.Content != *f.content || p.Confidence < f.least && p.Kind == store.KindProcedure {
		return false
	}
	return f.holds(p.Metadata)
}

// holds says whether metadata holds the pairs that have to be compared.
func (f *selection) holds(metadata []byte) bool {
	if len(f.pairs) == 0 {
		return true
	}
	members, err := meta.Scan(metadata)
	if err != nil {
		return false
	}
	for _, want := range f.pairs {
		i := slices.IndexFunc(members, func(m meta.Member) bool { return m.Key == want.Key })
		if i < 0 || !meta.EqualValues(members[i].Value, want.Value) {
			return false
		}
	}
	return true
}

// covers says whether a point meets the whole selection at a time.
func (f *selection) covers(p *store.Point, now int64) bool {
	at := valueOr(f.validAt, now)
	if expired(p, now) || p.ValidFrom != nil && at < *p.ValidFrom || p.ValidTo != nil && at >= *p.ValidTo ||
		f.thread != "" && p.Thread != f.thread || !f.meets(p) {
		return false
	}
	for _, tag := range f.tags {
		if !slices.Contains(p.Tags, tag) {
			return false
		}
	}
	if len(f.where) == 0 {
		return true
	}
	attributes := attributesOf(p.Metadata)
	return !slices.ContainsFunc(f.where, func(c index.Condition) bool { return !index.Match(c, attributes) })
}

// nearQuery is a query by a vector, checked.
type nearQuery struct {
	given    []float32
	norm     float64   // its length
	unit     []float32 // the same at length 1, for the index
	k, skip  int
	selected *selection
	exact    bool
	// full asks for the points themselves, not only for what a hit shows.
	full bool
}

// nearHit is a point that answers a query by a vector.
type nearHit struct {
	id      int64 // the record
	key     uint64
	score   float64
	content string
	point   *store.Point // with full
}

// checkQuery validates a query by a vector.
func (s *points) checkQuery(embedding []float32, k *int, offset int, f *Selection) (*nearQuery, error) {
	if err := s.m.checkVector("embedding", embedding); err != nil {
		return nil, err
	}
	q := &nearQuery{given: embedding, norm: math.Sqrt(dot(embedding, embedding)), skip: offset, exact: true}
	q.unit = make([]float32, len(embedding))
	for i, x := range embedding {
		q.unit[i] = float32(float64(x) / q.norm)
	}
	var err error
	if q.k, err = checkLimit("k", k, defaultK); err != nil {
		return nil, err
	}
	if err := checkOffset(offset); err != nil {
		return nil, err
	}
	q.selected, err = f.check()
	return q, err
}

// dot is the inner product of two vectors. It is worked out in full precision, since
// scores decide the order of points that lie close together.
func dot(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float64(a[i]) * float64(b[i])
		s1 += float64(a[i+1]) * float64(b[i+1])
		s2 += float64(a[i+2]) * float64(b[i+2])
		s3 += float64(a[i+3]) * float64(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i]) * float64(b[i])
	}
	return s0 + s1 + s2 + s3
}

// query answers a query by a vector.
func (s *points) query(ctx context.Context, call string, q *nearQuery) (hits []nearHit, err error) {
	op := s.name(call)
	leave, err := s.m.enter(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	err = s.m.link.Pair(ctx, func(tx *store.ReadTx, view index.View) error {
		r := nearRun{s: s, tx: tx, view: view, q: q, now: s.m.link.Clock()}
		if r.row, err = s.m.row(tx); err != nil {
			return err
		}
		if r.space, err = tx.Space(r.row.Space); err != nil || r.space == nil {
			return err
		}
		hits, err = r.run(ctx)
		return err
	})
	return hits, errs.WithOp(op, err)
}

// nearRun is a query by a vector on its snapshot.
type nearRun struct {
	s     *points
	tx    *store.ReadTx
	view  index.View // nil: no index is usable
	q     *nearQuery
	row   *store.AgentMemory
	space *store.Space
	now   int64

	filter index.Filter
	room   []float32
	// guess says that candidates are scored before anything else is read of them.
	guess bool
	// best are the exact scores of the best points so far, at most as many as are
	// wanted.
	best []float64
}

// run finds the hits. The index gives every point that may be among the best by its
// coarser scores; these are scored by the vectors in the truth, the most promising
// first, until no other can be among the best any more. Where some do not meet the
// selection and others may take their places, it asks for more.
func (r *nearRun) run(ctx context.Context) ([]nearHit, error) {
	if r.view == nil {
		return r.scan(ctx)
	}
	r.filter = index.Filter{
		Namespace: r.row.NamespaceID, Kinds: []index.Kind{index.Kind(r.s.kind)}, Scopes: []int64{r.row.Place(r.s.kind)},
		Now: r.now, HasValid: true, ValidAt: index.At(valueOr(r.q.selected.validAt, r.now)),
	}
	if some, err := r.q.selected.narrow(r.tx, &r.filter); err != nil || !some {
		return nil, err
	}
	wanted, err := r.wanted()
	if err != nil {
		return r.without(ctx)
	}
	r.guess = r.q.selected.guessed()
	ask := index.VectorQuery{Space: r.space.ID, Values: r.q.unit, Limit: wanted, Want: wanted, Certain: r.q.exact, NoThreads: true}
	if !ask.Certain {
		ask.Limit += wanted/2 + extraCandidates
	}
	for {
		res, err := r.view.Nearest(ask, r.filter)
		if err != nil {
			return r.without(ctx)
		}
		hits, err := r.score(&ask, res.Hits, wanted)
		if err != nil {
			return nil, err
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case r.enough(&ask, &res, len(hits), wanted):
			page, right, err := r.page(hits)
			if right || err != nil {
				return page, err
			}
			r.guess = false
		case len(res.Hits) >= ask.Limit:
			ask.Limit *= windowGrowth
		default: // part of the vectors did not give as many as are wanted
			ask.Certain = true
		}
	}
}

// enough says whether no other point can be among the best, or whether an approximate
// answer has as many hits as are wanted.
func (r *nearRun) enough(ask *index.VectorQuery, res *index.VectorResult, hits, wanted int) bool {
	if !ask.Certain {
		return hits >= wanted || res.Exact && len(res.Hits) < ask.Limit
	}
	return res.Rest < -1 || len(r.best) == wanted && r.best[0] > float64(res.Rest)
}

// wanted is how many of the best hits there have to be. It is never far above the
// number of points, whatever page is asked for.
func (r *nearRun) wanted() (int, error) {
	if r.q.skip <= loci.MaxPage {
		return r.q.k + r.q.skip, nil
	}
	all, err := r.view.Count(index.Filter{Namespace: r.filter.Namespace, Kinds: r.filter.Kinds, Scopes: r.filter.Scopes, Now: r.now})
	if err != nil {
		return 0, err
	}
	return int(min(all, int64(r.q.skip))) + r.q.k, nil
}

// without is run where the index has failed, which is taken out of use.
func (r *nearRun) without(ctx context.Context) ([]nearHit, error) {
	r.s.m.link.IndexFailed()
	return r.scan(ctx)
}

// extraCandidates are asked for beyond what is wanted where the index's order has to
// do: some may not meet the selection, and those of one score are not in the order of
// their ids.
const extraCandidates = 10

// score gives the hits among candidates. An approximate answer takes the index's word
// for their scores, which is right to four digits or so: reading their vectors would
// take longer than all the rest.
func (r *nearRun) score(ask *index.VectorQuery, candidates []index.VectorHit, wanted int) ([]nearHit, error) {
	if ask.Certain {
		return r.rescore(candidates, wanted)
	}
	hits := make([]nearHit, 0, len(candidates))
	for _, c := range candidates {
		hit := nearHit{id: c.ID, score: min(max(float64(c.Score), -1), 1)}
		if !r.guess {
			var err error
			if hit.point, err = r.tx.Point(c.ID); err != nil {
				return nil, err
			}
			if hit.point == nil || !r.q.selected.meets(hit.point) {
				continue
			}
			hit.key, hit.content = hit.point.Key, hit.point.Content
		}
		hits = append(hits, hit)
	}
	return hits, nil
}

// rescore scores candidates by their vectors in the truth, until none of the others
// can be among the best.
func (r *nearRun) rescore(candidates []index.VectorHit, wanted int) (hits []nearHit, err error) {
	r.best = r.best[:0]
	upper := func(h index.VectorHit) float32 { return h.Score + h.Slack }
	slices.SortFunc(candidates, func(a, b index.VectorHit) int { return cmp.Compare(upper(b), upper(a)) })
	for _, c := range candidates {
		if c.Slack > 0 && len(r.best) >= wanted && float64(upper(c)) < r.best[0] {
			return hits, nil
		}
		hit, ok, err := r.candidate(c.ID)
		if err != nil {
			return nil, err
		}
		if ok {
			hits = append(hits, hit)
			r.keep(hit.score, wanted)
		}
	}
	return hits, nil
}

// keep counts a score among the best, a heap with the least on top.
func (r *nearRun) keep(score float64, wanted int) {
	if len(r.best) < wanted {
		r.best = append(r.best, score)
		for i := len(r.best) - 1; i > 0 && r.best[i] < r.best[(i-1)/2]; i = (i - 1) / 2 {
			r.best[i], r.best[(i-1)/2] = r.best[(i-1)/2], r.best[i]
		}
		return
	}
	if score <= r.best[0] {
		return
	}
	r.best[0] = score
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < len(r.best) && r.best[c+1] < r.best[c] {
			c++
		}
		if c >= len(r.best) || r.best[i] <= r.best[c] {
			return
		}
		r.best[i], r.best[c] = r.best[c], r.best[i]
		i = c
	}
}

// candidate scores a point, and reads the rest of it where that decides whether it is
// one.
func (r *nearRun) candidate(id int64) (hit nearHit, ok bool, err error) {
	if !r.guess {
		return r.hit(id)
	}
	v, norm, ok, err := r.tx.Vector(r.space.ID, id, r.room)
	if r.room = v; err != nil || !ok || len(v) != len(r.q.unit) || !(norm > 0) {
		return hit, false, err
	}
	return nearHit{id: id, score: r.cosine(v, norm)}, true, nil
}

// cosine is that of a point's vector and the query's.
func (r *nearRun) cosine(v []float32, norm float64) float64 {
	return min(max(dot(r.q.given, v)/(r.q.norm*norm), -1), 1)
}

// hit reads and scores a point; false when it does not meet the selection.
func (r *nearRun) hit(id int64) (hit nearHit, ok bool, err error) {
	shown, ok, err := r.tx.PointHit(r.space.ID, id, r.room)
	if err != nil || !ok {
		return hit, false, err
	}
	r.room = shown.Vector
	if len(shown.Vector) != len(r.q.unit) || !(shown.Norm > 0) {
		return hit, false, nil
	}
	hit = nearHit{id: id, key: shown.Key, content: shown.Content, score: r.cosine(shown.Vector, shown.Norm)}
	if !r.q.full && !r.q.selected.open() {
		return hit, true, nil
	}
	if hit.point, err = r.tx.Point(id); err != nil || hit.point == nil {
		return hit, false, err
	}
	return hit, r.q.selected.meets(hit.point), nil
}

// best sorts hits and leaves the best of them.
func best(hits []nearHit, most int) []nearHit {
	slices.SortFunc(hits, func(a, b nearHit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.key, b.key))
	})
	return hits[:min(most, len(hits))]
}

// page cuts those hits out that are asked for. Of hits that are only scored so far it
// reads the rest; right is false when one of them does not meet the selection.
func (r *nearRun) page(hits []nearHit) (page []nearHit, right bool, err error) {
	hits = best(hits, len(hits))
	from := min(r.q.skip, len(hits))
	to := min(from+r.q.k, len(hits))
	if !r.guess {
		return hits[from:to], true, nil
	}
	// Hits of one score are in the order of ids, which is known only once they are
	// read: all of those that share theirs with the first or the last one.
	first, last := from, to
	for first > 0 && first < len(hits) && hits[first-1].score == hits[first].score {
		first--
	}
	if len(r.q.selected.pairs) > 0 {
		first = 0 // one that does not meet the selection moves all behind it
	}
	for last > from && last < len(hits) && hits[last].score == hits[last-1].score {
		last++
	}
	for i := first; i < last; i++ {
		if right, err = r.read(&hits[i]); err != nil || !right {
			return nil, false, err
		}
	}
	best(hits[first:last], last-first)
	return hits[from:to], true, nil
}

// read reads what an answer shows of a hit that is only scored so far; false when it
// does not meet the selection.
func (r *nearRun) read(hit *nearHit) (meets bool, err error) {
	if r.q.full {
		if hit.point, err = r.tx.Point(hit.id); err != nil || hit.point == nil {
			return false, err
		}
		hit.key, hit.content = hit.point.Key, hit.point.Content
		return r.q.selected.meets(hit.point), nil
	}
	text, ok, err := r.tx.PointText(hit.id, len(r.q.selected.pairs) > 0)
	hit.key, hit.content = text.Key, text.Content
	return ok && r.q.selected.holds(text.Metadata), err
}

// scan is run without an index: it goes through all points, a part at a time.
func (r *nearRun) scan(ctx context.Context) ([]nearHit, error) {
	r.guess = false
	var hits []nearHit
	for after := (*uint64)(nil); ; {
		found, err := r.tx.PointsAfter(r.row.Place(r.s.kind), r.now, after, loci.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			after = &p.Key
			if !r.q.selected.covers(p, r.now) {
				continue
			}
			hit, ok, err := r.hit(p.ID)
			if err != nil {
				return nil, err
			}
			if ok {
				hits = append(hits, hit)
			}
		}
		if most := loci.MaxPage; len(hits) > 2*most && r.q.skip <= most {
			hits = best(hits, r.q.k+r.q.skip)
		}
		if len(found) < loci.MaxPage {
			page, _, err := r.page(hits)
			return page, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// QueryHits gives the facts whose vectors lie nearest to one, among those that are
// current: the whole of them are compared, unless Approximate is set. Scores are
// cosines, of an approximate answer to four digits or so, best first, ties by ascending
// id. Pages at successive offsets are disjoint
// and together what one page would be.
func (s *SemanticMemory) QueryHits(ctx context.Context, req QueryRequest) (*Hits, error) {
	q, err := s.checkQuery(req.Embedding, req.K, req.Offset, &req.Selection)
	if err != nil {
		return nil, errs.WithOp(s.name("query"), err)
	}
	q.exact = !req.Approximate
	found, err := s.query(ctx, "query", q)
	if err != nil {
		return nil, err
	}
	out := &Hits{Hits: make([]Hit, len(found))}
	for i, h := range found {
		out.Hits[i] = Hit{ID: loci.PointID(h.key), Score: h.score, Content: h.content}
	}
	return out, nil
}

// Query gives the k current facts whose vectors lie nearest to one.
func (s *SemanticMemory) Query(ctx context.Context, embedding []float32, k int) ([]Hit, error) {
	return s.QueryFiltered(ctx, embedding, k, nil, 0)
}

// QueryFiltered is Query for facts whose metadata holds every pair of filter, a JSON
// object, leaving out the first offset of them.
func (s *SemanticMemory) QueryFiltered(ctx context.Context, embedding []float32, k int, filter loci.Metadata, offset int) ([]Hit, error) {
	hits, err := s.QueryHits(ctx, QueryRequest{Embedding: embedding, K: &k, Offset: offset, Selection: Selection{Filter: filter}})
	if err != nil {
		return nil, err
	}
	return hits.Hits, nil
}
