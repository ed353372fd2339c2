package pager

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// wantFail checks the code of an error, that it names its operation and, if one
// is given, the argument.
func wantFail(t testing.TB, err error, code Code, field string) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != code || e.Op == "" || e.Message == "" && e.Err == nil || field != "" && e.Field != field {
		t.Fatalf("error %v, want code %s for %q", err, code, field)
	}
	return e
}

// dump is all that can be told of a scope and its pages.
type dump struct {
	Snapshot Snapshot
	Heads    []store.PageHead
	Versions map[string][]PageVersion
	Moves    []Movement
	Renders  []RenderEvent
	State    string
}

// dumpOf looks at a scope without changing anything in it.
func dumpOf(t testing.TB, cs *Store) (d dump) {
	t.Helper()
	d.Versions = map[string][]PageVersion{}
	d.Snapshot = *must[*Snapshot](t)(cs.Render(t.Context(), RenderRequest{}))
	err := cs.with(t.Context(), "dump", func(s *scope) (err error) {
		if d.Moves, err = s.movements(t.Context(), 1000); err != nil || s.stored == nil {
			return err
		}
		if d.Renders, err = s.renderEvents(t.Context(), 1000); err != nil {
			return err
		}
		return s.reg.link.Read(t.Context(), func(tx *store.ReadTx) error {
			now, err := tx.ContextByID(s.stored.ID)
			if err != nil {
				return err
			}
			d.State = string(now.State)
			err = tx.PageHeads(s.stored.ID, 0, 0, func(h *store.PageHead) bool {
				d.Heads = append(d.Heads, *h)
				return true
			})
			if err != nil {
				return err
			}
			for _, h := range d.Heads {
				versions, err := tx.PageHistory(h.ID)
				if err != nil {
					return err
				}
				for _, v := range versions {
					d.Versions[h.PageID] = append(d.Versions[h.PageID], PageVersion{v.Version, v.At, v.Bytes, v.Operation})
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func sameDump(t testing.TB, want, got dump) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("something changed (-before +after):\n%s", d)
	}
}

// checkDeep looks the whole store over.
func checkDeep(t testing.TB, cs *Store) {
	t.Helper()
	report, err := cs.reg.db.DeepHealth(t.Context())
	if err != nil || report.Integrity != "ok" {
		t.Errorf("the deep check says %+v, %v", report, err)
	}
}

func put(t testing.TB, cs *Store, req WriteRequest) Reference {
	t.Helper()
	return must[*WriteResult](t)(cs.Write(t.Context(), req)).Page
}

func read(t testing.TB, cs *Store, id string) *ReadResult {
	t.Helper()
	return must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: id}))
}

func TestRead(t *testing.T) {
	clock := &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	cs := scopeOf(t, openDB(t, t.TempDir(), clock), Config{Scope: Scope{"n", "s"}})
	first := clock.now().UnixMicro()
	put(t, cs, WriteRequest{PageID: "other", Content: "other"})
	put(t, cs, WriteRequest{PageID: "p", Title: "one", Content: "first <&> text\n", Tags: []string{"B", "a"}, Links: []string{"other"}})
	clock.at = clock.at.Add(5 * time.Second)
	put(t, cs, WriteRequest{PageID: "p", Title: "two", Content: "second", ExpectedVersion: new(int64(1)), Tier: Core, PinReason: "why", Importance: new(0.75), Source: "here"})

	got := read(t, cs, "p")
	want := &ReadResult{Content: "second", CurrentVersion: 2, Page: Reference{PageID: "p", Version: 2, Tier: Core, Mode: "full", Seq: 1, Title: "two",
		Tags: []string{}, Bytes: 6, Importance: 0.75, Source: "here", PinReason: "why", CreatedAtUS: first, UpdatedAtUS: clock.now().UnixMicro()}}
	if d := cmp.Diff(want, got, ignoreLinks); d != "" {
		t.Error(d)
	}
	old := must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "p", Version: new(int64(1))}))
	want = &ReadResult{Content: "first <&> text\n", CurrentVersion: 2, Page: Reference{PageID: "p", Version: 1, Tier: Core, Mode: "full", Seq: 1, Title: "one",
		Tags: []string{"a", "b"}, Bytes: 15, Importance: 0.5, Links: []string{"other"}, PinReason: "why", Hits: 1, CreatedAtUS: first, UpdatedAtUS: first}}
	if d := cmp.Diff(want, old, ignoreLinks); d != "" {
		t.Error(d)
	}

	history := must[*HistoryResult](t)(cs.History(t.Context(), HistoryRequest{PageID: "p"}))
	wantHistory := &HistoryResult{PageID: "p", Versions: []PageVersion{{1, first, 15, "write"}, {2, clock.now().UnixMicro(), 6, "write"}}}
	if d := cmp.Diff(wantHistory, history); d != "" {
		t.Error(d)
	}
}

