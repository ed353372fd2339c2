package agent

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// SemanticMemory keeps facts.
type SemanticMemory struct{ points }

// MaxBatch bounds the points of one batch.
const MaxBatch = 10000

// OpenSemantic opens the facts of the memory of the default namespace and scope,
// making it if there is none. It is a short way to Open.
func OpenSemantic(ctx context.Context, db *loci.DB, dimension int) (*SemanticMemory, error) {
	m, err := Open(ctx, db, Config{Dimension: dimension})
	if err != nil {
		return nil, err
	}
	return m.Semantic(), nil
}

// draftFact checks a fact.
func (s *SemanticMemory) draftFact(field string, in *FactInput) (*draft, error) {
	d, err := s.draft(field, &in.PointInput)
	if err != nil {
		return nil, err
	}
	d.point.Content, d.point.ValidFrom, d.point.ValidTo = in.Content, in.ValidFromUS, in.ValidToUS
	if err := checkValidity(field, in.ValidFromUS, in.ValidToUS); err != nil {
		return nil, err
	}
	return d, d.checkText(field+"content", in.Content)
}

// Put stores a fact under its id. What is there is replaced, but for its relations,
// and kept in its history.
func (s *SemanticMemory) Put(ctx context.Context, in FactInput) (*loci.Receipt[Stored], error) {
	r := s.m.link.Redactor(ctx)
	d, err := s.draftFact("", in.redacted(r))
	if err != nil {
		return nil, errs.WithOp(s.name("store"), err)
	}
	return s.putOne(ctx, "store", d, r)
}

// PutUnique stores a fact under its id or, where a live fact has that, under the one
// above the greatest in use, which Stored.ID tells.
func (s *SemanticMemory) PutUnique(ctx context.Context, in FactInput) (*loci.Receipt[Stored], error) {
	r := s.m.link.Redactor(ctx)
	d, err := s.draftFact("", in.redacted(r))
	if err != nil {
		return nil, errs.WithOp(s.name("store_unique"), err)
	}
	return s.putUnique(ctx, "store_unique", d, r)
}

// PutBatch stores many facts in one transaction, all or none. Of those of one id the
// last one counts; all are checked.
func (s *SemanticMemory) PutBatch(ctx context.Context, batch FactBatch) (*loci.Receipt[BatchResult], error) {
	op := s.name("store_batch")
	if len(batch.Facts) > MaxBatch {
		return nil, errs.WithOp(op, errs.Invalid("facts", "has %d entries, at most %d are allowed", len(batch.Facts), MaxBatch))
	}
	drafts, r := make([]*draft, len(batch.Facts)), s.m.link.Redactor(ctx)
	for i := range batch.Facts {
		var err error
		if drafts[i], err = s.draftFact(fmt.Sprintf("facts[%d].", i), batch.Facts[i].redacted(r)); err != nil {
			return nil, errs.WithOp(op, err)
		}
	}
	return s.putBatch(ctx, "store_batch", drafts, r)
}

// Store stores a fact that never expires. A nil embedding is left to the embedder.
func (s *SemanticMemory) Store(ctx context.Context, id loci.PointID, content string, embedding []float32) error {
	return s.StoreWithMetadata(ctx, id, content, embedding, nil)
}

// StoreWithMetadata is Store with metadata.
func (s *SemanticMemory) StoreWithMetadata(ctx context.Context, id loci.PointID, content string, embedding []float32, metadata loci.Metadata) error {
	_, err := s.Put(ctx, FactInput{PointInput: PointInput{ID: id, Embedding: embedding, Metadata: metadata}, Content: content})
	return err
}

// StoreWithTTL is Store for a fact that expires; with 0 seconds all is checked and
// what is stored under the id is removed.
func (s *SemanticMemory) StoreWithTTL(ctx context.Context, id loci.PointID, content string, embedding []float32, ttlSeconds uint64) error {
	_, err := s.Put(ctx, FactInput{PointInput: PointInput{ID: id, Embedding: embedding, TTLSeconds: &ttlSeconds}, Content: content})
	return err
}

// StoreUnique is Store under the preferred id or, where that is taken, under a fresh
// one. It gives the id that was used.
func (s *SemanticMemory) StoreUnique(ctx context.Context, preferred loci.PointID, content string, embedding []float32) (loci.PointID, error) {
	receipt, err := s.PutUnique(ctx, FactInput{PointInput: PointInput{ID: preferred, Embedding: embedding}, Content: content})
	if err != nil {
		return 0, err
	}
	return receipt.Value.ID, nil
}

// StoreBatch is PutBatch for callers that need no receipt.
func (s *SemanticMemory) StoreBatch(ctx context.Context, facts []FactInput) error {
	_, err := s.PutBatch(ctx, FactBatch{Facts: facts})
	return err
}

// SetTTLDurable sets how long a live fact lives from now on; 0 removes it at once.
func (s *SemanticMemory) SetTTLDurable(ctx context.Context, id loci.PointID, ttlSeconds uint64) error {
	_, err := s.SetTTL(ctx, TTLRequest{ID: id, TTLSeconds: ttlSeconds})
	return err
}

// Get reads a live fact; the answer's point is nil when there is none.
func (s *SemanticMemory) Get(ctx context.Context, req GetRequest) (*Found[loci.Fact], error) {
	p, embedding, err := s.get(ctx, req)
	return found[loci.Fact](&s.points, p, embedding, err)
}

// List reads a page of live facts by ascending id.
func (s *SemanticMemory) List(ctx context.Context, req ListRequest) (*Page[loci.Fact], error) {
	return page[loci.Fact](ctx, &s.points, req)
}

// IDContent is a fact in short.
type IDContent struct {
	ID      loci.PointID `json:"id"`
	Content string       `json:"content"`
}

// ListAll gives all live facts in short, by ascending id, as they are at one time.
// They are all in memory then: List reads them page by page.
func (s *SemanticMemory) ListAll(ctx context.Context) ([]IDContent, error) {
	out := []IDContent{}
	err := s.eachText(ctx, func(id loci.PointID, text string) { out = append(out, IDContent{id, text}) })
	if err != nil {
		return nil, err
	}
	return out, nil
}
