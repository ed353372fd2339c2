package agent

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// episode is an input.
func episode(id loci.PointID, description string, with ...func(*EpisodeInput)) EpisodeInput {
	in := EpisodeInput{PointInput: PointInput{ID: id}, Description: description}
	for _, f := range with {
		f(&in)
	}
	return in
}

func happening(us int64) func(*EpisodeInput) { return func(in *EpisodeInput) { in.AtUS = &us } }

func standing(thread string, position int64) func(*EpisodeInput) {
	return func(in *EpisodeInput) { in.Thread, in.Position = &thread, &position }
}

func pointing(v []float32) func(*EpisodeInput) { return func(in *EpisodeInput) { in.Embedding = v } }

func saying(metadata string) func(*EpisodeInput) {
	return func(in *EpisodeInput) { in.Metadata = loci.Metadata(metadata) }
}

func living(seconds uint64) func(*EpisodeInput) {
	return func(in *EpisodeInput) { in.TTLSeconds = &seconds }
}

// recordEpisode records an episode and gives what became of it.
func (m *testMemory) recordEpisode(id loci.PointID, description string, with ...func(*EpisodeInput)) Stored {
	m.t.Helper()
	return must[*loci.Receipt[Stored]](m.t)(m.episodes.Record(m.t.Context(), episode(id, description, with...))).Value
}

// episode gives a live episode, or nil.
func (m *testMemory) episode(id loci.PointID) *loci.Episode {
	m.t.Helper()
	return must[*Found[loci.Episode]](m.t)(m.episodes.Get(m.t.Context(), GetRequest{ID: id})).Point
}

// episodeCount is the number of live episodes.
func (m *testMemory) episodeCount() int64 {
	m.t.Helper()
	return must[*Count](m.t)(m.episodes.Count(m.t.Context())).Count
}

// allEpisodes gives all live episodes by id.
func (m *testMemory) allEpisodes() (out []loci.Episode) {
	m.t.Helper()
	for cursor := ""; ; {
		page := must[*Page[loci.Episode]](m.t)(m.episodes.List(m.t.Context(), ListRequest{Limit: new(1000), Cursor: cursor}))
		out = append(out, page.Items...)
		if cursor = page.NextCursor; cursor == "" {
			return out
		}
	}
}

func (m *testMemory) recent(limit int, since *int64) []loci.PointID {
	m.t.Helper()
	return episodeIDs(must[*Episodes](m.t)(m.episodes.Recent(m.t.Context(), RecentRequest{Limit: &limit, SinceUS: since})))
}

func (m *testMemory) olderThan(us int64, limit int) []loci.PointID {
	m.t.Helper()
	return episodeIDs(must[*Episodes](m.t)(m.episodes.OlderThan(m.t.Context(), OlderThanRequest{BeforeUS: us, Limit: &limit})))
}

func (m *testMemory) between(from, to int64) []loci.PointID {
	m.t.Helper()
	return episodeIDs(must[*Episodes](m.t)(m.episodes.Between(m.t.Context(), BetweenRequest{FromUS: from, ToUS: to})))
}

func episodeIDs(page *Episodes) []loci.PointID {
	out := make([]loci.PointID, len(page.Items))
	for i := range page.Items {
		out[i] = page.Items[i].ID
	}
	return out
}

func TestRecord(t *testing.T) { // E1, V10
	m := openMemory(t, 4)
	if got := m.recordEpisode(1, "power cut", happening(T-day), saying(`{"k":1}`), living(60)); got.Vector != VectorNone || got.Version != 1 {
		t.Errorf("receipt %+v", got)
	}
	e := m.episode(1)
	if e.Description != "power cut" || e.AtUS != T-day || e.CreatedAtUS != T-day || e.RecordedAtUS != T || *e.ExpiresAtUS != T+60*second {
		t.Errorf("%+v", e)
	}
	m.recordEpisode(2, "now")
	m.recordEpisode(3, "before the epoch", happening(-1))
	m.recordEpisode(4, "tomorrow", happening(T+day))
	for id, at := range map[loci.PointID]int64{2: T, 3: -1, 4: T + day} {
		if e := m.episode(id); e.AtUS != at || e.CreatedAtUS != at || e.RecordedAtUS != T {
			t.Errorf("%+v, want at %d", e, at)
		}
	}
	m.clock.Set(T + second)
	if got := m.recordEpisode(1, "power cut again"); got.Version != 2 {
		t.Errorf("receipt %+v", got)
	}
	e = m.episode(1)
	if e.AtUS != T+second || e.CreatedAtUS != T+second || e.RecordedAtUS != T+second || e.ExpiresAtUS != nil || string(e.Metadata) != "" && string(e.Metadata) != "{}" {
		t.Errorf("%+v", e)
	}
	if n := m.episodeCount(); n != 4 {
		t.Errorf("%d episodes", n)
	}
	m.reopen()
	if again := m.episode(1); asJSON(t, again) != asJSON(t, e) {
		t.Errorf("after a reopen %s, before %s", asJSON(t, again), asJSON(t, e))
	}
	m.deepCheck()
}

