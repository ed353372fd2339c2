package op

import (
	"context"

	"github.com/loci-memory/loci"
)

// intakeOps is what a model's own work comes in by.
func intakeOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:    "intake",
			Summary: "Take in judgments and triples that were made of a text",
			Description: "Every one is checked by itself; those that are sound are stored in one transaction, and the receipt says of each what became of it: created, merged with what was known, or rejected and why. " +
				"Judgments are known by their words, up to case, width and blanks, entities by their names. With dry_run nothing is written. Marked blocks, which a memory gave itself, are taken out first.",
			Idempotent: true,
			Covers:     []string{"DB.Intake"},
		}, func(ctx context.Context, db *loci.DB, in loci.IntakeRequest) (*loci.Receipt[loci.IntakeReport], error) {
			return db.Intake(ctx, in)
		}),
	}
}
