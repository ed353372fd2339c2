package pager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

func checkpoint(t testing.TB, cs *Store, label string) CheckpointInfo {
	t.Helper()
	return must[*CheckpointResult](t)(cs.Checkpoint(t.Context(), CheckpointRequest{Label: label})).Checkpoint
}

func restore(t testing.TB, cs *Store, id loci.ID) *RestoreResult {
	t.Helper()
	return must[*RestoreResult](t)(cs.Restore(t.Context(), RestoreRequest{CheckpointID: id}))
}

func TestCheckpoints(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	if got := must[*CheckpointsResult](t)(cs.Checkpoints(t.Context(), CheckpointsRequest{})); got.Checkpoints == nil || got.Total != 0 {
		t.Errorf("%+v", got)
	}
	empty := checkpoint(t, cs, "")
	if empty.CheckpointID == 0 || empty.Pages != 0 {
		t.Errorf("%+v", empty)
	}
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: "z", Content: "z"})
	s := snapshot(t, cs)
	one := checkpoint(t, cs, "first\x00字")
	if one.Pages != 7 || one.Core != 4 || one.Working != 2 || one.Archive != 1 || one.Label != "first\x00字" || one.CreatedAtUS == 0 {
		t.Errorf("%+v", one)
	}
	if after := snapshot(t, cs); after.SHA != s.SHA || after.Epoch != s.Epoch || after.Generation != s.Generation {
		t.Error("a checkpoint changed the window")
	}
	var ids []loci.ID
	for i := range 3 {
		ids = append(ids, checkpoint(t, cs, fmt.Sprint(i)).CheckpointID)
	}
	want := []loci.ID{ids[2], ids[1], ids[0], one.CheckpointID, empty.CheckpointID}
	var got []loci.ID
	req := CheckpointsRequest{Limit: new(2)}
	for range 3 {
		r := must[*CheckpointsResult](t)(cs.Checkpoints(t.Context(), req))
		for _, c := range r.Checkpoints {
			if c.CheckpointID == one.CheckpointID && c != one {
				t.Errorf("%+v became %+v", one, c)
			}
			got = append(got, c.CheckpointID)
		}
		if req.After = r.NextCursor; r.Total != 5 || (req.After == 0) != (len(got) == 5) {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	other := scopeOf(t, db, Config{Scope: Scope{"project", "other"}})
	if r := must[*CheckpointsResult](t)(other.Checkpoints(t.Context(), CheckpointsRequest{})); r.Total != 0 {
		t.Errorf("another scope sees %+v", r)
	}
	before := dumpOf(t, cs)
	_, err := cs.Checkpoint(t.Context(), CheckpointRequest{Label: strings.Repeat("x", 201)})
	wantFail(t, err, ErrTooLarge, "label")
	_, err = cs.Checkpoint(t.Context(), CheckpointRequest{Label: "\xff"})
	wantFail(t, err, ErrInvalidArgument, "label")
	for _, req := range []CheckpointsRequest{{Limit: new(0)}, {Limit: new(1001)}, {After: -1}} {
		_, err = cs.Checkpoints(t.Context(), req)
		wantFail(t, err, ErrInvalidArgument, "")
	}
	for _, id := range []loci.ID{0, -1} {
		_, err = cs.Restore(t.Context(), RestoreRequest{CheckpointID: id})
		wantFail(t, err, ErrInvalidArgument, "checkpoint_id")
	}
	_, err = cs.Restore(t.Context(), RestoreRequest{CheckpointID: 1 << 40})
	wantFail(t, err, ErrNotFound, "checkpoint_id")
	sameDump(t, before, dumpOf(t, cs))
	fresh := scopeOf(t, db, Config{Scope: Scope{"project", "fresh"}})
	for _, cs := range []*Store{other, fresh} {
		put(t, other, WriteRequest{Content: "x"})
		_, err = cs.Restore(t.Context(), RestoreRequest{CheckpointID: one.CheckpointID})
		wantFail(t, err, ErrNotFound, "checkpoint_id")
	}
}

// TestRestoreAtOnce restores what has not changed.
func TestRestoreAtOnce(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: "z", Content: "z"})
	snapshot(t, cs)
	c := checkpoint(t, cs, "")
	read(t, cs, "w1")
	before := dumpOf(t, cs)
	if got := restore(t, cs, c.CheckpointID); got.Changed || got.Restored == nil || got.Moved == nil || got.Forgotten == nil || got.Evicted == nil {
		t.Errorf("%+v", got)
	}
	sameDump(t, before, dumpOf(t, cs))
}

