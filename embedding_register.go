package loci

import (
	"context"
	"errors"
	"strings"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/redact"
	"github.com/loci-memory/loci/internal/store"
)

// probes are the texts that an embedder is tried with. The space keeps what its
// first embedder made of the first of them: one that makes another vector of it
// is another model. They must never change.
var probes = [...]string{"The quick brown fox jumps over the lazy dog.", "敏捷的棕色狐狸跳过懒狗。"}

// sameModel is the least cosine at which two vectors of the probe are one
// model's. Rounding and a change of hardware move it by far less.
const sameModel = 0.99

// check fills in the defaults and validates the options.
func (o *EmbedderOptions) check() (*boundEmbedder, error) {
	b := &boundEmbedder{left: map[int64]leftText{}, leftIn: map[syncPart]int64{}, due: map[int64]struct{}{}, dueEach: true, weight: clonePtr(o.VectorWeight), fusion: o.Fusion}
	batch := valueOr(o.MaxBatch, defaultMaxBatch)
	if batch < 1 || batch > maxMaxBatch {
		return nil, errs.Invalid("max_batch", "must be 1 to %d, not %d", maxMaxBatch, batch)
	}
	b.batch.Store(int64(batch))
	if o.MaxTokensPerText != nil {
		if b.tokens = *o.MaxTokensPerText; b.tokens < 1 {
			return nil, errs.Invalid("max_tokens_per_text", "must be at least 1, not %d", b.tokens)
		}
	}
	switch o.Fusion {
	case "", FusionRRF, FusionScore:
	default:
		return nil, errs.Invalid("fusion", "must be rrf or score")
	}
	return b, positive("vector_weight", o.VectorWeight)
}

// RegisterEmbedder binds a model to a space until the store is closed, in the
// place of an earlier one, and tries it at once: what it gives must fit the
// space, else it is ErrInvalidVector; when it fails, ErrValidation; when it is
// another model than the one that filled the space, ErrConflict. None of these is
// bound. opts may be nil.
//
// From then on the background embeds what has no vector yet, unless
// Options.NoBackgroundEmbedding turns that off.
func (s *EmbeddingStore) RegisterEmbedder(ctx context.Context, space string, embedder Embedder, opts *EmbedderOptions) error {
	const op = "embeddings.register_embedder"
	if err := s.eng.enter(op); err != nil {
		return err
	}
	defer s.eng.gate.leave()
	if err := needAdmin(ctx, "", "an embedder"); err != nil {
		return errs.WithOp(op, err)
	}
	return errs.WithOp(op, s.register(ctx, space, embedder, opts))
}

func (s *EmbeddingStore) register(ctx context.Context, space string, embedder Embedder, opts *EmbedderOptions) error {
	e := s.eng
	if opts == nil {
		opts = &EmbedderOptions{}
	}
	b, err := opts.check()
	if err != nil {
		return err
	}
	if embedder == nil {
		return errs.Invalid("embedder", "must not be nil; UnregisterEmbedder removes one")
	}
	b.embedder, b.searching = embedder, &e.searching
	var sp *store.Space
	err = e.read(ctx, func(tx *store.ReadTx) (err error) {
		if sp, err = tx.Space(space); err == nil && sp == nil {
			err = noSpace("space")
		}
		return err
	})
	if err != nil {
		return err
	}
	b.space = *sp
	ctx, cancel := e.untilClosing(ctx)
	defer cancel()
	probe, err := b.try(ctx)
	if err != nil {
		return err
	}
	e.embedders.admin.Lock()
	defer e.embedders.admin.Unlock()
	if err := e.settleProbe(ctx, sp, probe); err != nil {
		return err
	}
	e.embedders.set(space, b)
	e.startEmbedding()
	return nil
}

// try runs the model on the probes.
func (b *boundEmbedder) try(ctx context.Context) ([]float32, error) {
	vectors, err := b.embed(ctx, probes[:], embed.Passage)
	switch {
	case err == nil:
		return vectors[0], nil
	case ctx.Err() != nil:
		return nil, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while the embedder was tried")
	case errors.Is(err, errs.InvalidVector):
		return nil, err
	}
	return nil, errs.Invalid("embedder", "failed on a sample, so it is not bound: %s", failure(err, nil))
}

// settleProbe compares what a model made of the probe with what the space's
// first one made of it.
func (e *engine) settleProbe(ctx context.Context, sp *store.Space, probe []float32) error {
	changed := &errs.Error{Code: errs.Conflict, Field: "embedder",
		Message: "the model behind this space has changed, its vectors do not compare with those that are there: register a new space"}
	known := false
	compare := func(now *store.Space, err error) error {
		if err != nil {
			return err
		}
		// The space may have been deleted while its model was tried, and another one
		// be there under its name.
		if now == nil || now.ID != sp.ID {
			return noSpace("space")
		}
		if known = now.Probe != nil; known && cosine(now.Probe, probe) < sameModel {
			return changed
		}
		return nil
	}
	err := e.read(ctx, func(tx *store.ReadTx) error { return compare(tx.Space(sp.Name)) })
	if err != nil || known {
		return err
	}
	_, err = e.write(ctx, func(tx *store.WriteTx) error {
		if err := compare(tx.Space(sp.Name)); err != nil || known {
			return err
		}
		return tx.SetProbe(sp.ID, probe)
	})
	return err
}

func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return -1
	}
	var dot float64
	for i, x := range a {
		dot += float64(x) * float64(b[i])
	}
	return dot / (length(a) * length(b))
}

// failure is an embedder's error for people to read: short, and without the
// texts that it was given.
func failure(err error, texts []string) string {
	const longest, looked = 500, 10000
	message := err.Error()
	message = message[:min(len(message), looked)]
	message = strings.Join(strings.Fields(redact.Hide(message, nil, texts)), " ")
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "..."
	}
	return message
}

// UnregisterEmbedder unbinds a space's embedder and says whether there was one.
func (s *EmbeddingStore) UnregisterEmbedder(space string) bool {
	s.eng.embedders.admin.Lock()
	defer s.eng.embedders.admin.Unlock()
	return s.eng.embedders.set(space, nil)
}

// EmbedderSpace gives the definition of a space, whether an embedder is bound to
// it or not; nil when there is no such space.
func (s *EmbeddingStore) EmbedderSpace(ctx context.Context, space string) (*EmbeddingSpace, error) {
	const op = "embeddings.embedder_space"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := needAdmin(ctx, "", "a space of vectors"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	var out *EmbeddingSpace
	err := s.eng.read(ctx, func(tx *store.ReadTx) error {
		sp, err := tx.Space(space)
		if sp != nil {
			out = new(spaceOf(sp))
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}
