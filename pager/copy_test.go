package pager

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// knowledge is a knowledge base with a record of every kind, and contexts in its
// namespace.
type knowledge struct {
	t     testing.TB
	dir   string // of the database
	notes string // folder
	db    *loci.DB
	ids   map[loci.Kind]loci.ID
}

// marker stands in every record, and nowhere else.
const marker = "xylograph"

func newKnowledge(t testing.TB) *knowledge {
	t.Helper()
	k := &knowledge{t: t, dir: t.TempDir(), notes: t.TempDir(), ids: map[loci.Kind]loci.ID{}}
	k.db = openDB(t, k.dir, nil)
	n := new("n")
	k.ids[loci.KindMemory] = addMemory(t, k.db, loci.MemoryInput{Judgment: "A " + marker + " in memory.", Reasoning: "Because.",
		RecordInput: loci.RecordInput{Namespace: n, Tags: []string{"wood", "print"}}}).ID
	batch := must[*loci.Receipt[loci.GraphBatchResult]](t)(k.db.Graph().ApplyBatch(t.Context(), loci.GraphBatch{
		Entities: []loci.EntityInput{
			{Ref: "a", Name: "Ada", Summary: "She owns a " + marker + ".", Aliases: []string{"Countess"}, Attributes: map[string][]string{"trade": {"printer"}}, RecordInput: loci.RecordInput{Namespace: n}},
			{Ref: "b", Name: "Bob", RecordInput: loci.RecordInput{Namespace: n}},
		},
		Relations: []loci.RelationInput{{Subject: loci.EntityRef{Ref: "a"}, Predicate: "sells", Object: loci.EntityRef{Ref: "b"}, Reason: "the " + marker,
			RecordInput: loci.RecordInput{Namespace: n}}},
		Events: []loci.EventInput{{Name: "The sale", Summary: "The " + marker + " is sold.", Participants: []loci.EntityRef{{Ref: "b"}},
			RecordInput: loci.RecordInput{Namespace: n}}},
	})).Value
	k.ids[loci.KindEntity], k.ids[loci.KindRelation], k.ids[loci.KindEvent] = batch.Entities[0].ID, batch.Relations[0].ID, batch.Events[0].ID
	must[*loci.Receipt[string]](t)(k.db.Notes().SetRoot(t.Context(), "n", k.notes))
	k.note("An old " + marker + "\nhangs in the hall.\n")
	return k
}

// note writes the one note and finds its chunk.
func (k *knowledge) note(text string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Join(k.notes, "art"), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.notes, "art", "prints.md"), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	k.sync()
	filter := loci.ReadFilter{Namespace: new("n")}
	notes := must[*loci.Page[loci.Note]](k.t)(k.db.Notes().List(k.t.Context(), loci.PageRequest{Filter: filter})).Items
	k.ids[loci.KindNote] = notes[0].ID
	k.ids[loci.KindChunk] = must[*loci.Page[loci.Chunk]](k.t)(k.db.Notes().Chunks(k.t.Context(), loci.ChunksRequest{NoteID: notes[0].ID, Filter: filter})).Items[0].ID
}

func (k *knowledge) sync() {
	k.t.Helper()
	must[*loci.Receipt[loci.SyncReport]](k.t)(k.db.Notes().SyncDir(k.t.Context(), "n", loci.SyncOptions{AllowMassDelete: true}))
}

func (k *knowledge) id(kind loci.Kind) string { return fmt.Sprintf("%s:%d", kind, k.ids[kind]) }

func (k *knowledge) context(session string) *Store {
	k.t.Helper()
	return scopeOf(k.t, k.db, Config{Scope: Scope{"n", session}})
}

var copied = []loci.Kind{loci.KindMemory, loci.KindEntity, loci.KindRelation, loci.KindEvent, loci.KindChunk}

