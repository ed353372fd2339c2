package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

// callerFunc is a store made of a function.
type callerFunc func(ctx context.Context, name string, raw []byte) (json.RawMessage, error)

func (f callerFunc) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	return f(ctx, name, raw)
}

// echo answers with what it was asked, after the table's own check.
var echo = callerFunc(func(_ context.Context, name string, raw []byte) (json.RawMessage, error) {
	o, _ := op.Default().Lookup(name)
	if err := o.Check(raw); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"name": name, "raw": string(raw)})
})

func TestRequests(t *testing.T) {
	const js = "application/json"
	const recall = `{"query":"x"}`
	tests := []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		part                     string // of the body
		allow                    string
	}{
		{"operation", "POST", "/v1/recall", recall, nil, 200, `"name":"recall"`, ""},
		{"charset", "POST", "/v1/recall", recall, map[string]string{"Content-Type": "application/json; charset=UTF-8"}, 200, "recall", ""},
		{"no body", "POST", "/v1/health", "", map[string]string{"Content-Type": ""}, 200, "health", ""},
		{"list", "GET", "/v1", "", nil, 200, `"path":"/v1/memories.upsert"`, ""},
		{"health", "GET", "/healthz", "", nil, 200, `"ok"`, ""},
		{"unknown operation", "POST", "/v1/nope", "{}", nil, 404, `"code":"not_found"`, ""},
		{"unknown path", "GET", "/../etc", "", nil, 404, "not_found", ""},
		{"slash", "POST", "/v1/recall/", recall, nil, 404, "not_found", ""},
		{"method", "GET", "/v1/recall", "", nil, 405, `"status":405`, "POST"},
		{"preflight", "OPTIONS", "/v1/recall", "", nil, 405, "", "POST"},
		{"method of health", "POST", "/healthz", "{}", nil, 405, "", "GET, HEAD"},
		{"form", "POST", "/v1/recall", recall, map[string]string{"Content-Type": "text/plain"}, 415, "application/json", ""},
		{"no type", "POST", "/v1/recall", recall, map[string]string{"Content-Type": ""}, 415, "", ""},
		{"latin", "POST", "/v1/recall", recall, map[string]string{"Content-Type": "application/json; charset=latin1"}, 415, "UTF-8", ""},
		{"packed", "POST", "/v1/recall", recall, map[string]string{"Content-Encoding": "gzip"}, 415, "", ""},
		{"too large", "POST", "/v1/recall", `{"query":"` + strings.Repeat("x", 2000) + `"}`, nil, 413, "1024 bytes", ""},
		{"broken", "POST", "/v1/recall", `{"query":`, nil, 400, `"operation":"recall","field":"query"`, ""},
		{"unknown field", "POST", "/v1/recall", `{"query":"x","limt":1}`, nil, 400, "did you mean limit?", ""},
		{"rebinding", "POST", "/v1/recall", recall, map[string]string{"Host": "evil.example:7474"}, 403, "forbidden", ""},
		{"another address", "GET", "/healthz", "", map[string]string{"Host": "192.168.1.2"}, 403, "", ""},
		{"ipv6 name", "GET", "/healthz", "", map[string]string{"Host": "[::1]:7474"}, 200, "", ""},
		{"own page", "POST", "/v1/recall", recall, map[string]string{"Host": "localhost:1", "Origin": "http://localhost:1"}, 200, "", ""},
		{"another port", "POST", "/v1/recall", recall, map[string]string{"Host": "localhost:1", "Origin": "http://localhost:2"}, 403, "", ""},
		{"another page", "POST", "/v1/recall", recall, map[string]string{"Origin": "https://evil.example"}, 403, "", ""},
		{"sandboxed page", "GET", "/v1", "", map[string]string{"Origin": "null"}, 403, "", ""},
		{"cross site", "GET", "/v1", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "", ""},
	}
	h := Handler(Config{Caller: echo, MaxBody: 1024})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "/", strings.NewReader(tt.body))
			r.URL.Path = tt.path
			r.Host = "127.0.0.1:7474"
			r.Header.Set("Content-Type", js)
			for k, v := range tt.header {
				switch {
				case k == "Host":
					r.Host = v
				case v == "":
					r.Header.Del(k)
				default:
					r.Header.Set(k, v)
				}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.part) || w.Header().Get("Allow") != tt.allow {
				t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
			}
			want := js
			if tt.status >= 400 {
				want = "application/problem+json"
				var p Problem
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != tt.status || p.Title == "" ||
					p.Detail == "" || p.Type != "urn:loci:error:"+string(p.Code) {
					t.Errorf("problem %+v, %v", p, err)
				}
			}
			if got := w.Header().Get("Content-Type"); got != want {
				t.Errorf("content type %s", got)
			}
		})
	}
}

func post(t *testing.T, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestErrors holds the status of each code, and that causes stay inside.
func TestErrors(t *testing.T) {
	for _, o := range op.Outcomes() {
		h := Handler(Config{Caller: callerFunc(func(context.Context, string, []byte) (json.RawMessage, error) {
			return nil, &errs.Error{Code: o.Code, Op: "recall", Message: "what was wrong", Err: errors.New("/secret/path")}
		})})
		w := post(t, h, "/v1/recall", "{}")
		if w.Code != o.Status || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "what was wrong") {
			t.Errorf("%s: %d %s", o.Code, w.Code, w.Body)
		}
	}
}

