package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/tokens"
	"github.com/loci-memory/loci/op"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// storeCaller is a real store.
func storeCaller(t testing.TB) op.Caller {
	t.Helper()
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return op.Local(db)
}

// people are tokens by name, and the file that knows them.
func people(t testing.TB) (keeper *tokens.Keeper, secrets map[string]string, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tokens.json")
	secrets = map[string]string{}
	var set tokens.Set
	grant := func(text string) []loci.Grant {
		g, err := tokens.ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		return []loci.Grant{g}
	}
	for name, access := range map[string]loci.Access{
		"ada": {Grants: grant("work:rw")}, "bo": {Grants: grant("home:rw")}, "reader": {Grants: grant("work")}, "operator": {Admin: true},
	} {
		secret, err := set.New(name, access, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret
	}
	err := set.Save(path)
	if err == nil {
		keeper, err = tokens.Keep(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keeper, secrets, path
}

func ask(t testing.TB, h http.Handler, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
	r.Host = "127.0.0.1:7474"
	r.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func bearer(secret string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + secret}
}

// TestTokens holds what each token may do with a real store, that those who may
// not learn nothing, and that a token counts as long as the file has it.
func TestTokens(t *testing.T) {
	keeper, secrets, path := people(t)
	mounted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, loci.AccessFrom(r.Context()).Writes("work", "public"))
	})
	var log bytes.Buffer
	h := Handler(Config{Caller: storeCaller(t), Tokens: keeper, Mounts: map[string]http.Handler{"/mcp": mounted},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	const remember = `{"text":"sesame opens it","namespace":"work"}`
	const recall = `{"query":"sesame","namespace":"work"}`
	for _, tt := range []struct {
		who, method, path, body string
		status                  int
		part                    string
	}{
		{"ada", "POST", "/v1/remember", remember, 200, `"namespace":"work"`},
		{"ada", "POST", "/v1/recall", recall, 200, "sesame opens it"},
		{"reader", "POST", "/v1/recall", recall, 200, "sesame opens it"},
		{"reader", "POST", "/v1/remember", remember, 403, `"code":"forbidden"`},
		{"bo", "POST", "/v1/recall", recall, 403, `"field":"namespace"`},
		{"bo", "POST", "/v1/recall", `{"query":"sesame","namespace":"home"}`, 200, `"hits":[]`},
		{"bo", "POST", "/v1/memories.get", `{"id":"1","filter":{"namespace":"home"}}`, 404, "not_found"},
		{"operator", "POST", "/v1/recall", recall, 403, "forbidden"},
		{"operator", "POST", "/v1/rebuild_indexes", `{}`, 200, `"record_count":1`},
		{"ada", "POST", "/v1/rebuild_indexes", `{}`, 403, "admin"},
		{"operator", "GET", "/metrics", "", 200, "loci_store_records"},
		{"ada", "GET", "/metrics", "", 403, "admin"},
		{"ada", "GET", "/openapi.json", "", 200, `"openapi": "3.1.0"`},
		{"ada", "GET", "/mcp", "", 200, "true"},
		{"reader", "GET", "/mcp/session", "", 200, "false"},
		{"", "GET", "/healthz", "", 200, "ok"},
		{"", "GET", "/readyz", "", 200, "ready"},
		{"", "POST", "/v1/recall", recall, 401, "Bearer"},
		{"", "GET", "/mcp", "", 401, "Bearer"},
		{"", "GET", "/v1", "", 401, "Bearer"},
		{"", "GET", "/metrics", "", 401, "Bearer"},
		{"", "GET", "/nowhere", "", 401, "Bearer"},
	} {
		header := map[string]string{}
		if tt.who != "" {
			header = bearer(secrets[tt.who])
		}
		w := ask(t, h, tt.method, tt.path, tt.body, header)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.part) {
			t.Errorf("%s %s as %q: %d %s", tt.path, tt.body, tt.who, w.Code, w.Body)
		}
		if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s as %q: %v", tt.path, tt.who, w.Header())
		}
		if w.Code >= 400 && strings.Contains(w.Body.String(), "sesame") {
			t.Errorf("%s as %q tells what is stored: %s", tt.path, tt.who, w.Body)
		}
	}
	for _, value := range []string{"", "Bearer", "Bearer ", "Basic " + secrets["ada"], secrets["ada"], "Bearer " + secrets["ada"] + "x", "Bearer nobody"} {
		if w := ask(t, h, "POST", "/v1/recall", recall, map[string]string{"Authorization": value}); w.Code != 401 {
			t.Errorf("%q: %d", value, w.Code)
		}
	}
	set, err := tokens.Load(path)
	if err != nil || !set.Remove("ada") {
		t.Fatal(err)
	}
	if err := set.Save(path); err != nil {
		t.Fatal(err)
	}
	if w := ask(t, h, "POST", "/v1/recall", recall, bearer(secrets["ada"])); w.Code != 401 {
		t.Error("a token that was taken back:", w.Code)
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := ask(t, h, "POST", "/v1/recall", recall, bearer(secrets["reader"])); w.Code != 503 || strings.Contains(w.Body.String(), path) {
		t.Error("a broken file:", w.Code, w.Body)
	}
	text := log.String()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Error("the log holds a token")
		}
	}
	if strings.Contains(text, "sesame") || !strings.Contains(text, "token=ada") || !strings.Contains(text, "request=") {
		t.Error(text)
	}
}

