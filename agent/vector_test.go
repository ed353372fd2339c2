package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// vectorCalls are the calls that take a vector.
func (m *testMemory) vectorCalls() map[string]func(v []float32) error {
	ctx := m.t.Context()
	return map[string]func(v []float32) error{
		"store":        func(v []float32) error { return m.facts.Store(ctx, 1, "tide", v) },
		"store, ttl 0": func(v []float32) error { return m.facts.StoreWithTTL(ctx, 1, "tide", v, 0) },
		"store_unique": func(v []float32) error { _, err := m.facts.StoreUnique(ctx, 1, "tide", v); return err },
		"store_batch":  func(v []float32) error { return m.facts.StoreBatch(ctx, []FactInput{fact(1, "tide", v)}) },
		"query":        func(v []float32) error { _, err := m.facts.Query(ctx, v, 1); return err },
		"query_filtered": func(v []float32) error {
			_, err := m.facts.QueryFiltered(ctx, v, 1, loci.Metadata(`{"k":1}`), 0)
			return err
		},
		"record": func(v []float32) error {
			_, err := m.episodes.Record(ctx, EpisodeInput{PointInput: PointInput{ID: 1, Embedding: v}, Description: "a"})
			return err
		},
		"learn": func(v []float32) error {
			_, err := m.procedures.Learn(ctx, ProcedureInput{PointInput: PointInput{ID: 1, Embedding: v}, Name: "a", Steps: []string{"b"}})
			return err
		},
		"recall_similar": func(v []float32) error {
			_, err := m.episodes.RecallSimilar(ctx, RecallRequest{Embedding: v})
			return err
		},
		"recall": func(v []float32) error {
			_, err := m.procedures.Recall(ctx, ProcedureRecallRequest{Embedding: v})
			return err
		},
	}
}

func TestVectorsOfAnotherLength(t *testing.T) { // V1
	m := openMemory(t, 4)
	m.store(1, "text 1", x())
	done := m.unchanged()
	for name, call := range m.vectorCalls() {
		for _, n := range []int{3, 5} {
			v := make([]float32, n)
			v[0] = 1
			err := call(v)
			if e := wantCode(t, err, loci.ErrInvalidVector); !strings.Contains(e.Message, fmt.Sprint(n)) || !strings.Contains(e.Message, "4") || !strings.HasSuffix(e.Field, "embedding") {
				t.Errorf("%s: error %v, field %q", name, err, e.Field)
			}
		}
	}
	done()
}

func TestVectorsThatAreNone(t *testing.T) { // V2
	m := openMemory(t, 4)
	m.store(1, "text 1", x())
	done := m.unchanged()
	inf, zero := float32(math.Inf(1)), float32(0)
	for name, call := range m.vectorCalls() {
		for _, first := range []float32{float32(math.NaN()), inf, -inf, zero, -zero, float32(math.Copysign(0, -1))} {
			wantCode(t, call([]float32{first, 0, 0, 0}), loci.ErrInvalidVector)
		}
		_ = name
	}
	var in FactInput
	if err := json.Unmarshal([]byte(`{"id":"1","content":"tide","embedding":[1e-46,0,0,0]}`), &in); err != nil {
		t.Fatal(err)
	}
	_, err := m.facts.Put(t.Context(), in)
	wantField(t, err, loci.ErrInvalidVector, "embedding")
	done()
}

func TestVectorsOfAnySize(t *testing.T) { // V3
	m := openMemory(t, 4)
	tiny := []float32{math.SmallestNonzeroFloat32, 0, 0, 0}
	given := [][]float32{tiny, {3e38, 0, 0, 0}, {2, 0, 0, 0}}
	for i, v := range given {
		m.store(loci.PointID(i+1), "tide", v)
	}
	for _, v := range [][]float32{x(), tiny, {3e38, 0, 0, 0}} {
		hits := must[[]Hit](t)(m.facts.Query(t.Context(), v, 10))
		wantIDs(t, fmt.Sprint("query ", v), hitIDs(hits), 1, 2, 3)
		for _, h := range hits {
			if h.Score != 1 {
				t.Errorf("score %v of %d", h.Score, h.ID)
			}
		}
	}
	for i, v := range given {
		if got := m.vector(loci.PointID(i + 1)); !slices.Equal(got, v) {
			t.Errorf("vector %v, given %v", got, v)
		}
	}
	m.store(4, "all", []float32{3e38, 3e38, 3e38, 3e38})
	m.store(5, "small", []float32{1e-40, 3e-42, 1e-45, 2e-39})
	for _, h := range must[[]Hit](t)(m.facts.Query(t.Context(), []float32{-3e38, -3e38, -3e38, -3e38}, 10)) {
		if math.IsNaN(h.Score) || h.Score > 1 || h.Score < -1 || h.ID == 4 && h.Score != -1 {
			t.Errorf("score %v of %d", h.Score, h.ID)
		}
	}
}

