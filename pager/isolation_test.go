package pager

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

// secret stands in everything that the neighbour of an isolation test has, but for
// its page ids, and nowhere else.
const secret = "zugzwang"

// secretPages are the neighbour's pages.
var secretPages = []string{"their-core", "their-working", "their-archive", "their-row"}

// neighbour fills a scope with pages in every tier, and with all that its
// operations leave behind.
func neighbour(t testing.TB, cs *Store) (checkpoint string) {
	t.Helper()
	text := func(s string) string { return s + " of the " + secret + " lighthouse" }
	for i, tier := range []Tier{Core, Working, Archive} {
		put(t, cs, WriteRequest{PageID: secretPages[i], Title: text("title"), Summary: text("summary"), Content: text("content"), Tags: []string{secret}, Tier: tier,
			Source: text("source"), Links: secretPages[:i]})
	}
	put(t, cs, WriteRequest{PageID: secretPages[3], Title: text("row"), Summary: text("row"), Content: text("row"), Outline: new(true)})
	call := func(op, arguments string) json.RawMessage {
		t.Helper()
		out := cs.Dispatch(t.Context(), op, json.RawMessage(arguments))
		if !strings.HasPrefix(string(out), `{"ok":true`) {
			t.Fatalf("%s: %s", op, out)
		}
		return out
	}
	call("ingest", fmt.Sprintf(`{"content":%q,"title":%q}`, strings.Repeat(text("long text")+". ", 99), secret))
	call("record_usage", fmt.Sprintf(`{"input_tokens":77777,"source":%q}`, secret))
	call("snapshot", `{}`)
	if known("checkpoint") {
		var made struct {
			Checkpoint struct {
				ID string `json:"checkpoint_id"`
			} `json:"checkpoint"`
		}
		if err := json.Unmarshal(call("checkpoint", fmt.Sprintf(`{"label":%q}`, secret)), &made); err != nil {
			t.Fatal(err)
		}
		checkpoint = made.Checkpoint.ID
	}
	return checkpoint
}

func known(op string) bool {
	for _, o := range Operations() {
		if o.Name == op {
			return true
		}
	}
	return false
}

// probes are calls by which a scope reaches for its neighbour, by operation.
func probes(checkpoint, scope string) map[string][]string {
	out := map[string][]string{
		"write": {`{"content":"mine","page_id":"mine","title":"a lighthouse of my own","tier":"working"}`, `{"content":"linking","links":[%q]}`,
			`{"content":"x","page_id":%q,"expected_version":1}`},
		"ingest":  {`{"content":"A text of mine. It has two sentences."}`},
		"search":  {`{"query":"` + secret + `"}`, `{"query":"lighthouse","limit":50,"kinds":["page","memory","chunk"]}`, fmt.Sprintf(`{"query":"lighthouse","scopes":[%q]}`, scope)},
		"recall":  {`{"query":"lighthouse ` + secret + `","limit":50}`, fmt.Sprintf(`{"query":"lighthouse","kinds":["page","memory"],"scopes":[%q]}`, scope)},
		"page_in": {`{"page_id":%q}`, `{"page_id":%q,"tier":"core"}`, fmt.Sprintf(`{"page_id":"page:1","scopes":[%q]}`, scope), `{"page_id":"page:4"}`},
		"render":  {`{}`, `{"publish":true}`}, "snapshot": {`{}`, `{"since":1}`}, "prefix": {`{}`}, "metrics": {`{"limit":500}`}, "dashboard": {`{"events":500}`},
		"fold": {`{"keep":1}`}, "usage": {`{}`}, "record_usage": {`{"input_tokens":5}`}, "status": {`{}`},
		"compact": {`{"page_id":%q,"summary":"s","expected_version":1}`}, "organize": {`{"page_id":%q}`, `{"page_id":"mine","threshold":0.01}`},
		"checkpoint": {`{"label":"mine"}`}, "checkpoints": {`{}`}, "restore": {fmt.Sprintf(`{"checkpoint_id":%q}`, checkpoint)},
		"schedule":     {`{"holder":"a","executors":[{"id":"a","queue_ms":1,"compute_ms":1}],"page_bytes":9}`},
		"prepare_task": {`{"query":"lighthouse","holder":"a","executors":[{"id":"a","queue_ms":1,"compute_ms":1}]}`},
		"policy_tick":  {`{"turn_id":1}`, `{"force":true}`}, "replacement_policy": {`{}`}, "set_policy": {`{"mode":"manual"}`},
	}
	for _, op := range []string{"read", "history", "page_out", "unpin", "forget"} {
		out[op] = []string{`{"page_id":%q}`}
	}
	return out
}

