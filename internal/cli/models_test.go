package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/op"
)

// seaModel knows two meanings: what has to do with the sea, and everything else.
// turned makes another model of it under the same name.
type seaModel struct {
	turned bool
	err    error
}

func (m seaModel) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		sea := false
		for _, word := range []string{"tide", "boat", "潮", "船"} {
			sea = sea || strings.Contains(text, word)
		}
		v := []float32{1, 0.1}
		if sea != m.turned {
			v = []float32{0.1, 1}
		}
		out[i] = v
	}
	return out, m.err
}

// with gives the program a model of its own.
func with(e embed.Embedder) func(*Deps) {
	return func(d *Deps) {
		d.Model = func(name string, _ int) (*Model, error) {
			return &Model{ID: "sea 1", Title: name + " sea", Dimension: 2, Embedder: e}, nil
		}
	}
}

// sea runs command lines on one data directory with one model.
type sea struct {
	t    *testing.T
	dir  string
	env  map[string]string
	deps func(*Deps)
}

func (s sea) run(code int, args ...string) outcome {
	s.t.Helper()
	got := cmdLine{env: s.env, deps: s.deps, args: append([]string{"--data", s.dir}, args...)}.run(s.t)
	if got.code != code {
		s.t.Errorf("loci %s: %+v, want exit %d", strings.Join(args, " "), got, code)
	}
	return got
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not hold %q", text, p)
		}
	}
}

// TestRememberGivesVectors holds that what is remembered is found by its meaning
// at once, without a command of its own.
func TestRememberGivesVectors(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	s.run(0, "remember", "The tide table is updated weekly.")
	s.run(0, "remember", "Lamps are lit at seven.")
	got := s.run(0, "recall", "船")
	contains(t, got.stdout, "The tide table")
	if strings.Index(got.stdout, "tide") > strings.Index(got.stdout, "Lamps") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	contains(t, s.run(0, "search", "船", "--explain").stdout, "by its vector, cosine 1.000")
	if got := s.run(0, "search", "tide", "--explain", "--no-vector"); strings.Contains(got.stdout, "cosine") {
		t.Errorf("%+v", got)
	}
	contains(t, s.run(0, "embeddings", "status").stdout, "memory  2        2        complete")

	// Turned off, nobody speaks of vectors, and none are made.
	s.run(0, "--embedder", "none", "remember", "A boat came.")
	got = s.run(0, "--embedder", "none", "recall", "boat")
	if strings.Contains(got.stdout, "incomplete") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	got = s.run(0, "recall", "船")
	contains(t, got.stdout, "1 of 3 records of tier memory have no vectors: loci embeddings sync")
	contains(t, s.run(0, "embeddings", "sync").stdout, "1 vector made", "Nothing lacks a vector")
	contains(t, s.run(2, "--embedder", "none", "embeddings", "sync").stderr, "embedder: is none")
}

// TestBacklog holds that a write does not make up for a large backlog, and says
// what does.
func TestBacklog(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	records := make([]string, 200)
	for i := range records {
		records[i] = fmt.Sprintf(`{"judgment":"Entry %d of the log."}`, i)
	}
	s.run(0, "--embedder", "none", "memories", "upsert-many", `{"memories":[`+strings.Join(records, ",")+`]}`)
	contains(t, s.run(0, "recall", "entry").stderr, "there are none of builtin sea yet: loci embeddings sync")
	contains(t, s.run(0, "remember", "A boat came.").stderr, "loci embeddings sync")
	got := s.run(0, "--json", "embeddings", "sync")
	contains(t, got.stdout, `"ready":true`)
	contains(t, s.run(0, "embeddings", "status").stdout, "201      201      complete")
}

// TestOtherModel holds that a model that changed under its name is noticed and
// explained, and that searches answer all the same.
func TestOtherModel(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	s.run(0, "remember", "The tide table is updated weekly.")
	s.deps = with(seaModel{turned: true})
	got := s.run(0, "recall", "tide")
	contains(t, got.stdout, "The tide table")
	contains(t, got.stderr, `makes other vectors than those that are stored`, `loci embeddings delete-space "sea 1"`)
	contains(t, s.run(4, "embeddings", "sync").stderr, "embeddings delete-space")
	got = s.run(0, "doctor")
	contains(t, got.stdout, "makes other vectors")
	contains(t, s.run(0, "embeddings", "delete-space", "sea 1").stdout, "Deleted")
	contains(t, s.run(0, "embeddings", "sync").stdout, "1 vector made")

	s.deps = with(seaModel{err: errors.New("it is out of order")})
	got = s.run(0, "recall", "tide")
	contains(t, got.stdout, "The tide table")
	contains(t, got.stderr, "Searched without vectors", "out of order")
	got = s.run(0, "remember", "A boat came.")
	contains(t, got.stdout, "Remembered")
	contains(t, got.stderr, "no vectors yet")
}

