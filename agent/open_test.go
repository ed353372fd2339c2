package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

func TestOpenNew(t *testing.T) { // O1
	m := openMemory(t, 4)
	if m.Dimension() != 4 || m.Space() != "agent-4" || m.Namespace() != "default" || m.Scope() != "public" {
		t.Errorf("opened %d, %q, %q, %q", m.Dimension(), m.Space(), m.Namespace(), m.Scope())
	}
	for _, s := range []*points{&m.facts.points, &m.episodes.points, &m.procedures.points} {
		if n := must[*Count](t)(s.Count(t.Context())); n.Count != 0 || !n.Empty || !must[bool](t)(s.IsEmpty(t.Context())) || s.Dimension() != 4 {
			t.Errorf("%s: %+v", s.CollectionName(), n)
		}
	}
	for _, dimension := range []int{1, 65536} {
		got := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "other", Namespace: strings.Repeat("n", dimension%7+1), Dimension: dimension}))
		if got.Dimension() != dimension {
			t.Errorf("dimension %d, want %d", got.Dimension(), dimension)
		}
	}
	for _, dimension := range []int{-1, 65537} {
		_, err := Open(t.Context(), m.db, Config{Scope: "third", Dimension: dimension})
		wantField(t, err, loci.ErrValidation, "dimension")
	}
	if must[*SemanticMemory](t)(OpenSemantic(t.Context(), m.db, 4)).Dimension() != 4 {
		t.Error("the short way opens another memory")
	}
}

func TestOpenOtherDimension(t *testing.T) { // O2
	m := openMemory(t, 4)
	m.store(1, "text 1", x())
	for range 2 {
		done := m.unchanged()
		_, err := Open(t.Context(), m.db, Config{Dimension: 8})
		if e := wantCode(t, err, loci.ErrInvalidVector); !strings.Contains(e.Message, "8") || !strings.Contains(e.Message, "4") || e.Field != "dimension" {
			t.Errorf("error %v", err)
		}
		done()
		if got := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{})); got.Dimension() != 4 {
			t.Errorf("dimension %d without one", got.Dimension())
		}
		m.reopen()
	}
}

func TestOpenWithoutDimension(t *testing.T) { // O3
	m := openMemory(t, 4)
	_, err := Open(t.Context(), m.db, Config{Scope: "new"})
	wantField(t, err, loci.ErrValidation, "dimension")
	_, err = OpenExisting(t.Context(), m.db, Config{Scope: "new"})
	wantCode(t, err, loci.ErrNotFound)
	bindEmbedder(t, m.db, "words", fakeembed.New(384))
	got := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "new"}))
	if got.Dimension() != 384 || got.Space() != "words" {
		t.Errorf("opened %d, %q", got.Dimension(), got.Space())
	}
	got = must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "newer", Dimension: 4}))
	if got.Dimension() != 4 || got.Space() != "agent-4" {
		t.Errorf("opened %d, %q", got.Dimension(), got.Space())
	}
}

func TestOpenSpace(t *testing.T) { // O4
	m := openMemory(t, 4)
	bindEmbedder(t, m.db, "four", fakeembed.New(4))
	bindEmbedder(t, m.db, "eight", fakeembed.New(8))
	_, err := Open(t.Context(), m.db, Config{Space: "four"})
	wantField(t, err, loci.ErrConflict, "space")
	_, err = Open(t.Context(), m.db, Config{Scope: "new", Space: "nowhere"})
	wantField(t, err, loci.ErrNotFound, "space")
	_, err = Open(t.Context(), m.db, Config{Scope: "new", Space: "eight", Dimension: 4})
	if e := wantCode(t, err, loci.ErrInvalidVector); !strings.Contains(e.Message, "8") || !strings.Contains(e.Message, "4") {
		t.Errorf("error %v", err)
	}
	_, err = OpenExisting(t.Context(), m.db, Config{Scope: "new"})
	wantCode(t, err, loci.ErrNotFound)
}

