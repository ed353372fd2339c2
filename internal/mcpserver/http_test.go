package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tokened stands for the handler in front, which knows who asks.
func tokened(next http.Handler, access map[string]*loci.Access) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			r = r.WithContext(loci.WithAccess(r.Context(), access[who]))
		}
		next.ServeHTTP(w, r)
	})
}

func serveHTTP(t *testing.T, cfg Config, access map[string]*loci.Access) string {
	t.Helper()
	if cfg.Caller == nil {
		cfg.Caller = op.Local(store(t))
	}
	h, err := NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(tokened(h, access))
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

// post sends a message as somebody, in a session or without.
func post(t *testing.T, url, who, session, version, body string) (*http.Response, document) {
	t.Helper()
	return request(t, http.MethodPost, url, who, session, version, body)
}

func request(t *testing.T, method, url, who, session, version, body string) (*http.Response, document) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, v := range map[string]string{"Authorization": who, sessionHeader: session, versionHeader: version} {
		if v != "" {
			req.Header.Set(name, v)
		}
	}
	if version >= firstStateless {
		var m struct {
			Method string                `json:"method"`
			Params struct{ Name string } `json:"params"`
		}
		if err := json.Unmarshal([]byte(body), &m); err == nil {
			req.Header.Set("Mcp-Method", m.Method)
			if m.Params.Name != "" {
				req.Header.Set("Mcp-Name", m.Params.Name)
			}
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if i := bytes.Index(raw, []byte("data: ")); i >= 0 {
		raw = raw[i+len("data: "):]
	}
	doc, _ := decode(raw) // plain text stands in refusals
	return resp, doc
}

// begin begins a session.
func begin(t *testing.T, url, who string) string {
	t.Helper()
	resp, doc := post(t, url, who, "", "", strings.Replace(hello, "%q", `"`+version+`"`, 1))
	id := resp.Header.Get(sessionHeader)
	if resp.StatusCode != http.StatusOK || id == "" || doc["result"] == nil {
		t.Fatalf("%s %v", resp.Status, doc)
	}
	if resp, _ := post(t, url, who, id, version, ready); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%s", resp.Status)
	}
	return id
}

func TestSessions(t *testing.T) {
	url := serveHTTP(t, Config{}, nil)
	id := begin(t, url, "")
	if _, doc := post(t, url, "", id, version, call(1, "remember", `{"text":"Lamps are lit at seven."}`)); obj(obj(doc, "result"), "structuredContent")["id"] != "1" {
		t.Errorf("%v", doc)
	}
	for what, c := range map[string]struct {
		method, session, version, body string
		want                           int
	}{
		"unknown session":            {http.MethodPost, "nobody", version, call(1, "status", `{}`), http.StatusNotFound},
		"unknown session's stream":   {http.MethodGet, "nobody", version, "", http.StatusNotFound},
		"unknown session's end":      {http.MethodDelete, "nobody", version, "", http.StatusNotFound},
		"no session's stream":        {http.MethodGet, "", version, "", http.StatusBadRequest},
		"an old version nobody has":  {http.MethodPost, id, "2020-01-01", call(1, "status", `{}`), http.StatusBadRequest},
		"a new version nobody has":   {http.MethodPost, "", "2099-01-01", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + strings.ReplaceAll(meta, firstStateless, "2099-01-01") + `}}`, http.StatusBadRequest},
		"another method":             {http.MethodPut, id, version, "", http.StatusMethodNotAllowed},
		"not JSON":                   {http.MethodPost, id, version, "{", http.StatusBadRequest},
		"nothing":                    {http.MethodPost, id, version, "", http.StatusBadRequest},
		"a stream without a session": {http.MethodGet, "", firstStateless, "", http.StatusMethodNotAllowed},
	} {
		if resp, doc := request(t, c.method, url, "", c.session, c.version, c.body); resp.StatusCode != c.want {
			t.Errorf("%s: %s %v, want %d", what, resp.Status, doc, c.want)
		}
	}
	if resp, _ := request(t, http.MethodDelete, url, "", id, version, ""); resp.StatusCode != http.StatusNoContent {
		t.Errorf("the end: %s", resp.Status)
	}
	if resp, _ := post(t, url, "", id, version, call(2, "status", `{}`)); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a session that has ended: %s", resp.Status)
	}
}

