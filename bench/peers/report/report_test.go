package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/bench/peers/result"
)

var update = flag.Bool("update", false, "write golden files")

const documents = "../../../docs"

// The page that is kept is the one that its results give, and every gap has its
// reason.
func TestCommittedPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(documents, pageName))
	if err != nil {
		t.Fatal(err)
	}
	results, err := kept(filepath.Join(documents, partsDir))
	if err != nil {
		t.Fatal(err)
	}
	made, err := Render(page, results)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		have, err := os.ReadFile(filepath.Join(documents, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(have, made[name]) {
			t.Errorf("docs/%s is not what the results give: make the report again", name)
		}
	}
	drawn, err := filepath.Glob(filepath.Join(documents, partsDir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range drawn {
		if name := partsDir + "/" + filepath.Base(file); made[name] == nil {
			t.Errorf("docs/%s is not made from the results", name)
		}
	}
	v, err := newView(results)
	if err != nil {
		t.Fatal(err)
	}
	missing, stale := v.unexplained(string(page))
	for _, label := range missing {
		t.Errorf("a peer is ahead and the page does not say why: %s", label)
	}
	for _, label := range stale {
		t.Errorf("the page says why a peer is ahead that is not: %s", label)
	}
}

// madeUp is a run that nobody made: figures that are functions of their place,
// which exercise every table. They are shown nowhere but in this test.
func madeUp() result.File {
	f := result.File{
		Machine: result.Machine{Processor: "A Processor", Cores: 2, Memory: 24 << 30, System: "linux/amd64", Go: "go1.26.8", Python: "3.13.1"},
		Commit:  "0123456789ab", Date: "2026-01-02", Command: "run --sizes 10000,100000,1000000", Seed: 1,
	}
	type traits struct {
		name, durable               string
		text, vector, hybrid, graph bool
		speed                       float64
	}
	list := []traits{
		{"p-memory", "synced", true, true, true, true, 30}, {"Loci", "synced", true, true, true, true, 1},
		{"chromadb", "written", false, true, false, false, 9}, {"lancedb", "written", true, true, true, false, 14},
		{"sqlite-vec + FTS5", "synced", true, true, true, false, 5}, {"tantivy", "synced", true, false, false, false, 0.97},
		{"qdrant-client (local)", "synced", true, true, true, false, 80}, {"hnswlib", "saved", false, true, false, false, 0.86},
		{"usearch", "saved", false, true, false, false, 1.7}, {"faiss", "saved", false, true, false, false, 1.3}, {"mem0ai", "written", false, true, false, false, 60},
	}
	lookup := func(b bool, why string) string {
		if b {
			return ""
		}
		return why
	}
	for i, p := range list {
		f.Products = append(f.Products, result.Product{
			Name: p.name, Version: fmt.Sprintf("1.%d.0", i), Settings: "the defaults | of its <guide>", Durable: p.durable,
			Text: p.text, Vector: p.vector, Hybrid: p.hybrid, Filter: p.name != "usearch", Graph: p.graph,
		})
		for size, n := range []int{10_000, 100_000, 1_000_000} {
			if n == 1_000_000 && p.speed > 20 {
				continue
			}
			grown := math.Pow(4, float64(size))
			add := func(r result.Row, base float64, missing string) {
				r.Records, r.Product, r.Missing = n, p.name, missing
				if missing == "" && p.speed > 20 && r.Task == result.TaskText {
					r.Note = "fewer calls: it is slow"
				}
				if missing == "" && base > 0 {
					us := base * p.speed * grown
					r.P50, r.P95, r.P99, r.CPU, r.Samples = us, 1.5*us, 2.5*us, 0.9*us, 300
				}
				f.Rows = append(f.Rows, r)
			}
			for c, class := range bench.Classes() {
				for x, filter := range filters() {
					if x > 0 && c%3 != 0 {
						continue
					}
					add(result.Row{Task: result.TaskText, Class: string(class), Filter: filter}, float64(20+13*c*c)/float64(x+1), lookup(p.text, "no ranked full text of its own"))
				}
			}
			for x, filter := range filters() {
				recall := 0.9921
				if p.name == "faiss" && x == 3 {
					recall = 0.941
				}
				if p.vector {
					add(result.Row{Task: result.TaskVector, Filter: filter, Recall: recall, Effort: 32}, 80*float64(x+1),
						lookup(x == 0 || p.name != "usearch", "no filter"))
				}
				add(result.Row{Task: result.TaskHybrid, Filter: filter}, 160/float64(x+1), lookup(p.hybrid, "no hybrid search"))
			}
			add(result.Row{Task: result.TaskVector, Data: "GloVe 100-d", Recall: 1}, 60, lookup(p.vector, "no vectors"))
			for d, data := range []string{"", result.DataTexts, result.DataVectors} {
				if d == 0 && !(p.text && p.vector) || d == 1 && !p.text || d == 2 && !p.vector {
					continue
				}
				add(result.Row{Task: result.TaskSingle, Data: data}, 500, "")
				add(result.Row{Task: result.TaskVisible, Data: data}, 700, "")
				add(result.Row{Task: result.TaskUpdate, Data: data}, 600, "")
				add(result.Row{Task: result.TaskDelete, Data: data}, 300, lookup(p.name != "faiss", "its graph cannot remove"))
				add(result.Row{Task: result.TaskBatch, Data: data, Rate: 15_000 / p.speed, Seconds: 6 * p.speed, CPUSecs: 8 * p.speed}, 0, "")
				add(result.Row{Task: result.TaskFinish, Data: data, Seconds: 1, CPUSecs: 1.5}, 0, "")
				add(result.Row{Task: result.TaskOpen, Data: data}, 5000, "")
				add(result.Row{Task: result.TaskOpen, Data: data, Class: "with start"}, 20_000, "")
				add(result.Row{Task: result.TaskMemory, Data: data, Bytes: int64(5e7 * (1 + p.speed/20)), Idle: 1e7 + int64(1e6*p.speed), Anonymous: int64(2e7 * (1 + p.speed/20))}, 0, "")
				add(result.Row{Task: result.TaskDisk, Data: data, Bytes: int64(9e7 * (1 + p.speed/20))}, 0, "")
			}
			add(result.Row{Task: result.TaskGraph, Rate: 40_000, CPUSecs: 1.3}, 0, lookup(p.graph, "no graph"))
			add(result.Row{Task: result.TaskNear, Class: "depth 2", Agreement: 1 - 0.02*float64(i)}, 200, lookup(p.graph, "no graph"))
			add(result.Row{Task: result.TaskRead, Rate: 9000 / p.speed}, 100, "")
			add(result.Row{Task: result.TaskWrite, Rate: 900 / p.speed}, 900, "")
		}
		for s, set := range []string{"scifact", "xquad zh", "LoCoMo turns"} {
			for w, path := range paths() {
				q := result.Quality{Set: set, Path: path, Product: p.name, Queries: 300 * (s + 1)}
				if q.Missing = lookup([]bool{p.text, p.vector, p.hybrid}[w], "has none"); q.Missing == "" {
					score := 0.6 + 0.1*float64(s) + 0.02*float64(w) - 0.001*p.speed
					q.Figures = map[string]float64{mainFigure: score, "R@10": score + 0.05}
				}
				f.Quality = append(f.Quality, q)
			}
		}
	}
	f.Products = append(f.Products, result.Product{Name: "absent_engine", Missing: []string{"the worker died: no such module"}})
	f.Rows = append(f.Rows, result.Row{Task: result.TaskTenants, Class: "open", Data: "10,000 namespaces", Records: 1_000_000, Product: "loci", P50: 80_000, Bytes: 8e7})
	return f
}

func encoded(t *testing.T, f result.File) []byte {
	t.Helper()
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// blank is a page of nothing but its blocks.
func blank() []byte {
	var b strings.Builder
	for _, one := range blocks() {
		b.WriteString("## " + one.name + "\n\n" + beginMark(one.name) + endMark(one.name) + "\n")
	}
	return []byte(b.String())
}

func TestGoldenPage(t *testing.T) {
	results := map[string][]byte{"made-up.json": encoded(t, madeUp())}
	made, err := Render(blank(), results)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Render(made[pageName], results)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 1+len(plots()) {
		t.Errorf("%d files made, want the page and %d plots", len(made), len(plots()))
	}
	for name, data := range made {
		if !bytes.Equal(data, again[name]) {
			t.Errorf("%s is another the second time", name)
		}
		if filepath.Ext(name) == ".svg" {
			if err := wellFormed(data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		golden := filepath.Join("testdata", filepath.Base(name))
		if *update {
			if err := os.WriteFile(golden, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, want) {
			t.Errorf("%s differs from %s; -update writes it anew", name, golden)
		}
	}
}

func wellFormed(data []byte) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
