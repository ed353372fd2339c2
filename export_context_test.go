package loci

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// addContexts fills the context store with something of everything: two scopes,
// one with a copy of a memory, revisions, links in both directions, logs whose
// beginning was trimmed, a published text, a policy, and checkpoints, of which one
// names a page that is gone.
func addContexts(t testing.TB, db *DB, memory ID) {
	t.Helper()
	l := db.Link()
	write := func(fn func(tx *store.WriteTx) error) {
		t.Helper()
		if _, err := l.Write(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	c := &store.ContextScope{Namespace: DefaultNamespace, Scope: `["default","s <1>"]`, Version: 3,
		State: fmt.Appendf(nil, `{"tick":4,"written":3,"pending":[{"operation":"page_in","page_id":"memory:%d"},{"operation":"write","page_id":"a"}]}`, memory)}
	bare := &store.ContextScope{Namespace: DefaultNamespace, Scope: `["default"]`, Version: 1, State: []byte(`{}`)}
	page := func(id, content string) *store.Page {
		return &store.Page{Record: store.Record{Namespace: c.Namespace, Scope: c.Scope, Created: 5, Updated: 6}, Context: c.ID, PageID: id, EvictedTurn: -1,
			PageRevision: store.PageRevision{Version: 1, At: 5, Operation: "write", Title: "title of " + id, Content: content, Importance: 0.5}}
	}
	put := func(p *store.Page) {
		t.Helper()
		prepared := l.PreparePage(p)
		write(func(tx *store.WriteTx) error {
			if err := tx.AddPage(p); err != nil {
				return err
			}
			return l.StagePage(tx, p, prepared)
		})
	}
	revise := func(p *store.Page, change func(*store.Page)) {
		t.Helper()
		old := *p
		p.Version, p.Operation = p.Version+1, "compact"
		change(p)
		prepared := l.PreparePage(p)
		write(func(tx *store.WriteTx) error {
			if err := tx.AddPageRevision(&old, p); err != nil {
				return err
			}
			return l.StagePage(tx, p, prepared)
		})
	}
	write(func(tx *store.WriteTx) error {
		if err := tx.AddContext(c); err != nil {
			return err
		}
		if err := tx.AddContext(bare); err != nil {
			return err
		}
		if err := tx.PutPublished(c.ID, []byte("{\"vc\":1,\"core\":[\n{\"id\":\"a\u2028<\"}\n],")); err != nil {
			return err
		}
		return tx.SetPolicy(DefaultNamespace, []byte(`{"mode":"turns","every_n":3}`))
	})
	a, b := page("a", "  first\ntext <&> \u2028 and blanks  "), page("行b", "second")
	a.Tier, a.Seq, a.PinReason, a.Hits, a.Touched, a.TouchedAt = store.TierCore, 2, "why", 3, 4, 9
	a.PageRevision.Tags, a.PageRevision.Source = []string{"x", "灯"}, "src"
	put(a)
	b.Tier, b.Outline, b.Seq, b.RowVersion, b.Summary, b.Links = store.TierCore, true, 1, 1, "a row", []int64{a.ID}
	b.Thread, b.Position = "ingest:1", new(int64(0))
	put(b)
	revise(a, func(p *store.Page) { p.Links, p.Importance = []int64{b.ID}, 0 })
	revise(a, func(p *store.Page) { p.Content, p.Summary, p.PageRevision.Tags = "shorter", "sum", nil })
	m := getMemory(t, db, memory, ReadFilter{})
	of := page(fmt.Sprintf("memory:%d", memory), m.Judgment)
	of.OriginKind, of.OriginID, of.Version, of.Tier, of.Admission = store.KindMemory, int64(memory), m.Revision, store.TierWorking, 1
	put(of)
	gone := page("gone", "was forgotten")
	put(gone)
	checkpoint := func() {
		t.Helper()
		point := &store.Checkpoint{Context: c.ID, Label: "before <it>", At: 7}
		write(func(tx *store.WriteTx) error {
			err := tx.PagePlaces(c.ID, func(p store.CheckpointPage) bool { point.Pages = append(point.Pages, p); return true })
			if err != nil {
				return err
			}
			return tx.AddCheckpoint(point)
		})
	}
	checkpoint()
	write(func(tx *store.WriteTx) error {
		for i := range 5 {
			body := fmt.Appendf(nil, `{"page_id":"memory:%d","reason":"\"page_id\":\"memory:%d\""}`, memory, i)
			if err := tx.AppendLog(c.ID, store.LogResidency, &store.LogEntry{At: int64(i), Body: body}); err != nil {
				return err
			}
		}
		if err := tx.TrimLog(c.ID, store.LogResidency, 2); err != nil {
			return err
		}
		for typ := range logTypes[1:] {
			if err := tx.AppendLog(c.ID, store.LogType(typ+1), &store.LogEntry{At: 8, Key: "provider|1|2", Body: []byte(`{"html":"\u003c"}`)}); err != nil {
				return err
			}
		}
		return tx.RemovePage(gone)
	})
	checkpoint()
}

// contextStore is a store with contexts, and its export.
func contextStore(t testing.TB) (db *DB, memory ID, text string) {
	t.Helper()
	db = openReal(t, t.TempDir())
	memory = addMemory(t, db, MemoryInput{Judgment: "Tides turn every six hours"}).ID
	addContexts(t, db, memory)
	header, body := exported(t, db, nil)
	return db, memory, header + "\n" + body
}

// TestTransferContexts takes the context store through a file and back, to the
// letter, and through a snapshot.
func TestTransferContexts(t *testing.T) {
	db, _, text := contextStore(t)
	header, body, _ := strings.Cut(text, "\n")
	if !strings.Contains(header, `"counts":{"memory":1,"page":3},"contexts":{"scopes":2,"revisions":2,"log":5,"checkpoints":2}`) {
		t.Error(header)
	}
	again, report := imported(t, text, nil)
	if !report.Kept || report.Contexts != 2 || report.Revisions != 2 || report.LogEntries != 5 || report.Checkpoints != 2 || report.Counts["page"] != 3 || report.Settings != 1 {
		t.Errorf("%+v", report)
	}
	snapshot := t.TempDir() + "/s"
	must[*BackupReport](t)(db.Backup(t.Context(), snapshot))
	restored := must[*DB](t)(Restore(t.Context(), snapshot, t.TempDir()+"/r", nil))
	t.Cleanup(func() { restored.Close() })
	for how, made := range map[string]*DB{"import": again, "restore": restored} {
		if _, second := exported(t, made, nil); second != body {
			t.Errorf("%s: not the same again:\n%s\n%s", how, body, second)
		}
		h := must[*HealthReport](t)(made.DeepHealth(t.Context()))
		if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.Counts["page"] != 3 || h.IndexedDocuments != 4 || h.PendingIndexUpdates != 0 {
			t.Errorf("%s: %+v", how, h)
		}
		found := search(t, made, SearchRequest{Query: "shorter", Kinds: []Kind{KindPage}, Filter: ReadFilter{Scopes: []string{`["default","s <1>"]`}}})
		if len(found.Hits) != 1 {
			t.Errorf("%s: %+v", how, found)
		}
	}
	// The next id is none that a scope, a checkpoint or a removed page had.
	if a, b := remember(t, db, "next"), remember(t, again, "next"); a[0] != b[0] {
		t.Errorf("%d, was %d", b, a)
	}
	// One namespace takes its scopes along, and only those.
	other := remember(t, db, "elsewhere")
	must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), other[0], ReadFilter{}))
	if _, part := exported(t, db, &ExportOptions{Namespace: new(DefaultNamespace)}); !strings.Contains(part, `"context_policy"`) || strings.Count(part, `{"context":"`) != 2 || strings.Count(part, `{"checkpoint":"`) != 2 {
		t.Error(part)
	}
	if _, none := exported(t, db, &ExportOptions{Namespace: new("nobody")}); none != "" {
		t.Error(none)
	}
}