func TestRestore(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: "arch", Title: "t", Content: "first", Tags: []string{"k"}, Source: "s", Importance: new(0.7), Links: []string{"a"}, Summary: "sum"})
	put(t, cs, WriteRequest{PageID: "back", Content: "first"})
	put(t, cs, WriteRequest{PageID: "gone", Content: "to be forgotten"})
	// The body of a row is edited, so that its version and its row's differ.
	put(t, cs, WriteRequest{PageID: "i3", ExpectedVersion: new(int64(1)), Title: "step 3", Summary: strings.Repeat("S", 40), Content: "edited"})
	was := snapshot(t, cs)
	c := checkpoint(t, cs, "before")

	put(t, cs, WriteRequest{PageID: "arch", ExpectedVersion: new(int64(1)), Content: "second"})
	put(t, cs, WriteRequest{PageID: "back", ExpectedVersion: new(int64(1)), Content: "second"})
	put(t, cs, WriteRequest{PageID: "back", ExpectedVersion: new(int64(2)), Content: "first"}) // as it was
	put(t, cs, WriteRequest{PageID: "later", Content: "later", Tier: Core})
	put(t, cs, WriteRequest{PageID: "later2", Content: "later", Tier: Working})
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: "w1"}))
	must[*UnpinResult](t)(cs.Unpin(t.Context(), UnpinRequest{PageID: "a"}))
	must[*ForgetResult](t)(cs.Forget(t.Context(), ForgetRequest{PageID: "gone"}))
	if got := fold(t, cs, FoldRequest{Keep: new(1)}); got.Changed {
		t.Fatal("there were only two rows")
	}
	writeRow(t, cs, "5")
	m := fold(t, cs, FoldRequest{Keep: new(1)}).Milestone
	snapshot(t, cs)
	state := scopeState(t, cs)

	got := restore(t, cs, c.CheckpointID)
	if want := []RestoredPage{{"arch", 3, 1}}; !got.Changed || !slices.Equal(got.Restored, want) || len(got.Forgotten) != 1 || len(got.Evicted) != 0 {
		t.Errorf("%+v", got)
	}
	moved := map[string]MovedPage{}
	for _, m := range got.Moved {
		moved[m.PageID] = m
	}
	for _, want := range []MovedPage{{"a", Working, Core}, {"w1", Archive, Working}, {"i3", Archive, Core}, {"i4", Archive, Core}, {"i5", Core, Archive},
		{m.PageID, Core, Archive}, {"later", Core, Archive}, {"later2", Working, Archive}} {
		if moved[want.PageID] != want {
			t.Errorf("%+v, not %+v", moved[want.PageID], want)
		}
		delete(moved, want.PageID)
	}
	if len(moved) != 0 {
		t.Errorf("moved besides: %v", moved)
	}
	s := snapshot(t, cs)
	if *s.Text != *was.Text || s.SHA != was.SHA || s.Generation <= was.Generation {
		t.Errorf("the text is\n%s, not\n%s", *s.Text, *was.Text)
	}
	p := read(t, cs, "arch")
	if r := p.Page; p.Content != "first" || r.Version != 3 || r.Title != "t" || r.Source != "s" || r.Importance != 0.7 || r.Summary != "sum" ||
		!slices.Equal(r.Links, []string{"a"}) || !slices.Equal(r.Tags, []string{"k"}) {
		t.Errorf("%+v", p)
	}
	h := must[*HistoryResult](t)(cs.History(t.Context(), HistoryRequest{PageID: "arch"}))
	if v := h.Versions; len(v) != 3 || v[2].Operation != "restore" {
		t.Errorf("%+v", v)
	}
	if p := read(t, cs, "back").Page; p.Version != 3 {
		t.Errorf("equal content became %+v", p)
	}
	now := scopeState(t, cs)
	if now.NextSeq != state.NextSeq || now.NextAdmission != state.NextAdmission || now.NextPage != state.NextPage {
		t.Errorf("the numbers went from %+v to %+v", state, now)
	}
	if found := must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "second"})); len(found.Results) != 0 {
		t.Errorf("found %+v", found.Results)
	}
	for _, m := range must[*Dashboard](t)(cs.Dashboard(t.Context(), DashboardRequest{})).Residency {
		if m.Operation == "restore" && (m.Reason != "restore" || m.Fault) {
			t.Errorf("the ledger has %+v", m)
		}
	}
	// Again: nothing to do.
	before := dumpOf(t, cs)
	if got := restore(t, cs, c.CheckpointID); got.Changed || len(got.Forgotten) != 1 {
		t.Errorf("%+v", got)
	}
	sameDump(t, before, dumpOf(t, cs))
	// What was seen in the window before is in the archive, and comes back.
	if r := must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: "later"})); r.Page.Tier != Working {
		t.Errorf("%+v", r)
	}
	checkDeep(t, cs)
}