func TestRecordRefused(t *testing.T) { // V1, V2, S4, S5, E5
	m := openMemory(t, 4)
	m.recordEpisode(1, "power cut", pointing(x()))
	before := m.revision()
	long := make([]byte, loci.MaxTextBytes+1)
	for name, c := range map[string]struct {
		in    EpisodeInput
		code  loci.Code
		field string
	}{
		"length":           {episode(1, "a", pointing([]float32{1, 2, 3})), loci.ErrInvalidVector, "embedding"},
		"no numbers":       {episode(1, "a", pointing([]float32{})), loci.ErrInvalidVector, "embedding"},
		"zero":             {episode(1, "a", pointing(make([]float32, 4))), loci.ErrInvalidVector, "embedding"},
		"not finite":       {episode(1, "a", pointing([]float32{float32(math.NaN()), 0, 0, 0})), loci.ErrInvalidVector, "embedding"},
		"blank":            {episode(1, " \n"), loci.ErrValidation, "description"},
		"long":             {episode(1, string(long)), loci.ErrValidation, "description"},
		"no text":          {episode(1, "\xff"), loci.ErrValidation, "description"},
		"metadata":         {episode(1, "a", saying(`[1]`)), loci.ErrValidation, "metadata"},
		"no thread":        {episode(1, "a", func(in *EpisodeInput) { in.Position = new(int64(1)) }), loci.ErrValidation, "position"},
		"thread":           {episode(1, "a", standing(" a", 1)), loci.ErrValidation, "thread"},
		"wrong revision":   {episode(1, "a", func(in *EpisodeInput) { in.ExpectedRevision = new(before - 1) }), loci.ErrStaleRevision, "expected_revision"},
		"nothing is there": {episode(9, "a", func(in *EpisodeInput) { in.ExpectedRevision = new(before) }), loci.ErrStaleRevision, "expected_revision"},
	} {
		_, err := m.episodes.Record(t.Context(), c.in)
		t.Run(name, func(t *testing.T) { wantField(t, err, c.code, c.field) })
	}
	if m.revision() != before || m.episode(1).Description != "power cut" {
		t.Error("something was written")
	}
	if m.recordEpisode(2, "", pointing(x())); m.episode(2).Description != "" {
		t.Error("an episode of nothing but a vector")
	}
}

func TestInTime(t *testing.T) { // E2, E3, E4
	m := openMemory(t, 4)
	for id, at := range map[loci.PointID]int64{1: 10, 2: 20, 3: 20} {
		m.recordEpisode(id, "a", happening(at), living(uint64(id)*100))
	}
	wantIDs(t, "recent", m.recent(10, nil), 3, 2, 1)
	wantIDs(t, "recent one", m.recent(1, nil), 3)
	wantIDs(t, "recent since 10", m.recent(10, new(int64(10))), 3, 2)
	wantIDs(t, "recent since 20", m.recent(10, new(int64(20))))
	wantIDs(t, "older than 20", m.olderThan(20, 10), 1)
	wantIDs(t, "older than 21, two", m.olderThan(21, 2), 1, 2)
	wantIDs(t, "between 10 and 20", m.between(10, 20), 1)
	wantIDs(t, "between 10 and 21", m.between(10, 21), 1, 2, 3)
	wantIDs(t, "between 20 and 20", m.between(20, 20))
	ctx := t.Context()
	_, err := m.episodes.Between(ctx, BetweenRequest{FromUS: 21, ToUS: 20})
	wantField(t, err, loci.ErrValidation, "to_us")
	for _, limit := range []int{0, -1, 10001} {
		_, err := m.episodes.Recent(ctx, RecentRequest{Limit: &limit})
		wantField(t, err, loci.ErrValidation, "limit")
		_, err = m.episodes.OlderThan(ctx, OlderThanRequest{Limit: &limit})
		wantField(t, err, loci.ErrValidation, "limit")
		_, err = m.episodes.Between(ctx, BetweenRequest{Limit: &limit})
		wantField(t, err, loci.ErrValidation, "limit")
	}
	must[*loci.Receipt[Stored]](t)(m.episodes.SetTTL(ctx, TTLRequest{ID: 3, TTLSeconds: 1}))
	m.clock.Set(T + second)
	wantIDs(t, "recent without an expired one", m.recent(1, nil), 2)
	wantIDs(t, "between without it", m.between(10, 21), 1, 2)
	wantIDs(t, "older than without it", m.olderThan(21, 3), 1, 2)
}

