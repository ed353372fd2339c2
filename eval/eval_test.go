package eval

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestMeasures(t *testing.T) {
	relevant := map[string]int{"a": 1, "b": 2, "c": 1}
	log3, log5 := math.Log2(3), math.Log2(5)
	for _, c := range []struct {
		name   string
		m      Measure
		ranked string
		want   float64
	}{
		{"recall, two of three", RecallAt(3), "x a b c", 2.0 / 3},
		{"recall beyond the end", RecallAt(10), "a", 1.0 / 3},
		{"recall of nothing", RecallAt(5), "", 0},
		{"hit", HitAt(2), "x a", 1},
		{"hit too deep", HitAt(1), "x a", 0},
		{"all", AllAt(4), "x a b c", 1},
		{"all but one", AllAt(3), "x a b c", 0},
		{"first relevant is third", MRRAt(10), "x y b a", 1.0 / 3},
		{"too deep for MRR", MRRAt(2), "x y b a", 0},
		// gains 0, 1, 0, 2 against 2, 1, 1
		{"graded nDCG", NDCGAt(10), "x a y b", (1/log3 + 2/log5) / (2 + 1/log3 + 1.0/2)},
		{"best order", NDCGAt(10), "b a c", 1},
		{"nDCG at 1", NDCGAt(1), "a", 0.5},
		{"nDCG of nothing", NDCGAt(10), "x y", 0},
	} {
		if got := c.m(relevant, strings.Fields(c.ranked)); !near(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// write makes a set folder in a new directory and gives that directory.
func write(t *testing.T, set string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, set, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var talk = map[string]string{
	"docs.jsonl": `{"id":"c1/1","scope":"c1","session":1,"date":"8 May 2023","text":"hello","speaker":"Ann"}
{"id":"c1/2","scope":"c1","session":1,"date":"8 May 2023","title":"t","text":"bye"}
{"id":"c1/3","scope":"c1","session":2,"text":"again"}
{"id":"c2/1","scope":"c2","session":"x","text":"other"}
`,
	"queries.jsonl": `{"id":"q1","scope":"c1","text":"who","answer":"Ann"}
{"id":"q2","scope":"c1","text":"what"}
{"id":"q3","scope":"c2","text":"nothing relevant"}`,
	"qrels.tsv":         "q1\tc1/1\t1\nq1\tc1/2\t1\nq1\tc1/3\t0\nq2\tc1/3\t2\nq3\tc2/1\t0\n",
	"qrels_audited.tsv": "q1\tc1/2\t1\n",
	"groups.tsv":        "q1\tone\nq2\ttwo\nq3\ttwo\n",
}

func TestLoad(t *testing.T) {
	dir := write(t, "talk", talk)
	s, err := Load(dir, "talk:turns")
	if err != nil {
		t.Fatal(err)
	}
	want := []Doc{
		{ID: "c1/1", Text: "hello", Date: "8 May 2023", Scope: "c1", Thread: "c1/S1", Position: 1},
		{ID: "c1/2", Title: "t", Text: "bye", Date: "8 May 2023", Scope: "c1", Thread: "c1/S1", Position: 2},
		{ID: "c1/3", Text: "again", Scope: "c1", Thread: "c1/S2", Position: 1},
		{ID: "c2/1", Text: "other", Scope: "c2", Thread: "c2/x", Position: 1},
	}
	if !reflect.DeepEqual(s.Docs, want) {
		t.Errorf("docs %+v\nwant %+v", s.Docs, want)
	}
	if got := s.Docs[1].Content(); got != "t bye 8 May 2023" {
		t.Errorf("content %q", got)
	}
	if got := s.Judged(); len(got) != 2 || got[0] != (Query{"q1", "who", "c1", "one"}) {
		t.Errorf("judged %+v", got)
	}
	if got := s.Relevant("q1"); !reflect.DeepEqual(got, map[string]int{"c1/1": 1, "c1/2": 1}) {
		t.Errorf("relevant to q1: %v", got)
	}
	if got := s.Relevant("q3"); got != nil {
		t.Errorf("relevant to q3: %v", got)
	}

	s, err = Load(dir, "talk:sessions")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]map[string]int{"q1": {"c1/S1": 1, "c1/S2": 0}, "q2": {"c1/S2": 2}, "q3": {"c2/x": 0}}; s.Unit != UnitThread || !reflect.DeepEqual(s.Qrels, want) {
		t.Errorf("sessions: %v, %v", s.Unit, s.Qrels)
	}
	s, err = Load(dir, "talk:audited-sessions")
	if err != nil {
		t.Fatal(err)
	}
	if s.Unit != UnitThread || len(s.Qrels) != 1 {
		t.Errorf("audited sessions: %v, %v", s.Unit, s.Qrels)
	}
}

func TestLoadVariants(t *testing.T) {
	doc := func(id string) string { return `{"id":"` + id + `","text":"x"}` }
	dir := write(t, "x", map[string]string{
		"docs_en.jsonl": doc("en"), "docs_zh.jsonl": doc("zh"), "queries_en.jsonl": doc("qe"), "queries_zh.jsonl": doc("qz"),
		"qrels_en_en.tsv": "qe\ten\t1", "qrels_zh_en.tsv": "qz\ten\t1", "qrels_zh_zh.tsv": "qz\tzh\t1",
	})
	for task, want := range map[string][2]string{"x:en": {"qe", "en"}, "x:zh": {"qz", "zh"}, "x:zh-en": {"qz", "en"}} {
		s, err := Load(dir, task)
		if err != nil {
			t.Errorf("%s: %v", task, err)
			continue
		}
		if s.Queries[0].ID != want[0] || s.Docs[0].ID != want[1] {
			t.Errorf("%s: query %s, document %s", task, s.Queries[0].ID, s.Docs[0].ID)
		}
	}
	for _, task := range []string{"", ":", "x:", "y", "x:fr", "x:en-fr", "x", "../x", "x/..", "x:../en", "X"} {
		if _, err := Load(dir, task); err == nil {
			t.Errorf("task %q was loaded", task)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"not JSON", "docs.jsonl", "{\"id\":\"a\",\"text\":\"b\"}\nnope\n", "docs.jsonl:2: not a JSON object"},
		{"half an object", "docs.jsonl", "{\"id\":\"a\"", "docs.jsonl:1: bad JSON"},
		{"two objects", "docs.jsonl", `{"id":"a","text":"b"} {}`, "docs.jsonl:1: bad JSON"},
		{"wrong type", "docs.jsonl", `{"id":7,"text":"b"}`, "docs.jsonl:1: bad JSON"},
		{"blank line", "docs.jsonl", "{\"id\":\"a\",\"text\":\"b\"}\n\n", "docs.jsonl:2: blank line"},
		{"no id", "docs.jsonl", `{"text":"b"}`, "docs.jsonl:1: no id"},
		{"tab in an id", "docs.jsonl", `{"id":"a\tb","text":"b"}`, "docs.jsonl:1: id \"a\\tb\" holds a control character"},
		{"no text", "docs.jsonl", `{"id":"a","text":" "}`, "neither title nor text"},
		{"twice", "docs.jsonl", "{\"id\":\"a\",\"text\":\"b\"}\n{\"id\":\"a\",\"text\":\"c\"}", "docs.jsonl:2: document \"a\" is there twice"},
		{"session", "docs.jsonl", `{"id":"a","text":"b","session":1.5}`, "session is 1.5"},
		{"not UTF-8", "docs.jsonl", "{\"id\":\"a\",\"text\":\"\xff\"}", "docs.jsonl:1: not UTF-8"},
		{"byte order mark", "docs.jsonl", "\uFEFF{\"id\":\"a\",\"text\":\"b\"}", "byte order mark"},
		{"empty", "docs.jsonl", "", "no documents"},
		{"query without text", "queries.jsonl", `{"id":"q1"}`, "queries.jsonl:1: query \"q1\" has no text"},
		{"query twice", "queries.jsonl", "{\"id\":\"q1\",\"text\":\"b\"}\n{\"id\":\"q1\",\"text\":\"b\"}", "queries.jsonl:2"},
		{"no queries", "queries.jsonl", "", "no queries"},
		{"columns", "qrels.tsv", "q1\tc1/1\n", "qrels.tsv:1: 2 columns, want 3"},
		{"blanks for tabs", "qrels.tsv", "q1 c1/1 1\n", "qrels.tsv:1: 1 columns, want 3"},
		{"empty column", "qrels.tsv", "q1\t\t1\n", "column 2 is empty"},
		{"unknown query", "qrels.tsv", "q9\tc1/1\t1\n", "unknown query \"q9\""},
		{"unknown document", "qrels.tsv", "q1\tc1/1\t1\nq1\tc9\t1\n", "qrels.tsv:2: unknown document \"c9\""},
		{"relevance", "qrels.tsv", "q1\tc1/1\t-1\n", "relevance \"-1\""},
		{"judged twice", "qrels.tsv", "q1\tc1/1\t1\nq1\tc1/1\t1\n", "judged twice"},
		{"other scope", "qrels.tsv", "q1\tc2/1\t1\n", "cannot find document"},
		{"nothing relevant", "qrels.tsv", "q1\tc1/1\t0\n", "no query has a relevant document"},
		{"group of nobody", "groups.tsv", "q9\tone\n", "groups.tsv:1: unknown query"},
		{"two groups", "groups.tsv", "q1\tone\nq1\ttwo\n", "groups.tsv:2: query \"q1\" has a group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{}
			for k, v := range talk {
				files[k] = v
			}
			files[c.file] = c.text
			_, err := Load(write(t, "talk", files), "talk")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if _, err := Load(write(t, "talk", map[string]string{"docs.jsonl": `{"id":"a","text":"b"}`}), "talk"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no queries file: %v", err)
	}
	files := map[string]string{"docs.jsonl": `{"id":"a","text":"b"}`, "queries.jsonl": `{"id":"q","text":"b"}`, "qrels.tsv": "q\ta\t1"}
	if _, err := Load(write(t, "flat", files), "flat:sessions"); err == nil || !strings.Contains(err.Error(), "has no session") {
		t.Errorf("sessions of a set without: %v", err)
	}
}

func TestLongLine(t *testing.T) {
	err := lines(strings.NewReader("short\n"+strings.Repeat("x", MaxLine+1)), "f", func([]byte) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "f:2: longer than") {
		t.Errorf("error %v", err)
	}
	n := 0
	err = lines(strings.NewReader(strings.Repeat("x", 1<<20)+"\r\ny"), "f", func(b []byte) error { n += len(b); return nil })
	if err != nil || n != 1<<20+1 {
		t.Errorf("%d bytes, error %v", n, err)
	}
}

func TestEvaluate(t *testing.T) {
	s, err := Load(write(t, "talk", talk), "talk")
	if err != nil {
		t.Fatal(err)
	}
	// q1 finds one of its two second, after a repeat; q2 finds nothing.
	run := Run{"q1": {{"c1/3", 3}, {"c1/3", 2}, {"c1/2", 1}}, "q3": {{"c2/1", 1}}, "stranger": {{"c1/1", 1}}}
	rep := Evaluate(s, run, 1, 2)
	log3 := math.Log2(3)
	ndcg := (1 / log3) / (1 + 1/log3)
	one := Figures{Group: "one", Queries: 1, NDCG10: ndcg, MRR10: 0.5, At: []Cutoff{{K: 1}, {K: 2, Recall: 0.5, Hit: 1}}}
	all := Figures{Queries: 2, NDCG10: ndcg / 2, MRR10: 0.25, At: []Cutoff{{K: 1}, {K: 2, Recall: 0.25, Hit: 0.5}}}
	two := Figures{Group: "two", Queries: 1, At: []Cutoff{{K: 1}, {K: 2}}}
	if want := (Report{Task: "talk", Overall: all, Groups: []Figures{one, two}}); !reflect.DeepEqual(rep, want) {
		t.Errorf("report %+v\nwant   %+v", rep, want)
	}
	if got := PerQuery(s, run, RecallAt(2)); !reflect.DeepEqual(got, []float64{0.5, 0}) {
		t.Errorf("per query %v", got)
	}
	var b strings.Builder
	if err := rep.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `       queries  nDCG@10   MRR@10      R@1    hit@1    all@1      R@2    hit@2    all@2
talk         2   0.1934   0.2500   0.0000   0.0000   0.0000   0.2500   0.5000   0.0000
  one        1   0.3869   0.5000   0.0000   0.0000   0.0000   0.5000   1.0000   0.0000
  two        1   0.0000   0.0000   0.0000   0.0000   0.0000   0.0000   0.0000   0.0000
`
	if b.String() != want {
		t.Errorf("table\n%s\nwant\n%s", b.String(), want)
	}
}

func TestSearch(t *testing.T) {
	s, err := Load(write(t, "talk", talk), "talk")
	if err != nil {
		t.Fatal(err)
	}
	run, err := Search(context.Background(), s, 5, func(_ context.Context, q Query, k int) ([]Scored, error) {
		return []Scored{{q.Scope + "/1", float64(k)}}, nil
	})
	if want := (Run{"q1": {{"c1/1", 5}}, "q2": {{"c1/1", 5}}}); err != nil || !reflect.DeepEqual(run, want) {
		t.Errorf("run %v, error %v", run, err)
	}
	boom := errors.New("boom")
	if _, err = Search(context.Background(), s, 5, func(context.Context, Query, int) ([]Scored, error) { return nil, boom }); !errors.Is(err, boom) || !strings.Contains(err.Error(), `"q1"`) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = Search(ctx, s, 5, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestRunFiles(t *testing.T) {
	run := Run{"q2": {{"a", 1.0 / 3}, {"b", 1e-300}, {"c", 1e-300}}, "q1": {{"b c", -0.5}}}
	var b bytes.Buffer
	if err := WriteRun(&b, run); err != nil {
		t.Fatal(err)
	}
	if want := "q1\tb c\t-0.5\nq2\ta\t0.3333333333333333\nq2\tb\t1e-300\nq2\tc\t1e-300\n"; b.String() != want {
		t.Errorf("file %q, want %q", b.String(), want)
	}
	got, err := ReadRun(&b, "run")
	if err != nil || !reflect.DeepEqual(got, run) {
		t.Errorf("read %v, %v", got, err)
	}
	got, err = ReadRun(strings.NewReader("q\ta\t1\nq\tb\t2\r\nq\tc\t1"), "run")
	if want := (Run{"q": {{"b", 2}, {"a", 1}, {"c", 1}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, %v", got, err)
	}
	for _, bad := range []Run{{"q": {{"a", 1}, {"b", 2}}}, {"q": {{"a", math.NaN()}}}, {"q": {{"a", 1}, {"a", 1}}}, {"q": {{"a\t", 1}}}, {"": {{"a", 1}}}} {
		if err := WriteRun(&bytes.Buffer{}, bad); err == nil {
			t.Errorf("wrote %v", bad)
		}
	}
	for _, bad := range []string{"q\ta\n", "q\ta\tx\n", "q\ta\tNaN\n", "q\ta\t1\nq\ta\t1\n", "\n"} {
		if _, err := ReadRun(strings.NewReader(bad), "run"); err == nil || !strings.Contains(err.Error(), "run:") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestLeaveOneOut(t *testing.T) {
	folds := []string{"a", "a", "b", "c"}
	values := map[int][]float64{
		1: {0.5, 0.5, 0.5, 0.5}, // total 2.0
		2: {1, 1, 0, 0.2},       // total 2.2: best in sample, thanks to a alone
		3: {0, 0, 0.9, 0.8},     // total 1.7
	}
	got, err := LeaveOneOut([]int{1, 2, 3}, folds, func(p int) ([]float64, error) { return values[p], nil })
	if err != nil {
		t.Fatal(err)
	}
	// Without a: 1.0, 0.2, 1.7 chooses 3. Without b: 1.5, 2.2, 0.8 chooses 2.
	// Without c: 1.5, 2.0, 0.9 chooses 2.
	want := Tuning[int]{
		Folds:   []Fold[int]{{"a", 2, 3, 0}, {"b", 1, 2, 0}, {"c", 1, 2, 0.2}},
		HeldOut: 0.05, Best: 2, BestValue: 0.55,
	}
	if !near(got.HeldOut, want.HeldOut) || !near(got.BestValue, want.BestValue) || got.Best != want.Best || !reflect.DeepEqual(got.Folds, want.Folds) {
		t.Errorf("tuning %+v\nwant   %+v", got, want)
	}
	flat := func(int) ([]float64, error) { return []float64{1, 1, 1, 1}, nil }
	if got, err := LeaveOneOut([]int{7, 8}, folds, flat); err != nil || got.Best != 7 || got.Folds[0].Chosen != 7 {
		t.Errorf("ties: %+v, %v", got, err)
	}
	boom := errors.New("boom")
	if _, err := LeaveOneOut([]int{1}, folds, func(int) ([]float64, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	if _, err := LeaveOneOut(nil, folds, flat); err == nil {
		t.Error("no parameters were accepted")
	}
	if _, err := LeaveOneOut([]int{1}, []string{"a", "a"}, flat); err == nil {
		t.Error("one fold was accepted")
	}
	if _, err := LeaveOneOut([]int{1}, folds[:3], flat); err == nil {
		t.Error("too many values were accepted")
	}
}