// TestMetricsHoldNoInput holds that nothing of a request becomes a label.
func TestMetricsHoldNoInput(t *testing.T) {
	h := Handler(Config{Caller: storeCaller(t)})
	ask(t, h, "POST", "/v1/remember", `{"text":"marker","namespace":"marker","scope":"marker","tags":["marker"]}`, nil)
	ask(t, h, "POST", "/v1/marker", `{}`, nil)
	ask(t, h, "MARKER", "/v1/recall?marker", `{"marker":1}`, map[string]string{"X-Request-Id": "marker"})
	ask(t, h, "GET", "/marker", "", map[string]string{"Host": "marker"})
	w := ask(t, h, "GET", "/metrics", "", nil)
	text := w.Body.String()
	for _, want := range []string{
		`loci_http_requests_total{operation="remember",status="200"} 1`, `loci_http_requests_total{operation="unknown",status="404"} 1`,
		`loci_http_requests_total{operation="recall",status="405"} 1`, `loci_http_requests_total{operation="unknown",status="403"} 1`,
		`loci_http_request_duration_seconds_count{operation="remember"} 1`, `loci_store_records{kind="memory"} 1`, "loci_store_up 1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	if w.Code != 200 || strings.Contains(strings.ToLower(text), "marker") {
		t.Errorf("%d %s", w.Code, text)
	}
}

func TestReadyz(t *testing.T) {
	for answer, status := range map[string]int{`{"index_usable":true}`: 200, `{"index_usable":false}`: 503, "": 503} {
		h := Handler(Config{Caller: callerFunc(func(context.Context, string, []byte) (json.RawMessage, error) {
			if answer == "" {
				return nil, loci.ErrClosed
			}
			return json.RawMessage(answer), nil
		})})
		w := ask(t, h, "GET", "/readyz", "", nil)
		if w.Code != status || (status == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%q: %d %v", answer, w.Code, w.Header())
		}
		if w := ask(t, h, "GET", "/healthz", "", nil); w.Code != 200 {
			t.Errorf("%q: the process lives: %d", answer, w.Code)
		}
		if w := ask(t, h, "GET", "/metrics", "", nil); w.Code != 200 || strings.Contains(w.Body.String(), "\nloci_store_up 1\n") != (answer != "") {
			t.Errorf("%q: %d", answer, w.Code)
		}
	}
}

// TestNames holds which hosts and origins are let in, and what a browser is told.
func TestNames(t *testing.T) {
	h := Handler(Config{Caller: echo, Hosts: []string{"memory.example"}, Origins: []string{"https://app.example"}})
	for _, tt := range []struct {
		method, host, origin string
		status               int
	}{
		{"GET", "memory.example", "", 200}, {"GET", "MEMORY.example:443", "https://MEMORY.example:443", 200},
		{"GET", "other.example", "", 403}, {"GET", "memory.example.evil", "", 403}, {"GET", "10.0.0.1", "", 403},
		{"GET", "memory.example", "https://app.example", 200}, {"GET", "memory.example", "http://app.example", 403},
		{"GET", "memory.example", "https://app.example.evil", 403}, {"OPTIONS", "memory.example", "https://app.example", 204},
		{"OPTIONS", "memory.example", "https://evil.example", 403},
	} {
		header := map[string]string{"Host": tt.host, "Access-Control-Request-Method": "POST"}
		if tt.origin != "" {
			header["Origin"] = tt.origin
		}
		w := ask(t, h, tt.method, "/v1", "", header)
		shared := tt.origin == "https://app.example"
		if w.Code != tt.status || (w.Header().Get("Access-Control-Allow-Origin") == tt.origin && tt.origin != "") != shared {
			t.Errorf("%+v: %d %v", tt, w.Code, w.Header())
		}
	}
	if w := ask(t, Handler(Config{Caller: echo, AnyIP: true}), "GET", "/v1", "", map[string]string{"Host": "10.0.0.1:80"}); w.Code != 200 {
		t.Error(w.Code)
	}
}

