package loci

import (
	"context"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

const (
	defaultPresetCandidates = 64
	maxBudgetChars          = 1 << 24
)

// budget is a PresetBudget with its defaults filled in.
type budget struct {
	memoryChars, notesChars, seeds, relationChars, contextChars, noteTitles int
}

func (b *PresetBudget) check() (out budget, err error) {
	for _, f := range []struct {
		name         string
		value        *int
		otherwise    int
		least, limit int
		to           *int
	}{
		{"memory_chars", b.MemoryChars, 2000, 0, maxBudgetChars, &out.memoryChars},
		{"notes_chars", b.NotesChars, 3000, 0, maxBudgetChars, &out.notesChars},
		{"seed_entities", b.SeedEntities, 4, 1, MaxPage, &out.seeds},
		{"graph_relations_chars", b.GraphRelationsChars, 1000, 0, maxBudgetChars, &out.relationChars},
		{"graph_context_chars", b.GraphContextChars, 2000, 0, maxBudgetChars, &out.contextChars},
		{"note_titles", b.NoteTitles, 5, 0, MaxPage, &out.noteTitles},
	} {
		*f.to = valueOr(f.value, f.otherwise)
		if *f.to < f.least || *f.to > f.limit {
			return out, errs.Invalid("budget."+f.name, "must be from %d to %d, not %d", f.least, f.limit, *f.to)
		}
	}
	return out, nil
}

// presetSearch is one preset search on its way.
type presetSearch struct {
	e          *engine
	ctx        context.Context
	tx         *store.ReadTx
	req        *PresetRequest
	filter     *readFilter
	budget     budget
	candidates int
	trace      *trace
	out        *PresetResult

	// The inner searches; nil for those that do not run.
	memories, seeds, titles, contents, paths *innerSearch
}

// innerSearch is one of the searches that a preset is made of.
type innerSearch struct {
	plan    *searchPlan
	query   index.Query
	vectors *vectorPath
	found   *searched // until it is settled
	hits    []SearchHit
}

// asksModel says whether settling the search asks a reranker.
func (in *innerSearch) asksModel() bool {
	return in != nil && in.found != nil && in.found.draft != nil && len(in.found.draft.documents) > 0
}

// SearchPreset searches by a prepared method: memories by what they say; the graph
// from the entities that the query finds, their relations that meet it, and what
// lies around them; notes by file name, by what they say and by folder. Each path
// has a budget of its own. All of it is read from one snapshot; but where a
// reranker chooses the entities, what lies around them is read after it answered.
func (db *DB) SearchPreset(ctx context.Context, req PresetRequest) (*PresetResult, error) {
	const op = "search_preset"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	s := &presetSearch{e: e, ctx: ctx, req: &req, trace: e.sinks.trace().enclose()}
	if err := s.run(); err != nil {
		return nil, errs.WithOp(op, err)
	}
	e.degraded.note(s.out.Diagnostics.Degraded)
	hits := len(s.out.Memories) + len(s.out.Graph.Entities) + len(s.out.Notes.Titles) + len(s.out.Notes.Contents) + len(s.out.Notes.Paths)
	s.trace.finishEnclosing(e, hits, s.out.Diagnostics.Degraded)
	return s.out, nil
}

func (s *presetSearch) run() error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.e.readPair(s.ctx, s.search); err != nil {
		return err
	}
	// What is left asks a reranker, and so holds no snapshot.
	late := s.seeds.asksModel()
	for _, in := range s.inner() {
		if err := s.settle(in); err != nil {
			return err
		}
	}
	if late {
		if err := s.e.read(s.ctx, s.graph); err != nil {
			return err
		}
	}
	s.assemble()
	return nil
}

func (s *presetSearch) check() (err error) {
	if s.req.Preset == "" {
		s.req.Preset = PresetRAG
	}
	if _, err := ParseSearchPreset(string(s.req.Preset)); err != nil {
		return err
	}
	if s.budget, err = s.req.Budget.check(); err != nil {
		return err
	}
	if s.candidates, err = checkLimit("candidate_limit", s.req.CandidateLimit, defaultPresetCandidates); err != nil {
		return err
	}
	if s.filter, err = s.req.Filter.check(s.ctx, "filter."); err != nil {
		return err
	}
	// The inner searches differ in kinds and fields only, so this one stands for
	// all when it comes to the query.
	_, err = (&SearchRequest{Query: s.req.Query, Filter: s.req.Filter, NoText: s.req.NoText, NoVector: s.req.NoVector}).plan(s.ctx)
	return err
}