// TestEndsOfTime holds that no time is left out because it is the first or the last.
func TestEndsOfTime(t *testing.T) { // E2, E3
	m := openMemory(t, 4)
	const first, last = math.MinInt64, math.MaxInt64
	m.recordEpisode(0, "a", happening(first))
	m.recordEpisode(1<<64-1, "b", happening(first))
	m.recordEpisode(7, "c", happening(last))
	wantIDs(t, "recent", m.recent(10, nil), 7, 1<<64-1, 0)
	wantIDs(t, "recent since the first", m.recent(10, new(int64(first))), 7)
	wantIDs(t, "recent since the last", m.recent(10, new(int64(last))))
	wantIDs(t, "older than the last", m.olderThan(last, 10), 0, 1<<64-1)
	wantIDs(t, "older than the first", m.olderThan(first, 10))
	wantIDs(t, "between", m.between(first, last), 0, 1<<64-1)
	got := must[*Episodes](t)(m.episodes.Between(t.Context(), BetweenRequest{FromUS: first, ToUS: last, Limit: new(1)}))
	wantIDs(t, "first page", episodeIDs(got), 0)
	got = must[*Episodes](t)(m.episodes.Between(t.Context(), BetweenRequest{FromUS: first, ToUS: last, Limit: new(1), Cursor: got.NextCursor}))
	wantIDs(t, "second page", episodeIDs(got), 1<<64-1)
	if got.NextCursor != "" {
		t.Errorf("a cursor %q behind the end", got.NextCursor)
	}
}

func TestBetweenPages(t *testing.T) { // E3
	m := openMemory(t, 4)
	batch := EpisodeBatch{}
	for i := range loci.PointID(250) {
		batch.Episodes = append(batch.Episodes, episode(i*(1<<56), "a", happening(int64(i%7))))
	}
	if got := must[*loci.Receipt[BatchResult]](t)(m.episodes.RecordBatch(t.Context(), batch)); got.Value.Stored != 250 {
		t.Errorf("%+v", got)
	}
	want := m.between(2, 6)
	if want = slices.Compact(want); len(want) != 50 { // the default limit
		t.Fatalf("%d on a page", len(want))
	}
	whole := episodeIDs(must[*Episodes](t)(m.episodes.Between(t.Context(), BetweenRequest{FromUS: 2, ToUS: 6, Limit: new(10000)})))
	for _, limit := range []int{1, 7, 50, len(whole)} {
		var got []loci.PointID
		req := BetweenRequest{FromUS: 2, ToUS: 6, Limit: &limit}
		for {
			page := must[*Episodes](t)(m.episodes.Between(t.Context(), req))
			if len(page.Items) != limit && page.NextCursor != "" {
				t.Fatalf("a page of %d, not %d", len(page.Items), limit)
			}
			got = append(got, episodeIDs(page)...)
			if req.Cursor = page.NextCursor; req.Cursor == "" {
				break
			}
		}
		if !slices.Equal(got, whole) {
			t.Errorf("by pages of %d: %v, at once %v", limit, got, whole)
		}
	}
	for _, cursor := range []string{"x", "1", "1:", ":1", "01:1", "1:01", "1:-1", "+1:1", "1:1:1", " 1:1", "1:18446744073709551616"} {
		_, err := m.episodes.Between(t.Context(), BetweenRequest{FromUS: 2, ToUS: 6, Cursor: cursor})
		wantField(t, err, loci.ErrValidation, "cursor")
	}
	got := must[*Episodes](t)(m.episodes.Between(t.Context(), BetweenRequest{FromUS: 2, ToUS: 6, Limit: new(1), Cursor: "-5:7"}))
	wantIDs(t, "a cursor before the time", episodeIDs(got), whole[0])
}

