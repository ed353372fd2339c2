package loci

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// indexStates runs a test against an index that is all in memory, all in files,
// and half in each.
func indexStates(t *testing.T, load func(t *testing.T, db *DB, part func()), check func(t *testing.T, db *DB)) {
	for _, state := range []string{"memory", "files", "both"} {
		t.Run(state, func(t *testing.T) {
			db := openReal(t, t.TempDir())
			flush := func() {
				if err := db.eng.index.Load().Flush(); err != nil {
					t.Fatal(err)
				}
			}
			load(t, db, func() {
				if state == "both" {
					flush()
				}
			})
			if state == "files" {
				flush()
			}
			check(t, db)
		})
	}
}

// TestFiltersBeforeTopK hides one weak hit behind 500 strong ones that the filter
// leaves out: with a window of one it is found only when the filter acts first.
func TestFiltersBeforeTopK(t *testing.T) {
	var weak, weakInScope, weakInNamespace ID
	long := strings.Repeat("other words of no interest ", 40)
	filler := func(n int) (ins []MemoryInput) {
		for i := range n {
			ins = append(ins, MemoryInput{Judgment: "harbor harbor harbor 灯塔灯塔", RecordInput: RecordInput{
				Tags: []string{"common", fmt.Sprint("t", i)}, CreatedAtUS: new(int64(1000)), Thread: new("main"), Position: new(int64(i)),
				Metadata: Metadata(`{"level":1,"kind":"log"}`)}})
		}
		return ins
	}
	load := func(t *testing.T, db *DB, part func()) {
		rememberAll(t, db, filler(250)...)
		part()
		more := filler(250)
		for i := range more {
			*more[i].Position += 250
		}
		one := MemoryInput{Judgment: "harbor 灯塔 " + long, RecordInput: RecordInput{
			Tags: []string{"common", "rare"}, CreatedAtUS: new(int64(2000)), Thread: new("side"), Position: new(int64(1)),
			Metadata: Metadata(`{"level":7,"kind":"note","extra":null}`)}}
		scoped, spaced := one, one
		scoped.Scope, spaced.Namespace = new("private"), new("elsewhere")
		ids := rememberAll(t, db, append(more, one, scoped, spaced)...)
		weak, weakInScope, weakInNamespace = ids[250], ids[251], ids[252]
	}
	where := func(key string, op Operator, value string) ReadFilter {
		return ReadFilter{Where: []Condition{{Key: key, Op: op, Value: json.RawMessage(value)}}}
	}
	indexStates(t, load, func(t *testing.T, db *DB) {
		for _, c := range []struct {
			name   string
			filter ReadFilter
			want   *ID
		}{
			{"scope", scoped("private"), &weakInScope},
			{"namespace", ReadFilter{Namespace: new("elsewhere")}, &weakInNamespace},
			{"tag", ReadFilter{Tags: []string{"rare"}}, &weak},
			{"two tags", ReadFilter{Tags: []string{" RARE", "common"}}, &weak},
			{"from", ReadFilter{CreatedFromUS: new(int64(1001))}, &weak},
			{"from, inclusive", ReadFilter{CreatedFromUS: new(int64(2000))}, &weak},
			{"window", ReadFilter{CreatedFromUS: new(int64(2000)), CreatedToUS: new(int64(2001))}, &weak},
			{"thread", ReadFilter{Thread: new("side")}, &weak},
			{"eq", where("level", OpEq, `7`), &weak},
			{"eq string", where("kind", OpEq, `"note"`), &weak},
			{"eq null", where("extra", OpEq, `null`), &weak},
			{"ne", where("level", OpNe, `1`), &weak},
			{"gt", where("level", OpGt, `1`), &weak},
			{"ge", where("level", OpGe, `7.0`), &weak},
			{"in", where("level", OpIn, `[3,7,"1"]`), &weak},
			{"exists", where("extra", OpExists, `true`), &weak},
			{"all at once", ReadFilter{Tags: []string{"rare"}, Thread: new("side"), CreatedFromUS: new(int64(1500)),
				Where: []Condition{{Key: "level", Op: OpGt, Value: json.RawMessage("2")}, {Key: "kind", Op: OpEq, Value: json.RawMessage(`"note"`)}}}, &weak},
		} {
			for _, query := range []string{"harbor", "harbor 灯塔", "harbor missing", "塔"} {
				res := wantHits(t, db, SearchRequest{Query: query, Filter: c.filter, Limit: new(1), CandidateLimit: new(1), WithTotal: true}, *c.want)
				if *res.Total != 1 {
					t.Errorf("%s, %q: total %d, want 1", c.name, query, *res.Total)
				}
			}
		}
		for name, filter := range map[string]ReadFilter{
			"unknown tag": {Tags: []string{"common", "nobody"}}, "unknown thread": {Thread: new("nobody")},
			"to, exclusive": {CreatedToUS: new(int64(1000))}, "empty window": {CreatedFromUS: new(int64(2000)), CreatedToUS: new(int64(2000))},
			"kinds": {Kinds: []Kind{KindEntity, KindChunk}}, "note ids": {NoteIDs: []ID{weak}},
			"contradiction": {Tags: []string{"rare"}, Thread: new("main")}, "another type": where("level", OpEq, `"7"`),
		} {
			if res := wantHits(t, db, SearchRequest{Query: "harbor", Filter: filter, WithTotal: true}); *res.Total != 0 {
				t.Errorf("%s: total %d", name, *res.Total)
			}
		}
		if res := search(t, db, SearchRequest{Query: "harbor", Filter: ReadFilter{CreatedToUS: new(int64(2000))}, WithTotal: true}); *res.Total != 500 {
			t.Errorf("to: total %d", *res.Total)
		}
		for _, req := range []SearchRequest{{Kinds: []Kind{KindMemory}}, {Filter: ReadFilter{Kinds: []Kind{KindMemory, KindChunk}}}} {
			req.Query, req.WithTotal = "harbor", true
			if res := search(t, db, req); *res.Total != 501 {
				t.Errorf("kinds: total %d", *res.Total)
			}
		}
		wantHits(t, db, SearchRequest{Query: "harbor", Kinds: []Kind{KindMemory}, Filter: ReadFilter{Kinds: []Kind{KindChunk}}})
	})
}

