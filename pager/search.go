package pager

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

const (
	defaultSearchLimit = 5
	maxSearchLimit     = 50
)

// SearchRequest asks for the pages that answer a query best.
type SearchRequest struct {
	Query string `json:"query"`           // at most 1 MiB, not blank
	Limit *int   `json:"limit,omitempty"` // results with those reached by links, 1..50, default 5
	// ExpandLinks lets pages that a hit links to be results, at half its score.
	// Default true.
	ExpandLinks *bool `json:"expand_links,omitempty"`
	// Kinds are what to look for: page, the default, and of the knowledge base
	// memory, entity, relation, event and chunk.
	Kinds []loci.Kind `json:"kinds,omitempty"`
	// Scopes are those of the records of the knowledge base. Default: public.
	Scopes []string `json:"scopes,omitempty"`
}

// Found is a result of a search.
type Found struct {
	Reference
	Score float64 `json:"score"`
	Via   string  `json:"via,omitempty"` // page id of the hit that links to it, for one that the query did not find as well itself
}

// SearchResult is the answer to a search.
type SearchResult struct {
	Results []Found `json:"results"` // best first
	// Degraded says with what the search had to do without.
	Degraded []loci.Degrade `json:"degraded"`
}

// Search finds pages of the scope, in every tier, by their current revisions, and
// records of the knowledge base when asked. A record is named "kind:id", as
// page_in takes it; one that has a copy in the scope is found as that.
func (cs *Store) Search(ctx context.Context, req SearchRequest) (*SearchResult, error) {
	const op = "search"
	q, err := cs.question(&req)
	if err != nil {
		return nil, withOp(op, err)
	}
	hits, degraded, err := cs.ask(ctx, q)
	if err != nil {
		return nil, withOp(op, err)
	}
	out := &SearchResult{Results: []Found{}, Degraded: degraded}
	err = cs.with(ctx, op, func(s *scope) error {
		ranked, err := s.rank(ctx, q, hits)
		if err != nil {
			return err
		}
		var uses []int64
		for i := range ranked {
			f := &ranked[i]
			if f.page == nil {
				out.Results = append(out.Results, f.found(recordReference(f.text)))
				continue
			}
			uses = append(uses, f.page.ID)
			out.Results = append(out.Results, f.found(s.current(f.page.Page)))
		}
		if err := s.completeFound(ctx, out.Results); err != nil {
			return err
		}
		return s.countUses(ctx, uses...)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// question is a search that was checked.
type question struct {
	query  string
	limit  int
	expand bool
	kinds  []loci.Kind
	pages  bool     // among the kinds
	scopes []string // of records
}

func (cs *Store) question(req *SearchRequest) (*question, error) {
	q := &question{query: req.Query, expand: req.ExpandLinks == nil || *req.ExpandLinks}
	if err := validText("query", req.Query, loci.MaxQueryBytes); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.Query) == "" {
		return nil, invalid("query", "must not be blank")
	}
	var err error
	if q.limit, err = validLimit("limit", req.Limit, defaultSearchLimit, 1, maxSearchLimit); err != nil {
		return nil, err
	}
	wanted := req.Kinds
	if len(wanted) == 0 {
		wanted = []loci.Kind{loci.KindPage}
	}
	for _, kind := range wanted {
		if _, ok := kinds[kind]; !ok && kind != loci.KindPage {
			return nil, invalid("kinds", "must be among page, memory, entity, relation, event and chunk")
		}
		if !slices.Contains(q.kinds, kind) {
			q.kinds = append(q.kinds, kind)
		}
	}
	q.pages = slices.Contains(q.kinds, loci.KindPage)
	q.scopes, err = cs.recordScopes(req.Scopes)
	return q, err
}

// records says whether the question is for anything but pages.
func (q *question) records() bool { return !q.pages || len(q.kinds) > 1 }

// hit is what the knowledge base's search found: a page or another record.
type hit struct {
	kind  store.Kind // 0 for a page
	id    int64      // of the record
	score float64
}

// maxAsked bounds how many hits a search asks for before it makes do with fewer.
const maxAsked = 1000

// ask searches the knowledge base, best first. It must be called without the
// scope's turn: an embedder may be asked. Hits that the question does not cover
// are left out.
func (cs *Store) ask(ctx context.Context, q *question) (hits []hit, degraded []loci.Degrade, err error) {
	req := loci.SearchRequest{Query: q.query, Kinds: q.kinds, Filter: loci.ReadFilter{Namespace: &cs.key.namespace}}
	if q.records() {
		req.Filter.Scopes = slices.Clone(q.scopes)
	}
	if q.pages && !slices.Contains(req.Filter.Scopes, cs.key.scope) {
		req.Filter.Scopes = append(req.Filter.Scopes, cs.key.scope)
	}
	n := q.limit
	if q.records() {
		n *= 2 // a record and its copy make one result
	}
	for {
		req.Limit = &n
		res, err := cs.reg.db.Search(ctx, req)
		if err != nil {
			return nil, nil, err
		}
		useTextScores(res)
		hits = hits[:0]
		for i := range res.Hits {
			if h, ok := q.hit(cs.key, &res.Hits[i]); ok {
				hits = append(hits, h)
			}
		}
		// Records that lie in the context's own scope are searched along with its
		// pages, and may have taken the place of hits.
		if len(hits) == len(res.Hits) || len(res.Hits) < n || n >= maxAsked {
			return hits, append([]loci.Degrade{}, res.Diagnostics.Degraded...), nil
		}
		n = min(4*n, maxAsked)
	}
}

// useTextScores gives the hits of a search by text alone their BM25 scores in the
// place of those that only tell their ranks, of which half would be next to
// nothing less. A hit of a later round never has more than those before it.
func useTextScores(res *loci.SearchResult) {
	if d := &res.Diagnostics; !d.TextUsed || d.VectorUsed || d.Reranked {
		return
	}
	best := 0.0
	for i := len(res.Hits) - 1; i >= 0; i-- {
		if s := res.Hits[i].TextScore; s != nil {
			best = max(best, *s)
		}
		res.Hits[i].Score = best
	}
}

// hit is a search's hit, if the question covers it.
func (q *question) hit(key scopeKey, found *loci.SearchHit) (h hit, ok bool) {
	var head *loci.Header
	var kind loci.Kind
	switch r := found.Record.(type) {
	case *loci.ContextPage:
		return hit{id: int64(r.ID), score: found.Score}, q.pages && r.Namespace == key.namespace && r.Scope == key.scope
	case *loci.Memory:
		head, kind = &r.Header, loci.KindMemory
	case *loci.Entity:
		head, kind = &r.Header, loci.KindEntity
	case *loci.Relation:
		head, kind = &r.Header, loci.KindRelation
	case *loci.Event:
		head, kind = &r.Header, loci.KindEvent
	case *loci.Chunk:
		head, kind = &r.Header, loci.KindChunk
	default:
		return hit{}, false
	}
	return hit{kind: kinds[kind], id: int64(head.ID), score: found.Score},
		slices.Contains(q.kinds, kind) && head.Namespace == key.namespace && slices.Contains(q.scopes, head.Scope)
}

// ranked is a result: a page of the scope, or a record that has no copy in it.
type ranked struct {
	page  *resident
	text  *link.Copy // the record, without a page
	kind  store.Kind // of the record, likewise
	id    int64      // of the record of either
	score float64
	via   *resident // the page that links to it
	stale bool      // the page is a copy whose record has changed
}

// rank looks up what a search found as it is now, adds what it links to and cuts
// to the limit.
func (s *scope) rank(ctx context.Context, q *question, hits []hit) ([]ranked, error) {
	var out []ranked
	err := s.reg.link.Read(ctx, func(tx *store.ReadTx) (err error) {
		out = nil
		pages := s.pageReader(tx)
		if out, err = pages.of(hits); err != nil {
			return err
		}
		out = sortRanked(out, q.limit)
		if q.expand {
			out = sortRanked(withLinks(out), q.limit)
		}
		return pages.fill(out)
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		if f := &out[i]; f.kind != 0 {
			if f.text, err = s.record(ctx, f.kind, f.id, q.scopes); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(out, func(f ranked) bool { return f.page == nil && f.text == nil }), nil
}

// sortRanked sorts results by score, those that the query found itself before
// those reached by links, then as they stand, and cuts them.
func sortRanked(out []ranked, limit int) []ranked {
	slices.SortStableFunc(out, func(a, b ranked) int {
		if d := cmp.Compare(b.score, a.score); d != 0 {
			return d
		}
		switch {
		case a.via == nil && b.via != nil:
			return -1
		case a.via != nil && b.via == nil:
			return 1
		}
		return 0
	})
	return out[:min(len(out), limit)]
}

// withLinks adds the pages that results link to, at half the score. It is enough
// to look at as many results as are wanted: what others link to stands behind
// these.
func withLinks(parents []ranked) []ranked {
	out := slices.Clone(parents)
	at := map[int64]int{} // of pages, in out
	for i := range out {
		if out[i].kind == 0 {
			at[out[i].id] = i
		}
	}
	for _, parent := range parents {
		if parent.kind != 0 {
			continue
		}
		for _, id := range parent.page.Links {
			score := half(parent.score)
			i, there := at[id]
			switch {
			case !there:
				at[id] = len(out)
				out = append(out, ranked{id: id, score: score, via: parent.page})
			case score > out[i].score:
				out[i].score, out[i].via = score, parent.page
			}
		}
	}
	return out
}

// half is half a score, which must not be better than the whole: rerankers may
// give scores below 0, where twice the score takes its part.
func half(score float64) float64 {
	if score < 0 {
		return 2 * score
	}
	return score / 2
}

// pageReader reads pages of a scope by their records, those of the window from
// memory.
type pageReader struct {
	s        *scope
	tx       *store.ReadTx
	resident map[int64]*resident
}

func (s *scope) pageReader(tx *store.ReadTx) *pageReader {
	p := &pageReader{s, tx, map[int64]*resident{}}
	for _, list := range [][]*resident{s.window.core, s.window.working} {
		for _, r := range list {
			p.resident[r.ID] = r
		}
	}
	return p
}

// page gives a page of the scope by its record, or nil.
func (p *pageReader) page(id int64) (*resident, error) {
	if r := p.resident[id]; r != nil || p.s.stored == nil {
		return r, nil
	}
	page, err := p.tx.Page(id)
	if err != nil || page == nil || page.Context != p.s.stored.ID {
		return nil, err
	}
	return newResident(page), nil
}

// copyOf gives the copy of a record in the scope, or nil.
func (p *pageReader) copyOf(kind store.Kind, id int64) (*resident, error) {
	pageID := copyID(kind, id)
	if r := p.s.window.find(pageID); r != nil || p.s.stored == nil {
		return r, nil
	}
	page, err := p.tx.PageByID(p.s.stored.ID, pageID)
	if err != nil || page == nil {
		return nil, err
	}
	return newResident(page), nil
}

// of looks hits up. A record that has a copy in the scope is that page, at the
// better score of the two; pages that are gone are left out.
func (p *pageReader) of(hits []hit) (out []ranked, err error) {
	at := map[int64]int{}
	for _, h := range hits {
		f := ranked{kind: h.kind, id: h.id, score: h.score}
		if h.kind == 0 {
			f.page, err = p.page(h.id)
		} else if f.page, err = p.copyOf(h.kind, h.id); f.page != nil {
			f.kind, f.id = 0, f.page.ID
		}
		if err != nil {
			return nil, err
		}
		if f.kind == 0 && f.page == nil {
			continue
		}
		if i, there := at[f.id]; there { // ids of records are those of one sequence
			out[i].score = max(out[i].score, f.score)
			continue
		}
		at[f.id] = len(out)
		out = append(out, f)
	}
	return out, nil
}

// fill reads the pages that results were reached by and says which are stale
// copies.
func (p *pageReader) fill(out []ranked) (err error) {
	for i := range out {
		f := &out[i]
		if f.kind != 0 {
			continue
		}
		if f.page == nil {
			if f.page, err = p.page(f.id); err != nil {
				return err
			}
		}
		if f.page == nil || f.page.OriginID == 0 {
			continue
		}
		revision, ok, err := p.tx.RecordRevision(f.page.OriginID)
		if err != nil {
			return err
		}
		f.stale = ok && revision != f.page.Version
	}
	return nil
}

// found is the result as the caller gets it.
func (f *ranked) found(ref Reference) Found {
	out := Found{Reference: ref, Score: f.score}
	if f.via != nil {
		out.Via = f.via.PageID
	}
	return out
}

// recordReference is what is known of a record that has no copy in the scope, as
// of the archived page that it would be.
func recordReference(of *link.Copy) Reference {
	rev := copyRevision(of)
	return Reference{
		PageID: copyID(of.Kind, of.ID), Version: rev.Version, Tier: Archive, Mode: "full", Title: rev.Title,
		Tags: append([]string{}, rev.Tags...), Bytes: len(rev.Content), Importance: rev.Importance, Source: rev.Source,
		Origin:      &Origin{Kind: kindName(of.Kind), ID: loci.ID(of.ID), Revision: of.Revision},
		CreatedAtUS: of.Created, UpdatedAtUS: of.Updated,
	}
}

// completeFound is completeAll for results.
func (s *scope) completeFound(ctx context.Context, found []Found) error {
	refs := make([]*Reference, len(found))
	for i := range found {
		refs[i] = &found[i].Reference
	}
	return s.complete(ctx, refs...)
}