func TestThreads(t *testing.T) { // E5, W5
	m := openMemory(t, 4)
	m.recordEpisode(1, "first", standing("talk", 3), living(60))
	before := m.revision()
	_, err := m.episodes.Record(t.Context(), episode(2, "second", standing("talk", 3)))
	wantField(t, err, loci.ErrConflict, "position")
	if m.revision() != before || m.episode(2) != nil {
		t.Error("something was written")
	}
	m.recordEpisode(1, "first again", standing("talk", 3), living(60))
	m.recordEpisode(2, "second", standing("talk", 4))
	m.recordEpisode(3, "third", standing("other talk", 3))
	m.store(1, "a fact", x(), withThread("talk", 3))
	other := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Scope: "other", Dimension: 4}))
	must[*loci.Receipt[Stored]](t)(other.Episodic().Record(t.Context(), episode(1, "theirs", standing("talk", 3))))

	_, err = m.episodes.Record(t.Context(), episode(2, "second", standing("talk", 3)))
	wantField(t, err, loci.ErrConflict, "position")
	m.clock.Set(T + 60*second)
	m.recordEpisode(2, "second", standing("talk", 3))
	if e := m.episode(2); *e.Position != 3 || e.Thread != "talk" || m.episode(1) != nil {
		t.Errorf("%+v", e)
	}
	if n := m.sweep(); n != 0 {
		t.Errorf("%d points were swept that had gone already", n)
	}
	if n := m.episodeCount(); n != 2 {
		t.Errorf("%d episodes", n)
	}
	m.deepCheck()
}

func TestRecordBatch(t *testing.T) { // B1, B2, B3, B5
	m := openMemory(t, 4)
	ctx := t.Context()
	before := m.revision()
	_, err := m.episodes.RecordBatch(ctx, EpisodeBatch{Episodes: []EpisodeInput{episode(1, "a"), episode(2, "b"), episode(1, " ")}})
	wantField(t, err, loci.ErrValidation, "episodes[2].description")
	_, err = m.episodes.RecordBatch(ctx, EpisodeBatch{Episodes: []EpisodeInput{
		episode(1, "a", standing("talk", 1)), episode(2, "b", standing("talk", 1)),
	}})
	wantField(t, err, loci.ErrConflict, "position")
	_, err = m.episodes.RecordBatch(ctx, EpisodeBatch{Episodes: make([]EpisodeInput, MaxBatch+1)})
	wantField(t, err, loci.ErrValidation, "episodes")
	must[*loci.Receipt[BatchResult]](t)(m.episodes.RecordBatch(ctx, EpisodeBatch{}))
	if m.revision() != before || m.episodeCount() != 0 {
		t.Error("something was written")
	}
	got := must[*loci.Receipt[BatchResult]](t)(m.episodes.RecordBatch(ctx, EpisodeBatch{Episodes: []EpisodeInput{
		episode(1, "a", living(5)), episode(2, "b", saying(`{"k":1}`), pointing(d())), episode(1, "c", happening(7)), episode(3, "d", living(0)),
	}}))
	if got.Revision != before+1 || got.Value != (BatchResult{Stored: 2, Removed: 1, Replaced: 1}) {
		t.Errorf("%+v", got)
	}
	if e := m.episode(1); e.Description != "c" || e.AtUS != 7 || e.ExpiresAtUS != nil || m.episode(3) != nil {
		t.Errorf("%+v", e)
	}
}

func TestEpisodeMetadata(t *testing.T) { // E7, M1, M2
	m := openMemory(t, 4)
	m.recordEpisode(1, "power cut", happening(T-2*day), saying(`{"a":1,"b":2}`), standing("talk", 3))
	m.recordEpisode(2, "rain", happening(T-day))
	m.clock.Set(T + second)
	before := m.episode(1)
	must[*loci.Receipt[Stored]](t)(m.episodes.UpdateMetadata(t.Context(),
		UpdateRequest{ID: 1, Updates: loci.Metadata(`{"a":null,"c":3,"content":"dropped"}`)}))
	after := m.episode(1)
	if string(after.Metadata) != `{"b":2,"c":3}` || after.AtUS != before.AtUS || after.CreatedAtUS != before.CreatedAtUS ||
		after.Description != "power cut" || *after.Position != 3 || after.Version != 2 {
		t.Errorf("%+v", after)
	}
	wantIDs(t, "recent", m.recent(10, nil), 2, 1)
	res := must[*loci.SearchResult](t)(m.db.Search(t.Context(), loci.SearchRequest{
		Query: "power cut", Kinds: []loci.Kind{loci.KindEpisode},
		Filter: loci.ReadFilter{Scopes: []string{"public"}, CreatedFromUS: new(T - 2*day), CreatedToUS: new(T - day)},
	}))
	if len(res.Hits) != 1 {
		t.Fatalf("%d hits in its time", len(res.Hits))
	}
	res = must[*loci.SearchResult](t)(m.db.Search(t.Context(), loci.SearchRequest{
		Query: "power cut", Kinds: []loci.Kind{loci.KindEpisode},
		Filter: loci.ReadFilter{Scopes: []string{"public"}, CreatedFromUS: new(T - day)},
	}))
	if len(res.Hits) != 0 {
		t.Errorf("%d hits behind its time", len(res.Hits))
	}
}