func TestVectorMissing(t *testing.T) { // V4
	m := openMemory(t, 4)
	done := m.unchanged()
	for _, v := range [][]float32{nil, {}} {
		wantField(t, m.facts.Store(t.Context(), 1, "tide", v), loci.ErrInvalidVector, "embedding")
	}
	done()
}

func TestVectorMade(t *testing.T) { // V5
	m := openEmbedding(t, 16)
	if got := m.store(1, "tide", nil); got.Vector != VectorMade {
		t.Errorf("receipt %+v", got)
	}
	hits := must[[]Hit](t)(m.facts.Query(t.Context(), m.fake.Vector("tide"), 1))
	if len(hits) != 1 || !near(hits[0].Score, 1) {
		t.Errorf("hits %+v", hits)
	}
}

func TestVectorPending(t *testing.T) { // V6
	m := openEmbedding(t, 16)
	for _, fault := range []fakeembed.Fault{fakeembed.Fails, fakeembed.NaN, fakeembed.Zeros, fakeembed.TooFew, fakeembed.WrongDimension, fakeembed.Panics} {
		m.fake.Fail(fault)
		if got := m.store(1, "tide", nil); got.Vector != VectorPending {
			t.Errorf("fault %d: receipt %+v", fault, got)
		}
		if m.count() != 1 || m.vector(1) != nil {
			t.Errorf("fault %d: count %d, vector %v", fault, m.count(), m.vector(1))
		}
		wantIDs(t, "by vector", m.query(m.fake.Vector("tide"), 1))
		wantIDs(t, "by words", m.words("tide"), 1)
		must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 1))
	}
	m.store(1, "tide", nil)
	m.fake.Fail(fakeembed.None)
	m.embedPending()
	wantIDs(t, "by vector", m.query(m.fake.Vector("tide"), 1), 1)
	if r := m.store(1, "tide", nil); r.Vector != VectorMade {
		t.Errorf("receipt %+v", r)
	}
	// The same text keeps the vector that was made of it.
	m.fake.Fail(fakeembed.Fails)
	if r := m.store(1, "tide", nil, withTTL(60)); r.Vector != VectorMade || m.vector(1) == nil {
		t.Errorf("receipt %+v, vector %v", r, m.vector(1))
	}
	if r := m.store(1, "ebb", nil); r.Vector != VectorPending || m.vector(1) != nil {
		t.Errorf("receipt %+v, vector %v", r, m.vector(1))
	}
}

func TestVectorPendingOvertaken(t *testing.T) { // V7
	m := openEmbedding(t, 4)
	m.fake.Fail(fakeembed.Fails)
	m.store(1, "tide", nil)
	m.store(2, "ebb", nil)
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 1))
	m.store(2, "flood", y())
	m.fake.Fail(fakeembed.None)
	m.embedPending()
	if got := m.vector(2); !slices.Equal(got, y()) {
		t.Errorf("vector %v", got)
	}
	wantIDs(t, "query", m.query(y(), 10), 2)
	if h := m.deepCheck(); h.Vectors != 1 {
		t.Errorf("%d vectors in the index", h.Vectors)
	}
}

func TestVectorWithoutEmbedderYet(t *testing.T) { // V8
	m := openEmbedding(t, 4)
	m.store(1, "tide", nil)
	m.fake.Fail(fakeembed.Fails)
	m.store(2, "ebb", nil)
	m.store(3, "flood", y())
	fake := m.fake
	m.fake = nil
	m.reopen()
	done := m.unchanged()
	wantField(t, m.facts.Store(t.Context(), 4, "moon", nil), loci.ErrInvalidVector, "embedding")
	done()
	m.store(4, "moon", x())
	wantIDs(t, "list", m.ids(), 1, 2, 3, 4)
	if got := m.query(y(), 1); len(got) != 1 || got[0] != 3 {
		t.Errorf("query %v", got)
	}
	fake.Fail(fakeembed.None)
	bindEmbedder(t, m.db, "words", fake)
	if got := m.store(5, "sun", nil); got.Vector != VectorMade {
		t.Errorf("receipt %+v", got)
	}
	m.embedPending()
	if m.vector(2) == nil || !slices.Equal(m.vector(3), y()) || !slices.Equal(m.vector(4), x()) {
		t.Errorf("vectors %v, %v, %v", m.vector(2), m.vector(3), m.vector(4))
	}
}

