package loci

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestSearchCases(t *testing.T) {
	t.Run("R6", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		remember(t, db, "灯塔换灯")
		_, err := db.Search(t.Context(), SearchRequest{Query: "灯塔", Filter: ReadFilter{Scopes: []string{}}})
		if e := wantCode(t, err, ErrValidation); e.Field != "filter.scopes" {
			t.Error(e)
		}
	})
	t.Run("R7", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := remember(t, db, "灯塔换灯")
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: scoped("public", "never-used")}, ids[0])
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: scoped("never-used", "public", "public")}, ids[0])
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: scoped("never-used")})
	})
	t.Run("R8", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := rememberAll(t, db, inNamespace("港务", "灯塔换灯"), inNamespace("default", "灯塔熄灯"))
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: ReadFilter{Namespace: new("港务")}}, ids[0])
		wantHits(t, db, SearchRequest{Query: "灯塔"}, ids[1])
		res := wantHits(t, db, SearchRequest{Query: "灯塔", WithTotal: true, Filter: ReadFilter{Namespace: new("unknown")}})
		if *res.Total != 0 || res.Hits == nil || len(res.Diagnostics.Degraded) != 0 || res.Diagnostics.Degraded == nil {
			t.Errorf("%+v", res)
		}
		if _, err := db.Memories().Get(t.Context(), ids[0], ReadFilter{}); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("R9", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := rememberAll(t, db, inNamespace("Harbor", "灯塔"), in("Team", "灯塔"))
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: ReadFilter{Namespace: new("harbor")}})
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: ReadFilter{Namespace: new("Harbor")}}, ids[0])
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: scoped("team")})
		wantHits(t, db, SearchRequest{Query: "灯塔", Filter: scoped("Team")}, ids[1])
	})
	t.Run("Q1", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		for _, req := range []SearchRequest{{Query: "  "}, {}, {Query: "tide", NoText: true}} {
			_, err := db.Search(t.Context(), req)
			wantCode(t, err, ErrValidation)
		}
		res := search(t, db, SearchRequest{Query: "tide"})
		if !res.Diagnostics.TextUsed || len(res.Diagnostics.Degraded) != 0 || res.Total != nil || len(res.Hits) != 0 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("Q2", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := remember(t, db, "the tide table", "nothing of it")
		res := wantHits(t, db, SearchRequest{Query: "tide"}, ids[0])
		wantScores(t, res, 1.0/61)
		if h := res.Hits[0]; h.Key != fmt.Sprint("memory:", int64(ids[0])) || h.TextScore == nil || *h.TextScore <= 0 || h.Explain != nil {
			t.Errorf("%+v", h)
		}
		if res.Revision != 1 || res.IndexedRevision != 1 {
			t.Errorf("revisions %d and %d", res.Revision, res.IndexedRevision)
		}
		wantScores(t, search(t, db, SearchRequest{Query: "tide", TextWeight: new(2.0)}), 2.0/61)
		remember(t, db, "tide tide")
		wantScores(t, search(t, db, SearchRequest{Query: "tide"}), 1.0/61, 1.0/62)
	})
	t.Run("Q3", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		for i := range 20 {
			remember(t, db, fmt.Sprint("港口日志 entry ", i))
		}
		res := wantHits(t, db, SearchRequest{Query: "蜂蜜 walrus", WithTotal: true})
		if *res.Total != 0 {
			t.Error(*res.Total)
		}
	})
	t.Run("Q4", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := remember(t, db, "红茶馆新开张", "茶馆挂红灯笼, 茶馆茶馆")
		res := wantHits(t, db, SearchRequest{Query: "红茶馆", Explain: true}, ids...)
		if a, b := res.Hits[0].Explain.Round, res.Hits[1].Explain.Round; a != "every_term" || b != "any_term" {
			t.Error(a, b)
		}
	})
	t.Run("Q5", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := remember(t, db, "塔楼翻修", "茶叶产自杭州")
		res := wantHits(t, db, SearchRequest{Query: "灯塔", Explain: true}, ids[0])
		if r := res.Hits[0].Explain.Round; r != "any_character" {
			t.Error(r)
		}
		res = wantHits(t, db, SearchRequest{Query: "杭州 茶", Explain: true}, ids[1])
		if r := res.Hits[0].Explain.Round; r != "every_term" {
			t.Error(r)
		}
	})
	t.Run("Q6", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := rememberAll(t, db, MemoryInput{Judgment: "Harbor API"},
			MemoryInput{Judgment: "夜航记录", RecordInput: RecordInput{Tags: []string{"星图"}}})
		for _, query := range []string{"ａｐｉ", "api", "API", "ＡＰＩ"} {
			wantHits(t, db, SearchRequest{Query: query}, ids[0])
		}
		wantHits(t, db, SearchRequest{Query: "星图"}, ids[1])
	})
	t.Run("Q7", func(t *testing.T) {
		dir := t.TempDir()
		db := openReal(t, dir)
		texts := make([]string, 140)
		for i := range texts {
			texts[i] = "灯塔 lamp"
		}
		ids := remember(t, db, texts...)
		for _, query := range []string{"灯塔", "lamp missing", "塔"} {
			req := SearchRequest{Query: query, Limit: new(3), CandidateLimit: new(3)}
			wantHits(t, db, req, ids[:3]...)
		}
		req := SearchRequest{Query: "灯塔", Limit: new(3), CandidateLimit: new(3)}
		rebuild(t, db)
		wantHits(t, db, req, ids[:3]...)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openReal(t, dir)
		wantHits(t, db, req, ids[:3]...)
		// One more, equal, in the memory segment beside the files: still by id.
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[1], ReadFilter{}))
		last := remember(t, db, "灯塔 lamp")
		wantHits(t, db, req, ids[0], ids[2], ids[3])
		all := hitIDs(search(t, db, SearchRequest{Query: "灯塔", Limit: new(1000)}))
		if len(all) != 140 || !slices.IsSorted(all) || all[139] != last[0] {
			t.Errorf("%v", all)
		}
	})
	t.Run("Q9", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		ids := rememberAll(t, db, MemoryInput{Judgment: "tide one"}, MemoryInput{Judgment: "tide two"}, MemoryInput{Judgment: "tide three"},
			MemoryInput{Judgment: "other"}, in("private", "tide"), inNamespace("x", "tide"))
		res := wantHits(t, db, SearchRequest{Query: "tide", Limit: new(1), CandidateLimit: new(1), WithTotal: true}, ids[0])
		if *res.Total != 3 {
			t.Error(*res.Total)
		}
		if res = search(t, db, SearchRequest{Query: "tide", Limit: new(1)}); res.Total != nil {
			t.Error(*res.Total)
		}
		for want, req := range map[int64]SearchRequest{
			4: {Query: "tide", Filter: scoped("public", "private")},
			1: {Query: "tide", Filter: scoped("private")},
			0: {Query: "tide", Kinds: []Kind{KindEntity}},
			2: {Query: "one two"},
		} {
			req.WithTotal, req.Limit = true, new(1)
			if res := search(t, db, req); *res.Total != want {
				t.Errorf("%+v: total %d, want %d", req.Filter, *res.Total, want)
			}
		}
	})
	t.Run("M11, V18", func(t *testing.T) {
		for _, flushed := range []bool{false, true} {
			db := openReal(t, t.TempDir())
			ids := remember(t, db, "潮水表", "潮水日志", "潮水")
			if flushed {
				if err := db.eng.index.Load().Flush(); err != nil {
					t.Fatal(err)
				}
			}
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[2], ReadFilter{}))
			res := wantHits(t, db, SearchRequest{Query: "潮水", WithTotal: true}, ids[0], ids[1])
			if *res.Total != 2 {
				t.Error(*res.Total)
			}
			addMemory(t, db, MemoryInput{Judgment: "灯塔", RecordInput: RecordInput{ID: ids[0]}})
			wantHits(t, db, SearchRequest{Query: "潮水"}, ids[1])
			wantHits(t, db, SearchRequest{Query: "灯塔"}, ids[0])
			addMemory(t, db, MemoryInput{Judgment: "潮水", RecordInput: RecordInput{ID: ids[1], Scope: new("private")}})
			wantHits(t, db, SearchRequest{Query: "潮水"})
			wantHits(t, db, SearchRequest{Query: "潮水", Filter: scoped("private")}, ids[1])
			must[*Receipt[int64]](t)(db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: scoped("public", "private")}))
			wantHits(t, db, SearchRequest{Query: "潮水 灯塔", Filter: scoped("public", "private")})
		}
	})
}

