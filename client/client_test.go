package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/clientgen"
	"github.com/loci-memory/loci/op"
)

// TestGenerated fails when the table of operations has changed since the client was
// written.
func TestGenerated(t *testing.T) {
	files, err := clientgen.Generate(op.Default(), "..")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_gen.go") && files[e.Name()] == nil {
			t.Errorf("%s is of no operation any more: run go generate ./client", e.Name())
		}
	}
	for name, want := range files {
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s is old (%v): run go generate ./client", name, err)
		}
	}
}

// serve answers the calls of a test, one function for each in turn, the last for
// all that follow. It gives a client whose waits take no time, and says how long
// they were.
func serve(t *testing.T, opts []Option, answers ...http.HandlerFunc) (c *Client, calls *atomic.Int64, waits *[]time.Duration) {
	t.Helper()
	calls, waits = new(atomic.Int64), new([]time.Duration)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(calls.Add(1)) - 1
		answers[min(n, len(answers)-1)](w, r)
	}))
	t.Cleanup(server.Close)
	c = New(server.URL+"/", opts...)
	c.sleep = func(ctx context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return ctx.Err()
	}
	return c, calls, waits
}

func status(code int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func ok(body string) http.HandlerFunc { return status(http.StatusOK, "", body) }

func TestCall(t *testing.T) {
	c, _, _ := serve(t, []Option{WithToken("shibboleth")}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/memories.upsert" || r.Header.Get("Authorization") != "Bearer shibboleth" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v %s %v", r.Method, r.URL, r.Header, body, err)
		}
		if want := `{"metadata":{"a":1.50},"judgment":"<x>"}`; strings.TrimSpace(string(body)) != want {
			t.Errorf("sent %s, want %s", body, want)
		}
		fmt.Fprint(w, `{"value":{"id":"7","judgment":"<x>","metadata":{"a":1.50},"new_field":1},"revision":3}`)
	})
	r, err := c.Memories.Upsert(t.Context(), MemoriesUpsertInput{Judgment: "<x>", Metadata: json.RawMessage(`{"a":1.50}`)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Value.ID != 7 || r.Revision != 3 || string(r.Value.Metadata) != `{"a":1.50}` {
		t.Errorf("%+v", r)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		want       Code
		message    string
	}{
		{"a problem", `{"code":"not_found","detail":"there is no memory 7","operation":"memories.get","field":"id","details":{"n":7}}`, 404, ErrNotFound,
			"memories.get: id there is no memory 7 (not_found)"},
		{"only a title", `{"code":"forbidden","title":"No"}`, 403, ErrForbidden, "memories.get: No (forbidden)"},
		{"a proxy", "<html>\n bad \xff gateway", 500, "", "memories.get: the server answered 500 Internal Server Error: <html> bad gateway"},
		{"a redirect", "", 302, "", "memories.get: the server answered 302 Found: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, calls, _ := serve(t, nil, status(tt.status, "", tt.body))
			_, err := c.Memories.Get(t.Context(), MemoriesGetInput{ID: 7})
			var e *Error
			if !errors.As(err, &e) || e.Status != tt.status || e.Code != tt.want || err.Error() != tt.message {
				t.Errorf("got %q %+v", err, e)
			}
			if tt.want != "" && !errors.Is(err, tt.want) || errors.Is(err, ErrConflict) || errors.Is(err, Code("")) {
				t.Errorf("%v is what it is not, or not what it is", err)
			}
			if calls.Load() != 1 {
				t.Errorf("asked %d times", calls.Load())
			}
		})
	}
}

func TestWrongAnswer(t *testing.T) {
	for _, body := range []string{"", "[]", `{"value":7}`, "{"} {
		c, _, _ := serve(t, nil, ok(body))
		if r, err := c.Memories.Upsert(t.Context(), MemoriesUpsertInput{}); err == nil {
			t.Errorf("%q was taken for %+v", body, r)
		}
	}
}

