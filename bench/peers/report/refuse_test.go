package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench/peers/result"
)

// small is a run of two products and one line.
func small() result.File {
	return result.File{
		Products: []result.Product{
			{Name: "loci", Version: "1", Durable: "synced", Text: true, Vector: true, Hybrid: true, Filter: true},
			{Name: "tantivy", Version: "0.26", Durable: "synced", Text: true, Filter: true},
		},
		Rows: []result.Row{
			{Task: result.TaskText, Class: "one rare term", Records: 1000, Product: "loci", P50: 20, CPU: 18},
			{Task: result.TaskText, Class: "one rare term", Records: 1000, Product: "tantivy", P50: 10, CPU: 17},
		},
	}
}

func TestRefusals(t *testing.T) {
	for name, change := range map[string]func(f *result.File){
		"no table shows the task":        func(f *result.File) { f.Rows[0].Task = "dance" },
		"no table shows the filter":      func(f *result.File) { f.Rows[0].Filter = "3 %" },
		"not among the run's products":   func(f *result.File) { f.Rows[0].Product = "nobody" },
		"neither a figure nor a reason":  func(f *result.File) { f.Rows[0].P50 = 0 },
		"is there twice":                 func(f *result.File) { f.Rows = append(f.Rows, f.Rows[0]) },
		"a product without a name":       func(f *result.File) { f.Products[0].Name = "" },
		"no table shows the path":        func(f *result.File) { f.Quality = []result.Quality{{Set: "s", Path: "smell", Product: "loci"}} },
		"has neither nDCG@10 nor a":      func(f *result.File) { f.Quality = []result.Quality{{Set: "s", Path: "text", Product: "loci"}} },
		"tantivy is version 7, and 0.26": func(f *result.File) { f.Products = append(f.Products, result.Product{Name: "tantivy", Version: "7"}) },
	} {
		f := small()
		change(&f)
		_, err := Render(blank(), map[string][]byte{"a.json": encoded(t, f)})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error that says %q, have %v", name, err)
		}
	}
	if _, err := Render(blank(), map[string][]byte{"a.json": []byte(`{"surprise": 1}`)}); err == nil {
		t.Error("a field that nothing reads was taken")
	}

	one, other := small(), small()
	one.Rows, other.Rows = one.Rows[:1], other.Rows[1:]
	_, err := Render(blank(), map[string][]byte{"a.json": encoded(t, one), "b.json": encoded(t, other)})
	if err == nil || !strings.Contains(err.Error(), "not measured side by side") {
		t.Errorf("figures of two runs in one line: %v", err)
	}
}

func TestMarkers(t *testing.T) {
	page := string(blank())
	for name, broken := range map[string]string{
		"a block is gone":      strings.Replace(page, beginMark("open"), "", 1),
		"a block is twice":     page + beginMark("open") + endMark("open"),
		"the end comes first":  strings.Replace(page, beginMark("open")+endMark("open"), endMark("open")+beginMark("open"), 1),
		"a block is no one's":  page + beginMark("weather") + endMark("weather"),
		"a block has no end":   strings.Replace(page, endMark("text"), "", 1),
		"a page without marks": "nothing",
	} {
		if _, err := Render([]byte(broken), nil); err == nil {
			t.Errorf("%s, and the page was made", name)
		}
	}
	made, err := Render([]byte("before\n"+page+"after\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := string(made[pageName])
	if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "after\n") || strings.Count(got, "Not measured yet.") != len(blocks()) {
		t.Errorf("a page without results:\n%s", got)
	}
}

func TestWrite(t *testing.T) {
	dir, from := t.TempDir(), t.TempDir()
	file := filepath.Join(from, "run.json")
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	write(filepath.Join(dir, pageName), blank())
	write(filepath.Join(dir, partsDir, "quality.svg"), []byte("of results that are gone"))
	write(file, encoded(t, small()))
	if err := Write([]string{file}, dir); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read("benchmarks/run.json"), encoded(t, small())) {
		t.Error("the results are not kept as they were")
	}
	if _, err := os.Stat(filepath.Join(dir, partsDir, "quality.svg")); !os.IsNotExist(err) {
		t.Error("a plot stays whose results are gone")
	}
	if page := string(read(pageName)); !strings.Contains(page, "| one rare term | none | 20 us | **10 us** x0.50 |") {
		t.Errorf("the page:\n%s", page)
	}
	before := read(pageName)

	// What cannot be made leaves everything as it was.
	bad := small()
	bad.Rows[0].Task = "dance"
	write(file, encoded(t, bad))
	if err := Write([]string{file}, dir); err == nil {
		t.Error("a bad file was taken")
	}
	if !bytes.Equal(read(pageName), before) || !bytes.Equal(read("benchmarks/run.json"), encoded(t, small())) {
		t.Error("a bad file changed something")
	}

	// With no files the page is made from what is kept.
	write(filepath.Join(dir, pageName), blank())
	if err := Write(nil, dir); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(pageName), before) {
		t.Error("made again it is another page")
	}
	if err := Write([]string{file, file}, dir); err == nil {
		t.Error("one name for two files was taken")
	}
}
