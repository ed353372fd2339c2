package loci

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/rerank"
)

// Reranker scores documents against a query; see package rerank.
type Reranker = rerank.Reranker

// RerankerOptions bound what a reranker is sent. Both the number of candidates
// and the tokens are limits; tokens are counted at 0.25 a character in ASCII and
// 0.48 elsewhere, rounded up for each text. All must be at least 1.
type RerankerOptions struct {
	MaxCandidates   *int // default 50
	MaxTokensTotal  *int // query and documents together, default 8192
	MaxTokensPerDoc *int // default 1024; longer documents are cut
	MaxTokensQuery  *int // default unlimited
}

// RegisterReranker has searches ask a model about their best candidates, in
// place of one registered earlier. opts may be nil.
//
// The reranker is tried at once on a sample. One that gives a wrong number of
// scores, or one that is not finite, is ErrValidation and is not registered. One
// that gives an error, panics or does not answer in time is registered all the
// same, since a service may be back by the time of a search; searches that it
// fails go without it and say rerank_failed.
//
// A reranker belongs to the opened store, whichever handle registered it, and is
// gone when that is closed.
func (db *DB) RegisterReranker(ctx context.Context, r Reranker, opts *RerankerOptions) error {
	const op = "register_reranker"
	e := db.eng
	if err := e.enter(op); err != nil {
		return err
	}
	defer e.gate.leave()
	if err := needAdmin(ctx, "", "a reranker"); err != nil {
		return errs.WithOp(op, err)
	}
	if r == nil {
		return errs.WithOp(op, errs.Invalid("reranker", "must not be nil; UnregisterReranker removes one"))
	}
	b, err := opts.bind(r)
	if err != nil {
		return errs.WithOp(op, err)
	}
	work, stop := e.untilClosing(ctx)
	defer stop()
	if err := b.sample(work, e.models.rerankWait()); err != nil {
		return errs.WithOp(op, err)
	}
	e.models.reranker.Store(b)
	return nil
}

// UnregisterReranker removes the reranker and says whether there was one.
// Searches that have begun may still ask it.
func (db *DB) UnregisterReranker() bool { return db.eng.models.reranker.Swap(nil) != nil }

// RerankerRegistered says whether a reranker is registered.
func (db *DB) RerankerRegistered() bool { return db.eng.rerankerRegistered() }

func (e *engine) rerankerRegistered() bool { return e.models.reranker.Load() != nil }