func TestRetries(t *testing.T) {
	busy := status(http.StatusServiceUnavailable, "", `{"code":"closed","detail":"closing"}`)
	c, calls, waits := serve(t, nil, busy, status(http.StatusTooManyRequests, "2", "{}"), ok(`{"items":[]}`))
	if _, err := c.Memories.List(t.Context(), MemoriesListInput{}); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 3 || len(*waits) != 2 || (*waits)[0] > firstPause || (*waits)[0] < firstPause/2 || (*waits)[1] != 2*time.Second {
		t.Errorf("%d calls, waits %v", calls.Load(), *waits)
	}
	// What cannot be done twice is done once.
	c, calls, _ = serve(t, nil, busy)
	if _, err := c.Memories.Upsert(t.Context(), MemoriesUpsertInput{}); !errors.Is(err, ErrClosed) || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	c, calls, waits = serve(t, []Option{WithRetries(2)}, status(http.StatusTooManyRequests, "1000000", "{}"))
	if _, err := c.Memories.List(t.Context(), MemoriesListInput{}); err == nil || calls.Load() != 3 || (*waits)[1] != longest {
		t.Errorf("%v after %d calls, waits %v", err, calls.Load(), *waits)
	}
	c, calls, _ = serve(t, []Option{WithRetries(0)}, busy)
	if _, err := c.Memories.List(t.Context(), MemoriesListInput{}); err == nil || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	// A connection that breaks.
	c, calls, _ = serve(t, nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ok(`{"items":[]}`))
	if _, err := c.Memories.List(t.Context(), MemoriesListInput{}); err != nil || calls.Load() < 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c := New(server.URL, WithToken("shibboleth"), WithRetries(1))
	_, err := c.Memories.List(t.Context(), MemoriesListInput{})
	if err == nil || strings.Contains(err.Error(), "shibboleth") {
		t.Errorf("%v", err)
	}
	for _, base := range []string{"", "://", "ftp://x", "http://a b"} {
		if _, err := New(base, WithRetries(0)).Health(t.Context(), HealthInput{}); err == nil {
			t.Errorf("%q is an address", base)
		}
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, calls, _ := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the connection ends
		cancel()
		<-r.Context().Done()
	})
	if _, err := c.Memories.List(ctx, MemoriesListInput{}); !errors.Is(err, context.Canceled) || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	// A wait that is longer than there is time for is not begun.
	ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	c, _, waits := serve(t, nil, status(http.StatusTooManyRequests, "20", "{}"))
	short, stop := context.WithTimeout(ctx, 19*time.Second)
	defer stop()
	if _, err := c.Memories.List(short, MemoriesListInput{}); err == nil || len(*waits) != 0 {
		t.Errorf("%v, waits %v", err, *waits)
	}
}

