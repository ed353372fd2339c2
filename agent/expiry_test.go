package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
)

// gone fails unless nothing of a fact can be seen.
func (m *testMemory) gone(id loci.PointID) {
	m.t.Helper()
	ctx := m.t.Context()
	if m.get(id) != nil || slices.Contains(m.ids(), id) || slices.Contains(m.query(x(), 100), id) || slices.Contains(m.words("text tide"), id) || len(m.history(id)) != 0 {
		m.t.Errorf("%d can still be seen", id)
	}
	for _, approximate := range []bool{false, true} {
		hits := must[*Hits](m.t)(m.facts.QueryHits(ctx, QueryRequest{Embedding: x(), Approximate: approximate, Selection: Selection{Filter: loci.Metadata(`{"k":1}`)}}))
		if slices.Contains(hitIDs(hits.Hits), id) {
			m.t.Errorf("a query finds %d", id)
		}
	}
	if _, ok, err := m.facts.GetMetadata(ctx, id); ok || err != nil {
		m.t.Errorf("metadata of %d: %v", id, err)
	}
	for _, f := range must[[]IDContent](m.t)(m.facts.ListAll(ctx)) {
		if f.ID == id {
			m.t.Errorf("list_all gives %d", id)
		}
	}
	res := must[*loci.SearchResult](m.t)(m.db.Search(ctx, loci.SearchRequest{Query: "text tide", Kinds: []loci.Kind{loci.KindFact}, Limit: new(1000)}))
	for _, h := range res.Hits {
		if f, ok := h.Record.(*loci.Fact); !ok || f.ID == id {
			m.t.Errorf("search finds %d", id)
		}
	}
}

func TestExpiryToTheMicrosecond(t *testing.T) { // T1
	m := openMemory(t, 4)
	if err := m.facts.StoreWithTTL(t.Context(), 1, "tide", x(), 10); err != nil {
		t.Fatal(err)
	}
	if f := m.get(1); *f.ExpiresAtUS != T+10*second {
		t.Errorf("got %+v", f)
	}
	m.clock.Set(T + 10*second - 1)
	if m.get(1) == nil || m.count() != 1 || len(m.query(x(), 1)) != 1 || len(m.words("tide")) != 1 {
		t.Error("expired before its time")
	}
	m.clock.Set(T + 10*second)
	m.gone(1)
	if m.count() != 0 {
		t.Error("counted")
	}
}

func TestExpiredIsNowhere(t *testing.T) { // T2
	m := openMemory(t, 4)
	m.store(1, "text tide", x(), withTTL(10), withMetadata(`{"k":1}`))
	m.store(2, "text 2", x())
	edge := m.relate(2, "causes", 1)
	out := m.relate(1, "causes", 2)
	m.clock.Set(T + 10*second)
	done := m.unchanged()
	m.gone(1)
	if m.count() != 1 || len(m.relations(2)) != 0 || len(m.relations(1)) != 0 {
		t.Errorf("count %d, relations %+v", m.count(), m.relations(2))
	}
	if got := must[*Matches](t)(m.facts.Match(t.Context(), MatchRequest{Type: "causes"})); len(got.Matches) != 0 {
		t.Errorf("matches %+v", got)
	}
	ctx := t.Context()
	wantField(t, m.facts.SetTTLDurable(ctx, 1, 5), loci.ErrNotFound, "id")
	_, err := m.facts.ClearTTL(ctx, 1)
	wantCode(t, err, loci.ErrNotFound)
	m.failUpdate(loci.ErrNotFound, "id", 1, `{"k":2}`)
	_, err = m.facts.Relate(ctx, RelateRequest{From: 2, To: 1, Type: "knows"})
	wantCode(t, err, loci.ErrNotFound)
	_, err = m.facts.Supersede(ctx, SupersedeRequest{Old: 1, New: 2})
	wantCode(t, err, loci.ErrNotFound)
	for _, id := range []loci.PointID{edge.ID, out.ID} {
		if r := must[*loci.Receipt[bool]](t)(m.facts.Unrelate(ctx, id)); r.Value {
			t.Error("an edge to what is expired was there")
		}
	}
	if r := must[*loci.Receipt[bool]](t)(m.facts.Delete(ctx, 1)); r.Value {
		t.Error("deleted")
	}
	done()
	if n := m.sweep(); n != 1 {
		t.Errorf("%d swept", n)
	}
	m.deepCheck()
}