// TestSearchValidation is Q17, W1, W2 and W3 for searches: what is refused, by
// which field, and that nothing changes by it.
func TestSearchValidation(t *testing.T) {
	db := openReal(t, t.TempDir())
	remember(t, db, "tide")
	before := stateOf(t, db)
	where := func(c Condition) SearchRequest { return SearchRequest{Filter: ReadFilter{Where: []Condition{c}}} }
	for _, c := range []struct {
		field string
		req   SearchRequest
	}{
		{"limit", SearchRequest{Limit: new(0)}},
		{"limit", SearchRequest{Limit: new(-1)}},
		{"limit", SearchRequest{Limit: new(10001)}},
		{"candidate_limit", SearchRequest{Limit: new(20), CandidateLimit: new(19)}},
		{"candidate_limit", SearchRequest{CandidateLimit: new(9)}},
		{"candidate_limit", SearchRequest{CandidateLimit: new(10001)}},
		{"text_weight", SearchRequest{TextWeight: new(0.0)}},
		{"text_weight", SearchRequest{TextWeight: new(-1.0)}},
		{"text_weight", SearchRequest{TextWeight: new(math.NaN())}},
		{"text_weight", SearchRequest{TextWeight: new(math.Inf(1))}},
		{"neighbour_weight", SearchRequest{NeighbourWeight: -0.1}},
		{"thread_weight", SearchRequest{ThreadWeight: math.NaN()}},
		{"recency_weight", SearchRequest{RecencyWeight: math.Inf(1)}},
		{"strength_weight", SearchRequest{StrengthWeight: -1}},
		{"match_field", SearchRequest{MatchField: "body"}},
		{"fusion", SearchRequest{Fusion: "RRF"}},
		{"group_by", SearchRequest{GroupBy: "note"}},
		{"no_text", SearchRequest{NoText: true}},
		{"kinds[1]", SearchRequest{Kinds: []Kind{KindMemory, "Memory"}}},
		{"filter.kinds[0]", SearchRequest{Filter: ReadFilter{Kinds: []Kind{"memories"}}}},
		{"filter.namespace", SearchRequest{Filter: ReadFilter{Namespace: new("")}}},
		{"filter.namespace", SearchRequest{Filter: ReadFilter{Namespace: new(strings.Repeat("n", 513))}}},
		{"filter.scopes[1]", SearchRequest{Filter: scoped("public", " a")}},
		{"filter.scopes[0]", SearchRequest{Filter: scoped("a\tb")}},
		{"filter.scopes[0]", SearchRequest{Filter: scoped(strings.Repeat("s", 1025))}},
		{"filter.thread", SearchRequest{Filter: ReadFilter{Thread: new("")}}},
		{"filter.note_ids[0]", SearchRequest{Filter: ReadFilter{NoteIDs: []ID{0}}}},
		{"filter.created_from_us", SearchRequest{Filter: ReadFilter{CreatedFromUS: new(int64(2)), CreatedToUS: new(int64(1))}}},
		{"filter.where[0].op", where(Condition{Key: "a", Op: "like", Value: []byte(`"x"`)})},
		{"filter.where[0].value", where(Condition{Key: "a", Op: OpEq})},
		{"filter.where[0].value", where(Condition{Key: "a", Op: OpIn, Value: []byte(`"x"`)})},
		{"filter.where[0].value", where(Condition{Key: "a", Op: OpEq, Value: []byte(`{"x":1}`)})},
		{"filter.where[0].value", where(Condition{Key: "a", Op: OpLt, Value: []byte(`true`)})},
	} {
		c.req.Query = "tide"
		res, err := db.Search(t.Context(), c.req)
		if err == nil {
			t.Errorf("%s: accepted: %+v", c.field, res)
			continue
		}
		if e := wantCode(t, err, ErrValidation); e.Field != c.field || e.Op != "search" {
			t.Errorf("%q, want field %q", e, c.field)
		}
	}
	for _, req := range []SearchRequest{
		{Limit: new(1)}, {Limit: new(10000)}, {Limit: new(10000), CandidateLimit: new(10000)}, {Limit: new(1), CandidateLimit: new(1)},
		{TextWeight: new(1e-300)}, {Filter: ReadFilter{Namespace: new("default"), Scopes: []string{"public", strings.Repeat("s", 1024)}}},
		{MatchField: MatchAll, Fusion: FusionRRF, GroupBy: GroupNone},
	} {
		req.Query = "tide"
		if res := search(t, db, req); len(res.Hits) != 1 {
			t.Errorf("%+v found %d", req, len(res.Hits))
		}
	}
	if after := stateOf(t, db); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
	if h := must[*HealthReport](t)(db.Health(t.Context())); len(h.LastDegraded) != 0 {
		t.Errorf("%v", h.LastDegraded)
	}
}

