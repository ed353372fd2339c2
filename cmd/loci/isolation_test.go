package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// The isolation sweep. Two stores are the same but for one tenant, whose every text,
// label and name in the first has the marker in it, and which is not there in the
// second: there as many ids and revisions were used up by what is gone. Another
// tenant then calls every operation, with everything it could name of the first one.
// Whatever it is told must be the same to the letter in both stores: no content, no
// id, no count, no score, no other error where something is there. And the first
// tenant's data must be as it was.

// marker is in all that the tenant has, and in nothing that the other one says.
const marker = "quokka"

// tenantCalls store something of every kind. NS stands for the namespace.
var tenantCalls = []sample{
	{op: "memories.upsert", input: `{"namespace":"NS","judgment":"The quokka sleeps at seven.","reasoning":"quokka watch","memory_type":"quokka fact","tags":["tide","quokka"],"thread":"log","position":1,"metadata":{"b":1.5,"quokka":"quokka"},"evidence":[{"source":"quokka log","quote":"quokka"}]}`},
	{op: "memories.upsert", input: `{"namespace":"NS","judgment":"quokka ropes are red","scope":"private","thread":"quokka thread","position":1}`},
	{op: "memories.upsert", input: `{"namespace":"NS","judgment":"A quokka hides where nobody looks.","scope":"quokka hole"}`},
	{op: "graph.apply_batch", input: `{"entities":[{"namespace":"NS","ref":"a","name":"Ada","summary":"quokka keeper","aliases":["quokka"]},{"namespace":"NS","ref":"l","name":"Quokka Lamp","entity_type":"quokka","attributes":{"quokka":["quokka"]}}],` +
		`"relations":[{"namespace":"NS","subject":{"ref":"a"},"predicate":"quokka repairs","object":{"ref":"l"},"reason":"quokka"}],` +
		`"events":[{"namespace":"NS","name":"Quokka Storm","summary":"quokka","participants":[{"ref":"l"},{"ref":"a"}]}]}`},
	{op: "graph.apply_batch", input: `{"entities":[{"namespace":"NS","scope":"private","ref":"a","name":"Private Quokka"},{"namespace":"NS","scope":"private","ref":"l","name":"Lamp"}],` +
		`"relations":[{"namespace":"NS","scope":"private","subject":{"ref":"a"},"predicate":"repairs","object":{"ref":"l"}}]}`},
	{op: "notes.set_root", input: `{"namespace":"NS","root":"{notes}/../secret"}`},
	{op: "notes.upsert_file", input: `{"namespace":"NS","path":"quokka/log.md","tags":["quokka"]}`},
	{op: "context.write", input: `{"scope":["NS","watch 1"],"page_id":"a","title":"quokka rules","summary":"quokka","content":"Feed the quokka.","tier":"core","tags":["quokka"],"source":"quokka"}`},
	{op: "context.write", input: `{"scope":["NS","watch 1"],"page_id":"a","title":"quokka rules","content":"Feed the quokka twice.","tier":"core","expected_version":1}`},
	{op: "context.page_in", input: `{"scope":["NS","watch 1"],"page_id":"memory:1"}`},
	{op: "context.snapshot", input: `{"scope":["NS","watch 1"]}`},
	{op: "context.checkpoint", input: `{"scope":["NS","watch 1"],"label":"quokka"}`},
	{op: "context.ingest", input: `{"scope":["NS"],"content":"One quokka.\n\nAnother quokka.\n","source":"quokka","title":"quokka"}`},
	{op: "facts.store", input: `{"namespace":"NS","scope":"ship","id":1,"content":"The quokka eats leaves.","embedding":[1,0,0,0,0],"dimension":5,"metadata":{"k":"quokka"},"tags":["quokka"],"thread":"quokka","position":1}`},
	{op: "facts.store", input: `{"namespace":"NS","scope":"ship","id":7,"content":"quokka tide","embedding":[0,1,0,0,0]}`},
	{op: "facts.relate", input: `{"namespace":"NS","scope":"ship","from":1,"to":7,"rel_type":"quokka causes","properties":{"quokka":1}}`},
	{op: "facts.store", input: `{"namespace":"NS","scope":"ship","id":7,"content":"quokka tide again","embedding":[0,1,0,0,0]}`},
	{op: "episodes.record", input: `{"namespace":"NS","scope":"ship","id":1,"description":"A quokka came by.","embedding":[1,0,0,0,0],"thread":"talk","position":1}`},
	{op: "procedures.learn", input: `{"namespace":"NS","scope":"ship","id":1,"name":"catch a quokka","steps":["wait for the quokka"],"embedding":[1,0,0,0,0]}`},
	{op: "agent.snapshot", input: `{"namespace":"NS","scope":"ship"}`},
	{op: "embeddings.sync", input: `{"namespace":"NS","space":"fake"}`},
}

