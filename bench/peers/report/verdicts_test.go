package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench/peers/result"
)

// verdictOf gives the verdicts of the target whose text begins so.
func verdictOf(t *testing.T, f result.File, begins string) []verdict {
	t.Helper()
	v, err := newView(map[string][]byte{"a.json": encoded(t, f)})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets() {
		if strings.HasPrefix(target.text, begins) {
			return target.judge(v)
		}
	}
	t.Fatalf("no target begins %q", begins)
	return nil
}

// contest is a run in which Loci and one peer have a row each in some lines.
func contest(peer result.Product, rows ...result.Row) result.File {
	whole := result.Product{Name: "loci", Version: "1", Durable: "synced", Text: true, Vector: true, Hybrid: true, Filter: true}
	return result.File{Products: []result.Product{peer, whole}, Rows: rows}
}

func TestVerdicts(t *testing.T) {
	row := func(task, product string, p50 float64, change func(r *result.Row)) result.Row {
		r := result.Row{Task: task, Product: product, Records: 100_000, P50: p50, CPU: p50}
		if change != nil {
			change(&r)
		}
		return r
	}
	recall := func(share float64) func(r *result.Row) { return func(r *result.Row) { r.Recall = share } }
	under := func(filter string) func(r *result.Row) {
		return func(r *result.Row) { r.Filter, r.Recall = filter, 1 }
	}
	build := func(product string, task string, cpu float64) result.Row {
		return result.Row{Task: task, Data: result.DataVectors, Product: product, Records: 100_000, Seconds: cpu, CPUSecs: cpu, Rate: 1}
	}
	at := func(n int) func(r *result.Row) { return func(r *result.Row) { r.Records, r.Recall = n, 1 } }
	fts := result.Product{Name: "SQLite-vec + FTS5", Version: "1", Durable: "synced", Text: true, Vector: true, Hybrid: true, Filter: true}
	unsynced := result.Product{Name: "lancedb", Version: "1", Durable: "written", Text: true, Vector: true, Hybrid: true, Filter: true}
	kept := result.Product{Name: "mem0ai", Version: "1", Durable: "memory", Vector: true, Hybrid: true, Filter: true}
	tan := result.Product{Name: "tantivy", Version: "1", Durable: "synced", Text: true, Filter: true}
	graph := result.Product{Name: "hnswlib", Version: "1", Durable: "saved", Vector: true, Filter: true}
	for _, c := range []struct {
		name, target string
		file         result.File
		want         []string // statuses; none: not measured
	}{
		{"three times", "Text: p50 at least 3", contest(fts, row("text", "loci", 10, nil), row("text", fts.Name, 30, nil)), []string{met}},
		{"not three times", "Text: p50 at least 3", contest(fts, row("text", "loci", 10, nil), row("text", fts.Name, 29.9, nil)), []string{missed}},
		{"filters are another target", "Text: p50 at least 3", contest(fts, row("text", "loci", 10, under("1 %")), row("text", fts.Name, 11, under("1 %"))), nil},
		{"no such peer", "Text: p50 at least 3", contest(tan, row("text", "loci", 10, nil), row("text", "tantivy", 11, nil)), nil},
		{"Loci failed", "Text: p50 at least 3", contest(fts,
			row("text", "loci", 0, func(r *result.Row) { r.Missing = "it died" }), row("text", fts.Name, 30, nil)), []string{missed}},
		{"1.5 times", "Text: p50 at most 1.5", contest(tan, row("text", "loci", 15, nil), row("text", "tantivy", 10, nil)), []string{met}},
		{"1.6 times", "Text: p50 at most 1.5", contest(tan, row("text", "loci", 16, nil), row("text", "tantivy", 10, nil)), []string{missed}},
		{"most", "Text: p50 ahead of tantivy", contest(tan, row("text", "loci", 9, nil), row("text", "tantivy", 10, nil)), []string{met}},
		{"half is not most", "Text: p50 ahead of tantivy", contest(tan, row("text", "loci", 9, nil), row("text", "tantivy", 10, nil),
			row("text", "loci", 9, func(r *result.Row) { r.Class = "b" }), row("text", "tantivy", 8, func(r *result.Row) { r.Class = "b" })), []string{missed}},
		{"level", "Vectors at recall 0.99: p50 at 100,000", contest(graph, row("vector", "loci", 110, recall(0.99)), row("vector", "hnswlib", 100, recall(0.99))), []string{met}},
		{"not level", "Vectors at recall 0.99: p50 at 100,000", contest(graph, row("vector", "loci", 111, recall(0.99)), row("vector", "hnswlib", 100, recall(0.99))), []string{missed}},
		{"our recall is short", "Vectors at recall 0.99: p50 at 100,000", contest(graph, row("vector", "loci", 50, recall(0.98)), row("vector", "hnswlib", 100, recall(0.99))), []string{missed}},
		{"their recall is short", "Vectors at recall 0.99: p50 at 100,000", contest(graph, row("vector", "loci", 150, recall(0.99)), row("vector", "hnswlib", 100, recall(0.98))), nil},
		{"only at that size", "Vectors at recall 0.99: p50 at 1,000,000", contest(graph, row("vector", "loci", 100, recall(1)), row("vector", "hnswlib", 100, recall(1))), nil},
		{"twice at a million", "Vectors at recall 0.99: p50 at 1,000,000", contest(graph, row("vector", "loci", 200, at(1_000_000)), row("vector", "hnswlib", 100, at(1_000_000))), []string{met}},
		{"the same is not ahead", "Vectors at recall 0.99: p50 ahead", contest(graph, row("vector", "loci", 100, under("1 %")), row("vector", "hnswlib", 100, under("1 %"))), []string{missed}},
		{"built with what follows", "Vectors: index built", contest(graph, build("loci", "batch ingest", 4), build("loci", "finish", 4), build("hnswlib", "batch ingest", 7)), []string{missed}},
		{"built sooner", "Vectors: index built", contest(graph, build("loci", "batch ingest", 4), build("loci", "finish", 2), build("hnswlib", "batch ingest", 7)), []string{met}},
		{"hybrid", "Hybrid: p50", contest(unsynced, row("hybrid", "loci", 10, nil), row("hybrid", "lancedb", 11, nil)), []string{met}},
		{"not durable", "Hybrid: p50", contest(kept, row("hybrid", "loci", 10, nil), row("hybrid", "mem0ai", 9, nil)), nil},
		{"visible, against one that does not sync", "Write to searchable", contest(unsynced, row("write to searchable", "loci", 10, nil), row("write to searchable", "lancedb", 9, nil)), []string{missed}},
		{"a write that is not synced", "A single durable write", contest(unsynced, row("single write", "loci", 10, nil), row("single write", "lancedb", 9, nil)), nil},
		{"a write that is", "A single durable write", contest(fts, row("single write", "loci", 10, nil), row("single write", fts.Name, 9, nil)), []string{missed}},
		{"opens", "Open to first answer", contest(fts, row("open", "loci", 25_000, nil)), []string{met}},
		{"opens late", "Open to first answer", contest(fts, row("open", "loci", 25_001, nil)), []string{missed}},
		{"does not open", "Open to first answer", contest(fts, row("open", "loci", 0, func(r *result.Row) { r.Missing = "it died" })), []string{missed}},
		{"grows", "Growth from 100,000 to 1,000,000: CPU of text", contest(fts, row("text", "loci", 10, nil), row("text", "loci", 100, at(1_000_000))), []string{met}},
		{"grows too much", "Growth from 100,000 to 1,000,000: CPU of text", contest(fts, row("text", "loci", 10, nil), row("text", "loci", 101, at(1_000_000))), []string{missed}},
		{"vectors grow too much", "Growth from 100,000 to 1,000,000: CPU of vector", contest(fts, row("vector", "loci", 10, recall(1)), row("vector", "loci", 61, at(1_000_000))), []string{missed}},
	} {
		var have []string
		for _, v := range verdictOf(t, c.file, c.target) {
			have = append(have, v.status)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", c.name, have, c.want)
		}
	}
}

