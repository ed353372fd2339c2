package loci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// openReal opens a store with the real index, which is closed with the test.
func openReal(t testing.TB, dir string) *DB {
	t.Helper()
	return openWith(t, dir, &Options{Clock: newTestClock().Now, WaitForIndex: true})
}

// openWith is openReal with other options.
func openWith(t testing.TB, dir string, opts *Options) *DB {
	t.Helper()
	db, err := Open(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func remember(t testing.TB, db *DB, judgments ...string) (ids []ID) {
	t.Helper()
	ins := make([]MemoryInput, len(judgments))
	for i, j := range judgments {
		ins[i].Judgment = j
	}
	return rememberAll(t, db, ins...)
}

// rememberAll writes memories in one operation.
func rememberAll(t testing.TB, db *DB, ins ...MemoryInput) (ids []ID) {
	t.Helper()
	for _, m := range must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), ins)).Value {
		ids = append(ids, m.ID)
	}
	return ids
}

// in is a memory of a scope.
func in(scope, judgment string) MemoryInput {
	return MemoryInput{Judgment: judgment, RecordInput: RecordInput{Scope: &scope}}
}

// inNamespace is a memory of a namespace.
func inNamespace(namespace, judgment string) MemoryInput {
	return MemoryInput{Judgment: judgment, RecordInput: RecordInput{Namespace: &namespace}}
}

// turn is a memory at a place in a thread.
func turn(thread string, position int64, judgment string) MemoryInput {
	return MemoryInput{Judgment: judgment, RecordInput: RecordInput{Thread: &thread, Position: &position}}
}

func search(t testing.TB, db *DB, req SearchRequest) *SearchResult {
	t.Helper()
	return must[*SearchResult](t)(db.Search(t.Context(), req))
}

func hitIDs(res *SearchResult) []ID {
	ids := []ID{}
	for i := range res.Hits {
		ids = append(ids, res.Hits[i].Record.(*Memory).ID)
	}
	return ids
}

// wantHits searches and compares the ids found, in order.
func wantHits(t testing.TB, db *DB, req SearchRequest, want ...ID) *SearchResult {
	t.Helper()
	res := search(t, db, req)
	if got := hitIDs(res); !slices.Equal(got, want) {
		t.Errorf("%.80q found %v, want %v", req.Query, got, want)
	}
	return res
}

// answer is what of a search must not depend on how the index came about.
type answer struct {
	ids    []ID
	scores []float64
	bm25   []float64
	total  int64
}

func answerOf(t testing.TB, db *DB, req SearchRequest) (a answer) {
	t.Helper()
	req.WithTotal = true
	res := search(t, db, req)
	a.ids, a.total = hitIDs(res), *res.Total
	for _, h := range res.Hits {
		a.scores, a.bm25 = append(a.scores, h.Score), append(a.bm25, *h.TextScore)
	}
	return a
}

func (a answer) equal(b answer) bool {
	return slices.Equal(a.ids, b.ids) && slices.Equal(a.scores, b.scores) && slices.Equal(a.bm25, b.bm25) && a.total == b.total
}

// answersOf gives the answers to a set of requests.
func answersOf(t testing.TB, db *DB, reqs []SearchRequest) []answer {
	t.Helper()
	out := make([]answer, len(reqs))
	for i, req := range reqs {
		out[i] = answerOf(t, db, req)
	}
	return out
}

func wantAnswers(t testing.TB, db *DB, reqs []SearchRequest, want []answer) {
	t.Helper()
	for i, got := range answersOf(t, db, reqs) {
		if !got.equal(want[i]) {
			t.Errorf("request %d, %q, gives\n%.300v, want\n%.300v", i, reqs[i].Query, fmt.Sprint(got), fmt.Sprint(want[i]))
			return
		}
	}
}

