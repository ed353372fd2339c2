package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/eval"
	"github.com/loci-memory/loci/internal/cli"
)

// What a set's documents are stored as.
const (
	asMemories = "memories"
	asEpisodes = "episodes"
	asFacts    = "facts"
)

// evalStore is a store with a set's documents in it.
type evalStore struct {
	db  *loci.DB
	set *eval.Set
	as  string
	// words says that there is no model.
	words bool
	// agents are the agent memories of the set's scopes, where documents are points.
	agents map[string]*agent.AgentMemory
}

const loadBatch = 1000

// load stores the set's documents. tagged is for memories that a graph is to reach.
func (s *evalStore) load(ctx context.Context, a *cli.App, tagged bool) error {
	p := a.Progress("Loading " + s.set.Task)
	defer p.Close()
	done, total := int64(0), int64(len(s.set.Docs))
	each := func(docs []int, store func([]int) error) error {
		for part := range slices.Chunk(docs, loadBatch) {
			if err := store(part); err != nil {
				return err
			}
			done += int64(len(part))
			p.Update(done, total)
		}
		return nil
	}
	if s.as == asMemories {
		all := make([]int, len(s.set.Docs))
		for i := range all {
			all[i] = i
		}
		return each(all, func(docs []int) error { return s.loadMemories(ctx, docs, tagged) })
	}
	scopes, byScope := []string{}, map[string][]int{}
	for i, d := range s.set.Docs {
		if byScope[d.Scope] == nil {
			scopes = append(scopes, d.Scope)
		}
		byScope[d.Scope] = append(byScope[d.Scope], i)
	}
	s.agents = map[string]*agent.AgentMemory{}
	for _, scope := range scopes {
		memory, err := s.open(ctx, scope)
		if err != nil {
			return err
		}
		s.agents[scope] = memory
		if err := each(byScope[scope], func(docs []int) error { return s.loadPoints(ctx, memory, docs) }); err != nil {
			return err
		}
	}
	return nil
}

// open opens the agent memory of a scope, with the vectors of the model.
func (s *evalStore) open(ctx context.Context, scope string) (*agent.AgentMemory, error) {
	cfg := agent.Config{Scope: scope}
	if s.words {
		cfg.Dimension = len(wordsVector())
	}
	return agent.Open(ctx, s.db, cfg)
}

// wordsVector is the vector of a fact where no model makes any: it must have one, and
// nobody asks for it.
func wordsVector() []float32 { return []float32{1} }

// loadMemories stores documents, by their places in the set, as memories that know
// their document's id.
func (s *evalStore) loadMemories(ctx context.Context, docs []int, tagged bool) error {
	batch := make([]loci.MemoryInput, len(docs))
	for i, n := range docs {
		d, in := &s.set.Docs[n], &batch[i]
		in.Judgment = d.Content()
		if d.Scope != "" {
			in.Scope = &d.Scope
		}
		if d.Thread != "" {
			in.Thread, in.Position = &d.Thread, &d.Position
		}
		if tagged && d.Title != "" {
			in.Tags = entityNames(d.Title)
		}
		id, err := json.Marshal(map[string]string{"doc": d.ID})
		if err != nil {
			return err
		}
		in.Metadata = id
	}
	_, err := s.db.Memories().UpsertMany(ctx, batch)
	return err
}

// loadPoints stores documents, by their places in the set, as points whose ids are
// these places. A model makes their vectors later, all at once.
func (s *evalStore) loadPoints(ctx context.Context, memory *agent.AgentMemory, docs []int) error {
	point := func(n int) agent.PointInput {
		d, in := &s.set.Docs[n], agent.PointInput{ID: loci.PointID(n)}
		if d.Thread != "" {
			in.Thread, in.Position = &d.Thread, &d.Position
		}
		return in
	}
	if s.as == asEpisodes {
		batch := agent.EpisodeBatch{Episodes: make([]agent.EpisodeInput, len(docs))}
		for i, n := range docs {
			batch.Episodes[i] = agent.EpisodeInput{PointInput: point(n), Description: s.set.Docs[n].Content()}
		}
		_, err := memory.Episodic().RecordBatch(ctx, batch)
		return err
	}
	facts := make([]agent.FactInput, len(docs))
	for i, n := range docs {
		facts[i] = agent.FactInput{PointInput: point(n), Content: s.set.Docs[n].Content()}
		if s.words {
			facts[i].Embedding = wordsVector()
		}
	}
	return memory.Semantic().StoreBatch(ctx, facts)
}

// entityNames are a title and, without what stands in brackets at its end, its
// plain name.
func entityNames(title string) []string {
	names := []string{title}
	if i := strings.LastIndex(title, "("); i > 0 && strings.HasSuffix(title, ")") {
		if plain := strings.TrimSpace(title[:i]); plain != "" {
			names = append(names, plain)
		}
	}
	return names
}

