package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
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
	writeSet(t, data, "paint", map[string]string{
		"docs.jsonl": `{"id":"r","text":"a red door"}
{"id":"g","text":"a green door"}
{"id":"b","text":"a blue door"}
`,
		"queries.jsonl": `{"id":"1","text":"红"}
{"id":"2","text":"green"}
{"id":"3","text":"蓝"}
{"id":"4","text":"blue"}
`,
		"qrels.tsv": "1\tr\t1\n2\tg\t1\n3\tb\t1\n4\tb\t1\n",
	})
	writeSet(t, data, "sts", map[string]string{
		"en_test.tsv":  "5\tred\t红\n1\tred\tblue\n",
		"zh_valid.tsv": "1\t红\t绿\n5\t蓝\tblue\n",
	})
	run := func(code int, args ...string) []evalResult {
		t.Helper()
		results, _ := runEvalCommand(t, code, append([]string{"--json", "eval", data}, args...)...)
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