// TestIsolation fills a scope and lets others reach for it with every operation
// there is. No answer has a byte of it, and but for what depends on the whole
// store's numbers, each is what it would be were the neighbour not there.
func TestIsolation(t *testing.T) {
	a := Scope{"n", "a"}
	key, err := a.key()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Scope{{"n", "b"}, {"n"}, {"n", "a", "x"}, {"m", "a"}, {key.scope}, {"n", `a"`}, {"N", "a"}} {
		t.Run(fmt.Sprint(b), func(t *testing.T) {
			db, bare := openDB(t, t.TempDir(), nil), openDB(t, t.TempDir(), nil)
			other := scopeOf(t, db, Config{Scope: a})
			checkpoint := neighbour(t, other)
			before := dumpOf(t, other)
			cs, alone := scopeOf(t, db, Config{Scope: b}), scopeOf(t, bare, Config{Scope: b})
			calls := probes(checkpoint, key.scope)
			// Twice: in a scope that is new, and in one that has pages.
			for range 2 {
				for _, op := range Operations() {
					if calls[op.Name] == nil {
						t.Errorf("nobody tries %s: add a call of it", op.Name)
					}
					for _, call := range calls[op.Name] {
						tries := []string{call}
						if strings.Contains(call, "%q") {
							tries = nil
							for _, id := range secretPages {
								tries = append(tries, fmt.Sprintf(call, id))
							}
						}
						for _, arguments := range tries {
							isolated(t, cs, alone, op.Name, arguments)
						}
					}
				}
			}
			sameDump(t, before, dumpOf(t, other))
			checkDeep(t, cs)
		})
	}
}

// numbers are what may differ between a store and another: ids that all scopes
// share, and scores, which know how common words are in a namespace.
var numbers = regexp.MustCompile(`"(score|checkpoint_id)":("?)[-+.e0-9]+"?`)

func isolated(t *testing.T, cs, alone *Store, op, arguments string) {
	t.Helper()
	got := string(cs.Dispatch(t.Context(), op, json.RawMessage(arguments)))
	if strings.Contains(got, secret) {
		t.Errorf("%s(%s) gives %s", op, arguments, got)
	}
	want := string(alone.Dispatch(t.Context(), op, json.RawMessage(arguments)))
	if got, want = numbers.ReplaceAllString(got, `"$1":0`), numbers.ReplaceAllString(want, `"$1":0`); got != want {
		t.Errorf("%s(%s) gives %s\nand without a neighbour %s", op, arguments, got, want)
	}
}

// TestIsolationFromSearch looks for pages of other scopes with the knowledge
// base's own search turned against a scope: hits that are not the scope's are
// dropped, whatever the search gives.
func TestIsolationFromSearch(t *testing.T) {
	cs := openScope(t, Config{})
	q := must[*question](t)(cs.question(&SearchRequest{Query: "x", Kinds: []loci.Kind{"page", "memory"}}))
	header := func(namespace, scope string) loci.Header {
		return loci.Header{ID: 1, Namespace: namespace, Scope: scope}
	}
	for _, c := range []struct {
		record any
		ok     bool
	}{
		{&loci.ContextPage{Header: header("project", cs.key.scope)}, true},
		{&loci.ContextPage{Header: header("project", `["project","other"]`)}, false},
		{&loci.ContextPage{Header: header("project", "public")}, false},
		{&loci.ContextPage{Header: header("other", cs.key.scope)}, false},
		{&loci.Memory{Header: header("project", "public")}, true},
		{&loci.Memory{Header: header("project", cs.key.scope)}, false},
		{&loci.Memory{Header: header("other", "public")}, false},
		{&loci.Entity{Header: header("project", "public")}, false}, // not asked for
		{&loci.Note{Header: header("project", "public")}, false},
		{nil, false},
	} {
		if _, ok := q.hit(cs.key, &loci.SearchHit{Record: c.record}); ok != c.ok {
			t.Errorf("%T %+v: %v", c.record, c.record, ok)
		}
	}
	// Nor does a page come in by its record's number.
	put(t, cs, WriteRequest{PageID: "p", Content: "text"})
	other := scopeOf(t, cs.reg.db, Config{Scope: Scope{"project", "other"}})
	put(t, other, WriteRequest{PageID: "q", Content: "text"})
	err := other.with(t.Context(), "look", func(s *scope) error {
		hits := []hit{{id: 2, score: 1}, {id: 4, score: 1}}
		found, err := s.rank(t.Context(), q, hits)
		if len(found) != 1 || found[0].page.PageID != "q" {
			t.Errorf("found %+v", found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
