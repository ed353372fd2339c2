package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// relation is an edge in short: "fact 1 -causes-> episode 2".
func relation(e Edge) string {
	return fmt.Sprintf("%s %d -%s-> %s %d", e.FromKind, e.From, e.Type, e.ToKind, e.To)
}

func relationsIn(edges []Edge) []string {
	out := []string{}
	for _, e := range edges {
		out = append(out, relation(e))
	}
	return out
}

// relate relates two facts.
func (m *testMemory) relate(from loci.PointID, typ string, to loci.PointID, properties ...string) Edge {
	m.t.Helper()
	req := RelateRequest{From: from, Type: typ, To: to}
	if len(properties) > 0 {
		req.Properties = loci.Metadata(properties[0])
	}
	return must[*loci.Receipt[Edge]](m.t)(m.facts.Relate(m.t.Context(), req)).Value
}

// relateTo relates a point to one of another kind.
func (m *testMemory) relateTo(s *points, from loci.PointID, typ string, kind loci.Kind, to loci.PointID) Edge {
	m.t.Helper()
	return must[*loci.Receipt[Edge]](m.t)(s.Relate(m.t.Context(), RelateRequest{From: from, Type: typ, To: to, ToKind: kind})).Value
}

// record and learn put a point there, whatever it is.
func (m *testMemory) record(id loci.PointID) {
	m.t.Helper()
	must[*loci.Receipt[Stored]](m.t)(m.episodes.Record(m.t.Context(),
		EpisodeInput{PointInput: PointInput{ID: id, Embedding: x()}, Description: fmt.Sprintf("episode %d", id)}))
}

func (m *testMemory) learn(id loci.PointID) {
	m.t.Helper()
	must[*loci.Receipt[Stored]](m.t)(m.procedures.Learn(m.t.Context(),
		ProcedureInput{PointInput: PointInput{ID: id, Embedding: x()}, Name: fmt.Sprintf("procedure %d", id), Steps: []string{"step"}}))
}

// storeAll stores facts "text 1" and so on.
func (m *testMemory) storeAll(ids ...loci.PointID) {
	m.t.Helper()
	for _, id := range ids {
		m.store(id, fmt.Sprintf("text %d", id), x())
	}
}

func (m *testMemory) wantRelations(s *points, id loci.PointID, want ...string) {
	m.t.Helper()
	got := relationsIn(must[*Edges](m.t)(s.Relations(m.t.Context(), RelationsRequest{ID: id})).Edges)
	if !slices.Equal(got, want) {
		m.t.Errorf("relations of %s %d: %q, want %q", s.Kind(), id, got, want)
	}
}

func (m *testMemory) wantIncoming(s *points, id loci.PointID, want ...string) {
	m.t.Helper()
	got := relationsIn(must[*Edges](m.t)(s.IncomingRelations(m.t.Context(), RelationsRequest{ID: id})).Edges)
	if !slices.Equal(got, want) {
		m.t.Errorf("relations into %s %d: %q, want %q", s.Kind(), id, got, want)
	}
}

func (m *testMemory) unrelate(id loci.PointID) bool {
	m.t.Helper()
	return must[*loci.Receipt[bool]](m.t)(m.facts.Unrelate(m.t.Context(), id)).Value
}

func TestRelateGivesOneIDForOneRelation(t *testing.T) { // R1
	m := openMemory(t, 4)
	m.storeAll(1, 2)
	first := m.relate(1, "causes", 2)
	if first.ID == 0 {
		t.Error("the id is 0")
	}
	check := m.unchanged()
	if again := m.relate(1, "causes", 2); again.ID != first.ID {
		t.Errorf("id %d, before %d", again.ID, first.ID)
	}
	check()
	m.wantRelations(&m.facts.points, 1, "fact 1 -causes-> fact 2")
	if !m.unrelate(first.ID) {
		t.Error("the relation was not there")
	}
	if again := m.relate(1, "causes", 2); again.ID != first.ID {
		t.Errorf("id %d after unrelate, before %d", again.ID, first.ID)
	}
	m.reopen()
	if again := m.relate(1, "causes", 2); again.ID != first.ID {
		t.Errorf("id %d after a reopen, before %d", again.ID, first.ID)
	}
	m.wantRelations(&m.facts.points, 1, "fact 1 -causes-> fact 2")
}