func TestExpiredTakesNoPlace(t *testing.T) { // T3
	m := openMemory(t, 4)
	m.store(1, "tide tide", x(), withTTL(10), withMetadata(`{"k":1}`))
	m.store(2, "tide", d(), withMetadata(`{"k":1}`))
	m.store(3, "tide and more", y(), withMetadata(`{"k":1}`))
	m.clock.Set(T + 10*second)
	for name, req := range map[string]QueryRequest{
		"query":       {},
		"filtered":    {Selection: Selection{Filter: loci.Metadata(`{"k":1}`)}},
		"approximate": {Approximate: true},
	} {
		req.Embedding, req.K = x(), new(2)
		wantIDs(t, name, hitIDs(must[*Hits](t)(m.facts.QueryHits(t.Context(), req)).Hits), 2, 3)
	}
	got := hitIDs(must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "tide", K: new(2)})).Hits)
	wantIDs(t, "by words", got, 2, 3)
}

func TestTTLZero(t *testing.T) { // T4
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	m.store(1, "tide again", x())
	m.store(2, "ebb", x())
	m.relate(2, "causes", 1)
	done := m.unchanged()
	wantCode(t, m.facts.StoreWithTTL(t.Context(), 1, "tide", []float32{1, 2, 3}, 0), loci.ErrInvalidVector)
	wantField(t, m.facts.StoreWithTTL(t.Context(), 1, "\xff", x(), 0), loci.ErrValidation, "content")
	done()
	if got := m.store(1, "tide", x(), withTTL(0)); got != (Stored{ID: 1}) {
		t.Errorf("receipt %+v", got)
	}
	m.gone(1)
	if m.count() != 1 || len(m.relations(2)) != 0 {
		t.Errorf("count %d, relations %+v", m.count(), m.relations(2))
	}
	done = m.unchanged()
	m.store(9, "tide", x(), withTTL(0))
	done()
}

func TestSetTTL(t *testing.T) { // T5
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	m.clock.Set(T + 5*second)
	if err := m.facts.SetTTLDurable(t.Context(), 1, 30); err != nil || *m.get(1).ExpiresAtUS != T+35*second {
		t.Errorf("%v, %+v", err, m.get(1))
	}
	clear := func() (*loci.Receipt[Stored], error) { return m.facts.ClearTTL(t.Context(), 1) }
	must[*loci.Receipt[Stored]](t)(clear())
	if f := m.get(1); f.ExpiresAtUS != nil {
		t.Errorf("got %+v", f)
	}
	done := m.unchanged()
	must[*loci.Receipt[Stored]](t)(clear())
	done()
	m.wantHistory(1, "tide")
	m.clock.Set(T + 40*second)
	wantIDs(t, "by vector", m.query(x(), 1), 1)
	if err := m.facts.SetTTLDurable(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	m.gone(1)
	wantField(t, m.facts.SetTTLDurable(t.Context(), 1, 0), loci.ErrNotFound, "id")
}

func TestTTLsWithoutEnd(t *testing.T) { // T6
	m := openMemory(t, 4)
	for i, ttl := range []uint64{math.MaxInt64, math.MaxUint64, 10_000_000_000_000} {
		id := loci.PointID(i)
		m.store(id, "tide", x(), withTTL(ttl))
		if f := m.get(id); f == nil || *f.ExpiresAtUS != math.MaxInt64 {
			t.Errorf("ttl %d: %+v", ttl, f)
		}
	}
	for _, bad := range []string{`-1`, `0.5`, `18446744073709551616`, `"5"`} {
		var in FactInput
		if json.Unmarshal(fmt.Appendf(nil, `{"ttl_seconds":%s}`, bad), &in) == nil {
			t.Errorf("a TTL of %s was taken", bad)
		}
	}
}

func TestClockGoesBack(t *testing.T) { // T8
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withTTL(10))
	m.clock.Set(T + 10*second)
	m.gone(1)
	m.clock.Set(T - day)
	m.gone(1)
	m.clock.Set(T - day + 20*second)
	m.store(2, "ebb", x(), withTTL(10))
	if f := m.get(2); *f.ExpiresAtUS != T+40*second {
		t.Errorf("got %+v", f)
	}
	m.clock.Set(T - day + 30*second)
	m.gone(2)
}

func TestClockIsKept(t *testing.T) { // T9
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withTTL(10))
	m.clock.Set(T + 20*second)
	m.gone(1)
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	m.clock.Set(T)
	m.open(4)
	m.gone(1)
	m.store(2, "ebb", x(), withTTL(5))
	if f := m.get(2); *f.ExpiresAtUS != T+25*second {
		t.Errorf("got %+v", f)
	}
}