// scopeState is the scope's state.
func scopeState(t testing.TB, cs *Store) (st state) {
	t.Helper()
	if err := cs.with(t.Context(), "test", func(s *scope) error { st = s.state; return nil }); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestRestoreRows brings rows back whose text or body has changed since.
func TestRestoreRows(t *testing.T) {
	cs := openScope(t, Config{})
	for _, n := range []string{"1", "2", "3"} {
		writeRow(t, cs, n)
	}
	was := snapshot(t, cs)
	c := checkpoint(t, cs, "")
	summary := strings.Repeat("S", 40)
	// A row with another text, one taken out with another body, and one taken out
	// with another text.
	put(t, cs, WriteRequest{PageID: "i1", ExpectedVersion: new(int64(1)), Title: "other", Summary: summary, Content: "body of step 1"})
	put(t, cs, WriteRequest{PageID: "i2", ExpectedVersion: new(int64(1)), Title: "step 2", Summary: summary, Content: "other", Outline: new(false)})
	put(t, cs, WriteRequest{PageID: "i3", ExpectedVersion: new(int64(1)), Title: "other", Summary: summary, Content: "body of step 3", Outline: new(false)})
	restore(t, cs, c.CheckpointID)
	wantCore(t, cs, "i1:1@3", "i2:2@1", "i3:3@3")
	want := strings.ReplaceAll(*was.Text, `"id":"i1","version":1`, `"id":"i1","version":3`)
	want = strings.ReplaceAll(want, `"id":"i3","version":1`, `"id":"i3","version":3`)
	if s := snapshot(t, cs); *s.Text != want {
		t.Errorf("the text is %s", *s.Text)
	}
	checkDeep(t, cs)
}

// TestRestoreBudget restores into a budget that was lowered since.
func TestRestoreBudget(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	scope := Scope{"project", "s"}
	cs := scopeOf(t, db, Config{Scope: scope, Budget: new(4000)})
	put(t, cs, WriteRequest{PageID: "core", Content: strings.Repeat("c", 500), Tier: Core})
	put(t, cs, WriteRequest{PageID: "w1", Content: strings.Repeat("1", 500), Tier: Working})
	put(t, cs, WriteRequest{PageID: "w2", Content: strings.Repeat("2", 500), Tier: Working})
	c := checkpoint(t, cs, "")
	must[*UnpinResult](t)(cs.Unpin(t.Context(), UnpinRequest{PageID: "core"}))
	put(t, cs, WriteRequest{PageID: "core", ExpectedVersion: new(int64(1)), Content: "small", Tier: Archive})
	small := scopeOf(t, db, Config{Scope: scope, Budget: new(1300), Reconfigure: true})
	got := restore(t, small, c.CheckpointID)
	if len(got.Evicted) != 1 || got.Evicted[0].PageID != "w1" || len(got.Restored) != 1 {
		t.Errorf("%+v", got)
	}
	if s := snapshot(t, small); s.Pressure.Cost > 1300 {
		t.Errorf("%+v", s.Pressure)
	}
	put(t, small, WriteRequest{PageID: "core", ExpectedVersion: new(int64(3)), Content: "small", Tier: Archive})
	tiny := scopeOf(t, db, Config{Scope: scope, Budget: new(300), Reconfigure: true})
	before := dumpOf(t, tiny)
	_, err := tiny.Restore(t.Context(), RestoreRequest{CheckpointID: c.CheckpointID})
	e := wantFail(t, err, ErrCoreOverBudget, "")
	if e.Details["budget"] != 300 {
		t.Errorf("%+v", e.Details)
	}
	sameDump(t, before, dumpOf(t, tiny))
	checkDeep(t, tiny)
}

// TestRestoreCopies moves copies of records and leaves their text to the record.
func TestRestoreCopies(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	copied := copyInto(t, db, cs, "the record as it was")
	gone := copyInto(t, db, cs, "another record")
	c := checkpoint(t, cs, "")
	_, number, _ := copyOf(copied.PageID)
	must[*loci.Receipt[loci.Memory]](t)(db.Memories().Upsert(t.Context(), loci.MemoryInput{Judgment: "the record as it is",
		RecordInput: loci.RecordInput{ID: loci.ID(number), Namespace: new("project")}}))
	must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: copied.PageID}))
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: copied.PageID}))
	must[*ForgetResult](t)(cs.Forget(t.Context(), ForgetRequest{PageID: gone.PageID}))
	again := must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: gone.PageID})).Page
	got := restore(t, cs, c.CheckpointID)
	if len(got.Restored) != 0 || len(got.Forgotten) != 1 || !slices.Equal(got.Moved, []MovedPage{{copied.PageID, Archive, Working}, {again.PageID, Working, Archive}}) {
		t.Errorf("%+v", got)
	}
	if r := read(t, cs, copied.PageID); r.Content != "the record as it is" || r.Page.Tier != Working {
		t.Errorf("%+v", r)
	}
	checkDeep(t, cs)
}