func TestVectorEmbedderOfCallersSpace(t *testing.T) { // V9
	m := openMemory(t, 4)
	m.store(1, "tide", d())
	fake := fakeembed.New(4)
	if err := m.db.Embeddings().RegisterEmbedder(t.Context(), "agent-4", fake, nil); err != nil {
		t.Fatal(err)
	}
	fake.Forget()
	m.embedPending()
	if got := m.vector(1); !slices.Equal(got, d()) || len(fake.Calls()) != 0 {
		t.Errorf("vector %v after %d calls", got, len(fake.Calls()))
	}
	if got := m.store(2, "ebb", nil); got.Vector != VectorMade {
		t.Errorf("receipt %+v", got)
	}
}

func TestVectorNone(t *testing.T) { // V10
	m := openMemory(t, 4)
	ctx := t.Context()
	e := must[*loci.Receipt[Stored]](t)(m.episodes.Record(ctx, EpisodeInput{PointInput: PointInput{ID: 1}, Description: "the power cut"})).Value
	p := must[*loci.Receipt[Stored]](t)(m.procedures.Learn(ctx, ProcedureInput{PointInput: PointInput{ID: 1}, Name: "restart", Steps: []string{"power off", "power on"}})).Value
	if e.Vector != VectorNone || p.Vector != VectorNone {
		t.Errorf("receipts %+v, %+v", e, p)
	}
	if got := must[*Found[loci.Episode]](t)(m.episodes.Get(ctx, GetRequest{ID: 1, WithEmbedding: true})); got.Embedding != nil {
		t.Errorf("vector %v", got.Embedding)
	}
	if got := must[*EpisodeHits](t)(m.episodes.RecallSimilar(ctx, RecallRequest{Embedding: x()})); len(got.Hits) != 0 {
		t.Errorf("hits %+v", got)
	}
	if got := must[*EpisodeHits](t)(m.episodes.RecallSimilar(ctx, RecallRequest{Text: "power"})); len(got.Hits) != 1 {
		t.Errorf("hits %+v", got)
	}
}

func TestVectorMadeAfterGiven(t *testing.T) { // V11
	m := openEmbedding(t, 4)
	m.store(1, "a", nil)
	if got := m.store(1, "b", y()); got.Vector != VectorGiven || !slices.Equal(m.vector(1), y()) {
		t.Errorf("%+v, %v", got, m.vector(1))
	}
	if got := m.store(1, "c", nil); got.Vector != VectorMade {
		t.Errorf("%+v", got)
	}
	hits := must[[]Hit](t)(m.facts.Query(t.Context(), m.fake.Vector("c"), 1))
	if len(hits) != 1 || !near(hits[0].Score, 1) {
		t.Errorf("hits %+v", hits)
	}
	// What a caller gave for the old text goes, also when nothing takes its place yet.
	m.store(1, "d", y())
	m.fake.Fail(fakeembed.Fails)
	if got := m.store(1, "d", nil); got.Vector != VectorPending || m.vector(1) != nil {
		t.Errorf("%+v, %v", got, m.vector(1))
	}
}

func TestVectorDimensionsSideBySide(t *testing.T) { // V12
	m := openMemory(t, 4)
	ctx := t.Context()
	a := must[*AgentMemory](t)(Open(ctx, m.db, Config{Scope: "a", Dimension: 4})).Semantic()
	b := must[*AgentMemory](t)(Open(ctx, m.db, Config{Scope: "b", Dimension: 8})).Semantic()
	eight := []float32{1, 0, 0, 0, 0, 0, 0, 0}
	if err := a.Store(ctx, 1, "tide in a", x()); err != nil {
		t.Fatal(err)
	}
	if err := b.Store(ctx, 1, "tide in b", eight); err != nil {
		t.Fatal(err)
	}
	for s, v := range map[*SemanticMemory][]float32{a: x(), b: eight} {
		if got := must[[]Hit](t)(s.Query(ctx, v, 10)); len(got) != 1 || got[0].Score != 1 {
			t.Errorf("%s: %+v", s.CollectionName(), got)
		}
	}
	wantCode(t, a.Store(ctx, 2, "tide", eight), loci.ErrInvalidVector)
	res := must[*loci.SearchResult](t)(m.db.Search(ctx, loci.SearchRequest{Query: "tide", Kinds: []loci.Kind{loci.KindFact}, Filter: loci.ReadFilter{Scopes: []string{"a", "b"}}}))
	if len(res.Hits) != 2 {
		t.Errorf("%d hits", len(res.Hits))
	}
}