// TestBusy holds that who finds no place is told so, and when to come back.
func TestBusy(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	mounted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	h := Handler(Config{MaxRunning: 1, QueueTimeout: time.Millisecond, Mounts: map[string]http.Handler{"/mcp": mounted}, Caller: callerFunc(func(context.Context, string, []byte) (json.RawMessage, error) {
		close(began)
		<-end
		return json.RawMessage("{}"), nil
	})})
	first := make(chan int)
	go func() { first <- ask(t, h, "POST", "/v1/recall", "{}", nil).Code }()
	<-began
	if w := ask(t, h, "POST", "/v1/recall", "{}", nil); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Error(w.Code, w.Header(), w.Body)
	}
	// What is mounted takes a place as well, but for what only listens.
	if w := ask(t, h, "POST", "/mcp", "{}", nil); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Error(w.Code, w.Header(), w.Body)
	}
	if w := ask(t, h, "GET", "/mcp", "", nil); w.Code != 200 {
		t.Error(w.Code, w.Body)
	}
	close(end)
	if code := <-first; code != 200 {
		t.Error(code)
	}
	for range 2 { // it gives the place back
		if w := ask(t, h, "POST", "/mcp", "all of it", nil); w.Code != 200 || w.Body.String() != "all of it" {
			t.Error(w.Code, w.Body)
		}
	}
}

// event is one server-sent event.
type event struct{ name, id, data string }

// nextEvent reads on to the next event, past signs of life.
func nextEvent(t *testing.T, r *bufio.Reader) (e event, err error) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				return e, nil
			}
		}
	}
}

