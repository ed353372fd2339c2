package agent

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// RecallRequest asks for the episodes that are most like something: a vector or a
// text, one of the two.
type RecallRequest struct {
	Embedding []float32 `json:"embedding,omitempty"`
	// Text finds episodes by words, and by vectors where an embedder turns it into one.
	Text   string `json:"text,omitempty"`
	K      *int   `json:"k,omitempty"`      // 1..10000, default 10
	Offset int    `json:"offset,omitempty"` // episodes to leave out first
	Selection
	// Approximate allows an answer to an embedding that may miss an episode now and
	// then, which is much faster from some 20,000 episodes on.
	Approximate bool `json:"approximate,omitempty"`
}

// EpisodeHit is an episode that answers a request.
type EpisodeHit struct {
	// Score is the cosine of the two vectors; of a text what the search gave.
	Score   float64      `json:"score"`
	Episode loci.Episode `json:"episode"`
}

// EpisodeHits are the answer to a RecallRequest, best first.
type EpisodeHits struct {
	Hits []EpisodeHit `json:"hits"`
	// Degraded says what a text had to do without.
	Degraded []loci.Degrade `json:"degraded,omitempty"`
}

// RecallSimilar gives the current episodes that are most like a vector or a text,
// among those that the selection leaves. By vector it compares all of them, unless
// Approximate is set, ties by ascending id; an episode without a vector is found by
// words alone.
func (s *EpisodicMemory) RecallSimilar(ctx context.Context, req RecallRequest) (*EpisodeHits, error) {
	found, degraded, err := recall[loci.Episode](ctx, &s.points, "recall_similar", &recalled{
		embedding: req.Embedding, text: req.Text, k: req.K, offset: req.Offset, selection: &req.Selection, approximate: req.Approximate,
	})
	if err != nil {
		return nil, err
	}
	out := &EpisodeHits{Hits: make([]EpisodeHit, len(found)), Degraded: degraded}
	for i, h := range found {
		out.Hits[i] = EpisodeHit{h.score, *h.point}
	}
	return out, nil
}

// recalled is what episodes and procedures are recalled by.
type recalled struct {
	embedding   []float32
	text        string
	k           *int
	offset      int
	selection   *Selection
	approximate bool
	least       float64 // confidence of a procedure
}

// scored is a point with its score.
type scored[T any] struct {
	point *T
	score float64
}

// recall finds points by a vector or by a text.
func recall[T any](ctx context.Context, s *points, call string, r *recalled) (out []scored[T], degraded []loci.Degrade, err error) {
	op := s.name(call)
	switch {
	case r.embedding == nil && r.text == "":
		return nil, nil, errs.WithOp(op, errs.Invalid("embedding", "or text is required: give one of them"))
	case r.embedding != nil && r.text != "":
		return nil, nil, errs.WithOp(op, errs.Invalid("text", "and embedding must not both be given: leave one out"))
	case r.text != "":
		return recallText[T](ctx, s, call, r)
	}
	q, err := s.checkQuery(r.embedding, r.k, r.offset, r.selection)
	if err != nil {
		return nil, nil, errs.WithOp(op, err)
	}
	q.exact, q.full, q.selected.least = !r.approximate, true, r.least
	hits, err := s.query(ctx, call, q)
	if err != nil {
		return nil, nil, err
	}
	out = make([]scored[T], len(hits))
	for i, h := range hits {
		p, err := pointAs[T](s, h.point)
		if err != nil {
			return nil, nil, errs.WithOp(op, err)
		}
		out[i] = scored[T]{p, h.score}
	}
	return out, nil, nil
}

// recallText finds points by a text.
func recallText[T any](ctx context.Context, s *points, call string, r *recalled) ([]scored[T], []loci.Degrade, error) {
	hits, degraded, err := s.queryText(ctx, call, &TextRequest{Text: r.text, K: r.k, Offset: r.offset, Selection: *r.selection}, r.least)
	if err != nil {
		return nil, nil, err
	}
	out := make([]scored[T], len(hits))
	for i, h := range hits {
		p, ok := h.point.(*T)
		if !ok {
			return nil, nil, errs.WithOp(s.name(call), errs.New(errs.Storage, "a hit of the search is of another kind than was asked for"))
		}
		out[i] = scored[T]{p, h.score}
	}
	return out, degraded, nil
}
