package pager

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
	"github.com/ncruces/go-sqlite3"
)

// where names the columns of a closed store's tables that hold a text.
func where(t testing.TB, dir, text string) (columns []string) {
	t.Helper()
	path := filepath.Join(dir, store.DatabaseFile)
	c := must[*sqlite3.Conn](t)(sqlite3.Open(path))
	defer c.Close()
	each := func(query string, fn func(st *sqlite3.Stmt)) {
		t.Helper()
		st, _, err := c.Prepare(query)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for st.Step() {
			fn(st)
		}
		if err := st.Err(); err != nil {
			t.Fatal(err)
		}
	}
	var tables []string
	each("SELECT name FROM sqlite_master WHERE type = 'table'", func(st *sqlite3.Stmt) { tables = append(tables, st.ColumnText(0)) })
	rows := 0
	for _, table := range tables {
		each(fmt.Sprintf("SELECT * FROM %q", table), func(st *sqlite3.Stmt) {
			rows++
			for i := range st.ColumnCount() {
				if bytes.Contains(st.ColumnBlob(i, nil), []byte(text)) {
					columns = append(columns, table+"."+st.ColumnName(i))
				}
			}
		})
	}
	if rows == 0 {
		t.Fatal("there is nothing to look at")
	}
	return columns
}

func forget(t testing.TB, cs *Store, id string) *ForgetResult {
	t.Helper()
	return must[*ForgetResult](t)(cs.Forget(t.Context(), ForgetRequest{PageID: id}))
}

// TestForget removes pages of every tier: no byte of any of their revisions is
// left, and no link to them.
func TestForget(t *testing.T) {
	const marker = "quincunx"
	dir := t.TempDir()
	db := openDB(t, dir, nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n", "s"}})
	text := func(s string) string { return s + " " + marker + " text" }
	put(t, cs, WriteRequest{PageID: "kept", Content: "kept in core", Tier: Core})
	for id, tier := range map[string]Tier{"core": Core, "working": Working, "archived": Archive} {
		put(t, cs, WriteRequest{PageID: id, Content: text("first"), Title: text(id), Tags: []string{"tag"}, Tier: tier, Source: marker, Summary: text("s")})
		put(t, cs, WriteRequest{PageID: id, Content: text("second"), Links: []string{"kept"}, ExpectedVersion: new(int64(1))})
	}
	put(t, cs, WriteRequest{PageID: "row", Title: text("row"), Summary: text("summary"), Content: text("row"), Outline: new(true)})
	put(t, cs, WriteRequest{PageID: "linking", Content: "links", Links: []string{"core", "working", "archived", "row", "kept"}, Tier: Working})
	put(t, cs, WriteRequest{PageID: "once", Content: "linked", Links: []string{"archived"}})
	put(t, cs, WriteRequest{PageID: "once", Content: "links no more", ExpectedVersion: new(int64(1))})
	snapshot(t, cs)
	read(t, cs, "working") // a use that waits to be written

	for id, want := range map[string]ForgetResult{
		"core":     {PageID: "core", Tier: Core, Revisions: 2, LinksStripped: 1},
		"working":  {PageID: "working", Tier: Working, Revisions: 2, LinksStripped: 1},
		"archived": {PageID: "archived", Tier: Archive, Revisions: 2, LinksStripped: 2},
		"row":      {PageID: "row", Tier: Core, Revisions: 1, LinksStripped: 1},
	} {
		if d := cmp.Diff(&want, forget(t, cs, id)); d != "" {
			t.Error(d)
		}
		before := dumpOf(t, cs)
		for _, err := range []error{
			second(cs.Forget(t.Context(), ForgetRequest{PageID: id})), second(cs.Read(t.Context(), ReadRequest{PageID: id})),
			second(cs.History(t.Context(), HistoryRequest{PageID: id})), second(cs.PageIn(t.Context(), PageInRequest{PageID: id})),
		} {
			wantFail(t, err, ErrNotFound, "page_id")
		}
		sameDump(t, before, dumpOf(t, cs))
	}
	if found := search(t, cs, SearchRequest{Query: marker}); len(found) != 0 {
		t.Errorf("found %s", names(found))
	}
	if got := read(t, cs, "linking").Page.Links; !cmp.Equal(got, []string{"kept"}) {
		t.Errorf("the links left are %v", got)
	}
	// Pages in memory do not bring back links that were stripped.
	must[*CompactResult](t)(cs.Compact(t.Context(), CompactRequest{PageID: "linking", Summary: "l", ExpectedVersion: new(int64(1))}))
	if got := read(t, cs, "linking").Page; got.Version != 2 || !cmp.Equal(got.Links, []string{"kept"}) {
		t.Errorf("%+v", got)
	}
	wantOrder(t, cs, "kept | linking")
	checkDeep(t, cs)
	if s := snapshot(t, cs); strings.Contains(*s.Text, marker) {
		t.Error("the window still shows it")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if columns := where(t, dir, marker); columns != nil {
		t.Errorf("it is still in %v", columns)
	}
	if columns := where(t, dir, "kept in core"); len(columns) < 2 {
		t.Errorf("what was kept is in %v only", columns)
	}
}

// TestForgetVectors looks for pages by vectors: those of other contexts are not
// found, and one that is forgotten leaves no vector.
func TestForgetVectors(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir, nil)
	cs, other := scopeOf(t, db, Config{Scope: Scope{"n", "s"}}), scopeOf(t, db, Config{Scope: Scope{"n", "other"}})
	must[*loci.Receipt[loci.EmbeddingSpace]](t)(db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "v", Model: "fake", Dimension: 64}))
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", fakeembed.New(64), nil); err != nil {
		t.Fatal(err)
	}
	put(t, cs, WriteRequest{PageID: "mill", Content: "windmills grind wheat"})
	put(t, cs, WriteRequest{PageID: "sea", Content: "boats in a storm"})
	put(t, other, WriteRequest{PageID: "theirs", Content: "windmills grind wheat"})
	must[*loci.Receipt[loci.EmbeddingReport]](t)(db.Embeddings().Sync(t.Context(), "v", loci.EmbeddingSyncOptions{}))
	found := must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "windmills wheat"}))
	if names(found.Results) != "mill sea" || len(found.Degraded) != 0 { // every page has a cosine
		t.Errorf("%+v", found)
	}
	forget(t, cs, "mill")
	if names(search(t, cs, SearchRequest{Query: "windmills wheat"})) != "sea" || names(search(t, other, SearchRequest{Query: "windmills wheat"})) != "theirs" {
		t.Error("what was forgotten, or another context's, was found")
	}
	checkDeep(t, cs)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	c := must[*sqlite3.Conn](t)(sqlite3.Open(filepath.Join(dir, store.DatabaseFile)))
	defer c.Close()
	st, _, err := c.Prepare("SELECT count(*) FROM vectors")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if !st.Step() || st.ColumnInt(0) != 2 {
		t.Errorf("%d vectors are left of 3, %v", st.ColumnInt(0), st.Err())
	}
}

