package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

const (
	hello   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ready   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	version = "2025-11-25"
)

// talk sends lines to a server, closes, and gives the answers by their ids; those
// without an id under "null".
func talk(t *testing.T, cfg Config, lines ...string) map[string][]document {
	t.Helper()
	if cfg.Caller == nil {
		cfg.Caller = op.Local(store(t))
	}
	var out bytes.Buffer
	if err := ServeStdio(t.Context(), cfg, strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string][]document{}
	for line := range strings.Lines(out.String()) {
		doc, err := decode([]byte(line))
		if err != nil || doc["jsonrpc"] != "2.0" {
			t.Errorf("not a message: %q: %v", line, err)
			continue
		}
		raw, err := json.Marshal(doc["id"])
		if err != nil {
			t.Fatal(err)
		}
		answers[string(raw)] = append(answers[string(raw)], doc)
	}
	return answers
}

func call(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// Every version of the protocol is spoken, and a client that sends everything and
// closes gets its answers.
func TestEveryVersion(t *testing.T) {
	for _, v := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2099-01-01"} {
		got := talk(t, Config{}, fmt.Sprintf(hello, v), ready, call(1, "remember", `{"text":"Lamps are lit at seven."}`), `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		want := v
		if v > version {
			want = version
		}
		if r := obj(got["0"][0], "result"); r["protocolVersion"] != want || str(r, "instructions") == "" {
			t.Errorf("%s: %v", v, got["0"])
		}
		if r := obj(got["1"][0], "result"); r["isError"] == true || obj(r, "structuredContent")["id"] != "1" {
			t.Errorf("%s: %v", v, got["1"])
		}
		if n := len(items(obj(got["2"][0], "result"), "tools")); n == 0 || n > maxTools {
			t.Errorf("%s: %d tools", v, n)
		}
	}
	got := talk(t, Config{},
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta+`,"name":"remember","arguments":{"text":"灯塔每晚七点点灯"}}}`)
	if v := strs(obj(got["1"][0], "result"), "supportedVersions"); len(v) == 0 || v[0] != "2026-07-28" {
		t.Errorf("%v", got["1"])
	}
	if r := obj(got["2"][0], "result"); obj(r, "structuredContent")["text"] != "灯塔每晚七点点灯" {
		t.Errorf("%v", got["2"])
	}
}

// A line that is no message is answered, and the session goes on.
func TestGarbage(t *testing.T) {
	longest := maxMessage
	if testing.Short() {
		longest = 1 << 16 // which is not too long
	}
	long := `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"` + strings.Repeat("x", longest) + `"}}`
	got := talk(t, Config{},
		"\xff\xfe", "{", "[]", "null", "1", `"x"`, "[1, {}]", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, "", "   ", "\r", long,
		fmt.Sprintf(hello, version), ready,
		`{"jsonrpc":"2.0","id":3,"method":"nothing/such"}`,
		`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":"4","method":"ping"}]`,
		call(5, "nothing", `{}`), call(6, "status", `{}`),
		`{"jsonrpc":"2.0","id":7,"result":{}}`, "the end without a line break")
	refused := 11
	if testing.Short() {
		refused--
	}
	if n := len(got["null"]); n != refused {
		t.Errorf("%d refusals: %v", n, got["null"])
	}
	for _, r := range got["null"] {
		if c := fmt.Sprint(obj(r, "error")["code"]); c != "-32700" && c != "-32600" {
			t.Errorf("%v", r)
		}
	}
	for _, id := range []string{"0", "4", `"4"`, "6"} {
		if len(got[id]) != 1 || got[id][0]["result"] == nil {
			t.Errorf("%s: %v", id, got[id])
		}
	}
	for _, id := range []string{"3", "5"} {
		if len(got[id]) != 1 || got[id][0]["error"] == nil {
			t.Errorf("%s: %v", id, got[id])
		}
	}
}

