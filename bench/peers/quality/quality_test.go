package quality

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench/peers/lociworker"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/embed"
)

const playedKey = "QUALITY_TEST_PRODUCT"

// TestMain is also the process of the products of these tests.
func TestMain(m *testing.M) {
	name := os.Getenv(playedKey)
	if name == "" {
		os.Exit(m.Run())
	}
	err := play(name, os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play is a product: Loci, or one that answers every question with the same records.
func play(name string, in io.Reader, out io.Writer) error {
	if name == "loci" {
		return lociworker.Main(context.Background(), in, out)
	}
	ids := map[string][]int{"same": {2, 0, 2}, "outside": {99}, "elsewhere": {0, 1, 2, 3}}[name]
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			Op   string
			Args struct {
				Kind    string
				Queries []protocol.Query
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		var reply any = map[string]any{"ok": protocol.Cost{}}
		switch {
		case name == "dead":
			return fmt.Errorf("no such library")
		case request.Op == protocol.OpHello:
			reply = map[string]any{"ok": protocol.Hello{Name: name, Text: true, Hybrid: true, Filter: name == "elsewhere"}}
		case request.Op == protocol.OpSearch && request.Args.Kind == protocol.KindHybrid:
			reply = map[string]any{"unsupported": "not in this edition"}
		case request.Op == protocol.OpSearch:
			found := protocol.Found{}
			for range request.Args.Queries {
				found.IDs = append(found.IDs, ids)
			}
			reply = map[string]any{"ok": found}
		}
		if err := json.NewEncoder(out).Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

// words is an embedder by which texts with the same words are near.
type words struct{ dimension int }

func (w words) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, w.dimension)
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			h := fnv.New64a()
			h.Write([]byte(word))
			r := rand.New(rand.NewPCG(h.Sum64(), 1))
			for j := range out[i] {
				out[i][j] += float32(r.NormFloat64())
			}
		}
	}
	return out, nil
}

// set is the documents of two conversations, and what is asked in them.
func set() map[string]string {
	return map[string]string{
		"docs.jsonl": `{"id":"a1","text":"the tide was high at the harbour","scope":"a","session":1}
{"id":"a2","text":"the walrus slept on the pier","scope":"a","session":2}
{"id":"a3","text":"a lantern burned in the window","scope":"a","session":2}
{"id":"b1","text":"the walrus swam under the moon","scope":"b","session":1}
{"id":"b2","text":"the lantern went out at midnight","scope":"b","session":1}
`,
		"queries.jsonl": `{"id":"q1","text":"where slept the walrus","scope":"a"}
{"id":"q2","text":"lantern at midnight","scope":"b"}
{"id":"q3","text":"nobody judged this","scope":"b"}
`,
		"qrels.tsv": "q1\ta2\t1\nq2\tb2\t1\n",
	}
}

func measure(t *testing.T, task string, names ...string) ([]result.Product, map[string]result.Quality, error) {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "set")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range set() {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	o := Options{
		Sets: dir, Tasks: []string{task}, Paths: []string{protocol.KindText, protocol.KindVector, protocol.KindHybrid},
		Embedder: words{32}, Dimension: 32, Dir: work, Log: func(s string) { t.Log(s) },
	}
	for _, name := range names {
		o.Products = append(o.Products, Product{Name: name, Env: []string{playedKey + "=" + name}, Command: []string{self}})
	}
	products, rows, err := Run(t.Context(), o)
	if left, e := os.ReadDir(work); e != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, e)
	}
	if len(rows) != 3*len(names) {
		t.Fatalf("%d rows", len(rows))
	}
	out := map[string]result.Quality{}
	for _, r := range rows {
		if r.Queries != 2 || (r.Missing == "") != (len(r.Figures) == 4) {
			t.Errorf("%+v", r)
		}
		out[r.Product+" "+r.Path] = r
	}
	return products, out, err
}

// TestLoci finds what only one document says, in its scope, by every path.
func TestLoci(t *testing.T) {
	for _, task := range []string{"set", "set:sessions"} {
		products, rows, err := measure(t, task, "loci")
		if err != nil || len(products) != 1 || !products[0].Filter {
			t.Fatalf("%v, %+v", err, products)
		}
		for _, r := range rows {
			if r.Figures["nDCG@10"] != 1 || r.Figures["MRR@10"] != 1 || r.Figures["R@5"] != 1 || r.Figures["R@10"] != 1 || r.Note != "" {
				t.Errorf("%s: %+v", task, r)
			}
		}
	}
}

// TestNoFilter has a store for each scope: the same places are other documents there.
func TestNoFilter(t *testing.T) {
	// Of scope a, places 2 and 0 are a3 and a1; scope b has no place 2.
	_, rows, err := measure(t, "set", "same")
	if err == nil || !strings.Contains(rows["same text"].Missing, "found a record 2, and there are 2") {
		t.Fatalf("%v, %+v", err, rows)
	}
}

// TestMissing: what a product lacks is said in its row, and is no failure.
func TestMissing(t *testing.T) {
	_, rows, err := measure(t, "set", "elsewhere")
	if rows["elsewhere vector"].Missing != "it has no vectors" || rows["elsewhere hybrid"].Missing != "not in this edition" {
		t.Errorf("%+v", rows)
	}
	if err == nil || !strings.Contains(rows["elsewhere text"].Missing, `"b1"`) || !strings.Contains(rows["elsewhere text"].Missing, "not of scope") {
		t.Errorf("a hit of another scope was passed over: %v, %+v", err, rows["elsewhere text"])
	}
}

// TestFailures: who cannot take part costs the others nothing.
func TestFailures(t *testing.T) {
	products, rows, err := measure(t, "set", "dead", "outside", "loci")
	if err == nil || len(products) != 3 {
		t.Fatalf("%v, %+v", err, products)
	}
	for _, path := range []string{"text", "vector", "hybrid"} {
		if r := rows["dead "+path]; !strings.Contains(r.Missing, "no such library") {
			t.Errorf("%+v", r)
		}
		if r := rows["loci "+path]; r.Missing != "" {
			t.Errorf("%+v", r)
		}
	}
	if r := rows["outside text"]; !strings.Contains(r.Missing, "found a record 99") {
		t.Errorf("%+v", r)
	}
}
