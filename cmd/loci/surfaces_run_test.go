package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/httpapi"
	"github.com/loci-memory/loci/internal/mcpserver"
	"github.com/loci-memory/loci/op"
)

// surface is one way to reach the operations, with a store and a folder of files of
// its own.
type surface struct {
	name   string
	folder string // below it: tmp, and notes, which holds files to be taken in
	ask    func(t *testing.T, s sample) answer

	note             int // what {note}, {checkpoint} and {edge} stand for
	checkpoint, edge string
}

// everySurface lists the surfaces. The first one is what the others are compared
// with.
func everySurface(t *testing.T) []*surface {
	return []*surface{
		onStore(t, "Go", func(_ *testing.T, db *loci.DB) func(*testing.T, sample) answer {
			return func(t *testing.T, s sample) answer { return askCaller(t, op.Local(db), s) }
		}),
		newSurface(t, "command line", func(t *testing.T, dir string) func(*testing.T, sample) answer {
			return func(t *testing.T, s sample) answer { return askCLI(t, dir, s) }
		}),
		onStore(t, "attached", attached),
		onStore(t, "HTTP", func(t *testing.T, db *loci.DB) func(*testing.T, sample) answer {
			server := httptest.NewServer(httpapi.Handler(httpapi.Config{Caller: op.Local(db)}))
			t.Cleanup(server.Close)
			return func(t *testing.T, s sample) answer { return askHTTP(t, server.URL, s) }
		}),
		onStore(t, "MCP", func(t *testing.T, db *loci.DB) func(*testing.T, sample) answer {
			c := dialMCP(t, mcpserver.Config{Caller: op.Local(db), AllTools: true, NoRedact: true})
			return func(t *testing.T, s sample) answer { return c.ask(t, s) }
		}),
	}
}

