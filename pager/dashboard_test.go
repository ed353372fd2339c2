package pager

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
)

func dashboard(t testing.TB, cs *Store) *Dashboard {
	t.Helper()
	return must[*Dashboard](t)(cs.Dashboard(t.Context(), DashboardRequest{}))
}

func status(t testing.TB, cs *Store, req StatusRequest) *StatusResult {
	t.Helper()
	return must[*StatusResult](t)(cs.Status(t.Context(), req))
}

// noNulls checks that a result holds lists where it promises some.
func noNulls(t testing.TB, v any, allowed ...string) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, name := range allowed {
		text = strings.ReplaceAll(text, `"`+name+`":null`, "")
	}
	if i := strings.Index(text, ":null"); i >= 0 {
		t.Errorf("a null where there should be a value: ...%s", text[max(0, i-40):i+5])
	}
}

func TestDashboardEmpty(t *testing.T) {
	cs := openScope(t, Config{})
	got := dashboard(t, cs)
	noNulls(t, got, "hit_rate", "intact_share", "last_turn_id")
	if got.Now.Cost != 33 || got.Now.TextBytes != 33 || got.Now.StablePrefixBytes != 17 || got.Now.Pressure != "low" || got.Now.Generation != 0 ||
		len(got.Pages)+len(got.Warnings)+len(got.Usage.Costs) != 0 || got.Totals != (Totals{}) || got.Composition != (Composition{}) {
		t.Errorf("an empty scope: %+v", got)
	}
	st := status(t, cs, StatusRequest{})
	noNulls(t, st)
	if st.Configuration != (Configuration{Budget: 8192, Unit: UnitBytes}) || st.Backend.Name != "loci" || st.Backend.SchemaVersion == 0 ||
		!st.Backend.IndexUsable || len(st.Pages) != 0 || st.NextCursor != 0 || st.Snapshot.Text != nil || st.Snapshot.TextBytes != 33 {
		t.Errorf("its status: %+v", st)
	}
	m := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{}))
	noNulls(t, m, "intact_share")
	for _, req := range []DashboardRequest{{Events: new(0)}, {Events: new(1001)}} {
		_, err := cs.Dashboard(t.Context(), req)
		wantFail(t, err, ErrInvalidArgument, "events")
	}
	for _, limit := range []int{0, 1001, -1} {
		_, err := cs.Metrics(t.Context(), MetricsRequest{Limit: &limit})
		wantFail(t, err, ErrInvalidArgument, "limit")
		_, err = cs.Status(t.Context(), StatusRequest{Limit: &limit})
		wantFail(t, err, ErrInvalidArgument, "limit")
	}
	_, err := cs.Status(t.Context(), StatusRequest{After: -1})
	wantFail(t, err, ErrInvalidArgument, "after")
	if status(t, cs, StatusRequest{}).Configuration.Stored {
		t.Error("looking stored the scope")
	}
}

