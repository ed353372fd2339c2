package agent

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// The clock of tests stands at T until it is moved. All are UTC microseconds.
const (
	T      = int64(1_000_000_000_000_000)
	second = int64(1_000_000)
	day    = 86_400 * second
)

// The vectors that cases speak of.
func x() []float32 { return []float32{1, 0, 0, 0} }
func y() []float32 { return []float32{0, 1, 0, 0} }
func d() []float32 { return []float32{0.6, 0.8, 0, 0} }

// testClock stands still until it is moved, forward or back.
type testClock struct {
	mu sync.Mutex
	at int64
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.UnixMicro(c.at)
}

// Set moves the clock to a time.
func (c *testClock) Set(us int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = us
}

// testMemory is an open store with a memory in the default namespace and scope.
// Nothing happens in its background.
type testMemory struct {
	*AgentMemory
	t     testing.TB
	dir   string
	clock *testClock
	db    *loci.DB
	fake  *fakeembed.Embedder // nil without one

	facts      *SemanticMemory
	episodes   *EpisodicMemory
	procedures *ProceduralMemory
}

// openMemory makes a memory of a dimension in a new store.
func openMemory(t testing.TB, dimension int) *testMemory {
	t.Helper()
	m := &testMemory{t: t, dir: t.TempDir(), clock: &testClock{at: T}}
	m.open(dimension)
	t.Cleanup(func() { m.db.Close() })
	return m
}

// openEmbedding is openMemory with an embedder for the memory's vectors. Their space
// is "words".
func openEmbedding(t testing.TB, dimension int) *testMemory {
	t.Helper()
	m := &testMemory{t: t, dir: t.TempDir(), clock: &testClock{at: T}, fake: fakeembed.New(dimension)}
	m.open(dimension)
	t.Cleanup(func() { m.db.Close() })
	return m
}

// open opens the store and the memory.
func (m *testMemory) open(dimension int) {
	m.t.Helper()
	m.db = openDB(m.t, m.dir, m.clock)
	if m.fake != nil {
		bindEmbedder(m.t, m.db, "words", m.fake)
	}
	m.AgentMemory = must[*AgentMemory](m.t)(Open(m.t.Context(), m.db, Config{Dimension: dimension}))
	m.facts, m.episodes, m.procedures = m.Semantic(), m.Episodic(), m.Procedural()
}

// reopen closes the store and opens it again.
func (m *testMemory) reopen() {
	m.t.Helper()
	if err := m.db.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.open(0)
}

// sweep removes what has expired.
func (m *testMemory) sweep() int64 {
	m.t.Helper()
	return must[int64](m.t)(m.link.Sweep(m.t.Context()))
}

// embedPending does what the background would with vectors that are missing.
func (m *testMemory) embedPending() {
	m.t.Helper()
	must[*loci.Receipt[loci.EmbeddingReport]](m.t)(m.db.Embeddings().Sync(m.t.Context(), m.space, loci.EmbeddingSyncOptions{}))
}

// revision is the store's.
func (m *testMemory) revision() int64 {
	m.t.Helper()
	return must[*loci.HealthReport](m.t)(m.db.Health(m.t.Context())).Revision
}

