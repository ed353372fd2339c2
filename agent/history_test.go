package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

// history gives the contents of a fact's versions, newest first.
func (m *testMemory) history(id loci.PointID) []string {
	m.t.Helper()
	out := []string{}
	for _, v := range must[*Versions](m.t)(m.facts.History(m.t.Context(), PointRequest{ID: id})).Versions {
		out = append(out, v.Content)
	}
	return out
}

func (m *testMemory) wantHistory(id loci.PointID, want ...string) {
	m.t.Helper()
	if got := m.history(id); !slices.Equal(got, want) {
		m.t.Errorf("history of %d: %q, want %q", id, got, want)
	}
}

// believed gives a fact as it was believed at a time; nil for none.
func (m *testMemory) believed(id loci.PointID, at int64) *loci.Fact {
	m.t.Helper()
	return must[*Found[loci.Fact]](m.t)(m.facts.Get(m.t.Context(), GetRequest{ID: id, AsOfRecordedUS: &at, WithEmbedding: true})).Point
}

// contentAt is the content that was believed at a time; "-" for none.
func (m *testMemory) contentAt(id loci.PointID, at int64) string {
	m.t.Helper()
	if f := m.believed(id, at); f != nil {
		return f.Content
	}
	return "-"
}

func (m *testMemory) setPolicy(p Policy) {
	m.t.Helper()
	must[*loci.Receipt[Policy]](m.t)(m.SetPolicy(m.t.Context(), p))
}

func TestHistoryAndWhatWasBelieved(t *testing.T) { // H1, Y1
	m := openMemory(t, 4)
	m.wantHistory(1)
	for i, content := range []string{"a", "b", "c"} {
		m.clock.Set(T + int64(i)*second)
		m.store(1, content, x(), withMetadata(fmt.Sprintf(`{"n":%d}`, i)))
	}
	versions := must[*Versions](t)(m.facts.History(t.Context(), PointRequest{ID: 1})).Versions
	m.wantHistory(1, "c", "b", "a")
	for i, v := range versions {
		at := T + int64(2-i)*second
		if v.Version != int64(3-i) || v.RecordedAtUS != at || !v.Metadata.Equal(loci.Metadata(fmt.Sprintf(`{"n":%d}`, 2-i))) {
			t.Errorf("version %d: %+v", i, v)
		}
		if i == 0 && v.RecordedToUS != nil || i > 0 && (v.RecordedToUS == nil || *v.RecordedToUS != versions[i-1].RecordedAtUS) {
			t.Errorf("version %d is believed until %v", i, v.RecordedToUS)
		}
	}
	for at, want := range map[int64]string{
		T - 1: "-", T: "a", T + second - 1: "a", T + second: "b", T + 2*second - 1: "b", T + 2*second: "c", T + day: "c",
	} {
		if got := m.contentAt(1, at); got != want {
			t.Errorf("at T%+d: %q, want %q", at-T, got, want)
		}
	}
	m.store(2, "later", x())
	page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{AsOfRecordedUS: new(T)}))
	if len(page.Items) != 1 || page.Items[0].ID != 1 || page.Items[0].Content != "a" || !page.Items[0].Metadata.Equal(loci.Metadata(`{"n":0}`)) {
		t.Errorf("as of T: %s", asJSON(t, page))
	}
	// A version has no vector of its own.
	found := must[*Found[loci.Fact]](t)(m.facts.Get(t.Context(), GetRequest{ID: 1, AsOfRecordedUS: new(T), WithEmbedding: true}))
	if found.Embedding != nil {
		t.Errorf("a version of the past has the vector %v", found.Embedding)
	}
	if raw := asJSON(t, versions); strings.Contains(raw, "embedding") {
		t.Errorf("vectors in %s", raw)
	}
	m.reopen()
	m.wantHistory(1, "c", "b", "a")
}

func TestHistoryIsBounded(t *testing.T) { // H2, H3 (at once)
	m := openMemory(t, 4)
	for i := range 12 {
		m.clock.Set(T + int64(i)*second)
		m.store(1, fmt.Sprint(i), x())
	}
	m.wantHistory(1, "11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1")
	if got := m.contentAt(1, T); got != "-" {
		t.Errorf("as of the first: %q", got)
	}
	if got := m.contentAt(1, T+second); got != "1" {
		t.Errorf("as of the second: %q", got)
	}
	m.setPolicy(Policy{KeepVersions: new(2)})
	m.wantHistory(1, "11", "10", "9")
	if got := m.contentAt(1, T+8*second); got != "-" {
		t.Errorf("as of one that is kept no longer: %q", got)
	}
	m.store(1, "12", x())
	m.wantHistory(1, "12", "11", "10")
	m.setPolicy(Policy{KeepVersions: new(0)})
	m.wantHistory(1, "12")
	m.store(1, "13", x())
	m.wantHistory(1, "13")
	m.setPolicy(Policy{KeepVersions: new(5)}) // what is gone stays gone
	m.store(1, "14", x())
	m.wantHistory(1, "14", "13")
	for _, keep := range []int{-1, 1001} {
		_, err := m.SetPolicy(t.Context(), Policy{KeepVersions: &keep})
		wantField(t, err, loci.ErrValidation, "keep_versions")
	}
}