func TestClockJumps(t *testing.T) { // T10
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withTTL(3600))
	m.clock.Set(T + day)
	m.gone(1)
	m.clock.Set(T)
	m.gone(1)
	m.store(2, "ebb", x(), withTTL(10))
	if f := m.get(2); *f.ExpiresAtUS != T+day+10*second {
		t.Errorf("got %+v", f)
	}
}

func TestStoreOverExpired(t *testing.T) { // T12
	m := openMemory(t, 4)
	m.store(2, "text 2", x())
	m.store(1, "first", x(), withTTL(10), withMetadata(`{"k":1}`))
	m.store(1, "second", x(), withTTL(10), withMetadata(`{"k":1}`))
	m.relate(1, "causes", 2)
	m.relate(2, "causes", 1)
	m.clock.Set(T + 10*second)
	m.store(1, "new", x())
	f := m.get(1)
	if f.Metadata.String() != "{}" || f.Version != 1 || f.CreatedAtUS != T+10*second || len(m.history(1)) != 1 || len(m.relations(1)) != 0 || len(m.relations(2)) != 0 {
		t.Errorf("got %+v, history %q", f, m.history(1))
	}
	if n := m.sweep(); n != 0 {
		t.Errorf("%d swept", n)
	}
	wantIDs(t, "live", m.ids(), 1, 2)
	m.deepCheck()
}

func TestManyExpireAtOnce(t *testing.T) { // T13
	m := openMemory(t, 4)
	n := 50_000
	if testing.Short() {
		n = 1000
	}
	m.storeMany(n, withTTL(10))
	m.relate(1, "causes", 2)
	m.store(2, "second", x(), withTTL(10))
	m.clock.Set(T + 10*second)
	if m.count() != 0 || len(m.query(x(), 10)) != 0 {
		t.Errorf("count %d", m.count())
	}
	before := m.revision()
	stored := make(chan error)
	go func() { stored <- m.facts.Store(t.Context(), 1<<40, "in between", x()) }()
	if swept := m.sweep(); swept != int64(n) {
		t.Errorf("%d swept of %d", swept, n)
	}
	if err := <-stored; err != nil {
		t.Error(err)
	}
	if transactions := m.revision() - before; transactions < 4 {
		t.Errorf("%d transactions", transactions)
	}
	wantIDs(t, "live", m.ids(), 1<<40)
	if h := m.deepCheck(); h.RecordCount != 1 || h.Vectors != 1 {
		t.Errorf("%d records, %d vectors", h.RecordCount, h.Vectors)
	}
}

func TestExpiryAfterReopen(t *testing.T) { // T7
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	ctx := t.Context()
	must[*loci.Receipt[Stored]](t)(m.episodes.Record(ctx, EpisodeInput{PointInput: PointInput{ID: 1}, Description: "tide"}))
	must[*loci.Receipt[Stored]](t)(m.procedures.Learn(ctx, ProcedureInput{PointInput: PointInput{ID: 1}, Name: "tide", Steps: []string{"wait"}}))
	stores := []*points{&m.facts.points, &m.episodes.points, &m.procedures.points}
	for i, s := range stores {
		must[*loci.Receipt[Stored]](t)(s.SetTTL(ctx, TTLRequest{ID: 1, TTLSeconds: 60}))
		for j, other := range stores {
			p, _, err := other.get(ctx, GetRequest{ID: 1})
			if err != nil || (p.Expires != nil) != (j <= i) {
				t.Errorf("after %s, %s expires at %v: %v", s.noun, other.noun, p.Expires, err)
			}
		}
	}
	m.reopen()
	for at, want := range map[int64]int64{0: 1, 60*second - 1: 1} {
		m.clock.Set(T + at)
		for _, s := range []*points{&m.facts.points, &m.episodes.points, &m.procedures.points} {
			if n := must[*Count](t)(s.Count(ctx)); n.Count != want {
				t.Errorf("at %d, %s: %d", at, s.noun, n.Count)
			}
		}
	}
	m.clock.Set(T + 60*second)
	for _, s := range []*points{&m.facts.points, &m.episodes.points, &m.procedures.points} {
		if n := must[*Count](t)(s.Count(ctx)); n.Count != 0 {
			t.Errorf("%s: %d", s.noun, n.Count)
		}
	}
}