func TestQualityVerdicts(t *testing.T) {
	figure := func(product, path string, score float64) result.Quality {
		return result.Quality{Set: "s", Path: path, Product: product, Queries: 1, Figures: map[string]float64{mainFigure: score}}
	}
	p := result.Product{Name: "p-memory", Version: "1", Durable: "synced", Text: true, Vector: true, Hybrid: true, Filter: true}
	for _, c := range []struct {
		target, path string
		ours         float64
		want         string
	}{
		{"Quality: hybrid search ahead", "hybrid", 0.5001, met},
		{"Quality: hybrid search ahead", "hybrid", 0.5, missed},
		{"Quality: not below any peer on any set with", "vector", 0.4995, met},
		{"Quality: not below any peer on any set with", "vector", 0.4985, missed},
		{"Quality: not below any peer on any set with", "hybrid", 0.4985, missed},
		{"Quality: not below any peer on any set by text", "text", 0.4995, met},
		{"Quality: not below any peer on any set by text", "text", 0.4, missed},
		{"Quality: above p-memory", "text", 0.4995, missed},
		{"Quality: above p-memory", "text", 0.5001, met},
		{"Quality: above p-memory", "vector", 0.5001, ""},
	} {
		f := contest(p)
		f.Quality = []result.Quality{figure("loci", c.path, c.ours), figure("p-memory", c.path, 0.5)}
		have := ""
		if list := verdictOf(t, f, c.target); len(list) > 0 {
			have = list[0].status
		}
		if have != c.want {
			t.Errorf("%s, %s %v against 0.5: %q, want %q", c.target, c.path, c.ours, have, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	v, err := newView(map[string][]byte{"a.json": encoded(t, small())})
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		"":                               "[**text, tantivy**] []",
		reasonsHeading + "\nSome words.": "[**text, tantivy**] []",
		reasonsHeading + "\n- **text, tantivy**: it does less.\n":                                                     "[] []",
		reasonsHeading + "\n- **text, tantivy**: it does less.\n- **open, tantivy**: no.\n":                           "[] [**open, tantivy**]",
		reasonsHeading + "\n## Elsewhere\n\n- **text, tantivy**: a reason in the wrong place.\n":                      "[**text, tantivy**] []",
		"- **text, tantivy**: too early.\n\n" + reasonsHeading + "\nNothing.\n\n## After\n":                           "[**text, tantivy**] []",
		reasonsHeading + "\n- **text, tantivy**: it does less.\n\n## After\n\n- **open, hnswlib**: of another list\n": "[] []",
	} {
		missing, stale := v.unexplained(page)
		if have := fmt.Sprint(missing, stale); have != want {
			t.Errorf("%q: %s, want %s", page, have, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{micros(0), "0"}, {micros(9.94), "9.9 us"}, {micros(412.4), "412 us"}, {micros(1234), "1.23 ms"}, {micros(250_000), "250 ms"},
		{micros(12.34e6), "12.3 s"}, {micros(1234e6), "1,234 s"}, {count(1234567), "1,234,567"}, {count(999), "999"}, {count(7.25), "7.2"},
		{megabytes(1.25e6), "1.2 MB"}, {megabytes(1234.5e6), "1,234 MB"}, {factor(0.04), "x0.04"}, {factor(0.5), "x0.50"}, {factor(1.04), "x1.04"},
		{factor(3.14), "x3.1"}, {factor(31.4), "x31"}, {factor(1500), "x1,500"}, {plain("a|b <c>\n d*"), `a\|b &lt;c&gt; d\*`}, {short(1_500_000), "1.5M"}, {short(20_000), "20k"}, {short(123), "123"},
	} {
		if c.have != c.want {
			t.Errorf("%q, want %q", c.have, c.want)
		}
	}
}