func TestBatchEmbeds(t *testing.T) { // B6
	m := openEmbedding(t, 16)
	many := make([]FactInput, 100)
	for i := range many {
		many[i] = fact(loci.PointID(i), fmt.Sprint("tide ", i), nil)
	}
	for _, fault := range []fakeembed.Fault{fakeembed.None, fakeembed.Fails} {
		m.fake.Fail(fault)
		r := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{Facts: many})).Value
		if r.Stored != 100 || r.Made+r.Pending != 100 || fault == fakeembed.Fails && r.Pending != 100 {
			t.Errorf("fault %d: %+v", fault, r)
		}
	}
	few := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{Facts: many[:10]})).Value
	if few.Pending != 10 {
		t.Errorf("%+v", few)
	}
	m.fake.Fail(fakeembed.None)
	m.embedPending()
	if got := m.query(m.fake.Vector("tide 7"), 1); len(got) != 1 || m.vector(99) == nil {
		t.Errorf("query %v", got)
	}
	if few := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{Facts: many[:10]})).Value; few.Made != 10 {
		t.Errorf("%+v", few)
	}
}

func TestVectorsSwitchedOff(t *testing.T) { // V13
	ctx := t.Context()
	for _, off := range []struct {
		name string
		set  func(e *loci.EmbeddingStore, on bool) error
	}{
		{"tier", func(e *loci.EmbeddingStore, on bool) error {
			_, err := e.SetVectorization(ctx, loci.DefaultNamespace, loci.TierAgent, on)
			return err
		}},
		{"namespace", func(e *loci.EmbeddingStore, on bool) error {
			_, err := e.SetNamespaceVectorization(ctx, loci.DefaultNamespace, on)
			return err
		}},
	} {
		t.Run(off.name, func(t *testing.T) {
			m := openEmbedding(t, 16)
			m.store(1, "tide", nil)
			set := func(on bool) {
				t.Helper()
				if err := off.set(m.db.Embeddings(), on); err != nil {
					t.Fatal(err)
				}
			}
			set(false)
			m.fake.Forget()
			want := func(what string, got, want VectorState) {
				t.Helper()
				if got != want {
					t.Errorf("%s: vector %q, want %q", what, got, want)
				}
			}
			want("the same text", m.store(1, "tide", nil).Vector, VectorMade)
			want("a vector", m.store(2, "ebb", m.fake.Vector("ebb")).Vector, VectorGiven)
			want("a text", m.store(3, "flood", nil).Vector, VectorNone)
			update := func(text string) VectorState {
				t.Helper()
				return must[*loci.Receipt[Stored]](t)(m.facts.UpdateMetadata(ctx, UpdateRequest{ID: 1, Updates: loci.Metadata(`{"content":"` + text + `"}`)})).Value.Vector
			}
			want("an update", update("lighthouse"), VectorNone)
			episode := must[*loci.Receipt[Stored]](t)(m.episodes.Record(ctx, EpisodeInput{PointInput: PointInput{ID: 1}, Description: "a boat"}))
			want("an episode", episode.Value.Vector, VectorNone)
			few := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(ctx, FactBatch{Facts: []FactInput{fact(4, "buoy", nil), fact(5, "lamp", nil)}})).Value
			if few.Stored != 2 || few.Made != 0 || few.Pending != 0 {
				t.Errorf("batch %+v", few)
			}
			if in := m.importsText(line("a", "", "Is the lamp lit?", T)); in.Stored != 1 || in.Pending != 0 {
				t.Errorf("import %+v", in)
			}
			wantIDs(t, "by words", m.words("flood"), 3)
			wantIDs(t, "by vector", m.query(m.fake.Vector("ebb"), 9), 2)
			if calls := m.fake.Calls(); len(calls) != 0 {
				t.Errorf("the embedder was called: %v", calls)
			}

			set(true)
			want("an update, switched on", update("pier"), VectorMade)
			m.embedPending()
			for id := loci.PointID(1); id <= 5; id++ {
				if m.vector(id) == nil {
					t.Errorf("no vector of %d", id)
				}
			}
		})
	}
}
