package loci

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// scorer is a reranker of one function.
type scorer func(ctx context.Context, query string, documents []string) ([]float64, error)

func (f scorer) Rerank(ctx context.Context, query string, documents []string) ([]float64, error) {
	return f(ctx, query, documents)
}

// sentTo keeps what a reranker was sent, and scores documents by their length.
type sentTo struct {
	mu        sync.Mutex
	query     string
	documents []string
	calls     int
	scores    func(documents []string) []float64
}

func (s *sentTo) Rerank(_ context.Context, query string, documents []string) ([]float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.query, s.documents = query, slices.Clone(documents)
	if s.scores != nil {
		return s.scores(documents), nil
	}
	out := make([]float64, len(documents))
	for i, d := range documents {
		out[i] = float64(len(d))
	}
	return out, nil
}

// sent gives what was sent last, and forgets it.
func (s *sentTo) sent() (query string, documents []string, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	query, documents, calls = s.query, s.documents, s.calls
	s.query, s.documents, s.calls = "", nil, 0
	return query, documents, calls
}

func rerankBy(t testing.TB, db *DB, r Reranker, o *RerankerOptions) {
	t.Helper()
	if err := db.RegisterReranker(t.Context(), r, o); err != nil {
		t.Fatal(err)
	}
	if s, ok := r.(*sentTo); ok {
		s.sent()
	}
}

