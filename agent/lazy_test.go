package agent

import (
	"testing"

	"github.com/loci-memory/loci"
)

// lazily opens a memory that is not there, in a store without an embedder.
func lazily(t *testing.T, cfg Config) (*loci.DB, *AgentMemory) {
	t.Helper()
	db := openDB(t, t.TempDir(), &testClock{at: T})
	t.Cleanup(func() { db.Close() })
	return db, must[*AgentMemory](t)(OpenLazy(t.Context(), db, cfg))
}

// TestLazyReadsAsEmpty holds that a memory that is not there reads as an empty one,
// and that reading makes nothing. // Y1, Y2, Y3
func TestLazyReadsAsEmpty(t *testing.T) {
	db, m := lazily(t, Config{Namespace: "harbour"})
	facts, ctx := m.Semantic(), t.Context()
	before := must[*loci.HealthReport](t)(db.Health(ctx)).Revision
	if got := must[*Found[loci.Fact]](t)(facts.Get(ctx, GetRequest{ID: 1})); got.Point != nil {
		t.Errorf("get: %+v", got)
	}
	if got := must[*Page[loci.Fact]](t)(facts.List(ctx, ListRequest{})); len(got.Items) != 0 || got.NextCursor != "" {
		t.Errorf("list: %+v", got)
	}
	if got := must[*Count](t)(facts.Count(ctx)); got.Count != 0 || !got.Empty {
		t.Errorf("count: %+v", got)
	}
	for _, vector := range [][]float32{x(), {1, 2, 3}} { // there is no dimension to be wrong
		if got := must[*Hits](t)(facts.QueryHits(ctx, QueryRequest{Embedding: vector})); got.Hits == nil || len(got.Hits) != 0 {
			t.Errorf("query: %+v", got)
		}
	}
	_, err := facts.QueryHits(ctx, QueryRequest{Embedding: x(), K: new(0)})
	wantCode(t, err, loci.ErrValidation)
	_, err = facts.QueryHits(ctx, QueryRequest{Embedding: []float32{}})
	wantCode(t, err, loci.ErrInvalidVector)
	_, err = facts.UpdateMetadata(ctx, UpdateRequest{ID: 1, Updates: loci.Metadata(`{"a":1}`)})
	wantCode(t, err, loci.ErrNotFound)
	_, err = facts.SetTTL(ctx, TTLRequest{ID: 1, TTLSeconds: 1})
	wantCode(t, err, loci.ErrNotFound)
	if got := must[*Policy](t)(m.Policy(ctx)); *got != (Policy{}) {
		t.Errorf("policy: %+v", got)
	}
	if after := must[*loci.HealthReport](t)(db.Health(ctx)).Revision; after != before {
		t.Errorf("revision %d became %d", before, after)
	}
	_, err = OpenExisting(ctx, db, Config{Namespace: "harbour"})
	wantCode(t, err, loci.ErrNotFound)
}

// TestLazyMakes holds that the first thing that is stored makes the memory, and that
// what is refused does not. // O1, O3
func TestLazyMakes(t *testing.T) {
	ctx := t.Context()
	db, m := lazily(t, Config{Dimension: 4})
	for _, bad := range [][]float32{{0, 0, 0, 0}, {1, 0, 0}, {}} {
		_, err := m.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: 1, Embedding: bad}, Content: "tide"})
		wantCode(t, err, loci.ErrInvalidVector)
	}
	_, err := m.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: 1}, Content: "tide"})
	wantCode(t, err, loci.ErrInvalidVector)
	_, err = OpenExisting(ctx, db, Config{})
	wantCode(t, err, loci.ErrNotFound)

	for id := range loci.PointID(3) {
		must[*loci.Receipt[Stored]](t)(m.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: id, Embedding: x()}, Content: "tide"}))
	}
	if got := must[*Count](t)(m.Semantic().Count(ctx)); got.Count != 3 {
		t.Errorf("count: %+v", got)
	}
	again := must[*AgentMemory](t)(OpenExisting(ctx, db, Config{Dimension: 4}))
	if again.Space() != "agent-4" || must[*Count](t)(again.Semantic().Count(ctx)).Count != 3 {
		t.Errorf("space %q", again.Space())
	}

	// Nothing says of what dimension it would be.
	_, m = lazily(t, Config{})
	if m.Dimension() != 0 {
		t.Errorf("dimension %d", m.Dimension())
	}
	_, err = m.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: 1}, Content: "tide"})
	wantCode(t, err, loci.ErrInvalidVector)
	_, err = m.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: 1, Embedding: x()}, Content: "tide"})
	wantCode(t, err, loci.ErrValidation)
}

// TestLazyMeetsAnother holds that a memory that somebody else makes meanwhile is taken
// as it is, if it is of the same kind. // O2
func TestLazyMeetsAnother(t *testing.T) {
	ctx := t.Context()
	db, m := lazily(t, Config{Dimension: 4})
	must[*AgentMemory](t)(Open(ctx, db, Config{Dimension: 4}))
	must[*loci.Receipt[Stored]](t)(m.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: 1, Embedding: x()}, Content: "tide"}))

	other := must[*AgentMemory](t)(OpenLazy(ctx, db, Config{Scope: "private", Dimension: 8}))
	must[*AgentMemory](t)(Open(ctx, db, Config{Scope: "private", Dimension: 4}))
	_, err := other.Semantic().Put(ctx, FactInput{PointInput: PointInput{ID: 1, Embedding: make8()}, Content: "tide"})
	wantCode(t, err, loci.ErrInvalidVector)
	_, err = OpenLazy(ctx, db, Config{Dimension: 8})
	wantCode(t, err, loci.ErrInvalidVector)
}

func make8() []float32 { return []float32{1, 0, 0, 0, 0, 0, 0, 0} }
