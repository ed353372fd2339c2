package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

func autoExpire(t testing.TB, m *AgentMemory) AutoExpired {
	t.Helper()
	return *must[*AutoExpired](t)(m.AutoExpire(t.Context()))
}

func setPolicyOf(t testing.TB, m *AgentMemory, p Policy) {
	t.Helper()
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(t.Context(), p))
}

func oldEpisode(id loci.PointID, at int64) EpisodeInput {
	return EpisodeInput{PointInput: PointInput{ID: id}, Description: fmt.Sprintf("episode %d", id), AtUS: &at}
}

func wantExpired(t testing.TB, what string, got, want AutoExpired) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func TestAutoExpireWithoutPolicy(t *testing.T) { // A1, Y3, W5
	m := openMemory(t, 4)
	wantExpired(t, "empty", autoExpire(t, m.AgentMemory), AutoExpired{})
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "s2", Dimension: 4}))
	for id := range loci.PointID(3) {
		m.store(id, "tide", x(), withTTL(1))
		if err := other.Semantic().StoreWithTTL(t.Context(), id, "tide", x(), 1); err != nil {
			t.Fatal(err)
		}
	}
	keepEpisode(t, m.AgentMemory, oldEpisode(1, T-1000*day))
	m.clock.Set(T + 5*second)
	wantExpired(t, "three", autoExpire(t, m.AgentMemory), AutoExpired{Swept: 3})
	wantExpired(t, "three, again", autoExpire(t, m.AgentMemory), AutoExpired{})
	if n := must[*Count](t)(m.episodes.Count(t.Context())).Count; n != 1 {
		t.Errorf("%d episodes", n)
	}
	m.deepCheck()
}

func TestPolicy(t *testing.T) { // A1, O6
	m := openMemory(t, 4)
	for field, p := range map[string]Policy{
		"consolidate_after_seconds": {ConsolidateAfterSeconds: new(int64(0))},
		"evict_below_confidence":    {EvictBelowConfidence: new(-1.0)},
		"max_snapshots":             {MaxSnapshots: new(0)},
		"keep_versions":             {KeepVersions: new(1001)},
	} {
		_, err := m.SetPolicy(t.Context(), p)
		wantField(t, err, loci.ErrValidation, field)
	}
	want := Policy{ConsolidateAfterSeconds: new(int64(1)), EvictBelowConfidence: new(0.5), KeepVersions: new(0), MaxSnapshots: new(1)}
	setPolicyOf(t, m.AgentMemory, want)
	must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context()))
	m.store(1, "tide", x())
	must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context()))
	m.reopen()
	if got := must[*Policy](t)(m.Policy(t.Context())); asJSON(t, got) != asJSON(t, want) {
		t.Errorf("%s", asJSON(t, got))
	}
}

