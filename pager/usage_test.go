package pager

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func record(t testing.TB, cs *Store, req RecordUsageRequest) *RecordUsageResult {
	t.Helper()
	return must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), req))
}

func usageOf(t testing.TB, cs *Store, req UsageRequest) *UsageResult {
	t.Helper()
	return must[*UsageResult](t)(cs.Usage(t.Context(), req))
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	clock := &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	db := openDB(t, dir, clock)
	cs := scopeOf(t, db, Config{Scope: Scope{"n"}})
	empty := usageOf(t, cs, UsageRequest{Provider: "anthropic-5m"})
	if d := cmp.Diff(&UsageResult{Records: []UsageRecord{}}, empty); d != "" {
		t.Errorf("before anything is billed:\n%s", d)
	}
	// The specification's vector.
	first := record(t, cs, RecordUsageRequest{InputTokens: 1000, CacheReadTokens: 8000, CacheWriteTokens: 1000, OutputTokens: 300, Turn: new(int64(7)), Step: new(int64(2))})
	want := UsageRecord{AtUS: clock.at.UnixMicro(), Source: "provider", Turn: new(int64(7)), Step: new(int64(2)), InputTokens: 1000, CacheReadTokens: 8000,
		CacheWriteTokens: 1000, OutputTokens: 300, BilledInput: 10000, HitRate: new(0.8)}
	sum := UsageSum{Calls: 1, Input: 1000, CacheRead: 8000, CacheWrite: 1000, Output: 300, BilledInput: 10000, HitRate: new(0.8)}
	if d := cmp.Diff(&RecordUsageResult{Record: want, Totals: UsageTotals{Provider: sum}}, first); d != "" {
		t.Errorf("recorded:\n%s", d)
	}
	simulated := record(t, cs, RecordUsageRequest{OutputTokens: 5, Source: "simulated", Turn: new(int64(7)), Step: new(int64(2))})
	if !simulated.Record.Simulated || simulated.Record.HitRate != nil || simulated.Totals.Simulated.HitRate != nil || simulated.Totals.Simulated.Calls != 1 {
		t.Errorf("simulated output alone: %+v", simulated)
	}
	check := func(cs *Store) {
		t.Helper()
		got := usageOf(t, cs, UsageRequest{Provider: "anthropic-5m"})
		if d := cmp.Diff([]UsageRecord{simulated.Record, want}, got.Records); d != "" {
			t.Errorf("records:\n%s", d)
		}
		if d := cmp.Diff(UsageTotals{Provider: sum, Simulated: UsageSum{Calls: 1, Output: 5}}, got.Totals); d != "" {
			t.Errorf("totals:\n%s", d)
		}
		if d := cmp.Diff(&UsageCost{Profile: "anthropic-5m", Ratio: 0.305, Saved: 0.695, AsOf: Profiles()[0].AsOf}, got.Cost); d != "" {
			t.Errorf("cost:\n%s", d)
		}
		if got.SimulatedCost != nil {
			t.Errorf("output alone cost %+v", got.SimulatedCost)
		}
	}
	check(cs)
	if got := usageOf(t, cs, UsageRequest{}); got.Cost != nil {
		t.Errorf("by no profile: %+v", got.Cost)
	}
	setPolicy(t, cs, SetPolicyRequest{Provider: new("deepseek-flash")})
	if got := usageOf(t, cs, UsageRequest{}).Cost; got.Profile != "deepseek-flash" || got.Ratio != 0.216 {
		t.Errorf("by the policy's profile: %+v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	cs = scopeOf(t, openDB(t, dir, clock), Config{Scope: Scope{"n"}})
	check(cs)
	for i := range 5 {
		record(t, cs, RecordUsageRequest{InputTokens: int64(i + 1)})
	}
	if got := usageOf(t, cs, UsageRequest{Limit: new(2)}); len(got.Records) != 2 || got.Records[0].InputTokens != 5 || got.Records[1].InputTokens != 4 || got.Totals.Provider.Calls != 6 {
		t.Errorf("the newest two: %+v", got)
	}
	if got := usageOf(t, scopeOf(t, cs.reg.db, Config{Scope: Scope{"n", "other"}}), UsageRequest{}); len(got.Records) != 0 || got.Totals != (UsageTotals{}) {
		t.Errorf("another scope has %+v", got)
	}
}

// TestUsageDuplicates counts a call once by its source, turn and step.
func TestUsageDuplicates(t *testing.T) {
	cs := openScope(t, Config{})
	calls := int64(0)
	for _, c := range []struct {
		name string
		req  RecordUsageRequest
		dup  bool
	}{
		{"first", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1)), Step: new(int64(2))}, false},
		{"again with other figures", RecordUsageRequest{InputTokens: 9, Turn: new(int64(1)), Step: new(int64(2))}, true},
		{"by its default source", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1)), Step: new(int64(2)), Source: "provider"}, true},
		{"another step", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1)), Step: new(int64(3))}, false},
		{"no step", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1))}, false},
		{"no step again", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1))}, true},
		{"no turn", RecordUsageRequest{InputTokens: 1, Step: new(int64(1))}, false},
		{"step 0 is not none", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1)), Step: new(int64(0))}, false},
		{"another source", RecordUsageRequest{InputTokens: 1, Turn: new(int64(1)), Step: new(int64(2)), Source: "proxy"}, false},
		{"a source with a bar", RecordUsageRequest{InputTokens: 1, Step: new(int64(2)), Source: "proxy|1"}, false},
		{"a source that is another's key", RecordUsageRequest{InputTokens: 1, Turn: new(int64(2)), Source: "proxy|1"}, false},
		{"neither", RecordUsageRequest{InputTokens: 1}, false},
		{"neither again", RecordUsageRequest{InputTokens: 1}, false},
	} {
		before := dumpOf(t, cs)
		got := record(t, cs, c.req)
		if got.Duplicate != c.dup {
			t.Errorf("%s: %+v", c.name, got)
		}
		if !c.dup {
			calls++
		} else if got.Record.InputTokens != 1 {
			t.Errorf("%s: the record is %+v", c.name, got.Record)
		} else if d := cmp.Diff(before, dumpOf(t, cs)); d != "" {
			t.Errorf("%s changed something:\n%s", c.name, d)
		}
		if got.Totals.Provider.Calls != calls {
			t.Errorf("%s: %d calls, want %d", c.name, got.Totals.Provider.Calls, calls)
		}
	}
}