// TestDashboard looks at the specification's base after some of its changes.
func TestDashboard(t *testing.T) {
	clock := &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	cs := scopeOf(t, openDB(t, t.TempDir(), clock), Config{Scope: Scope{"project", "session"}})
	writeBase(t, cs)
	snapshot(t, cs)
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "w2", Title: "plan", Content: strings.Repeat("Q", 80), ExpectedVersion: new(int64(1))}))
	snapshot(t, cs) // 137 of 137
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "a", Title: "rules", Content: strings.Repeat("r", 100), ExpectedVersion: new(int64(1))}))
	snapshot(t, cs) // 976 of 976, not intact
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: "w1"}))
	clock.at = clock.at.Add(1500 * time.Millisecond)
	must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "w2"}))
	clock.at = clock.at.Add(2 * time.Second)
	record(t, cs, RecordUsageRequest{InputTokens: 1000, CacheReadTokens: 8000, CacheWriteTokens: 1000})
	record(t, cs, RecordUsageRequest{InputTokens: 5, Source: "simulated"})
	tick(t, cs, PolicyTickRequest{TurnID: new(int64(3))})

	before := dumpOf(t, cs)
	got := dashboard(t, cs)
	if d := cmp.Diff(before, dumpOf(t, cs)); d != "" {
		t.Errorf("looking changed something:\n%s", d)
	}
	if got.AtUS != clock.at.UnixMicro() || got.Scope[1] != "session" {
		t.Errorf("of %v at %d", got.Scope, got.AtUS)
	}
	want := DashboardNow{Cost: 737, Budget: 8192, Unit: UnitBytes, Used: 737.0 / 8192, CoreCost: 565 + 16, StablePrefixBytes: 565, TextBytes: 737,
		Generation: 3, Epoch: got.Now.Epoch, Pressure: "low", Unpublished: true}
	if d := cmp.Diff(want, got.Now); d != "" {
		t.Errorf("now:\n%s", d)
	}
	composition := Composition{Core: TierShare{4, 100 + 60 + 2*int64(len("body of step 3")), 565 - 17}, Working: TierShare{1, 80, 737 - 565 - 16}, Archive: TierShare{1, 200, 0}}
	if d := cmp.Diff(composition, got.Composition); d != "" {
		t.Errorf("composition:\n%s", d)
	}
	if counts := status(t, cs, StatusRequest{}).Counts; counts != composition {
		t.Errorf("status counts %+v", counts)
	}
	var pages []string
	for _, p := range got.Pages {
		pages = append(pages, fmt.Sprintf("%s@%d %s %s %d %d hits %d idle %d %v", p.PageID, p.Version, p.Title, p.Segment, p.Bytes, p.RenderedBytes, p.Hits, *p.IdleMS, p.Outline))
	}
	if d := cmp.Diff([]string{
		"a@2 rules 2 100 176 hits 0 idle 3500 false", "b@1 goal 2 60 136 hits 0 idle 3500 false",
		"i3@1 step 3 2 14 118 hits 0 idle 3500 true", "i4@1 step 4 2 14 118 hits 0 idle 3500 true",
		"w2@2 plan 3 80 156 hits 1 idle 2000 false", "w1@1 log archive 200 0 hits 0 idle 3500 false",
	}, pages); d != "" {
		t.Errorf("pages:\n%s", d)
	}
	if d := cmp.Diff(Totals{Renders: 3, InvalidatedBytes: 137 + 976, RewrittenBytes: 137 + 976, Intact: 1, IntactShare: new(0.5)}, got.Totals); d != "" {
		t.Errorf("totals:\n%s", d)
	}
	if len(got.Renders) != 3 || got.Renders[0].InvalidatedBytes != 976 || got.Renders[0].PrefixIntact || !got.Renders[2].First {
		t.Errorf("renders: %+v", got.Renders)
	}
	if d := cmp.Diff(got.Renders[:2], must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{Limit: new(2)})).Events); d != "" {
		t.Errorf("metrics:\n%s", d)
	}
	if m := got.Residency[0]; m.PageID != "w1" || m.From != "working" || m.To != "archive" || m.Operation != "page_out" || m.Bytes != 200 {
		t.Errorf("the ledger begins with %+v", m)
	}
	if len(got.Usage.Records) != 2 || !got.Usage.Records[0].Simulated || len(got.Usage.Costs) != 2*len(Profiles()) || got.Usage.Costs[0].Ratio != 0.305 ||
		!got.Usage.Costs[len(Profiles())].Simulated {
		t.Errorf("usage: %+v", got.Usage)
	}
	if got.Replacement.Policy != defaultPolicy() || got.Replacement.State.Turns != 1 || *got.Replacement.State.LastTurnID != 3 {
		t.Errorf("replacement: %+v", got.Replacement)
	}
	if one := must[*Dashboard](t)(cs.Dashboard(t.Context(), DashboardRequest{Events: new(1)})); len(one.Renders) != 1 || len(one.Residency) != 1 || len(one.Usage.Records) != 1 || one.Totals.Renders != 3 {
		t.Errorf("of one event: %+v", one)
	}
	noNulls(t, got, "hit_rate")
	snapshot(t, cs)
	if dashboard(t, cs).Now.Unpublished {
		t.Error("what was published counts as unpublished")
	}
}

// TestDashboardArchive shows the archived pages that were used last, those too
// whose use waits in memory.
func TestDashboardArchive(t *testing.T) {
	cs := openScope(t, Config{})
	const pages = 3*dashboardArchive + 7
	for i := range pages {
		must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: fmt.Sprintf("p%d", i), Content: "x"}))
	}
	for _, id := range []string{"p5", "p0", "p300"} {
		must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: id}))
	}
	want := []string{"p300", "p0", "p5"}
	for i := pages - 1; len(want) < dashboardArchive; i-- {
		want = append(want, fmt.Sprintf("p%d", i))
	}
	got := dashboard(t, cs)
	var shown []string
	for _, p := range got.Pages {
		shown = append(shown, p.PageID)
	}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("shown:\n%s", d)
	}
	if got.PagesLeftOut != pages-dashboardArchive || got.Composition.Archive.Pages != pages {
		t.Errorf("%d left out of %d", got.PagesLeftOut, got.Composition.Archive.Pages)
	}
	if got.Pages[0].Hits != 1 || got.Pages[3].Hits != 0 {
		t.Errorf("hits: %+v", got.Pages[:4])
	}
}