// TestWhereInSearch checks every operator against every type of value, and that
// a search and a list agree on each.
func TestWhereInSearch(t *testing.T) {
	values := []string{`5`, `5.0`, `7`, `-3`, `0`, `-0`, `"5"`, `"apple"`, `"banana"`, `""`, `true`, `false`, `null`, `[5]`, `{"a":5}`, `` /* missing */}
	ids := make([]ID, len(values))
	load := func(t *testing.T, db *DB, part func()) {
		for i, v := range values {
			m := MemoryInput{Judgment: "harbor"}
			if v != "" {
				m.Metadata = Metadata(`{"other":5,"x":` + v + `}`)
			} else {
				m.Metadata = Metadata(`{"X":5,"other":{"x":5}}`)
			}
			ids[i] = rememberAll(t, db, m)[0]
			if i == len(values)/2 {
				part()
			}
		}
	}
	all := func(but ...string) (want []string) {
		for _, v := range values {
			if v != "" && !slices.Contains(but, v) {
				want = append(want, v)
			}
		}
		return want
	}
	cases := []struct {
		op    Operator
		value string
		want  []string
	}{
		{OpEq, `5`, []string{`5`, `5.0`}},
		{OpEq, `50e-1`, []string{`5`, `5.0`}},
		{OpEq, `0`, []string{`0`, `-0`}},
		{OpEq, `"5"`, []string{`"5"`}},
		{OpEq, `""`, []string{`""`}},
		{OpEq, `"Apple"`, nil},
		{OpEq, `true`, []string{`true`}},
		{OpEq, `null`, []string{`null`}},
		{OpNe, `5`, all(`5`, `5.0`)},
		{OpNe, `"5"`, all(`"5"`)},
		{OpNe, `null`, all(`null`)},
		{OpLt, `5`, []string{`-3`, `0`, `-0`}},
		{OpLe, `5`, []string{`5`, `5.0`, `-3`, `0`, `-0`}},
		{OpGt, `5`, []string{`7`}},
		{OpGe, `5`, []string{`5`, `5.0`, `7`}},
		{OpGt, `-0`, []string{`5`, `5.0`, `7`}},
		{OpGe, `0`, []string{`5`, `5.0`, `7`, `0`, `-0`}},
		{OpLt, `"apple"`, []string{`"5"`, `""`}},
		{OpLe, `"apple"`, []string{`"5"`, `"apple"`, `""`}},
		{OpGt, `"apple"`, []string{`"banana"`}},
		{OpGe, `"apple"`, []string{`"apple"`, `"banana"`}},
		{OpIn, `[5,"apple",null]`, []string{`5`, `5.0`, `"apple"`, `null`}},
		{OpIn, `[true,"missing"]`, []string{`true`}},
		{OpIn, `[]`, nil},
		{OpExists, ``, all()},
		{OpExists, `true`, all()},
		{OpExists, `false`, []string{``}},
	}
	indexStates(t, load, func(t *testing.T, db *DB) {
		for _, c := range cases {
			filter := ReadFilter{Where: []Condition{{Key: "x", Op: c.op, Value: json.RawMessage(c.value)}}}
			got := []string{}
			res := search(t, db, SearchRequest{Query: "harbor", Filter: filter, Limit: new(50), WithTotal: true})
			for _, id := range hitIDs(res) {
				got = append(got, values[slices.Index(ids, id)])
			}
			if !slices.Equal(got, c.want) || *res.Total != int64(len(c.want)) {
				t.Errorf("%s %s: found %q of %d, want %q", c.op, c.value, got, *res.Total, c.want)
			}
			var listed []ID
			for _, m := range listMemories(t, db, filter) {
				listed = append(listed, m.ID)
			}
			if !slices.Equal(listed, hitIDs(res)) && len(listed)+len(res.Hits) > 0 {
				t.Errorf("%s %s: a list gives %v, a search %v", c.op, c.value, listed, hitIDs(res))
			}
		}
	})
}