func TestReadErrors(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p", Content: "text", Tier: Working})
	before := dumpOf(t, cs)
	for _, c := range []struct {
		req   ReadRequest
		code  Code
		field string
	}{
		{ReadRequest{}, ErrInvalidArgument, "page_id"},
		{ReadRequest{PageID: "a b"}, ErrInvalidArgument, "page_id"},
		{ReadRequest{PageID: strings.Repeat("x", MaxPageIDBytes+1)}, ErrInvalidArgument, "page_id"},
		{ReadRequest{PageID: "p", Version: new(int64(0))}, ErrInvalidArgument, "version"},
		{ReadRequest{PageID: "p", Version: new(int64(2))}, ErrNotFound, "version"},
		{ReadRequest{PageID: "q"}, ErrNotFound, "page_id"},
		{ReadRequest{PageID: "memory:1"}, ErrNotFound, "page_id"},
	} {
		out, err := cs.Read(t.Context(), c.req)
		if wantFail(t, err, c.code, c.field); out != nil {
			t.Errorf("%+v came with an error", out)
		}
	}
	for id, code := range map[string]Code{"": ErrInvalidArgument, "q": ErrNotFound} {
		_, err := cs.History(t.Context(), HistoryRequest{PageID: id})
		wantFail(t, err, code, "page_id")
	}
	sameDump(t, before, dumpOf(t, cs))
}

// TestUsesAreCounted reads and searches: that changes neither the window nor its
// epoch, is told at once, and is written with the next change and at the end.
func TestUsesAreCounted(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir, nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n"}})
	for _, id := range []string{"a", "b", "c"} {
		put(t, cs, WriteRequest{PageID: id, Content: "a lighthouse " + id, Tier: map[string]Tier{"a": Core, "b": Working, "c": Archive}[id]})
	}
	s := snapshot(t, cs)
	stored := func() (hits []int64) {
		for _, h := range dumpOf(t, cs).Heads {
			hits = append(hits, h.Hits)
		}
		return hits
	}
	revision := must[*loci.HealthReport](t)(db.Health(t.Context())).Revision
	for range 3 {
		read(t, cs, "a")
		must[*HistoryResult](t)(cs.History(t.Context(), HistoryRequest{PageID: "b"}))
	}
	must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "lighthouse"}))
	in := must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: "b"}))
	if in.Changed || in.Page.Hits != 5 {
		t.Errorf("a page of the window was paged in: %+v", in)
	}
	if now := snapshot(t, cs); now.Epoch != s.Epoch || now.Generation != s.Generation || now.SHA != s.SHA {
		t.Errorf("uses changed the window: %+v, it was %+v", now, s)
	}
	if got := must[*loci.HealthReport](t)(db.Health(t.Context())).Revision; got != revision {
		t.Errorf("uses were written: the store went from revision %d to %d", revision, got)
	}
	if got := stored(); !slices.Equal(got, []int64{0, 0, 0}) {
		t.Errorf("hits %v are stored before anything was written", got)
	}
	put(t, cs, WriteRequest{PageID: "d", Content: "x"})
	if got := stored(); !slices.Equal(got, []int64{4, 5, 1, 0}) {
		t.Errorf("hits %v were written with the next change", got)
	}
	read(t, cs, "d")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	cs = scopeOf(t, openDB(t, dir, nil), Config{Scope: Scope{"n"}})
	if got := stored(); !slices.Equal(got, []int64{4, 5, 1, 1}) {
		t.Errorf("hits %v are there after closing", got)
	}
	checkDeep(t, cs)
}

// ignoreLinks leaves out what a reference keeps for itself.
var ignoreLinks = cmpopts.IgnoreUnexported(Reference{})

// TestManyUses writes what was counted once it is too much to keep.
func TestManyUses(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p", Content: "text"})
	waiting := func(add int64) (n int) {
		err := cs.with(t.Context(), "look", func(s *scope) error {
			for id := range add {
				s.count(1000+id, 1, 1) // of pages that are gone
			}
			n = len(s.touches)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := waiting(maxTouches); n != maxTouches {
		t.Fatalf("%d wait", n)
	}
	read(t, cs, "p")
	if n := waiting(0); n != 0 {
		t.Errorf("%d wait to be written", n)
	}
	if heads := dumpOf(t, cs).Heads; len(heads) != 1 || heads[0].Hits != 1 {
		t.Errorf("%+v", heads)
	}
	read(t, cs, "p")
	if got := read(t, cs, "p").Page.Hits; got != 2 {
		t.Errorf("%d hits are told before the third read", got)
	}
}
