package agent

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
)

func (m *testMemory) supersede(old, successor loci.PointID, from ...int64) Superseded {
	m.t.Helper()
	req := SupersedeRequest{Old: old, New: successor}
	if len(from) > 0 {
		req.FromUS = &from[0]
	}
	return must[*loci.Receipt[Superseded]](m.t)(m.facts.Supersede(m.t.Context(), req)).Value
}

func (m *testMemory) failSupersede(code loci.Code, field string, old, successor loci.PointID, from ...int64) {
	m.t.Helper()
	check := m.unchanged()
	req := SupersedeRequest{Old: old, New: successor}
	if len(from) > 0 {
		req.FromUS = &from[0]
	}
	_, err := m.facts.Supersede(m.t.Context(), req)
	wantField(m.t, err, code, field)
	check()
}

// wantValidity checks when a fact holds, in seconds from T; nil is open.
func (m *testMemory) wantValidity(id loci.PointID, from, to *int64) {
	m.t.Helper()
	text := func(at *int64) string {
		if at == nil {
			return "open"
		}
		return fmt.Sprintf("T%+ds", *at)
	}
	since := func(at *int64) *int64 {
		if at == nil {
			return nil
		}
		return new((*at - T) / second)
	}
	f := m.get(id)
	if got, want := text(since(f.ValidFromUS))+" to "+text(since(f.ValidToUS)), text(from)+" to "+text(to); got != want {
		m.t.Errorf("fact %d holds from %s, want %s", id, got, want)
	}
}

func after(seconds int64) *int64 { return &seconds }

// currentAt are the ids of the facts that hold at a time.
func (m *testMemory) currentAt(at int64) []loci.PointID {
	m.t.Helper()
	return hitIDs(must[*Hits](m.t)(m.facts.QueryHits(m.t.Context(), QueryRequest{Embedding: x(), Selection: Selection{AsOfValidUS: &at}})).Hits)
}

func TestSupersede(t *testing.T) { // H8
	m := openMemory(t, 4)
	m.storeAll(1, 2)
	m.clock.Set(T + second)
	r := m.supersede(1, 2, T+5*second)
	if r.Old != 1 || r.New != 2 || r.ValidToUS != T+5*second || r.ValidFromUS != T+5*second || r.EdgeID == 0 {
		t.Errorf("%+v", r)
	}
	m.wantValidity(1, nil, after(5))
	m.wantValidity(2, after(5), nil)
	m.wantRelations(&m.facts.points, 2, "fact 2 -supersedes-> fact 1")
	wantIDs(t, "before", m.currentAt(T+5*second-1), 1)
	wantIDs(t, "from then on", m.currentAt(T+5*second), 2)
	if f := m.believed(1, T+second-1); f.ValidToUS != nil {
		t.Errorf("valid to %d before that was said", *f.ValidToUS)
	}
	if f := m.believed(1, T+second); f.ValidToUS == nil {
		t.Error("no end once that was said")
	}
	if v := m.vector(1); len(v) != 4 || m.get(1).Content != "text 1" {
		t.Errorf("vector %v, fact %+v", v, m.get(1))
	}
	m.clock.Set(T + 6*second) // search follows
	wantIDs(t, "words", m.words("text"), 2)
	m.reopen()
	wantIDs(t, "words after a reopen", m.words("text"), 2)
	wantIDs(t, "query after a reopen", m.query(x(), 9), 2)
}

func TestSupersedeAgain(t *testing.T) { // H9
	m := openMemory(t, 4)
	m.storeAll(1, 2, 3)
	first := m.supersede(1, 2, T+5*second)
	check := m.unchanged()
	if again := m.supersede(1, 2, T+5*second); again != first {
		t.Errorf("%+v, before %+v", again, first)
	}
	m.clock.Set(T + 60*second)
	if again := m.supersede(1, 2); again != first {
		t.Errorf("%+v without a time, before %+v", again, first)
	}
	check()
	m.failSupersede(loci.ErrConflict, "old", 1, 3)
	m.failSupersede(loci.ErrConflict, "old", 1, 3, T+5*second)
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 2))
	if r := m.supersede(1, 3); r.ValidToUS != T+5*second || r.ValidFromUS != T+60*second {
		t.Errorf("%+v: an end is not put off, and the default is now", r)
	}
	m.wantRelations(&m.facts.points, 3, "fact 3 -supersedes-> fact 1")
}