func TestRerankRegistration(t *testing.T) { // K1, K2
	db := openReal(t, t.TempDir())
	remember(t, db, "潮水", "潮水 潮水")
	shape := func(scores ...float64) scorer {
		return func(context.Context, string, []string) ([]float64, error) { return scores, nil }
	}
	for name, r := range map[string]Reranker{"few": shape(1), "many": shape(1, 2, 3), "none": shape(), "NaN": shape(1, math.NaN()), "infinite": shape(math.Inf(1), 1), "nil": nil} {
		wantCode(t, db.RegisterReranker(t.Context(), r, nil), ErrValidation)
		if db.RerankerRegistered() {
			t.Errorf("%s: bound", name)
		}
	}
	for _, o := range []RerankerOptions{{MaxCandidates: new(0)}, {MaxTokensTotal: new(0)}, {MaxTokensPerDoc: new(0)}, {MaxTokensQuery: new(0)}, {MaxCandidates: new(-1)}} {
		wantCode(t, db.RegisterReranker(t.Context(), &sentTo{}, &o), ErrValidation)
	}
	b, err := (*RerankerOptions)(nil).bind(&sentTo{})
	if err != nil || b.candidates != 50 || b.total != 8192 || b.doc != 1024 || b.ofAQuery != math.MaxInt {
		t.Errorf("%+v, %v", b, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, db.RegisterReranker(ended, scorer(func(ctx context.Context, _ string, _ []string) ([]float64, error) {
		return nil, ctx.Err()
	}), nil), ErrCanceled)
	if db.RerankerRegistered() || db.UnregisterReranker() {
		t.Error("a reranker that was refused")
	}
	for _, r := range []Reranker{
		scorer(func(context.Context, string, []string) ([]float64, error) { return nil, errors.New("away") }),
		scorer(func(context.Context, string, []string) ([]float64, error) { panic("away") }),
	} {
		if err := db.RegisterReranker(t.Context(), r, nil); err != nil || !db.RerankerRegistered() {
			t.Errorf("one that fails outright: %v", err)
		}
		res := search(t, db, SearchRequest{Query: "潮水"})
		if len(res.Hits) != 2 || !slices.Equal(res.Diagnostics.Degraded, []Degrade{DegradeRerankFailed}) {
			t.Errorf("%+v", res)
		}
		if !db.UnregisterReranker() || db.UnregisterReranker() {
			t.Error("unregistering")
		}
	}
	if res := search(t, db, SearchRequest{Query: "潮水"}); res.Diagnostics.Reranked || len(res.Diagnostics.Degraded) != 0 || res.Hits[0].RerankScore != nil {
		t.Errorf("without one: %+v", res)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, db.RegisterReranker(t.Context(), &sentTo{}, nil), ErrClosed)
}

// biscuits are the five memories of K3, and their ids.
func biscuits(t *testing.T) (*DB, []ID) {
	db := openReal(t, t.TempDir())
	return db, remember(t, db, "海盐饼干 壹", "海盐饼干 贰", "海盐饼干 叁", "海盐饼干 肆", "海盐饼干 伍")
}

func TestRerankBudgets(t *testing.T) { // K3, K4, K9
	db, ids := biscuits(t)
	r := &sentTo{}
	for _, c := range []struct {
		o               RerankerOptions
		sent, truncated int
	}{
		{RerankerOptions{MaxTokensTotal: new(10)}, 2, 3},
		{RerankerOptions{MaxTokensTotal: new(11)}, 3, 2},
		{RerankerOptions{MaxTokensTotal: new(12)}, 3, 2},
		{RerankerOptions{MaxCandidates: new(4)}, 4, 1},
		{RerankerOptions{}, 5, 0},
		{RerankerOptions{MaxTokensTotal: new(4)}, 0, 5},
	} {
		rerankBy(t, db, r, &c.o)
		res := search(t, db, SearchRequest{Query: "海盐饼干"})
		d := res.Diagnostics
		_, documents, calls := r.sent()
		if d.RerankCandidates != c.sent || d.RerankTruncated != c.truncated || len(documents) != c.sent ||
			d.Reranked != (c.sent > 0) || (calls == 1) != (c.sent > 0) || len(d.Degraded) != 0 || !slices.Equal(hitIDs(res), ids) {
			t.Errorf("%+v: sent %q, %+v, found %v", c.o, documents, d, hitIDs(res))
		}
	}
	addMemory(t, db, MemoryInput{Judgment: strings.Repeat("海盐", 20)})
	addMemory(t, db, MemoryInput{Judgment: strings.Repeat("biscuits ", 20)})
	rerankBy(t, db, r, &RerankerOptions{MaxTokensPerDoc: new(6), MaxTokensQuery: new(1)})
	search(t, db, SearchRequest{Query: "海盐饼干 biscuits"})
	query, documents, _ := r.sent()
	if query != "海盐" || !slices.Contains(documents, "海盐海盐海盐海盐海盐海盐") || !slices.Contains(documents, "biscuits biscuits biscuits"[:24]) {
		t.Errorf("%q, %q", query, documents)
	}
}

func TestRerankOrder(t *testing.T) { // K5, K8
	db, ids := biscuits(t)
	r := &sentTo{scores: func(d []string) []float64 {
		out := make([]float64, len(d))
		out[1] = 1
		return out
	}}
	rerankBy(t, db, r, &RerankerOptions{MaxCandidates: new(3)})
	req := SearchRequest{Query: "海盐饼干", Explain: true}
	res := search(t, db, req)
	if want := []ID{ids[1], ids[0], ids[2], ids[3], ids[4]}; !slices.Equal(hitIDs(res), want) {
		t.Errorf("%v, want %v", hitIDs(res), want)
	}
	last := math.Inf(1)
	for i, h := range res.Hits {
		sent := i < 3
		if (h.RerankScore != nil) != sent || sent && (*h.RerankScore != h.Score || h.Explain.RerankRank != i+1) || !sent && (h.Explain.RerankRank != 0 || h.Score > -1) ||
			h.Score > last || h.Explain.FusedScore <= 0 {
			t.Errorf("hit %d: %+v, %+v", i, h, h.Explain)
		}
		last = h.Score
	}
	if res = search(t, db, SearchRequest{Query: "海盐饼干", Limit: new(1)}); !slices.Equal(hitIDs(res), ids[1:2]) {
		t.Errorf("limit 1: %v", hitIDs(res))
	}
	if res = search(t, db, SearchRequest{Query: "海盐饼干", NoRerank: true}); res.Diagnostics.Reranked || res.Diagnostics.RerankCandidates != 0 || !slices.Equal(hitIDs(res), ids) {
		t.Errorf("left out: %+v", res.Diagnostics)
	}
	r.sent()
	res = search(t, db, SearchRequest{Query: "nothing at all"})
	if _, _, calls := r.sent(); calls != 0 || len(res.Diagnostics.Degraded) != 0 || res.Diagnostics.Reranked {
		t.Errorf("no candidates: %d calls, %+v", calls, res.Diagnostics)
	}
}

func TestRerankDocuments(t *testing.T) { // K8
	b := newNoteBox(t)
	r := &sentTo{}
	rerankBy(t, b.db, r, nil)
	b.put("walrus/tusks.md", "an ivory walrus of old\n\na **walrus**\n\nand a walrus from far away")
	apply(t, b.db, GraphBatch{
		Entities:  []EntityInput{{Ref: "w", Name: "Walrus", Summary: "a seal with tusks"}, {Ref: "c", Name: "Carpenter"}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "w"}, Predicate: "eats with", Object: EntityRef{Ref: "c"}, Reason: "oysters"}},
		Events:    []EventInput{{Name: "A walk", Participants: []EntityRef{{Ref: "w"}}}},
	})
	addMemory(t, b.db, MemoryInput{Judgment: "the walrus wept", Reasoning: "he said so", RecordInput: RecordInput{Tags: []string{"tears"}}})
	res := must[*SearchResult](t)(b.db.Search(t.Context(), SearchRequest{Query: "walrus"}))
	_, documents, _ := r.sent()
	slices.Sort(documents)
	want := []string{"A walk\nWalrus", "Walrus\na seal with tusks", "Walrus\neats with\nCarpenter\noysters", "a walrus", "the walrus wept\nhe said so"}
	if !slices.Equal(documents, want) || len(res.Hits) != 5 {
		t.Errorf("%q, want %q", documents, want)
	}
	if i := slices.IndexFunc(res.Hits, func(h SearchHit) bool { return h.NoteChunks != nil }); i < 0 || *res.Hits[i].NoteChunks != 3 || len(res.Hits[i].TopChunks) != 3 {
		t.Errorf("%+v", res.Hits)
	}
}