// TestNeighbours checks neighbour_weight: who counts as a neighbour and what it
// is worth.
func TestNeighbours(t *testing.T) {
	var ids []ID
	load := func(t *testing.T, db *DB, part func()) {
		ids = rememberAll(t, db, turn("talk", 10, "where is the harbor keeper"), turn("talk", 20, "he went home"))
		part()
		tagged := turn("talk", 30, "tomorrow then")
		tagged.Tags = []string{"x"}
		ids = append(ids, rememberAll(t, db, tagged, turn("talk", 40, "the end"), turn("other", 20, "he went home"), turn("talk", -5, "hello"))...)
	}
	indexStates(t, load, func(t *testing.T, db *DB) {
		wantHits(t, db, SearchRequest{Query: "harbor"}, ids[0])
		res := wantHits(t, db, SearchRequest{Query: "harbor", NeighbourWeight: 0.5, Explain: true}, ids[0], ids[1], ids[5])
		bm25 := *res.Hits[0].TextScore
		for i, h := range res.Hits {
			own, add := 0.0, bm25/2
			if i == 0 {
				own, add = bm25, 0
			}
			if *h.TextScore != own || h.Explain.NeighbourAdd != add || h.Explain.TextScore != own+add || h.Explain.TextRank != i+1 {
				t.Errorf("hit %d: %+v, text score %v", i, h.Explain, *h.TextScore)
			}
		}
		// Two hits side by side help each other, by the better of their neighbours.
		res = search(t, db, SearchRequest{Query: "harbor home", NeighbourWeight: 1, Explain: true})
		adds := map[ID]float64{}
		scores := map[ID]float64{}
		for i, id := range hitIDs(res) {
			adds[id], scores[id] = res.Hits[i].Explain.NeighbourAdd, *res.Hits[i].TextScore
		}
		if adds[ids[0]] != scores[ids[1]] || adds[ids[1]] != scores[ids[0]] || adds[ids[2]] != scores[ids[1]] || adds[ids[4]] != 0 || adds[ids[0]] == 0 {
			t.Errorf("adds %v, scores %v", adds, scores)
		}
		// With the record between them filtered out the next one is the neighbour.
		res = wantHits(t, db, SearchRequest{Query: "tomorrow", NeighbourWeight: 0.5, Filter: ReadFilter{Tags: []string{"x"}}, Explain: true}, ids[2])
		if x := res.Hits[0].Explain; x.NeighbourAdd != 0 {
			t.Errorf("a neighbour outside the filter adds %v", x.NeighbourAdd)
		}
		// The window holds only what asked for, neighbours included.
		wantHits(t, db, SearchRequest{Query: "harbor", NeighbourWeight: 0.5, Limit: new(2), CandidateLimit: new(2)}, ids[0], ids[1])
	})
	t.Run("outside the filter", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		loud := turn("talk", 2, "harbor harbor harbor")
		loud.Metadata = Metadata(`{"hide":true}`)
		hidden := turn("talk", 4, "harbor")
		hidden.Scope = new("private")
		ids := rememberAll(t, db, turn("talk", 1, "the harbor"), loud, turn("talk", 3, "nothing"), hidden)
		res := wantHits(t, db, SearchRequest{Query: "harbor", NeighbourWeight: 1, Explain: true,
			Filter: ReadFilter{Where: []Condition{{Key: "hide", Op: OpExists, Value: json.RawMessage("false")}}}}, ids[0], ids[2])
		if x := res.Hits[0].Explain; x.NeighbourAdd != 0 {
			t.Errorf("%+v", x)
		}
		if x := res.Hits[1].Explain; x.NeighbourAdd != *res.Hits[0].TextScore {
			t.Errorf("%+v", x)
		}
	})
	t.Run("after a delete", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := rememberAll(t, db, turn("talk", 1, "the harbor"), turn("talk", 2, "between"), turn("talk", 3, "behind"))
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[1], ReadFilter{}))
		wantHits(t, db, SearchRequest{Query: "harbor", NeighbourWeight: 0.5}, ids[0], ids[2])
	})
	t.Run("no thread or no position", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		loose := MemoryInput{Judgment: "the harbor", RecordInput: RecordInput{Thread: new("talk")}}
		ids := rememberAll(t, db, loose, MemoryInput{Judgment: "next", RecordInput: RecordInput{Thread: new("talk")}}, turn("talk", 1, "placed"),
			MemoryInput{Judgment: "harbor loose"})
		wantHits(t, db, SearchRequest{Query: "harbor", NeighbourWeight: 0.5}, ids[0], ids[3])
	})
}

