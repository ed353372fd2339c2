package pager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

func TestCompact(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: "x", Title: "t", Summary: "s", Content: strings.Repeat("字", 50), Tags: []string{"k"}, Source: "src",
		Importance: new(0.9), Links: []string{"a"}, Tier: Working})
	first := snapshot(t, cs)
	got := must[*CompactResult](t)(cs.Compact(t.Context(), CompactRequest{PageID: "x", Summary: "短", ExpectedVersion: new(int64(1))}))
	p := got.Page
	if got.PreviousBytes != 150 || got.SavedBytes != 147 || p.Version != 2 || p.Bytes != 3 || p.Tier != Working || p.Title != "t" || p.Summary != "s" ||
		p.Source != "src" || p.Importance != 0.9 || len(p.Links) != 1 || p.Links[0] != "a" || len(p.Tags) != 1 || len(got.Evicted) != 0 {
		t.Errorf("%+v", got)
	}
	if r := read(t, cs, "x"); r.Content != "短" {
		t.Error(r.Content)
	}
	old := must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "x", Version: new(int64(1))}))
	if old.Content != strings.Repeat("字", 50) {
		t.Error("the old text is gone")
	}
	s := snapshot(t, cs)
	if e := newestEvent(t, cs); s.TextBytes != first.TextBytes-147 || !e.PrefixIntact || e.Operations[0] != (Operation{"compact", "x"}) {
		t.Errorf("%+v", e)
	}
	// The row of an outline page stays as it is.
	must[*CompactResult](t)(cs.Compact(t.Context(), CompactRequest{PageID: "i3", Summary: "body", ExpectedVersion: new(int64(1))}))
	if after := snapshot(t, cs); after.SHA != s.SHA {
		t.Error("the row changed")
	}
	// A core page is rewritten.
	must[*CompactResult](t)(cs.Compact(t.Context(), CompactRequest{PageID: "a", Summary: "R", ExpectedVersion: new(int64(1))}))
	if snapshot(t, cs); newestEvent(t, cs).PrefixIntact {
		t.Error("the prefix is said to be intact")
	}
	checkDeep(t, cs)
}

// copyInto makes a memory and pages a copy of it in.
func copyInto(t testing.TB, db *loci.DB, cs *Store, content string) Reference {
	t.Helper()
	m := must[*loci.Receipt[loci.Memory]](t)(db.Memories().Upsert(t.Context(), loci.MemoryInput{Judgment: content, RecordInput: loci.RecordInput{Namespace: &cs.scope[0]}})).Value
	return must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: fmt.Sprint("memory:", int64(m.ID))})).Page
}

func TestCompactRefuses(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	put(t, cs, WriteRequest{PageID: "x", Content: "12345", Tier: Working})
	put(t, cs, WriteRequest{PageID: "x", Content: "123456", ExpectedVersion: new(int64(1))})
	copied := copyInto(t, db, cs, "a memory of some length")
	before := dumpOf(t, cs)
	two := new(int64(2))
	for _, c := range []struct {
		name    string
		req     CompactRequest
		code    Code
		field   string
		details map[string]any
	}{
		{"no page", CompactRequest{Summary: "1", ExpectedVersion: two}, ErrInvalidArgument, "page_id", nil},
		{"another page", CompactRequest{PageID: "y", Summary: "1", ExpectedVersion: two}, ErrNotFound, "page_id", nil},
		{"nothing", CompactRequest{PageID: "x", ExpectedVersion: two}, ErrInvalidArgument, "summary", nil},
		{"no UTF-8", CompactRequest{PageID: "x", Summary: "\xff", ExpectedVersion: two}, ErrInvalidArgument, "summary", nil},
		{"too long", CompactRequest{PageID: "x", Summary: strings.Repeat("x", MaxContentBytes+1), ExpectedVersion: two}, ErrTooLarge, "summary", nil},
		{"no version", CompactRequest{PageID: "x", Summary: "1"}, ErrInvalidArgument, "expected_version", nil},
		{"version 0", CompactRequest{PageID: "x", Summary: "1", ExpectedVersion: new(int64(0))}, ErrInvalidArgument, "expected_version", nil},
		{"an old version", CompactRequest{PageID: "x", Summary: "1", ExpectedVersion: new(int64(1))}, ErrVersionConflict, "expected_version", map[string]any{"current": int64(2)}},
		{"as long", CompactRequest{PageID: "x", Summary: "abcdef", ExpectedVersion: two}, ErrNotShorter, "summary", map[string]any{"bytes": 6, "current_bytes": 6}},
		{"longer in bytes", CompactRequest{PageID: "x", Summary: "字字字", ExpectedVersion: two}, ErrNotShorter, "summary", map[string]any{"bytes": 9, "current_bytes": 6}},
		{"a copy", CompactRequest{PageID: copied.PageID, Summary: "1", ExpectedVersion: &copied.Version}, ErrInvalidArgument, "page_id", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := cs.Compact(t.Context(), c.req)
			e := wantFail(t, err, c.code, c.field)
			for key, want := range c.details {
				if e.Details[key] != want {
					t.Errorf("%s is %v", key, e.Details[key])
				}
			}
			sameDump(t, before, dumpOf(t, cs))
		})
	}
}