func TestConsolidate(t *testing.T) { // A2, A3, A4, A5
	m := openEmbedding(t, 4)
	ctx := t.Context()
	setPolicyOf(t, m.AgentMemory, Policy{ConsolidateAfterSeconds: new(int64(86400))})
	keepEpisode(t, m.AgentMemory, oldEpisode(1, T-day))
	in := oldEpisode(7, T-day-1)
	in.Embedding, in.Metadata, in.Tags = d(), loci.Metadata(`{"k":1}`), []string{"nova"}
	in.Thread, in.Position, in.TTLSeconds = new("talk"), new(int64(4)), new(uint64(9*86400))
	keepEpisode(t, m.AgentMemory, in)
	keepEpisode(t, m.AgentMemory, oldEpisode(8, T-2*day)) // its vector is made
	expiring := oldEpisode(9, T-5*day)
	expiring.TTLSeconds = new(uint64(1))
	keepEpisode(t, m.AgentMemory, expiring)
	m.store(3, "fact", x())
	m.store(8, "held", x())
	m.store(40, "greatest", x(), withTTL(1))
	keepProcedure(t, m.AgentMemory, ProcedureInput{PointInput: PointInput{ID: 1, Embedding: x()}, Name: "p", Steps: []string{"s"}})
	episodes := &m.episodes.points
	join(t, episodes, 7, "about", loci.KindFact, 3, `{"a":1}`)
	join(t, &m.procedures.points, 1, "from", loci.KindEpisode, 7, `{"b":2}`)
	join(t, episodes, 7, "after", "", 8, `{"c":3}`)
	join(t, episodes, 7, "same", "", 7, ``)
	join(t, episodes, 1, "after", "", 7, ``)
	join(t, episodes, 7, "after", "", 9, ``) // to what expires
	made := must[*Found[loci.Episode]](t)(m.episodes.Get(ctx, GetRequest{ID: 8, WithEmbedding: true})).Embedding
	m.fake.Forget()
	m.fake.Fail(fakeembed.Fails)
	m.store(7, "expired by now", x(), withTTL(1))
	m.clock.Set(T + 1*second)
	setPolicyOf(t, m.AgentMemory, Policy{ConsolidateAfterSeconds: new(int64(86401))})

	wantExpired(t, "two", autoExpire(t, m.AgentMemory), AutoExpired{Swept: 3, Consolidated: 2})
	m.deepCheck()
	f := m.get(7)
	want := loci.Fact{Content: "episode 7", ValidFromUS: new(T - day - 1), PointHeader: loci.PointHeader{
		ID: 7, RecordID: f.RecordID, Namespace: "default", Scope: "public", Tags: []string{"nova"}, Metadata: loci.Metadata(`{"k":1}`),
		Thread: "talk", Position: new(int64(4)), CreatedAtUS: T - day - 1, UpdatedAtUS: T + second, RecordedAtUS: T + second,
		ExpiresAtUS: new(T + 9*day), Version: 1, Revision: f.Revision,
	}}
	if asJSON(t, f) != asJSON(t, want) {
		t.Errorf("%s\nwant %s", asJSON(t, f), asJSON(t, want))
	}
	if !slices.Equal(m.vector(7), d()) || !slices.Equal(m.vector(9), made) {
		t.Errorf("vectors %v and %v", m.vector(7), m.vector(9))
	}
	// 8 is held by a fact, so that one has the id above the greatest, which is now 8.
	if g := m.get(9); g == nil || g.Content != "episode 8" || m.get(8).Content != "held" {
		t.Errorf("%+v", g)
	}
	var relations []string
	for _, id := range []loci.PointID{7} {
		for _, e := range append(must[*Edges](t)(m.facts.Relations(ctx, RelationsRequest{ID: id})).Edges,
			must[*Edges](t)(m.facts.IncomingRelations(ctx, RelationsRequest{ID: id})).Edges...) {
			relations = append(relations, fmt.Sprintf("%s %d -%s-> %s %d %s", e.FromKind, e.From, e.Type, e.ToKind, e.To, e.Properties))
			kind := func(k loci.Kind) store.Kind { return kindNamed(string(k)) }
			if at := (triple{kind(e.FromKind), uint64(e.From), e.Type, kind(e.ToKind), uint64(e.To)}).hash(); uint64(e.ID) != at {
				t.Errorf("%s has the id %d, not %d", relations[len(relations)-1], e.ID, at)
			}
		}
	}
	if want := []string{
		`fact 7 -about-> fact 3 {"a":1}`, `fact 7 -after-> fact 9 {"c":3}`, `fact 7 -same-> fact 7 {}`,
		`episode 1 -after-> fact 7 {}`, `procedure 1 -from-> fact 7 {"b":2}`, `fact 7 -same-> fact 7 {}`,
	}; !slices.Equal(relations, want) {
		t.Errorf("relations\n%s\nwant\n%s", strings.Join(relations, "\n"), strings.Join(want, "\n"))
	}
	if left := must[*Page[loci.Episode]](t)(m.episodes.List(ctx, ListRequest{})).Items; len(left) != 1 || left[0].ID != 1 {
		t.Errorf("episodes %+v", left)
	}
	if calls := m.fake.Calls(); len(calls) > 0 {
		t.Errorf("the embedder was called: %+v", calls)
	}
	m.fake.Fail(fakeembed.None)
	m.embedPending()
	for _, c := range m.fake.Calls() {
		if slices.Contains(c.Texts, "episode 7") || slices.Contains(c.Texts, "episode 8") {
			t.Errorf("the embedder was called: %+v", c)
		}
	}
	// A made vector stays a made one.
	must[*loci.Receipt[Stored]](t)(m.facts.UpdateMetadata(ctx, UpdateRequest{ID: 9, Updates: loci.Metadata(`{"content":"lamp"}`)}))
	if slices.Equal(m.vector(9), made) {
		t.Error("the vector is taken for the caller's")
	}
	wantExpired(t, "nothing more", autoExpire(t, m.AgentMemory), AutoExpired{})
}

