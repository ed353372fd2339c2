package pager

import (
	"strings"
	"testing"
)

// writeBase makes the pages of the specification's base: rules and goal in core,
// two outline rows, and two working pages.
func writeBase(t testing.TB, cs *Store) {
	t.Helper()
	write := must[*WriteResult](t)
	write(cs.Write(t.Context(), WriteRequest{PageID: "a", Title: "rules", Content: strings.Repeat("R", 100), Tier: Core}))
	write(cs.Write(t.Context(), WriteRequest{PageID: "b", Title: "goal", Content: strings.Repeat("G", 60), Tier: Core}))
	for _, n := range []string{"3", "4"} {
		writeRow(t, cs, n)
	}
	write(cs.Write(t.Context(), WriteRequest{PageID: "w1", Title: "log", Content: strings.Repeat("L", 200), Tier: Working}))
	write(cs.Write(t.Context(), WriteRequest{PageID: "w2", Title: "plan", Content: strings.Repeat("P", 80), Tier: Working}))
}

func writeRow(t testing.TB, cs *Store, n string) {
	t.Helper()
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "i" + n, Title: "step " + n, Content: "body of step " + n,
		Summary: strings.Repeat("S", 40), Outline: new(true)}))
}

func snapshot(t testing.TB, cs *Store) *Snapshot {
	t.Helper()
	return must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{}))
}

func TestBase(t *testing.T) {
	cs := openScope(t, Config{})
	if s := snapshot(t, cs); s.TextBytes != 33 || s.StablePrefixBytes != 17 {
		t.Fatalf("an empty scope has %d bytes, %d of them stable", s.TextBytes, s.StablePrefixBytes)
	}
	writeBase(t, cs)
	s := snapshot(t, cs)
	if s.TextBytes != 1013 || s.StablePrefixBytes != 565 || !strings.HasPrefix(s.SHA, "bfbacfb42970") {
		t.Fatalf("the base has %d bytes, %d of them stable, and sum %s:\n%s", s.TextBytes, s.StablePrefixBytes, s.SHA, *s.Text)
	}
	if again := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Since: &s.Generation})); again.Changed || again.Text != nil {
		t.Errorf("unchanged, the snapshot says %+v", again)
	}
}
