package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// procedureOps are the operations that only procedures have.
func procedureOps() []*Operation {
	procedures := (*agent.AgentMemory).Procedural
	return []*Operation{
		Define(Spec{
			Name:    "procedures.learn",
			Summary: "Store a way to do something under an id of your own",
			Description: "What is there under the id is replaced and kept in its history, but for its relations and how well it served: confidence and counters stay, unless a confidence or reset is given. " +
				"Without an embedding the embedder of the memory's space makes one; without one the procedure is found by words alone. The memory is made if it is not there.",
			Positional: []string{"name"},
			Texts:      []string{"name!", "steps[]!"},
			Covers:     []string{"ProceduralMemory.Learn"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.ProcedureInput
		}) (*loci.Receipt[agent.Stored], error) {
			return makeMemory(ctx, db, in.AgentMake, in.Embedding, procedures, in.ProcedureInput, (*agent.ProceduralMemory).Learn)
		}),
		Define(Spec{
			Name:        "procedures.get",
			Summary:     "Read a live procedure by id",
			Description: whatGet,
			Positional:  []string{"id"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"ProceduralMemory.Get", "ProceduralMemory.GetMetadata"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.GetRequest
		}) (*agent.Found[loci.Procedure], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, procedures, in.GetRequest, (*agent.ProceduralMemory).Get)
		}),
		Define(Spec{
			Name:        "procedures.list",
			Summary:     "List live procedures by ascending id, page by page",
			Description: pagedBy,
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"ProceduralMemory.List"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.ListRequest
		}) (*agent.Page[loci.Procedure], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, procedures, in.ListRequest, (*agent.ProceduralMemory).List)
		}),
		Define(Spec{
			Name:        "procedures.recall",
			Summary:     "Find the procedures that are most like a text or a vector",
			Description: "Give one of the two. Those of less than min_confidence are left out before the best are taken. By vector scores are cosines and the answer is exact, unless approximate is true; by text it is what a search gives.",
			Positional:  []string{"text"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"ProceduralMemory.Recall"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.ProcedureRecallRequest
		}) (*agent.ProcedureHits, error) {
			return inMemory(ctx, db, in.AgentTarget, in.Embedding, procedures, in.ProcedureRecallRequest, (*agent.ProceduralMemory).Recall)
		}),
		Define(Spec{
			Name:    "procedures.reinforce",
			Summary: "Tell whether a procedure has served",
			Description: "Its confidence rises by 0.1 or falls by 0.05, within 0..1; a strategy takes a part of that: diminishing by its uses, temporal by the time since the last one, weighted the mean of others. " +
				"Of uses that are told at the same time none is lost.",
			Positional: []string{"id"},
			Covers:     []string{"ProceduralMemory.ReinforceWith", "ProceduralMemory.Reinforce"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.ReinforceRequest
		}) (*loci.Receipt[agent.Reinforced], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, procedures, in.ReinforceRequest, (*agent.ProceduralMemory).ReinforceWith)
		}),
	}
}