func TestWhatMakesAVersion(t *testing.T) { // H4, P7's versions
	m := openMemory(t, 4)
	versions := func(s *points, id loci.PointID) int {
		t.Helper()
		return len(must[*Versions](t)(s.History(t.Context(), PointRequest{ID: id})).Versions)
	}
	m.storeAll(1, 2)
	m.record(1)
	m.learn(1)
	f, e, p := &m.facts.points, &m.episodes.points, &m.procedures.points
	for i, step := range []struct {
		name string
		do   func() error
		of   *points
		adds int
	}{
		{"store with the same content", func() error { return m.facts.Store(t.Context(), 1, "text 1", x()) }, f, 1},
		{"update", func() error {
			_, err := m.facts.UpdateMetadata(t.Context(), UpdateRequest{ID: 1, Updates: loci.Metadata(`{"k":1}`)})
			return err
		}, f, 1},
		{"update with nothing", func() error {
			_, err := m.facts.UpdateMetadata(t.Context(), UpdateRequest{ID: 1, Updates: loci.Metadata(`{"k":1}`)})
			return err
		}, f, 0},
		{"supersede", func() error {
			_, err := m.facts.Supersede(t.Context(), SupersedeRequest{Old: 1, New: 2})
			return err
		}, f, 1},
		{"set_ttl", func() error { return m.facts.SetTTLDurable(t.Context(), 1, 60) }, f, 0},
		{"clear_ttl", func() error { _, err := m.facts.ClearTTL(t.Context(), 1); return err }, f, 0},
		{"relate", func() error {
			_, err := m.facts.Relate(t.Context(), RelateRequest{From: 1, To: 2, Type: "a"})
			return err
		}, f, 0},
		{"record", func() error { m.record(1); return nil }, e, 1},
		{"learn", func() error { m.learn(1); return nil }, p, 1},
		{"reinforce", func() error { _, err := m.procedures.Reinforce(t.Context(), 1, true); return err }, p, 0},
	} {
		before := versions(step.of, 1)
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if got := versions(step.of, 1) - before; got != step.adds {
			t.Errorf("step %d, %s: %d versions, want %d", i, step.name, got, step.adds)
		}
	}
	if got := versions(f, 2); got != 2 {
		t.Errorf("%d versions of the successor, want 2", got)
	}
	v := must[*Versions](t)(p.History(t.Context(), PointRequest{ID: 1})).Versions
	if v[1].Name != "procedure 1" || !slices.Equal(v[1].Steps, []string{"step"}) || v[1].Content != "" {
		t.Errorf("a procedure's version: %+v", v[1])
	}
	v = must[*Versions](t)(e.History(t.Context(), PointRequest{ID: 1})).Versions
	if v[1].Content != "episode 1" {
		t.Errorf("an episode's version: %+v", v[1])
	}
}

func TestHistoryEndsWithItsPoint(t *testing.T) { // H5 (clear: with its own cases), T4, T12
	if testing.Short() {
		t.Skip("has one goroutine, and much to write")
	}
	for name, end := range map[string]func(m *testMemory){
		"delete":   func(m *testMemory) { must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 1)) },
		"expiry":   func(m *testMemory) { m.clock.Set(T + 20*second) },
		"ttl 0":    func(m *testMemory) { m.store(1, "c", x(), withTTL(0)) },
		"set_ttl":  func(m *testMemory) { m.facts.SetTTLDurable(t.Context(), 1, 0) },
		"replaced": func(m *testMemory) { m.clock.Set(T + 20*second); m.store(1, "new", x()) },
	} {
		m := openMemory(t, 4)
		m.store(1, "a", x())
		m.clock.Set(T + second)
		m.store(1, "b", x(), withTTL(10))
		end(m)
		want := []string{}
		if name == "replaced" {
			want = []string{"new"}
		}
		m.wantHistory(1, want...)
		for _, at := range []int64{T, T + second} {
			if got := m.contentAt(1, at); got != "-" {
				t.Errorf("%s: %q is believed", name, got)
			}
		}
		m.sweep()
		m.wantHistory(1, want...)
		m.deepCheck()
	}
}

func TestVersionsOfOneTime(t *testing.T) { // H6
	m := openMemory(t, 4)
	m.store(1, "a", x())
	m.store(1, "b", x())
	m.wantHistory(1, "b", "a")
	if got := m.contentAt(1, T); got != "b" {
		t.Errorf("as of T: %q", got)
	}
	m.store(1, "b2", x())
	m.clock.Set(T - day)
	m.store(1, "c", x())
	v := must[*Versions](t)(m.facts.History(t.Context(), PointRequest{ID: 1})).Versions
	for i := 1; i < len(v); i++ {
		if v[i-1].RecordedAtUS < v[i].RecordedAtUS {
			t.Errorf("version %d was recorded at %d, the one before it at %d", v[i-1].Version, v[i-1].RecordedAtUS, v[i].RecordedAtUS)
		}
	}
	m.wantHistory(1, "c", "b2", "b", "a")
}

func TestQueriesTakeNoTimeOfRecording(t *testing.T) { // H7: what is not there, the surfaces refuse
	for _, req := range []any{QueryRequest{}, TextRequest{}, MatchRequest{}, RelationsRequest{}, PointRequest{}} {
		var walk func(reflect.Type)
		walk = func(of reflect.Type) {
			for i := range of.NumField() {
				f := of.Field(i)
				if strings.HasPrefix(f.Tag.Get("json"), "as_of_recorded") {
					t.Errorf("%T has the field %s", req, f.Name)
				}
				if f.Anonymous {
					walk(f.Type)
				}
			}
		}
		walk(reflect.TypeOf(req))
	}
}