// What is wrong with arguments is an answer that a model can read.
func TestWrongArguments(t *testing.T) {
	c := client(t, Config{})
	for _, bad := range []struct{ tool, arguments, want string }{
		{"remember", `{}`, "validation: text: is missing"},
		{"remember", `{"text":null}`, "validation: text: is missing"},
		{"remember", `{"text":7}`, "validation: text: "},
		{"remember", `{"text":"x","txet":"y"}`, "validation: "},
		{"remember", `{"text":"  "}`, "validation: text: "},
		{"remember", `{"text":"x","tags":"one"}`, "validation: tags: "},
		{"remember", `[]`, "validation: "},
		{"remember", `"x"`, "validation: "},
		{"remember", `{"text":"x","text":"y"}`, "validation: "},
		{"recall", `{"query":"x","limit":0}`, "validation: limit: must be from 1 to 100"},
		{"recall", `{"query":"x","limit":"3"}`, "validation: limit: "},
		{"search", `{"query":"x","kinds":["page of a book"]}`, "validation: kinds[0]: "},
		{"search", `{"query":"x","since":"yesterday"}`, "validation: since: must be a day"},
		{"search", `{"query":" "}`, "validation: query: "},
		{"forget", `{"id":"x"}`, "validation: id: "},
		{"forget", `{"id":"1","kind":"chunk"}`, "validation: kind: "},
		{"feedback", `{"recalled_ids":["1"],"useful_ids":["2"]}`, "validation: useful_ids"},
		{"explore", `{"name":"Ada","depth":4}`, "validation: depth: "},
		{"notes", `{"id":"77"}`, "not_found: "},
		{"relate", `{"triples":[{"subject":"a"}]}`, "validation: triples[0]"},
	} {
		a := ask(t, c, bad.tool, bad.arguments)
		if !a.isError || !strings.HasPrefix(a.text, bad.want) || obj(a.doc, "error")["code"] == nil {
			t.Errorf("%s %s: %s, want %s", bad.tool, bad.arguments, a.text, bad.want)
		}
	}
	if testing.Short() {
		return
	}
	if a := ask(t, c, "remember", `{"text":"`+strings.Repeat("灯", 4<<20)+`"}`); !a.isError {
		t.Errorf("a text of 12 MB: %s", a.text[:100])
	}
}

// stuck is a store that answers nothing until the call is stopped.
type stuck struct{ began chan struct{} }

func (s stuck) Call(ctx context.Context, name string, _ []byte) (json.RawMessage, error) {
	s.began <- struct{}{}
	<-ctx.Done()
	return nil, errs.WithOp(name, errs.Wrap(errs.Canceled, ctx.Err(), "stopped"))
}

// piped is a server with a client that writes and reads lines.
type piped struct {
	to   *io.PipeWriter
	from *bufio.Reader
	done chan error
}

func pipe(t *testing.T, ctx context.Context, cfg Config) *piped {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	p := &piped{to, bufio.NewReader(from), make(chan error, 1)}
	go func() {
		p.done <- ServeStdio(ctx, cfg, in, out)
		_ = out.Close()
	}()
	t.Cleanup(func() { _ = to.Close(); _ = from.Close() })
	p.send(t, fmt.Sprintf(hello, version))
	p.read(t)
	p.send(t, ready)
	return p
}

func (p *piped) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.to, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (p *piped) read(t *testing.T) document {
	t.Helper()
	line, err := p.from.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	doc, err := decode(line)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A call that the client takes back is stopped, and the next one is answered.
func TestCancelledCall(t *testing.T) {
	s := stuck{make(chan struct{}, 4)}
	p := pipe(t, t.Context(), Config{Caller: s})
	p.send(t, call(1, "status", `{}`))
	<-s.began
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`)
	p.send(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	for {
		if a := p.read(t); a["id"] == json.Number("2") {
			break
		}
	}
}

// The input ends, or the program is stopped, while a call runs: it is stopped, and
// the server ends.
func TestEndDuringACall(t *testing.T) {
	for _, how := range []string{"input", "context"} {
		s := stuck{make(chan struct{}, 4)}
		ctx, stop := context.WithCancel(t.Context())
		p := pipe(t, ctx, Config{Caller: s})
		p.send(t, call(1, "status", `{}`))
		<-s.began
		if how == "input" {
			if err := p.to.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			stop()
		}
		go func() { _, _ = io.Copy(io.Discard, p.from) }()
		if err := <-p.done; err != nil {
			t.Errorf("%s: %v", how, err)
		}
		stop()
	}
}

// Many calls at once are each answered once.
func TestManyCalls(t *testing.T) {
	p := pipe(t, t.Context(), Config{Caller: op.Local(store(t))})
	const n = 50
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; i <= n; i++ {
			p.send(t, call(i, "remember", fmt.Sprintf(`{"text":"Lamp %d is lit."}`, i)))
		}
	})
	seen := map[string]bool{}
	for range n {
		a := p.read(t)
		id := fmt.Sprint(a["id"])
		if seen[id] || a["result"] == nil {
			t.Errorf("%v", a)
		}
		seen[id] = true
	}
	wg.Wait()
}

// FuzzStdio sends anything at all: the server writes nothing but messages and ends
// with its input.
func FuzzStdio(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(hello, version) + "\n" + ready + "\n" + call(1, "status", `{}`)))
	f.Add([]byte("[]\n{}\n\xff\n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"method":"initialize","params":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		err := ServeStdio(t.Context(), Config{Caller: refusing{}}, bytes.NewReader(in), &out)
		if err != nil {
			t.Logf("%v", err) // a session that broke off is told so
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("%q", line)
			}
		}
	})
}

// refusing is a store that is not there.
type refusing struct{}

func (refusing) Call(_ context.Context, name string, _ []byte) (json.RawMessage, error) {
	return nil, errs.WithOp(name, errs.New(errs.Closed, "the store is closed"))
}