func TestSupersedeChecks(t *testing.T) { // H10, I5
	m := openMemory(t, 4)
	m.store(0, "text 0", x())
	m.store(1, "text 1", x(), withValidity(new(T), nil))
	m.store(2, "text 2", x(), withValidity(nil, new(T+9*second)))
	m.store(3, "text 3", x(), withTTL(10))
	m.failSupersede(loci.ErrValidation, "new", 1, 1)
	m.failSupersede(loci.ErrNotFound, "old", 99, 1)
	m.failSupersede(loci.ErrNotFound, "new", 1, 99)
	m.failSupersede(loci.ErrValidation, "from_us", 1, 2) // now is T
	m.failSupersede(loci.ErrValidation, "from_us", 1, 2, T-1)
	m.failSupersede(loci.ErrValidation, "from_us", 1, 2, T+9*second)
	m.failSupersede(loci.ErrValidation, "from_us", 1, 2, T+10*second)
	m.supersede(1, 2, T+1)
	m.supersede(0, 1, T-day)
	m.clock.Set(T + 10*second)
	m.failSupersede(loci.ErrNotFound, "old", 3, 0)
	m.failSupersede(loci.ErrNotFound, "new", 0, 3)
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "s2", Dimension: 4})) // W2
	_, err := other.Semantic().Supersede(t.Context(), SupersedeRequest{Old: 1, New: 2})
	wantField(t, err, loci.ErrNotFound, "old")
}

func TestSupersedeKeepsWhatIsSaid(t *testing.T) { // H11
	m := openMemory(t, 4)
	m.store(1, "text 1", x(), withValidity(nil, new(T+3*second)))
	m.store(2, "text 2", x(), withValidity(new(T+9*second), nil))
	if r := m.supersede(1, 2, T+5*second); r.ValidToUS != T+3*second || r.ValidFromUS != T+9*second {
		t.Errorf("%+v", r)
	}
	m.wantValidity(1, nil, after(3))
	m.wantValidity(2, after(9), nil)
	m.wantHistory(1, "text 1") // neither changed
	m.wantHistory(2, "text 2")
	m.wantRelations(&m.facts.points, 2, "fact 2 -supersedes-> fact 1")
	m.supersede(1, 2, T+2*second) // an earlier end is an end
	m.wantValidity(1, nil, after(2))
}

func TestSupersedeInAChain(t *testing.T) { // H12
	m := openMemory(t, 4)
	m.storeAll(1, 2, 3)
	m.supersede(1, 2, T+second)
	m.failSupersede(loci.ErrValidation, "from_us", 2, 1, T+second)
	m.failSupersede(loci.ErrValidation, "from_us", 2, 1, T+2*second)
	m.supersede(2, 3, T+2*second)
	for at, want := range map[int64]loci.PointID{T - day: 1, T + second - 1: 1, T + second: 2, T + 2*second - 1: 2, T + 2*second: 3, T + day: 3} {
		wantIDs(t, fmt.Sprintf("at T%+d", at-T), m.currentAt(at), want)
	}
	m.failSupersede(loci.ErrValidation, "from_us", 3, 1, T+3*second)
	m.store(1, "again", x())
	m.wantValidity(1, nil, nil)
	wantIDs(t, "stored again", m.currentAt(T+day), 1, 3)
	m.wantIncoming(&m.facts.points, 1, "fact 2 -supersedes-> fact 1")
	// What was stored again has not ended, so that it may end in another way.
	m.supersede(1, 3, T+5*second)
	m.wantValidity(1, nil, after(5))
	m.deepCheck()
}

func TestOneSuccessorOfMany(t *testing.T) { // H9, by threads at once
	m := openMemory(t, 4)
	const n = 16
	ids := []loci.PointID{}
	for id := range loci.PointID(n + 1) {
		ids = append(ids, id)
	}
	m.storeAll(ids...)
	var all sync.WaitGroup
	results := make([]error, n)
	for i := range n {
		all.Go(func() {
			_, results[i] = m.facts.Supersede(t.Context(), SupersedeRequest{Old: 0, New: loci.PointID(i + 1), FromUS: new(T + int64(i+1))})
		})
	}
	all.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, loci.ErrConflict):
			t.Error(err)
		}
	}
	in := must[*Edges](t)(m.facts.IncomingRelations(t.Context(), RelationsRequest{ID: 0})).Edges
	if won != 1 || len(in) != 1 {
		t.Errorf("%d of %d succeeded, %d relations", won, n, len(in))
	}
}