func (m *testMemory) recallSimilar(req RecallRequest) []loci.PointID {
	m.t.Helper()
	var out []loci.PointID
	for _, h := range must[*EpisodeHits](m.t)(m.episodes.RecallSimilar(m.t.Context(), req)).Hits {
		out = append(out, h.Episode.ID)
	}
	return out
}

func TestRecallSimilar(t *testing.T) { // E6, T3, Q2, X3
	m := openMemory(t, 4)
	m.recordEpisode(1, "the ferry leaves at nine", pointing(x()))
	m.recordEpisode(2, "the ferry was late", pointing(d()), saying(`{"k":1}`))
	m.recordEpisode(3, "the ferry sank")
	hits := must[*EpisodeHits](t)(m.episodes.RecallSimilar(t.Context(), RecallRequest{Embedding: x(), K: new(3)})).Hits
	if len(hits) != 2 || hits[0].Episode.ID != 1 || !near(hits[0].Score, 1) || hits[1].Episode.ID != 2 || !near(hits[1].Score, 0.6) ||
		hits[1].Episode.Description != "the ferry was late" || hits[1].Episode.AtUS != T {
		t.Errorf("%+v", hits)
	}
	filter := Selection{Filter: loci.Metadata(`{"k":1}`)}
	wantIDs(t, "with a filter", m.recallSimilar(RecallRequest{Embedding: x(), K: new(1), Selection: filter}), 2)
	wantIDs(t, "behind the first", m.recallSimilar(RecallRequest{Embedding: x(), K: new(5), Offset: 1}), 2)
	wantIDs(t, "approximately", m.recallSimilar(RecallRequest{Embedding: x(), Approximate: true}), 1, 2)
	byText := m.recallSimilar(RecallRequest{Text: "ferry"})
	slices.Sort(byText)
	wantIDs(t, "by text", byText, 1, 2, 3)
	wantIDs(t, "by text, with a filter", m.recallSimilar(RecallRequest{Text: "ferry", K: new(1), Selection: filter}), 2)

	for name, req := range map[string]RecallRequest{
		"neither": {}, "both": {Embedding: x(), Text: "ferry"}, "blank": {Text: "  "}, "k": {Embedding: x(), K: new(0)},
		"k of text": {Text: "ferry", K: new(0)}, "offset": {Embedding: x(), Offset: -1},
		"filter": {Embedding: x(), Selection: Selection{Filter: loci.Metadata(`[]`)}},
	} {
		_, err := m.episodes.RecallSimilar(t.Context(), req)
		t.Run(name, func(t *testing.T) { wantCode(t, err, loci.ErrValidation) })
	}
	for _, v := range [][]float32{{}, {1, 2, 3}, {0, 0, 0, 0}} {
		_, err := m.episodes.RecallSimilar(t.Context(), RecallRequest{Embedding: v})
		wantCode(t, err, loci.ErrInvalidVector)
	}
	must[*loci.Receipt[Stored]](t)(m.episodes.SetTTL(t.Context(), TTLRequest{ID: 1, TTLSeconds: 1}))
	m.clock.Set(T + second)
	wantIDs(t, "an expired one takes no place", m.recallSimilar(RecallRequest{Embedding: x(), K: new(1)}), 2)
}

