package op

import (
	"context"

	"github.com/loci-memory/loci"
)

func graphTextOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "graph.import_text",
			Summary:     "Write relations from lines of text, with the entities that they name",
			Description: "Each line is predicate(subject) = object or predicate(subject, object). Names with one of ( ) , = in them go in quotes; # begins a comment. A text with a mistake is refused whole. What is known already is merged, so the same text may be sent again; the counts include it.",
			Idempotent:  true,
			Positional:  []string{"text"},
			Texts:       []string{"text!"},
			Covers:      []string{"GraphStore.ImportText"},
		}, func(ctx context.Context, db *loci.DB, in loci.GraphText) (*loci.Receipt[loci.GraphTextResult], error) {
			return db.Graph().ImportText(ctx, in)
		}),
	}
}
