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
	view       index.View
	req        *PresetRequest
	filter     *readFilter
	budget     budget
	candidates int
	trace      *trace
	out        *PresetResult
}

// SearchPreset searches by a prepared method: memories by their text; the graph
// from the entities that the query finds, their relations that meet it, and what
// lies around them; notes by file name, by text and by folder. Each path has a
// budget of its own. All of it is read from one snapshot.
func (db *DB) SearchPreset(ctx context.Context, req PresetRequest) (*PresetResult, error) {
	const op = "search_preset"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	s := &presetSearch{e: e, ctx: ctx, req: &req, trace: e.sinks.trace().enclose()}
	if err := s.check(); err != nil {
		return nil, errs.WithOp(op, err)
	}
	err := e.readPair(ctx, func(tx *store.ReadTx, view index.View) error {
		s.tx, s.view = tx, view
		return s.run()
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	e.degraded.note(s.out.Diagnostics.Degraded)
	hits := len(s.out.Memories) + len(s.out.Graph.Entities) + len(s.out.Notes.Titles) + len(s.out.Notes.Contents) + len(s.out.Notes.Paths)
	s.trace.finishEnclosing(e, hits, s.out.Diagnostics.Degraded)
	return s.out, nil
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
	if s.filter, err = s.req.Filter.check("filter."); err != nil {
		return err
	}
	// The inner searches differ in kinds and fields only, so this one stands for
	// all when it comes to the query.
	_, err = (&SearchRequest{Query: s.req.Query, Filter: s.req.Filter, NoText: s.req.NoText}).plan()
	return err
}

func (s *presetSearch) run() error {
	s.out = &PresetResult{
		Preset:   s.req.Preset,
		Memories: []SearchHit{},
		Graph:    GraphSection{Entities: []Entity{}, Relations: []Relation{}, ContextRelations: []Relation{}, ContextEvents: []Event{}},
		Notes:    NoteSection{Titles: []SearchHit{}, Contents: []SearchHit{}, Paths: []SearchHit{}},
		Revision: s.tx.Revision(), Diagnostics: SearchDiagnostics{Degraded: []Degrade{}},
	}
	if s.view != nil {
		s.out.IndexedRevision = s.view.Revision()
	}
	if s.req.Preset.UsesMemory() {
		if err := s.memories(); err != nil {
			return err
		}
	}
	if s.req.Preset.UsesGraph() {
		if err := s.graph(); err != nil {
			return err
		}
	}
	if s.req.Preset.UsesNotes() {
		return s.notes()
	}
	return nil
}

// search runs one of the inner searches, for at most limit hits.
func (s *presetSearch) search(kind Kind, field MatchField, limit int) ([]SearchHit, error) {
	limit = min(limit, s.candidates)
	req := &SearchRequest{Query: s.req.Query, Filter: s.req.Filter, Kinds: []Kind{kind}, MatchField: field,
		Limit: &limit, CandidateLimit: &s.candidates}
	plan, err := req.plan()
	if err != nil {
		return nil, err
	}
	res, err := s.e.search(s.ctx, s.tx, s.view, plan, analyzeQuery(req.Query, field), s.trace)
	if err != nil {
		return nil, err
	}
	d := &s.out.Diagnostics
	d.TextUsed = d.TextUsed || res.Diagnostics.TextUsed
	for _, code := range res.Diagnostics.Degraded {
		if !slices.Contains(d.Degraded, code) {
			d.Degraded = append(d.Degraded, code)
		}
	}
	return res.Hits, nil
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

func (s *presetSearch) memories() error {
	if s.budget.memoryChars == 0 {
		return nil
	}
	hits, err := s.search(KindMemory, MatchAll, s.candidates)
	if err != nil {
		return err
	}
	s.out.Memories = within(hits, s.budget.memoryChars, func(h SearchHit) int {
		return utf8.RuneCountInString(h.Record.(*Memory).Judgment)
	})
	return nil
}

func (s *presetSearch) notes() error {
	out, b := &s.out.Notes, &s.budget
	shown := map[string]bool{}
	// fresh drops hits that stand in an earlier list.
	fresh := func(hits []SearchHit) []SearchHit {
		hits = slices.DeleteFunc(hits, func(h SearchHit) bool { return shown[h.Key] })
		for _, h := range hits {
			shown[h.Key] = true
		}
		return hits
	}
	if b.noteTitles > 0 {
		hits, err := s.search(KindChunk, MatchName, b.noteTitles)
		if err != nil {
			return err
		}
		out.Titles = fresh(hits)
	}
	if b.notesChars > 0 {
		hits, err := s.search(KindChunk, MatchText, s.candidates)
		if err != nil {
			return err
		}
		hits = slices.DeleteFunc(hits, func(h SearchHit) bool { return shown[h.Key] })
		out.Contents = fresh(within(hits, b.notesChars, func(h SearchHit) int {
			return utf8.RuneCountInString(h.Record.(*Chunk).Content)
		}))
	}
	if missing := b.noteTitles - len(out.Titles); missing > 0 {
		hits, err := s.search(KindChunk, MatchPath, s.candidates)
		if err != nil {
			return err
		}
		hits = fresh(hits)
		out.Paths = hits[:min(len(hits), missing)]
	}
	return nil
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
	plan, err := req.plan()
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	q := analyzeQuery(req.Query, req.MatchField)
	t.stage("prepare")
	var out *ContextualResult
	err = e.readPair(ctx, func(tx *store.ReadTx, view index.View) error {
		res, err := e.search(ctx, tx, view, plan, q, t)
		if err != nil {
			return err
		}
		out = &ContextualResult{Hits: make([]ContextualHit, len(res.Hits)), Revision: res.Revision, IndexedRevision: res.IndexedRevision,
			Total: res.Total, Diagnostics: res.Diagnostics}
		for i, hit := range res.Hits {
			out.Hits[i].SearchHit = hit
			if out.Hits[i].Context, err = tagContext(tx, plan.filter, headerOfRecord(hit.Record), most); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	e.degraded.note(out.Diagnostics.Degraded)
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