// TestMatchField checks which words of a memory each field lets see.
func TestMatchField(t *testing.T) {
	db := openReal(t, t.TempDir())
	tagged := func(judgment, reasoning string, tags ...string) MemoryInput {
		return MemoryInput{Judgment: judgment, Reasoning: reasoning, RecordInput: RecordInput{Tags: tags}}
	}
	ids := rememberAll(t, db, tagged("the tide", "", "harbor"), tagged("harbor keeper", ""), tagged("a boat", "seen in the harbor", "tide"))
	for _, c := range []struct {
		field MatchField
		query string
		want  []ID
	}{
		{"", "harbor", ids},
		{MatchAll, "harbor", ids},
		{MatchText, "harbor", ids[1:]},
		{MatchText, "tide", ids[:1]},
		{MatchText, "harbor tide", ids},
		{MatchName, "harbor", nil},
		{MatchPath, "harbor", nil},
	} {
		res := search(t, db, SearchRequest{Query: c.query, MatchField: c.field, WithTotal: true})
		got := hitIDs(res)
		slices.Sort(got)
		if !slices.Equal(got, c.want) || *res.Total != int64(len(c.want)) {
			t.Errorf("%q in %q found %v of %d, want %v", c.query, c.field, got, *res.Total, c.want)
		}
	}
}

