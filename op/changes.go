package op

import (
	"context"

	"github.com/loci-memory/loci"
)

func changeOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:    "changes",
			Summary: "Show what was written and deleted since a place in the journal",
			Description: "Records by id and place, oldest first, without their text. It can wait for a change. The answer's next is where the following call goes on; " +
				"floor_lost means that the journal no longer goes back that far and the caller has to read anew. Feedback, decay and vectors are not told.",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"DB.Changes"},
		}, func(ctx context.Context, db *loci.DB, in loci.ChangesRequest) (*loci.Changes, error) {
			return db.Changes(ctx, in)
		}),
	}
}
