package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/mark"
	"github.com/loci-memory/loci/op"
)

// maxTools and maxToolBytes are what a client can afford to show its model always.
const (
	maxTools     = 12
	maxToolBytes = 12 << 10
)

func TestToolList(t *testing.T) {
	for name, cfg := range map[string]Config{"tools": {}, "tools_any_namespace": {AnyNamespace: true}} {
		list, err := client(t, cfg).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) > maxTools || len(raw) > maxToolBytes || list.NextCursor != "" {
			t.Errorf("%s: %d tools in %d bytes, next %q", name, len(list.Tools), len(raw), list.NextCursor)
		}
		if raw, err = json.MarshalIndent(list.Tools, "", " "); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", append(raw, '\n'))
	}
}

func TestEveryToolPassesLint(t *testing.T) {
	for _, all := range []bool{false, true} {
		s, err := newServer(Config{Caller: op.Local(nil), AllTools: all, AnyNamespace: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.lint(); err != nil {
			t.Error(err)
		}
	}
}

func TestAllToolsAreEveryOperation(t *testing.T) {
	list, err := client(t, Config{AllTools: true}).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, tool := range list.Tools {
		there[tool.Name] = true
	}
	for _, o := range op.Default().All() {
		if !there[strings.ReplaceAll(o.Name, ".", "_")] {
			t.Errorf("%s has no tool", o.Name)
		}
	}
	if len(there) != len(op.Default().All()) {
		t.Errorf("%d tools for %d operations", len(there), len(op.Default().All()))
	}
}

func TestAMemoryFromBirthToDeath(t *testing.T) {
	c := client(t, Config{Namespace: "ship"})
	a := must(t, c, "remember", `{"text":"The tide table is updated weekly.","tags":["Harbour"],"reasoning":null}`)
	contains(t, a.text, "Remembered as 1: The tide table")
	if a.doc["namespace"] != "ship" || a.doc["scope"] != "public" {
		t.Errorf("%v", a.doc)
	}
	must(t, c, "remember", `{"text":"潮水表每周更新","type":"task"}`)

	a = must(t, c, "recall", `{"query":"tide table","limit":5}`)
	contains(t, a.text, "[1] The tide table is updated weekly. (knowledge; ", "tags: harbour")
	if mark.Strip(a.text) != "" {
		t.Errorf("the recalled words are not marked: %s", a.text)
	}
	contains(t, must(t, c, "recall", `{"query":"潮水"}`).text, "[2] 潮水表每周更新")
	contains(t, must(t, c, "search", `{"query":"潮水","kinds":["memory"],"since":"2020-01-31"}`).text, "[memory 2] 潮水表每周更新 (task")
	contains(t, must(t, c, "recent", `{}`).text, "[memory 2] 潮水表每周更新", "[memory 1]")
	contains(t, must(t, c, "feedback", `{"recalled_ids":["1",2],"useful_ids":["1"]}`).text, "2 recalled, 1 of them strengthened")
	contains(t, must(t, c, "status", `{}`).text, "Namespace ship, scopes public, context ship.", "2 memory")

	contains(t, must(t, c, "forget", `{"id":1}`).text, "The memory 1 is forgotten.")
	contains(t, must(t, c, "forget", `{"id":"1","kind":"memory"}`).text, "There is no memory 1 here")
	a = must(t, c, "recall", `{"query":"tide table"}`)
	contains(t, a.text, "Nothing is remembered about that.")
	if hits := a.doc["hits"].([]any); len(hits) != 0 {
		t.Errorf("%v", hits)
	}
}

func TestTheGraph(t *testing.T) {
	c := client(t, Config{})
	a := must(t, c, "relate", `{"triples":[
		{"subject":"Ada","subject_type":"person","predicate":"repairs","object":"Lamp"},
		{"subject":"ada","predicate":"负责","object":"灯塔","reason":"Seen in the log."},
		{"subject":"Lamp","predicate":"stands in","object":"灯塔"}]}`)
	contains(t, a.text, "Ada repairs Lamp", "Ada 负责 灯塔", ": Seen in the log.")
	contains(t, must(t, c, "explore", `{"name":"Ada"}`).text, "Ada (person", "Ada repairs Lamp", "[entity ", "灯塔")
	contains(t, must(t, c, "explore", `{"name":"ada","depth":2,"limit":10}`).text, "Lamp")
	contains(t, must(t, c, "explore", `{"name":"Ada","to":"灯塔"}`).text, "Ada - 灯塔")
	contains(t, must(t, c, "search", `{"query":"repairs","kinds":["relation"]}`).text, "Ada repairs Lamp")
	id := str(obj(must(t, c, "explore", `{"name":"灯塔"}`).doc, "entity"), "id")
	contains(t, must(t, c, "explore", `{"name":"`+id+`"}`).text, "灯塔")

	if a := ask(t, c, "explore", `{"name":"Bo"}`); !a.isError || !strings.HasPrefix(a.text, "not_found: name: nothing in the graph") {
		t.Errorf("%+v", a)
	}
	if a := ask(t, c, "explore", `{"name":"Ada","to":"Bo"}`); !a.isError || !strings.HasPrefix(a.text, "not_found: to: ") {
		t.Errorf("%+v", a)
	}
	if a := ask(t, c, "relate", `{"triples":[]}`); !a.isError {
		t.Errorf("%+v", a)
	}
}

func TestIntake(t *testing.T) {
	c := client(t, Config{Namespace: "ship"})
	const all = `{"judgments":[{"text":"The lamp is lit at seven."},{"text":" "}],"triples":[{"subject":"Ada","predicate":"lights","object":"the lamp"}],"source":"log"`
	contains(t, must(t, c, "intake", all+`,"dry_run":true}`).text, "Nothing was written", "2 new", "Rejected: judgments[1] text: ")
	contains(t, must(t, c, "intake", all+`}`).text, "Taken in: 2 new, 0 merged with what is known, 2 new things")
	contains(t, must(t, c, "intake", all+`}`).text, "0 new, 2 merged")
	contains(t, must(t, c, "recall", `{"query":"lamp"}`).text, "The lamp is lit at seven.")
	for _, bad := range []string{`{}`, `{"judgments":[]}`, `{"triples":[{"subject":"a"}]}`, `{"judgments":"x"}`} {
		if a := ask(t, c, "intake", bad); !a.isError {
			t.Errorf("%s: %s", bad, a.text)
		}
	}
}

func TestTheContextWindow(t *testing.T) {
	c := client(t, Config{Namespace: "ship", Context: []string{"ship", "watch 1"}})
	a := must(t, c, "vctx", `{"operation":"write","input":"{\"content\":\"Log every light.\",\"title\":\"rule\",\"tier\":\"core\",\"pin_reason\":\"always\"}"}`)
	if a.doc["ok"] != true || obj(a.doc, "page") == nil {
		t.Errorf("%s", a.text)
	}
	contains(t, must(t, c, "vctx", `{"operation":"render","input":{}}`).text, `"ok":true`, "Log every light.")
	contains(t, must(t, c, "vctx", `{"operation":"context.status"}`).text, `"ok":true`)
	for arguments, code := range map[string]string{
		`{"operation":"set_policy","input":"{\"mode\":\"threshold\"}"}`: "unknown_operation",
		`{"operation":"forget","input":"{\"page_id\":\"p1\"}"}`:         "unknown_operation",
		`{"operation":"wriet"}`:                                                     "unknown_operation",
		`{"operation":"read","input":"{\"page_id\":\"nobody\"}"}`:                   "not_found",
		`{"operation":"render","input":"{\"scope\":\"other\"}"}`:                    "invalid_argument",
		`{"operation":"render","input":"{\"budget\":4096}"}`:                        "invalid_argument",
		`{"operation":"page_out","input":"{\"page_id\":\"p1\",\"force\":true}"}`:    "invalid_argument",
		`{"operation":"read","input":"{\"page_id\":\"p1\",\"page_id\":\"p2\"}"}`:    "invalid_argument",
		`{"operation":"read","input":"[]"}`:                                         "invalid_argument",
		`{"operation":"read","input":"{"}`:                                          "invalid_argument",
		`{"operation":"write","input":"{\"content\":1}"}`:                           "invalid_argument",
		`{"operation":"search","input":"{\"query\":\"x\",\"colour\":\"red\"}"}`:     "invalid_argument",
		`{"operation":"search","input":"{\"query\":\"x\"} and more"}`:               "invalid_argument",
		`{"operation":"","input":""}`:                                               "unknown_operation",
		`{"operation":"prepare_task","input":"{\"query\":\"x\",\"holder\":\"a\"}"}`: "invalid_argument",
	} {
		a := ask(t, c, "vctx", arguments)
		if e := obj(a.doc, "error"); !a.isError || a.doc["ok"] != false || e["code"] != code || str(e, "message") == "" || e["details"] == nil {
			t.Errorf("%s: %s, want %s", arguments, a.text, code)
		}
	}
	if a := ask(t, c, "vctx", `{"input":"{}"}`); !a.isError || !strings.Contains(a.text, "operation") {
		t.Errorf("%s", a.text)
	}
}

// A tool works in the namespace it was started in, and what lies elsewhere is as if
// it were not there.
func TestNamespaces(t *testing.T) {
	caller := op.Local(store(t))
	ship, boat := client(t, Config{Caller: caller, Namespace: "ship"}), client(t, Config{Caller: caller, Namespace: "boat"})
	must(t, ship, "remember", `{"text":"The tide table is updated weekly."}`)
	contains(t, must(t, boat, "recall", `{"query":"tide table"}`).text, "Nothing is remembered")
	contains(t, must(t, boat, "forget", `{"id":"1"}`).text, "nothing was deleted")
	if a := ask(t, boat, "recall", `{"query":"tide","namespace":"ship"}`); !a.isError || !strings.HasPrefix(a.text, `validation: there is no field "namespace"`) {
		t.Errorf("%s", a.text)
	}
	free := client(t, Config{Caller: caller, AnyNamespace: true})
	contains(t, must(t, free, "recall", `{"query":"tide table","namespace":"ship"}`).text, "[1] The tide table")
	contains(t, must(t, free, "recall", `{"query":"tide table"}`).text, "Nothing is remembered")

	for name, cfg := range map[string]Config{
		"budget": {Budget: 99}, "a context elsewhere": {Namespace: "a", Context: []string{"b"}},
	} {
		cfg.Caller = caller
		if _, err := newServer(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := newServer(Config{}); err == nil {
		t.Error("a server without a caller")
	}
}

// A caller whose only grant is elsewhere works there.
func TestHomeOfAGrant(t *testing.T) {
	s, err := newServer(Config{Caller: op.Local(nil), Scopes: []string{"public", "mine"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		access    *loci.Access
		namespace string
		scopes    string
	}{
		{"none", nil, "default", "public mine"},
		{"one elsewhere", &loci.Access{Grants: []loci.Grant{{Namespace: "ship", Scopes: []string{"deck", "hold"}}}}, "ship", "deck hold"},
		{"one elsewhere, every scope", &loci.Access{Grants: []loci.Grant{{Namespace: "ship", Scopes: []string{"*"}}}}, "ship", "public mine"},
		{"one here", &loci.Access{Grants: []loci.Grant{{Namespace: "default", Scopes: []string{"public"}}}}, "default", "public mine"},
		{"every", &loci.Access{Grants: []loci.Grant{{Namespace: "*", Scopes: []string{"*"}}}}, "default", "public mine"},
		{"two", &loci.Access{Grants: []loci.Grant{{Namespace: "a"}, {Namespace: "b"}}}, "default", "public mine"},
	} {
		h := s.home(loci.WithAccess(t.Context(), c.access), nil)
		if h.namespace != c.namespace || strings.Join(h.scopes, " ") != c.scopes || h.context[0] != c.namespace {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}