// settingCalls are what belongs to the tenant's namespace as a whole.
var settingCalls = []sample{
	{op: "graph.set_predicate_rule", input: `{"namespace":"NS","predicate":"quokka repairs","inverse":"quokka repaired"}`},
	{op: "graph.set_predicate_equivalents", input: `{"namespace":"NS","groups":[["quokka","wallaby"],["tide","quokka hour"]]}`},
	{op: "embeddings.set_vectorization", input: `{"namespace":"NS","tier":"notes","enabled":true}`},
	{op: "embeddings.set_default_space", input: `{"namespace":"NS","space":"fake"}`},
	{op: "context.set_policy", input: `{"scope":"NS","threshold_pct":91}`},
	{op: "agent.set_policy", input: `{"namespace":"NS","scope":"ship","keep_versions":17}`},
}

// swept is a store of the sweep.
type swept struct {
	*surface
	db     *loci.DB
	access *loci.Access // that calls are made with; nil reaches everything
}

func newSwept(t *testing.T) *swept {
	t.Helper()
	w := &swept{}
	w.surface = newSurface(t, "", func(t *testing.T, dir string) func(*testing.T, sample) answer {
		db, err := openSampled(t.Context(), dir, &loci.Options{WaitForIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		bindFake(t, db)
		w.db = db
		return func(t *testing.T, s sample) answer {
			return askCaller(t, limited{op.Local(db), w.access}, s)
		}
	})
	file := filepath.Join(w.folder, "secret", "quokka", "log.md")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("# Quokka\n\nThe *quokka* walrus came back.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// limited is a caller with access.
type limited struct {
	op.Caller
	access *loci.Access
}

func (l limited) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	return l.Caller.Call(loci.WithAccess(ctx, l.access), name, raw)
}

// settle makes calls that have to succeed, in a namespace.
func (w *swept) settle(t *testing.T, namespace string, calls ...sample) {
	t.Helper()
	for _, s := range calls {
		s.input = strings.ReplaceAll(s.input, "NS", namespace)
		if a := w.call(t, s); a.Failure.Code != "" {
			t.Fatalf("%s %s: %+v", s.op, s.input, a.Failure)
		}
	}
}

// export is a namespace as it is stored, without the line that tells of the store.
func (w *swept) export(t *testing.T, namespace string) (header struct {
	NextID   loci.ID `json:"next_id"`
	Revision int64   `json:"revision"`
}, body string) {
	t.Helper()
	var b bytes.Buffer
	if _, err := w.db.Export(t.Context(), &b, &loci.ExportOptions{Namespace: &namespace}); err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(b.String(), "\n")
	if err := json.Unmarshal([]byte(head), &header); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, `{"setting":"embedding_space"`) { // which are the store's
			lines = append(lines, line)
		}
	}
	return header, strings.Join(lines, "")
}

// twin makes the second store: it is where the first one is in ids and revisions,
// and holds nothing.
func (w *swept) twin(t *testing.T) *swept {
	t.Helper()
	other := newSwept(t)
	other.note, other.checkpoint, other.edge = w.note, w.checkpoint, w.edge
	head, _ := w.export(t, "gone")
	start, _ := other.export(t, "gone")
	var many []string
	for id := start.NextID; id < head.NextID; id++ {
		many = append(many, `{"namespace":"gone","judgment":"one that is gone"}`)
	}
	other.settle(t, "gone", sample{op: "memories.upsert_many", input: `{"memories":[` + strings.Join(many, ",") + `]}`})
	for {
		if at, _ := other.export(t, "gone"); at.Revision == head.Revision-1 {
			break
		} else if at.Revision >= head.Revision {
			t.Fatal("the first store has too few revisions")
		}
		other.settle(t, "gone", sample{op: "memories.upsert", input: `{"id":"` + fmt.Sprint(start.NextID) + `","judgment":"one that changes"}`})
	}
	other.settle(t, "gone", sample{op: "memories.delete_by_filter", input: `{"filter":{"namespace":"gone"},"all":true}`})
	if a, _ := other.export(t, "gone"); a != head {
		t.Fatalf("the twin stands at %+v, not at %+v", a, head)
	}
	return other
}

// aim is where the inputs of samples are pointed to.
type aim struct {
	namespace string
	scope     string // of records and agent memories; "" leaves the sample's
	context   string // of contexts; "" leaves the sample's
	all       bool   // also where the sample names a namespace itself
}

// at points a sample's input somewhere.
func (a aim) at(t *testing.T, s sample) sample {
	t.Helper()
	o, ok := op.Default().Lookup(s.op)
	if !ok {
		t.Fatalf("there is no operation %s", s.op)
	}
	in, ok := decode(t, []byte(s.input)).(map[string]any)
	if !ok {
		t.Fatalf("%s: %s is no object", s.op, s.input)
	}
	a.place(o.InputSchema(), in)
	text, err := marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	s.input, s.code, s.want = text, "", ""
	return s
}

func (a aim) place(schema *jsonschema.Schema, in map[string]any) {
	own := schema.Properties["namespace"] != nil
	scope := schema.Properties["scope"]
	switch {
	case own && scope != nil && scope.Items != nil: // a context
		parts, _ := in["scope"].([]any)
		if one, ok := in["scope"].(string); ok {
			parts = []any{one}
		} else if one, ok := in["namespace"].(string); ok {
			parts = []any{one}
		}
		delete(in, "namespace")
		switch {
		case a.context != "":
			in["scope"] = []any{a.namespace, a.context}
		case len(parts) > 1:
			in["scope"] = append([]any{a.namespace}, parts[1:]...)
		case len(parts) == 1:
			in["scope"] = []any{a.namespace, parts[0]}
		}
	case own:
		// "in" is where the samples of intake are at home.
		if given, ok := in["namespace"]; !ok || a.all || given == "default" || given == "in" {
			in["namespace"] = a.namespace
		}
		if scope != nil && a.scope != "" {
			in["scope"] = a.scope
		}
	}
	if schema.Properties["scopes"] != nil && a.scope != "" {
		in["scopes"] = []any{a.scope}
	}
	for name, field := range schema.Properties {
		if name == "filter" && field.Properties["namespace"] != nil {
			filter, ok := in[name].(map[string]any)
			if !ok {
				filter = map[string]any{}
				in[name] = filter
			}
			a.place(field, filter)
		}
		if field.Items == nil || field.Items.Properties["namespace"] == nil {
			continue
		}
		list, _ := in[name].([]any)
		for _, e := range list {
			if e, ok := e.(map[string]any); ok {
				a.place(field.Items, e)
			}
		}
	}
}

// idFields hold ids of records, points, edges and pages.
var idFields = []string{
	"id", "root", "from", "to", "note_id", "recalled_ids", "useful_ids", "note_ids", "edge", "page_id", "links", "chunk_id", "after", "preferred",
}

// withID puts an id in the place of every other one in an input; false when there is
// none.
func withID(t *testing.T, s sample, id string) (sample, bool) {
	t.Helper()
	some := false
	var walk func(v any, name string) any
	walk = func(v any, name string) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k], k)
			}
			return v
		case []any:
			for i := range v {
				v[i] = walk(v[i], name)
			}
			return v
		}
		if !slices.Contains(idFields, name) {
			return v
		}
		some = true
		if name == "page_id" || name == "links" {
			return "memory:" + id
		}
		return id
	}
	text, err := marshal(walk(decode(t, []byte(s.input)), ""))
	if err != nil {
		t.Fatal(err)
	}
	s.input = text
	return s, some
}