// TestThreads checks thread_weight and group_by thread.
func TestThreads(t *testing.T) {
	var ids []ID
	load := func(t *testing.T, db *DB, part func()) {
		ids = rememberAll(t, db, turn("a", 1, "the harbor at night"), turn("b", 1, "the harbor by day"))
		part()
		ids = append(ids, rememberAll(t, db, turn("b", 2, "harbor"), turn("b", 3, "lamp"), MemoryInput{Judgment: "harbor of no thread at all"})...)
	}
	indexStates(t, load, func(t *testing.T, db *DB) {
		res := search(t, db, SearchRequest{Query: "harbor", ThreadWeight: 0.5, Explain: true})
		add := map[ID]float64{}
		for i, id := range hitIDs(res) {
			x := res.Hits[i].Explain
			add[id] = x.ThreadAdd
			if x.TextScore != *res.Hits[i].TextScore+x.ThreadAdd {
				t.Errorf("%+v, text score %v", x, *res.Hits[i].TextScore)
			}
		}
		if len(add) != 4 || add[ids[4]] != 0 || add[ids[0]] <= 0 || add[ids[1]] != add[ids[2]] || add[ids[1]] <= add[ids[0]] {
			t.Errorf("%v", add)
		}
		res = search(t, db, SearchRequest{Query: "harbor", GroupBy: GroupThread, Explain: true})
		keys := map[string]SearchHit{}
		for _, h := range res.Hits {
			keys[h.Key] = h
		}
		if len(res.Hits) != 3 || len(keys) != 3 {
			t.Fatalf("%v", keys)
		}
		best := keys["thread:b"].Record.(*Memory).ID
		if _, ok := keys[fmt.Sprint("memory:", int64(ids[4]))]; !ok || best != ids[2] || keys["thread:a"].Record.(*Memory).ID != ids[0] {
			t.Errorf("%v", keys)
		}
		for key, h := range keys {
			x := h.Explain
			if want := *h.TextScore/2 + x.ThreadAdd; strings.HasPrefix(key, "thread:") && x.TextScore != want {
				t.Errorf("%s: %+v, text score %v", key, x, *h.TextScore)
			}
		}
		wantHits(t, db, SearchRequest{Query: "harbor", GroupBy: GroupThread, Limit: new(1), Filter: ReadFilter{Thread: new("b")}}, ids[2])
	})
	t.Run("one thread fills the window", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		var ins []MemoryInput
		for i := range 1500 {
			ins = append(ins, turn("long", int64(i), "harbor harbor harbor"))
		}
		ids := rememberAll(t, db, append(ins, turn("short", 1, "a day at the harbor"), MemoryInput{Judgment: "another day at the harbor"})...)
		wantHits(t, db, SearchRequest{Query: "harbor", GroupBy: GroupThread}, ids[0], ids[1500], ids[1501])
		wantHits(t, db, SearchRequest{Query: "harbor", GroupBy: GroupThread, Limit: new(2)}, ids[0], ids[1500])
		// A window that was asked for stays.
		wantHits(t, db, SearchRequest{Query: "harbor", GroupBy: GroupThread, Limit: new(5), CandidateLimit: new(50)}, ids[0])
	})
	// Threads of one name in two scopes are two threads: what one holds changes
	// nothing for the other, whatever they are called.
	t.Run("two scopes", func(t *testing.T) {
		load := func(name string) (*DB, []ID) {
			db := openReal(t, t.TempDir())
			var ins []MemoryInput
			for i := range 4 {
				ins = append(ins, turn("talk", int64(i), []string{"the harbor", "quiet", "nothing", "harbor lamp"}[i]))
				other := turn(name, int64(i), []string{"quiet", "harbor harbor harbor", "lamp lamp", "harbor"}[i])
				other.Scope = new("private")
				ins = append(ins, other)
			}
			return db, rememberAll(t, db, ins...)
		}
		same, ids := load("talk")
		apart, _ := load("elsewhere")
		var reqs []SearchRequest
		for _, query := range []string{"harbor", "harbor lamp"} {
			for _, filter := range []ReadFilter{scoped("public", "private"), scoped("public"), scoped("private")} {
				reqs = append(reqs, SearchRequest{Query: query, Filter: filter, NeighbourWeight: 0.7},
					SearchRequest{Query: query, Filter: filter, ThreadWeight: 0.7},
					SearchRequest{Query: query, Filter: filter, NeighbourWeight: 0.4, ThreadWeight: 0.7, Fusion: FusionScore},
					SearchRequest{Query: query, Filter: filter, GroupBy: GroupThread, Fusion: FusionScore})
			}
		}
		want := answersOf(t, apart, reqs)
		wantAnswers(t, same, reqs, want)
		if err := same.eng.index.Load().Flush(); err != nil {
			t.Fatal(err)
		}
		wantAnswers(t, same, reqs, want)
		res := search(t, same, SearchRequest{Query: "harbor", Filter: scoped("public", "private"), GroupBy: GroupThread})
		if len(res.Hits) != 2 || res.Hits[0].Key != "thread:talk" || res.Hits[1].Key != "thread:talk" {
			t.Errorf("%+v", res.Hits)
		}
		// Nobody's neighbour is in the other scope.
		res = search(t, same, SearchRequest{Query: "quiet", Filter: scoped("public", "private"), NeighbourWeight: 1, Explain: true})
		for i, id := range hitIDs(res) {
			if (id == ids[2] || id == ids[1]) && res.Hits[i].Explain.NeighbourAdd != 0 {
				t.Errorf("%d: %+v", id, res.Hits[i].Explain)
			}
		}
	})
}