func TestSwitches(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	s.run(0, "remember", "The tide table is updated weekly.")
	contains(t, s.run(0, "embeddings", "disable", "memory").stdout, "Off.")
	contains(t, s.run(0, "embeddings", "status").stdout, "memory  1        1        off")
	contains(t, s.run(0, "embeddings", "enable", "memory").stdout, "On.")
	contains(t, s.run(0, "embeddings", "disable").stdout, "Off.")
	contains(t, s.run(0, "embeddings", "status").stdout, "turned off: loci embeddings enable")
	contains(t, s.run(0, "doctor").stdout, "namespace default is turned off")
	s.run(2, "embeddings", "enable", "chunks")

	notes := t.TempDir()
	if err := os.WriteFile(filepath.Join(notes, "a.md"), []byte("A boat came."), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(0, "embeddings", "enable")
	s.run(0, "notes", "set-root", notes)
	contains(t, s.run(0, "notes", "sync-dir").stderr, "loci embeddings enable notes")
	contains(t, s.run(0, "doctor").stdout, "tier notes is turned off", "loci embeddings enable notes")
	s.run(0, "embeddings", "enable", "notes")
	if got := s.run(0, "notes", "sync-dir"); strings.Contains(got.stderr, "embeddings") {
		t.Errorf("%+v", got)
	}
	contains(t, s.run(0, "embeddings", "status").stdout, "notes   1        1        complete")
}

const secret = "sk-keep-it"

// TestService binds services by their addresses, with keys that nothing shows.
func TestService(t *testing.T) {
	broken := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Input     []string
			Documents []string
		}
		raw, err := io.ReadAll(r.Body)
		if err = errors.Join(err, json.Unmarshal(raw, &in)); err != nil || broken || r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		data := []any{}
		if strings.HasSuffix(r.URL.Path, "/rerank") {
			for i, d := range in.Documents {
				data = append(data, map[string]any{"index": i, "relevance_score": -float64(len(d))})
			}
			// The test's end sees what is wrong with an answer.
			_ = json.NewEncoder(w).Encode(map[string]any{"results": data})
			return
		}
		vectors, err := seaModel{}.Embed(r.Context(), in.Input, embed.Passage)
		if err != nil {
			t.Error(err)
		}
		for i, v := range vectors {
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sea{t: t, dir: t.TempDir(), env: map[string]string{
		"LOCI_EMBEDDER": server.URL + "?model=sea", "LOCI_EMBEDDER_KEY": secret,
		"LOCI_RERANKER": server.URL + "?model=sea", "LOCI_RERANKER_KEY_FILE": file,
	}}
	all := ""
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := s.run(code, args...)
		all += got.stdout + got.stderr
		return got
	}
	run(0, "remember", "The tide table is updated weekly, and nobody reads it.")
	run(0, "remember", "Tide: low.")
	got := run(0, "recall", "船")
	contains(t, got.stdout, "The tide table")
	if got.stderr != "" || strings.Index(got.stdout, "low") > strings.Index(got.stdout, "table") {
		t.Errorf("%+v", got)
	}
	contains(t, run(0, "search", "tide", "--explain").stdout, "by the reranker", "cosine")
	contains(t, run(0, "reranker-registered").stdout, "yes")
	contains(t, run(0, "embeddings", "spaces").stdout, "openai at "+server.URL)
	contains(t, run(0, "config").stdout, "embedder_key", "set", "LOCI_RERANKER_KEY_FILE", "model sea")
	contains(t, run(0, "--json", "doctor").stdout, "for a sample")

	broken = true
	got = run(0, "recall", "tide")
	contains(t, got.stdout, "The tide table")
	contains(t, got.stderr, "Searched without vectors")
	contains(t, run(0, "remember", "A boat came.").stderr, "no vectors yet")
	run(2, "embeddings", "sync")
	contains(t, run(0, "doctor").stdout, "does not answer")
	server.Close()
	contains(t, run(0, "recall", "tide").stdout, "The tide table")
	if strings.Contains(all, secret) {
		t.Errorf("the key is shown: %s", all)
	}

	for _, args := range [][]string{
		{"--embedder", "http://user:" + secret + "@127.0.0.1/v1?model=x", "config"},
		{"--reranker", "http://user:" + secret + "@127.0.0.1/v1?model=x", "config"},
		{"--embedder", "ftp://x", "config"},
		{"--embedder", "http://x", "config"},
		{"--embedder", "builtin", "config"},
		{"--reranker", "builtin", "config"},
	} {
		if got := s.run(2, args...); strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("%+v", got)
		}
	}
}

// TestServeVectors holds that a server makes vectors by itself, and that one
// whose model fails serves, says so in its log and ends at once.
func TestServeVectors(t *testing.T) {
	ask := func(ctx context.Context, c op.Caller, name, in, want string) bool {
		out, err := c.Call(ctx, name, json.RawMessage(in))
		return err == nil && strings.Contains(string(out), want)
	}
	for _, e := range []seaModel{{}, {err: errors.New("it is out of order")}} {
		served := false
		s := sea{t: t, dir: t.TempDir(), deps: func(d *Deps) {
			with(e)(d)
			d.Serve = func(ctx context.Context, cfg ServeConfig) error {
				served = true
				if !ask(ctx, cfg.Caller, "remember", `{"text":"The tide table is updated weekly."}`, "tide") {
					t.Error("nothing is remembered")
				}
				if e.err != nil {
					if !ask(ctx, cfg.Caller, "recall", `{"query":"tide"}`, "The tide table") {
						t.Error("nothing is recalled")
					}
					return nil
				}
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				for !ask(ctx, cfg.Caller, "embeddings.status", `{"space":"sea 1"}`, `"records":1,"vectors":1`) {
					if ctx.Err() != nil {
						t.Error("no vector is made")
						return nil
					}
					time.Sleep(5 * time.Millisecond)
				}
				if !ask(ctx, cfg.Caller, "search", `{"query":"船"}`, `"vector_used":true`) {
					t.Error("the vector is not used")
				}
				return nil
			}
		}}
		if got := s.run(0, "serve"); !served {
			t.Errorf("%+v", got)
		}
	}
}