// prepare plans the inner searches and has the query embedded for them.
func (s *presetSearch) prepare() error {
	b, uses := &s.budget, s.req.Preset
	names := uses.UsesNotes() && b.noteTitles > 0
	for _, x := range []struct {
		to    **innerSearch
		runs  bool
		kind  Kind
		field MatchField
		limit int
	}{
		{&s.memories, uses.UsesMemory() && b.memoryChars > 0, KindMemory, MatchAll, s.candidates},
		{&s.seeds, uses.UsesGraph(), KindEntity, MatchAll, b.seeds},
		{&s.titles, names, KindChunk, MatchName, b.noteTitles},
		{&s.contents, uses.UsesNotes() && b.notesChars > 0, KindChunk, MatchText, s.candidates},
		{&s.paths, names, KindChunk, MatchPath, s.candidates},
	} {
		if !x.runs {
			continue
		}
		limit := min(x.limit, s.candidates)
		req := &SearchRequest{Query: s.req.Query, Filter: s.req.Filter, Kinds: []Kind{x.kind}, MatchField: x.field,
			Limit: &limit, CandidateLimit: &s.candidates, EmbedSpace: s.req.EmbedSpace,
			NoText: s.req.NoText, NoVector: s.req.NoVector, NoRerank: s.req.NoRerank}
		if x.field == MatchName || x.field == MatchPath { // names are found by their words alone
			req.NoText, req.NoVector, req.NoRerank = false, true, true
		}
		plan, err := req.plan(s.ctx)
		if err != nil {
			return err
		}
		*x.to = &innerSearch{plan: plan, query: analyzeQuery(req.Query, x.field)}
	}
	inner := s.inner()
	plans := make([]*searchPlan, len(inner))
	for i, in := range inner {
		plans[i] = in.plan
	}
	paths, err := s.e.prepareVectors(s.ctx, s.trace, plans...)
	if err != nil {
		return err
	}
	for i, in := range inner {
		in.vectors = paths[i]
	}
	return nil
}

// inner gives the inner searches that run.
func (s *presetSearch) inner() []*innerSearch {
	all := []*innerSearch{s.memories, s.seeds, s.titles, s.contents, s.paths}
	return slices.DeleteFunc(all, func(in *innerSearch) bool { return in == nil })
}

// search runs the inner searches on one snapshot, and settles those that ask no
// reranker.
func (s *presetSearch) search(tx *store.ReadTx, view index.View) error {
	s.out = &PresetResult{
		Preset:   s.req.Preset,
		Memories: []SearchHit{},
		Graph:    GraphSection{Entities: []Entity{}, Relations: []Relation{}, ContextRelations: []Relation{}, ContextEvents: []Event{}},
		Notes:    NoteSection{Titles: []SearchHit{}, Contents: []SearchHit{}, Paths: []SearchHit{}},
		Revision: tx.Revision(), Diagnostics: SearchDiagnostics{VectorMissing: []VectorMissing{}, Degraded: []Degrade{}},
	}
	if view != nil {
		s.out.IndexedRevision = view.Revision()
	}
	for _, in := range s.inner() {
		if in == s.paths && len(s.titles.hits) >= s.budget.noteTitles {
			continue
		}
		var err error
		if in.found, err = s.e.search(s.ctx, tx, view, in.plan, in.query, in.vectors, s.trace); err != nil {
			return err
		}
		if in.asksModel() {
			continue
		}
		if err := s.settle(in); err != nil {
			return err
		}
	}
	if s.seeds.asksModel() {
		return nil
	}
	return s.graph(tx)
}

// settle brings a search to its end, once, and takes in what it says of itself.
func (s *presetSearch) settle(in *innerSearch) error {
	if in.found == nil {
		return nil
	}
	found := in.found
	in.found = nil
	if _, err := s.e.settle(s.ctx, in.plan, found, s.trace); err != nil {
		return err
	}
	in.hits = found.res.Hits
	s.out.Diagnostics.unite(&found.res.Diagnostics)
	return nil
}

// unite takes in what another search of the same request says.
func (d *SearchDiagnostics) unite(o *SearchDiagnostics) {
	if o.VectorUsed {
		d.Exact = o.Exact && (d.Exact || !d.VectorUsed)
	}
	d.TextUsed = d.TextUsed || o.TextUsed
	d.VectorUsed = d.VectorUsed || o.VectorUsed
	d.Reranked = d.Reranked || o.Reranked
	d.RerankCandidates += o.RerankCandidates
	d.RerankTruncated += o.RerankTruncated
	for _, m := range o.VectorMissing {
		if !slices.Contains(d.VectorMissing, m) {
			d.VectorMissing = append(d.VectorMissing, m)
		}
	}
	for _, code := range o.Degraded {
		if !slices.Contains(d.Degraded, code) {
			d.Degraded = append(d.Degraded, code)
		}
	}
}

// within keeps what fits into a budget of characters: the first item however
// long it is, then each until one does not fit.
func within[T any](items []T, chars int, length func(T) int) []T {
	if chars == 0 {
		return items[:0]
	}
	used := 0
	for i, item := range items {
		if used += length(item); used > chars && i > 0 {
			return items[:i]
		}
	}
	return items
}