// TestNoRedirect: a token goes to the server that was named and nowhere else.
func TestNoRedirect(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	c, _, _ := serve(t, []Option{WithToken("shibboleth"), WithHTTPClient(nil), WithHTTPClient(http.DefaultClient)}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Health(t.Context(), HealthInput{}); err == nil || asked {
		t.Errorf("%v, and the other server was asked: %v", err, asked)
	}
	if http.DefaultClient.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
}

func TestProgress(t *testing.T) {
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
				t.Errorf("accepts %s", r.Header.Get("Accept"))
			}
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			fmt.Fprint(w, text)
		}
	}
	var told []int64
	ctx := WithProgress(t.Context(), func(done, total int64) { told = append(told, done, total) })
	c, _, _ := serve(t, nil, stream(": hello\n\nevent: progress\ndata: {\"done\":1,\"total\":3}\n\nid: 7\nevent:progress\r\ndata:{\"done\":2,\r\ndata: \"total\":3}\r\n\r\n"+
		"event: result\ndata: {\"value\":{\"files\":3},\"revision\":9}\n\n"))
	r, err := c.Notes.SyncDir(ctx, NotesSyncDirInput{})
	if err != nil || r.Value.Files != 3 || r.Revision != 9 || fmt.Sprint(told) != "[1 3 2 3]" {
		t.Errorf("%+v %v, told %v", r, err, told)
	}
	c, _, _ = serve(t, nil, stream("event: problem\ndata: {\"status\":409,\"code\":\"conflict\",\"detail\":\"too many go\"}\n\n"))
	_, err = c.Notes.SyncDir(ctx, NotesSyncDirInput{})
	var e *Error
	if !errors.As(err, &e) || e.Status != 409 || !errors.Is(err, ErrConflict) {
		t.Errorf("%v", err)
	}
	c, _, _ = serve(t, []Option{WithRetries(0)}, stream("event: progress\ndata: {}\n\n"))
	if _, err = c.Notes.SyncDir(ctx, NotesSyncDirInput{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

func TestCallByName(t *testing.T) {
	c, calls, _ := serve(t, nil, ok(`{"a":1}`))
	if raw, err := c.Call(t.Context(), "what.comes_later", nil); err != nil || string(raw) != `{"a":1}` {
		t.Errorf("%s %v", raw, err)
	}
	for _, name := range []string{"", "../healthz", "a?b", "a#b", "a%2fb", "a b", `a\b`} {
		if _, err := c.Call(t.Context(), name, nil); !errors.Is(err, ErrValidation) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestRecords(t *testing.T) {
	for _, tt := range []struct {
		raw  string
		kind Kind
	}{
		{`{"judgment":"x"}`, KindMemory}, {`{"entity_type":"x"}`, KindEntity}, {`{"subject_id":"1","predicate":"p"}`, KindRelation},
		{`{"participants":[]}`, KindEvent}, {`{"chunk_chars":1}`, KindNote}, {`{"note_id":"1","content":""}`, KindChunk}, {`{"page_id":"p"}`, KindPage},
		{`{"record_id":"1","content":""}`, KindFact}, {`{"record_id":"1","description":""}`, KindEpisode}, {`{"record_id":"1","steps":[]}`, KindProcedure},
	} {
		var r Record
		if err := json.Unmarshal([]byte(tt.raw), &r); err != nil {
			t.Fatal(err)
		}
		if v, err := r.Value(); err != nil || r.Kind() != tt.kind || v == nil {
			t.Errorf("%s is %q: %v %v", tt.raw, r.Kind(), v, err)
		}
		if out, err := json.Marshal(r); err != nil || string(out) != tt.raw {
			t.Errorf("%s %v", out, err)
		}
	}
	for _, raw := range []string{"{}", "7", `{"judgment":7}`} {
		if v, err := Record(raw).Value(); err == nil {
			t.Errorf("%s is %v", raw, v)
		}
	}
	if raw, err := json.Marshal(Record(nil)); err != nil || string(raw) != "null" {
		t.Errorf("%s %v", raw, err)
	}
}

func TestIDs(t *testing.T) {
	var id ID
	var point PointID
	for _, raw := range []string{`9007199254740993`, `"9007199254740993"`} {
		if err := errors.Join(json.Unmarshal([]byte(raw), &id), json.Unmarshal([]byte(raw), &point)); err != nil || id != 9007199254740993 || point != 9007199254740993 {
			t.Errorf("%s: %d %d %v", raw, id, point, err)
		}
	}
	for _, raw := range []string{`"x"`, `1.5`, `{}`, `"99999999999999999999999"`} {
		if json.Unmarshal([]byte(raw), &id) == nil || json.Unmarshal([]byte(raw), &point) == nil {
			t.Errorf("%s is an id", raw)
		}
	}
	if out, err := json.Marshal([]any{ID(7), PointID(1<<64 - 1)}); err != nil || string(out) != `["7","18446744073709551615"]` {
		t.Errorf("%s %v", out, err)
	}
}

func FuzzFollow(f *testing.F) {
	f.Add("event: progress\ndata: {\"done\":1}\n\nevent: result\ndata: {}\n\n")
	f.Add("event: problem\ndata: {\"status\":400}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := follow(strings.NewReader(text), "x", func(int64, int64) {})
		if err != nil && raw != nil {
			t.Fatalf("%q: %q and %v", text, raw, err)
		}
	})
}
