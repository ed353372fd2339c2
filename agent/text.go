package agent

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
)

// QueryText finds current facts by words.
func (s *SemanticMemory) QueryText(ctx context.Context, req TextRequest) (*Hits, error) {
	return nil, errs.WithOp(s.name("query_text"), errs.New(errs.Index, "not yet"))
}
