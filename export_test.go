package loci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// exported is a store's export without its first line, and that line.
func exported(t testing.TB, db *DB, opts *ExportOptions) (header, body string) {
	t.Helper()
	var b strings.Builder
	report, err := db.Export(t.Context(), &b, opts)
	if err != nil {
		t.Fatal(err)
	}
	if report.Bytes != int64(b.Len()) || linesOf(report) != int64(strings.Count(b.String(), "\n")-1) {
		t.Errorf("%+v for %d bytes, %d lines", report, b.Len(), strings.Count(b.String(), "\n"))
	}
	header, body, _ = strings.Cut(b.String(), "\n")
	return header, body
}

// linesOf is how many lines an export has behind its header.
func linesOf(r *ExportReport) int64 {
	return r.Records + r.Settings + r.Vectors + r.Contexts + r.Revisions + r.LogEntries + r.Checkpoints + r.AgentMemories + r.PointVersions + r.PointEdges
}

// imported opens a new store with an import in it.
func imported(t testing.TB, text string, opts *ImportOptions) (*DB, *ImportReport) {
	t.Helper()
	db := openReal(t, t.TempDir())
	report, err := db.Import(t.Context(), strings.NewReader(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	return db, report
}

// mixed is a store with something of every kind and setting.
func mixed(t testing.TB) *DB {
	t.Helper()
	db := openReal(t, t.TempDir())
	ctx := t.Context()
	m := addMemory(t, db, MemoryInput{Judgment: "first\nwith <html> & \u2028", Reasoning: "r", MemoryType: new("task"),
		State: &MemoryState{Pinned: true, Strength: 2.5, UsefulCount: 3, UsefulScore: 1e-7, LastRecalledAtUS: new(int64(9))},
		RecordInput: RecordInput{Tags: []string{"B", "a"}, Metadata: Metadata(`{"b":1.50,"a":{"z":[1e3,"<"]}}`), Thread: new("t"), Position: new(int64(7)),
			Evidence: []Evidence{{Source: "wall", Offset: new(int64(1)), Limit: new(int64(2)), Quote: "q", Metadata: Metadata(`{"k":0.10}`)}, {Source: "s2"}}}})
	addMemory(t, db, MemoryInput{Judgment: "gone"})
	addMemory(t, db, MemoryInput{Judgment: "潮水表", RecordInput: RecordInput{Namespace: new("港务"), Scope: new("private"), CreatedAtUS: new(int64(5))}})
	g := db.Graph()
	batch := must[*Receipt[GraphBatchResult]](t)(g.ApplyBatch(ctx, GraphBatch{
		Entities: []EntityInput{{Ref: "a", Name: "阿青", Aliases: []string{"青姑"}, Attributes: map[string][]string{"<k>": {"v", "w"}, "e": nil}}, {Ref: "b", Name: "B"}},
		Relations: []RelationInput{
			{Subject: EntityRef{Ref: "a"}, Predicate: "Knows", Object: EntityRef{Ref: "b"}},
			{Subject: EntityRef{Ref: "b"}, Predicate: "knows", Object: EntityRef{Ref: "b"}, Confidence: new(0.0)}},
		Events: []EventInput{{Name: "met", Participants: []EntityRef{{Ref: "b"}, {Ref: "a"}}}, {Name: "alone"}},
	}))
	// A relation that comes before one of its ends.
	late := must[*Receipt[GraphBatchResult]](t)(g.ApplyBatch(ctx, GraphBatch{Entities: []EntityInput{{Name: "late"}}})).Value.Entities[0]
	must[*Receipt[GraphBatchResult]](t)(g.ApplyBatch(ctx, GraphBatch{Relations: []RelationInput{{RecordInput: RecordInput{ID: batch.Value.Relations[1].ID},
		Subject: EntityRef{ID: late.ID}, Predicate: "likes", Object: EntityRef{ID: batch.Value.Entities[0].ID}}}}))
	must[*Receipt[PredicateRule]](t)(g.SetPredicateRule(ctx, PredicateRule{Predicate: "knows", Symmetric: true}))
	must[*Receipt[PredicateRule]](t)(g.SetPredicateRule(ctx, PredicateRule{Namespace: "港务", Predicate: "x", Inverse: "y"}))
	must[*Receipt[int]](t)(g.SetPredicateEquivalents(ctx, "港务", [][]string{{"配偶", "夫妻"}, {"b1", "a1", "c1"}}))
	must[*Receipt[int]](t)(g.SetPredicateEquivalents(ctx, "港务", [][]string{{"d1", "b1"}}))
	// Notes, below the surface.
	_, err := db.eng.write(ctx, func(tx *store.WriteTx) error {
		n := &store.Note{Record: store.Record{Namespace: "default", Scope: "public", Created: 1, Updated: 2}, Path: "dir/a.md", Bytes: 10, ChunkChars: 220, Modified: 3, Fingerprint: []byte{1, 255}}
		if err := tx.AddNote(n); err != nil {
			return err
		}
		tx.Stage(&n.Record, nil)
		for i := range 2 {
			c := &store.Chunk{Record: store.Record{Namespace: "default", Scope: "public", Created: 1, Updated: 2, Tags: []string{"dir"}}, NoteID: n.ID, Ordinal: i, Offset: int64(1 + i), Limit: 1, Content: "line\n"}
			if err := tx.AddChunk(c); err != nil {
				return err
			}
			tx.Stage(&c.Record, nil)
			m.Evidence[1].ChunkID = new(ID(c.ID))
		}
		_, err := tx.SetNoteRoot("default", "/srv/notes")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	addMemory(t, db, MemoryInput{Judgment: "first", RecordInput: RecordInput{ID: m.ID, Evidence: m.Evidence, Metadata: m.Metadata, Tags: m.Tags, Thread: new("t"), Position: new(int64(7))}})
	must[*Receipt[bool]](t)(db.Memories().Delete(ctx, 2, ReadFilter{}))
	must[*HealthReport](t)(db.RebuildIndexes(ctx)) // the notes were written without their documents
	addMemory(t, db, MemoryInput{Judgment: "last, and deleted"})
	must[*Receipt[bool]](t)(db.Memories().Delete(ctx, addMemory(t, db, MemoryInput{Judgment: "deleted"}).ID, ReadFilter{}))
	addContexts(t, db, m.ID)
	addAgents(t, db)
	return db
}

// TestExportImport takes a store with everything in it through a file and back,
// to the letter.
func TestExportImport(t *testing.T) {
	db := mixed(t)
	header, body := exported(t, db, nil)
	if !strings.HasPrefix(header, `{"format":"loci-export","version":4,"lineage":"`) {
		t.Error(header)
	}
	again, report := imported(t, header+"\n"+body, nil)
	if !report.Kept || len(report.IDs) > 0 || report.DryRun || report.Settings != 9 || report.SettingsKept != 0 {
		t.Errorf("%+v", report)
	}
	want, got := must[*HealthReport](t)(db.Health(t.Context())), must[*HealthReport](t)(again.DeepHealth(t.Context()))
	if got.Revision != want.Revision || report.Revision != want.Revision || got.RecordCount != want.RecordCount || got.Integrity != "ok" ||
		got.ForeignKeyErrors != 0 || !got.IndexUsable || got.PendingIndexUpdates != 0 || got.IndexedDocuments != want.IndexedDocuments {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if _, second := exported(t, again, nil); second != body {
		t.Errorf("not the same again:\n%s\n%s", body, second)
	}
	for _, q := range []string{"first", "青姑", "knows", "met"} {
		if a, b := keysOf(search(t, db, SearchRequest{Query: q})), keysOf(search(t, again, SearchRequest{Query: q})); len(a) == 0 || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s: %v and %v", q, a, b)
		}
	}
	m, n := addMemory(t, db, MemoryInput{Judgment: "next"}), addMemory(t, again, MemoryInput{Judgment: "next"})
	if m.ID != n.ID || m.Revision != n.Revision {
		t.Errorf("the next record is %d at %d, was %d at %d", n.ID, n.Revision, m.ID, m.Revision)
	}
	// It opens again, with its index.
	dir := again.Directory()
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	again = openReal(t, dir)
	if h := must[*HealthReport](t)(again.Health(t.Context())); !h.IndexUsable || h.IndexedDocuments != got.IndexedDocuments+1 {
		t.Errorf("%+v", h)
	}
	// One namespace alone.
	_, part := exported(t, db, &ExportOptions{Namespace: new("港务")})
	if n := strings.Count(part, "\n"); n != 11 || !strings.Contains(part, "潮水表") || strings.Contains(part, "first") {
		t.Errorf("%d lines: %s", n, part)
	}
	// The spaces are those of the whole store.
	if _, none := exported(t, db, &ExportOptions{Namespace: new("nobody")}); strings.Count(none, "\n") != 2 || strings.Count(none, `"embedding_space"`) != 2 {
		t.Error(none)
	}
	_, err := db.Export(t.Context(), io.Discard, &ExportOptions{Namespace: new(" ")})
	wantCode(t, err, ErrValidation)
}

// TestImportRemaps brings a file into a store that is in use.
func TestImportRemaps(t *testing.T) {
	db := mixed(t)
	header, body := exported(t, db, nil)
	text := header + "\n" + body
	other := openReal(t, t.TempDir())
	remember(t, other, "its own")
	must[*Receipt[PredicateRule]](t)(other.Graph().SetPredicateRule(t.Context(), PredicateRule{Predicate: "knows", Inverse: "is known by"}))
	before := stateOf(t, other)
	dry, err := other.Import(t.Context(), strings.NewReader(text), &ImportOptions{DryRun: true})
	if err != nil || !dry.DryRun || stateOf(t, other) != before {
		t.Fatalf("%+v, %v", dry, err)
	}
	report, err := other.Import(t.Context(), io.MultiReader(strings.NewReader(text)), nil) // cannot seek
	if err != nil {
		t.Fatal(err)
	}
	dry.DryRun = false
	if fmt.Sprint(*dry) != fmt.Sprint(*report) {
		t.Errorf("the dry run said %+v, it became %+v", dry, report)
	}
	if report.Kept || int64(len(report.IDs)) != report.Records || report.SettingsKept != 1 || report.Revision != before.revision+1 {
		t.Errorf("%+v", report)
	}
	h := must[*HealthReport](t)(other.DeepHealth(t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.RecordCount != report.Records+1 || !h.IndexUsable || h.PendingIndexUpdates != 0 {
		t.Errorf("%+v", h)
	}
	m, old := getMemory(t, other, report.IDs[1], ReadFilter{}), getMemory(t, db, 1, ReadFilter{})
	if m.Judgment != old.Judgment || m.CreatedAtUS != old.CreatedAtUS || m.Revision != report.Revision || *m.Evidence[1].ChunkID != report.IDs[*old.Evidence[1].ChunkID] || *m.Position != 7 {
		t.Errorf("%+v", m)
	}
	a, late := resolve(t, db, "阿青"), resolve(t, db, "late")
	for _, id := range []ID{a, late} {
		was := must[*Neighborhood](t)(db.Graph().Neighbors(t.Context(), id, ReadFilter{}, new(10)))
		is := must[*Neighborhood](t)(other.Graph().Neighbors(t.Context(), report.IDs[id], ReadFilter{}, new(10)))
		if len(was.Relations) == 0 || len(is.Relations) != len(was.Relations) || is.Relations[0].SubjectID != report.IDs[was.Relations[0].SubjectID] {
			t.Errorf("%+v\nwas %+v", is, was)
		}
	}
	// The same again stands in the way of itself, by line.
	before = stateOf(t, other)
	_, err = other.Import(t.Context(), strings.NewReader(text), nil)
	if e := wantCode(t, err, ErrConflict); !strings.Contains(e.Message, ": position") || strings.Count(e.Message, "line ") < 3 {
		t.Error(e)
	}
	if stateOf(t, other) != before {
		t.Errorf("%+v, was %+v", stateOf(t, other), before)
	}
	if _, r := imported(t, text, &ImportOptions{Remap: true}); r.Kept || len(r.IDs) == 0 || r.Revision != 1 {
		t.Errorf("%+v", r)
	}
	if files, _ := filepath.Glob(filepath.Join(other.Directory(), "*"+spoolSuffix)); len(files) > 0 {
		t.Error(files)
	}
}

func resolve(t *testing.T, db *DB, name string) ID {
	t.Helper()
	found := search(t, db, SearchRequest{Query: name, Filter: ReadFilter{Kinds: []Kind{KindEntity}}})
	if len(found.Hits) == 0 {
		t.Fatalf("no entity %s", name)
	}
	return found.Hits[0].Record.(*Entity).ID
}

func keysOf(res *SearchResult) (keys []string) {
	for _, h := range res.Hits {
		keys = append(keys, string(h.Key))
	}
	return keys
}

// TestImportRefuses holds what is wrong with a file is named, by line, without
// its text, and that nothing of it is written.
func TestImportRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	const header = `{"format":"loci-export","version":1,"revision":9}` + "\n"
	memory := func(id int, more string) string {
		return fmt.Sprintf(`{"kind":"memory","id":"%d","judgment":"SECRET"%s}`+"\n", id, more)
	}
	huge := memory(1, `,"reasoning":"`+strings.Repeat("x", maxLineBytes)+`"`)
	for _, c := range []struct {
		name, text string
		code       Code
		want       string // part of the message
	}{
		{"empty", "", ErrValidation, "empty"},
		{"blank", "\n \n", ErrValidation, "empty"},
		{"no header", memory(1, ""), ErrValidation, "line 1: must be a header"},
		{"another format", `{"format":"SECRET","version":1}`, ErrValidation, "line 1: format"},
		{"newer", `{"format":"loci-export","version":5}`, ErrSchemaVersion, "newer"},
		{"broken", header + "{\"kind\":\"memory\",\"id\":1,\n", ErrValidation, "line 2: must be a JSON object"},
		{"not JSON", header + "SECRET\n", ErrValidation, "line 2: must be a JSON object"},
		{"two documents", header + strings.TrimSpace(memory(1, "")) + memory(2, ""), ErrValidation, "line 2"},
		{"same id", header + memory(1, "") + memory(1, ""), ErrValidation, "line 3: id: is that of the record before it"},
		{"descending", header + memory(2, "") + memory(1, ""), ErrValidation, "line 3: id: is below"},
		{"no id", header + `{"kind":"memory","judgment":"SECRET"}`, ErrValidation, "line 2: id"},
		{"unknown field", header + memory(1, `,"SECRET":1`), ErrValidation, "line 2: has a field"},
		{"unknown field in lower case", header + memory(1, `,"secret":1`), ErrValidation, "line 2: has a field"},
		{"upper case", header + memory(1, `,"Reasoning":"x"`), ErrValidation, "line 2: has a field"},
		{"name twice", header + memory(1, `,"judgment":"x"`), ErrValidation, "line 2: has a key twice"},
		{"wrong type", header + memory(1, `,"tags":"SECRET"`), ErrValidation, "line 2: tags"},
		{"wrong number", header + memory(1, `,"created_at_us":1.5`), ErrValidation, "line 2: created_at_us"},
		{"not UTF-8", header + memory(1, `,"reasoning":"`+"\xff"+`"`), ErrValidation, "line 2: is not valid UTF-8"},
		{"half a pair", header + memory(1, `,"reasoning":"\ud800"`), ErrValidation, "line 2"},
		{"unknown kind", header + `{"kind":"SECRET","id":1}`, ErrValidation, "line 2: kind"},
		{"kind not first", header + `{"id":1,"kind":"memory"}`, ErrValidation, "line 2: is no line of an export"},
		{"unknown setting", header + `{"setting":"SECRET","namespace":"x"}`, ErrValidation, "line 2: setting"},
		{"setting too late", header + memory(1, "") + `{"setting":"note_root","namespace":"x","path":"y"}`, ErrValidation, "line 3: setting"},
		{"header twice", header + header, ErrValidation, "line 2: format"},
		{"blank judgment", header + `{"kind":"memory","id":1,"judgment":" "}`, ErrValidation, "line 2: judgment"},
		{"bad state", header + memory(1, `,"state":{"strength":-1}`), ErrValidation, "line 2: state.strength"},
		{"bad tag", header + memory(1, `,"tags":["a\u0007b"]`), ErrValidation, "line 2: tags[0]"},
		{"bad scope", header + memory(1, `,"scope":" x"`), ErrValidation, "line 2: scope"},
		{"bad times", header + memory(1, `,"created_at_us":5,"updated_at_us":4`), ErrValidation, "line 2: updated_at_us"},
		{"position alone", header + memory(1, `,"position":4`), ErrValidation, "line 2: position"},
		{"revision above", header + memory(1, `,"revision":10`), ErrValidation, "line 2: revision"},
		{"deep", header + memory(1, `,"metadata":`+strings.Repeat(`{"a":`, 100)+"1"+strings.Repeat("}", 100)), ErrValidation, "nests deeper"},
		{"very deep", header + memory(1, `,"metadata":`+strings.Repeat(`[`, 1e6)), ErrValidation, "nests deeper"},
		{"huge line", header + huge + memory(2, `,"strength":1`), ErrValidation, "line 2: is longer than"},
		{"cut short", strings.Replace(header, "}", `,"counts":{"memory":2}}`, 1) + memory(1, ""), ErrValidation, "cut short"},
		{"another namespace", strings.Replace(header, "}", `,"namespace":"x"}`, 1) + memory(1, ""), ErrValidation, "line 2: namespace"},
		{"position twice", header + memory(1, `,"thread":"t","position":1`) + memory(2, `,"thread":"t","position":1`), ErrConflict, "line 3: position"},
		{"no such end", header + `{"kind":"relation","id":1,"subject_id":2,"predicate":"p","object_id":3}`, ErrValidation, "line 2: subject_id"},
		{"an end of another kind", header + memory(1, "") + `{"kind":"relation","id":2,"subject_id":1,"predicate":"p","object_id":1}`, ErrValidation, "line 3: subject_id"},
		{"an end elsewhere", header + `{"kind":"entity","id":1,"name":"n","namespace":"other"}` + "\n" + `{"kind":"relation","id":2,"subject_id":1,"predicate":"p","object_id":1}`, ErrValidation, "another namespace"},
		{"note outside", header + `{"kind":"note","id":1,"path":"../x.md","chunk_chars":220}`, ErrValidation, "line 2: path"},
		{"chunk of nothing", header + `{"kind":"chunk","id":1,"note_id":7,"offset":1,"limit":1}`, ErrValidation, "line 2: note_id"},
		{"several", header + memory(1, `,"tags":1`) + memory(2, "") + memory(3, `,"scope":1`), ErrValidation, "; line 4: "},
		{"very many", header + strings.Repeat("x\n", 100), ErrValidation, "perhaps more"},
	} {
		db := openReal(t, t.TempDir())
		for _, dry := range []bool{true, false} {
			_, err := db.Import(t.Context(), strings.NewReader(c.text), &ImportOptions{DryRun: dry})
			e := wantCode(t, err, c.code)
			if !strings.Contains(e.Error(), c.want) || strings.Contains(e.Error(), "SECRET") || len(e.Error()) > 4000 {
				t.Errorf("%s: %v, want %q", c.name, e, c.want)
			}
		}
		if s := stateOf(t, db); s != (dbState{}) {
			t.Errorf("%s: %+v", c.name, s)
		}
		db.Close()
	}
}

// TestImportByHand takes lines that no export wrote: what is left out is filled
// in.
func TestImportByHand(t *testing.T) {
	text := `{"format":"loci-export","version":1}` + "\r\n\n" +
		`{"kind":"memory","id":5,"judgment":" one ","tags":["B","a","b"]}` + "\n" +
		`  {"kind":"memory","id":"9","judgment":"two","metadata":{"a": 1}}`
	db, report := imported(t, text, nil)
	if report.Kept || report.IDs[5] != 1 || report.IDs[9] != 2 {
		t.Errorf("%+v", report)
	}
	now := newTestClock().Now().UnixMicro()
	if m := getMemory(t, db, 1, ReadFilter{}); m.Judgment != "one" || fmt.Sprint(m.Tags) != "[a b]" || m.State.Strength != 1 || m.MemoryType != DefaultMemoryType || m.CreatedAtUS < now-1 {
		t.Errorf("%+v", m)
	}
}

// TestImportEnds holds that an ended context and a broken input leave nothing.
func TestImportEnds(t *testing.T) {
	header, body := exported(t, mixed(t), nil)
	db := openReal(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := db.Import(ctx, strings.NewReader(header+"\n"+body), nil)
	wantCode(t, err, ErrCanceled)
	_, err = db.Import(t.Context(), io.MultiReader(strings.NewReader(header+"\n"), failingReader{}), nil)
	wantCode(t, err, ErrIO)
	changes := &changingFile{texts: []string{header + "\n" + body, header + "\n"}}
	_, err = db.Import(t.Context(), changes, nil)
	wantCode(t, err, ErrIO)
	if s := stateOf(t, db); s != (dbState{}) {
		t.Errorf("%+v", s)
	}
	_, err = mixed(t).Export(t.Context(), failingWriter{}, nil)
	wantCode(t, err, ErrIO)
	db.Close()
	_, err = db.Import(t.Context(), strings.NewReader(""), nil)
	wantCode(t, err, ErrClosed)
	_, err = db.Export(t.Context(), io.Discard, nil)
	wantCode(t, err, ErrClosed)
	_, err = db.Backup(t.Context(), filepath.Join(t.TempDir(), "x"))
	wantCode(t, err, ErrClosed)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// changingFile is another file each time it is read anew.
type changingFile struct {
	texts []string
	r     *bytes.Reader
}

func (c *changingFile) Read(p []byte) (int, error) { return c.r.Read(p) }

func (c *changingFile) Seek(_ int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		return 0, nil
	}
	c.r = bytes.NewReader([]byte(c.texts[0]))
	c.texts = c.texts[1:]
	return 0, nil
}
