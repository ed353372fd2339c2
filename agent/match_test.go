package agent

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
)

// matches follows the cursors of a match to the end.
func (m *testMemory) matches(s *points, req MatchRequest) (out []Match) {
	m.t.Helper()
	for {
		page := must[*Matches](m.t)(s.Match(m.t.Context(), req))
		out = append(out, page.Matches...)
		if req.Cursor = page.NextCursor; req.Cursor == "" {
			return out
		}
	}
}

func relationsOf(matches []Match) []string {
	out := []string{}
	for _, x := range matches {
		out = append(out, relation(x.Edge))
	}
	return out
}

// wantMatches checks a match as a whole and by pages of one and two.
func (m *testMemory) wantMatches(s *points, req MatchRequest, want ...string) {
	m.t.Helper()
	if want == nil {
		want = []string{}
	}
	for _, limit := range []*int{nil, new(1), new(2)} {
		req.Limit = limit
		if got := relationsOf(m.matches(s, req)); !slices.Equal(got, want) {
			m.t.Errorf("match by %d: %q, want %q", valueOr(limit, 50), got, want)
		}
	}
}

func id(id loci.PointID) *loci.PointID { return &id }

func TestMatchIsAboutTheFarEnd(t *testing.T) { // R10
	m := openMemory(t, 4)
	f := &m.facts.points
	m.storeAll(1, 3)
	m.store(2, "text 2", x(), withMetadata(`{"k":1}`))
	m.relate(1, "causes", 2)
	m.relate(1, "causes", 3)
	filter := Selection{Filter: loci.Metadata(`{"k":1}`)}
	m.wantMatches(f, MatchRequest{From: id(1), Type: "causes", Selection: filter}, "fact 1 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{Type: "causes", Selection: filter}, "fact 1 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{Type: "causes"}, "fact 1 -causes-> fact 2", "fact 1 -causes-> fact 3")
	m.wantMatches(f, MatchRequest{From: id(9), Type: "causes"})
	m.wantMatches(f, MatchRequest{To: id(9), Type: "causes"})
	m.wantMatches(f, MatchRequest{From: id(1), Type: "Causes"})
	m.wantMatches(f, MatchRequest{Type: "effects"})

	m = openMemory(t, 4)
	f = &m.facts.points
	m.storeAll(1, 2)
	m.store(3, "text 3", x(), withMetadata(`{"k":1}`), withTags("nova"))
	m.relate(3, "causes", 2)
	m.relate(1, "causes", 2)
	m.wantMatches(f, MatchRequest{To: id(2), Type: "causes", Selection: filter}, "fact 3 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{To: id(2), Type: "causes"}, "fact 1 -causes-> fact 2", "fact 3 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{From: id(3), To: id(2), Type: "causes", Selection: filter}, "fact 3 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{From: id(1), To: id(2), Type: "causes", Selection: filter})
	m.wantMatches(f, MatchRequest{From: id(1), To: id(2), Type: "causes"}, "fact 1 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{From: id(2), To: id(1), Type: "causes"})
	m.wantMatches(f, MatchRequest{To: id(2), Type: "causes", Selection: Selection{Tags: []string{"ｎｏｖａ "}}}, "fact 3 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{To: id(2), Type: "causes", Selection: Selection{Where: []loci.Condition{{Key: "k", Op: "gt", Value: []byte("0")}}}},
		"fact 3 -causes-> fact 2")
	m.wantMatches(f, MatchRequest{To: id(2), Type: "causes", Selection: Selection{Filter: loci.Metadata(`{"content":"text 1"}`)}},
		"fact 1 -causes-> fact 2")
	if got := m.matches(f, MatchRequest{To: id(2), Type: "causes"}); got[1].Content != "text 3" {
		t.Errorf("content %q of the far end", got[1].Content)
	}
}

func TestMatchGivesWhatIsCurrent(t *testing.T) { // R11, T2, X5
	for _, old := range []loci.PointID{1, 2} {
		m := openMemory(t, 4)
		f := &m.facts.points
		m.storeAll(1, 2, 4)
		m.relate(1, "a", 2)
		m.clock.Set(T + 5*second)
		must[*loci.Receipt[Superseded]](t)(m.facts.Supersede(t.Context(), SupersedeRequest{Old: old, New: 4}))
		before := Selection{AsOfValidUS: new(T + 5*second - 1)}
		for _, req := range []MatchRequest{{From: id(1)}, {To: id(2)}, {From: id(1), To: id(2)}, {}} {
			req.Type = "a"
			m.wantMatches(f, req)
			req.Selection = before
			m.wantMatches(f, req, "fact 1 -a-> fact 2")
		}
		if got := relationsIn(must[*Edges](t)(m.facts.Relations(t.Context(), RelationsRequest{ID: 1})).Edges); !slices.Equal(got, []string{"fact 1 -a-> fact 2"}) {
			t.Errorf("relations %q", got)
		}
	}
	m := openMemory(t, 4)
	m.storeAll(1)
	m.store(2, "text 2", x(), withTTL(10))
	m.relate(1, "a", 2)
	m.relate(2, "a", 1)
	m.clock.Set(T + 10*second)
	for _, req := range []MatchRequest{{From: id(1)}, {To: id(1)}, {From: id(2)}, {To: id(2)}, {}} {
		req.Type = "a"
		m.wantMatches(&m.facts.points, req)
	}
}

func TestMatchPages(t *testing.T) { // R12
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	m := openMemory(t, 4)
	f := &m.facts.points
	batch := []FactInput{}
	for n := range loci.PointID(251) {
		batch = append(batch, fact(n, fmt.Sprintf("text %d", n), x()))
	}
	if err := m.facts.StoreBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for n := range loci.PointID(250) {
		m.relate(0, "out", n+1)
		m.relate(n+1, "in", 0)
		m.relate(n, "next", n+1)
	}
	for name, req := range map[string]MatchRequest{
		"from": {From: id(0), Type: "out"}, "to": {To: id(0), Type: "in"}, "all": {Type: "next"}, "all out": {Type: "out"}, "all in": {Type: "in"},
	} {
		req.Limit = new(100)
		seen, sizes := map[loci.PointID]bool{}, []int{}
		for {
			page := must[*Matches](t)(f.Match(t.Context(), req))
			sizes = append(sizes, len(page.Matches))
			for _, x := range page.Matches {
				seen[x.ID] = true
			}
			if req.Cursor = page.NextCursor; req.Cursor == "" {
				break
			}
		}
		if len(seen) != 250 || !slices.Equal(sizes, []int{100, 100, 50}) {
			t.Errorf("%s: %d relations in pages of %d", name, len(seen), sizes)
		}
	}
	for _, limit := range []int{0, 10001} {
		_, err := f.Match(t.Context(), MatchRequest{Type: "a", Limit: &limit})
		wantField(t, err, loci.ErrValidation, "limit")
	}
	for _, cursor := range []string{"x", "1/2", "1/fact/2/3", "1/memory/2", "1//2", "/fact/2", "1/fact/", "01/fact/2", "1/fact/x"} {
		_, err := f.Match(t.Context(), MatchRequest{Type: "a", Cursor: cursor})
		wantField(t, err, loci.ErrValidation, "cursor")
	}
	_, err := f.Match(t.Context(), MatchRequest{})
	wantField(t, err, loci.ErrValidation, "rel_type")
	_, err = f.Match(t.Context(), MatchRequest{Type: "a", ToKind: "entity"})
	wantField(t, err, loci.ErrValidation, "to_kind")
	_, err = f.Match(t.Context(), MatchRequest{Type: "a", Selection: Selection{Filter: loci.Metadata(`[1]`)}})
	wantField(t, err, loci.ErrValidation, "filter")
}

func TestMatchAcrossKinds(t *testing.T) {
	m := openMemory(t, 4)
	last := loci.PointID(1<<64 - 1)
	m.storeAll(0, 1, last)
	m.record(1)
	m.learn(1)
	for _, from := range []loci.PointID{0, last} {
		m.relateTo(&m.facts.points, from, "a", loci.KindProcedure, 1)
		m.relateTo(&m.facts.points, from, "a", loci.KindEpisode, 1)
		m.relateTo(&m.facts.points, from, "a", loci.KindFact, last)
		m.relateTo(&m.facts.points, from, "a", loci.KindFact, 0)
	}
	m.relateTo(&m.episodes.points, 1, "a", loci.KindFact, 0)
	f := &m.facts.points
	of := func(from loci.PointID) []string {
		return []string{
			fmt.Sprintf("fact %d -a-> fact 0", from), fmt.Sprintf("fact %d -a-> fact %d", from, last),
			fmt.Sprintf("fact %d -a-> episode 1", from), fmt.Sprintf("fact %d -a-> procedure 1", from),
		}
	}
	m.wantMatches(f, MatchRequest{Type: "a"}, slices.Concat(of(0), of(last))...)
	m.wantMatches(f, MatchRequest{Type: "a", From: &last}, of(last)...)
	m.wantMatches(f, MatchRequest{Type: "a", ToKind: loci.KindEpisode}, of(0)[2], of(last)[2])
	m.wantMatches(f, MatchRequest{Type: "a", To: id(1), ToKind: loci.KindProcedure}, of(0)[3], of(last)[3])
	m.wantMatches(f, MatchRequest{Type: "a", From: id(0), To: id(1), ToKind: loci.KindEpisode}, of(0)[2])
	m.wantMatches(f, MatchRequest{Type: "a", To: id(0)}, of(0)[0], of(last)[0])
	m.wantMatches(&m.episodes.points, MatchRequest{Type: "a", To: id(0), ToKind: loci.KindFact}, "episode 1 -a-> fact 0")
	m.wantMatches(&m.episodes.points, MatchRequest{Type: "a"}, "episode 1 -a-> fact 0")
	for _, x := range m.matches(f, MatchRequest{Type: "a", From: id(0)}) {
		want := map[loci.Kind]string{loci.KindFact: fmt.Sprintf("text %d", x.To), loci.KindEpisode: "episode 1", loci.KindProcedure: "procedure 1"}
		if x.Content != want[x.ToKind] {
			t.Errorf("%s: content %q", relation(x.Edge), x.Content)
		}
	}
	// A cursor stands for a place in the order, whatever has become of what stood there.
	page := must[*Matches](t)(f.Match(t.Context(), MatchRequest{Type: "a", Limit: new(2)}))
	must[*loci.Receipt[bool]](t)(f.Unrelate(t.Context(), page.Matches[1].ID))
	m.wantMatches(f, MatchRequest{Type: "a", Cursor: page.NextCursor}, slices.Concat(of(0)[2:], of(last))...)
}

func TestMatchOfTenants(t *testing.T) { // W1
	m := openMemory(t, 4)
	m.storeAll(1, 2)
	m.relate(1, "a", 2)
	for _, c := range []Config{{Scope: "s2"}, {Namespace: "n2"}, {Scope: "S1"}} {
		c.Dimension = 4
		other := must[*AgentMemory](t)(Open(t.Context(), m.db, c)).Semantic()
		for _, id := range []loci.PointID{1, 2, 3} {
			if err := other.Store(t.Context(), id, "theirs", x()); err != nil {
				t.Fatal(err)
			}
		}
		must[*loci.Receipt[Edge]](t)(other.Relate(t.Context(), RelateRequest{From: 2, To: 3, Type: "a"}))
		m.wantMatches(&other.points, MatchRequest{Type: "a"}, "fact 2 -a-> fact 3")
	}
	m.wantMatches(&m.facts.points, MatchRequest{Type: "a"}, "fact 1 -a-> fact 2")
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.facts.Match(t.Context(), MatchRequest{Type: "a"}); !errors.Is(err, loci.ErrClosed) {
		t.Errorf("%v after the store was closed", err)
	}
}