// TestRerankFails is K7: whatever the reranker does, the search answers in fused
// order and says so.
func TestRerankFails(t *testing.T) {
	db, ids := biscuits(t)
	db.eng.models.rerankIn = 30 * time.Millisecond
	hang := make(chan struct{})
	defer close(hang)
	fails := map[string]scorer{
		"error": func(context.Context, string, []string) ([]float64, error) { return nil, errors.New("away") },
		"few":   func(context.Context, string, []string) ([]float64, error) { return []float64{1}, nil },
		"NaN": func(_ context.Context, _ string, d []string) ([]float64, error) {
			return append(make([]float64, len(d)-1), math.NaN()), nil
		},
		"panics": func(context.Context, string, []string) ([]float64, error) { panic("away") },
		"hangs": func(ctx context.Context, _ string, _ []string) ([]float64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"is deaf": func(context.Context, string, []string) ([]float64, error) { <-hang; return nil, nil },
	}
	for name, fail := range fails {
		t.Run(name, func(t *testing.T) {
			ok := true
			r := scorer(func(ctx context.Context, query string, d []string) ([]float64, error) {
				if ok {
					return make([]float64, len(d)), nil
				}
				return fail(ctx, query, d)
			})
			rerankBy(t, db, r, &RerankerOptions{MaxCandidates: new(2)})
			ok = false
			res := search(t, db, SearchRequest{Query: "海盐饼干"})
			d := res.Diagnostics
			if !slices.Equal(hitIDs(res), ids) || d.Reranked || d.RerankCandidates != 2 || d.RerankTruncated != 3 ||
				!slices.Equal(d.Degraded, []Degrade{DegradeRerankFailed}) || res.Hits[0].RerankScore != nil || res.Hits[0].Score != 1.0/61 {
				t.Errorf("%v, %+v", hitIDs(res), d)
			}
		})
	}
	if h := must[*HealthReport](t)(db.Health(t.Context())); !slices.Equal(h.LastDegraded, []Degrade{DegradeRerankFailed}) {
		t.Errorf("%v", h.LastDegraded)
	}
	t.Run("the caller leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		rerankBy(t, db, scorer(func(ctx context.Context, _ string, d []string) ([]float64, error) {
			if len(d) > 2 {
				cancel()
				<-ctx.Done()
			}
			return make([]float64, len(d)), ctx.Err()
		}), nil)
		_, err := db.Search(ctx, SearchRequest{Query: "海盐饼干"})
		wantCode(t, err, ErrCanceled)
	})
}

// TestRerankHoldsNothing writes while the reranker is asked: no snapshot and no
// lock is held then.
func TestRerankHoldsNothing(t *testing.T) {
	db, ids := biscuits(t)
	rerankBy(t, db, scorer(func(ctx context.Context, _ string, d []string) ([]float64, error) {
		if len(d) > 2 {
			for _, id := range ids {
				if _, err := db.Memories().Delete(ctx, id, ReadFilter{}); err != nil {
					return nil, err
				}
			}
			if _, err := db.Backup(ctx, t.TempDir()+"/backup.db"); err != nil {
				return nil, err
			}
		}
		return make([]float64, len(d)), nil
	}), nil)
	res := search(t, db, SearchRequest{Query: "海盐饼干"})
	if !res.Diagnostics.Reranked || len(res.Hits) != 5 {
		t.Errorf("%+v", res)
	}
	res = search(t, db, SearchRequest{Query: "海盐饼干"})
	if len(res.Hits) != 0 {
		t.Errorf("%+v", res)
	}
}

