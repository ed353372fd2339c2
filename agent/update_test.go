package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// update merges into a fact's metadata.
func (m *testMemory) update(id loci.PointID, updates string) Stored {
	m.t.Helper()
	return must[*loci.Receipt[Stored]](m.t)(m.facts.UpdateMetadata(m.t.Context(), UpdateRequest{ID: id, Updates: loci.Metadata(updates)})).Value
}

// failUpdate fails unless an update is refused.
func (m *testMemory) failUpdate(code loci.Code, field string, id loci.PointID, updates string) {
	m.t.Helper()
	_, err := m.facts.UpdateMetadata(m.t.Context(), UpdateRequest{ID: id, Updates: loci.Metadata(updates)})
	wantField(m.t, err, code, field)
}

func TestUpdateIsShallow(t *testing.T) { // M1
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withMetadata(`{"a":1,"b":{"x":1,"y":2}}`))
	if got := m.update(1, `{"b":{"x":9},"c":3,"a":null}`); got.Version != 2 || got.Vector != VectorGiven {
		t.Errorf("receipt %+v", got)
	}
	if got := m.get(1).Metadata; string(got) != `{"b":{"x":9},"c":3}` {
		t.Errorf("metadata %s", got)
	}
}

func TestUpdateLeavesTheRest(t *testing.T) { // M2
	m := openMemory(t, 4)
	m.store(1, "tide", d(), withTTL(60), withValidity(new(T-day), new(T+day)), withTags("nova"), withThread("talk", 2))
	m.clock.Set(T + second)
	m.update(1, `{"k":1}`)
	f := m.get(1)
	if *f.ExpiresAtUS != T+60*second || *f.ValidFromUS != T-day || *f.ValidToUS != T+day || !slices.Equal(f.Tags, []string{"nova"}) ||
		f.Thread != "talk" || *f.Position != 2 || f.CreatedAtUS != T || f.UpdatedAtUS != T+second || f.RecordedAtUS != T+second || !slices.Equal(m.vector(1), d()) {
		t.Errorf("got %+v", f)
	}
	m.wantHistory(1, "tide", "tide")
	for name, where := range map[string]Selection{"tags": {Tags: []string{"nova"}}, "metadata": {Filter: loci.Metadata(`{"k":1}`)}, "thread": {Thread: new("talk")}} {
		wantIDs(t, name, hitIDs(must[*Hits](t)(m.facts.QueryHits(t.Context(), QueryRequest{Embedding: x(), Selection: where})).Hits), 1)
	}
	m.clock.Set(T + 60*second)
	wantIDs(t, "expired", m.ids())
}

func TestUpdateContent(t *testing.T) { // M3
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	m.update(1, `{"content":"lighthouse"}`)
	if f := m.get(1); f.Content != "lighthouse" || f.Metadata.String() != "{}" || !slices.Equal(m.vector(1), x()) {
		t.Errorf("got %+v", f)
	}
	wantIDs(t, "lighthouse", m.words("lighthouse"), 1)
	wantIDs(t, "tide", m.words("tide"))

	e := openEmbedding(t, 16)
	e.store(1, "tide", nil)
	if got := e.update(1, `{"content":"lighthouse"}`); got.Vector != VectorMade {
		t.Errorf("receipt %+v", got)
	}
	if hits := must[[]Hit](t)(e.facts.Query(t.Context(), e.fake.Vector("lighthouse"), 1)); len(hits) != 1 || !near(hits[0].Score, 1) {
		t.Errorf("hits %+v", hits)
	}
	e.fake.Fail(fakeembed.Fails)
	if got := e.update(1, `{"content":"harbour"}`); got.Vector != VectorPending || e.vector(1) != nil {
		t.Errorf("receipt %+v, vector %v", got, e.vector(1))
	}
	e.fake.Fail(fakeembed.None)
	e.embedPending()
	if hits := must[[]Hit](t)(e.facts.Query(t.Context(), e.fake.Vector("harbour"), 1)); len(hits) != 1 || !near(hits[0].Score, 1) {
		t.Errorf("hits %+v", hits)
	}
	// A vector that the caller gave stays, and no model is asked.
	given := e.fake.Vector("given")
	e.store(2, "tide", given)
	e.fake.Forget()
	if got := e.update(2, `{"content":"harbour"}`); got.Vector != VectorGiven || !slices.Equal(e.vector(2), given) {
		t.Errorf("receipt %+v, vector %v", got, e.vector(2))
	}
	e.embedPending()
	if !slices.Equal(e.vector(2), given) {
		t.Errorf("vector %v", e.vector(2))
	}
}

func TestUpdateContentThatIsNone(t *testing.T) { // M4
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withMetadata(`{"k":1}`))
	done := m.unchanged()
	for _, bad := range []string{`null`, `5`, `["a"]`, `"` + strings.Repeat("a", loci.MaxTextBytes+1) + `"`} {
		m.failUpdate(loci.ErrValidation, "updates.content", 1, `{"content":`+bad+`,"k":2}`)
	}
	for _, bad := range []string{`[1]`, `"a"`, `{"a":1,"a":2}`, `{`} {
		m.failUpdate(loci.ErrValidation, "updates", 1, bad)
	}
	done()
}

func TestUpdateOfNothing(t *testing.T) { // M5
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withMetadata(`{"k":1}`))
	done := m.unchanged()
	for _, same := range []string{`{"k":1.0}`, `{"zz":null}`, `{"_loci_x":1}`, `{"content":"tide"}`, `{}`, ``} {
		if got := m.update(1, same); got.Version != 1 || got.Vector != VectorGiven {
			t.Errorf("%s: %+v", same, got)
		}
	}
	done()
	m.wantHistory(1, "tide")
}

func TestUpdateExpectedRevision(t *testing.T) { // M6
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withMetadata(`{"k":1}`))
	at := m.get(1).Revision
	expecting := func(r int64) error {
		_, err := m.facts.UpdateMetadata(t.Context(), UpdateRequest{ID: 1, Updates: loci.Metadata(`{"k":2}`), ExpectedRevision: &r})
		return err
	}
	done := m.unchanged()
	wantField(t, expecting(at-1), loci.ErrStaleRevision, "expected_revision")
	done()
	if err := expecting(at); err != nil || string(m.get(1).Metadata) != `{"k":2}` {
		t.Errorf("%v, %+v", err, m.get(1))
	}
	half := strings.Repeat("x", loci.MaxMetadataBytes/2)
	m.update(1, fmt.Sprintf(`{"a":%q}`, half))
	done = m.unchanged()
	m.failUpdate(loci.ErrValidation, "updates", 1, fmt.Sprintf(`{"b":%q}`, half))
	done()
	m.update(1, fmt.Sprintf(`{"a":null,"b":%q}`, half))
}

func TestUpdateOfNoPoint(t *testing.T) { // M7
	m := openMemory(t, 4)
	m.store(2, "deleted", x())
	m.store(3, "expired", x(), withTTL(10))
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 2))
	m.clock.Set(T + 10*second)
	done := m.unchanged()
	for id := range loci.PointID(4) {
		m.failUpdate(loci.ErrNotFound, "id", id, `{"k":1}`)
	}
	done()
}
