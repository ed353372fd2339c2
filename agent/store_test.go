package agent

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

func TestStoreAndGet(t *testing.T) { // S1
	m := openMemory(t, 4)
	if got := m.store(1, "tide at nine", d()); got.Vector != VectorGiven || got.Version != 1 || got.ID != 1 {
		t.Errorf("receipt %+v", got)
	}
	f := m.get(1)
	if f == nil || f.Content != "tide at nine" || f.ExpiresAtUS != nil || f.CreatedAtUS != T || f.RecordedAtUS != T || f.Scope != "public" {
		t.Errorf("got %+v", f)
	}
	m.store(2, "three and four", []float32{3, 4, 0, 0})
	if a, b := m.vector(1), m.vector(2); !slices.Equal(a, d()) || !slices.Equal(b, []float32{3, 4, 0, 0}) {
		t.Errorf("vectors %v, %v", a, b)
	}
}

func TestStoreReplacesEverything(t *testing.T) { // S2
	m := openMemory(t, 4)
	m.store(2, "text 2", x())
	m.store(1, "a", x(), withMetadata(`{"k":1}`), withTags("nova"), withTTL(60), withValidity(nil, new(T+day)), withThread("talk", 3))
	edge := m.relate(1, "causes", 2).ID
	m.clock.Set(T + second)
	if got := m.store(1, "b", y()); got.Version != 2 {
		t.Errorf("receipt %+v", got)
	}
	f := m.get(1)
	if f.Content != "b" || f.Metadata.String() != "{}" || len(f.Tags) != 0 || f.ExpiresAtUS != nil || f.ValidFromUS != nil || f.ValidToUS != nil ||
		f.Thread != "" || f.Position != nil || f.CreatedAtUS != T || f.UpdatedAtUS != T+second || f.RecordedAtUS != T+second {
		t.Errorf("got %+v", f)
	}
	if !slices.Equal(m.vector(1), y()) || m.count() != 2 {
		t.Errorf("vector %v, count %d", m.vector(1), m.count())
	}
	if got := m.relations(1); len(got) != 1 || got[0].ID != edge {
		t.Errorf("relations %+v", got)
	}
	// The place in the thread is free again.
	m.store(3, "text 3", x(), withThread("talk", 3))
}