// TestRecencyAndStrength checks what the two weights add and that they reorder.
func TestRecencyAndStrength(t *testing.T) {
	clock := newTestClock()
	db := openWith(t, t.TempDir(), &Options{Clock: clock.Now, WaitForIndex: true})
	now := clock.Now().UnixMicro()
	aged := func(days int64, strength float64, text string) MemoryInput {
		return MemoryInput{Judgment: text, RecordInput: RecordInput{CreatedAtUS: new(now - days*day)}, State: &MemoryState{Strength: strength}}
	}
	ids := rememberAll(t, db, aged(30, 3, "harbor harbor harbor"), aged(0, 0, "harbor harbor"), aged(60, 1, "harbor and other words"), aged(-5, 1, "harbor and some other words"))
	base := []float64{1.0 / 61, 1.0 / 62, 1.0 / 63, 1.0 / 64}
	wantScores(t, wantHits(t, db, SearchRequest{Query: "harbor"}, ids...), base...)
	check := func(req SearchRequest, order []int, recency, strength []float64) {
		t.Helper()
		req.Query, req.Explain = "harbor", true
		var want []ID
		for _, i := range order {
			want = append(want, ids[i])
		}
		res := wantHits(t, db, req, want...)
		for at, h := range res.Hits {
			i, x := order[at], h.Explain
			if x.FusedScore != base[i] || x.RecencyAdd != recency[i]*base[0] || x.StrengthAdd != strength[i]*base[0] ||
				h.Score != x.FusedScore+(x.RecencyAdd+x.StrengthAdd) || x.TextRank != i+1 {
				t.Errorf("hit %d: score %v, %+v", at, h.Score, x)
			}
		}
	}
	none := []float64{0, 0, 0, 0}
	// Half after 30 days; what is from the future counts as new.
	check(SearchRequest{RecencyWeight: 1}, []int{1, 3, 0, 2}, []float64{0.5, 1, 0.25, 1}, none)
	check(SearchRequest{StrengthWeight: 1}, []int{0, 2, 3, 1}, none, []float64{0.75, 0, 0.5, 0.5})
	check(SearchRequest{RecencyWeight: 1, StrengthWeight: 2}, []int{0, 3, 2, 1}, []float64{0.5, 1, 0.25, 1}, []float64{1.5, 0, 1, 1})
	// The weights act on the whole window, before it is cut to the limit.
	wantHits(t, db, SearchRequest{Query: "harbor", RecencyWeight: 1, Limit: new(1)}, ids[1])
	// A wide window is loaded as a whole.
	many := make([]MemoryInput, 3000)
	for i := range many {
		many[i] = aged(int64(i)+1, 0, "walrus")
	}
	crowd := rememberAll(t, db, many...)
	wantHits(t, db, SearchRequest{Query: "walrus", RecencyWeight: 1, Fusion: FusionScore, Limit: new(3), CandidateLimit: new(10000)}, crowd[:3]...)
	slices.Reverse(many)
	crowd = append(crowd, rememberAll(t, db, many...)...)
	wantHits(t, db, SearchRequest{Query: "walrus", RecencyWeight: 1, Fusion: FusionScore, Limit: new(3), CandidateLimit: new(10000)}, crowd[0], crowd[5999], crowd[1])
	// Reordering never goes by anything but score and id.
	equal := remember(t, db, "lamp", "lamp", "lamp")
	wantHits(t, db, SearchRequest{Query: "lamp", Fusion: FusionScore, RecencyWeight: 0.5, StrengthWeight: 0.5}, equal...)
}