func TestConsolidateThreads(t *testing.T) { // A3, A6
	m := openMemory(t, 4)
	setPolicyOf(t, m.AgentMemory, Policy{ConsolidateAfterSeconds: new(int64(1))})
	in := oldEpisode(1, 5)
	in.Thread, in.Position = new("talk"), new(int64(4))
	keepEpisode(t, m.AgentMemory, in)
	in.ID, in.Position = 2, new(int64(5))
	keepEpisode(t, m.AgentMemory, in)
	m.store(20, "held", x(), withThread("talk", 4))
	m.store(21, "expires", x(), withThread("talk", 5), withTTL(1))
	m.clock.Set(T + 3*second)
	wantExpired(t, "two", autoExpire(t, m.AgentMemory), AutoExpired{Swept: 1, Consolidated: 2})
	if f := m.get(1); f == nil || f.Thread != "talk" || f.Position != nil {
		t.Errorf("%+v", f)
	}
	if f := m.get(2); f == nil || f.Thread != "talk" || f.Position == nil || *f.Position != 5 {
		t.Errorf("%+v", f)
	}
	if m.vector(1) != nil {
		t.Error("a vector out of nothing")
	}
	wantIDs(t, "by words", m.words("episode"), 1, 2)
	m.deepCheck()
}

func TestConsolidateMany(t *testing.T) { // A7
	if testing.Short() {
		t.Skip("one goroutine")
	}
	m := openMemory(t, 4)
	setPolicyOf(t, m.AgentMemory, Policy{ConsolidateAfterSeconds: new(int64(1))})
	record := func(from, n int) {
		var batch []EpisodeInput
		for i := range n {
			batch = append(batch, oldEpisode(loci.PointID(from+i), T-day-int64(from+i)))
		}
		must[*loci.Receipt[BatchResult]](t)(m.episodes.RecordBatch(t.Context(), EpisodeBatch{batch}))
	}
	record(0, 2500)
	for i, want := range []AutoExpired{
		{Consolidated: 1000, Truncated: true}, {Consolidated: 1000, Truncated: true}, {Consolidated: 500}, {},
	} {
		wantExpired(t, fmt.Sprint("call ", i), autoExpire(t, m.AgentMemory), want)
		if i == 0 && (m.get(1500) == nil || m.get(1499) != nil) {
			t.Error("the oldest were not the first")
		}
	}
	record(10_000, 1000)
	wantExpired(t, "exactly 1000", autoExpire(t, m.AgentMemory), AutoExpired{Consolidated: 1000})
	record(20_000, 1500)
	var group sync.WaitGroup
	var mu sync.Mutex
	sum := int64(0)
	for range 3 {
		group.Go(func() {
			out, err := m.AutoExpire(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if sum += out.Consolidated; err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := must[*Count](t)(m.episodes.Count(t.Context())).Count; sum != 1500 || m.count() != 5000 || n != 0 {
		t.Errorf("%d consolidated, %d facts, %d episodes", sum, m.count(), n)
	}
	m.deepCheck()
}

func TestConsolidateBounds(t *testing.T) { // A2
	m := openMemory(t, 4)
	for i, at := range []int64{-1 << 62, 0, T} {
		keepEpisode(t, m.AgentMemory, oldEpisode(loci.PointID(i), at))
	}
	for seconds, want := range map[int64]int64{1<<63 - 1: 0, 1<<63/1_000_000 - 5: 0} {
		setPolicyOf(t, m.AgentMemory, Policy{ConsolidateAfterSeconds: &seconds})
		if out := autoExpire(t, m.AgentMemory); out.Consolidated != want {
			t.Errorf("%d s: %+v", seconds, out)
		}
	}
	if got := []int64{before(T, 1), before(T, 1<<63-1), before(0, 1<<40)}; got[0] != T-second || got[1] != -1<<63 || got[2] != -(1<<40)*second {
		t.Errorf("%v", got)
	}
}

func TestEvict(t *testing.T) { // A8
	if testing.Short() {
		t.Skip("has one goroutine, and much to write")
	}
	m := openMemory(t, 4)
	setPolicyOf(t, m.AgentMemory, Policy{EvictBelowConfidence: new(0.2)})
	learn := func(id loci.PointID, confidence float64, uses int) {
		keepProcedure(t, m.AgentMemory, ProcedureInput{
			PointInput: PointInput{ID: id}, Name: "p", Steps: []string{"s"}, Confidence: new(confidence),
		})
		for range uses {
			must[*loci.Receipt[Reinforced]](t)(m.procedures.Reinforce(t.Context(), id, true))
		}
		keepProcedure(t, m.AgentMemory, ProcedureInput{
			PointInput: PointInput{ID: id}, Name: "p", Steps: []string{"s"}, Confidence: new(confidence),
		})
	}
	learn(1, 0.19, 1)
	learn(2, 0.19, 0)
	learn(3, 0.2, 1)
	wantExpired(t, "one", autoExpire(t, m.AgentMemory), AutoExpired{Evicted: 1})
	left := must[*Page[loci.Procedure]](t)(m.procedures.List(t.Context(), ListRequest{})).Items
	if len(left) != 2 || left[0].ID != 2 || left[1].ID != 3 {
		t.Errorf("%+v", left)
	}
	for id := loci.PointID(10); id < 240; id++ {
		learn(id, 0.1, 1)
	}
	wantExpired(t, "many", autoExpire(t, m.AgentMemory), AutoExpired{Evicted: 230})
}

func TestTrimVersions(t *testing.T) { // H3
	if testing.Short() {
		t.Skip("has one goroutine, and much to write")
	}
	m := openMemory(t, 4)
	for id := range loci.PointID(130) {
		for i := range 4 {
			m.store(id, fmt.Sprint("tide ", i), x())
		}
	}
	setPolicyOf(t, m.AgentMemory, Policy{KeepVersions: new(2)})
	if h := must[*Versions](t)(m.facts.History(t.Context(), PointRequest{ID: 3})).Versions; len(h) != 3 {
		t.Errorf("%d versions", len(h))
	}
	if sum := must[*Summary](t)(m.facts.Serialize(t.Context(), &strings.Builder{})); sum.Versions != 260 {
		t.Errorf("%d versions are written out", sum.Versions)
	}
	wantExpired(t, "trimmed", autoExpire(t, m.AgentMemory), AutoExpired{Trimmed: 130})
	setPolicyOf(t, m.AgentMemory, Policy{KeepVersions: new(10)})
	if h := must[*Versions](t)(m.facts.History(t.Context(), PointRequest{ID: 3})).Versions; len(h) != 3 {
		t.Errorf("%d versions", len(h))
	}
	setPolicyOf(t, m.AgentMemory, Policy{KeepVersions: new(0)})
	wantExpired(t, "trimmed", autoExpire(t, m.AgentMemory), AutoExpired{Trimmed: 260})
	m.deepCheck()
}

func TestAutoExpireCanceled(t *testing.T) { // A9, K3
	m := openMemory(t, 4)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	out, err := m.AutoExpire(ctx)
	if wantCode(t, err, loci.ErrCanceled); out == nil || *out != (AutoExpired{}) {
		t.Errorf("%+v", out)
	}
	raw, err := json.Marshal(AutoExpired{Swept: 1})
	if err != nil || string(raw) != `{"swept":1,"consolidated":0,"evicted":0,"trimmed":0,"truncated":false}` {
		t.Errorf("%s %v", raw, err)
	}
}

func TestSetTTLOfEachKind(t *testing.T) { // T7
	m := openMemory(t, 4)
	ctx := t.Context()
	m.store(1, "tide", x())
	keepEpisode(t, m.AgentMemory, oldEpisode(1, T))
	keepProcedure(t, m.AgentMemory, ProcedureInput{PointInput: PointInput{ID: 1}, Name: "p", Steps: []string{"s"}})
	counts := func() (out [3]int64) {
		for i, s := range wholeKinds(m.AgentMemory) {
			out[i] = must[*Count](t)(s.Count(ctx)).Count
		}
		return out
	}
	expiries := func() (out [3]bool) {
		for i, s := range wholeKinds(m.AgentMemory) {
			p, _, err := s.get(ctx, GetRequest{ID: 1})
			if err != nil {
				t.Fatal(err)
			}
			out[i] = p.Expires != nil && *p.Expires == T+60*second
		}
		return out
	}
	for i, set := range []func(context.Context, TTLRequest) (*loci.Receipt[Stored], error){m.SetSemanticTTL, m.SetEpisodicTTL, m.SetProceduralTTL} {
		must[*loci.Receipt[Stored]](t)(set(ctx, TTLRequest{1, 60}))
		if got, want := expiries(), [3]bool{true, i > 0, i > 1}; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	m.reopen()
	m.clock.Set(T + 60*second - 1)
	if got := counts(); got != [3]int64{1, 1, 1} {
		t.Errorf("%v", got)
	}
	m.clock.Set(T + 60*second)
	if got := counts(); got != [3]int64{} {
		t.Errorf("%v", got)
	}
	wantExpired(t, "each", autoExpire(t, m.AgentMemory), AutoExpired{Swept: 3})
}
