package loci

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

const (
	defaultLimit      = 10
	candidatesPerHit  = 5
	defaultCandidates = 100
)

// defaultKinds are what a search looks at when it is not told.
var defaultKinds = []Kind{KindMemory, KindEntity, KindRelation, KindEvent, KindChunk}

// searchPlan is a checked request with its defaults filled in.
type searchPlan struct {
	req        *SearchRequest
	filter     *readFilter
	kinds      []index.Kind
	limit      int
	candidates int
	topChunks  int
	textWeight float64
	fusion     Fusion // settled when it is known which paths run
}

// Search finds the records that answer a query best, best first, ties by
// ascending id. Text is matched in rounds: records that hold every word of the
// query stand before those that hold any, and these before those that only share
// a single Chinese character. A query of stop words or punctuation only has no
// hits by text. Vectors are compared where an embedder turns the query into one:
// the records that lie nearest are hits, whatever words they hold, so match_field
// does not narrow them. Both are fused, and a reranker, if there is one, has the
// last word. A degraded search still answers; Diagnostics says what was missing.
func (db *DB) Search(ctx context.Context, req SearchRequest) (*SearchResult, error) {
	const op = "search"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	t := e.sinks.trace()
	plan, err := req.plan(ctx)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	found, _, err := e.answer(ctx, plan, t)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return found.res, nil
}

