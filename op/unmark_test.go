package op

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/mark"
)

// keptAsGiven are text fields of writing operations that keep marked blocks, each
// with its reason.
func keptAsGiven() map[string]string {
	const names = "a name or a key that marks would make none"
	const paths = "a path or a source's name"
	return map[string]string{
		"metadata": "metadata is kept to the byte", "updates": "metadata is kept to the byte",
		"source_revision": paths, "source": paths, "path": paths, "root": paths, "target": paths,
		"memory_type": names, "type": names, "entity_type": names, "tags": names, "aliases": names, "ref": names,
		"predicate": names, "inverse": names, "words": names, "groups": names, "rel_type": names, "model": names,
		"space": names, "tokenizer": names, "thread": names, "namespace": names, "scope": names, "scopes": names,
		"id": names, "page_id": names, "checkpoint_id": names, "links": names, "holder": names, "provider": names,
		"cached_page_ids": names, "extensions": names, "mode": names, "strategy": names, "label": names, "word": names,
		"pin_reason": "what a person reads of one page", "query": "nothing is kept of it",
		"after": "nothing is kept of it", "cursor": "nothing is kept of it",
		"recalled_ids": names, "useful_ids": names, "old": names, "new": names, "from": names, "to": names, "edge": names,
		"chunk_id": names, "participants": names, "match": names, "role": names, "message_id": names,
		"episodes.capture.messages[].text": "the import strips every message",
		"intake.judgments[].text":          "the store strips each judgment by itself", "intake.judgments[].reasoning": "likewise",
		"intake.judgments[].evidence[].quote": "likewise", "intake.triples[].evidence[].quote": "likewise",
		"intake.triples[].subject": "likewise", "intake.triples[].object": "likewise", "intake.triples[].reason": "likewise",
		"intake.triples[].subject_type": names, "intake.triples[].object_type": names,
		"context.page_in.reason": "what a person reads of one page",
	}
}

// TestTextsAreStripped finds every text that a writing operation takes: it loses
// marked blocks, or a reason says why not.
func TestTextsAreStripped(t *testing.T) {
	kept := keptAsGiven()
	for _, o := range Default().All() {
		if o.ReadOnly || o.Admin || !o.Destructive && strings.Contains(o.Name, "delete") {
			continue
		}
		var look func(path, name string, s *jsonschema.Schema)
		look = func(path, name string, s *jsonschema.Schema) {
			if kept[name] != "" || kept[o.Name+"."+path] != "" || name == "filter" {
				return
			}
			if s.Type == "string" && len(s.Enum) == 0 && s.Format == "" && !slices.Contains(o.Texts, path) && !slices.Contains(o.Texts, path+"!") {
				t.Errorf("%s keeps marked blocks in %s: name it in Texts, or say why not", o.Name, path)
			}
			if s.Items != nil {
				look(path+"[]", name, s.Items)
			}
			for n, p := range s.Properties {
				look(strings.TrimPrefix(path+"."+n, "."), n, p)
			}
		}
		look("", "", o.InputSchema())
	}
}

// TestEcho: what was recalled and comes back whole makes no second memory, and none
// stronger.
func TestEcho(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	call := func(name, raw string) (string, error) {
		out, err := Local(db).Call(t.Context(), name, json.RawMessage(raw))
		return string(out), err
	}
	must := func(name, raw string) string {
		t.Helper()
		out, err := call(name, raw)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	must("remember", `{"text":"The tide table is updated weekly.","reasoning":"Seen on the wall."}`)
	before := must("memories.list", `{}`)
	echo := quoted(t, mark.Wrap(must("recall", `{"query":"tide table"}`)))
	texts := map[string]string{}
	for _, c := range []struct{ op, field, before, after string }{
		{"remember", "text", `{"text":`, `}`},
		{"memories.upsert", "judgment", `{"judgment":`, `}`},
		{"memories.upsert_many", "memories[0].judgment", `{"memories":[{"judgment":`, `}]}`},
		{"memories.upsert_by_judgment", "judgment", `{"judgment":`, `}`},
		{"graph.import_text", "text", `{"text":`, `}`},
		{"graph.apply_batch", "entities[0].name", `{"entities":[{"name":`, `}]}`},
		{"context.write", "content", `{"scope":"s","content":`, `}`},
		{"context.ingest", "content", `{"scope":"s","content":`, `}`},
		{"facts.store", "content", `{"id":1,"embedding":[1,0],"content":`, `}`},
		{"facts.store_unique", "content", `{"id":1,"embedding":[1,0],"content":`, `}`},
		{"facts.store_batch", "facts[0].content", `{"facts":[{"id":1,"embedding":[1,0],"content":`, `}]}`},
		{"episodes.record", "description", `{"id":1,"description":`, `}`},
		{"episodes.record_batch", "episodes[0].description", `{"episodes":[{"id":1,"description":`, `}]}`},
		{"procedures.learn", "name", `{"id":1,"steps":["a"],"name":`, `}`},
	} {
		_, err := call(c.op, c.before+echo+c.after)
		if f := FailureOf(err); loci.CodeOf(err) != loci.ErrValidation || f.Field != c.field || !strings.Contains(f.Message, "recalled") {
			t.Errorf("%s: %v", c.op, err)
		}
		texts[c.op] = c.before
	}
	if after := must("memories.list", `{}`); after != before {
		t.Errorf("the memory has changed from %s to %s", before, after)
	}
	// What stands around the echo is kept, and what is optional may be all echo.
	out := must("remember", `{"text":`+quoted(t, "New moon on Friday.\n"+mark.Wrap("The tide table is updated weekly."))+`,"reasoning":`+echo+`}`)
	if !strings.Contains(out, `"text":"New moon on Friday."`) {
		t.Error(out)
	}
	if list := must("memories.list", `{}`); strings.Contains(list, "recalled") || strings.Count(list, "Seen on the wall.") != 1 {
		t.Error(list)
	}
	for _, o := range Default().All() {
		if len(o.Texts) > 0 && texts[o.Name] == "" && slices.ContainsFunc(o.Texts, func(s string) bool { return strings.HasSuffix(s, "!") }) {
			switch o.Name {
			case "context.compact", "intake": // tested where they are
				continue
			}
			t.Errorf("%s is not tested", o.Name)
		}
	}
}

func TestTextsOfNoField(t *testing.T) {
	for _, path := range []string{"nothing", "limit", "filter.tags", "tags[].x", "query[]"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s passed", path)
				}
			}()
			Define(Spec{Name: "x", Texts: []string{path}}, func(context.Context, *loci.DB, loci.SearchRequest) (Recalled, error) {
				return Recalled{}, nil
			})
		}()
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