// TestImportContextsRemapped brings the context store into one that is in use:
// everything that names a page follows it to its new id.
func TestImportContextsRemapped(t *testing.T) {
	db, memory, text := contextStore(t)
	other := openReal(t, t.TempDir())
	for i := range 5 {
		remember(t, other, fmt.Sprint("its own ", i))
	}
	report := must[*ImportReport](t)(other.Import(t.Context(), strings.NewReader(text), nil))
	if report.Kept || report.Contexts != 2 || report.Revisions != 2 || report.RevisionsSkipped != 0 || report.Checkpoints != 2 {
		t.Errorf("%+v", report)
	}
	h := must[*HealthReport](t)(other.DeepHealth(t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.Counts["page"] != 3 || h.IndexedDocuments != 9 {
		t.Errorf("%+v", h)
	}
	was, is := scopesOf(t, db), scopesOf(t, other)
	name := fmt.Sprintf("memory:%d", report.IDs[memory])
	if name == fmt.Sprintf("memory:%d", memory) {
		t.Fatal("the memory kept its id")
	}
	if len(is) != 2 || is[0].ID == was[0].ID || is[0].Version != was[0].Version+1 || is[1].Version != was[1].Version ||
		!strings.Contains(string(is[0].State), `[{"operation":"page_in","page_id":"`+name+`"},{"operation":"write","page_id":"a"}]`) {
		t.Errorf("%s\nwas %s", is[0].State, was[0].State)
	}
	err := other.Link().Read(t.Context(), func(tx *store.ReadTx) error {
		scope := is[0].ID
		a, err := tx.PageByID(scope, "a")
		if err != nil {
			return err
		}
		b, err := tx.PageByID(scope, "行b")
		if err != nil {
			return err
		}
		of, err := tx.PageByID(scope, name)
		if err != nil {
			return err
		}
		if a.Links[0] != b.ID || b.Links[0] != a.ID || of.OriginID != int64(report.IDs[memory]) || of.Version != report.Revision || of.Revision != report.Revision {
			t.Errorf("%+v\n%+v\n%+v", a, b, of)
		}
		before, err := tx.PageVersion(a.ID, 2)
		if err != nil || before.Links[0] != b.ID {
			t.Errorf("%+v, %v", before, err)
		}
		points, err := tx.Checkpoints(scope)
		if err != nil {
			return err
		}
		for _, p := range points {
			whole, err := tx.Checkpoint(scope, p.ID)
			if err != nil || len(whole.Pages) != 3 || whole.Pages[0].ID != a.ID {
				t.Errorf("%+v, %v", whole, err)
			}
		}
		log, err := tx.ScanLog(scope, store.LogResidency, 0, 9)
		if err != nil || len(log) != 3 || log[0].Number != 4 || string(log[0].Body) != `{"page_id":"`+name+`","reason":"\"page_id\":\"memory:3\""}` {
			t.Errorf("%+v, %v", log, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// It stands in the way of itself, by name, and nothing else changes.
	before := stateOf(t, other)
	_, err = other.Import(t.Context(), strings.NewReader(text), nil)
	if e := wantCode(t, err, ErrConflict); !strings.Contains(e.Message, `line 3: scope: the store has a context ["default","s <1>"] already`) {
		t.Error(e)
	}
	if stateOf(t, other) != before {
		t.Errorf("%+v, was %+v", stateOf(t, other), before)
	}
	// What was renumbered goes through a file as well.
	header, body := exported(t, other, nil)
	if _, second := exported(t, first(imported(t, header+"\n"+body, nil)), nil); second != body {
		t.Errorf("%s\nwas\n%s", second, body)
	}
}

func first[T, U any](v T, _ U) T { return v }

func scopesOf(t *testing.T, db *DB) (scopes []*store.ContextScope) {
	t.Helper()
	err := db.Link().Read(t.Context(), func(tx *store.ReadTx) (err error) {
		scopes, err = tx.Contexts("")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scopes
}

// TestImportStaleCopies holds that copies are as fresh as they were, also where a
// record's revision is another one.
func TestImportStaleCopies(t *testing.T) {
	for _, stale := range []bool{false, true} {
		db, memory, _ := contextStore(t)
		if stale {
			addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: memory}, Judgment: "Tides turn four times a day"})
		}
		header, body := exported(t, db, nil)
		for _, opts := range []*ImportOptions{nil, {Remap: true}} {
			made, report := imported(t, header+"\n"+body, opts)
			id := memory
			if !report.Kept {
				id = report.IDs[memory]
			}
			err := made.Link().Read(t.Context(), func(tx *store.ReadTx) error {
				copies, err := tx.CopiesOf(int64(id))
				if err != nil || len(copies) != 1 {
					t.Fatalf("%v, %v", copies, err)
				}
				p, err := tx.Page(copies[0])
				if err != nil {
					return err
				}
				revision, _, err := tx.RecordRevision(int64(id))
				if (p.Version != revision) != stale {
					t.Errorf("kept %v: version %d of a record at %d, want stale %v", report.Kept, p.Version, revision, stale)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestImportContextsRefuses holds that what contradicts itself is refused, by line
// and without its text.
func TestImportContextsRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	const header = `{"format":"loci-export","version":3,"revision":9,"next_id":50}` + "\n"
	const scope = `{"context":"2","namespace":"n","scope":"[\"n\",\"s\"]","version":1,"state":{}}` + "\n"
	page := func(id int, more string) string {
		return fmt.Sprintf(`{"kind":"page","id":"%d","namespace":"n","scope":"[\"n\",\"s\"]","context":"2","page_id":"p%[1]d","content":"SECRET"%s}`+"\n", id, more)
	}
	revision := func(id, version int) string {
		return fmt.Sprintf(`{"page_revision":"%d","version":%d,"content":"SECRET"}`+"\n", id, version)
	}
	log := func(number int, more string) string {
		return fmt.Sprintf(`{"log":"2","type":"usage","number":%d,"body":{}%s}`+"\n", number, more)
	}
	checkpoint := func(id int, pages string) string {
		return fmt.Sprintf(`{"checkpoint":"%d","context":"2","pages":[%s]}`+"\n", id, pages)
	}
	rows := func(n int) (text string) {
		for i := range n {
			text += page(3+i, fmt.Sprintf(`,"tier":"core","outline":true,"seq":%d,"row_version":1,"title":"t","summary":"s"`, i+1))
		}
		return text
	}
	for _, c := range []struct{ name, text, says string }{
		{"scope without array", strings.Replace(scope, `[\"n\",\"s\"]`, "n", 1), "line 2: scope"},
		{"scope with blanks", strings.Replace(scope, `,\"s`, `, \"s`, 1), "line 2: scope"},
		{"scope of another namespace", strings.Replace(scope, `"n"`, `"o"`, 1), "line 2: scope"},
		{"scope twice", scope + strings.Replace(scope, `"2"`, `"3"`, 1), "line 3: scope"},
		{"scope id twice", scope + strings.Replace(scope, `\"s\"`, `\"t\"`, 1), "line 3: context"},
		{"state is no object", strings.Replace(scope, "{}", "[]", 1), "line 2: state"},
		{"state is missing", strings.Replace(scope, `,"state":{}`, "", 1), "line 2: state"},
		{"scope too late", scope + page(3, "") + strings.NewReplacer(`"2"`, `"4"`, `\"s\"`, `\"t\"`).Replace(scope), "line 4: context"},
		{"setting too late", scope + `{"setting":"context_policy","namespace":"n","policy":{}}`, "line 3: setting"},
		{"policy is no object", `{"setting":"context_policy","namespace":"n","policy":1}`, "line 2: policy"},
		{"log of nothing", log(1, ""), "line 2: log"},
		{"log out of order", scope + log(2, "") + log(1, ""), "line 4: number"},
		{"log key twice", scope + log(1, `,"key":"k"`) + log(2, `,"key":"k"`), "line 4: key"},
		{"log of no type", scope + strings.Replace(log(1, ""), "usage", "SECRET", 1), "line 3: type"},
		{"page without scope", page(3, ""), "line 2: context"},
		{"page elsewhere", scope + strings.Replace(page(3, ""), `\"s\"`, `\"t\"`, 1), "line 3: scope"},
		{"page id twice", scope + page(3, "") + strings.Replace(page(4, ""), "p4", "p3", 1), "line 4: page_id"},
		{"page id of a copy", scope + strings.Replace(page(3, ""), "p3", "memory:3", 1), "line 3: page_id"},
		{"no content", scope + strings.Replace(page(3, ""), "SECRET", "", 1), "line 3: content"},
		{"id of the scope", scope + page(2, ""), "line 3: id"},
		{"a tier that is none", scope + page(3, `,"tier":"SECRET"`), "line 3: tier"},
		{"core without place", scope + page(3, `,"tier":"core"`), "line 3: seq"},
		{"one place twice", scope + page(3, `,"tier":"core","seq":1`) + page(4, `,"tier":"core","seq":1`), "line 4: seq"},
		{"working without place", scope + page(3, `,"tier":"working"`), "line 3: admission"},
		{"a row without text", scope + page(3, `,"tier":"core","seq":1,"outline":true,"row_version":1`), "line 3: outline"},
		{"a row in the archive", scope + page(3, `,"outline":true`), "line 3: outline"},
		{"rows without end", scope + rows(33), "line 35: outline"},
		{"negative statistics", scope + page(3, `,"hits":-1`), "line 3: hits"},
		{"evidence", scope + page(3, `,"evidence":[{"source":"s"}]`), "line 3: is of a page"},
		{"link to itself", scope + page(3, `,"links":["3"]`), "line 3: links[0]"},
		{"link to nothing", scope + page(3, `,"links":["7"]`), "line 3: links[0]"},
		{"link to a memory", scope + `{"kind":"memory","id":3,"judgment":"j"}` + "\n" + page(4, `,"links":["3"]`), "line 4: links[0]"},
		{"link twice", scope + page(3, "") + page(4, `,"links":["3","3"]`), "line 4: links[1]"},
		{"copy of nothing", scope + strings.Replace(page(3, `,"origin":{"kind":"memory","id":"7"}`), "p3", "memory:7", 1), "line 3: origin"},
		{"copy from another namespace", scope + `{"kind":"memory","id":3,"judgment":"j"}` + "\n" + strings.Replace(page(4, `,"origin":{"kind":"memory","id":"3"}`), "p4", "memory:3", 1), "line 4: origin"},
		{"copy of a page", scope + page(3, "") + page(4, `,"origin":{"kind":"page","id":"3"}`), "line 4: origin"},
		{"copy by another name", scope + page(4, `,"origin":{"kind":"memory","id":"3"}`), "line 3: page_id"},
		{"revisions missing", scope + page(3, `,"version":3`) + revision(3, 1) + page(4, ""), "line 3: version"},
		{"revisions missing at the end", scope + page(3, `,"version":2`), "line 3: version"},
		{"revisions with a gap", scope + page(3, `,"version":3`) + revision(3, 2), "line 4: version"},
		{"revision above", scope + page(3, "") + revision(3, 1), "line 4: version"},
		{"revision of another page", scope + page(3, `,"version":2`) + revision(4, 1), "line 4: page_revision"},
		{"checkpoint without scope", checkpoint(9, ""), "line 2: context"},
		{"checkpoint id of a page", scope + page(3, "") + checkpoint(3, ""), "line 4: checkpoint"},
		{"checkpoint of a page to come", scope + checkpoint(9, `{"id":"60","version":1}`), "line 3: pages[0]"},
		{"checkpoint of a memory", scope + `{"kind":"memory","id":3,"judgment":"j"}` + "\n" + checkpoint(9, `{"id":"3","version":1}`), "line 4: pages[0]"},
		{"checkpoint of a version to come", scope + page(3, "") + checkpoint(9, `{"id":"3","version":2}`), "line 4: pages[0]"},
		{"checkpoint descending", scope + checkpoint(9, `{"id":"8","version":1},{"id":"7","version":1}`), "line 3: pages[1]"},
		{"record behind a checkpoint", scope + checkpoint(9, "") + page(10, ""), "line 4: kind"},
		{"cut short", strings.Replace(header, "}", `,"contexts":{"scopes":1,"revisions":0,"log":0,"checkpoints":1}}`, 1) + scope + page(3, ""), "cut short"},
	} {
		text := c.text
		if !strings.HasPrefix(text, `{"format"`) {
			text = header + text
		}
		db := openReal(t, t.TempDir())
		_, err := db.Import(t.Context(), strings.NewReader(text), nil)
		if CodeOf(err) != ErrValidation && CodeOf(err) != ErrConflict || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		if s := stateOf(t, db); s != (dbState{}) {
			t.Errorf("%s: %+v", c.name, s)
		}
		db.Close()
	}
	// The same lines, as they should be.
	good := header + scope + log(1, `,"key":"k"`) + page(3, `,"version":2,"links":["4"]`) + revision(3, 1) + rows(33)[len(page(3, `,"tier":"core","outline":true,"seq":1,"row_version":1,"title":"t","summary":"s"`)):] +
		checkpoint(40, `{"id":"3","version":2},{"id":"38","version":1}`)
	db, report := imported(t, good, nil)
	if report.Counts["page"] != 33 || report.Checkpoints != 1 {
		t.Errorf("%+v", report)
	}
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
		t.Errorf("%+v", h)
	}
}
