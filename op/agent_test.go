package op

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// agentRows are the operations on agent memory.
func agentRows() (rows []*Operation) {
	for _, o := range Default().All() {
		switch group, _, _ := strings.Cut(o.Name, "."); group {
		case "facts", "episodes", "procedures", "agent":
			rows = append(rows, o)
		}
	}
	return rows
}

// TestAgentOperations holds that every row says which memory it is about, that those
// which may make it can be told of what kind, and that no field hides another.
func TestAgentOperations(t *testing.T) {
	makes := map[string]bool{}
	for _, name := range []string{
		"facts.store", "facts.store_unique", "facts.store_batch", "facts.deserialize",
		"episodes.record", "episodes.record_batch", "episodes.capture", "episodes.import", "episodes.deserialize",
		"procedures.learn", "procedures.deserialize", "agent.open", "agent.set_policy", "agent.restore",
	} {
		makes[name] = true
	}
	kinds := map[string]int{}
	for _, o := range agentRows() {
		in := o.InputSchema()
		for _, field := range []string{"namespace", "scope"} {
			if s := in.Properties[field]; s == nil || s.Type != "string" || slices.Contains(in.Required, field) {
				t.Errorf("%s: another field hides %s", o.Name, field)
			}
		}
		for _, field := range []string{"dimension", "space"} {
			if (in.Properties[field] != nil) != makes[o.Name] {
				t.Errorf("%s: %s is for what makes a memory, and for that alone", o.Name, field)
			}
		}
		if makes[o.Name] && o.ReadOnly {
			t.Errorf("%s makes a memory and is said to read only", o.Name)
		}
		for _, field := range []string{"id", "from", "to", "old", "new", "edge"} {
			if s := in.Properties[field]; s != nil && s.Format != "uint64" {
				t.Errorf("%s: %s is no id of 64 bits", o.Name, field)
			}
		}
		group, call, _ := strings.Cut(o.Name, ".")
		if group != "agent" {
			kinds[call]++
		}
	}
	for _, call := range []string{
		"get", "list", "update_metadata", "set_ttl", "clear_ttl", "history", "count", "delete", "clear", "serialize", "deserialize",
		"relate", "relations", "incoming_relations", "unrelate", "match",
	} {
		if kinds[call] != 3 {
			t.Errorf("%s is there for %d of 3 kinds", call, kinds[call])
		}
	}
}

// TestAgentCheck holds what is refused before a store is touched.
func TestAgentCheck(t *testing.T) {
	for _, tt := range []struct{ op, in, field, want string }{
		{"facts.store", `{"content":"x"}`, "id", "is missing"},
		{"facts.store", `{"id":null,"content":"x"}`, "id", "not null"},
		{"facts.store", `{"id":"+7","content":"x"}`, "id", "must be an id"},
		{"facts.store", `{"id":7,"content":"x","embedding":["a"]}`, "embedding[0]", "must be a number"},
		{"facts.store", `{"id":7,"content":"x","embedding":[1e39]}`, "embedding", "wrong form"},
		{"facts.store", `{"id":7,"content":"x","embedding":{}}`, "embedding", "must be an array"},
		{"facts.store", `{"id":7,"content":"x","ttl_seconds":0.5}`, "ttl_seconds", "whole number from 0"},
		{"facts.store", `{"id":7,"content":"x","ttl_seconds":18446744073709551616}`, "ttl_seconds", "whole number from 0"},
		{"facts.store", `{"id":7,"content":"x","namespace":""}`, "namespace", "must not be empty"},
		{"facts.store", `{"id":7,"content":"x","scope":""}`, "scope", "must not be empty"},
		{"facts.store", `{"id":7,"content":"x","scope":["a"]}`, "scope", "must be a string"},
		{"facts.store_batch", `{"facts":[{"id":1,"content":"x"},{"content":"y"}]}`, "facts[1].id", "is missing"},
		{"facts.count", `{"namespace":""}`, "namespace", "must not be empty"},
		{"facts.clear", `{}`, "namespace", "is needed"},
		{"facts.clear", `{"namespace":"a"}`, "scope", "is needed"},
		{"facts.clear", `{"scope":"a"}`, "namespace", "is needed"},
		{"facts.clear", `{"all":false}`, "namespace", "is needed"},
		{"facts.clear", `{"all":true,"scope":""}`, "scope", "must not be empty"},
		{"facts.clear", `{"namespace":"a","scope":""}`, "scope", "must not be empty"},
		{"facts.query", `{"k":1}`, "embedding", "is missing"},
		{"facts.query", `{"embedding":[1],"filter":[]}`, "filter", "must be an object"},
		{"facts.query_text", `{"text":"x","as_of_recorded_us":1}`, "", "as_of_recorded_us"}, // H7
		{"facts.query", `{"embedding":[1],"as_of_recorded_us":1}`, "", "as_of_recorded_us"},
		{"facts.match", `{"rel_type":"x","as_of_recorded_us":1}`, "", "as_of_recorded_us"},
		{"facts.relate", `{"from":1,"rel_type":"x"}`, "to", "is missing"},
		{"episodes.older_than", `{}`, "before_us", "is missing"},
		{"episodes.import", `{"path":"x","format":"mbox"}`, "format", "must be one of jsonl, chatgpt, claude, claude-code"},
		{"procedures.reinforce", `{"id":1}`, "success", "is missing"},
		{"procedures.reinforce", `{"id":1,"success":true,"strategy":{"kind":"lucky"}}`, "strategy.kind", "must be one of fixed"},
	} {
		o, ok := Default().Lookup(tt.op)
		if !ok {
			t.Fatal(tt.op)
		}
		f := FailureOf(o.Check([]byte(tt.in)))
		if f.Code != loci.ErrValidation || f.Operation != tt.op || !strings.Contains(f.Message, tt.want) || tt.field != "" && f.Field != tt.field {
			t.Errorf("%s %s: %+v", tt.op, tt.in, f)
		}
	}
}

