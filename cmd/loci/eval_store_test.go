package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/eval"
	"github.com/loci-memory/loci/internal/cli"
)

// talkFiles are two conversations about doors in colours, with facts made of them.
func talkFiles() map[string]string {
	return map[string]string{
		"docs.jsonl": `{"id":"a/1","scope":"a","session":1,"text":"Ann: my door is red"}
{"id":"a/2","scope":"a","session":1,"text":"Bob: oh, such a colour"}
{"id":"a/3","scope":"a","session":2,"text":"Ann: now it is green"}
{"id":"b/1","scope":"b","session":1,"text":"Cy: mine was blue before"}
{"id":"b/2","scope":"b","session":2,"text":"Di: a red door is best"}
`,
		"observations.jsonl": `{"id":"a/o1","scope":"a","session":1,"text":"Ann's door is red","source":["a/2","a/1"]}
{"id":"a/o2","scope":"a","session":2,"text":"Ann's door is green","source":["a/3"]}
{"id":"b/o1","scope":"b","session":1,"text":"Cy had a blue door","source":["b/1"]}
`,
		"queries.jsonl": `{"id":"1","scope":"a","text":"whose door is red?"}
{"id":"2","scope":"a","text":"绿"}
{"id":"3","scope":"b","text":"blue"}
`,
		"qrels.tsv": "1\ta/1\t1\n2\ta/3\t1\n3\tb/1\t1\n",
	}
}

// writeSet makes a set's folder below dir.
func writeSet(t *testing.T, dir, set string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, set, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// runEvalCommand runs loci eval with a model that sees colours, and wants an exit
// code.
func runEvalCommand(t *testing.T, code int, args ...string) (results []evalResult, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	got := cli.Run(t.Context(), cli.Deps{
		Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		LookupEnv: func(string) (string, bool) { return "", false }, WorkDir: noWorkDir,
		Model: func(string, int) (*cli.Model, error) {
			return &cli.Model{ID: "colours", Title: "colours", Dimension: 3, Embedder: colours{}}, nil
		},
		Extra: deps(nil).Extra,
	})
	if got != code {
		t.Fatalf("%v: exit %d, %s%s", args, got, stdout.String(), stderr.String())
	}
	if code == 0 && args[0] == "--json" {
		if err := json.Unmarshal(stdout.Bytes(), &results); err != nil {
			t.Fatalf("%v: %v in %s", args, err, stdout.String())
		}
	}
	return results, stdout.String() + stderr.String()
}

// TestEvalAs stores one set as memories, episodes and facts: each path finds the
// same in the same order, with and without weights, and the memory's own call what
// the path without weights finds.
func TestEvalAs(t *testing.T) {
	if testing.Short() {
		t.Skip("many stores, one after the other")
	}
	data := t.TempDir()
	writeSet(t, data, "talk", talkFiles())
	for _, c := range []struct{ task, weight string }{{"talk", "0"}, {"talk", "0.5"}, {"talk:sessions", "0.5"}, {"talk:observations", "0"}} {
		for embedder, paths := range map[string][]string{"none": {pathText}, "builtin": {pathVector, pathHybrid}} {
			ask := func(as, path string) (string, evalResult) {
				t.Helper()
				file := filepath.Join(t.TempDir(), "run")
				results, _ := runEvalCommand(t, 0, "--json", "eval", data, "--embedder", embedder, "--task", c.task, "--as", as, "--paths", path,
					"--run", file, "--neighbour-weight", c.weight, "--thread-weight", c.weight)
				if len(results) != 1 || results[0].As != as || results[0].Path != path {
					t.Fatalf("%+v", results)
				}
				found, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				return string(found), results[0]
			}
			var last string
			for _, path := range paths {
				want, of := ask(asMemories, path)
				last = want
				if c.task == "talk" && path != pathText && of.Overall.MRR10 != 1 {
					t.Errorf("%s, %s: %+v", c.task, path, of.Overall)
				}
				for _, as := range []string{asEpisodes, asFacts} {
					got, r := ask(as, path)
					// A vector that was made in the same call is not rounded like one that was
					// made later, so cosines differ in their last digits.
					same := got == want || path != pathText && rankingOf(got) == rankingOf(want)
					if !same || r.Documents != of.Documents || r.Unit != of.Unit {
						t.Errorf("%s, %s as %s with %s:\n%swant\n%s", c.task, path, as, c.weight, got, want)
					}
				}
			}
			if c.weight != "0" {
				continue
			}
			for _, as := range []string{asEpisodes, asFacts} {
				if got, _ := ask(as, pathCall); rankingOf(got) != rankingOf(last) {
					t.Errorf("%s, the call as %s:\n%swant\n%s", c.task, as, got, last)
				}
			}
		}
	}
}

// rankingOf is a run without its scores.
func rankingOf(run string) string {
	var b strings.Builder
	for line := range strings.Lines(run) {
		fields := strings.Split(line, "\t")
		b.WriteString(fields[0] + " " + fields[1] + "\n")
	}
	return b.String()
}

// TestEvalObservations ranks the turns behind facts: an unjudged one that a fact names
// first stands before the judged one.
func TestEvalObservations(t *testing.T) {
	data := t.TempDir()
	writeSet(t, data, "talk", talkFiles())
	file := filepath.Join(t.TempDir(), "run")
	results, _ := runEvalCommand(t, 0, "--json", "eval", data, "--embedder", "none", "--task", "talk:observations", "--as", "facts", "--paths", "text", "--run", file)
	if r := results[0]; r.Unit != eval.UnitSource || r.Documents != 3 || r.Overall.Queries != 3 || r.Overall.At[0].Hit != 1.0/3 || r.Overall.At[1].Recall != 2.0/3 {
		t.Errorf("%+v", r)
	}
	found, err := os.ReadFile(file)
	if want := "1 a/2\n1 a/1\n1 a/3\n3 b/1\n"; err != nil || rankingOf(string(found)) != want {
		t.Errorf("%s, %v", found, err)
	}
	_, text := runEvalCommand(t, 0, "eval", data, "--embedder", "none", "--task", "talk:observations", "--as", "facts")
	if !strings.Contains(text, "talk:observations, call: 3 documents as facts") {
		t.Error(text)
	}
}

func TestEvalAsRefused(t *testing.T) {
	data := t.TempDir()
	writeSet(t, data, "talk", talkFiles())
	bare := talkFiles()
	bare["queries.jsonl"] = strings.ReplaceAll(bare["queries.jsonl"], `"scope":"a",`, "")
	writeSet(t, data, "bare", bare)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"must be memories, episodes or facts", []string{"--task", "talk", "--as", "procedures"}},
		{"where a graph is walked", []string{"--task", "talk", "--as", "facts", "--graph-weight", "1"}},
		{"must be of text with embedder none and documents as memories", []string{"--task", "talk", "--embedder", "none", "--paths", "call"}},
		{"it ranks none", []string{"--task", "talk:sessions", "--as", "facts", "--paths", "call"}},
	} {
		if _, out := runEvalCommand(t, 2, append([]string{"eval", data}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("%v: %s", c.args, out)
		}
	}
	if _, out := runEvalCommand(t, 1, "eval", data, "--task", "bare", "--as", "facts", "--paths", "call"); !strings.Contains(out, "asked in one") {
		t.Error(out)
	}
	results, _ := runEvalCommand(t, 0, "--json", "eval", data, "--task", "talk:sessions", "--as", "facts", "--embedder", "none")
	if len(results) != 1 || results[0].Path != pathText {
		t.Errorf("%+v", results)
	}
}