func wantScores(t testing.TB, res *SearchResult, want ...float64) {
	t.Helper()
	var got []float64
	for _, h := range res.Hits {
		got = append(got, h.Score)
	}
	if !slices.Equal(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
}

func rebuild(t testing.TB, db *DB) {
	t.Helper()
	h := must[*HealthReport](t)(db.RebuildIndexes(t.Context()))
	if !h.IndexUsable || h.PendingIndexUpdates != 0 || h.IndexedDocuments != h.RecordCount {
		t.Errorf("after a rebuild: %+v", h)
	}
}

// TestHostileQueries sends what no user would type: plain words are found in
// it, nothing in it is an operator, and the rest gives no hits or a validation
// error.
func TestHostileQueries(t *testing.T) {
	db := openReal(t, t.TempDir())
	ids := remember(t, db,
		"the harbor API is written in C++ and tested in CI",    // 0
		"重跑gen-itgc后50条记录全部通过",                                 // 1
		"tea \"quoted\" AND (grouped) OR NOT near* ^boost ~2",  // 2
		"rock and roll 🎸 on the 码头",                            // 3
		"plain C is older",                                     // 4
		"getUserName reads max_tokens from /etc/loci/app.toml", // 5
	)
	found := func(query string, want ...ID) func(*testing.T) {
		return func(t *testing.T) { wantHits(t, db, SearchRequest{Query: query}, want...) }
	}
	t.Run("C++", func(t *testing.T) {
		if res := search(t, db, SearchRequest{Query: "C++"}); len(res.Hits) == 0 || hitIDs(res)[0] != ids[0] {
			t.Errorf("%v", hitIDs(res))
		}
	})
	t.Run("mixed scripts without spaces", func(t *testing.T) {
		res := search(t, db, SearchRequest{Query: "重跑gen-itgc后50条", Explain: true})
		if len(res.Hits) != 1 || hitIDs(res)[0] != ids[1] || res.Hits[0].Explain.Round != "every_term" {
			t.Errorf("%v", hitIDs(res))
		}
	})
	t.Run("one Chinese character", found("码", ids[3]))
	t.Run("two characters", found("码头", ids[3]))
	t.Run("operators", found(`harbor AND NOT (missing) -api "written in`, ids[0]))
	t.Run("minus does not exclude", found("harbor -api", ids[0]))
	t.Run("prefix star", found("harb*"))
	t.Run("field syntax", found("judgment:harbor", ids[0]))
	t.Run("sql", found(`'; DROP TABLE memories; -- harbor`, ids[0]))
	t.Run("camel case", found("user name", ids[5]))
	t.Run("snake case", found("max_tokens", ids[5]))
	t.Run("path", found("/etc/loci/app.toml", ids[5]))
	t.Run("stop words only", found("the and of is AND NOT the"))
	t.Run("punctuation only", found(`"?!.,;:()[]{}<>|\/`))
	t.Run("one punctuation mark", found("，"))
	t.Run("zero-width only", found("\u200b\u200d\ufeff"))
	t.Run("controls", found("harbor\x01\x02\x7f", ids[0]))
	t.Run("NUL between words", found("harbor\x00missing", ids[0]))
	t.Run("only NUL", func(t *testing.T) {
		if res, err := db.Search(t.Context(), SearchRequest{Query: "\x00"}); err == nil {
			if len(res.Hits) != 0 {
				t.Error(hitIDs(res))
			}
		} else {
			wantCode(t, err, ErrValidation)
		}
	})
	t.Run("emoji", func(t *testing.T) {
		for _, id := range hitIDs(search(t, db, SearchRequest{Query: "🎸"})) {
			if id != ids[3] {
				t.Error(id)
			}
		}
		wantHits(t, db, SearchRequest{Query: "🎸🎸👨‍👩‍👧 roll"}, ids[3])
	})
	t.Run("combining marks", found("harbor\u0301\u0301\u0301 code\u0301 api", ids[0]))
	t.Run("100 KB of one word", found(strings.Repeat("harbor ", 15_000), ids[0]))
	t.Run("100 KB without a blank", found(strings.Repeat("x", 100<<10)))
	t.Run("100 KB of Chinese", found(strings.Repeat("码", 33<<10), ids[3]))
	t.Run("30,000 words", func(t *testing.T) {
		var b strings.Builder
		b.WriteString("harbor")
		for i := range 30_000 {
			fmt.Fprintf(&b, " w%d", i)
		}
		// The numbers in it are in other texts too.
		if got := hitIDs(search(t, db, SearchRequest{Query: b.String()})); len(got) == 0 || got[0] != ids[0] {
			t.Error(got)
		}
	})
	t.Run("10,000 quotes", found(strings.Repeat(`"`, 10_000)+"harbor", ids[0]))
	for name, query := range map[string]string{
		"empty": "", "blanks": " \t\r\n\u3000", "invalid UTF-8": "harbor \xff\xfe", "cut rune": "码头"[:5],
		"too long": strings.Repeat("a", MaxQueryBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := db.Search(t.Context(), SearchRequest{Query: query})
			if e := wantCode(t, err, ErrValidation); e.Field != "query" || e.Op != "search" || strings.Contains(e.Error(), "harbor") {
				t.Errorf("%v", e)
			}
		})
	}
}