// TestRerankHanging holds that calls that never come back do not pile up.
func TestRerankHanging(t *testing.T) {
	hang := make(chan struct{})
	b := &boundReranker{model: scorer(func(context.Context, string, []string) ([]float64, error) { <-hang; return nil, nil })}
	for range maxHanging {
		if _, err := b.run(t.Context(), time.Millisecond, "q", []string{"d"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if _, err := b.run(t.Context(), time.Hour, "q", []string{"d"}); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxHanging)) {
		t.Fatal(err)
	}
	close(hang)
	for b.hanging.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestRerankEvents(t *testing.T) { // L2
	db, _ := biscuits(t)
	r, reranker := &recorder{}, &sentTo{}
	rerankBy(t, db, reranker, &RerankerOptions{MaxCandidates: new(2)})
	listen(t, db, r.sink)
	search(t, db, SearchRequest{Query: "海盐饼干"})
	ev := r.settled(t, db)[0]
	if _, ran := ev.Stages["rerank"]; !ran || ev.RerankDocs != 2 || ev.RerankTokens != 2+3+3 || ev.Candidates != 5 || ev.Folded != 5 || ev.Hits != 5 {
		t.Errorf("%+v", ev)
	}
}

// TestRerankPreset holds that a preset asks for memories, entities and contents,
// but never for names of files and folders, and adds up what it says of itself.
func TestRerankPreset(t *testing.T) { // P11, P12, L4
	db := openReal(t, t.TempDir())
	_, r, _ := harbourGraph(t, db)
	remember(t, db, "阿青住在渡口", "阿青")
	writeNotes(t, db, map[string]string{"阿青/阿青.md": "渡口", "b.md": "阿青今日停泊\n\n阿青"})
	req := PresetRequest{Preset: PresetBroad, Query: "阿青"}
	plain := preset(t, db, req)
	reranker := &sentTo{}
	rerankBy(t, db, reranker, nil)
	rec := &recorder{}
	listen(t, db, rec.sink)
	got := preset(t, db, req)
	ev := rec.settled(t, db)
	_, _, calls := reranker.sent()
	d := got.Diagnostics
	if calls != 3 || !d.Reranked || d.RerankCandidates != 4 || len(ev) != 1 || ev[0].RerankDocs != 4 || ev[0].Stages["rerank"] <= 0 {
		t.Errorf("%d calls, %+v, %+v", calls, d, ev)
	}
	if got.Memories[0].Record.(*Memory).Judgment != "阿青住在渡口" || got.Notes.Titles[0].RerankScore != nil || got.Notes.Contents[0].RerankScore == nil {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(relationIDs(got.Graph.Relations), []ID{r["r1"], r["r4"]}) || len(got.Graph.Entities) != 1 ||
		!slices.Equal(relationIDs(plain.Graph.Relations), relationIDs(got.Graph.Relations)) || len(plain.Graph.ContextRelations) != len(got.Graph.ContextRelations) {
		t.Errorf("%+v", got.Graph)
	}
	req.NoRerank = true
	if got = preset(t, db, req); got.Diagnostics.Reranked {
		t.Errorf("%+v", got.Diagnostics)
	}
	if _, _, calls = reranker.sent(); calls != 0 {
		t.Errorf("%d calls", calls)
	}
}

func TestRerankWithContext(t *testing.T) {
	db := openReal(t, t.TempDir())
	apply(t, db, GraphBatch{
		Entities:  []EntityInput{{Ref: "z", Name: "张叔", Aliases: []string{"更夫"}}, {Ref: "l", Name: "李婶"}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "z"}, Predicate: "knows", Object: EntityRef{Ref: "l"}}},
	})
	remember(t, db, "梆子", "梆子是木头")
	addMemory(t, db, MemoryInput{Judgment: "夜里有人敲了三次梆子", RecordInput: RecordInput{Tags: []string{"更夫"}}})
	rerankBy(t, db, &sentTo{}, nil)
	got := must[*ContextualResult](t)(db.SearchWithContext(t.Context(), SearchRequest{Query: "梆子", Kinds: []Kind{KindMemory}, Limit: new(1)}, nil))
	if len(got.Hits) != 1 || len(got.Hits[0].Record.(*Memory).Tags) != 1 || len(got.Hits[0].Context.Relations) != 1 || !got.Diagnostics.Reranked {
		t.Errorf("%+v", got)
	}
}