func TestStateless(t *testing.T) {
	url := serveHTTP(t, Config{}, nil)
	resp, doc := post(t, url, "", "", firstStateless, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`)
	if resp.StatusCode != http.StatusOK || len(strs(obj(doc, "result"), "supportedVersions")) != 5 {
		t.Errorf("%s %v", resp.Status, doc)
	}
	resp, doc = post(t, url, "", "", firstStateless, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta+`,"name":"remember","arguments":{"text":"Lamps are lit."}}}`)
	if obj(obj(doc, "result"), "structuredContent")["id"] != "1" || resp.Header.Get(sessionHeader) != "" {
		t.Errorf("%s %v", resp.Status, doc)
	}
}

// The access of each request counts, in sessions too, and a session is its
// beginner's.
func TestAccess(t *testing.T) {
	grant := func(namespace string, write bool) *loci.Access {
		return &loci.Access{Grants: []loci.Grant{{Namespace: namespace, Scopes: []string{loci.Every}, Write: write}}}
	}
	access := map[string]*loci.Access{"ship": grant("ship", true), "boat": grant("boat", true)}
	url := serveHTTP(t, Config{AnyNamespace: true}, access)
	ship, boat := begin(t, url, "Bearer ship"), begin(t, url, "Bearer boat")
	said := func(who, session, tool, arguments string) string {
		t.Helper()
		resp, doc := post(t, url, "Bearer "+who, session, version, call(1, tool, arguments))
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	contains(t, said("ship", ship, "remember", `{"text":"The walrus came back."}`), `"namespace":"ship"`)
	contains(t, said("ship", ship, "recall", `{"query":"walrus"}`), "came back")
	if got := said("boat", boat, "recall", `{"query":"walrus"}`); strings.Contains(got, "came back") {
		t.Errorf("%s", got)
	}
	contains(t, said("boat", boat, "recall", `{"query":"walrus","namespace":"ship"}`), "forbidden")
	contains(t, said("boat", boat, "forget", `{"id":"1","namespace":"ship"}`), "forbidden")
	contains(t, said("boat", ship, "recall", `{"query":"walrus"}`), "403")
	// The grants change while the session is open.
	access["ship"] = grant("ship", false)
	contains(t, said("ship", ship, "remember", `{"text":"The walrus left."}`), "forbidden")
	contains(t, said("ship", ship, "recall", `{"query":"walrus"}`), "came back")
	access["ship"] = &loci.Access{}
	contains(t, said("ship", ship, "recall", `{"query":"walrus"}`), "forbidden")
}

// The library's own client, in the version without sessions and in that with them.
func TestOfficialClientOverHTTP(t *testing.T) {
	url := serveHTTP(t, Config{}, nil)
	for _, v := range []string{"", version} {
		var opts *mcp.ClientSessionOptions
		if v != "" {
			opts = &mcp.ClientSessionOptions{ProtocolVersion: v}
		}
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
			Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, opts)
		if err != nil {
			t.Fatal(err)
		}
		a := must(t, c, "remember", `{"text":"Lamps are lit at seven `+v+`."}`)
		contains(t, must(t, c, "recall", `{"query":"lamps"}`).text, "Lamps are lit at seven")
		contains(t, must(t, c, "forget", `{"id":"`+str(a.doc, "id")+`"}`).text, "is forgotten")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Close ends sessions whose stream is open, and calls that run.
func TestCloseHTTP(t *testing.T) {
	s := stuck{make(chan struct{}, 4)}
	h, err := NewHTTP(Config{Caller: s})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	id := begin(t, server.URL, "")
	done := make(chan struct{}, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		body := ""
		if method == http.MethodPost {
			body = call(1, "status", `{}`)
		}
		req, err := http.NewRequestWithContext(ctx, method, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set(sessionHeader, id)
		go func() {
			defer func() { done <- struct{}{} }()
			if resp, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}()
	}
	<-s.began
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	<-done
	<-done
}