// TestPanic holds that a panic becomes a 500 that tells nothing, and that the
// log does not quote what may be a record.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	h := Handler(Config{
		Log:    slog.New(slog.NewTextHandler(&log, nil)),
		Caller: callerFunc(func(context.Context, string, []byte) (json.RawMessage, error) { panic("a record's text") }),
	})
	w := post(t, h, "/v1/recall", "{}")
	if w.Code != 500 || strings.Contains(w.Body.String(), "record") || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if s := log.String(); strings.Contains(s, "record's text") || !strings.Contains(s, "route=recall") || !strings.Contains(s, "handler_test.go") {
		t.Error(s)
	}
}

// TestLogHoldsNoText holds that neither query nor path is logged.
func TestLogHoldsNoText(t *testing.T) {
	var log bytes.Buffer
	h := Handler(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Caller: echo})
	post(t, h, "/v1/recall", `{"query":"sesame"}`)
	post(t, h, "/v1/sesame", `{}`)
	if s := log.String(); strings.Contains(s, "sesame") || strings.Count(s, "msg=request") != 2 {
		t.Error(s)
	}
}

func TestTimeout(t *testing.T) {
	h := Handler(Config{
		Timeout: 10 * time.Millisecond,
		Caller: callerFunc(func(ctx context.Context, _ string, _ []byte) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, errs.Wrap(errs.Canceled, ctx.Err(), "stopped")
		}),
	})
	if w := post(t, h, "/v1/recall", "{}"); w.Code != http.StatusGatewayTimeout {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestMaxRunning holds that no more operations run at once than allowed.
func TestMaxRunning(t *testing.T) {
	var mu sync.Mutex
	running, most := 0, 0
	h := Handler(Config{
		MaxRunning: 2,
		Caller: callerFunc(func(context.Context, string, []byte) (json.RawMessage, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(2 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return json.RawMessage("{}"), nil
		}),
	})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { post(t, h, "/v1/recall", "{}") })
	}
	wg.Wait()
	if most > 2 {
		t.Errorf("%d ran at once", most)
	}
}

func TestListenLoopbackOnly(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.168.1.1:0", "example.com:0", "localhost.example.com:0", "127.0.0.1", ""} {
		err := Serve(t.Context(), addr, Config{Caller: echo}, func(string) { t.Error(addr + " was opened") })
		if !errors.Is(err, loci.ErrValidation) {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// start serves until the test ends and gives the address.
func start(t *testing.T, cfg Config) (addr string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- Serve(ctx, "127.0.0.1:0", cfg, func(url string) { ready <- url }) }()
	select {
	case url := <-ready:
		addr = strings.TrimPrefix(url, "http://")
	case err := <-done:
		t.Fatal(err)
	}
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return addr, stop
}

// TestShutdown holds that a running request is answered after the server was
// told to stop, and that no new one is taken.
func TestShutdown(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	addr, stop := start(t, Config{Caller: callerFunc(func(ctx context.Context, _ string, _ []byte) (json.RawMessage, error) {
		close(began)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return json.RawMessage(`{"done":true}`), ctx.Err()
	})})
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Post("http://"+addr+"/v1/recall", "application/json", strings.NewReader("{}"))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for range 100 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(5 * time.Millisecond)
	}
	close(goOn)
	if got := <-answer; got != "{\"done\":true}\n" {
		t.Error(got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestLargeBody holds that a body comes whole, whatever its size and whether its
// length is told.
func TestLargeBody(t *testing.T) {
	var got []byte
	h := Handler(Config{MaxBody: 8 << 20, Caller: callerFunc(func(_ context.Context, _ string, raw []byte) (json.RawMessage, error) {
		got = raw
		return json.RawMessage("{}"), nil
	})})
	for _, size := range []int{0, 1, smallBody - 1, smallBody, smallBody + 1, 5<<20 + 7, 8 << 20} {
		want := bytes.Repeat([]byte("潮x"), size/4+1)[:size]
		for _, told := range []bool{true, false} {
			r := httptest.NewRequest("POST", "/v1/recall", bytes.NewReader(want))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			if !told {
				r.ContentLength = -1
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 200 || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, length told %v: %d, %d bytes came", size, told, w.Code, len(got))
			}
		}
	}
}

// TestSlowClient holds that a client which does not send its body is cut off.
func TestSlowClient(t *testing.T) {
	mounted := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("half a request was handed on") })
	addr, _ := start(t, Config{Caller: echo, BodyTimeout: 50 * time.Millisecond, Mounts: map[string]http.Handler{"/mcp": mounted}})
	for _, path := range []string{"/v1/recall", "/mcp"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 408") {
			t.Errorf("%s: %q %v", path, raw, err)
		}
	}
}

// TestClientThatTakesNothing holds that who does not read an answer is cut off, so
// that it does not keep its place among what runs.
func TestClientThatTakesNothing(t *testing.T) {
	left := make(chan error, 1)
	mounted := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				left <- err
				return
			}
		}
	})
	addr, _ := start(t, Config{Caller: echo, WriteTimeout: 50 * time.Millisecond, Mounts: map[string]http.Handler{"/mcp": mounted}})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-left; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestLongOperation holds that the time for sending a request does not limit
// the time for answering it.
func TestLongOperation(t *testing.T) {
	addr, _ := start(t, Config{
		BodyTimeout: 50 * time.Millisecond,
		Caller: callerFunc(func(ctx context.Context, _ string, _ []byte) (json.RawMessage, error) {
			select {
			case <-time.After(200 * time.Millisecond):
				return json.RawMessage("{}"), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}),
	})
	resp, err := http.Post("http://"+addr+"/v1/rebuild_indexes", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
}