func TestOpenNames(t *testing.T) { // O5
	m := openMemory(t, 4)
	for _, bad := range []string{" a", "a ", "a\tb", strings.Repeat("n", 513)} {
		_, err := Open(t.Context(), m.db, Config{Namespace: bad, Dimension: 4})
		wantField(t, err, loci.ErrValidation, "namespace")
	}
	for _, bad := range []string{" a", "a ", "a\tb", strings.Repeat("s", 1025)} {
		_, err := Open(t.Context(), m.db, Config{Scope: bad, Dimension: 4})
		wantField(t, err, loci.ErrValidation, "scope")
	}
}

func TestOpenAgain(t *testing.T) { // O6
	m := openMemory(t, 4)
	m.store(1, "text 1", d(), withTTL(60), withMetadata(`{"k":1}`), withTags("nova"))
	m.store(1, "text 2", d(), withTTL(60))
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(t.Context(), Policy{KeepVersions: new(3)}))
	before := asJSON(t, m.list())
	m.reopen()
	if got := asJSON(t, m.list()); got != before {
		t.Errorf("after a reopen %s, before %s", got, before)
	}
	if p := must[*Policy](t)(m.Policy(t.Context())); p.KeepVersions == nil || *p.KeepVersions != 3 {
		t.Errorf("policy %+v", p)
	}
	wantIDs(t, "query", m.query(x(), 10), 1)
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{})).Semantic()
	if err := other.Store(t.Context(), 2, "text 2", x()); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "the first handle", m.ids(), 1, 2)
	wantIDs(t, "query", m.query(x(), 10), 2, 1)
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(*SemanticMemory) error{
		"store":      func(s *SemanticMemory) error { return s.Store(t.Context(), 1, "a", x()) },
		"get":        func(s *SemanticMemory) error { _, err := s.Get(t.Context(), GetRequest{}); return err },
		"list":       func(s *SemanticMemory) error { _, err := s.List(t.Context(), ListRequest{}); return err },
		"count":      func(s *SemanticMemory) error { _, err := s.Count(t.Context()); return err },
		"query":      func(s *SemanticMemory) error { _, err := s.Query(t.Context(), x(), 1); return err },
		"query_text": func(s *SemanticMemory) error { _, err := s.QueryText(t.Context(), TextRequest{Text: "a"}); return err },
		"delete":     func(s *SemanticMemory) error { _, err := s.Delete(t.Context(), 1); return err },
		"set_ttl":    func(s *SemanticMemory) error { return s.SetTTLDurable(t.Context(), 1, 1) },
		"update": func(s *SemanticMemory) error {
			_, err := s.UpdateMetadata(t.Context(), UpdateRequest{ID: 1})
			return err
		},
	} {
		for _, s := range []*SemanticMemory{m.facts, other} {
			if err := call(s); loci.CodeOf(err) != loci.ErrClosed {
				t.Errorf("%s after the end: %v", name, err)
			}
		}
	}
}

func TestCollectionNames(t *testing.T) { // O7
	name := func(namespace, scope string) string {
		return (&AgentMemory{namespace: namespace, scope: scope}).Semantic().CollectionName()
	}
	names := map[string]bool{}
	for _, at := range [][2]string{{"a", "b.c"}, {"a.b", "c"}, {"a", "b/c"}, {"a/b", "c"}, {"A", "b.c"}} {
		names[name(at[0], at[1])] = true
	}
	if len(names) != 5 {
		t.Errorf("names %v", names)
	}
	if got := name("港务", "private"); !strings.Contains(got, "港务") || !strings.Contains(got, "private") {
		t.Errorf("name %q", got)
	}
}