// newSurface makes a surface: connect is given the data directory and gives what
// asks.
func newSurface(t *testing.T, name string, connect func(t *testing.T, dir string) func(*testing.T, sample) answer) *surface {
	t.Helper()
	f := &surface{name: name, folder: t.TempDir()}
	for name, text := range map[string]string{
		"harbour/log.md": "# Log\n\nThe *walrus* came back.\n", "crew.md": "Nobody.", "bad.md": "\xff\xfe\xfd", "talk.jsonl": talk,
	} {
		path := filepath.Join(f.folder, "notes", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.folder, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.ask = connect(t, t.TempDir())
	return f
}

// onStore makes a surface whose store stays open, in this process.
func onStore(t *testing.T, name string, connect func(t *testing.T, db *loci.DB) func(*testing.T, sample) answer) *surface {
	t.Helper()
	return newSurface(t, name, func(t *testing.T, dir string) func(*testing.T, sample) answer {
		db, err := openSampled(t.Context(), dir, &loci.Options{WaitForIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		ask := connect(t, db)
		return func(t *testing.T, s sample) answer {
			t.Helper()
			if s.embedder {
				bindFake(t, db)
				defer db.Embeddings().UnregisterEmbedder("fake")
			}
			return ask(t, s)
		}
	})
}

// openSampled opens a store that does nothing by itself, at the same time as every
// other one.
func openSampled(ctx context.Context, dir string, opts *loci.Options) (*loci.DB, error) {
	o := loci.Options{}
	if opts != nil {
		o = *opts
	}
	o.Clock, o.NoBackgroundEmbedding, o.NoBackgroundSweep = clock(), true, true
	return loci.Open(ctx, dir, &o)
}

// call asks for a sample, with the surface's own files and ids in it.
func (f *surface) call(t *testing.T, s sample) answer {
	t.Helper()
	fill := func(text string) string {
		return strings.NewReplacer("{tmp}", f.path("tmp"), "{notes}", f.path("notes"),
			"{note}", fmt.Sprint(f.note), "{note+1}", fmt.Sprint(f.note+1), "{note+2}", fmt.Sprint(f.note+2),
			"{checkpoint}", f.checkpoint, "{edge}", f.edge).Replace(text)
	}
	s.input, s.args = fill(s.input), slices.Clone(s.args)
	for i, arg := range s.args {
		s.args[i] = fill(arg)
	}
	a := f.ask(t, s)
	if s.code == "" {
		f.remember(t, s, a.Result)
	}
	return answer{f.anywhere(a.Result), op.Failure{
		Code: a.Failure.Code, Operation: a.Failure.Operation, Field: a.Failure.Field,
		Message: f.anywhere(a.Failure.Message).(string), Reason: a.Failure.Reason, Details: a.Failure.Details,
	}}
}

func (f *surface) path(name string) string { return filepath.ToSlash(filepath.Join(f.folder, name)) }

// remember keeps the ids that later samples speak of: {note} is the note that was
// written last, {note+1} its first chunk, {checkpoint} the checkpoint that was made
// last, {edge} the relation of an agent memory that was made last.
func (f *surface) remember(t *testing.T, s sample, result any) {
	t.Helper()
	made, ok := result.(map[string]any)
	if !ok {
		return // the comparison tells
	}
	id := func(object any, name string) string {
		m, _ := object.(map[string]any)
		id, ok := m[name].(string)
		if !ok {
			t.Fatalf("%s: %s gives no %s: %v", f.name, s.op, name, result)
		}
		return id
	}
	switch {
	case s.op == "notes.upsert_file":
		n, err := strconv.Atoi(id(made["value"], "id"))
		if err != nil {
			t.Fatal(err)
		}
		f.note = n
	case s.op == "context.checkpoint":
		f.checkpoint = id(made["checkpoint"], "checkpoint_id")
	case strings.HasSuffix(s.op, ".relate"):
		f.edge = id(made["value"], "id")
	}
}

// anywhere puts a sign in the place of the surface's folder.
func (f *surface) anywhere(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, filepath.ToSlash(f.folder), "{folder}")
	case []any:
		v = slices.Clone(v)
		for i := range v {
			v[i] = f.anywhere(v[i])
		}
		return v
	case map[string]any:
		v = maps.Clone(v)
		for name := range v {
			v[name] = f.anywhere(v[name])
		}
		return v
	}
	return v
}

// wanted is a sample's want as call gives it.
func (f *surface) wanted(s sample) string {
	return strings.NewReplacer("{tmp}", "{folder}/tmp", "{notes}", "{folder}/notes",
		"{note}", fmt.Sprint(f.note), "{note+1}", fmt.Sprint(f.note+1), "{note+2}", fmt.Sprint(f.note+2),
		"{checkpoint}", f.checkpoint, "{edge}", f.edge).Replace(s.want)
}

// talk is a conversation to be imported.
const talk = `{"thread":"talk","role":"user","text":"Is the lamp lit?","id":"a"}
{"thread":"talk","role":"assistant","text":"It is.","id":"b"}
`

// clock gives the same times to every store.
func clock() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
}

// answer is what a surface said: a result, or an error.
type answer struct {
	Result  any
	Failure op.Failure
}

// allSamples are the samples of every area, in the order in which they are called.
func allSamples() []sample {
	return slices.Concat(changeSamples, samples, intakeSamples, agentSamples, contextSamples, importSamples, eraseSamples)
}

// TestEverySurface calls every operation on every surface, and holds that all say
// the same. An operation without a sample fails it.
func TestEverySurface(t *testing.T) {
	surfaces := everySurface(t)
	first := surfaces[0]
	sampled := map[string]bool{}
	for _, s := range allSamples() {
		o, ok := op.Default().Lookup(s.op)
		if !ok {
			t.Fatalf("there is no operation %s", s.op)
		}
		name := s.op + " " + s.input
		want := squeeze(t, first.wanted(s)) // before the ids move on
		got := first.call(t, s)
		for _, other := range surfaces[1:] {
			if a := other.call(t, s); !reflect.DeepEqual(forget(got), forget(a)) {
				t.Errorf("%s:\n%s: %+v\n%s: %+v", name, first.name, got, other.name, a)
			}
		}
		if s.code != "" {
			if got.Failure.Code != s.code || got.Failure.Operation != s.op || got.Failure.Message == "" {
				t.Errorf("%s: %+v, want %s", name, got.Failure, s.code)
			}
			continue
		}
		sampled[s.op] = true
		raw, err := marshal(got.Result)
		if err != nil {
			t.Fatal(err)
		}
		if got.Failure.Code != "" || !strings.Contains(raw, want) {
			t.Errorf("%s: %s %+v, want %s", name, raw, got.Failure, want)
		}
		schema, err := o.OutputSchema().Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal([]byte(raw), &plain); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(plain); err != nil {
			t.Errorf("%s: the result does not fit its schema: %v\n%s", name, err, raw)
		}
	}
	for _, o := range op.Default().All() {
		if !sampled[o.Name] {
			t.Errorf("%s has no sample that succeeds", o.Name)
		}
	}
}

// fakeEmbedder tells texts apart by their lengths.
type fakeEmbedder struct{}

func (fakeEmbedder) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text)) / 100}
	}
	return out, nil
}