func TestPageInRecords(t *testing.T) {
	k := newKnowledge(t)
	cs := k.context("s")
	for kind, want := range map[loci.Kind]struct {
		title, content, source string
		tags                   []string
	}{
		loci.KindMemory:   {"", "A " + marker + " in memory.\nBecause.", "memory", []string{"print", "wood"}},
		loci.KindEntity:   {"Ada", "She owns a " + marker + ".\ncountess\ntrade: printer", "entity", []string{}},
		loci.KindRelation: {"", "Ada sells Bob\nthe " + marker, "relation", []string{}},
		loci.KindEvent:    {"The sale", "The " + marker + " is sold.\nBob", "event", []string{}},
		loci.KindChunk:    {"prints", "An old " + marker + "\nhangs in the hall.", "art/prints.md:1-2", []string{"art", "prints"}},
	} {
		out := pageIn(t, cs, PageInRequest{PageID: k.id(kind)})
		page := read(t, cs, k.id(kind))
		if !out.Changed || out.Page.Tier != Working || out.Page.Origin == nil || out.Page.Origin.Kind != kind || out.Page.Origin.ID != k.ids[kind] ||
			out.Page.Origin.Revision != out.Page.Version || out.Page.Origin.Stale {
			t.Errorf("%s: %+v", kind, out.Page)
		}
		if page.Page.Title != want.title || strings.TrimSpace(page.Content) != want.content || page.Page.Source != want.source || !slices.Equal(page.Page.Tags, want.tags) {
			t.Errorf("%s is shown as %+v with the content %q, want %+v", kind, page.Page, page.Content, want)
		}
		if history := must[*HistoryResult](t)(cs.History(t.Context(), HistoryRequest{PageID: k.id(kind)})).Versions; len(history) != 1 || history[0].Version != out.Page.Version ||
			history[0].Operation != "page_in" {
			t.Errorf("%s has the revisions %+v", kind, history)
		}
		if again := pageIn(t, cs, PageInRequest{PageID: k.id(kind)}); again.Changed {
			t.Errorf("%s changed when it was paged in again: %+v", kind, again)
		}
	}
	_, err := cs.Write(t.Context(), WriteRequest{PageID: k.id(loci.KindMemory), Content: "another", ExpectedVersion: new(int64(1))})
	wantFail(t, err, ErrInvalidArgument, "page_id")
	checkDeep(t, cs)
}

// TestCopyTakesChanges changes a record: its copy is stale, wherever it is, until
// it is paged in.
func TestCopyTakesChanges(t *testing.T) {
	k := newKnowledge(t)
	id := k.id(loci.KindMemory)
	for session, tier := range map[string]Tier{"one": Working, "two": Core, "three": Archive} {
		cs := k.context(session)
		first := pageIn(t, cs, PageInRequest{PageID: id}).Page
		switch tier {
		case Core:
			pageIn(t, cs, PageInRequest{PageID: id, Tier: Core, Reason: "why"})
		case Archive:
			must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: id}))
		}
		before := snapshot(t, cs)
		m := addMemory(t, k.db, loci.MemoryInput{Judgment: "A woodcut, says " + session, RecordInput: loci.RecordInput{ID: k.ids[loci.KindMemory], Namespace: new("n")}})
		if s := snapshot(t, cs); s.SHA != before.SHA {
			t.Error("a change of the record changed the window")
		}
		if ref := read(t, cs, id).Page; !ref.Origin.Stale || ref.Version != first.Version {
			t.Errorf("%s: %+v", session, ref)
		}
		if found := search(t, cs, SearchRequest{Query: "woodcut", Kinds: []loci.Kind{"memory"}}); len(found) != 1 || !found[0].Origin.Stale {
			t.Errorf("%s: %+v", session, found)
		}
		want := Working
		if tier == Core {
			want = Core
		}
		out := pageIn(t, cs, PageInRequest{PageID: id})
		if !out.Changed || out.Page.Version != m.Revision || out.Page.Origin.Stale || out.Page.Tier != want || read(t, cs, id).Content != m.Judgment {
			t.Errorf("%s: %+v", session, out)
		}
		if want == Core && out.Page.PinReason != "why" {
			t.Errorf("%+v", out.Page)
		}
		versions := []int64{}
		for _, v := range must[*HistoryResult](t)(cs.History(t.Context(), HistoryRequest{PageID: id})).Versions {
			versions = append(versions, v.Version)
		}
		if !slices.Equal(versions, []int64{first.Version, m.Revision}) {
			t.Errorf("%s: versions %v", session, versions)
		}
		if old := must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: id, Version: &first.Version})); old.Content == m.Judgment || old.CurrentVersion != m.Revision {
			t.Errorf("%s: %+v", session, old)
		}
		checkDeep(t, cs)
	}
}

