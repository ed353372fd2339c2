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
	}
}
