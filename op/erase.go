package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// EraseInput asks for an erasure. What is to go must be said in full, so that a
// forgotten field never empties a store.
type EraseInput struct {
	loci.EraseRequest
	All bool `json:"all,omitempty"` // take the filter's defaults for what it leaves out
}

func (in EraseInput) validate() error {
	if in.All {
		return nil
	}
	if in.Filter.Namespace == nil {
		return errs.Invalid("filter.namespace", "is needed for an erasure; name it, or say all: true to take the default")
	}
	if in.Filter.Scopes == nil && !in.EveryScope {
		return errs.Invalid("filter.scopes", "is needed for an erasure; name them, or say every_scope: true, or all: true to take the default")
	}
	return nil
}

func eraseOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:    "erase",
			Summary: "Forget a person or a thing, records, a scope or a namespace, in every place that is kept",
			Description: "Without subject, ids or mentions everything goes that the filter covers; with a filter of namespace and scopes alone that is the scopes as a whole, their contexts and agent memories too. " +
				"A subject is the name, an alias or the id of entities, which go with their relations and events. What mentions the words is counted and stays, unless erase_mentions is set. " +
				"The receipt counts what went, earlier versions, copies, checkpoints, snapshots and published texts included, and names what cannot be reached. The bytes are gone from the files after: loci vacuum",
			Idempotent: true, Destructive: true, LongRunning: true, Admin: true,
			Covers: []string{"DB.Erase"},
		}, func(ctx context.Context, db *loci.DB, in EraseInput) (*loci.EraseReport, error) {
			return db.Erase(ctx, in.EraseRequest, ProgressFrom(ctx))
		}),
		Define(Spec{
			Name:        "vacuum",
			Summary:     "Write the database and the index anew, so that nothing of what was erased is left in the files",
			Description: "Gives back the space too. Reads go on; writes wait while the database is copied. It needs free space of about twice what the store takes.",
			Idempotent:  true, LongRunning: true, Admin: true,
			Covers: []string{"DB.Vacuum"},
		}, func(ctx context.Context, db *loci.DB, _ Nothing) (*loci.VacuumReport, error) {
			return db.Vacuum(ctx, ProgressFrom(ctx))
		}),
	}
}