func TestIDsHaveNoSign(t *testing.T) { // I1, I2
	m := openMemory(t, 4)
	ids := []loci.PointID{0, 1, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	for _, i := range []int{5, 4, 0, 2, 1, 3} {
		m.store(ids[i], fmt.Sprint("text ", ids[i]), x())
	}
	wantIDs(t, "list", m.ids(), ids...)
	wantIDs(t, "ties of a query", m.query(x(), 10), ids...)
	for _, id := range ids {
		if f := m.get(id); f == nil || f.ID != id || f.Content != fmt.Sprint("text ", id) {
			t.Errorf("get %d: %+v", id, f)
		}
	}
	raw := asJSON(t, ids)
	if want := `["0","1","9007199254740993","9223372036854775807","9223372036854775808","18446744073709551615"]`; raw != want {
		t.Errorf("JSON %s, want %s", raw, want)
	}
	for _, in := range []string{`9007199254740993`, `"9007199254740993"`} {
		var id loci.PointID
		if err := json.Unmarshal([]byte(in), &id); err != nil || id != 9007199254740993 {
			t.Errorf("%s: %d, %v", in, id, err)
		}
	}
}

func TestIDsThatAreNone(t *testing.T) { // I3
	for _, in := range []string{`-1`, `1.5`, `1.0`, `1e3`, `18446744073709551616`, `""`, `" 7"`, `"+7"`, `"0x7"`, `true`, `null`, `"1_0"`, `[]`, `{}`, `"-0"`, `-0`} {
		id := loci.PointID(5)
		if err := json.Unmarshal([]byte(in), &id); loci.CodeOf(err) != loci.ErrValidation || id != 5 {
			t.Errorf("%s: %d, %v", in, id, err)
		}
	}
}

func TestKindsHaveIDsOfTheirOwn(t *testing.T) { // I4
	m := openMemory(t, 4)
	m.store(7, "tide", x())
	must[*loci.Receipt[Stored]](t)(m.episodes.Record(t.Context(), EpisodeInput{PointInput: PointInput{ID: 7, Embedding: x()}, Description: "tide"}))
	must[*loci.Receipt[Stored]](t)(m.procedures.Learn(t.Context(), ProcedureInput{PointInput: PointInput{ID: 7, Embedding: x()}, Name: "tide", Steps: []string{"wait"}}))
	counts := func() (n [3]int64) {
		for i, s := range []*points{&m.facts.points, &m.episodes.points, &m.procedures.points} {
			n[i] = must[*Count](t)(s.Count(t.Context())).Count
		}
		return n
	}
	if got := counts(); got != [3]int64{1, 1, 1} {
		t.Errorf("counts %v", got)
	}
	res := must[*loci.SearchResult](t)(m.db.Search(t.Context(), loci.SearchRequest{Query: "tide", Kinds: []loci.Kind{loci.KindFact, loci.KindEpisode, loci.KindProcedure}}))
	if len(res.Hits) != 3 {
		t.Errorf("%d hits", len(res.Hits))
	}
	for _, h := range res.Hits {
		var id loci.PointID
		switch p := h.Record.(type) {
		case *loci.Fact:
			id = p.ID
		case *loci.Episode:
			id = p.ID
		case *loci.Procedure:
			id = p.ID
		}
		if id != 7 {
			t.Errorf("a hit of id %d: %s", id, h.Key)
		}
	}
	if r := must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 7)); !r.Value {
		t.Error("nothing was deleted")
	}
	if got := counts(); got != [3]int64{0, 1, 1} {
		t.Errorf("counts %v", got)
	}
}

func TestIDZero(t *testing.T) { // I5, L2
	m := openMemory(t, 4)
	m.store(0, "text 0", x(), withTTL(60))
	m.store(1, "text 1", x())
	if got := must[*loci.Receipt[Stored]](t)(m.facts.SetTTL(t.Context(), TTLRequest{ID: 0, TTLSeconds: 70})).Value; got.ID != 0 || *m.get(0).ExpiresAtUS != T+70*second {
		t.Errorf("set_ttl: %+v, %+v", got, m.get(0))
	}
	if got := must[*loci.Receipt[Stored]](t)(m.facts.UpdateMetadata(t.Context(), UpdateRequest{ID: 0, Updates: loci.Metadata(`{"k":1}`)})).Value; got.Version != 2 {
		t.Errorf("update: %+v", got)
	}
	page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: new(1)}))
	if len(page.Items) != 1 || page.Items[0].ID != 0 || page.NextCursor == "" {
		t.Errorf("page %+v", page)
	}
	page = must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: new(1), Cursor: page.NextCursor}))
	if len(page.Items) != 1 || page.Items[0].ID != 1 || page.NextCursor != "" {
		t.Errorf("page %+v", page)
	}
	if r := must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 0)); !r.Value || m.get(0) != nil {
		t.Error("not deleted")
	}
}