func TestRelationsDifferByAllThatTheyAre(t *testing.T) { // R2
	m := openMemory(t, 4)
	m.storeAll(1, 2)
	m.record(1)
	m.record(2)
	ids := map[loci.PointID]bool{
		m.relate(1, "causes", 2).ID: true, m.relate(2, "causes", 1).ID: true, m.relate(1, "Causes", 2).ID: true,
		m.relateTo(&m.facts.points, 1, "causes", loci.KindEpisode, 2).ID:    true,
		m.relateTo(&m.episodes.points, 1, "causes", loci.KindFact, 2).ID:    true,
		m.relateTo(&m.episodes.points, 1, "causes", loci.KindEpisode, 2).ID: true,
	}
	if len(ids) != 6 {
		t.Errorf("%d ids for six relations", len(ids))
	}
}

func TestEdgeHashIsFixed(t *testing.T) {
	// The ids of relations are promised to stay, across versions of the program too.
	for want, of := range map[uint64]triple{
		16367574011891132635: {store.KindFact, 1, "causes", store.KindFact, 2},
		16957109196202323484: {store.KindEpisode, 0, "属于", store.KindProcedure, 1<<64 - 1},
	} {
		if got := of.hash(); got != want {
			t.Errorf("%v: %d, want %d", of, got, want)
		}
	}
}

func TestRelationIDsThatAreTaken(t *testing.T) { // R2, for hashes that are equal
	m := openMemory(t, 4)
	m.storeAll(1, 2, 3)
	m.record(1)
	same := func(s *points, from loci.PointID, kind loci.Kind, to loci.PointID, hash uint64) loci.PointID {
		t.Helper()
		r := must[*loci.Receipt[Edge]](t)(s.relate(t.Context(), &RelateRequest{From: from, Type: "a", To: to, ToKind: kind},
			func(triple) uint64 { return hash }))
		return r.Value.ID
	}
	top := uint64(1<<64 - 1)
	got := []loci.PointID{
		same(&m.facts.points, 1, "", 2, 7), same(&m.facts.points, 1, "", 3, 7), same(&m.episodes.points, 1, loci.KindFact, 1, 7),
		same(&m.facts.points, 1, "", 2, 7), // it is there, and stays what it is
		same(&m.facts.points, 2, "", 1, top), same(&m.facts.points, 2, "", 3, top),
	}
	if want := []loci.PointID{7, 8, 9, 7, 1<<64 - 1, 1}; !slices.Equal(got, want) {
		t.Errorf("ids %d, want %d", got, want)
	}
	if !m.unrelate(8) {
		t.Error("8 was not there")
	}
	m.wantRelations(&m.facts.points, 1, "fact 1 -a-> fact 2")
	if got := same(&m.facts.points, 1, "", 3, 7); got != 8 {
		t.Errorf("id %d, want 8", got)
	}
}

func TestRelateMergesProperties(t *testing.T) { // R3
	m := openMemory(t, 4)
	m.storeAll(1, 2)
	wantProperties := func(e Edge, want string) {
		t.Helper()
		stored := must[*Edges](t)(m.facts.Relations(t.Context(), RelationsRequest{ID: 1})).Edges[0]
		if !e.Properties.Equal(loci.Metadata(want)) || !stored.Properties.Equal(loci.Metadata(want)) {
			t.Errorf("properties %s, stored %s, want %s", e.Properties, stored.Properties, want)
		}
	}
	wantProperties(m.relate(1, "a", 2, `{"w":1,"n":{"a":1}}`), `{"w":1,"n":{"a":1}}`)
	wantProperties(m.relate(1, "a", 2, `{"n":{"b":2},"w":null}`), `{"n":{"b":2}}`)
	check := m.unchanged()
	wantProperties(m.relate(1, "a", 2), `{"n":{"b":2}}`)
	wantProperties(m.relate(1, "a", 2, `{"n":{"b":2.0},"zz":null}`), `{"n":{"b":2}}`)
	_, err := m.facts.Relate(t.Context(), RelateRequest{From: 1, To: 2, Type: "a", Properties: loci.Metadata(`[1]`)})
	wantField(t, err, loci.ErrValidation, "properties")
	_, err = m.facts.Relate(t.Context(), RelateRequest{From: 1, To: 2, Type: "a",
		Properties: loci.Metadata(`{"big":"` + strings.Repeat("x", loci.MaxMetadataBytes-20) + `"}`)})
	wantField(t, err, loci.ErrValidation, "properties")
	check()
	wantProperties(m.relate(1, "a", 2, `{"n":null}`), `{}`)
	if e := m.relate(2, "b", 1, `{"x":null,"y":1}`); !e.Properties.Equal(loci.Metadata(`{"y":1}`)) {
		t.Errorf("properties %s of a new relation", e.Properties)
	}
}

