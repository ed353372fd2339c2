package loci

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/rank"
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
	fusion     Fusion
}

// Search finds the records that answer a query best, best first, ties by
// ascending id. Text is matched in rounds: records that hold every word of the
// query stand before those that hold any, and these before those that only share
// a single Chinese character. A query of stop words or punctuation only has no
// hits. A degraded search still answers; Diagnostics says what was missing.
func (db *DB) Search(ctx context.Context, req SearchRequest) (*SearchResult, error) {
	const op = "search"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	t := e.sinks.trace()
	plan, err := req.plan()
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	q := analyzeQuery(req.Query, req.MatchField)
	t.stage("prepare")
	var res *SearchResult
	err = e.readPair(ctx, func(tx *store.ReadTx, view index.View) (err error) {
		res, err = e.search(ctx, tx, view, plan, q, t)
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	e.degraded.note(res.Diagnostics.Degraded)
	return res, nil
}

// plan checks a request.
func (r *SearchRequest) plan() (*searchPlan, error) {
	p := &searchPlan{req: r, textWeight: 1, fusion: FusionRRF}
	if len(r.Query) > MaxQueryBytes {
		return nil, errs.Invalid("query", "has %d bytes, at most %d are allowed", len(r.Query), MaxQueryBytes)
	}
	if !utf8.ValidString(r.Query) {
		return nil, errs.Invalid("query", "is not valid UTF-8")
	}
	if strings.TrimSpace(r.Query) == "" {
		return nil, errs.Invalid("query", "must not be blank")
	}
	if r.NoText {
		return nil, errs.Invalid("no_text", "leaves no path to search by: text is the only one")
	}
	var err error
	if p.filter, err = r.Filter.check("filter."); err != nil {
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
	case "", FusionRRF:
	case FusionScore:
		p.fusion = FusionScore
	default:
		return nil, errs.Invalid("fusion", "must be rrf or score")
	}
	switch r.GroupBy {
	case "", GroupNone, GroupThread:
	default:
		return nil, errs.Invalid("group_by", "must be none or thread")
	}
	if r.TextWeight != nil {
		if p.textWeight = *r.TextWeight; !(p.textWeight > 0) || math.IsInf(p.textWeight, 0) {
			return nil, errs.Invalid("text_weight", "must be finite and above 0")
		}
	}
	for _, w := range []struct {
		name  string
		value float64
	}{
		{"neighbour_weight", r.NeighbourWeight}, {"thread_weight", r.ThreadWeight},
		{"recency_weight", r.RecencyWeight}, {"strength_weight", r.StrengthWeight}, {"graph_weight", r.GraphWeight},
	} {
		if !(w.value >= 0 && w.value <= maxShare) {
			return nil, errs.Invalid(w.name, "must be from 0 to %d", maxShare)
		}
	}
	return p, nil
}

// maxShare bounds the weights that add a share of another score: past it the
// record's own score hardly counts any more.
const maxShare = 10

// search runs a plan on one snapshot.
func (e *engine) search(ctx context.Context, tx *store.ReadTx, view index.View, p *searchPlan, q index.Query, t *trace) (*SearchResult, error) {
	res := &SearchResult{Hits: []SearchHit{}, Revision: tx.Revision(), Diagnostics: SearchDiagnostics{Degraded: []Degrade{}}}
	if p.req.WithTotal {
		res.Total = new(int64)
	}
	unavailable := func() (*SearchResult, error) {
		res.Diagnostics.Degraded = append(res.Diagnostics.Degraded, DegradeTextIndexUnavailable)
		t.finish(e, 0, 0, 0, res.Diagnostics.Degraded)
		return res, nil
	}
	if view == nil {
		return unavailable()
	}
	f, any, err := p.indexFilter(tx)
	if err != nil {
		return nil, err
	}
	if any {
		x, err := e.equivalentsOf(tx, p.filter.Namespace)
		if err != nil {
			return nil, err
		}
		q = x.expandQuery(q, p.req.Query)
	}
	var found index.Result
	var folders map[int64]bool
	lookAtFolders := any && p.looksAtFolders(e)
	if any {
		found, err = p.candidatesFrom(view, q, f)
		if err == nil && lookAtFolders {
			found.Hits, folders, err = p.addFolders(view, q, f, found.Hits)
		}
		if err != nil {
			e.searchBroke()
			return unavailable()
		}
	}
	t.stage("text")
	if p.req.WithTotal {
		if any {
			counted, err := view.Search(q, f, index.Options{Total: true})
			var more int64
			if err == nil && lookAtFolders {
				more, err = p.onlyByFolder(view, q, f)
			}
			if err != nil {
				e.searchBroke()
				return unavailable()
			}
			*res.Total = counted.Total + more
		}
		t.stage("count")
	}
	res.IndexedRevision = view.Revision()
	res.Diagnostics.TextUsed = true
	hits := p.fuse(found.Hits)
	for i := range hits {
		hits[i].folder = folders[hits[i].ID]
	}
	if hits, err = e.addGraphPath(tx, p, hits); err != nil {
		return nil, err
	}
	t.stage("fuse")
	candidates := len(hits)
	hits = fold(hits)
	folded := len(hits)
	t.stage("fold")
	if hits, err = e.weigh(tx, p, hits); err != nil {
		return nil, err
	}
	hits = hits[:min(len(hits), p.limit)]
	if err := p.load(tx, hits); err != nil {
		return nil, err
	}
	if err := p.countChunks(tx, view, q, f, hits); err != nil {
		return nil, err
	}
	for i := range hits {
		res.Hits = append(res.Hits, hits[i].result(p, view, q))
	}
	t.stage("load")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.finish(e, candidates, folded, len(hits), res.Diagnostics.Degraded)
	return res, nil
}

// candidatesFrom searches the index for the candidates. One thread of many
// records may fill the window when threads are ranked, and one note of many
// chunks at any time: then the window grows, unless the caller has set it, until
// it holds as many threads or notes as are wanted.
func (p *searchPlan) candidatesFrom(view index.View, q index.Query, f index.Filter) (index.Result, error) {
	o := index.Options{Limit: p.candidates, NeighbourWeight: p.req.NeighbourWeight,
		ThreadWeight: p.req.ThreadWeight, ByThread: p.req.GroupBy == GroupThread}
	for {
		found, err := view.Search(q, f, o)
		if err != nil || o.Limit >= MaxPage || p.req.CandidateLimit != nil || folded(found.Hits) >= p.limit ||
			!o.ByThread && len(found.Hits) < o.Limit {
			return found, err
		}
		o.Limit = min(o.Limit*windowGrowth, MaxPage)
	}
}

// windowGrowth is how much wider the next try is.
const windowGrowth = 10

// searchBroke takes the index out of use after a search of it failed, which means
// damaged files, and has it rebuilt.
func (e *engine) searchBroke() {
	if h := e.index.Load(); h != nil {
		e.indexBroke(h)
	}
}

// indexFilter is the filter in the dictionary's numbers; false when it covers
// nothing.
func (p *searchPlan) indexFilter(tx *store.ReadTx) (f index.Filter, any bool, err error) {
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
	if len(f.Scopes) == 0 {
		return f, false, nil
	}
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

// fusedHit is a candidate after fusion.
type fusedHit struct {
	index.Hit
	rank        int // in the text path, from 1
	score       float64
	recencyAdd  float64
	strengthAdd float64
	graphAdd    float64
	record      store.Stored
	fused       float64

	folder     bool    // found by its folder only
	chunks     []int64 // the note's chunks among the candidates, best first
	noteChunks int64
	top        []ChunkRef
}

// fuse makes one score of the paths' scores.
func (p *searchPlan) fuse(text []index.Hit) []fusedHit {
	path := rank.Path{Weight: p.textWeight, Scores: make([]float64, len(text))}
	for i, h := range text {
		path.Scores[i] = h.Score
	}
	fused := p.scale(path)
	hits := make([]fusedHit, len(text))
	for i, h := range text {
		hits[i] = fusedHit{Hit: h, rank: i + 1, score: fused[i], fused: fused[i]}
	}
	return hits
}

// scale makes a path's scores ones that can be summed with another path's.
func (p *searchPlan) scale(path rank.Path) []float64 {
	if p.fusion == FusionScore {
		return rank.Scaled(path)
	}
	return rank.RRF(path)
}

// sortFused sorts hits by score, ties by ascending id.
func sortFused(hits []fusedHit) {
	slices.SortFunc(hits, func(a, b fusedHit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ID, b.ID))
	})
}

// recencyHalfLife is the age at which a record has half the recency of a new
// one, in microseconds.
const recencyHalfLife = 30 * 24 * 3600 * 1e6

// weigh adds shares of the best score for new records and for strong memories,
// and sorts anew.
func (e *engine) weigh(tx *store.ReadTx, p *searchPlan, hits []fusedHit) ([]fusedHit, error) {
	if len(hits) == 0 || p.req.RecencyWeight == 0 && p.req.StrengthWeight == 0 {
		return hits, nil
	}
	if err := p.load(tx, hits); err != nil {
		return nil, err
	}
	best, now := hits[0].score, e.clock().UnixMicro()
	for i := range hits {
		h := &hits[i]
		if h.record == nil {
			continue
		}
		h.recencyAdd = p.req.RecencyWeight * best * rank.Recency(float64(now-h.record.Head().Created)/recencyHalfLife)
		h.strengthAdd = p.req.StrengthWeight * best * rank.Saturation(strengthOf(h.record))
		h.score += h.recencyAdd + h.strengthAdd
	}
	sortFused(hits)
	return hits, nil
}

// load reads the records of hits that have none yet.
func (p *searchPlan) load(tx *store.ReadTx, hits []fusedHit) error {
	for i := range hits {
		h := &hits[i]
		if h.record != nil {
			continue
		}
		var err error
		if h.record, err = tx.RecordOf(store.Kind(h.Kind), h.ID); err != nil {
			return err
		}
		if h.record == nil {
			// The index answered at this very snapshot's revision, so this is a
			// broken invariant and not a race.
			return errs.New(errs.Index, "the index names record %d, which is not there: rebuild the indexes", h.ID)
		}
	}
	return nil
}

// result is the hit as the caller gets it.
func (h *fusedHit) result(p *searchPlan, view index.View, q index.Query) SearchHit {
	head := h.record.Head()
	bm25 := h.BM25
	out := SearchHit{Key: fmt.Sprintf("%s:%d", kindOf(head.Kind), h.ID), Score: h.score, Record: recordOf(h.record)}
	if h.rank > 0 {
		out.TextScore = &bm25
	}
	if p.req.GroupBy == GroupThread && head.Thread != "" {
		out.Key = "thread:" + head.Thread
	}
	if h.Kind == kindChunk && p.countsChunks() {
		out.NoteChunks, out.TopChunks = &h.noteChunks, h.top
	}
	if p.req.Explain {
		x := &Explain{TextRank: h.rank, TextScore: h.Hit.Score, Round: roundNames[h.Round], Terms: []ExplainTerm{}, FusedScore: h.fused,
			NeighbourAdd: h.NeighbourAdd, ThreadAdd: h.ThreadAdd, RecencyAdd: h.recencyAdd, StrengthAdd: h.strengthAdd, GraphAdd: h.graphAdd}
		switch {
		case h.rank == 0:
			x.Round = ""
		case h.folder:
			x.Round, q.Field, q.Chars = "folder", index.FieldPath, nil
		case h.Round == index.RoundChar:
			q.Groups = nil
		default:
			q.Chars = nil // they add to nothing but the last round
		}
		for _, term := range view.Explain(q, h.ID, head.NamespaceID, index.Kind(head.Kind)) {
			x.Terms = append(x.Terms, ExplainTerm{Term: term.Term, Score: term.Score})
		}
		out.Explain = x
	}
	return out
}

var roundNames = [...]string{index.RoundAll: "every_term", index.RoundAny: "any_term", index.RoundChar: "any_character"}