func TestUsageRefused(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	snapshot(t, cs)
	before := dumpOf(t, cs)
	raw := json.RawMessage(`{"input_tokens":1}`)
	for name, c := range map[string]struct {
		req   RecordUsageRequest
		field string
	}{
		"all zero":              {RecordUsageRequest{}, "input_tokens"},
		"negative input":        {RecordUsageRequest{InputTokens: -1}, "input_tokens"},
		"negative read":         {RecordUsageRequest{InputTokens: 1, CacheReadTokens: -1}, "cache_read_tokens"},
		"negative write":        {RecordUsageRequest{InputTokens: 1, CacheWriteTokens: -1}, "cache_write_tokens"},
		"negative output":       {RecordUsageRequest{InputTokens: 1, OutputTokens: -1}, "output_tokens"},
		"too many":              {RecordUsageRequest{InputTokens: 1<<53 + 1}, "input_tokens"},
		"negative turn":         {RecordUsageRequest{InputTokens: 1, Turn: new(int64(-1))}, "turn"},
		"negative step":         {RecordUsageRequest{InputTokens: 1, Step: new(int64(-1))}, "step"},
		"a long source":         {RecordUsageRequest{InputTokens: 1, Source: strings.Repeat("s", 65)}, "source"},
		"a blank in front":      {RecordUsageRequest{InputTokens: 1, Source: " simulated"}, "source"},
		"a control character":   {RecordUsageRequest{InputTokens: 1, Source: "a\nb"}, "source"},
		"no UTF-8":              {RecordUsageRequest{InputTokens: 1, Source: "\xff"}, "source"},
		"an object of nobody":   {RecordUsageRequest{Usage: raw}, "provider"},
		"a provider alone":      {RecordUsageRequest{Provider: "openai", InputTokens: 1}, "usage"},
		"both":                  {RecordUsageRequest{Provider: "openai", Usage: raw, OutputTokens: 1}, "usage"},
		"an unknown provider":   {RecordUsageRequest{Provider: "acme", Usage: raw}, "provider"},
		"an object of nothing":  {RecordUsageRequest{Provider: "openai", Usage: json.RawMessage(`{}`)}, "input_tokens"},
		"an object that is not": {RecordUsageRequest{Provider: "openai", Usage: json.RawMessage(`[1]`)}, "usage"},
	} {
		_, err := cs.RecordUsage(t.Context(), c.req)
		if e := wantFail(t, err, ErrInvalidArgument, c.field); e.Op != "record_usage" {
			t.Errorf("%s: operation %s", name, e.Op)
		}
	}
	for _, req := range []UsageRequest{{Limit: new(0)}, {Limit: new(1001)}} {
		_, err := cs.Usage(t.Context(), req)
		wantFail(t, err, ErrInvalidArgument, "limit")
	}
	_, err := cs.Usage(t.Context(), UsageRequest{Provider: "acme"})
	wantFail(t, err, ErrInvalidArgument, "provider")
	if d := cmp.Diff(before, dumpOf(t, cs)); d != "" {
		t.Errorf("refused operations changed something:\n%s", d)
	}
}

