package pager

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSince goes through what a caller may have: nothing, what there is, less,
// and more than there ever was.
func TestSince(t *testing.T) {
	cs := openScope(t, Config{})
	ask := func(req SnapshotRequest) *Snapshot {
		t.Helper()
		s := must[*Snapshot](t)(cs.Snapshot(t.Context(), req))
		if s.Changed != (s.Text != nil) || s.Text != nil && len(*s.Text) != s.TextBytes {
			t.Errorf("%+v", s)
		}
		return s
	}
	if s := ask(SnapshotRequest{Since: new(int64(0))}); !s.Changed || s.Generation != 1 {
		t.Errorf("the first one: %+v", s)
	}
	writeBase(t, cs)
	unseen := ask(SnapshotRequest{Since: new(int64(1)), Publish: new(false)})
	if !unseen.Changed || unseen.Generation != 1 {
		t.Errorf("not published: %+v", unseen)
	}
	if render := must[*Snapshot](t)(cs.Render(t.Context(), RenderRequest{})); render.Generation != 1 || *render.Text != *unseen.Text {
		t.Errorf("rendered: %+v", render)
	}
	now := ask(SnapshotRequest{Since: new(int64(1))})
	if !now.Changed || now.Generation != 2 || *now.Text != *unseen.Text {
		t.Errorf("published: %+v", now)
	}
	for _, since := range []int64{-1, 0, 1, 3, 1 << 62} {
		if s := ask(SnapshotRequest{Since: &since}); !s.Changed || s.Generation != 2 {
			t.Errorf("since %d: %+v", since, s)
		}
	}
	same := ask(SnapshotRequest{Since: new(int64(2))})
	now.Text, now.Changed = nil, false
	if d := cmp.Diff(now, same); d != "" {
		t.Error(d)
	}
	// What counts and bills changes none of it.
	must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1}))
	must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "w1"}))
	must[*CheckpointResult](t)(cs.Checkpoint(t.Context(), CheckpointRequest{}))
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{Content: "archived"}))
	if d := cmp.Diff(now, ask(SnapshotRequest{Since: new(int64(2))})); d != "" {
		t.Error(d)
	}
	// There and back again are the same bytes: another epoch, the same generation.
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "last", Content: "text", Tier: Working}))
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: "last"}))
	back := ask(SnapshotRequest{Since: new(int64(2))})
	if back.Changed || back.Epoch <= now.Epoch || back.SHA != now.SHA {
		t.Errorf("%+v", back)
	}
	if got := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})); len(got.Events) != 2 {
		t.Errorf("%+v", got.Events)
	}
}

// TestWriteVectors goes through the rows of the specification's table that write,
// and holds that the two parts of the text are the text.
func TestWriteVectors(t *testing.T) {
	one := new(int64(1))
	for name, c := range map[string]struct {
		req                    WriteRequest
		length, stable         int
		invalidated, rewritten int
		intact                 bool
	}{
		"w2 to version 2": {WriteRequest{PageID: "w2", Title: "plan", Content: strings.Repeat("Q", 80), ExpectedVersion: one}, 1013, 565, 137, 137, true},
		"add row i5": {WriteRequest{PageID: "i5", Title: "step 5", Content: "body", Summary: strings.Repeat("S", 40), Outline: new(true)},
			1131, 683, 448, 566, true},
		"a to version 2": {WriteRequest{PageID: "a", Title: "rules", Content: strings.Repeat("r", 100), ExpectedVersion: one}, 1013, 565, 976, 976, false},
	} {
		cs := openScope(t, Config{})
		writeBase(t, cs)
		snapshot(t, cs)
		put(t, cs, c.req)
		p := must[*PrefixResult](t)(cs.Prefix(t.Context(), PrefixRequest{}))
		want := RenderEvent{AtUS: p.Last.AtUS, Generation: 2, TextBytes: c.length, StablePrefixBytes: c.stable, CommonBytes: 1013 - c.invalidated,
			InvalidatedBytes: c.invalidated, RewrittenBytes: c.rewritten, PrefixIntact: c.intact, Operations: []Operation{{"write", c.req.PageID}}}
		if d := cmp.Diff(want, *p.Last); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if text := *snapshot(t, cs).Text; p.Prefix+p.Tail != text || len(p.Prefix) != c.stable || p.Text != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestPrefixTellsOfItsOwnChange publishes from many sides: the change that an
// answer tells of is the one that its generation came with.
func TestPrefixTellsOfItsOwnChange(t *testing.T) {
	cs := openScope(t, Config{})
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 25 {
				if _, err := cs.Write(t.Context(), WriteRequest{Content: "text", Tier: Working}); err != nil {
					t.Error(err)
					return
				}
				p, err := cs.Prefix(t.Context(), PrefixRequest{})
				if err != nil {
					t.Error(err)
					return
				}
				if p.Last == nil || p.Last.Generation != p.Generation || p.Last.TextBytes != p.TextBytes {
					t.Errorf("generation %d of %d bytes: %+v", p.Generation, p.TextBytes, p.Last)
				}
			}
		})
	}
	work.Wait()
}

// TestSameBytesAgain publishes what was published before, once pages went and came
// back: the generation stays, the next event names what was done since, and
// compares with the whole text, also if a page had been removed for good.
func TestSameBytesAgain(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "a", Content: "rules", Tier: Core})
	put(t, cs, WriteRequest{PageID: "b", Content: "log", Tier: Working})
	first := snapshot(t, cs)
	must[*ForgetResult](t)(cs.Forget(t.Context(), ForgetRequest{PageID: "a"}))
	put(t, cs, WriteRequest{PageID: "a", Content: "rules", Tier: Core})
	if again := snapshot(t, cs); again.Generation != first.Generation || again.SHA != first.SHA {
		t.Fatalf("the same bytes are generation %d, not %d", again.Generation, first.Generation)
	}
	put(t, cs, WriteRequest{PageID: "c", Content: "more", Tier: Working})
	snapshot(t, cs)
	m := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{Limit: new(1)}))
	want := []Operation{{"write", "c"}}
	if e := m.Events[0]; !e.PrefixIntact || e.InvalidatedBytes != 2 || !slices.Equal(e.Operations, want) {
		t.Errorf("the event is %+v", e)
	}
}