// TestNoEpisodes holds what an empty memory answers. // Y1, Y2
func TestNoEpisodes(t *testing.T) {
	m := openMemory(t, 4)
	wantIDs(t, "recent", m.recent(10, nil))
	wantIDs(t, "older than", m.olderThan(T, 10))
	wantIDs(t, "between", m.between(0, T))
	wantIDs(t, "recall", m.recallSimilar(RecallRequest{Embedding: x()}))
	wantIDs(t, "recall by text", m.recallSimilar(RecallRequest{Text: "ferry"}))
	for _, v := range []any{
		must[*Episodes](t)(m.episodes.Recent(t.Context(), RecentRequest{})),
		must[*EpisodeHits](t)(m.episodes.RecallSimilar(t.Context(), RecallRequest{Embedding: x()})),
	} {
		if got := asJSON(t, v); got != `{"items":[]}` && got != `{"hits":[]}` {
			t.Errorf("as JSON %s", got)
		}
	}
	if m.episode(1) != nil {
		t.Error("an episode of nothing")
	}
}

func TestEpisodeVectors(t *testing.T) { // V5, V6, V10, V11
	m := openEmbedding(t, 8)
	score := func(v []float32) float64 {
		t.Helper()
		hits := must[*EpisodeHits](t)(m.episodes.RecallSimilar(t.Context(), RecallRequest{Embedding: v})).Hits
		if len(hits) != 1 {
			t.Fatalf("%d hits", len(hits))
		}
		return hits[0].Score
	}
	if got := m.recordEpisode(1, "tide"); got.Vector != VectorMade || !near(score(m.fake.Vector("tide")), 1) {
		t.Errorf("receipt %+v", got)
	}
	if got := m.recordEpisode(1, "tide", pointing(axis8(3))); got.Vector != VectorGiven || !near(score(axis8(3)), 1) {
		t.Errorf("receipt %+v", got)
	}
	if got := m.recordEpisode(1, "ferry"); got.Vector != VectorMade || !near(score(m.fake.Vector("ferry")), 1) {
		t.Errorf("receipt %+v", got)
	}
	m.fake.Fail(fakeembed.Fails)
	if got := m.recordEpisode(1, "harbour"); got.Vector != VectorPending {
		t.Errorf("receipt %+v", got)
	}
	wantIDs(t, "by vector", m.recallSimilar(RecallRequest{Embedding: m.fake.Vector("harbour")}))
	wantIDs(t, "by text", m.recallSimilar(RecallRequest{Text: "harbour"}), 1)
	m.fake.Fail(fakeembed.None)
	m.embedPending()
	if got := score(m.fake.Vector("harbour")); !near(got, 1) {
		t.Errorf("score %v", got)
	}
}

// axis8 is a vector of 8 numbers, one of which is 1.
func axis8(at int) []float32 {
	v := make([]float32, 8)
	v[at] = 1
	return v
}

// TestInTimeModel compares what is asked for by time with a naive list.
func TestInTimeModel(t *testing.T) { // E2, E3, E4
	if testing.Short() {
		t.Skip("hundreds of writes, one at a time")
	}
	m := openMemory(t, 4)
	type entry struct {
		id loci.PointID
		at int64
	}
	var model []entry
	seed := uint64(7)
	next := func(n uint64) uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return (seed >> 33) % n }
	for i := range 300 {
		e := entry{loci.PointID(next(60)), int64(next(12)) - 6}
		if next(5) == 0 {
			must[*loci.Receipt[bool]](t)(m.episodes.Delete(t.Context(), e.id))
			model = slices.DeleteFunc(model, func(o entry) bool { return o.id == e.id })
		} else {
			m.recordEpisode(e.id, fmt.Sprint("event ", i), happening(e.at))
			model = append(slices.DeleteFunc(model, func(o entry) bool { return o.id == e.id }), e)
		}
		slices.SortFunc(model, func(a, b entry) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return int(int64(a.id) - int64(b.id))
		})
		from, to, limit := int64(next(12))-6, int64(next(12))-6, int(next(20))+1
		if from > to {
			from, to = to, from
		}
		var inside, older, recent []loci.PointID
		for _, o := range model {
			if o.at >= from && o.at < to && len(inside) < 50 {
				inside = append(inside, o.id)
			}
			if o.at < to && len(older) < limit {
				older = append(older, o.id)
			}
		}
		for _, o := range slices.Backward(model) {
			if o.at > from && len(recent) < limit {
				recent = append(recent, o.id)
			}
		}
		wantIDs(t, "between", m.between(from, to), inside...)
		wantIDs(t, "older than", m.olderThan(to, limit), older...)
		wantIDs(t, "recent", m.recent(limit, &from), recent...)
	}
}