// deepCheck fails unless the store is sound.
func (m *testMemory) deepCheck() *loci.HealthReport {
	m.t.Helper()
	h := must[*loci.HealthReport](m.t)(m.db.DeepHealth(m.t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
		m.t.Errorf("integrity %q, %d foreign key errors", h.Integrity, h.ForeignKeyErrors)
	}
	return h
}

// unchanged gives a function that fails unless the facts and the revision are as they
// are now.
func (m *testMemory) unchanged() func() {
	m.t.Helper()
	before, facts := m.revision(), m.list()
	return func() {
		m.t.Helper()
		if now := m.revision(); now != before {
			m.t.Errorf("revision %d, before %d: something was written", now, before)
		}
		if got := m.list(); asJSON(m.t, got) != asJSON(m.t, facts) {
			m.t.Errorf("facts %s, before %s", asJSON(m.t, got), asJSON(m.t, facts))
		}
	}
}

// store stores a fact and gives what became of it.
func (m *testMemory) store(id loci.PointID, content string, v []float32, with ...func(*FactInput)) Stored {
	m.t.Helper()
	return must[*loci.Receipt[Stored]](m.t)(m.facts.Put(m.t.Context(), fact(id, content, v, with...))).Value
}

// fact is an input.
func fact(id loci.PointID, content string, v []float32, with ...func(*FactInput)) FactInput {
	in := FactInput{PointInput: PointInput{ID: id, Embedding: v}, Content: content}
	for _, f := range with {
		f(&in)
	}
	return in
}

func withTTL(seconds uint64) func(*FactInput) {
	return func(in *FactInput) { in.TTLSeconds = &seconds }
}

func withMetadata(raw string) func(*FactInput) {
	return func(in *FactInput) { in.Metadata = loci.Metadata(raw) }
}

func withTags(tags ...string) func(*FactInput) { return func(in *FactInput) { in.Tags = tags } }

func withThread(thread string, position int64) func(*FactInput) {
	return func(in *FactInput) { in.Thread, in.Position = &thread, &position }
}

// withValidity sets when a fact holds; nil is open.
func withValidity(from, to *int64) func(*FactInput) {
	return func(in *FactInput) { in.ValidFromUS, in.ValidToUS = from, to }
}

// get gives a live fact, or nil.
func (m *testMemory) get(id loci.PointID) *loci.Fact {
	m.t.Helper()
	return must[*Found[loci.Fact]](m.t)(m.facts.Get(m.t.Context(), GetRequest{ID: id})).Point
}

// vector gives a live fact's vector, or nil.
func (m *testMemory) vector(id loci.PointID) []float32 {
	m.t.Helper()
	return must[*Found[loci.Fact]](m.t)(m.facts.Get(m.t.Context(), GetRequest{ID: id, WithEmbedding: true})).Embedding
}

// list gives all live facts.
func (m *testMemory) list() (out []loci.Fact) {
	m.t.Helper()
	for cursor := ""; ; {
		page := must[*Page[loci.Fact]](m.t)(m.facts.List(m.t.Context(), ListRequest{Limit: new(1000), Cursor: cursor}))
		out = append(out, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return out
		}
	}
}

// ids are the ids of all live facts.
func (m *testMemory) ids() []loci.PointID {
	m.t.Helper()
	out := []loci.PointID{}
	for _, f := range m.list() {
		out = append(out, f.ID)
	}
	return out
}

// count is the number of live facts.
func (m *testMemory) count() int64 {
	m.t.Helper()
	return must[*Count](m.t)(m.facts.Count(m.t.Context())).Count
}

// query gives the ids of the facts nearest to a vector.
func (m *testMemory) query(v []float32, k int) []loci.PointID {
	m.t.Helper()
	return hitIDs(must[[]Hit](m.t)(m.facts.Query(m.t.Context(), v, k)))
}

// words gives the ids of the facts that a text finds.
func (m *testMemory) words(text string) []loci.PointID {
	m.t.Helper()
	return hitIDs(must[*Hits](m.t)(m.facts.QueryText(m.t.Context(), TextRequest{Text: text})).Hits)
}

func hitIDs(hits []Hit) []loci.PointID {
	out := make([]loci.PointID, len(hits))
	for i, h := range hits {
		out[i] = h.ID
	}
	return out
}

func wantIDs(t testing.TB, what string, got []loci.PointID, want ...loci.PointID) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: ids %v, want %v", what, got, want)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

// openDB opens a store in whose background nothing happens.
func openDB(t testing.TB, dir string, clock *testClock) *loci.DB {
	t.Helper()
	return must[*loci.DB](t)(loci.Open(t.Context(), dir, quiet(clock)))
}

// quiet are options for a store in whose background nothing happens.
func quiet(clock *testClock) *loci.Options {
	return &loci.Options{Clock: clock.Now, WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true}
}

// bindEmbedder registers a space, if need be, and an embedder for it.
func bindEmbedder(t testing.TB, db *loci.DB, space string, e *fakeembed.Embedder) {
	t.Helper()
	must[*loci.Receipt[loci.EmbeddingSpace]](t)(db.Embeddings().RegisterSpace(t.Context(),
		loci.EmbeddingSpace{ID: space, Model: "fake", Dimension: len(e.Vector("x"))}))
	if err := db.Embeddings().RegisterEmbedder(t.Context(), space, e, nil); err != nil {
		t.Fatal(err)
	}
	e.Forget()
}

// wantCode fails unless an error has a code, and names an operation.
func wantCode(t testing.TB, err error, code loci.Code) *loci.Error {
	t.Helper()
	var e *loci.Error
	if !errors.As(err, &e) || !errors.Is(err, code) {
		t.Fatalf("error %v, want code %s", err, code)
	}
	if e.Op == "" {
		t.Errorf("error %v names no operation", err)
	}
	return e
}

// wantField is wantCode for an error that names a field.
func wantField(t testing.TB, err error, code loci.Code, field string) {
	t.Helper()
	if e := wantCode(t, err, code); e.Field != field {
		t.Errorf("error %v names the field %q, want %q", err, e.Field, field)
	}
}

func must[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// relations are the relations that go out from a fact.
func (m *testMemory) relations(id loci.PointID) []Edge {
	m.t.Helper()
	return must[*Edges](m.t)(m.facts.Relations(m.t.Context(), RelationsRequest{ID: id})).Edges
}