// TestExplain checks that what explain gives adds up to the scores.
func TestExplain(t *testing.T) {
	db := openReal(t, t.TempDir())
	remember(t, db, "红茶馆新开张", "茶馆挂红灯笼, 茶馆茶馆", "茶叶 harbor", "the harbor keeper keeps the lamp", "harbor harbor", "lamp",
		"getUserName of the harbor")
	for _, c := range []struct {
		query string
		terms [][]string // of each hit, sorted
	}{
		{"红茶馆", [][]string{{"红茶", "茶馆"}, {"茶馆"}, {"茶"}}},
		{"harbor lamp", [][]string{{"harbor", "lamp"}, {"lamp"}, {"harbor"}, {"harbor"}, {"harbor"}}},
		{"harbor lamp 茶", nil},
		{"getUserName", nil},
	} {
		for _, fusion := range []Fusion{FusionRRF, FusionScore} {
			res := search(t, db, SearchRequest{Query: c.query, Explain: true, Fusion: fusion, TextWeight: new(1.5)})
			if len(res.Hits) == 0 {
				t.Fatalf("%q finds nothing", c.query)
			}
			last := math.Inf(1)
			for i, h := range res.Hits {
				x := h.Explain
				sum := 0.0
				var terms []string
				for _, term := range x.Terms {
					sum += term.Score
					terms = append(terms, term.Term)
				}
				slices.Sort(terms)
				if sum != *h.TextScore || len(terms) == 0 {
					t.Errorf("%q, hit %d: terms %+v add up to %v, text score %v", c.query, i, x.Terms, sum, *h.TextScore)
				}
				if x.TextRank != i+1 || x.FusedScore != h.Score || x.TextScore < *h.TextScore || x.TextScore > last {
					t.Errorf("%q, hit %d: %+v, score %v", c.query, i, x, h.Score)
				}
				if want := 1.5 / float64(61+i); fusion == FusionRRF && h.Score != want {
					t.Errorf("%q, hit %d: score %v, want %v", c.query, i, h.Score, want)
				}
				if x.NeighbourAdd != 0 || x.ThreadAdd != 0 || x.RecencyAdd != 0 || x.StrengthAdd != 0 {
					t.Errorf("weights that were not asked for: %+v", x)
				}
				if c.terms != nil && len(c.terms[i]) > 0 && !slices.Equal(terms, c.terms[i]) {
					t.Errorf("%q, hit %d: terms %q, want %q", c.query, i, terms, c.terms[i])
				}
				last = x.TextScore
			}
			if c.terms != nil && len(res.Hits) != len(c.terms) {
				t.Errorf("%q: %d hits, want %d", c.query, len(res.Hits), len(c.terms))
			}
		}
	}
}

// TestFusionScore checks the scaling of the second way to fuse.
func TestFusionScore(t *testing.T) {
	db := openReal(t, t.TempDir())
	remember(t, db, "tide tide tide", "tide and much else that is longer", "tide once")
	res := search(t, db, SearchRequest{Query: "tide", Fusion: FusionScore, TextWeight: new(2.0), Explain: true})
	if len(res.Hits) != 3 {
		t.Fatal(len(res.Hits))
	}
	top, low := res.Hits[0].Explain.TextScore, res.Hits[2].Explain.TextScore
	want := 2 * (res.Hits[1].Explain.TextScore - low) / (top - low)
	wantScores(t, res, 2, want, 0)
	if !(want > 0 && want < 2) {
		t.Error(want)
	}
	// Equal scores are worth the whole weight, so the only hit is no worst hit.
	wantScores(t, search(t, db, SearchRequest{Query: "once", Fusion: FusionScore}), 1)
}
