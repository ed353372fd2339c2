package op_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/op"
	sqlite3 "github.com/ncruces/go-sqlite3"
	"pgregory.net/rapid"
)

// importClock stands still, so that receipts and exports are the same each time.
func importClock() time.Time { return time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC) }

func importStore(t testing.TB) *loci.DB {
	t.Helper()
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true, Clock: importClock, NoBackgroundEmbedding: true, NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// importFrom runs the operation.
func importFrom(t testing.TB, db *loci.DB, in op.ImportFrom) *op.ImportedFrom {
	t.Helper()
	out, err := tryImport(t, db, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryImport(t testing.TB, db *loci.DB, in op.ImportFrom) (*op.ImportedFrom, error) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := op.Local(db).Call(t.Context(), "import_from", raw)
	if err != nil {
		return nil, err
	}
	out := &op.ImportedFrom{}
	if err := json.Unmarshal(got, out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// exported is all that a store holds, as text.
func exported(t testing.TB, db *loci.DB) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := db.Export(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	_, records, _ := strings.Cut(b.String(), "\n") // the header names the store
	return records
}

// pmemoryStore makes a store in p-memory's shape.
func pmemoryStore(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile("testdata/pmemory.sql")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	notes := filepath.Join(t.TempDir(), "notes")
	if err := os.MkdirAll(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(notes, "log.md"), []byte("# Log\n\nThe walrus came back.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite3.Open(filepath.Join(dir, "store.sqlite3"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec(strings.ReplaceAll(string(script), "{notes}", filepath.ToSlash(notes))); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

type importSample struct {
	name string
	in   op.ImportFrom
}

func importSamples(t testing.TB) []importSample {
	t.Helper()
	at := func(name string) string {
		path, err := filepath.Abs(filepath.Join("..", "internal", "foreign", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	return []importSample{
		{"mcp-memory", op.ImportFrom{From: "mcp-memory", Path: at("memory.jsonl")}},
		{"mem0", op.ImportFrom{From: "mem0", Path: at("mem0.json")}},
		{"mem0-scopes", op.ImportFrom{From: "mem0", Path: at("mem0.json"), Users: "scopes", Namespace: new("people")}},
		{"basic-memory", op.ImportFrom{From: "basic-memory", Path: at("basic"), Scope: new("work")}},
		{"markdown", op.ImportFrom{From: "markdown", Path: at("notes")}},
		{"markdown-file", op.ImportFrom{From: "markdown", Path: at("notes/harbour.md")}},
		{"jsonl", op.ImportFrom{From: "jsonl", Path: at("items.jsonl")}},
		{"p-memory", op.ImportFrom{From: "p-memory", Path: pmemoryStore(t)}},
	}
}

// updating is the package's own flag of that name.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// TestImportReceipts imports each sample: a dry run tells what the run does, writes
// nothing, and a second run changes nothing.
func TestImportReceipts(t *testing.T) {
	for _, s := range importSamples(t) {
		t.Run(s.name, func(t *testing.T) {
			db := importStore(t)
			before := exported(t, db)
			dry := s.in
			dry.DryRun = true
			told := importFrom(t, db, dry)
			if got := exported(t, db); got != before {
				t.Errorf("a dry run wrote: %s", got)
			}
			receipt := importFrom(t, db, s.in)
			compareReceipt(t, s.name, receipt)
			told.DryRun, told.Revision = false, receipt.Revision
			a, b := indented(t, told), indented(t, receipt)
			if a != b {
				t.Errorf("the dry run told\n%s\nthe run did\n%s", a, b)
			}
			after := exported(t, db)
			again := importFrom(t, db, s.in)
			if again.Revision != receipt.Revision || exported(t, db) != after {
				t.Errorf("a second run wrote something: %s", indented(t, again))
			}
			for kind, tally := range again.Kinds {
				if tally.Created+tally.Merged+tally.Replaced > 0 || tally.Found != tally.Unchanged+tally.LeftOut {
					t.Errorf("%s of a second run: %+v", kind, tally)
				}
			}
		})
	}
}

func indented(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func compareReceipt(t *testing.T, name string, receipt *op.ImportedFrom) {
	t.Helper()
	got := indented(t, receipt)
	path := filepath.Join("testdata", "import-"+name+".json")
	if updating() {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another one (go test ./op -update):\n%s", path, got)
	}
	for kind, tally := range receipt.Kinds {
		if tally.Found != tally.Created+tally.Merged+tally.Replaced+tally.Unchanged+tally.LeftOut {
			t.Errorf("%s: %+v does not add up", kind, tally)
		}
	}
}

// lengths tells texts apart by their lengths.
type lengths struct{}

func (lengths) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text)) / 100}
	}
	return out, nil
}

// TestImportPoints brings in facts and episodes where an embedder is there.
func TestImportPoints(t *testing.T) {
	db := importStore(t)
	ctx, vectors := t.Context(), db.Embeddings()
	_, err := vectors.RegisterSpace(ctx, loci.EmbeddingSpace{ID: "l", Model: "l", Dimension: 2})
	if err = errors.Join(err, vectors.RegisterEmbedder(ctx, "l", lengths{}, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := vectors.SetDefaultSpace(ctx, loci.DefaultNamespace, "l"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.jsonl")
	in := op.ImportFrom{From: "jsonl", Path: file}
	writeLines(t, file, `{"kind":"fact","id":"f","text":"The lamp is red.","valid_from":"2026-01-01"}`,
		`{"kind":"episode","id":"e","text":"The lamp went out.","at":"2026-03-04T05:06:07Z","thread":"night","tags":["Lamp"]}`)
	dry := in
	dry.DryRun = true
	for i, run := range []struct {
		in   op.ImportFrom
		want op.ImportTally
	}{{dry, op.ImportTally{Found: 1, Created: 1}}, {in, op.ImportTally{Found: 1, Created: 1}}, {in, op.ImportTally{Found: 1, Unchanged: 1}}} {
		r := importFrom(t, db, run.in)
		for _, kind := range []string{"fact", "episode"} {
			if *r.Kinds[kind] != run.want {
				t.Errorf("run %d: %s %+v", i, kind, r.Kinds[kind])
			}
		}
	}
	writeLines(t, file, `{"kind":"fact","id":"f","text":"The lamp is green.","valid_from":"2026-01-01"}`)
	if r := importFrom(t, db, in); r.Kinds["fact"].Replaced != 1 {
		t.Errorf("%+v", r.Kinds["fact"])
	}
	if all := exported(t, db); !strings.Contains(all, "The lamp is green.") || !strings.Contains(all, `"thread":"night"`) {
		t.Error(all)
	}
}

// TestImportFinds holds that what was imported is found, and tied to its entity.
func TestImportFinds(t *testing.T) {
	db := importStore(t)
	importFrom(t, db, importSamples(t)[0].in)
	res, err := db.Search(t.Context(), loci.SearchRequest{Query: "who keeps the lighthouse", Kinds: []loci.Kind{loci.KindMemory}})
	if err != nil || len(res.Hits) == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	m := res.Hits[0].Record.(*loci.Memory)
	if m.Judgment != "Mara Lind: Keeps the lighthouse at Skarholm" || len(m.Tags) != 1 {
		t.Errorf("%+v", m)
	}
	found, err := db.Graph().Resolve(t.Context(), m.Tags[0], loci.ReadFilter{}, nil)
	if err != nil || len(found) != 1 || found[0].EntityType != "person" {
		t.Errorf("%+v %v", found, err)
	}
}

// writeLines writes a file of JSON lines.
func writeLines(t testing.TB, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestImportChanges follows a memory that changes at its source, here, and at both.
func TestImportChanges(t *testing.T) {
	db := importStore(t)
	file := filepath.Join(t.TempDir(), "a.jsonl")
	in := op.ImportFrom{From: "jsonl", Path: file}
	list := func() []loci.Memory {
		t.Helper()
		page, err := db.Memories().List(t.Context(), loci.PageRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return page.Items
	}
	if _, err := db.Memories().Upsert(t.Context(), loci.MemoryInput{
		Judgment: "the LAMP is red", RecordInput: loci.RecordInput{Tags: []string{"mine"}, Metadata: loci.Metadata(`{"a":1}`)},
		State: &loci.MemoryState{Pinned: true, Strength: 7},
	}); err != nil {
		t.Fatal(err)
	}
	writeLines(t, file, `{"id":"1","text":"The lamp is red","reasoning":"seen","metadata":{"a":2,"b":3},"strength":2}`, `{"id":"2","text":"The door is blue"}`)
	r := importFrom(t, db, in)
	if k := r.Kinds["memory"]; k.Merged != 1 || k.Created != 1 {
		t.Fatalf("%+v", k)
	}
	lamp := list()[0]
	if lamp.Judgment != "the LAMP is red" || lamp.State.Strength != 7 || !lamp.State.Pinned || lamp.Reasoning != "seen" ||
		string(lamp.Metadata.Get("a")) != "1" || string(lamp.Metadata.Get("b")) != "3" || len(lamp.Evidence) != 1 {
		t.Errorf("a merge took something away: %+v", lamp)
	}
	// It changes at the source.
	writeLines(t, file, `{"id":"1","text":"The lamp is red","reasoning":"seen"}`, `{"id":"2","text":"The door is green"}`)
	if k := importFrom(t, db, in).Kinds["memory"]; k.Replaced != 1 || k.Unchanged != 1 {
		t.Errorf("%+v", k)
	}
	items := list()
	if len(items) != 2 || items[1].Judgment != "The door is green" {
		t.Fatalf("%+v", items)
	}
	// It changes here, and then at both.
	if _, err := db.Memories().Upsert(t.Context(), loci.MemoryInput{
		RecordInput: loci.RecordInput{ID: items[1].ID, Metadata: items[1].Metadata}, Judgment: "The door is yellow",
	}); err != nil {
		t.Fatal(err)
	}
	if k := importFrom(t, db, in).Kinds["memory"]; k.Unchanged != 2 {
		t.Errorf("%+v", k)
	}
	writeLines(t, file, `{"id":"2","text":"The door is black"}`)
	r = importFrom(t, db, in)
	if k := r.Kinds["memory"]; k.LeftOut != 1 || !strings.Contains(r.LeftOut[0].Reason, "keeps its text") {
		t.Errorf("%+v", r)
	}
	if got := list()[1].Judgment; got != "The door is yellow" {
		t.Error(got)
	}
}

// TestImportRefuses holds that what is no source ends with an error and writes
// nothing.
func TestImportRefuses(t *testing.T) {
	db := importStore(t)
	dir := t.TempDir()
	several := filepath.Join(dir, "two.json")
	writeLines(t, several, `[{"id":"1","memory":"a","user_id":"x"},{"id":"2","memory":"b","user_id":"y"}]`)
	for _, in := range []op.ImportFrom{
		{From: "mem0", Path: several},
		{From: "mem0", Path: dir},
		{From: "mem0", Path: filepath.Join(dir, "nothing")},
		{From: "p-memory", Path: several},
		{From: "p-memory", Path: dir},
		{From: "basic-memory", Path: several},
		{From: "letta", Path: several},
		{From: "jsonl", Path: ""},
		{From: "jsonl", Path: several, Namespace: new("")},
	} {
		if out, err := tryImport(t, db, in); err == nil {
			t.Errorf("%+v was taken: %+v", in, out)
		}
	}
	dry := importFrom(t, db, op.ImportFrom{From: "mem0", Path: several, DryRun: true})
	if len(dry.Users) != 2 || len(dry.Remarks) != 1 {
		t.Errorf("%+v", dry)
	}
	if h, err := db.Health(t.Context()); err != nil || h.Revision != 0 {
		t.Errorf("%+v %v", h, err)
	}
	ctx := loci.WithAccess(context.Background(), &loci.Access{Grants: []loci.Grant{{Namespace: loci.Every, Scopes: []string{loci.Every}, Write: true}}})
	if _, err := op.Local(db).Call(ctx, "import_from", []byte(`{"from":"jsonl","path":"/dev/null"}`)); loci.CodeOf(err) != loci.ErrForbidden {
		t.Errorf("without admin: %v", err)
	}
	admin := loci.WithAccess(context.Background(), &loci.Access{Admin: true})
	raw, err := json.Marshal(op.ImportFrom{From: "mem0", Path: several, Users: "tags"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := op.Local(db).Call(admin, "import_from", raw)
	if err == nil && !bytes.Contains(out, []byte(`"left_out":2`)) {
		t.Errorf("admin without a grant: %s", out)
	}
}

// TestImportTwice holds that importing any lines twice is importing them once, in
// one run or cut in two.
func TestImportTwice(t *testing.T) {
	db := importStore(t)
	file := filepath.Join(t.TempDir(), "a.jsonl")
	in := op.ImportFrom{From: "jsonl", Path: file}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"Ann", "ann", "Bo", "C D", "塔"})
		line := rapid.Custom(func(t *rapid.T) string {
			m := map[string]any{}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0, 1:
				m["text"] = name.Draw(t, "text") + rapid.SampledFrom([]string{"", " is here", "  IS here"}).Draw(t, "more")
				if rapid.Bool().Draw(t, "with id") {
					m["id"] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "id")
				}
				m["tags"] = []string{name.Draw(t, "tag")}
			case 2:
				m["kind"], m["name"] = "entity", name.Draw(t, "name")
				m["type"] = rapid.SampledFrom([]string{"person", "place"}).Draw(t, "type")
				m["summary"] = rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "summary")
			case 3:
				m["kind"], m["subject"], m["predicate"], m["object"] = "relation", name.Draw(t, "s"), "knows", name.Draw(t, "o")
			case 4:
				m["kind"], m["name"], m["participants"] = "event", "Storm", []string{name.Draw(t, "p")}
			}
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		})
		lines := rapid.SliceOfN(line, 1, 12).Draw(rt, "lines")
		writeLines(t, file, lines[:len(lines)/2+1]...)
		importFrom(t, db, in)
		writeLines(t, file, lines...)
		first := importFrom(t, db, in)
		again := importFrom(t, db, in)
		if again.Revision != first.Revision {
			rt.Fatalf("%q\n%s", lines, indented(t, again))
		}
	})
}
