package op

import (
	"context"

	"github.com/loci-memory/loci"
)

func searchOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "search",
			Summary:     "Find the records that answer a query best",
			Description: "A query is plain words, in any language; no sign in it is an operator. Filters act before the limit cuts. A search that has to do with less says so in diagnostics.",
			Positional:  []string{"query"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"DB.Search"},
		}, func(ctx context.Context, db *loci.DB, in loci.SearchRequest) (*loci.SearchResult, error) {
			return db.Search(ctx, in)
		}),
		Define(Spec{
			Name:        "search_with_context",
			Summary:     "Search, and tell what the graph knows about each hit's tags",
			Description: "A hit's context are the entities whose name or alias is one of its tags, in its namespace and scope, with their neighbours.",
			Positional:  []string{"query"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"DB.SearchWithContext"},
		}, func(ctx context.Context, db *loci.DB, in ContextualSearch) (*loci.ContextualResult, error) {
			return db.SearchWithContext(ctx, in.SearchRequest, in.ContextLimit)
		}),
		Define(Spec{
			Name:    "search_preset",
			Summary: "Search memories, the graph and notes by a prepared method, within budgets",
			Description: "Presets: memory, graph, notes, rag (memories and the graph), broad (all three). " +
				"Each part of the answer has a budget of its own and is read from one snapshot.",
			Positional: []string{"query"},
			ReadOnly:   true, Idempotent: true,
			Covers: []string{"DB.SearchPreset"},
		}, func(ctx context.Context, db *loci.DB, in loci.PresetRequest) (*loci.PresetResult, error) {
			return db.SearchPreset(ctx, in)
		}),
	}
}

// ContextualSearch is a search with a bound on each hit's context.
type ContextualSearch struct {
	loci.SearchRequest
	ContextLimit *int `json:"context_limit,omitempty"` // relations of a hit's context, 1..10000, default 10
}