func TestStoreDropsReservedKeys(t *testing.T) { // S3
	m := openMemory(t, 4)
	err := m.facts.StoreWithMetadata(t.Context(), 1, "mine", x(), loci.Metadata(`{"content":"other","_loci_x":1,"_loci_":2,"expires_at":5,"k":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if f := m.get(1); f.Content != "mine" || string(f.Metadata) != `{"expires_at":5,"k":1}` || f.ExpiresAtUS != nil {
		t.Errorf("got %+v", f)
	}
	m.clock.Set(T + 10_000*day)
	if m.get(1) == nil {
		t.Error("expired by what is data")
	}
}

func TestStoreMetadata(t *testing.T) { // S4
	m := openMemory(t, 4)
	deep := strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65)
	done := m.unchanged()
	for _, bad := range []string{`[1]`, `"a"`, `{"a":1,"a":2}`, deep, `{"a":"` + strings.Repeat("x", loci.MaxMetadataBytes) + `"}`, `{"a":1}x`} {
		_, err := m.facts.Put(t.Context(), fact(1, "text 1", x(), withMetadata(bad)))
		wantField(t, err, loci.ErrValidation, "metadata")
	}
	done()
	const literal = `{"z":1.0,"a":9007199254740993,"m":{"y":1e2,"b":[1.50]}}`
	m.store(1, "text 1", x(), withMetadata(literal))
	if got, ok, err := m.facts.GetMetadata(t.Context(), 1); err != nil || !ok || string(got) != literal {
		t.Errorf("metadata %s, %v, %v", got, ok, err)
	}
}

func TestStoreContent(t *testing.T) { // S5
	m := openMemory(t, 4)
	done := m.unchanged()
	for _, bad := range []string{"\xff", strings.Repeat("a", loci.MaxTextBytes+1)} {
		_, err := m.facts.Put(t.Context(), fact(1, bad, x()))
		wantField(t, err, loci.ErrValidation, "content")
	}
	done()
	m.store(1, "", x())
	wantIDs(t, "by vector", m.query(x(), 1), 1)
	e := openEmbedding(t, 16)
	for _, blank := range []string{"", "  "} {
		_, err := e.facts.Put(t.Context(), fact(1, blank, nil))
		wantField(t, err, loci.ErrValidation, "content")
	}
}

func TestStoreExpectedRevision(t *testing.T) { // S6
	m := openMemory(t, 4)
	m.store(1, "a", x())
	at := m.get(1).Revision
	expecting := func(id loci.PointID, r int64) error {
		in := fact(id, "b", x())
		in.ExpectedRevision = &r
		_, err := m.facts.Put(t.Context(), in)
		return err
	}
	done := m.unchanged()
	wantField(t, expecting(1, at-1), loci.ErrStaleRevision, "expected_revision")
	for _, r := range []int64{0, -1, at} {
		wantCode(t, expecting(2, r), loci.ErrStaleRevision)
	}
	done()
	if err := expecting(1, at); err != nil || m.get(1).Content != "b" {
		t.Errorf("%v", err)
	}
}

func TestStoreValidity(t *testing.T) { // S7
	m := openMemory(t, 4)
	for _, to := range []int64{10, 9} {
		_, err := m.facts.Put(t.Context(), fact(1, "text 1", x(), withValidity(new(int64(10)), &to)))
		wantField(t, err, loci.ErrValidation, "valid_to_us")
	}
	m.store(1, "text 1", x(), withValidity(new(int64(10)), new(int64(11))))
	m.store(2, "text 2", x(), withValidity(nil, new(int64(0))))
	m.store(3, "text 3", x(), withValidity(new(int64(0)), nil))
	wantIDs(t, "live", m.ids(), 1, 2, 3)
	for at, want := range map[int64][]loci.PointID{-1: {2}, 0: {3}, 10: {1, 3}, 11: {3}, math.MinInt64: {2}, T: {3}} {
		hits := must[*Hits](t)(m.facts.QueryHits(t.Context(), QueryRequest{Embedding: x(), Selection: Selection{AsOfValidUS: &at}}))
		wantIDs(t, fmt.Sprint("valid at ", at), hitIDs(hits.Hits), want...)
		found := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", Selection: Selection{AsOfValidUS: &at}}))
		got := hitIDs(found.Hits)
		slices.Sort(got)
		wantIDs(t, fmt.Sprint("by text, valid at ", at), got, want...)
	}
}

func TestBatch(t *testing.T) { // B1
	m := openMemory(t, 4)
	before := m.revision()
	r := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{Facts: []FactInput{
		fact(1, "text 1", x(), withMetadata(`{"k":1}`), withTTL(10)),
		fact(2, "text 2", d(), withMetadata(`{"k":2}`), withTTL(20)),
		fact(3, "text 3", y(), withMetadata(`{"k":3}`)),
	}}))
	if r.Revision != before+1 || m.revision() != before+1 || r.Value != (BatchResult{Stored: 3}) {
		t.Errorf("receipt %+v, revision before %d", r, before)
	}
	for i, f := range m.list() {
		if string(f.Metadata) != fmt.Sprintf(`{"k":%d}`, i+1) || i < 2 && *f.ExpiresAtUS != T+int64(i+1)*10*second || i == 2 && f.ExpiresAtUS != nil {
			t.Errorf("fact %+v", f)
		}
	}
}

func TestBatchChecksAll(t *testing.T) { // B2
	m := openMemory(t, 4)
	m.store(9, "text 9", x())
	done := m.unchanged()
	bad := map[string]FactInput{
		"facts[2].embedding": fact(3, "text 3", []float32{1, 2, 3, 4, 5}),
		"facts[2].metadata":  fact(3, "text 3", x(), withMetadata(`[1]`)),
		"facts[2].content":   fact(3, "\xff", x()),
	}
	for field, in := range bad {
		for _, again := range [][]FactInput{nil, {fact(3, "text 3", x())}} {
			err := m.facts.StoreBatch(t.Context(), slices.Concat([]FactInput{fact(1, "text 1", x()), fact(2, "text 2", x()), in}, again))
			if e := wantCode(t, err, loci.CodeOf(err)); e.Field != field || e.Code != loci.ErrValidation && e.Code != loci.ErrInvalidVector {
				t.Errorf("error %v names %q, want %q", err, e.Field, field)
			}
		}
	}
	nan := fact(3, "text 3", []float32{float32(math.NaN()), 0, 0, 0})
	wantField(t, m.facts.StoreBatch(t.Context(), []FactInput{fact(1, "a", x()), fact(2, "b", x()), nan}), loci.ErrInvalidVector, "facts[2].embedding")
	done()
}

func TestBatchLastOneCounts(t *testing.T) { // B3
	m := openMemory(t, 4)
	r := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{Facts: []FactInput{fact(1, "a", x()), fact(2, "b", x()), fact(1, "c", x())}}))
	if r.Value != (BatchResult{Stored: 2, Replaced: 1}) || m.get(1).Content != "c" || m.count() != 2 || len(m.history(1)) != 1 {
		t.Errorf("%+v: %+v, history %+v", r.Value, m.get(1), m.history(1))
	}
	for _, c := range []struct {
		facts []FactInput
		there bool
	}{
		{[]FactInput{fact(1, "a", x(), withTTL(60)), fact(1, "b", x())}, true},
		{[]FactInput{fact(1, "a", x()), fact(1, "b", x(), withTTL(0))}, false},
		{[]FactInput{fact(1, "a", x(), withTTL(0)), fact(1, "b", x())}, true},
	} {
		if err := m.facts.StoreBatch(t.Context(), c.facts); err != nil {
			t.Fatal(err)
		}
		if f := m.get(1); (f != nil) != c.there || f != nil && f.ExpiresAtUS != nil {
			t.Errorf("got %+v", f)
		}
	}
}

func TestBatchOverLiveAndExpired(t *testing.T) { // B4
	m := openMemory(t, 4)
	m.store(5, "text 5", x())
	m.store(6, "text 6", x(), withTTL(10))
	m.store(1, "text 1", x())
	m.relate(5, "causes", 1)
	m.relate(6, "causes", 1)
	m.clock.Set(T + 10*second)
	if err := m.facts.StoreBatch(t.Context(), []FactInput{fact(5, "new 5", y()), fact(6, "new 6", y()), fact(7, "new 7", y())}); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "live", m.ids(), 1, 5, 6, 7)
	for id, versions := range map[loci.PointID]int{5: 2, 6: 1, 7: 1} {
		edges := 0
		if id == 5 {
			edges = 1
		}
		if len(m.history(id)) != versions || len(m.relations(id)) != edges || m.get(id).Content != fmt.Sprint("new ", id) {
			t.Errorf("%d: %+v, relations %+v, history %+v", id, m.get(id), m.relations(id), m.history(id))
		}
	}
	if m.get(6).CreatedAtUS != T+10*second || m.get(5).CreatedAtUS != T {
		t.Errorf("created %d and %d", m.get(6).CreatedAtUS, m.get(5).CreatedAtUS)
	}
}

func TestBatchSizes(t *testing.T) { // B5
	m := openMemory(t, 4)
	before := m.revision()
	r := must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{}))
	if r.Value != (BatchResult{}) || m.revision() != before {
		t.Errorf("an empty batch: %+v, revision %d after %d", r, m.revision(), before)
	}
	many := make([]FactInput, MaxBatch+1)
	for i := range many {
		many[i] = fact(1, "text 1", x())
	}
	wantField(t, m.facts.StoreBatch(t.Context(), many), loci.ErrValidation, "facts")
	if testing.Short() {
		return
	}
	for i := range many {
		many[i].ID = loci.PointID(i)
	}
	if err := m.facts.StoreBatch(t.Context(), many[:MaxBatch]); err != nil || m.count() != MaxBatch || m.revision() != before+1 {
		t.Errorf("%v, count %d", err, m.count())
	}
}

func TestStoreInThread(t *testing.T) {
	m := openMemory(t, 4)
	m.store(1, "text 1", x(), withThread("talk", 3))
	done := m.unchanged()
	_, err := m.facts.Put(t.Context(), fact(2, "text 2", x(), withThread("talk", 3)))
	wantField(t, err, loci.ErrConflict, "position")
	if strings.Contains(err.Error(), "record") {
		t.Errorf("the error speaks of records: %v", err)
	}
	_, err = m.facts.Put(t.Context(), fact(2, "text 2", x(), func(in *FactInput) { in.Position = new(int64(1)) }))
	wantField(t, err, loci.ErrValidation, "position")
	done()
	m.store(1, "text 1 again", x(), withThread("talk", 3))
	wantIDs(t, "in the thread", hitIDs(must[*Hits](t)(m.facts.QueryHits(t.Context(), QueryRequest{Embedding: x(), Selection: Selection{Thread: new("talk")}})).Hits), 1)
}