// TestUsageLeavesTheWindow records what was billed without making the next
// snapshot another one.
func TestUsageLeavesTheWindow(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	before := snapshot(t, cs)
	record(t, cs, RecordUsageRequest{InputTokens: 1})
	record(t, cs, RecordUsageRequest{InputTokens: 1, Source: "simulated"})
	usageOf(t, cs, UsageRequest{})
	after := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Since: &before.Generation}))
	if after.Changed || after.Text != nil || after.Generation != before.Generation || after.Epoch != before.Epoch || after.SHA != before.SHA {
		t.Errorf("recording usage changed the window from %+v to %+v", before, after)
	}
	if n := len(must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})).Events); n != 1 {
		t.Errorf("there are %d changes", n)
	}
}

// TestUsageGreatNumbers adds up to more than a number holds.
func TestUsageGreatNumbers(t *testing.T) {
	cs := openScope(t, Config{})
	most := int64(1) << 53
	got := record(t, cs, RecordUsageRequest{InputTokens: most, CacheReadTokens: most, CacheWriteTokens: most, OutputTokens: most})
	if got.Record.BilledInput != 3*most || *got.Record.HitRate != 0.333333 {
		t.Errorf("%+v", got.Record)
	}
	tally := tallies{Input: math.MaxInt64 - 1, CacheRead: math.MaxInt64, Output: 3}
	tally.add(&tokenCounts{most, most, most, most})
	if tally != (tallies{Calls: 1, Input: math.MaxInt64, CacheRead: math.MaxInt64, CacheWrite: most, Output: most + 3}) {
		t.Errorf("%+v", tally)
	}
	sum := tally.sum()
	if sum.BilledInput != math.MaxInt64 || *sum.HitRate != 1 {
		t.Errorf("%+v", sum)
	}
	p, _ := profileOf("openai")
	if c := sum.cost(&p, false); c.Ratio < 0.5 || c.Ratio > 0.6 {
		t.Errorf("%+v", c)
	}
}

// TestCosts reckons by every profile, and says where caching cost more.
func TestCosts(t *testing.T) {
	sum := (&tallies{Calls: 1, CacheWrite: 100}).sum()
	got := map[string]float64{}
	for _, c := range costs(&sum, true) {
		if !c.Simulated || c.AsOf == "" || math.Abs(c.Ratio+c.Saved-1) > 1e-9 {
			t.Errorf("%+v", c)
		}
		got[c.Profile] = c.Saved
	}
	want := map[string]float64{"anthropic-5m": -0.25, "anthropic-1h": -1, "openai": 0, "openai-5.6": -0.25, "deepseek-flash": 0, "deepseek-pro": 0, "gemini-flash": 0, "gemini-pro": 0}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if none := costs(&UsageSum{Output: 7}, false); none == nil || len(none) != 0 {
		t.Errorf("without input: %v", none)
	}
}