func TestRelateChecks(t *testing.T) { // R4
	m := openMemory(t, 4)
	m.storeAll(1, 2, 3)
	m.store(4, "text 4", x(), withTTL(10))
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 3))
	m.clock.Set(T + 10*second)
	check := m.unchanged()
	for _, other := range []loci.PointID{3, 4, 99} {
		_, err := m.facts.Relate(t.Context(), RelateRequest{From: 1, To: other, Type: "a"})
		wantField(t, err, loci.ErrNotFound, "to")
		_, err = m.facts.Relate(t.Context(), RelateRequest{From: other, To: 1, Type: "a"})
		wantField(t, err, loci.ErrNotFound, "from")
	}
	_, err := m.facts.Relate(t.Context(), RelateRequest{From: 1, To: 2, ToKind: loci.KindEpisode, Type: "a"})
	wantField(t, err, loci.ErrNotFound, "to")
	if !strings.Contains(err.Error(), "episode 2") {
		t.Errorf("error %q names another kind", err)
	}
	_, err = m.facts.Relate(t.Context(), RelateRequest{From: 1, To: 2, ToKind: loci.KindMemory, Type: "a"})
	wantField(t, err, loci.ErrValidation, "to_kind")
	for _, typ := range []string{"", " a", "a ", "a\nb", strings.Repeat("x", 513), "\xff"} {
		_, err := m.facts.Relate(t.Context(), RelateRequest{From: 1, To: 2, Type: typ})
		wantField(t, err, loci.ErrValidation, "rel_type")
	}
	check()
	m.relate(1, strings.Repeat("x", 512), 2)
	m.relate(1, "属于", 2)
}