// TestCopyScopes names scopes: records of no other come in, and no other
// namespace's at all.
func TestCopyScopes(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n", "s"}})
	team := addMemory(t, db, loci.MemoryInput{Judgment: "team", RecordInput: loci.RecordInput{Namespace: new("n"), Scope: new("team")}})
	other := addMemory(t, db, loci.MemoryInput{Judgment: "other", RecordInput: loci.RecordInput{Namespace: new("m")}})
	own := addMemory(t, db, loci.MemoryInput{Judgment: "own", RecordInput: loci.RecordInput{Namespace: new("n"), Scope: &cs.key.scope}})
	id := func(m loci.Memory) string { return fmt.Sprintf("memory:%d", m.ID) }
	before := dumpOf(t, cs)
	for _, req := range []PageInRequest{
		{PageID: id(team)}, {PageID: id(team), Scopes: []string{"public", "crew"}}, {PageID: id(other)}, {PageID: id(other), Scopes: []string{"public", "team"}}, {PageID: id(own)},
		{PageID: fmt.Sprintf("entity:%d", team.ID), Scopes: []string{"team"}}, {PageID: "memory:99999"},
	} {
		_, err := cs.PageIn(t.Context(), req)
		wantFail(t, err, ErrNotFound, "page_id")
	}
	sameDump(t, before, dumpOf(t, cs))
	for m, scope := range map[string]string{id(team): "team", id(own): cs.key.scope} {
		if out := pageIn(t, cs, PageInRequest{PageID: m, Scopes: []string{scope}}); !out.Changed {
			t.Errorf("%+v", out)
		}
	}
	// A copy is a page of the scope from now on, but takes changes from scopes that
	// are named only.
	addMemory(t, db, loci.MemoryInput{Judgment: "team spirit", RecordInput: loci.RecordInput{ID: team.ID, Namespace: new("n"), Scope: new("team")}})
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: id(team)}))
	if out := pageIn(t, cs, PageInRequest{PageID: id(team)}); !out.Page.Origin.Stale || out.Page.Version != team.Revision {
		t.Errorf("%+v", out)
	}
	if out := pageIn(t, cs, PageInRequest{PageID: id(team), Scopes: []string{"team"}}); out.Page.Origin.Stale || !out.Changed {
		t.Errorf("%+v", out)
	}
}

// TestCopyLimits is about records that are more than a page takes.
func TestCopyLimits(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n"}, Budget: new(100_000)})
	half := strings.Repeat("x", loci.MaxTextBytes/2)
	tags := make([]string, MaxTags+1)
	for i := range tags {
		tags[i] = fmt.Sprintf("tag-%03d", i)
	}
	big := addMemory(t, db, loci.MemoryInput{Judgment: half, Reasoning: half, RecordInput: loci.RecordInput{Namespace: new("n")}})
	tagged := addMemory(t, db, loci.MemoryInput{Judgment: "tagged", RecordInput: loci.RecordInput{Namespace: new("n"), Tags: tags}})
	before := dumpOf(t, cs)
	_, err := cs.PageIn(t.Context(), PageInRequest{PageID: fmt.Sprintf("memory:%d", big.ID)})
	if e := wantFail(t, err, ErrTooLarge, "page_id"); e.Details["limit"] != MaxContentBytes || e.Details["bytes"] != loci.MaxTextBytes+1 {
		t.Errorf("%v has the details %v", e, e.Details)
	}
	sameDump(t, before, dumpOf(t, cs))
	if out := pageIn(t, cs, PageInRequest{PageID: fmt.Sprintf("memory:%d", tagged.ID)}); !slices.Equal(out.Page.Tags, tags[:MaxTags]) {
		t.Errorf("%d tags", len(out.Page.Tags))
	}
	// A copy that its record outgrows fails to be refreshed, and stays as it was.
	addMemory(t, db, loci.MemoryInput{Judgment: half, Reasoning: half, RecordInput: loci.RecordInput{ID: tagged.ID, Namespace: new("n")}})
	before = dumpOf(t, cs)
	_, err = cs.PageIn(t.Context(), PageInRequest{PageID: fmt.Sprintf("memory:%d", tagged.ID)})
	wantFail(t, err, ErrTooLarge, "page_id")
	sameDump(t, before, dumpOf(t, cs))
}

func TestCopyRevision(t *testing.T) {
	long := strings.Repeat("灯", 400)
	rev := copyRevision(&link.Copy{Title: long, Content: "text", Revision: 7, Source: strings.Repeat("s", MaxSourceBytes+1)})
	if len(rev.Title) != 1023 || !strings.HasPrefix(long, rev.Title) || rev.Content != long+"\ntext" || len(rev.Source) != MaxSourceBytes || rev.Version != 7 {
		t.Errorf("%d bytes of title, %d of content", len(rev.Title), len(rev.Content))
	}
	empty := copyRevision(&link.Copy{Content: " \n"})
	if err := checkCopy(&empty); err == nil || err.Code != ErrInvalidArgument {
		t.Errorf("%v", err)
	}
}