// TestRestoredRowBytes holds that folded rows come back with the bytes that they
// had, also one that became a row later than its title was last changed.
func TestRestoredRowBytes(t *testing.T) {
	cs := openScope(t, Config{})
	write := must[*WriteResult](t)
	write(cs.Write(t.Context(), WriteRequest{PageID: "late", Title: "step", Summary: "as it was", Content: "first"}))
	write(cs.Write(t.Context(), WriteRequest{PageID: "late", Title: "step", Summary: "as it was", Content: "second",
		ExpectedVersion: new(int64(1)), Outline: new(true)}))
	for _, n := range []string{"3", "4", "5"} {
		writeRow(t, cs, n)
	}
	before := snapshot(t, cs)
	point := must[*CheckpointResult](t)(cs.Checkpoint(t.Context(), CheckpointRequest{}))
	if folded := must[*FoldResult](t)(cs.Fold(t.Context(), FoldRequest{Keep: new(1)})); !folded.Changed {
		t.Fatal("nothing was folded")
	}
	must[*RestoreResult](t)(cs.Restore(t.Context(), RestoreRequest{CheckpointID: point.Checkpoint.CheckpointID}))
	if after := snapshot(t, cs); after.SHA != before.SHA {
		t.Errorf("restored:\n%s\nbefore:\n%s", *after.Text, *before.Text)
	}
}