func TestRelationsAreSorted(t *testing.T) { // R5, L2's first and last ids
	m := openMemory(t, 4)
	m.storeAll(1, 2, 3, 0, 1<<63, 1<<64-1)
	m.record(2)
	m.relate(1, "b", 3)
	m.relate(1, "b", 2)
	m.relate(1, "a", 2)
	m.relateTo(&m.facts.points, 1, "a", loci.KindEpisode, 2)
	m.wantRelations(&m.facts.points, 1, "fact 1 -a-> fact 2", "fact 1 -a-> episode 2", "fact 1 -b-> fact 2", "fact 1 -b-> fact 3")
	m.wantIncoming(&m.facts.points, 2, "fact 1 -a-> fact 2", "fact 1 -b-> fact 2")
	m.wantIncoming(&m.episodes.points, 2, "fact 1 -a-> episode 2")
	m.wantRelations(&m.facts.points, 77)
	m.wantIncoming(&m.facts.points, 77)
	for _, id := range []loci.PointID{1<<64 - 1, 1 << 63, 0} {
		m.relate(1, "c", id)
	}
	// Pages of one hold the same, one after the other.
	for side, read := range map[string]func(RelationsRequest) (*Edges, error){
		"out": func(r RelationsRequest) (*Edges, error) { r.ID = 1; return m.facts.Relations(t.Context(), r) },
		"in":  func(r RelationsRequest) (*Edges, error) { r.ID = 2; return m.facts.IncomingRelations(t.Context(), r) },
	} {
		whole := must[*Edges](t)(read(RelationsRequest{}))
		if whole.NextCursor != "" {
			t.Errorf("%s: a cursor %q behind everything", side, whole.NextCursor)
		}
		for size := 1; size <= len(whole.Edges); size++ {
			var got []Edge
			for cursor := ""; ; {
				page := must[*Edges](t)(read(RelationsRequest{Limit: &size, Cursor: cursor}))
				got = append(got, page.Edges...)
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			if !slices.Equal(relationsIn(got), relationsIn(whole.Edges)) {
				t.Errorf("%s by %d: %q, want %q", side, size, relationsIn(got), relationsIn(whole.Edges))
			}
		}
	}
	for _, cursor := range []string{"x", "fact/1", "fact//a", "/1/a", "memory/1/a", "fact/01/a", "fact/1/", "fact/1/ a", "fact/-1/a"} {
		_, err := m.facts.Relations(t.Context(), RelationsRequest{ID: 1, Cursor: cursor})
		wantField(t, err, loci.ErrValidation, "cursor")
	}
	for _, limit := range []int{0, -1, 10001} {
		_, err := m.facts.IncomingRelations(t.Context(), RelationsRequest{ID: 1, Limit: &limit})
		wantField(t, err, loci.ErrValidation, "limit")
	}
}

func TestRelationsOfWhatExpires(t *testing.T) { // R6, T2's unrelate, U2's relations
	m := openMemory(t, 4)
	m.storeAll(1)
	m.store(2, "text 2", x(), withTTL(10))
	e := m.relate(1, "a", 2, `{"k":1}`)
	back := m.relate(2, "b", 1)
	m.clock.Set(T + 10*second)
	m.wantRelations(&m.facts.points, 1)
	m.wantIncoming(&m.facts.points, 1)
	m.wantRelations(&m.facts.points, 2)
	if m.unrelate(e.ID) || m.unrelate(back.ID) {
		t.Error("a relation of an expired point was there")
	}
	m.store(2, "new", x())
	m.wantRelations(&m.facts.points, 1)
	again := m.relate(1, "a", 2, `{"j":2}`)
	if again.ID != e.ID || !again.Properties.Equal(loci.Metadata(`{"j":2}`)) {
		t.Errorf("%+v, before %+v", again, e)
	}
	m.sweep()
	m.wantRelations(&m.facts.points, 1, "fact 1 -a-> fact 2")
	m.deepCheck()
}

func TestUnrelate(t *testing.T) { // R7, Y1
	m := openMemory(t, 4)
	if m.unrelate(5) {
		t.Error("a relation in an empty memory")
	}
	m.storeAll(1, 2)
	m.record(1)
	e := m.relate(1, "a", 2)
	if !m.unrelate(e.ID) || m.unrelate(e.ID) || m.unrelate(e.ID+1) || m.unrelate(0) {
		t.Error("not true and then false")
	}
	// One that incoming relations show can be removed where it was seen.
	e = m.relateTo(&m.episodes.points, 1, "a", loci.KindFact, 2)
	if !m.unrelate(e.ID) {
		t.Error("a relation from an episode was not found")
	}
	m.wantIncoming(&m.facts.points, 2)
	m.wantRelations(&m.facts.points, 9)
	m.wantIncoming(&m.facts.points, 9)
}

func TestRelationsGoWithTheirPoints(t *testing.T) { // R8
	m := openMemory(t, 4)
	m.storeAll(1, 2, 3)
	m.relate(1, "same", 1)
	m.wantRelations(&m.facts.points, 1, "fact 1 -same-> fact 1")
	m.wantIncoming(&m.facts.points, 1, "fact 1 -same-> fact 1")
	m.relate(1, "a", 2)
	m.relate(3, "a", 2)
	m.store(2, "another text", x()) // S2: they stay
	m.wantIncoming(&m.facts.points, 2, "fact 1 -a-> fact 2", "fact 3 -a-> fact 2")
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 2))
	m.wantRelations(&m.facts.points, 1, "fact 1 -same-> fact 1")
	m.wantRelations(&m.facts.points, 3)
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 1))
	m.deepCheck()
}

func TestRelationsCrossKinds(t *testing.T) { // R9
	m := openMemory(t, 4)
	m.storeAll(1)
	m.record(5)
	m.learn(9)
	m.relateTo(&m.facts.points, 1, "seen in", loci.KindEpisode, 5)
	m.relateTo(&m.episodes.points, 5, "led to", loci.KindProcedure, 9)
	m.wantRelations(&m.facts.points, 1, "fact 1 -seen in-> episode 5")
	m.wantIncoming(&m.episodes.points, 5, "fact 1 -seen in-> episode 5")
	m.wantRelations(&m.episodes.points, 5, "episode 5 -led to-> procedure 9")
	m.wantIncoming(&m.procedures.points, 9, "episode 5 -led to-> procedure 9")
	must[*loci.Receipt[bool]](t)(m.episodes.Delete(t.Context(), 5))
	m.wantRelations(&m.facts.points, 1)
	m.wantIncoming(&m.procedures.points, 9)
}

