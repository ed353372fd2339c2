package agent

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
)

// unique stores a fact under a free id, which it gives.
func (m *testMemory) unique(preferred loci.PointID) loci.PointID {
	m.t.Helper()
	return must[loci.PointID](m.t)(m.facts.StoreUnique(m.t.Context(), preferred, fmt.Sprint("unique ", preferred), x()))
}

func TestUniqueIDs(t *testing.T) { // U1
	m := openMemory(t, 4)
	wantIDs(t, "three times", []loci.PointID{m.unique(7), m.unique(7), m.unique(7)}, 7, 8, 9)
	m = openMemory(t, 4)
	m.store(5, "text 5", x())
	m.store(100, "text 100", x())
	wantIDs(t, "taken, free", []loci.PointID{m.unique(5), m.unique(6)}, 101, 6)
	m = openMemory(t, 4)
	must[*loci.Receipt[Stored]](t)(m.episodes.Record(t.Context(), EpisodeInput{PointInput: PointInput{ID: 7}, Description: "tide"}))
	must[*loci.Receipt[Stored]](t)(m.procedures.Learn(t.Context(), ProcedureInput{PointInput: PointInput{ID: 7}, Name: "tide", Steps: []string{"wait"}}))
	wantIDs(t, "of another kind", []loci.PointID{m.unique(7)}, 7)
}

func TestUniqueOverExpired(t *testing.T) { // U2
	m := openMemory(t, 4)
	m.store(1, "text 1", x())
	m.store(5, "old", x(), withTTL(10), withMetadata(`{"k":1}`))
	m.store(5, "older", x(), withTTL(10), withMetadata(`{"k":1}`))
	m.relate(5, "causes", 1)
	m.clock.Set(T + 10*second)
	wantIDs(t, "expired", []loci.PointID{m.unique(5)}, 5)
	if f := m.get(5); f.Metadata.String() != "{}" || f.Version != 1 || len(m.relations(5)) != 0 || len(m.history(5)) != 1 || f.CreatedAtUS != T+10*second {
		t.Errorf("got %+v, relations %v, history %v", f, m.relations(5), m.history(5))
	}
	m = openMemory(t, 4)
	m.store(5, "live", x())
	m.store(6, "expired", x(), withTTL(10))
	m.store(100, "expired", x(), withTTL(10))
	m.clock.Set(T + 10*second)
	wantIDs(t, "above the greatest live", []loci.PointID{m.unique(5), m.unique(5)}, 6, 7)
	if n := m.sweep(); n != 1 {
		t.Errorf("%d swept", n)
	}
	wantIDs(t, "live", m.ids(), 5, 6, 7)
	m.deepCheck()
}

func TestUniqueBehindTheLastID(t *testing.T) { // U3
	for _, live := range []loci.PointID{5, 0} {
		m := openMemory(t, 4)
		m.store(live, "live", x())
		m.store(1<<64-1, "last", x())
		for _, wanted := range []loci.PointID{live, 1<<64 - 1} {
			before := m.ids()
			got := m.unique(wanted)
			if slices.Contains(before, got) || m.get(got).Content != fmt.Sprint("unique ", wanted) || len(m.ids()) != len(before)+1 {
				t.Errorf("got %d among %v: %+v", got, before, m.get(got))
			}
		}
	}
}

func TestUniqueAtOnce(t *testing.T) { // U4
	m := openMemory(t, 4)
	var got [32]loci.PointID
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			id, err := m.facts.StoreUnique(t.Context(), 7, fmt.Sprint("caller ", i), x())
			if err != nil {
				t.Error(err)
			}
			got[i] = id
		})
	}
	all.Wait()
	for i, id := range got {
		if f := m.get(id); f == nil || f.Content != fmt.Sprint("caller ", i) {
			t.Errorf("caller %d got %d: %+v", i, id, f)
		}
	}
	slices.Sort(got[:])
	for i, id := range got {
		if id != loci.PointID(7+i) {
			t.Fatalf("ids %v", got)
		}
	}
}

func TestUniqueAndStoreAtOnce(t *testing.T) { // U5
	m := openMemory(t, 4)
	for range 100 {
		var id loci.PointID
		var all sync.WaitGroup
		all.Go(func() {
			if err := m.facts.Store(t.Context(), 7, "stored", x()); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			var err error
			if id, err = m.facts.StoreUnique(t.Context(), 7, "unique", x()); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		switch history := m.history(7); {
		case id == 8 && m.get(8).Content == "unique" && slices.Equal(history, []string{"stored"}):
		case id == 7 && slices.Equal(history, []string{"stored", "unique"}):
		default:
			t.Fatalf("the unique one got %d, history of 7 %q", id, history)
		}
		for _, id := range m.ids() {
			must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), id))
		}
	}
}

func TestUniqueThatIsNotStored(t *testing.T) { // U6
	m := openMemory(t, 4)
	m.store(7, "live", x())
	done := m.unchanged()
	_, err := m.facts.StoreUnique(t.Context(), 7, "tide", []float32{0, 0, 0, 0})
	wantCode(t, err, loci.ErrInvalidVector)
	for _, id := range []loci.PointID{7, 8} {
		must[*loci.Receipt[Stored]](t)(m.facts.PutUnique(t.Context(), fact(id, "tide", x(), withTTL(0))))
	}
	_, err = m.facts.PutUnique(t.Context(), fact(9, "tide", x(), func(in *FactInput) { in.ExpectedRevision = new(int64(1)) }))
	wantField(t, err, loci.ErrValidation, "expected_revision")
	done()
}