// agentStore is an open store, and how to call an operation on it: the answer, or
// the code of the error.
func agentStore(t *testing.T) (*loci.DB, func(op, in string) string) {
	t.Helper()
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, func(op, in string) string {
		out, err := Default().Call(t.Context(), db, op, []byte(in))
		if err != nil {
			if f := FailureOf(err); f.Operation != op {
				t.Errorf("%s %s: the error names %s", op, in, f.Operation)
			}
			return string(FailureOf(err).Code)
		}
		return string(out)
	}
}

// TestAgentDimension holds of what dimension and in what space a memory is made.
func TestAgentDimension(t *testing.T) {
	db, call := agentStore(t)
	check := func(scope string, dimension int, space string) {
		t.Helper()
		m, err := agent.OpenExisting(t.Context(), db, agent.Config{Scope: scope})
		if dimension == 0 {
			if loci.CodeOf(err) != loci.ErrNotFound {
				t.Errorf("%s: the memory is there: %v", scope, err)
			}
			return
		}
		if err != nil || m.Dimension() != dimension || m.Space() != space {
			t.Errorf("%s: %+v, %v", scope, m, err)
		}
	}
	run := func(op, in string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if got := call(op, in); !strings.Contains(got, want) {
				t.Errorf("%s %s: %s, want %s", op, in, got, want)
			}
		}
	}
	run("facts.store", `{"scope":"a","id":1,"content":"x","embedding":[1,0,0]}`, `"given"`)
	check("a", 3, "agent-3")
	run("facts.store_batch", `{"scope":"b","facts":[{"id":1,"content":"x"},{"id":2,"content":"x","embedding":[1,0]}]}`, "invalid_vector")
	check("b", 0, "")
	run("facts.store_batch", `{"scope":"b","facts":[{"id":1,"content":"x","embedding":[1,0]},{"id":2,"content":"x","embedding":[1,0,0]}]}`, "invalid_vector")
	check("b", 0, "")
	run("facts.store_batch", `{"scope":"b","facts":[{"id":2,"content":"x","embedding":[1,0]}]}`, `"stored":1`)
	check("b", 2, "agent-2")
	run("episodes.record_batch", `{"scope":"c","episodes":[{"id":1,"description":"x"},{"id":2,"description":"x","embedding":[1,0]}]}`, `"stored":2`)
	check("c", 2, "agent-2")
	run("episodes.record", `{"scope":"d","id":1,"description":"x"}`, "validation")
	check("d", 0, "")
	run("episodes.record", `{"scope":"d","id":1,"description":"x","dimension":5}`, `"none"`)
	check("d", 5, "agent-5")
	run("procedures.learn", `{"scope":"e","id":1,"name":"x","steps":["y"],"space":"nowhere"}`, "not_found")
	run("procedures.learn", `{"scope":"e","id":1,"name":"x","steps":["y"],"space":"agent-5"}`, `"none"`)
	check("e", 5, "agent-5")
	run("agent.set_policy", `{"scope":"f","keep_versions":1}`, "validation")
	run("agent.set_policy", `{"scope":"f","keep_versions":1,"dimension":7}`, `"keep_versions":1`)
	check("f", 7, "agent-7")
	run("facts.query", `{"scope":"g","embedding":[`+strings.Repeat("1,", loci.MaxDimension)+`1]}`, "invalid_vector")
	run("facts.store", `{"scope":"g","id":1,"content":"x","embedding":[`+strings.Repeat("1,", loci.MaxDimension)+`1]}`, "invalid_vector")
	check("g", 0, "")

	// With an embedder it is that one's, but for vectors of another length.
	if _, err := db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "words", Model: "fake", Dimension: 4}); err != nil {
		t.Fatal(err)
	}
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "words", fakeembed.New(4), nil); err != nil {
		t.Fatal(err)
	}
	run("facts.store", `{"scope":"h","id":1,"content":"x"}`, `"made"`)
	check("h", 4, "words")
	run("facts.store", `{"scope":"i","id":1,"content":"x","embedding":[1,0]}`, `"given"`)
	check("i", 2, "agent-2")
	run("agent.open", `{"scope":"j"}`, `"space":"words"`)
	run("agent.open", `{"scope":"k","dimension":4}`, `"space":"words"`)
	run("agent.open", `{"scope":"l","dimension":2}`, `"space":"agent-2"`)
	run("facts.query", `{"scope":"m","embedding":[1,0]}`, `"hits":[]`)
	check("m", 0, "")
}

// TestAgentReadsMakeNothing holds that whatever only reads leaves a store without a
// memory as it is.
func TestAgentReadsMakeNothing(t *testing.T) {
	db, call := agentStore(t)
	revision := func() int64 {
		h, err := db.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h.Revision
	}
	before := revision()
	inputs := map[string]any{
		"id": 1, "embedding": []int{1, 0}, "text": "x", "rel_type": "x", "before_us": 1, "from_us": 1, "to_us": 2, "thread": "x",
	}
	for _, o := range agentRows() {
		if !o.ReadOnly {
			continue
		}
		in := map[string]any{}
		for name := range o.InputSchema().Properties {
			if slices.Contains(o.InputSchema().Required, name) {
				in[name] = inputs[name]
			}
		}
		if strings.Contains(o.Name, ".recall") {
			in["text"] = "x"
		}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := call(o.Name, string(raw)); !strings.HasPrefix(got, "{") {
			t.Errorf("%s %s: %s", o.Name, raw, got)
		}
	}
	if after := revision(); after != before {
		t.Errorf("revision %d became %d", before, after)
	}
}