// TestSaysNothingNew is about copies that came from another store with their
// records, whose revisions were counted anew there.
func TestSaysNothingNew(t *testing.T) {
	of := &link.Copy{Kind: store.KindMemory, ID: 1, Revision: 3, Title: "t", Content: "text", Tags: []string{"a"}, Source: "memory"}
	page := &store.Page{PageRevision: copyRevision(of)}
	for _, c := range []struct {
		version  int64
		content  string
		nothing  bool
		versions int64 // of the next revision
	}{{9, "text", true, 10}, {9, "changed", false, 10}, {2, "text", false, 3}, {1, "changed", false, 3}} {
		page.Version, of.Content = c.version, c.content
		if got := saysNothingNew(page, of); got != c.nothing {
			t.Errorf("%+v: %v", c, got)
		}
		if next := refreshed(&store.PageRevision{Version: c.version + 1}, of); next.Version != c.versions {
			t.Errorf("%+v: the next version is %d", c, next.Version)
		}
	}
}

// TestDeletedRecords deletes records in every way there is: with the context in
// memory and without, their copies are gone at once, from every tier.
func TestDeletedRecords(t *testing.T) {
	filter := loci.ReadFilter{Namespace: new("n")}
	deletions := map[string]struct {
		kind loci.Kind
		run  func(k *knowledge) error
	}{
		"memories.delete": {loci.KindMemory, func(k *knowledge) error {
			return second(k.db.Memories().Delete(t.Context(), k.ids[loci.KindMemory], filter))
		}},
		"memories.delete_by_filter": {loci.KindMemory, func(k *knowledge) error {
			return second(k.db.Memories().DeleteByFilter(t.Context(), loci.DeleteRequest{Filter: filter}))
		}},
		"graph.delete entity": {loci.KindEntity, func(k *knowledge) error {
			must[*loci.Receipt[bool]](t)(k.db.Graph().Delete(t.Context(), loci.KindRelation, k.ids[loci.KindRelation], filter))
			return second(k.db.Graph().Delete(t.Context(), loci.KindEntity, k.ids[loci.KindEntity], filter))
		}},
		"graph.delete relation": {loci.KindRelation, func(k *knowledge) error {
			return second(k.db.Graph().Delete(t.Context(), loci.KindRelation, k.ids[loci.KindRelation], filter))
		}},
		"graph.delete_by_filter": {loci.KindEvent, func(k *knowledge) error {
			return second(k.db.Graph().DeleteByFilter(t.Context(), loci.DeleteRequest{Filter: filter}))
		}},
		"notes.delete": {loci.KindChunk, func(k *knowledge) error {
			return second(k.db.Notes().Delete(t.Context(), k.ids[loci.KindNote], filter))
		}},
		"notes.delete_by_filter": {loci.KindChunk, func(k *knowledge) error {
			return second(k.db.Notes().DeleteByFilter(t.Context(), loci.DeleteRequest{Filter: filter}))
		}},
		"a note that is rewritten": {loci.KindChunk, func(k *knowledge) error {
			k.note("The hall is empty now.\n")
			return nil
		}},
		"a note whose file is gone": {loci.KindChunk, func(k *knowledge) error {
			if err := os.Remove(filepath.Join(k.notes, "art", "prints.md")); err != nil {
				return err
			}
			k.sync()
			return nil
		}},
	}
	for name, d := range deletions {
		for _, loaded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/loaded=%v", name, loaded), func(t *testing.T) {
				k := newKnowledge(t)
				k.t = t
				k.deleteCopied(d.kind, loaded, func() error { return d.run(k) })
			})
		}
	}
}

