package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// whatVectors says what every operation does that takes a point's vector.
const whatVectors = " The embedding may be left out where an embedder is bound to the memory's space. The memory is made if it is not there."

// factOps are the operations that only facts have.
func factOps() []*Operation {
	facts := (*agent.AgentMemory).Semantic
	return []*Operation{
		Define(Spec{
			Name:    "facts.store",
			Summary: "Store a fact under an id of your own",
			Description: "What is there under the id is replaced, but for its relations, and kept in its history: text, vector, metadata, tags, expiry and validity become what the input says. " +
				"With ttl_seconds 0 all is checked, and what is there is removed." + whatVectors,
			Positional: []string{"content"},
			Texts:      []string{"content!"},
			Covers:     []string{"SemanticMemory.Put", "SemanticMemory.Store", "SemanticMemory.StoreWithMetadata", "SemanticMemory.StoreWithTTL"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.FactInput
		}) (*loci.Receipt[agent.Stored], error) {
			return makeMemory(ctx, db, in.AgentMake, in.Embedding, facts, in.FactInput, (*agent.SemanticMemory).Put)
		}),
		Define(Spec{
			Name:    "facts.store_unique",
			Summary: "Store a fact under an id, or under a free one where that is taken",
			Description: "The free id is the one above the greatest in use; the answer tells which it became. Nothing that is there is replaced." +
				whatVectors,
			Positional: []string{"content"},
			Texts:      []string{"content!"},
			Covers:     []string{"SemanticMemory.PutUnique", "SemanticMemory.StoreUnique"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.FactInput
		}) (*loci.Receipt[agent.Stored], error) {
			return makeMemory(ctx, db, in.AgentMake, in.Embedding, facts, in.FactInput, (*agent.SemanticMemory).PutUnique)
		}),
		Define(Spec{
			Name:    "facts.store_batch",
			Summary: "Store many facts in one transaction",
			Description: "All are stored or none. Of those of one id the last one counts, and all are checked. Of more than a few without a vector the embedder makes those in the background." +
				whatVectors,
			Texts:  []string{"facts[].content!"},
			Covers: []string{"SemanticMemory.PutBatch", "SemanticMemory.StoreBatch"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.FactBatch
		}) (*loci.Receipt[agent.BatchResult], error) {
			if len(in.Facts) == 0 {
				return nothingIn[agent.BatchResult](ctx, db, in.AgentTarget)
			}
			embedding := firstEmbedding(in.Facts, func(f *agent.FactInput) []float32 { return f.Embedding })
			return makeMemory(ctx, db, in.AgentMake, embedding, facts, in.FactBatch, (*agent.SemanticMemory).PutBatch)
		}),
		Define(Spec{
			Name:        "facts.get",
			Summary:     "Read a live fact by id",
			Description: whatGet,
			Positional:  []string{"id"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"SemanticMemory.Get", "SemanticMemory.GetMetadata"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.GetRequest
		}) (*agent.Found[loci.Fact], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, facts, in.GetRequest, (*agent.SemanticMemory).Get)
		}),
		Define(Spec{
			Name:        "facts.list",
			Summary:     "List live facts by ascending id, page by page",
			Description: pagedBy,
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"SemanticMemory.List"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.ListRequest
		}) (*agent.Page[loci.Fact], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, facts, in.ListRequest, (*agent.SemanticMemory).List)
		}),
		Define(Spec{
			Name:    "facts.query",
			Summary: "Find the facts whose vectors lie nearest to one",
			Description: "Scores are cosines, best first, ties by ascending id. Only facts count that are live and valid now, or at as_of_valid_us. " +
				"The answer is exact however rare what the filter leaves is, unless approximate is true. Pages at successive offsets are disjoint.",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"SemanticMemory.QueryHits", "SemanticMemory.Query", "SemanticMemory.QueryFiltered"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.QueryRequest
		}) (*agent.Hits, error) {
			return inMemory(ctx, db, in.AgentTarget, in.Embedding, facts, in.QueryRequest, (*agent.SemanticMemory).QueryHits)
		}),
		Define(Spec{
			Name:    "facts.query_text",
			Summary: "Find the facts that answer a text best",
			Description: "By its words and, where an embedder turns it into a vector, by what it means; what it had to do without stands in degraded. " +
				"Only facts count that are live and valid now, or at as_of_valid_us.",
			Positional: []string{"text"},
			ReadOnly:   true, Idempotent: true,
			Covers: []string{"SemanticMemory.QueryText"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.TextRequest
		}) (*agent.Hits, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, facts, in.TextRequest, (*agent.SemanticMemory).QueryText)
		}),
		Define(Spec{
			Name:    "facts.supersede",
			Summary: "Let a fact take the place of another",
			Description: "The old one ends at from_us, by default now, and the new one begins then and gets the relation supersedes to it. Queries give the one that holds at the time; nothing is lost. " +
				"Said again it changes nothing; a fact that another one has superseded is a conflict.",
			Positional: []string{"old", "new"},
			Idempotent: true,
			Covers:     []string{"SemanticMemory.Supersede"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.SupersedeRequest
		}) (*loci.Receipt[agent.Superseded], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, facts, in.SupersedeRequest, (*agent.SemanticMemory).Supersede)
		}),
	}
}

// whatGet is what a point is read as.
const whatGet = "The answer's point is null when there is none. With as_of_recorded_us it is the version that was believed then, as far as history is kept."

// pagedBy says how to read on.
const pagedBy = "The answer's next_cursor, given as cursor, asks for the next page; without one this was the last."

// firstEmbedding is the first vector that a batch brings.
func firstEmbedding[T any](items []T, of func(*T) []float32) []float32 {
	for i := range items {
		if v := of(&items[i]); len(v) > 0 {
			return v
		}
	}
	return nil
}