func openStream(t *testing.T, method, url, body string, header map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", eventStream)
	r.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// TestLongWork holds that long work tells its progress, then its result or its
// problem; and that what fails at once has a status of its own.
func TestLongWork(t *testing.T) {
	addr, _ := start(t, Config{Heartbeat: 5 * time.Millisecond, Caller: callerFunc(func(ctx context.Context, _ string, raw []byte) (json.RawMessage, error) {
		if strings.Contains(string(raw), "at once") {
			return nil, loci.ErrConflict
		}
		report := op.ProgressFrom(ctx)
		report(1, 3)
		time.Sleep(20 * time.Millisecond) // for signs of life in between
		report(2, 3)
		time.Sleep(20 * time.Millisecond)
		if strings.Contains(string(raw), "late") {
			return nil, loci.ErrNotFound
		}
		return json.RawMessage(`{"done":true}`), nil
	})})
	url := "http://" + addr + "/v1/backup"
	for body, last := range map[string]event{`{}`: {"result", "", `{"done":true}`}, `late`: {"problem", "", `"status":404`}} {
		resp := openStream(t, "POST", url, body, nil)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != eventStream {
			t.Fatal(resp.Status, resp.Header)
		}
		r := bufio.NewReader(resp.Body)
		var got event
		var err error
		for progress := 0; ; progress++ {
			if got, err = nextEvent(t, r); err != nil {
				t.Fatal(err)
			}
			if got.name != "progress" {
				if progress == 0 {
					t.Error("no progress was told")
				}
				break
			}
			if !strings.Contains(got.data, `"total":3`) {
				t.Error(got)
			}
		}
		if got.name != last.name || !strings.Contains(got.data, last.data) {
			t.Error(got)
		}
		if _, err := nextEvent(t, r); err != io.EOF {
			t.Error("more events:", err)
		}
	}
	if resp := openStream(t, "POST", url, `at once`, nil); resp.StatusCode != http.StatusConflict {
		t.Error(resp.Status)
	}
}

// TestClientGoes holds that an operation ends with the client who reads its events.
func TestClientGoes(t *testing.T) {
	ended := make(chan struct{})
	addr, _ := start(t, Config{Heartbeat: time.Millisecond, Caller: callerFunc(func(ctx context.Context, _ string, _ []byte) (json.RawMessage, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})})
	resp := openStream(t, "POST", "http://"+addr+"/v1/backup", `{}`, nil)
	resp.Body.Close()
	<-ended
}

// TestChangeFeed holds that a feed tells what a token may see as it is written,
// goes on where it broke off, and ends with the token and with the server.
func TestChangeFeed(t *testing.T) {
	keeper, secrets, path := people(t)
	caller := storeCaller(t)
	addr, stop := start(t, Config{Caller: caller, Tokens: keeper, Heartbeat: 20 * time.Millisecond})
	url := "http://" + addr + "/v1/changes"
	put := func(namespace, text string) {
		t.Helper()
		raw, err := json.Marshal(map[string]string{"text": text, "namespace": namespace})
		if err == nil {
			_, err = caller.Call(t.Context(), "remember", raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("work", "one sesame")
	put("home", "two sesame")
	resp := openStream(t, "GET", url+"?after=0", "", bearer(secrets["reader"]))
	r := bufio.NewReader(resp.Body)
	one, err := nextEvent(t, r)
	if err != nil || one.name != "changes" || !strings.Contains(one.data, `"namespace":"work"`) || strings.Contains(one.data, "home") ||
		strings.Contains(one.data, "sesame") {
		t.Fatal(one, err)
	}
	put("work", "three sesame")
	two, err := nextEvent(t, r)
	if err != nil || two.id == one.id || !strings.Contains(two.data, `"revision":3`) {
		t.Error(two, err)
	}
	again := bufio.NewReader(openStream(t, "GET", url, "", map[string]string{
		"Authorization": "Bearer " + secrets["reader"], "Last-Event-ID": one.id}).Body)
	if got, err := nextEvent(t, again); err != nil || got != two {
		t.Errorf("resumed with %+v, %v", got, err)
	}
	for query, status := range map[string]int{
		"?after=soon": 400, "?limit=0": 400, "?limit=x": 400, "?scop=a": 400, "?after=1&after=2": 400, "?namespace=home": 403,
		"?kind=song": 400, "?scope=%ff": 400, "?a=%zz": 400,
	} {
		if resp := openStream(t, "GET", url+query, "", bearer(secrets["reader"])); resp.StatusCode != status {
			t.Errorf("%s: %s", query, resp.Status)
		}
	}
	if w := ask(t, Handler(Config{Caller: caller}), "GET", "/v1/changes", "", nil); w.Code != http.StatusNotAcceptable {
		t.Error(w.Code)
	}
	set, err := tokens.Load(path)
	if err != nil || !set.Remove("reader") {
		t.Fatal(err)
	}
	ada := bufio.NewReader(openStream(t, "GET", url, "", bearer(secrets["ada"])).Body)
	if err := set.Save(path); err != nil {
		t.Fatal(err)
	}
	if got, err := nextEvent(t, r); err != io.EOF {
		t.Errorf("the token was taken back: %+v, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got, err := nextEvent(t, ada); err != io.EOF {
		t.Errorf("the server stopped: %+v, %v", got, err)
	}
}

// TestAddresses holds where a server listens and what it says when it cannot.
func TestAddresses(t *testing.T) {
	keeper, secrets, _ := people(t)
	err := Serve(t.Context(), "0.0.0.0:0", Config{Caller: echo}, nil)
	if !errors.Is(err, loci.ErrValidation) || !strings.Contains(err.Error(), "loci token new") {
		t.Error(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := Serve(t.Context(), taken.Addr().String(), Config{Caller: echo}, nil); !errors.Is(err, loci.ErrIO) || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Error(err)
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- Serve(ctx, "0.0.0.0:0", Config{Caller: echo, Tokens: keeper, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(url string) { ready <- url })
	}()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(<-ready, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest("POST", "http://127.0.0.1:"+port+"/v1/recall", strings.NewReader(`{"query":"x"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+secrets["ada"])
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Error(resp, err)
	} else {
		resp.Body.Close()
	}
	cancel()
	if err := <-done; err != nil || !strings.Contains(log.String(), "TLS") {
		t.Error(err, log.String())
	}
}

// FuzzRequest holds that no request makes the handler fail or panic, whatever it
// asks a real store for.
func FuzzRequest(f *testing.F) {
	h := Handler(Config{Caller: storeCaller(f)})
	for _, o := range op.Default().All() {
		f.Add("POST", "/v1/"+o.Name, "application/json", "", `{"id":"1","query":"x","kind":"entity"}`)
	}
	f.Add("GET", "/v1/changes?after=0", "", "127.0.0.1", "")
	f.Add("GET", "/metrics", "", "[::1]:80", "")
	f.Fuzz(func(t *testing.T, method, path, kind, host, body string) {
		for _, unsafe := range []string{"backup", "serialize", "set_root", "import", "vacuum"} { // files of this machine
			if strings.Contains(path, unsafe) {
				return
			}
		}
		if strings.Contains(body, "wait_ms") {
			return
		}
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Method = method
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		if r.Host = "localhost"; host != "" {
			r.Host = host
		}
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %q %q: %d %s", method, path, body, w.Code, w.Body)
		}
	})
}