// sweep has the other tenant make all its calls on both stores.
type sweep struct {
	with, without *swept
	tenant        string
	before        string
	last          int                 // id of the tenant's
	allowed       func(s sample) bool // which calls may be answered
	told          map[string]bool     // operations that answered
	// unlike names what may differ between the stores.
	unlike []string
}

func newSweep(t *testing.T, access *loci.Access, tenant string, calls ...[]sample) *sweep {
	t.Helper()
	if testing.Short() {
		t.Skip("thousands of calls, one after the other")
	}
	t.Parallel()
	w := &sweep{with: newSwept(t), tenant: tenant, told: map[string]bool{}, allowed: func(sample) bool { return true }}
	w.with.settle(t, tenant, slices.Concat(calls...)...)
	head, _ := w.with.export(t, tenant)
	w.last = int(head.NextID) - 1
	w.without = w.with.twin(t)
	_, w.before = w.with.export(t, tenant)
	if strings.Count(strings.ToLower(w.before), marker) < 40 {
		t.Fatal("the tenant has too little to look for")
	}
	w.with.access, w.without.access = access, access
	return w
}

func (w *sweep) call(t *testing.T, s sample) {
	t.Helper()
	a, b := w.with.call(t, s), w.without.call(t, s)
	got, err := marshal(answer{without(a.Result, w.unlike), a.Failure})
	if err != nil {
		t.Fatal(err)
	}
	want, err := marshal(answer{without(b.Result, w.unlike), b.Failure})
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s %s:\nwith the tenant:    %s\nwithout the tenant: %s", s.op, s.input, got, want)
	}
	if strings.Contains(strings.ToLower(got), marker) {
		t.Errorf("%s %s tells what is another's: %s", s.op, s.input, got)
	}
	if a.Failure.Code == "" {
		w.told[s.op] = true
		if !w.allowed(s) {
			t.Errorf("%s %s is answered: %s", s.op, s.input, got)
		}
	}
}

