package agent

import (
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

func TestClear(t *testing.T) { // L6, Y1
	m := openMemory(t, 4)
	ctx := t.Context()
	if n := must[*loci.Receipt[int64]](t)(m.facts.Clear(ctx)); n.Value != 0 || n.Revision != m.revision() {
		t.Errorf("%+v", n)
	}
	unchanged := m.unchanged()
	must[*loci.Receipt[int64]](t)(m.facts.Clear(ctx))
	unchanged()
	for id := range loci.PointID(7) {
		m.store(id, "tide", x(), withThread("talk", int64(id)))
	}
	m.store(0, "tide again", x())
	must[*loci.Receipt[Stored]](t)(m.facts.SetTTL(ctx, TTLRequest{5, 1}))
	must[*loci.Receipt[Stored]](t)(m.facts.SetTTL(ctx, TTLRequest{6, 1}))
	keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: 1}, Description: "e"})
	keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: 2}, Description: "e"})
	episodes := &m.episodes.points
	edge := join(t, episodes, 1, "about", loci.KindFact, 1, `{"a":1}`)
	join(t, episodes, 1, "before", "", 2, "")
	join(t, &m.facts.points, 1, "of", loci.KindEpisode, 2, "")
	m.clock.Set(T + 2*second)
	for _, want := range []int64{5, 0} {
		if n := must[*loci.Receipt[int64]](t)(m.facts.Clear(ctx)).Value; n != want {
			t.Errorf("cleared %d, want %d", n, want)
		}
	}
	m.deepCheck()
	if m.count() != 0 || len(m.query(x(), 10)) != 0 || len(m.words("tide")) != 0 || m.get(1) != nil {
		t.Error("something is left")
	}
	if got := must[*Edges](t)(episodes.Relations(ctx, RelationsRequest{ID: 1})).Edges; len(got) != 1 || got[0].Type != "before" {
		t.Errorf("relations %+v", got)
	}
	if got := must[*Edges](t)(episodes.IncomingRelations(ctx, RelationsRequest{ID: 2})).Edges; len(got) != 1 {
		t.Errorf("relations %+v", got)
	}
	m.store(1, "new", x(), withThread("talk", 1))
	if h := must[*Versions](t)(m.facts.History(ctx, PointRequest{ID: 1})).Versions; len(h) != 1 || m.facts.Dimension() != 4 {
		t.Errorf("history %+v", h)
	}
	again := join(t, episodes, 1, "about", loci.KindFact, 1, ``)
	if again.ID != edge.ID || len(again.Properties) > 0 && string(again.Properties) != "{}" {
		t.Errorf("%+v, before %+v", again, edge)
	}
	m.sweep()
	m.deepCheck()
	m.reopen()
	if m.count() != 1 || must[*Count](t)(m.episodes.Count(ctx)).Count != 2 {
		t.Errorf("%d facts", m.count())
	}
	// Every kind has it.
	for _, s := range wholeKinds(m.AgentMemory) {
		must[*loci.Receipt[int64]](t)(s.Clear(ctx))
		if empty := must[bool](t)(s.IsEmpty(ctx)); !empty {
			t.Errorf("%s are left", s.noun)
		}
	}
	m.deepCheck()
}

// TestClearManyTimes holds that places that were given up are emptied, and that no
// name of one leaks. // W7, L7
func TestClearManyTimes(t *testing.T) {
	m := openMemory(t, 4)
	takeSnapshot(t, m.AgentMemory)
	for range 5 {
		m.store(1, "tide", x())
		must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context()))
		m.store(2, "tide", y())
		restoreVersion(t, m.AgentMemory, 1)
	}
	m.sweep()
	m.store(3, "tide", x())
	m.deepCheck()
	err := m.link.Read(t.Context(), func(tx *store.ReadTx) error {
		places, err := tx.EmptyPlaces()
		if len(places) > 0 {
			t.Errorf("places %v are still to be emptied", places)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if f := m.get(3); f.Scope != "public" {
		t.Errorf("scope %q", f.Scope)
	}
}