// deleteCopied deletes a record of which there are copies.
func (k *knowledge) deleteCopied(kind loci.Kind, loaded bool, run func() error) {
	t, id := k.t, k.id(kind)
	contexts := map[Tier]*Store{Working: k.context("working"), Core: k.context("core"), Archive: k.context("archive")}
	before := map[Tier]*Snapshot{}
	for tier, cs := range contexts {
		put(t, cs, WriteRequest{PageID: "first", Content: "stays", Tier: Core})
		req := PageInRequest{PageID: id}
		if tier == Core {
			req.Tier = Core
		}
		pageIn(t, cs, req)
		if tier == Archive {
			must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: id}))
		}
		put(t, cs, WriteRequest{PageID: "linking", Content: "links to it", Tier: Working, Links: []string{id}})
		before[tier] = snapshot(t, cs)
		if strings.Contains(*before[tier].Text, marker) == (tier == Archive) {
			t.Fatalf("%s: the window is %s", tier, *before[tier].Text)
		}
	}
	if !loaded {
		if err := k.db.Close(); err != nil {
			t.Fatal(err)
		}
		k.db = openDB(t, k.dir, nil)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	for tier := range contexts {
		cs := k.context(string(tier))
		since := before[tier].Generation
		s := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Since: &since}))
		if tier == Archive {
			if s.Changed {
				t.Errorf("%s: %+v", tier, s)
			}
		} else if !s.Changed || s.Generation != since+1 || s.Epoch <= before[tier].Epoch || strings.Contains(*s.Text, marker) || strings.Contains(*s.Text, id) {
			t.Errorf("%s: %+v", tier, s)
		} else if got := must[*PrefixResult](t)(cs.Prefix(t.Context(), PrefixRequest{})).Last; got.PrefixIntact != (tier != Core) ||
			!cmp.Equal(got.Operations, []Operation{{Name: opErase}}) {
			t.Errorf("%s: %+v", tier, got)
		}
		wantOrder(t, cs, "first | linking")
		if found := search(t, cs, SearchRequest{Query: marker}); len(found) != 0 {
			t.Errorf("%s: found %s", tier, names(found))
		}
		if links := read(t, cs, "linking").Page.Links; len(links) != 0 {
			t.Errorf("%s: links %v", tier, links)
		}
		for _, err := range []error{second(cs.Read(t.Context(), ReadRequest{PageID: id})), second(cs.PageIn(t.Context(), PageInRequest{PageID: id}))} {
			wantFail(t, err, ErrNotFound, "page_id")
		}
		// The page in memory has no link any more that would be written again.
		put(t, cs, WriteRequest{PageID: "linking", Content: "links no more", Tier: Working, ExpectedVersion: new(int64(1))})
		checkDeep(t, cs)
	}
}

// TestDeletedRecordsLeaveNothing deletes all records: no table of the store has a
// byte of their copies.
func TestDeletedRecordsLeaveNothing(t *testing.T) {
	k := newKnowledge(t)
	cs := k.context("s")
	for _, kind := range copied {
		pageIn(t, cs, PageInRequest{PageID: k.id(kind)})
	}
	snapshot(t, cs)
	filter := loci.DeleteRequest{Filter: loci.ReadFilter{Namespace: new("n")}}
	for _, err := range []error{
		second(k.db.Memories().DeleteByFilter(t.Context(), filter)), second(k.db.Graph().DeleteByFilter(t.Context(), filter)),
		second(k.db.Notes().DeleteByFilter(t.Context(), filter)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := k.db.Close(); err != nil {
		t.Fatal(err)
	}
	if columns := where(t, k.dir, marker); columns != nil {
		t.Errorf("it is still in %v", columns)
	}
}

// TestCopyRaces deletes and changes a record while it is being copied: the
// operation looks again.
func TestCopyRaces(t *testing.T) {
	k := newKnowledge(t)
	cs := k.context("s")
	m := k.ids[loci.KindMemory]
	runs := 0
	// changing copies a record, and changes it before the copy is written.
	changing := func(meanwhile func()) error {
		runs = 0
		return cs.mutate(t.Context(), "test", func(c *change) error {
			runs++
			of, err := c.scope.record(t.Context(), store.KindMemory, int64(m), []string{"public"})
			if err != nil {
				return err
			}
			if of == nil {
				return noPage("page_id")
			}
			c.move(c.admitCopy(of), store.TierWorking, "test")
			if runs == 1 {
				meanwhile()
			}
			return nil
		}, nil)
	}
	var now loci.Memory
	if err := changing(func() {
		now = addMemory(t, k.db, loci.MemoryInput{Judgment: "changed meanwhile", RecordInput: loci.RecordInput{ID: m, Namespace: new("n")}})
	}); err != nil || runs != 2 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	if got := read(t, cs, k.id(loci.KindMemory)); got.Page.Version != now.Revision || got.Content != now.Judgment {
		t.Errorf("%+v", got)
	}
	forget(t, cs, k.id(loci.KindMemory))
	before := dumpOf(t, cs)
	err := changing(func() {
		must[*loci.Receipt[bool]](t)(k.db.Memories().Delete(t.Context(), m, loci.ReadFilter{Namespace: new("n")}))
	})
	if wantFail(t, err, ErrNotFound, "page_id"); runs != 2 {
		t.Errorf("%d runs", runs)
	}
	sameDump(t, before, dumpOf(t, cs))
	checkDeep(t, cs)
}