// without leaves fields out, wherever they are.
func without(v any, names []string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = without(v[i], names)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name := range v {
			if !slices.Contains(names, name) {
				out[name] = without(v[name], names)
			}
		}
		return out
	}
	return v
}

// untouched holds that the tenant's data is as it was.
func (w *sweep) untouched(t *testing.T) {
	t.Helper()
	if _, now := w.with.export(t, w.tenant); now != w.before {
		was := strings.Split(w.before, "\n")
		for i, line := range strings.Split(now, "\n") {
			if i >= len(was) || line != was[i] {
				t.Errorf("the tenant's data is another now: %.300s", line)
			}
		}
		t.Errorf("%d lines were %d", strings.Count(now, "\n"), len(was)-1)
	}
}

// ids are those of all that the first tenant has, and the first and the last one of each
// kind that the other one has, so that some calls are answered.
func (w *sweep) ids(t *testing.T, namespace string) (ids []string) {
	t.Helper()
	for id := range w.last {
		ids = append(ids, fmt.Sprint(id+1))
	}
	_, body := w.without.export(t, namespace)
	first, last := map[string]string{}, map[string]string{}
	for line := range strings.Lines(body) {
		var r struct {
			Kind string
			ID   string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Kind == "" {
			continue
		}
		if first[r.Kind] == "" {
			first[r.Kind] = r.ID
		}
		last[r.Kind] = r.ID
	}
	ids = append(ids, slices.Sorted(maps.Values(first))...)
	return append(ids, slices.Sorted(maps.Values(last))...)
}

// free says whether an operation may be called with no grant that matters.
func free(name string) bool { return op.NoPlace()[name] != "" }

// TestIsolation is the sweep between namespaces.
func TestIsolation(t *testing.T) {
	w := newSweep(t, &loci.Access{Grants: []loci.Grant{{Namespace: "b", Scopes: []string{loci.Every}, Write: true}}},
		"acme", tenantCalls, settingCalls)
	for _, s := range []*swept{w.with, w.without} { // what an admin sets up for the other tenant
		access := s.access
		s.access = nil
		s.settle(t, "b", sample{op: "notes.set_root", input: `{"namespace":"NS","root":"{notes}"}`})
		s.access = access
	}
	first := map[string]bool{}
	for _, s := range allSamples() {
		own := aim{namespace: "b"}.at(t, s)
		w.allowed = func(sample) bool { return true }
		w.call(t, own)
		w.allowed = func(s sample) bool { return free(s.op) }
		w.call(t, aim{namespace: "acme", all: true}.at(t, s))
		plain := s
		plain.code = ""
		w.allowed = func(s sample) bool {
			// It tells of all that the caller may read where no namespace is named.
			return free(s.op) || s.op == "changes"
		}
		w.call(t, plain) // in the default namespace, or one of the sample's
		if first[s.op] {
			continue
		}
		w.allowed = func(sample) bool { return true }
		for _, id := range w.ids(t, "b") {
			other, some := withID(t, own, id)
			if !some {
				break
			}
			first[s.op] = true
			w.call(t, other)
		}
	}
	w.untouched(t)
	for _, o := range op.Default().All() {
		if !o.Admin && !w.told[o.Name] {
			t.Errorf("%s was never answered, so that its answers were not looked at", o.Name)
		}
	}
}

// TestIsolationOfScopes is the sweep inside one namespace: the other tenant has a
// grant for one scope of records and one context. What belongs to the namespace as a
// whole is no secret in it, so that there is none.
func TestIsolationOfScopes(t *testing.T) {
	// Scores come of how often words are used in the namespace, which is why scopes
	// of one are no wall against those who would guess from them.
	w := newSweep(t, &loci.Access{Grants: []loci.Grant{{Namespace: "acme", Scopes: []string{"bay", `["acme","bay"]`}, Write: true}}},
		"acme", slices.DeleteFunc(slices.Clone(tenantCalls), func(s sample) bool { return s.op == "embeddings.sync" }))
	// Whether vectors are ready is said of the namespace, too.
	w.unlike = []string{"score", "text_score", "text_part", "fused_score", "terms", "degraded"}
	own := aim{namespace: "acme", scope: "bay", context: "bay", all: true}
	tried := map[string]bool{}
	for _, s := range allSamples() {
		mine := own.at(t, s)
		w.allowed = func(sample) bool { return true }
		w.call(t, mine)
		w.allowed = func(s sample) bool { return free(s.op) || s.op == "changes" }
		for _, scope := range []string{"public", "private", "ship"} {
			w.call(t, aim{namespace: "acme", scope: scope, context: "watch 1", all: true}.at(t, s))
		}
		if tried[s.op] {
			continue
		}
		w.allowed = func(sample) bool { return true }
		for id := range w.last {
			other, some := withID(t, mine, fmt.Sprint(id+1))
			if !some {
				break
			}
			tried[s.op] = true
			w.call(t, other)
		}
	}
	for _, name := range []string{"recall", "search", "memories.list", "graph.list", "context.search", "facts.query_text", "health"} {
		if !w.told[name] {
			t.Errorf("%s was never answered", name)
		}
	}
	_, now := w.with.export(t, "acme")
	kept := map[string]bool{}
	for line := range strings.Lines(now) {
		kept[line] = true
	}
	for line := range strings.Lines(w.before) {
		if !kept[line] {
			t.Errorf("is not as it was: %.300s", line)
		}
	}
}

// What a caller may only read stays as it is, whatever it calls.
func TestReadOnlyGrants(t *testing.T) {
	t.Parallel()
	w := newSwept(t)
	w.settle(t, "b", slices.Concat(tenantCalls, settingCalls)...)
	_, before := w.export(t, "b")
	w.access = &loci.Access{Grants: []loci.Grant{{Namespace: "b", Scopes: []string{loci.Every}}}}
	answered := map[string]bool{}
	// They publish what they show, but change nothing once that is done.
	looks := []string{"context.render", "context.snapshot", "context.prefix"}
	// A sample that succeeds elsewhere fails by what is in this store, or for want of
	// a grant.
	refusals := []loci.Code{"", loci.ErrForbidden, loci.ErrNotFound, loci.ErrValidation, loci.ErrConflict, loci.ErrInvalidVector}
	for _, s := range allSamples() {
		o, _ := op.Default().Lookup(s.op)
		a := w.call(t, aim{namespace: "b", all: true}.at(t, s))
		answered[s.op] = answered[s.op] || a.Failure.Code == ""
		switch {
		case o.Admin && a.Failure.Code != loci.ErrForbidden:
			t.Errorf("%s without admin: %+v", s.op, a)
		case !o.ReadOnly && a.Failure.Code == "" && !slices.Contains(looks, s.op):
			t.Errorf("%s %s is answered: %+v", s.op, s.input, a.Result)
		case !o.ReadOnly && s.code == "" && !slices.Contains(refusals, a.Failure.Code):
			t.Errorf("%s %s: %+v", s.op, s.input, a.Failure)
		}
	}
	for _, o := range op.Default().All() {
		if o.ReadOnly && !o.Admin && !answered[o.Name] && !takesID(o) {
			t.Errorf("%s is never answered, though it only reads", o.Name)
		}
	}
	_, now := w.export(t, "b")
	if now != before {
		t.Errorf("what was only to be read changed:\n%s\nwas\n%s", now, before)
	}
}

// takesID says whether an operation may find nothing under the ids of samples.
func takesID(o *op.Operation) bool {
	for _, name := range slices.Concat(idFields, []string{"checkpoint_id"}) {
		if o.InputSchema().Properties[name] != nil {
			return true
		}
	}
	return false
}

// Without grants nothing is answered but what needs none, with admin or without it;
// and admin sees the store's figures, but no record.
func TestNoGrants(t *testing.T) {
	t.Parallel()
	w := newSwept(t)
	w.settle(t, "default", slices.Concat(tenantCalls, settingCalls)...)
	records := func() json.Number {
		t.Helper()
		a := w.call(t, sample{op: "health", input: `{}`})
		m, _ := a.Result.(map[string]any)
		n, _ := m["record_count"].(json.Number)
		return n
	}
	all := records()
	for _, access := range []*loci.Access{{}, {Admin: true}} {
		w.access = access
		if n := records(); access.Admin && n != all || !access.Admin && n != "0" {
			t.Errorf("admin %v: %s records of %s", access.Admin, n, all)
		}
		for _, s := range allSamples() {
			o, _ := op.Default().Lookup(s.op)
			if o.Admin && access.Admin {
				continue // see op
			}
			a := w.call(t, aim{namespace: "default"}.at(t, s))
			if a.Failure.Code == "" && !free(s.op) && s.op != "changes" {
				t.Errorf("admin %v: %s %s is answered: %+v", access.Admin, s.op, s.input, a.Result)
			}
			if raw, err := marshal(a); err != nil || strings.Contains(strings.ToLower(raw), marker) {
				t.Errorf("admin %v: %s %s: %s %v", access.Admin, s.op, s.input, raw, err)
			}
		}
	}
}
