package op

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// erasureStore is a store in which there is one of everything.
type erasureStore struct {
	t     testing.TB
	dir   string
	notes string // folder above the roots of notes
	db    *loci.DB
}

func newErasureStore(t testing.TB) *erasureStore {
	s := &erasureStore{t: t, dir: t.TempDir(), notes: t.TempDir()}
	s.open()
	return s
}

func (s *erasureStore) open() {
	s.t.Helper()
	db, err := loci.Open(s.t.Context(), s.dir, &loci.Options{WaitForIndex: true, NoBackgroundSweep: true, NoBackgroundEmbedding: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.db = db
	s.t.Cleanup(func() { db.Close() })
}

// call runs an operation whose input is a format of JSON.
func (s *erasureStore) call(name, input string, args ...any) map[string]any {
	s.t.Helper()
	raw, err := Default().Call(s.t.Context(), s.db, name, fmt.Appendf(nil, input, args...))
	if err != nil {
		s.t.Fatalf("%s %s: %v", name, fmt.Sprintf(input, args...), err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// fill writes one of everything into a namespace, with word in every text that a
// caller may give and in vectors the number that goes with it. scope is that of the
// records. settings says whether what is set of the namespace has it too.
func (s *erasureStore) fill(namespace, scope, word string, number float32, settings bool) {
	s.t.Helper()
	where := fmt.Sprintf(`"namespace":%q,"scope":%q`, namespace, scope)
	vector := fmt.Sprintf(`"embedding":[%v,1,0,0]`, number)
	header := fmt.Sprintf(`%s,"tags":["%s tag"],"metadata":{"%s key":"%s value"},"thread":"%s thread","evidence":[{"source":"%s source","quote":"%s quote","metadata":{"q":"%s"}}]`,
		where, word, word, word, word, word, word, word)

	// The knowledge base.
	memory := s.call("memories.upsert", `{%s,"position":1,"memory_type":"%s type","judgment":"%s judges","reasoning":"%s reasons"}`, header, word, word, word)
	id := memory["value"].(map[string]any)["id"]
	s.call("graph.apply_batch", `{"entities":[{%s,"ref":"a","name":"%s","entity_type":"%s kind","aliases":["%s alias"],"attributes":{"%s at":["%s of"]},"summary":"%s sums"},
		{%s,"ref":"b","name":"other %s"}],
		"relations":[{%s,"subject":{"ref":"a"},"predicate":"%s does","object":{"ref":"b"},"reason":"%s why"}],
		"events":[{%s,"name":"%s happens","summary":"%s sums","participants":[{"ref":"a"}],"reason":"%s why"}]}`,
		header, word, word, word, word, word, word, header, word, header, word, word, header, word, word, word)
	folder := filepath.Join(s.notes, namespace+word)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		s.t.Fatal(err)
	}
	text := fmt.Sprintf("# %s\n\nA note about %sing and %s.\n", word, word, word)
	if err := os.WriteFile(filepath.Join(folder, word+".md"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if settings {
		s.call("notes.set_root", `{"namespace":%q,"root":%q}`, namespace, folder)
		s.call("notes.sync_dir", `{"namespace":%q,"scope":%q,"tags":["%s note"]}`, namespace, scope, word)
	}

	if settings {
		s.call("graph.set_predicate_rule", `{"namespace":%q,"predicate":"%s does","inverse":"%s done"}`, namespace, word, word)
		s.call("graph.set_predicate_equivalents", `{"namespace":%q,"groups":[["%s does","%s makes"]]}`, namespace, word, word)
		s.call("embeddings.set_vectorization", `{"namespace":%q,"tier":"notes","enabled":true}`, namespace)
	}

	// Contexts: revisions, copies, links, a published text, checkpoints, logs.
	context := fmt.Sprintf(`"scope":[%q,%q]`, namespace, "session "+scope)
	s.call("context.write", `{%s,"page_id":"%s-page","title":"%s title","content":"%s first","tags":["%s tag"],"source":"%s source","tier":"core","pin_reason":"%s reason"}`, context, word, word, word, word, word, word)
	s.call("context.write", `{%s,"page_id":"%s-page","title":"%s title","content":"%s second","expected_version":1}`, context, word, word, word)
	s.call("context.write", `{%s,"page_id":"%s-row","title":"%s row","summary":"%s short","content":"%s long","outline":true,"links":["%s-page"]}`, context, word, word, word, word, word)
	s.call("context.page_in", `{%s,"page_id":"memory:%s","scopes":[%q]}`, context, id, scope)
	s.call("context.snapshot", `{%s}`, context)
	s.call("context.checkpoint", `{%s}`, context)
	s.call("context.write", `{%s,"page_id":"%s-loose","content":"%s third","tier":"working"}`, context, word, word)
	s.call("context.snapshot", `{%s}`, context)
	s.call("context.page_out", `{%s,"page_id":"%s-loose"}`, context, word)

	// Agent memory: versions, relations, snapshots.
	header, _, _ = strings.Cut(header, `,"evidence"`)
	for key := range 2 {
		s.call("facts.store", `{%s,"id":%d,"content":"%s fact",%s,"dimension":4}`, header, len(word)*10+key, word, vector)
		s.call("facts.store", `{%s,"id":%d,"content":"%s fact again",%s}`, header, len(word)*10+key, word, vector)
	}
	s.call("facts.relate", `{%s,"from":%d,"rel_type":"%s rel","to":%d,"properties":{"p":"%s prop"}}`, where, len(word)*10, word, len(word)*10+1, word)
	s.call("episodes.record", `{%s,"id":%d,"description":"%s episode",%s}`, header, len(word), word, vector)
	s.call("procedures.learn", `{%s,"id":%d,"name":"%s how","steps":["%s one","two"],%s}`, where, len(word), word, word, vector)
	s.call("agent.snapshot", `{%s}`, where)
}

// bytesOf finds the files below a folder in which one of the needles stands, whatever
// its case.
func bytesOf(t testing.TB, dir string, needles ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lower := bytes.ToLower(raw)
		for _, needle := range needles {
			if at := bytes.Index(lower, []byte(needle)); at >= 0 {
				found = append(found, fmt.Sprintf("%s holds %q at %d: %q", name, needle, at, raw[max(0, at-30):min(len(raw), at+40)]))
			} else if at := bytes.Index(raw, []byte(needle)); at >= 0 {
				found = append(found, fmt.Sprintf("%s holds %q at %d", name, needle, at))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// floatBytes are those of a number as vectors are stored.
func floatBytes(f float32) string {
	return string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
}

func (s *erasureStore) exported(namespace string) string {
	s.t.Helper()
	var b bytes.Buffer
	if _, err := s.db.Export(s.t.Context(), &b, &loci.ExportOptions{Namespace: &namespace}); err != nil {
		s.t.Fatal(err)
	}
	// The header tells of the whole store.
	_, lines, _ := strings.Cut(b.String(), "\n")
	return lines
}

// TestErasedBytes holds that what was erased is gone from every byte of every file
// after a vacuum, and that nothing else has changed.
func TestErasedBytes(t *testing.T) {
	const number = 0.123456789
	for name, c := range map[string]struct {
		namespace, scope, word string
		needles                []string
		erase                  string
	}{
		"namespace": {"zqspace", "zqscope", "zqmarkering", []string{"zqm", "zqs"}, `"filter":{"namespace":"zqspace"},"every_scope":true`},
		"chinese":   {"鲲鹏", "灵犀", "翡翠鸳鸯", []string{"鲲鹏", "灵犀", "翡翠", "翠鸳", "鸳鸯"}, `"filter":{"namespace":"鲲鹏"},"every_scope":true`},
		"mentions":  {"kept", "other", "zqmarker", []string{"zqm"}, `"filter":{"namespace":"kept"},"every_scope":true,"subject":"Zqmarker","erase_mentions":true`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newErasureStore(t)
			s.call("embeddings.register_space", `{"id":"fake","model":"fake","dimension":8}`)
			fake := fakeembed.New(8)
			if err := s.db.Embeddings().RegisterEmbedder(t.Context(), "fake", fake, nil); err != nil {
				t.Fatal(err)
			}
			s.fill("kept", "public", "walrus", 0.25, true)
			s.call("embeddings.sync", `{}`)
			before := s.exported("kept")
			s.fill(c.namespace, c.scope, c.word, number, name != "mentions")
			s.call("embeddings.sync", `{}`)
			dry := s.call("erase", `{"dry_run":true,%s}`, c.erase)
			report := s.call("erase", `{%s}`, c.erase)
			for _, field := range []string{"total", "records", "page_revisions", "point_versions", "point_relations", "vectors", "evidence", "contexts", "agent_memories", "snapshots_rewritten", "snapshots_removed", "settings"} {
				if got, want := fmt.Sprint(report[field]), fmt.Sprint(dry[field]); got != want {
					t.Errorf("%s: %s went, the dry run counted %s", field, got, want)
				}
			}
			if again := s.call("erase", `{%s}`, c.erase); fmt.Sprint(again["total"]) != "0" {
				t.Errorf("a second time %v records went", again["total"])
			}
			s.call("vacuum", `{}`)
			after := s.exported("kept")
			if name == "mentions" { // an empty context and an empty memory are left
				for line := range strings.Lines(before) {
					if !strings.Contains(after, line) {
						t.Errorf("something else changed: %s", line)
					}
				}
			} else if after != before {
				t.Errorf("something else changed:\n%s", after)
			}
			health, err := s.db.DeepHealth(t.Context())
			if err != nil || health.Integrity != "ok" || health.ForeignKeyErrors != 0 {
				raw, _ := json.Marshal(health)
				t.Errorf("%s, %v", raw, err)
			}
			s.db.Embeddings().UnregisterEmbedder("fake")
			if err := s.db.Close(); err != nil {
				t.Fatal(err)
			}
			for _, found := range bytesOf(t, s.dir, append(c.needles, floatBytes(number))...) {
				t.Error(found)
			}
			s.open()
			if health, err := s.db.Health(context.Background()); err != nil || !health.IndexUsable {
				t.Error(health, err)
			}
		})
	}
}

// lookInput makes an input that asks an operation about a namespace and scope, with
// words that every record there has, by the fields that the operation has.
func lookInput(o *Operation, namespace, scope string) map[string]any {
	filter := map[string]any{"namespace": namespace, "scopes": []string{scope}}
	by := map[string]any{
		"namespace": namespace, "scopes": []string{scope}, "filter": filter, "query": "judges fact second first note alias", "text": "fact fact again",
		"task": "judges second", "name": "other", "id": "1", "ids": []string{"1"}, "from": "1", "to": "2", "root": "1", "record_id": "1", "entity_id": "1",
		"embedding": []float64{0.1, 1, 0, 0}, "tier": "notes", "space": "fake", "note_id": "1", "kind": "entity", "with_embedding": true,
		"preset": "broad", "page_id": "p1", "at_us": 1, "from_us": 0, "to_us": 1 << 60, "cutoff_us": 1 << 60, "words": []string{"does"}, "deep": true,
	}
	in := map[string]any{}
	for field, schema := range o.InputSchema().Properties {
		v, known := by[field]
		switch {
		case field == "scope" && strings.HasPrefix(o.Name, "context."):
			in[field] = []string{namespace, "session " + scope}
		case field == "scope":
			in[field] = scope
		case field == "namespace" && strings.HasPrefix(o.Name, "context."):
		case field == "space" && schema.Type == "string" && o.Name != "embeddings.embedder_space":
		case known:
			in[field] = v
		}
	}
	return in
}

// TestErasedNowhere holds that no operation that reads finds anything of what was
// erased, before any vacuum. What each of them finds before shows that it looked.
func TestErasedNowhere(t *testing.T) {
	const word, namespace, scope = "zqmarker", "zqspace", "zqscope"
	s := newErasureStore(t)
	s.fill("kept", "public", "walrus", 0.25, true)
	s.fill(namespace, scope, word, 0.5, true)
	look := func() (found map[string]bool, worked int) {
		found = map[string]bool{}
		for _, o := range Default().All() {
			if !o.ReadOnly {
				continue
			}
			for id := 1; id <= 40; id++ {
				in := lookInput(o, namespace, scope)
				some := false
				for _, field := range []string{"id", "root", "note_id", "entity_id", "record_id"} {
					if in[field] != nil {
						in[field], some = fmt.Sprint(id), true
					}
				}
				raw, err := json.Marshal(in)
				if err != nil {
					t.Fatal(err)
				}
				out, err := o.Call(t.Context(), s.db, raw)
				if err == nil {
					worked++
					found[o.Name] = found[o.Name] || bytes.Contains(bytes.ToLower(out), []byte(word))
				}
				if !some {
					break
				}
			}
		}
		return found, worked
	}
	before, worked := look()
	finders := 0
	for _, found := range before {
		if found {
			finders++
		}
	}
	if worked < 100 || finders < 15 {
		t.Fatalf("%d calls worked, %d operations found something: the test shows nothing", worked, finders)
	}
	s.call("erase", `{"filter":{"namespace":%q},"every_scope":true}`, namespace)
	after, _ := look()
	for name, found := range after {
		if found {
			t.Errorf("%s still finds it", name)
		}
	}
	var b bytes.Buffer
	if _, err := s.db.Export(t.Context(), &b, nil); err != nil || bytes.Contains(bytes.ToLower(b.Bytes()), []byte("zq")) {
		t.Errorf("the export holds it, or %v", err)
	}
	t.Logf("%d operations had found it", finders)
}

// TestErasedSnapshots holds that a snapshot loses what goes and keeps the rest, and
// that one which cannot be read is named, and goes with its namespace only.
func TestErasedSnapshots(t *testing.T) {
	s := newErasureStore(t)
	s.fill("kept", "public", "walrus", 0.25, false)
	s.call("facts.store", `{"namespace":"kept","scope":"public","id":999,"content":"zqmarker","embedding":[1,0,0,0]}`)
	s.call("agent.snapshot", `{"namespace":"kept","scope":"public"}`)
	folder := filepath.Join(s.dir, "agent", "kept", "public")
	damaged := filepath.Join(folder, "snapshot-77.loci")
	if err := os.WriteFile(damaged, []byte("no snapshot"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := s.call("erase", `{"filter":{"namespace":"kept","scopes":["public"]},"mentions":["zqmarker"],"erase_mentions":true}`)
	if fmt.Sprint(report["snapshots_rewritten"], report["snapshots_removed"], report["total"]) != "1 0 1" || !strings.Contains(fmt.Sprint(report["not_reached"]), damaged) {
		t.Fatalf("%v", report)
	}
	list := s.call("agent.snapshots", `{"namespace":"kept","scope":"public"}`)["snapshots"].([]any)
	for i, facts := range []float64{2, 2} {
		if info := list[i].(map[string]any); info["ok"] != true || info["facts"] != facts || info["episodes"] != 1.0 || info["procedures"] != 1.0 || info["relations"] != 1.0 {
			t.Errorf("%v", info)
		}
	}
	s.call("agent.restore", `{"namespace":"kept","scope":"public","version":2}`)
	if n := s.call("facts.count", `{"namespace":"kept","scope":"public"}`); fmt.Sprint(n["count"]) != "2" {
		t.Errorf("%v", n)
	}
	if found := bytesOf(t, folder, "zqm"); found != nil {
		t.Error(found)
	}
	report = s.call("erase", `{"filter":{"namespace":"kept"},"every_scope":true}`)
	if fmt.Sprint(report["snapshots_removed"]) != "3" {
		t.Errorf("%v", report)
	}
}
