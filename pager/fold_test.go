package pager

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store"
)

func fold(t testing.TB, cs *Store, req FoldRequest) *FoldResult {
	t.Helper()
	return must[*FoldResult](t)(cs.Fold(t.Context(), req))
}

// newestEvent is the last change of the published bytes.
func newestEvent(t testing.TB, cs *Store) RenderEvent {
	t.Helper()
	return must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})).Events[0]
}

// coreOrder names the core pages in their order, rows with their seq.
func coreOrder(t testing.TB, cs *Store) (out []string) {
	t.Helper()
	err := cs.with(t.Context(), "test", func(s *scope) error {
		for _, r := range s.window.core {
			name := r.PageID
			if r.Outline {
				name += fmt.Sprintf(":%d@%d", r.Seq, r.RowVersion)
			}
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantCore(t testing.TB, cs *Store, want ...string) {
	t.Helper()
	if got := coreOrder(t, cs); !slices.Equal(got, want) {
		t.Errorf("core is %q, not %q", got, want)
	}
}

// TestFoldVector folds by hand, as the specification's vector has it: with
// another id, title and summary than fold gives.
func TestFoldVector(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	for _, n := range []string{"5", "6", "7", "8"} {
		writeRow(t, cs, n)
	}
	if s := snapshot(t, cs); s.TextBytes != 1485 || s.StablePrefixBytes != 1037 {
		t.Fatalf("before it are %d bytes, %d of them stable", s.TextBytes, s.StablePrefixBytes)
	}
	err := cs.mutate(t.Context(), "fold", func(c *change) error {
		rows := outlineRows(c.window.core)[:4]
		for _, r := range rows {
			n := c.edit(r)
			if err := c.setOutline(n, false); err != nil {
				return err
			}
			c.move(n, store.TierArchived, "fold")
		}
		p := milestone(rows, "")
		p.PageID, p.Summary = "m1", strings.Repeat("S", 60)
		if p.Title != "milestone 3–6" {
			t.Errorf("the title is %q", p.Title)
		}
		m := c.create(p)
		m.Seq = rows[0].Seq
		if err := c.setOutline(m, true); err != nil {
			return err
		}
		c.move(m, store.TierCore, "fold")
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, cs)
	e := newestEvent(t, cs)
	if s.TextBytes != 1160 || s.StablePrefixBytes != 712 || e.InvalidatedBytes != 1148 || e.RewrittenBytes != 823 || e.PrefixIntact {
		t.Errorf("after it are %d bytes, %d of them stable: %+v", s.TextBytes, s.StablePrefixBytes, e)
	}
}

func TestFold(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	for _, n := range []string{"5", "6", "7", "8"} {
		writeRow(t, cs, n)
	}
	snapshot(t, cs)
	got := fold(t, cs, FoldRequest{Keep: new(2)})
	m := got.Milestone
	if !got.Changed || got.Deferred || got.Reason != "" || got.Rows != 3 || m == nil {
		t.Fatalf("%+v", got)
	}
	if m.Title != "milestone 3–6" || m.Summary != "step 3 · step 4 · step 5 · step 6" || m.Seq != 3 || m.Mode != "index" || m.Tier != Core ||
		m.Version != 1 || !slices.Equal(m.Links, []string{"i3", "i4", "i5", "i6"}) || m.Importance != 0.5 {
		t.Errorf("the milestone is %+v", m)
	}
	for i, f := range got.Folded {
		if want := fmt.Sprintf("i%d", i+3); f.PageID != want || f.Tier != Archive || f.Mode != "full" || f.Version != 1 || f.Seq != 0 {
			t.Errorf("folded %+v", f)
		}
	}
	body := read(t, cs, m.PageID).Content
	for _, name := range []string{"i3@1 step 3: SSS", "i4@1 ", "i5@1 ", "i6@1 "} {
		if !strings.Contains(body, name) {
			t.Errorf("the body does not name %q: %q", name, body)
		}
	}
	if r := read(t, cs, "i3"); r.Content != "body of step 3" {
		t.Errorf("a folded body is %q", r.Content)
	}
	wantCore(t, cs, "a", "b", m.PageID+":3@1", "i7:7@1", "i8:8@1")
	snapshot(t, cs)
	e := newestEvent(t, cs)
	if e.PrefixIntact || e.CommonBytes != 337 || len(e.Operations) == 0 || e.Operations[0].Name != "fold" {
		t.Errorf("the event is %+v", e)
	}
	// A milestone that is folded gives its range, whatever was made of it.
	v := read(t, cs, m.PageID)
	put(t, cs, WriteRequest{PageID: m.PageID, ExpectedVersion: &v.Page.Version, Title: "里程碑", Summary: "mine", Content: "edited"})
	again := fold(t, cs, FoldRequest{Keep: new(1), Word: "里程碑"})
	if m := again.Milestone; m.Title != "里程碑 3–7" || m.Seq != 3 || m.Summary != "里程碑 · step 7" || !strings.Contains(read(t, cs, m.PageID).Content, got.Milestone.PageID+"@2") {
		t.Errorf("the second milestone is %+v", m)
	}
	wantCore(t, cs, "a", "b", again.Milestone.PageID+":3@1", "i8:8@1")
	checkDeep(t, cs)
}

// TestFoldRange makes a folded milestone the last row again.
func TestFoldRange(t *testing.T) {
	cs := openScope(t, Config{})
	for i := range 4 {
		writeRow(t, cs, fmt.Sprint(i))
	}
	first := fold(t, cs, FoldRequest{Keep: new(2)}).Milestone // 1–2
	for _, outline := range []bool{false, true} {
		v := read(t, cs, first.PageID).Page
		put(t, cs, WriteRequest{PageID: v.PageID, ExpectedVersion: &v.Version, Title: v.Title, Summary: v.Summary,
			Content: "x", Outline: new(outline), Links: v.Links, Source: v.Source})
	}
	writeRow(t, cs, "9")
	// Rows are now 3, 4, the milestone of 1–2 at 5, and 6.
	m := fold(t, cs, FoldRequest{Keep: new(1)}).Milestone
	if m.Title != "milestone 1–5" || m.Seq != 3 {
		t.Errorf("%+v", m)
	}
}

func TestFoldNothing(t *testing.T) {
	cs := openScope(t, Config{Budget: new(100_000)})
	before := dumpOf(t, cs)
	if got := fold(t, cs, FoldRequest{}); got.Changed || got.Rows != 0 || got.Reason == "" || got.Folded == nil {
		t.Errorf("an empty scope: %+v", got)
	}
	sameDump(t, before, dumpOf(t, cs))
	for i := range 13 {
		writeRow(t, cs, fmt.Sprint(i))
	}
	before = dumpOf(t, cs)
	if got := fold(t, cs, FoldRequest{}); got.Changed || got.Rows != 13 || got.Milestone != nil {
		t.Errorf("one row too many: %+v", got)
	}
	for _, c := range []struct {
		req   FoldRequest
		code  Code
		field string
	}{
		{FoldRequest{Keep: new(0)}, ErrInvalidArgument, "keep"},
		{FoldRequest{Keep: new(31)}, ErrInvalidArgument, "keep"},
		{FoldRequest{Word: "\xff"}, ErrInvalidArgument, "word"},
		{FoldRequest{Word: " \n"}, ErrInvalidArgument, "word"},
		{FoldRequest{Word: strings.Repeat("x", 65)}, ErrTooLarge, "word"},
	} {
		_, err := cs.Fold(t.Context(), c.req)
		wantFail(t, err, c.code, c.field)
	}
	sameDump(t, before, dumpOf(t, cs))
	writeRow(t, cs, "x")
	if got := fold(t, cs, FoldRequest{}); !got.Changed || got.Rows != 13 || len(got.Folded) != 2 {
		t.Errorf("two rows too many: %+v", got)
	}
}

// TestFoldFull folds as many rows as there can be, with titles as long as they
// can be.
func TestFoldFull(t *testing.T) {
	cs := openScope(t, Config{Budget: new(100_000)})
	for i := range MaxOutlineRows {
		put(t, cs, WriteRequest{PageID: fmt.Sprint("r", i), Title: strings.Repeat("字", 66), Summary: strings.Repeat("s", 240),
			Content: "x", Outline: new(true)})
	}
	_, err := cs.Write(t.Context(), WriteRequest{Title: "t", Summary: "s", Content: "x", Outline: new(true)})
	wantFail(t, err, ErrOutlineFull, "outline")
	got := fold(t, cs, FoldRequest{Keep: new(1), Word: strings.Repeat("w", 64)})
	if m := got.Milestone; len(got.Folded) != 31 || len(m.Links) != 31 || len(m.Summary) != 238 || m.Title != strings.Repeat("w", 64)+" 1–31" ||
		strings.Count(read(t, cs, m.PageID).Content, "\n") != 31 {
		t.Errorf("%+v", m)
	}
	checkDeep(t, cs)
}

// TestFoldWaits folds while the provider's cache is warm.
func TestFoldWaits(t *testing.T) {
	clock := &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	cs := scopeOf(t, openDB(t, t.TempDir(), clock), Config{Scope: Scope{"n"}, Budget: new(100_000)})
	for i := range 5 {
		writeRow(t, cs, fmt.Sprint(i))
	}
	must[*SetPolicyResult](t)(cs.SetPolicy(t.Context(), SetPolicyRequest{Provider: new("anthropic-5m")}))
	must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1000}))
	before := dumpOf(t, cs)
	if got := fold(t, cs, FoldRequest{Keep: new(1)}); got.Changed || !got.Deferred || !strings.Contains(got.Reason, "warm") || got.Rows != 5 {
		t.Errorf("warm: %+v", got)
	}
	sameDump(t, before, dumpOf(t, cs))
	if got := fold(t, cs, FoldRequest{Keep: new(3), Force: true}); !got.Changed || got.Deferred {
		t.Errorf("forced: %+v", got)
	}
	clock.at = clock.at.Add(time.Hour)
	if got := fold(t, cs, FoldRequest{Keep: new(1)}); !got.Changed {
		t.Errorf("cold: %+v", got)
	}
	for i := range 30 {
		writeRow(t, cs, fmt.Sprint("more", i))
	}
	must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1000}))
	if got := fold(t, cs, FoldRequest{}); !got.Changed {
		t.Errorf("warm and full: %+v", got)
	}
}
