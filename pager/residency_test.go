package pager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pageIn(t testing.TB, cs *Store, req PageInRequest) *PageInResult {
	t.Helper()
	return must[*PageInResult](t)(cs.PageIn(t.Context(), req))
}

// lastEvent publishes, and gives the newest change of the published bytes.
func lastEvent(t testing.TB, cs *Store) RenderEvent {
	t.Helper()
	return *must[*PrefixResult](t)(cs.Prefix(t.Context(), PrefixRequest{})).Last
}

// TestResidencyVectors goes through the rows of the specification's table that
// move pages.
func TestResidencyVectors(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(cs *Store) error
		want RenderEvent
	}{
		"page_in w3": {func(cs *Store) error {
			_, err := cs.PageIn(t.Context(), PageInRequest{PageID: "w3"})
			return err
		}, RenderEvent{TextBytes: 1140, StablePrefixBytes: 565, InvalidatedBytes: 2, RewrittenBytes: 129, PrefixIntact: true,
			Operations: []Operation{{"page_in", "w3"}}}},
		"page_out w1": {func(cs *Store) error {
			_, err := cs.PageOut(t.Context(), PageOutRequest{PageID: "w1"})
			return err
		}, RenderEvent{TextBytes: 737, StablePrefixBytes: 565, InvalidatedBytes: 426, RewrittenBytes: 150, PrefixIntact: true,
			Operations: []Operation{{"page_out", "w1"}}}},
		"w2 to core": {func(cs *Store) error {
			_, err := cs.PageIn(t.Context(), PageInRequest{PageID: "w2", Tier: Core})
			return err
		}, RenderEvent{TextBytes: 1013, StablePrefixBytes: 722, InvalidatedBytes: 448, RewrittenBytes: 448, PrefixIntact: true,
			Operations: []Operation{{"page_in", "w2"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			cs := openScope(t, Config{})
			writeBase(t, cs)
			put(t, cs, WriteRequest{PageID: "w3", Title: "note", Content: strings.Repeat("N", 50)})
			first := snapshot(t, cs)
			if err := c.run(cs); err != nil {
				t.Fatal(err)
			}
			got := lastEvent(t, cs)
			c.want.Generation, c.want.AtUS, c.want.CommonBytes = first.Generation+1, got.AtUS, 1013-c.want.InvalidatedBytes
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			checkDeep(t, cs)
		})
	}
}

// order gives the page ids of core and of working as they are rendered.
func order(t testing.TB, cs *Store) string {
	t.Helper()
	text := *snapshot(t, cs).Text
	core, working, ok := strings.Cut(text, "\n],\"working\":[")
	if !ok {
		t.Fatalf("no working in %s", text)
	}
	var out []string
	for _, part := range []string{core, working} {
		var ids []string
		for line := range strings.Lines(part) {
			if _, rest, ok := strings.Cut(line, `{"id":"`); ok {
				id, _, _ := strings.Cut(rest, `"`)
				ids = append(ids, id)
			}
		}
		out = append(out, strings.Join(ids, " "))
	}
	return out[0] + " | " + out[1]
}

func wantOrder(t testing.TB, cs *Store, want string) {
	t.Helper()
	if got := order(t, cs); got != want {
		t.Errorf("the window is %q, want %q", got, want)
	}
}

func TestResidency(t *testing.T) {
	cs := openScope(t, Config{})
	for _, id := range []string{"a", "b", "c"} {
		put(t, cs, WriteRequest{PageID: id, Content: id})
	}
	for _, step := range []struct {
		run     func() (Reference, bool, error)
		changed bool
		tier    Tier
		order   string
	}{
		{in(t, cs, PageInRequest{PageID: "b"}), true, Working, " | b"},
		{in(t, cs, PageInRequest{PageID: "a", Tier: Working}), true, Working, " | b a"},
		{in(t, cs, PageInRequest{PageID: "b"}), false, Working, " | b a"},
		{in(t, cs, PageInRequest{PageID: "c", Tier: Core, Reason: "needed"}), true, Core, "c | b a"},
		{in(t, cs, PageInRequest{PageID: "b", Tier: Core}), true, Core, "c b | a"},
		{in(t, cs, PageInRequest{PageID: "c"}), false, Core, "c b | a"},
		{in(t, cs, PageInRequest{PageID: "c", Tier: Core}), false, Core, "c b | a"},
		{in(t, cs, PageInRequest{PageID: "c", Tier: Core, Reason: "needed"}), false, Core, "c b | a"},
		{in(t, cs, PageInRequest{PageID: "c", Tier: Core, Reason: "still needed"}), true, Core, "c b | a"},
		{unpin(t, cs, "c"), true, Working, "b | a c"},
		{unpin(t, cs, "c"), false, Working, "b | a c"},
		{pageOut(t, cs, "a"), true, Archive, "b | c"},
		{pageOut(t, cs, "a"), false, Archive, "b | c"},
		{in(t, cs, PageInRequest{PageID: "a"}), true, Working, "b | c a"},
		{in(t, cs, PageInRequest{PageID: "c", Tier: Core}), true, Core, "b c | a"},
	} {
		before := dumpOf(t, cs)
		ref, changed, err := step.run()
		if err != nil || changed != step.changed || ref.Tier != step.tier {
			t.Fatalf("%+v, changed %v, %v; want %+v", ref, changed, err, step)
		}
		if !changed {
			sameDump(t, before, dumpOf(t, cs))
		}
		wantOrder(t, cs, step.order)
	}
	if got := read(t, cs, "c").Page; got.PinReason != "" || got.Seq != 3 {
		t.Errorf("a page that was unpinned and pinned again has %+v", got)
	}
	moves := []string{}
	for _, m := range dumpOf(t, cs).Moves {
		if m.Fault {
			t.Errorf("%+v is no fault: nothing was evicted", m)
		}
		moves = append(moves, fmt.Sprintf("%s %s %s-%s", m.Operation, m.PageID, m.From, m.To))
	}
	slices.Reverse(moves)
	want := []string{"page_in b archive-working", "page_in a archive-working", "page_in c archive-core", "page_in b working-core", "unpin c core-working",
		"page_out a working-archive", "page_in a archive-working", "page_in c working-core"}
	if d := cmp.Diff(want, moves[len(moves)-len(want):]); d != "" {
		t.Error(d)
	}
	checkDeep(t, cs)
}

func in(t testing.TB, cs *Store, req PageInRequest) func() (Reference, bool, error) {
	return func() (Reference, bool, error) {
		out, err := cs.PageIn(t.Context(), req)
		if err != nil {
			return Reference{}, false, err
		}
		return out.Page, out.Changed, nil
	}
}

func pageOut(t testing.TB, cs *Store, id string) func() (Reference, bool, error) {
	return func() (Reference, bool, error) {
		out, err := cs.PageOut(t.Context(), PageOutRequest{PageID: id})
		if err != nil {
			return Reference{}, false, err
		}
		return out.Page, out.Changed, nil
	}
}

func unpin(t testing.TB, cs *Store, id string) func() (Reference, bool, error) {
	return func() (Reference, bool, error) {
		out, err := cs.Unpin(t.Context(), UnpinRequest{PageID: id})
		if err != nil {
			return Reference{}, false, err
		}
		return out.Page, out.Changed, nil
	}
}

func TestResidencyErrors(t *testing.T) {
	cs := openScope(t, Config{Budget: new(1000)})
	put(t, cs, WriteRequest{PageID: "core", Content: strings.Repeat("c", 300), Tier: Core})
	put(t, cs, WriteRequest{PageID: "row", Title: "t", Summary: "s", Content: "x", Outline: new(true)})
	put(t, cs, WriteRequest{PageID: "w", Content: "w", Tier: Working})
	put(t, cs, WriteRequest{PageID: "big", Content: strings.Repeat("b", 600)})
	put(t, cs, WriteRequest{PageID: "archived", Content: "a"})
	put(t, cs, WriteRequest{PageID: "huge", Content: strings.Repeat("h", 2000)})
	snapshot(t, cs)
	before := dumpOf(t, cs)
	for _, c := range []struct {
		run   func() (Reference, bool, error)
		code  Code
		field string
	}{
		{in(t, cs, PageInRequest{}), ErrInvalidArgument, "page_id"},
		{in(t, cs, PageInRequest{PageID: "w", Tier: Archive}), ErrInvalidArgument, "tier"},
		{in(t, cs, PageInRequest{PageID: "w", Tier: "pinned"}), ErrInvalidArgument, "tier"},
		{in(t, cs, PageInRequest{PageID: "w", Reason: "r"}), ErrInvalidArgument, "reason"},
		{in(t, cs, PageInRequest{PageID: "w", Tier: Core, Reason: strings.Repeat("r", MaxReasonBytes+1)}), ErrTooLarge, "reason"},
		{in(t, cs, PageInRequest{PageID: "w", Tier: Core, Reason: "\xff"}), ErrInvalidArgument, "reason"},
		{in(t, cs, PageInRequest{PageID: "none"}), ErrNotFound, "page_id"},
		{in(t, cs, PageInRequest{PageID: "memory:77"}), ErrNotFound, "page_id"},
		{in(t, cs, PageInRequest{PageID: "page:1"}), ErrNotFound, "page_id"},
		{in(t, cs, PageInRequest{PageID: "memory:01"}), ErrNotFound, "page_id"},
		{in(t, cs, PageInRequest{PageID: "memory:77", Scopes: []string{`["another"]`}}), ErrInvalidArgument, "scopes[0]"},
		{in(t, cs, PageInRequest{PageID: "memory:77", Scopes: []string{"public", ""}}), ErrInvalidArgument, "scopes[1]"},
		{in(t, cs, PageInRequest{PageID: "memory:77", Scopes: slices.Repeat([]string{"s"}, maxRecordScopes+1)}), ErrInvalidArgument, "scopes"},
		{in(t, cs, PageInRequest{PageID: "huge"}), ErrBudgetExceeded, "page_id"},
		{in(t, cs, PageInRequest{PageID: "big"}), ErrBudgetExceeded, "page_id"},
		{in(t, cs, PageInRequest{PageID: "big", Tier: Core}), ErrCoreOverBudget, ""},
		{pageOut(t, cs, ""), ErrInvalidArgument, "page_id"},
		{pageOut(t, cs, "none"), ErrNotFound, "page_id"},
		{pageOut(t, cs, "core"), ErrPinned, "page_id"},
		{pageOut(t, cs, "row"), ErrPinned, "page_id"},
		{unpin(t, cs, "a b"), ErrInvalidArgument, "page_id"},
		{unpin(t, cs, "none"), ErrNotFound, "page_id"},
		{unpin(t, cs, "row"), ErrPinned, "page_id"},
		{unpin(t, cs, "archived"), ErrInvalidArgument, "page_id"},
	} {
		_, _, err := c.run()
		e := wantFail(t, err, c.code, c.field)
		switch c.code {
		case ErrBudgetExceeded:
			if e.Details["budget"] != 1000 || e.Details["cost"].(int) <= 1000 {
				t.Errorf("%v has the details %v", e, e.Details)
			}
		case ErrCoreOverBudget:
			if e.Details["budget"] != 1000 || e.Details["core"].(int) <= 1000 {
				t.Errorf("%v has the details %v", e, e.Details)
			}
		}
		sameDump(t, before, dumpOf(t, cs))
	}
	// A row of the outline is in core already.
	if out := pageIn(t, cs, PageInRequest{PageID: "row"}); out.Changed || out.Page.Mode != "index" {
		t.Errorf("%+v", out)
	}
}

// TestPageInEvicts makes room for a page, and counts its return as a fault.
func TestPageInEvicts(t *testing.T) {
	cs := openScope(t, Config{Budget: new(700)})
	for _, id := range []string{"a", "b", "c"} {
		put(t, cs, WriteRequest{PageID: id, Content: strings.Repeat(id, 250)})
	}
	evicted := func(id string) []string {
		var out []string
		for _, r := range pageIn(t, cs, PageInRequest{PageID: id}).Evicted {
			if r.Tier != Archive {
				t.Errorf("%s was evicted and is in %s", r.PageID, r.Tier)
			}
			out = append(out, r.PageID)
		}
		return out
	}
	for _, step := range []struct{ id, evicted, order string }{
		{"a", "", " | a"}, {"b", "", " | a b"}, {"c", "a", " | b c"}, {"a", "b", " | c a"}, {"b", "c", " | a b"},
	} {
		if got := strings.Join(evicted(step.id), " "); got != step.evicted {
			t.Errorf("paging %s in evicted %q, want %q", step.id, got, step.evicted)
		}
		wantOrder(t, cs, step.order)
	}
	var faults []string
	for _, m := range dumpOf(t, cs).Moves {
		if m.Fault {
			faults = append(faults, m.PageID)
		}
	}
	if !slices.Equal(faults, []string{"b", "a"}) {
		t.Errorf("the faults are %v", faults)
	}
	if s := snapshot(t, cs); s.Pressure.Cost > 700 || s.TextBytes != s.Pressure.Cost {
		t.Errorf("%+v", s)
	}
	checkDeep(t, cs)
}

// TestUnpinAtTheBrink unpins in a window that is full to the byte: another comma
// may cost another page, never the one that was unpinned.
func TestUnpinAtTheBrink(t *testing.T) {
	probe := openScope(t, Config{})
	pages := func(cs *Store) {
		put(t, cs, WriteRequest{PageID: "c", Content: "core", Tier: Core})
		put(t, cs, WriteRequest{PageID: "w", Content: strings.Repeat("w", 80), Tier: Working})
	}
	pages(probe)
	full := snapshot(t, probe).TextBytes
	cs := openScope(t, Config{Budget: &full})
	pages(cs)
	out := must[*UnpinResult](t)(cs.Unpin(t.Context(), UnpinRequest{PageID: "c"}))
	if len(out.Evicted) != 1 || out.Evicted[0].PageID != "w" {
		t.Errorf("%+v", out)
	}
	wantOrder(t, cs, " | c")
}