// search answers a set's queries by one path or both.
func (s *evalStore) search(path string, w weights) eval.SearchFunc {
	if path == pathCall {
		return s.call
	}
	kind := map[string]loci.Kind{asMemories: loci.KindMemory, asEpisodes: loci.KindEpisode, asFacts: loci.KindFact}[s.as]
	return func(ctx context.Context, q eval.Query, k int) ([]eval.Scored, error) {
		req := loci.SearchRequest{Query: q.Text, Limit: &k, Kinds: []loci.Kind{kind}, NoVector: path == pathText, NoText: path == pathVector,
			NeighbourWeight: w.neighbour, ThreadWeight: w.thread, GraphWeight: w.graph, Fusion: w.fusion}
		if w.vector > 0 {
			req.VectorWeight = &w.vector
		}
		if q.Scope != "" {
			req.Filter.Scopes = []string{q.Scope}
		}
		if s.set.Unit == eval.UnitThread {
			req.GroupBy = loci.GroupThread
		}
		res, err := s.db.Search(ctx, req)
		if err != nil {
			return nil, err
		}
		if err := whole(res.Diagnostics.Degraded); err != nil {
			return nil, err
		}
		found := make([]eval.Scored, len(res.Hits))
		for i, h := range res.Hits {
			id, err := s.found(h.Record)
			if err != nil {
				return nil, err
			}
			found[i] = eval.Scored{ID: id, Score: h.Score}
		}
		return found, nil
	}
}

// whole refuses to measure a search that had to do with less than it was asked for.
func whole(degraded []loci.Degrade) error {
	if len(degraded) > 0 {
		return fmt.Errorf("a search was degraded: %v", degraded)
	}
	return nil
}

// call answers a query by the agent memory's own call by text, which is asked in one
// scope, has no weights and groups nothing.
func (s *evalStore) call(ctx context.Context, q eval.Query, k int) (found []eval.Scored, err error) {
	memory := s.agents[q.Scope]
	switch {
	case memory == nil && q.Scope == "":
		return nil, fmt.Errorf("it has no scope, and an agent memory is asked in one: leave the path %q out", pathCall)
	case memory == nil:
		return nil, nil
	}
	var degraded []loci.Degrade
	if s.as == asEpisodes {
		hits, err := memory.Episodic().RecallSimilar(ctx, agent.RecallRequest{Text: q.Text, K: &k})
		if err != nil {
			return nil, err
		}
		degraded = hits.Degraded
		for _, h := range hits.Hits {
			found = append(found, eval.Scored{ID: s.document(h.Episode.ID), Score: h.Score})
		}
	} else {
		hits, err := memory.Semantic().QueryText(ctx, agent.TextRequest{Text: q.Text, K: &k})
		if err != nil {
			return nil, err
		}
		degraded = hits.Degraded
		for _, h := range hits.Hits {
			found = append(found, eval.Scored{ID: s.document(h.ID), Score: h.Score})
		}
	}
	if s.words {
		// Without a model it has only words to go by, and says so.
		degraded = slices.DeleteFunc(degraded, func(d loci.Degrade) bool { return d == loci.DegradeNoEmbedder || d == loci.DegradeNoSpace })
	}
	return found, whole(degraded)
}

// document is the id of a point's document.
func (s *evalStore) document(id loci.PointID) string { return s.set.Docs[id].ID }

// found is what a hit's record stands for: its document, or its thread where these
// are ranked.
func (s *evalStore) found(record any) (string, error) {
	var thread string
	var id loci.PointID
	switch r := record.(type) {
	case *loci.Memory:
		if s.set.Unit == eval.UnitThread {
			return r.Thread, nil
		}
		var meta struct{ Doc string }
		err := json.Unmarshal(r.Metadata, &meta)
		return meta.Doc, err
	case *loci.Episode:
		thread, id = r.Thread, r.ID
	case *loci.Fact:
		thread, id = r.Thread, r.ID
	default:
		return "", fmt.Errorf("a search for %s found a %T", s.as, record)
	}
	if s.set.Unit == eval.UnitThread {
		return thread, nil
	}
	return s.document(id), nil
}

// checkAs checks what documents are to be stored as.
func (o *evalOptions) checkAs() error {
	switch o.as = cmp.Or(o.as, asMemories); o.as {
	case asMemories:
		return nil
	case asEpisodes, asFacts:
		if o.graphWeight > 0 {
			return invalid("as", "must be memories where a graph is walked: it leads to no others")
		}
		return nil
	}
	return invalid("as", "must be memories, episodes or facts")
}