func second[T any](_ T, err error) error { return err }

// TestForgetCutsPublished forgets a page of the published text: its bytes go at
// once, and the next change counts from there.
func TestForgetCutsPublished(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir, nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n"}})
	writeBase(t, cs)
	first := snapshot(t, cs)
	forget(t, cs, "w1")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if columns := where(t, dir, strings.Repeat("L", 200)); columns != nil {
		t.Errorf("it is still in %v", columns)
	}
	cs = scopeOf(t, openDB(t, dir, nil), Config{Scope: Scope{"n"}})
	got := lastEvent(t, cs)
	want := RenderEvent{AtUS: got.AtUS, Generation: first.Generation + 1, TextBytes: 737, StablePrefixBytes: 565, CommonBytes: 565 + len("],\"working\":[\n"),
		PrefixIntact: true, Operations: []Operation{{"forget", "w1"}}}
	want.InvalidatedBytes, want.RewrittenBytes = 1013-want.CommonBytes, 737-want.CommonBytes
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestForgetErrors is what Forget refuses.
func TestForgetErrors(t *testing.T) {
	cs := openScope(t, Config{})
	for id, code := range map[string]Code{"": ErrInvalidArgument, "a b": ErrInvalidArgument, "none": ErrNotFound, "memory:1": ErrNotFound} {
		out, err := cs.Forget(t.Context(), ForgetRequest{PageID: id})
		if wantFail(t, err, code, "page_id"); out != nil {
			t.Errorf("%+v came with an error", out)
		}
	}
}