// bindFake does for a server's store what --embedder does for the command
// line's.
func bindFake(t *testing.T, db *loci.DB) {
	t.Helper()
	_, err := db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "fake", Model: "fake", Dimension: 2})
	if err = errors.Join(err, db.Embeddings().RegisterEmbedder(t.Context(), "fake", fakeEmbedder{}, nil)); err != nil {
		t.Fatal(err)
	}
}

// forget takes out what a process knows and a store does not: the command line
// opens the store for each call anew.
func forget(a answer) answer {
	m, ok := a.Result.(map[string]any)
	if !ok {
		return a
	}
	m = maps.Clone(m)
	for _, name := range []string{"integrity", "integrity_at_us", "processed", "bytes", "journal_length", "last_degraded"} {
		delete(m, name)
	}
	forgetReceipt(m)
	forgetImport(m)
	if m["active"] == false {
		delete(m, "total") // of the last rebuild
	}
	return answer{m, a.Failure}
}

// askCaller asks as a program in Go does, or one that is attached to it.
func askCaller(t *testing.T, c op.Caller, s sample) answer {
	t.Helper()
	raw, err := c.Call(t.Context(), s.op, []byte(s.input))
	if err == nil {
		return answer{Result: decode(t, raw)}
	}
	var f op.Failure
	if raw, err = json.Marshal(op.FailureOf(err)); err == nil { // its details hold Go types
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		t.Errorf("%s: %v", s.op, err)
	}
	return answer{Failure: f}
}

func askCLI(t *testing.T, dir string, s sample) answer {
	t.Helper()
	args, model := s.args, "none"
	if len(args) == 0 {
		args = []string{"call", s.op, s.input}
	}
	if s.embedder {
		model = "builtin"
	}
	var out, errOut bytes.Buffer
	got := cli.Run(t.Context(), cli.Deps{
		Args: append([]string{"--data", dir, "--json", "--wait", "0s", "--embedder", model}, args...), Open: openSampled,
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
		LookupEnv: func(string) (string, bool) { return "", false }, WorkDir: noWorkDir,
		Model: func(string, int) (*cli.Model, error) {
			return &cli.Model{ID: "fake", Title: "a fake", Dimension: 2, Embedder: fakeEmbedder{}}, nil
		},
	})
	want := 0
	if s.code != "" {
		want = op.ExitCode(s.code)
	}
	if got != want {
		t.Errorf("loci %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, errOut.String())
	}
	if got == 0 {
		return answer{Result: decode(t, out.Bytes())}
	}
	if out.Len() > 0 {
		t.Errorf("loci %s: an error, and on standard output %s", strings.Join(args, " "), out.String())
	}
	var e struct {
		Error op.Failure `json:"error"`
	}
	if err := json.Unmarshal(errOut.Bytes(), &e); err != nil {
		t.Errorf("loci %s: %v: %s", strings.Join(args, " "), err, errOut.String())
	}
	return answer{Failure: e.Error}
}

func askHTTP(t *testing.T, url string, s sample) answer {
	t.Helper()
	resp, err := http.Post(url+"/v1/"+s.op, "application/json", strings.NewReader(s.input))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		return answer{Result: decode(t, raw)}
	}
	var p httpapi.Problem
	if err := json.Unmarshal(raw, &p); err != nil || p.Status != resp.StatusCode || p.Status != op.OutcomeOf(p.Code).Status {
		t.Errorf("%s: %v: %s", s.op, err, raw)
	}
	return answer{Failure: op.Failure{Code: p.Code, Operation: p.Operation, Field: p.Field, Message: p.Detail,
		Reason: p.Reason, Details: p.Details}}
}

// decode keeps number literals, so that equal means equal to the letter.
func decode(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Errorf("more than one document: %s", raw)
	}
	return v
}

func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// squeeze brings a wanted piece of JSON with an object in it into the order in
// which marshal writes it.
func squeeze(t *testing.T, want string) string {
	t.Helper()
	name, obj, ok := strings.Cut(want, ":{")
	if !ok {
		return want
	}
	s, err := marshal(decode(t, []byte("{"+obj)))
	if err != nil {
		t.Fatal(err)
	}
	return name + ":" + s
}