func TestRelationsToAPlaceThatIsGivenUp(t *testing.T) { // L6: an emptied kind takes the relations to it along, at once
	m := openMemory(t, 4)
	m.storeAll(1, 2)
	m.record(5)
	m.record(6)
	m.learn(9)
	between := m.relateTo(&m.episodes.points, 5, "a", loci.KindEpisode, 6)
	into := m.relateTo(&m.episodes.points, 5, "a", loci.KindFact, 1)
	m.relate(1, "a", 2)
	m.relateTo(&m.facts.points, 1, "a", loci.KindProcedure, 9)
	_, err := m.link.Write(t.Context(), func(tx *store.WriteTx) error {
		row, err := tx.AgentMemory(m.namespace, m.scope)
		if err != nil {
			return err
		}
		place, err := tx.StagePlace(row, store.KindFact)
		if err != nil {
			return err
		}
		if err := tx.SetPlace(row, store.KindFact, place); err != nil {
			return err
		}
		return tx.UpdateAgentMemory(row)
	})
	if err != nil {
		t.Fatal(err)
	}
	gone := func(when string) {
		t.Helper()
		m.wantRelations(&m.episodes.points, 5, "episode 5 -a-> episode 6")
		m.wantIncoming(&m.procedures.points, 9)
		m.wantRelations(&m.facts.points, 1)
		m.wantMatches(&m.episodes.points, MatchRequest{Type: "a"}, "episode 5 -a-> episode 6")
		if removed := must[*loci.Receipt[bool]](t)(m.episodes.Unrelate(t.Context(), into.ID)).Value; removed {
			t.Errorf("%s: a relation to a fact that is gone was there", when)
		}
	}
	gone("before the sweep")
	m.storeAll(1)
	gone("with a new fact of that id")
	m.sweep()
	gone("after the sweep")
	if got := must[*loci.Receipt[bool]](t)(m.episodes.Unrelate(t.Context(), between.ID)).Value; !got {
		t.Error("the relation between episodes is gone")
	}
	m.deepCheck()
}

func TestRelationsOfTenants(t *testing.T) { // W2, W3
	m := openMemory(t, 4)
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "s2", Dimension: 4})).Semantic()
	m.storeAll(1, 2)
	_, err := other.Relate(t.Context(), RelateRequest{From: 1, To: 2, Type: "a"})
	wantField(t, err, loci.ErrNotFound, "from")
	for _, id := range []loci.PointID{1, 2} {
		if err := other.Store(t.Context(), id, "theirs", x()); err != nil {
			t.Fatal(err)
		}
	}
	mine := m.relate(1, "a", 2)
	theirs := must[*loci.Receipt[Edge]](t)(other.Relate(t.Context(), RelateRequest{From: 1, To: 2, Type: "a"})).Value
	if !must[*loci.Receipt[bool]](t)(other.Unrelate(t.Context(), theirs.ID)).Value {
		t.Error("their relation was not there")
	}
	m.wantRelations(&m.facts.points, 1, "fact 1 -a-> fact 2")
	m.wantRelations(&other.points, 1)
	if must[*loci.Receipt[bool]](t)(other.Unrelate(t.Context(), mine.ID)).Value {
		t.Error("they removed a relation of mine")
	}
}

func TestRelationsOfAHub(t *testing.T) { // pages read what they hold
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	m := openMemory(t, 4)
	const n = 300
	batch := []FactInput{}
	for id := range loci.PointID(n) {
		batch = append(batch, fact(id, "text", x()))
	}
	if err := m.facts.StoreBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for id := range loci.PointID(n) {
		m.relate(0, "knows", id)
		m.relate(id, "part of", 0)
	}
	for _, read := range []func(cursor string) (*Edges, error){
		func(cursor string) (*Edges, error) {
			return m.facts.Relations(t.Context(), RelationsRequest{ID: 0, Cursor: cursor, Limit: new(100)})
		},
		func(cursor string) (*Edges, error) {
			return m.facts.IncomingRelations(t.Context(), RelationsRequest{ID: 0, Cursor: cursor, Limit: new(100)})
		},
	} {
		seen, pages, last := map[loci.PointID]bool{}, 0, ""
		for cursor := ""; ; pages++ {
			page := must[*Edges](t)(read(cursor))
			for _, e := range page.Edges {
				seen[e.ID] = true
			}
			if last, cursor = cursor, page.NextCursor; cursor == "" {
				break
			}
		}
		if len(seen) != n+1 || pages != 3 {
			t.Errorf("%d relations on %d full pages, the last behind %q", len(seen), pages, last)
		}
	}
}