// TestStatisticsIsolation checks that a namespace's scores are its own: what
// another namespace holds, and what was once there, moves none of them by a
// single bit.
func TestStatisticsIsolation(t *testing.T) {
	dir, all := t.TempDir(), t
	db := openReal(t, dir)
	words := []string{"harbor", "tide", "灯塔", "茶馆", "lamp", "keeper", "潮水", "api"}
	text := func(i int) string {
		return fmt.Sprint(words[i%8], " ", words[i/2%8], " ", words[i*i%8], " ", strings.Repeat(words[i/3%8]+" ", i%4))
	}
	var ins []MemoryInput
	for i := range 40 {
		m := MemoryInput{Judgment: text(i), RecordInput: RecordInput{Tags: []string{words[i%5]}}}
		if i%4 == 0 {
			m.Thread, m.Position = new(fmt.Sprint("t", i%3)), new(int64(i))
		}
		ins = append(ins, m)
	}
	rememberAll(t, db, ins...)
	var reqs []SearchRequest
	for _, query := range []string{"harbor", "harbor tide lamp", "灯塔 茶馆", "塔", "keeper api missing"} {
		reqs = append(reqs, SearchRequest{Query: query, Limit: new(40)},
			SearchRequest{Query: query, Fusion: FusionScore, NeighbourWeight: 0.5, ThreadWeight: 0.5, Limit: new(50)})
	}
	before := answersOf(t, db, reqs)
	if len(before[0].ids) < 5 || len(before[5].ids) < 5 {
		t.Fatalf("the queries find too little: %+v", before)
	}
	var noise []MemoryInput
	for i := range 500 {
		m := inNamespace("other", text(i)+" harbor harbor 灯塔")
		m.Thread, m.Position = new("t0"), new(int64(i))
		noise = append(noise, m)
	}
	t.Run("another namespace grows", func(t *testing.T) {
		noiseIDs := rememberAll(t, db, noise...)
		wantAnswers(t, db, reqs, before)
		other := ReadFilter{Namespace: new("other")}
		for _, id := range noiseIDs[:20] {
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), id, other))
		}
		wantAnswers(t, db, reqs, before)
		must[*Receipt[int64]](t)(db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: other}))
		wantAnswers(t, db, reqs, before)
	})
	t.Run("deleted records leave no trace", func(t *testing.T) {
		extra := remember(t, db, "harbor harbor harbor tide", "灯塔灯塔 茶馆", "a very long one "+strings.Repeat("lamp keeper ", 50))
		changed := false
		for i, a := range answersOf(t, db, reqs) {
			changed = changed || !a.equal(before[i])
		}
		if !changed {
			t.Error("three more records change no answer: the test shows nothing")
		}
		for _, id := range extra {
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), id, ReadFilter{}))
		}
		wantAnswers(t, db, reqs, before)
	})
	t.Run("the same after an update back and forth", func(t *testing.T) {
		list := listMemories(t, db, ReadFilter{})
		first := list[0]
		change := MemoryInput{Judgment: "something else entirely, harbor", RecordInput: RecordInput{ID: first.ID}}
		addMemory(t, db, change)
		change.Judgment, change.Tags, change.Thread, change.Position = first.Judgment, first.Tags, new(first.Thread), first.Position
		addMemory(t, db, change)
		wantAnswers(t, db, reqs, before)
	})
	t.Run("the same from files, with deletes", func(t *testing.T) {
		if err := db.eng.index.Load().Flush(); err != nil {
			t.Fatal(err)
		}
		wantAnswers(t, db, reqs, before)
		ids := rememberAll(t, db, noise[:100]...)
		extra := remember(t, db, "harbor harbor tide", "灯塔")
		if err := db.eng.index.Load().Flush(); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), id, ReadFilter{Namespace: new("other")}))
		}
		for _, id := range extra {
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), id, ReadFilter{}))
		}
		wantAnswers(t, db, reqs, before)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openReal(all, dir)
		wantAnswers(t, db, reqs, before)
	})
	t.Run("the same after a rebuild", func(t *testing.T) {
		rebuild(t, db)
		wantAnswers(t, db, reqs, before)
	})
}