// TestStatusPages walks over all references, a few at a time.
func TestStatusPages(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "last", Content: "x", Tags: []string{"b", "a"}, Links: []string{"w1"}, Source: "here"}))
	must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "last"}))
	all := status(t, cs, StatusRequest{})
	if d := cmp.Diff([]string{"a", "b", "i3", "i4", "w1", "w2", "last"}, ids(all.Pages)); d != "" || all.NextCursor != 0 {
		t.Errorf("all pages, cursor %d:\n%s", all.NextCursor, d)
	}
	last := all.Pages[6]
	if d := cmp.Diff([]string{"w1"}, last.Links); d != "" || last.Hits != 1 || last.Source != "here" || len(last.Tags) != 2 {
		t.Errorf("the last reference: %+v", last)
	}
	for limit := 1; limit <= 8; limit++ {
		var walked []string
		cursor := loci.ID(0)
		for {
			got := status(t, cs, StatusRequest{Limit: &limit, After: cursor})
			walked = append(walked, ids(got.Pages)...)
			if cursor = got.NextCursor; cursor == 0 {
				break
			}
			if len(got.Pages) != limit {
				t.Fatalf("%d pages of %d, and more to come", len(got.Pages), limit)
			}
		}
		if d := cmp.Diff(ids(all.Pages), walked); d != "" {
			t.Errorf("by %d:\n%s", limit, d)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), strings.Repeat("R", 100)) || strings.Contains(string(raw), strings.Repeat("L", 200)) {
		t.Error("the status holds content")
	}
	snap := snapshot(t, cs)
	got := status(t, cs, StatusRequest{})
	snap.Text, snap.Changed = nil, false
	if d := cmp.Diff(*snap, got.Snapshot); d != "" {
		t.Errorf("its snapshot:\n%s", d)
	}
	if got.Configuration.Stored != true || got.Policy != defaultPolicy() {
		t.Errorf("%+v", got)
	}
}

func codes(list []Warning) (out []string) {
	for _, w := range list {
		out = append(out, w.Code)
	}
	return out
}

func TestWarnings(t *testing.T) {
	clock := &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	db := openDB(t, t.TempDir(), clock)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	check := func(name string, want ...string) []Warning {
		t.Helper()
		st, dash := status(t, cs, StatusRequest{}), dashboard(t, cs)
		if d := cmp.Diff(want, codes(st.Warnings)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		if d := cmp.Diff(st.Warnings, dash.Warnings); d != "" {
			t.Errorf("%s: the dashboard warns otherwise:\n%s", name, d)
		}
		if d := cmp.Diff(st.Fold, dash.Fold); d != "" {
			t.Errorf("%s: the dashboard estimates otherwise:\n%s", name, d)
		}
		return st.Warnings
	}
	writeBase(t, cs)
	check("the base")
	setPolicy(t, cs, SetPolicyRequest{Provider: new("gemini-pro")})
	if w := check("a small budget", "below_min_prefix"); w[0].Value != 2048 || w[0].Limit != 4096 || !strings.Contains(w[0].Message, "at 4 bytes each") {
		t.Errorf("%+v", w)
	}
	setPolicy(t, cs, SetPolicyRequest{Provider: new("anthropic-5m")})
	check("a budget that is enough")
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "big", Content: strings.Repeat("b", 3400), Tier: Core}))
	core := dashboard(t, cs).Now.CoreCost
	if 2*core > 8192 {
		t.Fatalf("core takes %d", core)
	}
	check("core just below half")
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "big", Content: strings.Repeat("b", 3400+4097-core), ExpectedVersion: new(int64(1))}))
	if w := check("core just above half", "core_over_half"); w[0].Value != 4097 || w[0].Limit != 8192 {
		t.Errorf("%+v", w)
	}
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "big", Content: "b", ExpectedVersion: new(int64(2)), Tier: Archive}))

	remember := func(id loci.ID, judgment string) loci.Memory {
		t.Helper()
		in := loci.MemoryInput{Judgment: judgment, RecordInput: loci.RecordInput{ID: id, Namespace: new("project")}}
		return must[*loci.Receipt[loci.Memory]](t)(db.Memories().Upsert(t.Context(), in)).Value
	}
	memory := remember(0, "the pump is old")
	id := fmt.Sprintf("memory:%d", memory.ID)
	must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: id}))
	check("a fresh copy")
	remember(memory.ID, "the pump is new")
	if w := check("a stale copy", "stale_copies"); w[0].Value != 1 {
		t.Errorf("%+v", w)
	}
	stale := 0
	for _, p := range dashboard(t, cs).Pages {
		if p.Stale {
			stale++
			if p.PageID != id {
				t.Errorf("%s is stale", p.PageID)
			}
		}
	}
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: id}))
	check("a stale copy in the archive")
	for _, p := range dashboard(t, cs).Pages {
		if p.Stale && p.Segment == "archive" {
			stale++
		}
	}
	if stale != 2 {
		t.Errorf("stale copies were shown %d times", stale)
	}

	for i := 5; i < 5+nearlyFullRows-3; i++ {
		writeRow(t, cs, fmt.Sprint(i))
	}
	check("27 rows")
	writeRow(t, cs, "99")
	if w := check("28 rows", "outline_nearly_full", "fold"); w[0].Value != 28 || w[0].Limit != 32 || w[1].Message != "the prompt cache is cold: folding now loses nothing" {
		t.Errorf("%+v", w)
	}
	record(t, cs, RecordUsageRequest{InputTokens: 1})
	st := status(t, cs, StatusRequest{})
	if w := check("28 rows and a warm cache", "outline_nearly_full", "fold"); w[1].Value != st.Fold.PaysBackAfter || w[1].Value < 1 || !strings.Contains(w[1].Message, "after") {
		t.Errorf("%+v", w)
	}
}
