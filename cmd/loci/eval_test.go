package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/cli"
)

// colours embeds a text by the colour that it names, in either language.
type colours struct{}

func (colours) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := []float32{0.1, 0.1, 0.1}
		for j, names := range [][]string{{"red", "红"}, {"green", "绿"}, {"blue", "蓝"}} {
			for _, name := range names {
				if strings.Contains(text, name) {
					v[j] = 1
				}
			}
		}
		out[i] = v
	}
	return out, nil
}

// TestEval measures a small set by every path, tunes on it, and reads what was
// embedded from the cache the second time.
func TestEval(t *testing.T) {
	data, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"paint/docs.jsonl": `{"id":"r","text":"a red door"}
{"id":"g","text":"a green door"}
{"id":"b","text":"a blue door"}
`,
		"paint/queries.jsonl": `{"id":"1","text":"红"}
{"id":"2","text":"green"}
{"id":"3","text":"蓝"}
{"id":"4","text":"blue"}
`,
		"paint/qrels.tsv":  "1\tr\t1\n2\tg\t1\n3\tb\t1\n4\tb\t1\n",
		"sts/en_test.tsv":  "5\tred\t红\n1\tred\tblue\n",
		"sts/zh_valid.tsv": "1\t红\t绿\n5\t蓝\tblue\n",
	} {
		path := filepath.Join(data, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(code int, args ...string) []evalResult {
		t.Helper()
		var out, errOut bytes.Buffer
		got := cli.Run(t.Context(), cli.Deps{
			Args: append([]string{"--json", "eval", data}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
			LookupEnv: func(string) (string, bool) { return "", false },
			Model: func(string, int) (*cli.Model, error) {
				return &cli.Model{ID: "colours", Title: "colours", Dimension: 3, Embedder: colours{}}, nil
			},
			Extra: deps(nil).Extra,
		})
		var results []evalResult
		if got != code || code == 0 && json.Unmarshal(out.Bytes(), &results) != nil {
			t.Fatalf("%v: exit %d, %s%s", args, got, out.String(), errOut.String())
		}
		return results
	}
	for range 2 {
		results := run(0, "--task", "paint", "--cache", cache, "--tune")
		if len(results) != 3 {
			t.Fatalf("%d results", len(results))
		}
		for i, want := range []struct {
			path  string
			ndcg  float64
			tuned bool
		}{{pathText, 0.5, false}, {pathVector, 1, false}, {pathHybrid, 1, true}} {
			r := results[i]
			if r.Path != want.path || r.Overall.NDCG10 != want.ndcg || r.Documents != 3 || (r.Tuned != nil) != want.tuned {
				t.Errorf("%+v, want %+v", r, want)
			}
		}
		if tuned := results[2].Tuned; len(tuned.Folds) != 2 || tuned.HeldOut != 1 || tuned.Best.VectorWeight == 0 {
			t.Errorf("%+v", tuned)
		}
		kept, err := filepath.Glob(filepath.Join(cache, "colours.3"))
		if err != nil || len(kept) != 1 {
			t.Errorf("%v %v", kept, err)
		}
	}
	if results := run(0, "--task", "paint", "--embedder", "none", "--tune"); len(results) != 1 || results[0].Tuned == nil || results[0].Embedder != "none" {
		t.Errorf("%+v", results)
	}
	if results := run(0, "--task", "sts"); len(results[0].Pairs) != 2 || results[0].Pairs[0].Spearman != 1 || results[0].Pairs[1].File != "zh_valid" {
		t.Errorf("%+v", results)
	}
	run(2, "--task", "sts", "--embedder", "none")
	run(2, "--task", "paint", "--embedder", "none", "--paths", "hybrid")
	run(2, "--task", "paint", "--run", filepath.Join(cache, "run"))
	run(0, "--task", "paint", "--run", filepath.Join(cache, "run"), "--paths", "vector")
}