// answer runs a plan of its own, and gives its hits also as they were found.
func (e *engine) answer(ctx context.Context, p *searchPlan, t *trace) (found *searched, hits []finishedHit, err error) {
	q := analyzeQuery(p.req.Query, p.req.MatchField)
	vectors, err := e.prepareVectors(ctx, t, p)
	if err != nil {
		return nil, nil, err
	}
	err = e.readKeptPair(ctx, func(tx *store.ReadTx, view index.View) (err error) {
		found, err = e.search(ctx, tx, view, p, q, vectors[0], t)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if hits, err = e.settle(ctx, p, found, t); err != nil {
		return nil, nil, err
	}
	e.degraded.note(found.res.Diagnostics.Degraded)
	return found, hits, nil
}

// plan checks a request, and refuses one beyond ctx's access.
func (r *SearchRequest) plan(ctx context.Context) (*searchPlan, error) {
	p := &searchPlan{req: r, textWeight: 1}
	if len(r.Query) > MaxQueryBytes {
		return nil, errs.Invalid("query", "has %d bytes, at most %d are allowed", len(r.Query), MaxQueryBytes)
	}
	if !utf8.ValidString(r.Query) {
		return nil, errs.Invalid("query", "is not valid UTF-8")
	}
	if strings.TrimSpace(r.Query) == "" {
		return nil, errs.Invalid("query", "must not be blank")
	}
	if r.NoText && r.NoVector {
		return nil, errs.Invalid("no_text", "leaves no path to search by: vectors are left out as well")
	}
	var err error
	if p.filter, err = r.Filter.check(ctx, "filter."); err != nil {
		return nil, err
	}
	kinds := r.Kinds
	if kinds == nil {
		kinds = defaultKinds
	}
	for i, kind := range kinds {
		n := kind.number()
		if n == 0 {
			return nil, errs.Invalid(fmt.Sprintf("kinds[%d]", i), "is not a kind of record")
		}
		// Notes themselves are not indexed, their chunks are.
		// A chunk stands in its note and so in no thread.
		wanted := n != index.Kind(store.KindNote) && (len(p.filter.kinds) == 0 || slices.Contains(p.filter.kinds, n)) &&
			(len(p.filter.noteIDs) == 0 || n == kindChunk) && (p.filter.Thread == "" || n != kindChunk)
		if wanted && !slices.Contains(p.kinds, n) {
			p.kinds = append(p.kinds, n)
		}
	}
	if p.limit, err = checkLimit("limit", r.Limit, defaultLimit); err != nil {
		return nil, err
	}
	p.candidates = min(max(candidatesPerHit*p.limit, defaultCandidates), MaxPage)
	if r.CandidateLimit != nil {
		if p.candidates = *r.CandidateLimit; p.candidates < p.limit || p.candidates > MaxPage {
			return nil, errs.Invalid("candidate_limit", "must be from limit (%d) to %d, not %d", p.limit, MaxPage, p.candidates)
		}
	}
	if p.topChunks = valueOr(r.TopChunksPerNote, defaultTopChunks); p.topChunks < 0 || p.topChunks > MaxPage {
		return nil, errs.Invalid("top_chunks_per_note", "must be from 0 to %d, not %d", MaxPage, p.topChunks)
	}
	if _, ok := indexFields[r.MatchField]; !ok {
		return nil, errs.Invalid("match_field", "must be all, text, name or path")
	}
	switch r.Fusion {
	case "", FusionRRF, FusionScore:
	default:
		return nil, errs.Invalid("fusion", "must be rrf or score")
	}
	switch r.GroupBy {
	case "", GroupNone, GroupThread:
	default:
		return nil, errs.Invalid("group_by", "must be none or thread")
	}
	return p, p.checkWeights()
}

// checkWeights checks the numbers that say what counts how much, and prune.
func (p *searchPlan) checkWeights() error {
	r := p.req
	p.textWeight = valueOr(r.TextWeight, 1)
	type weight struct {
		name  string
		value float64
	}
	for _, w := range []weight{{"text_weight", p.textWeight}, {"vector_weight", valueOr(r.VectorWeight, 1)}} {
		if !(w.value > 0) || math.IsInf(w.value, 0) {
			return errs.Invalid(w.name, "must be finite and above 0")
		}
	}
	for _, w := range []weight{
		{"neighbour_weight", r.NeighbourWeight}, {"thread_weight", r.ThreadWeight},
		{"recency_weight", r.RecencyWeight}, {"strength_weight", r.StrengthWeight}, {"graph_weight", r.GraphWeight},
	} {
		if !(w.value >= 0 && w.value <= maxShare) {
			return errs.Invalid(w.name, "must be from 0 to %d", maxShare)
		}
	}
	if r.Prune == nil {
		return nil
	}
	if r.Prune.Depth < 1 {
		return errs.Invalid("prune.depth", "must be at least 1, not %d", r.Prune.Depth)
	}
	_, err := checkLimit("prune.limit", &r.Prune.Limit, MaxPage)
	return err
}

// maxShare bounds the weights that add a share of another score: past it the
// record's own score hardly counts any more.
const maxShare = 10

// searched is what a search found on its snapshot, before a reranker was asked.
type searched struct {
	res                *SearchResult // all but its hits
	hits               []finishedHit // those that may be among them, best first
	draft              *rerankDraft  // nil: no reranker is asked
	candidates, folded int
}

// finishedHit is a hit of which nothing is missing but its final place.
type finishedHit struct {
	SearchHit
	id      int64
	record  store.Stored
	context Neighborhood // of a search with context
}

// search runs a plan on one snapshot. No model is asked.
func (e *engine) search(ctx context.Context, tx *store.ReadTx, view index.View, p *searchPlan, q index.Query, v *vectorPath, t *trace) (*searched, error) {
	res := &SearchResult{Hits: []SearchHit{}, Revision: tx.Revision(),
		Diagnostics: SearchDiagnostics{VectorMissing: []VectorMissing{}, Degraded: []Degrade{}}}
	s := &searched{res: res, draft: e.draftRerank(p)}
	if p.req.WithTotal && !p.req.NoText {
		res.Total = new(int64)
	}
	f, some, err := p.indexFilter(tx, e.lifeNow())
	if err != nil {
		return nil, err
	}
	r := &searchRun{e: e, tx: tx, view: view, p: p, q: q, f: f, d: &res.Diagnostics}
	if some {
		if err := r.expand(); err != nil {
			return nil, err
		}
	}
	if !p.req.NoText {
		r.textPath(some, v.query == nil && s.draft == nil && p.textDecides(), res.Total, t)
	}
	if r.view != nil {
		res.IndexedRevision = r.view.Revision()
	}
	if err := r.vectorPath(ctx, v, some, t); err != nil {
		return nil, err
	}
	hits, err := r.fuse(v)
	if err != nil {
		return nil, err
	}
	if hits, err = e.addGraphPath(tx, p, hits); err != nil {
		return nil, err
	}
	t.stage("fuse")
	s.candidates = len(hits)
	hits = fold(hits)
	s.folded = len(hits)
	t.stage("fold")
	if hits, err = e.weigh(tx, p, hits); err != nil {
		return nil, err
	}
	if s.hits, err = r.finish(hits, s.draft); err != nil {
		return nil, err
	}
	t.stage("load")
	return s, ctx.Err()
}

// settle asks the reranker, if one is to be asked, and fills in the hits. It must
// not be called on a snapshot unless there is no draft.
func (e *engine) settle(ctx context.Context, p *searchPlan, s *searched, t *trace) ([]finishedHit, error) {
	e.rerank(ctx, s, t)
	hits := s.hits[:min(len(s.hits), p.limit)]
	s.res.Hits = slices.Grow(s.res.Hits, len(hits))
	for i := range hits {
		s.res.Hits = append(s.res.Hits, hits[i].SearchHit)
	}
	t.finish(e, s.candidates, s.folded, len(hits), s.res.Diagnostics.Degraded)
	return hits, ctx.Err()
}

// searchRun is a search on its snapshot.
type searchRun struct {
	e    *engine
	tx   *store.ReadTx
	view index.View // nil: no index is usable
	p    *searchPlan
	q    index.Query
	f    index.Filter
	d    *SearchDiagnostics

	text    []index.Hit
	every   bool // text holds all that the text path would find
	folders map[int64]bool
	vectors []vectorHit
	scope   vectorScope
}

// expand lets equivalents stand for the query's words.
func (r *searchRun) expand() error {
	x, err := r.e.equivalentsOf(r.tx, r.p.filter.Namespace)
	if err != nil {
		return err
	}
	r.q = x.expandQuery(r.q, r.p.req.Query)
	return nil
}

// textPath finds the candidates by text, and counts the matches if total is not
// nil. An index that fails is taken out of use, for the rest of the search too;
// some says whether the filter covers anything, alone whether nothing but the
// text has a say in the hits.
func (r *searchRun) textPath(some, alone bool, total *int64, t *trace) {
	if r.view == nil {
		r.degrade(DegradeTextIndexUnavailable)
		return
	}
	look := some && r.p.looksAtFolders(r.e)
	if some {
		if err := r.findText(look, alone); err != nil {
			r.indexFailed()
			r.degrade(DegradeTextIndexUnavailable)
			return
		}
	}
	t.stage("text")
	if total != nil {
		if err := r.count(some, look, total); err != nil {
			r.text, r.folders = nil, nil
			r.indexFailed()
			r.degrade(DegradeTextIndexUnavailable)
			return
		}
		t.stage("count")
	}
	r.d.TextUsed = true
}

// findText finds the candidates by text; look says that folder names are matched
// too. Where the text alone decides, the hits wanted are all that is needed: a tenth
// of the window's candidates, which the index finds much sooner. Chunks are an
// exception, for a note's hit tells of the note's others among the candidates, and
// so are folders that may have to fill up what is missing.
func (r *searchRun) findText(look, alone bool) error {
	if alone {
		found, err := r.view.Search(r.q, r.f, index.Options{Limit: r.p.limit})
		if err != nil {
			return err
		}
		if (len(found.Hits) >= r.p.limit || !look) && !slices.ContainsFunc(found.Hits, isChunk) {
			r.text = found.Hits
			return nil
		}
	}
	found, full, err := r.p.candidatesFrom(r.view, r.q, r.f)
	r.every = !full
	if err == nil && look {
		found.Hits, r.folders, err = r.p.addFolders(r.view, r.q, r.f, found.Hits)
	}
	r.text = found.Hits
	return err
}

// textDecides says whether a search by text alone would have the same hits of any
// window that holds as many as are wanted: no candidate behind them could move one
// of them, and nothing is told of it.
func (p *searchPlan) textDecides() bool {
	r := p.req
	return r.CandidateLimit == nil && r.Fusion != FusionScore && r.GroupBy != GroupThread && !r.Explain &&
		r.NeighbourWeight == 0 && r.ThreadWeight == 0 && r.RecencyWeight == 0 && r.StrengthWeight == 0 && r.GraphWeight == 0
}

// count counts the records that match by text.
func (r *searchRun) count(some, look bool, total *int64) error {
	if !some {
		return nil
	}
	counted, err := r.view.Search(r.q, r.f, index.Options{Total: true})
	if err != nil {
		return err
	}
	*total = counted.Total
	if look {
		more, err := r.p.onlyByFolder(r.view, r.q, r.f)
		if err != nil {
			return err
		}
		*total += more
	}
	return nil
}

// degrade tells of a reason, once.
func (r *searchRun) degrade(code Degrade) {
	if !slices.Contains(r.d.Degraded, code) {
		r.d.Degraded = append(r.d.Degraded, code)
	}
}

// indexFailed takes the index out of use after a search of it failed, which means
// damaged files, and has it rebuilt. This search goes on without it.
func (r *searchRun) indexFailed() {
	r.view = nil
	if h := r.e.index.Load(); h != nil {
		r.e.indexBroke(h)
	}
}

// candidatesFrom searches the index for the candidates; full says that there may
// be more. One thread of many records may fill the window when threads are
// ranked, and one note of many chunks at any time: then the window grows, unless
// the caller has set it, until it holds as many threads or notes as are wanted.
func (p *searchPlan) candidatesFrom(view index.View, q index.Query, f index.Filter) (found index.Result, full bool, err error) {
	o := index.Options{Limit: p.candidates, NeighbourWeight: p.req.NeighbourWeight,
		ThreadWeight: p.req.ThreadWeight, ByThread: p.req.GroupBy == GroupThread}
	for {
		found, err = view.Search(q, f, o)
		full = len(found.Hits) >= o.Limit || o.ByThread
		if err != nil || o.Limit >= MaxPage || p.req.CandidateLimit != nil || folded(found.Hits) >= p.limit || !full {
			return found, full, err
		}
		o.Limit = min(o.Limit*windowGrowth, MaxPage)
	}
}

// windowGrowth is how much wider the next try is.
const windowGrowth = 10

// addPlaces adds the places in which the points of the filter's scopes lie. Nothing
// else lies there, so they widen the filter for no other kind.
func (p *searchPlan) addPlaces(tx *store.ReadTx, f *index.Filter) error {
	scopes := f.Scopes
	for _, kind := range p.kinds {
		if !store.Kind(kind).IsPoint() {
			continue
		}
		for _, scope := range scopes {
			places, ok, err := tx.Places(f.Namespace, scope)
			if err != nil {
				return err
			}
			if ok {
				f.Scopes = append(f.Scopes, places[store.Kind(kind)-store.KindFact])
			}
		}
	}
	return nil
}

// indexFilter is the filter in the dictionary's numbers; false when it covers
// nothing. now is the time that expiry is judged by.
func (p *searchPlan) indexFilter(tx *store.ReadTx, now int64) (f index.Filter, any bool, err error) {
	f = index.Filter{Kinds: p.kinds, Where: p.filter.where}
	if len(f.Kinds) == 0 {
		return f, false, nil
	}
	var ok bool
	if f.Namespace, ok, err = tx.StringID(p.filter.Namespace); err != nil || !ok {
		return f, false, err
	}
	for _, scope := range p.filter.Scopes {
		id, ok, err := tx.StringID(scope)
		if err != nil {
			return f, false, err
		}
		if ok && !slices.Contains(f.Scopes, id) {
			f.Scopes = append(f.Scopes, id)
		}
	}
	if err := p.addPlaces(tx, &f); err != nil {
		return f, false, err
	}
	if len(f.Scopes) == 0 {
		return f, false, nil
	}
	f.Now, f.HasValid, f.ValidAt = now, true, index.At(valueOr(p.req.ValidAtUS, now))
	for _, tag := range p.filter.Tags {
		id, ok, err := tx.StringID(tag)
		if err != nil || !ok {
			return f, false, err
		}
		f.Tags = append(f.Tags, id)
	}
	if p.filter.Thread != "" {
		thread, ok, err := tx.StringID(p.filter.Thread)
		if err != nil || !ok {
			return f, false, err
		}
		f.Threads = []int64{thread}
	}
	for _, id := range p.filter.noteIDs { // only chunks are left, which stand in their notes
		f.Threads = append(f.Threads, int64(id))
	}
	if p.filter.From != nil {
		f.HasFrom, f.CreatedFrom = true, *p.filter.From
	}
	if p.filter.To != nil {
		f.HasTo, f.CreatedTo = true, *p.filter.To
	}
	return f, true, nil
}