// assemble puts the hits of the inner searches into their places, within the
// budgets.
func (s *presetSearch) assemble() {
	if s.memories != nil {
		s.out.Memories = within(s.memories.hits, s.budget.memoryChars, func(h SearchHit) int {
			return utf8.RuneCountInString(h.Record.(*Memory).Judgment)
		})
	}
	out, b := &s.out.Notes, &s.budget
	shown := map[string]bool{}
	// fresh drops hits that stand in an earlier list.
	fresh := func(hits []SearchHit) []SearchHit {
		return slices.DeleteFunc(hits, func(h SearchHit) bool { return shown[h.Key] })
	}
	show := func(hits []SearchHit) []SearchHit {
		for _, h := range hits {
			shown[h.Key] = true
		}
		return hits
	}
	if s.titles != nil {
		out.Titles = show(s.titles.hits)
	}
	if s.contents != nil {
		out.Contents = show(within(fresh(s.contents.hits), b.notesChars, func(h SearchHit) int {
			return utf8.RuneCountInString(h.Record.(*Chunk).Content)
		}))
	}
	if s.paths != nil {
		hits := fresh(s.paths.hits)
		out.Paths = append(out.Paths, hits[:min(len(hits), b.noteTitles-len(out.Titles))]...)
	}
}

// SearchWithContext searches and tells, for each hit, what the graph knows about
// its tags: the entities whose name or alias is one of them, in the hit's
// namespace and scope, and their neighbours, by at most limit relations a hit
// (1..10000, default 10).
func (db *DB) SearchWithContext(ctx context.Context, req SearchRequest, limit *int) (*ContextualResult, error) {
	const op = "search_with_context"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	most, err := checkLimit("context_limit", limit, defaultLimit)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	t := e.sinks.trace()
	plan, err := req.plan(ctx)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	q := analyzeQuery(req.Query, req.MatchField)
	vectors, err := e.prepareVectors(ctx, t, plan)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	var found *searched
	err = e.readPair(ctx, func(tx *store.ReadTx, view index.View) (err error) {
		if found, err = e.search(ctx, tx, view, plan, q, vectors[0], t); err != nil {
			return err
		}
		// A reranker may still turn the hits round, so all have a context.
		for i := range found.hits {
			h := &found.hits[i]
			if h.context, err = tagContext(tx, plan.filter, headerOfRecord(h.Record), most); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	hits, err := e.settle(ctx, plan, found, t)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	res := found.res
	out := &ContextualResult{Hits: make([]ContextualHit, len(hits)), Revision: res.Revision, IndexedRevision: res.IndexedRevision,
		Total: res.Total, Diagnostics: res.Diagnostics}
	for i := range hits {
		out.Hits[i] = ContextualHit{SearchHit: hits[i].SearchHit, Context: hits[i].context}
	}
	e.degraded.note(res.Diagnostics.Degraded)
	return out, nil
}

// tagContext unites the neighbourhoods of the entities that a record's tags
// name.
func tagContext(tx *store.ReadTx, filter *readFilter, h *Header, limit int) (Neighborhood, error) {
	out := Neighborhood{Entities: []Entity{}, Relations: []Relation{}}
	if h == nil {
		return out, nil
	}
	// The tags of the search narrow its hits, not what is known about them.
	here := &readFilter{Filter: store.Filter{Namespace: filter.Namespace, Scopes: []string{h.Scope}, Kind: store.KindEntity}}
	entities, relations := map[ID]bool{}, map[ID]bool{}
	add := func(n *Neighborhood) {
		for _, r := range n.Relations {
			if len(out.Relations) < limit && !relations[r.ID] {
				relations[r.ID] = true
				out.Relations = append(out.Relations, r)
			}
		}
		for _, x := range n.Entities {
			if !entities[x.ID] {
				entities[x.ID] = true
				out.Entities = append(out.Entities, x)
			}
		}
	}
	for _, tag := range h.Tags {
		found, err := candidates(tx, here, tag)
		if err != nil {
			return out, err
		}
		for _, c := range found {
			around, err := neighborhood(tx, c.entity.ID, here, limit-len(out.Relations))
			if err != nil {
				return out, err
			}
			around.Entities = append(around.Entities, entityOf(c.entity))
			add(around)
		}
	}
	slices.SortFunc(out.Entities, func(a, b Entity) int { return int(a.ID - b.ID) })
	slices.SortFunc(out.Relations, func(a, b Relation) int { return int(a.ID - b.ID) })
	return out, nil
}

// headerOfRecord is a found record's header.
func headerOfRecord(record any) *Header {
	switch r := record.(type) {
	case *Memory:
		return &r.Header
	case *Entity:
		return &r.Header
	case *Relation:
		return &r.Header
	case *Event:
		return &r.Header
	case *Chunk:
		return &r.Header
	default:
		return nil
	}
}
