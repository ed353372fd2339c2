package pager

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

func TestPayBack(t *testing.T) {
	for id, want := range map[string]float64{
		"anthropic-5m": 22, "openai-5.6": 22, "anthropic-1h": 37, "openai": 17, "gemini-flash": 17, "gemini-pro": 17, "deepseek-pro": 57, "deepseek-flash": 97,
	} {
		p, known := profileOf(id)
		if !known {
			t.Fatalf("there is no profile %s", id)
		}
		if got := payBack(6000, 2000, p.ReadRatio, p.WriteRatio); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s pays back after %v steps, not %v", id, got, want)
		}
	}
	if got := payBack(100, 99, .5, 1); got != 0 {
		t.Errorf("what costs less at once pays back after %v steps", got)
	}
}

func TestProfiles(t *testing.T) {
	all := Profiles()
	seen := map[string]bool{}
	for _, p := range all {
		if p.ID == "" || seen[p.ID] || p.Models == "" || p.Matches == "" || p.Notes == "" {
			t.Errorf("a profile without what it needs, or twice: %+v", p)
		}
		seen[p.ID] = true
		if !slices.Contains(adapterNames(), p.Provider) {
			t.Errorf("%s: the usage objects of %s are not read", p.ID, p.Provider)
		}
		if p.MinPrefixTokens < 0 || p.LifetimeSeconds < 60 || p.ReadRatio <= 0 || p.ReadRatio >= 1 || p.WriteRatio < 1 || p.WriteRatio > 2 {
			t.Errorf("%s has figures that cannot be: %+v", p.ID, p)
		}
		if _, err := time.Parse(time.DateOnly, p.AsOf); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
	}
	if len(all) < 8 {
		t.Errorf("there are %d profiles", len(all))
	}
	all[0].ID = "changed"
	if Profiles()[0].ID == "changed" {
		t.Error("a caller can change the profiles")
	}
}

func TestWarmFor(t *testing.T) {
	const second = int64(1_000_000)
	for name, c := range map[string]struct {
		provider  string
		last, now int64
		want      time.Duration
	}{
		"just now":         {"anthropic-5m", 1000 * second, 1000 * second, 300 * time.Second},
		"a while ago":      {"anthropic-5m", 1000 * second, 1100 * second, 200 * time.Second},
		"at its end":       {"anthropic-5m", 1000 * second, 1300 * second, 0},
		"long ago":         {"anthropic-5m", 1000 * second, 1 << 62, 0},
		"in the future":    {"anthropic-5m", 1000 * second, 10 * second, 300 * time.Second},
		"never":            {"anthropic-5m", 0, second, 0},
		"of no provider":   {"", 1000 * second, 1000 * second, 0},
		"of another":       {"acme", 1000 * second, 1000 * second, 0},
		"of a longer life": {"anthropic-1h", 1000 * second, 1300 * second, 3300 * time.Second},
	} {
		if got := warmFor(c.provider, c.last, c.now); got != c.want {
			t.Errorf("%s: warm for %v, not %v", name, got, c.want)
		}
	}
}

func TestCutAt(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"aé", 3, "aé"}, {"里程碑", 5, "里"}, {"里", 2, ""}} {
		if got := cutAt(c.text, c.limit); got != c.want {
			t.Errorf("%q cut at %d is %q", c.text, c.limit, got)
		}
	}
}

// TestFoldEstimate compares what is estimated with what a fold does.
func TestFoldEstimate(t *testing.T) {
	for _, first := range []bool{false, true} { // the oldest row stands first in core
		cs := openScope(t, Config{})
		if !first {
			writeBase(t, cs)
		}
		estimate := func() *FoldEstimate {
			t.Helper()
			return must[*StatusResult](t)(cs.Status(t.Context(), StatusRequest{})).Fold
		}
		setPolicy(t, cs, SetPolicyRequest{Provider: new("anthropic-5m")})
		for i := 5; len(outline(t, cs)) < 13; i++ {
			writeRow(t, cs, fmt.Sprint(i))
		}
		if got := estimate(); got != nil {
			t.Errorf("with 13 rows: %+v", got)
		}
		for i := 20; i < 27; i++ {
			writeRow(t, cs, fmt.Sprint(i))
		}
		before := snapshot(t, cs)
		cold := *estimate()
		record(t, cs, RecordUsageRequest{InputTokens: 1})
		warm := *estimate()
		steps := payBack(float64(cold.BehindBytes), float64(cold.SavedBytes), 0.1, 1.25)
		if cold.Warm || cold.PaysBackAfter != 0 || !warm.Warm || warm.PaysBackAfter != int64(math.Ceil(steps)) || warm.Rows != 20 || warm.Folded != 8 {
			t.Errorf("cold: %+v, warm: %+v, %v steps", cold, warm, steps)
		}
		must[*FoldResult](t)(cs.Fold(t.Context(), FoldRequest{Force: true}))
		after := snapshot(t, cs)
		e := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})).Events[0]
		if e.InvalidatedBytes != warm.BehindBytes || before.TextBytes-after.TextBytes != warm.SavedBytes {
			t.Errorf("a fold invalidated %d bytes and saved %d, estimated were %+v", e.InvalidatedBytes, before.TextBytes-after.TextBytes, warm)
		}
		if got := estimate(); got != nil {
			t.Errorf("after the fold: %+v", got)
		}
	}
}

func outline(t testing.TB, cs *Store) (rows []*resident) {
	t.Helper()
	if err := cs.with(t.Context(), "test", func(s *scope) error { rows = outlineRows(s.window.core); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}
