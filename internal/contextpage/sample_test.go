package contextpage

import (
	"fmt"

	"github.com/loci-memory/loci/pager"
)

// sampleAt is the moment of the samples, UTC microseconds.
const sampleAt = 1_777_863_721_000_000

// hostile are names that would do harm if they were ever read as HTML, as
// script or as a direction of writing.
var hostile = []string{
	`</script><script>window.harmed=1</script>`,
	`<img src=x onerror="window.harmed=1">`,
	`"><svg onload=window.harmed=1>`,
	"line\u2028paragraph\u2029end",
	"\u202Egnp.exe",
	`<!--<script>`,
	`{{.}} ${harmed} &lt;b&gt;`,
	"界面标题 with 日本語 and עברית",
}

// sample is a scope in the middle of its life, the same each time. A big one
// has as much in it as the model ever holds and names that are hostile.
func sample(big bool) *pager.Dashboard {
	events, archived := 48, 14
	if big {
		events, archived = 500, 200
	}
	m := &pager.Dashboard{
		Scope: pager.Scope{"harbour-project", "session-1"}, AtUS: sampleAt,
		Now: pager.DashboardNow{Cost: 6021, Budget: 8192, Unit: pager.UnitBytes, Used: 6021.0 / 8192, CoreCost: 2710, StablePrefixBytes: 2694,
			TextBytes: 6021, Generation: int64(events), Epoch: int64(events) + 9, Pressure: "advisory", Unpublished: true},
		Composition: pager.Composition{
			Core:    pager.TierShare{Pages: 9, Bytes: 4100, RenderedBytes: 2677},
			Working: pager.TierShare{Pages: 6, Bytes: 2900, RenderedBytes: 3311},
			Archive: pager.TierShare{Pages: int64(archived) + 40, Bytes: 61234},
		},
		PagesLeftOut: 40,
		Totals: pager.Totals{Renders: int64(events), InvalidatedBytes: 20311, RewrittenBytes: 41507, Intact: int64(events) - 6,
			IntactShare: new(float64(events-6) / float64(events-1)), Evictions: 11, Faults: 2},
		Replacement: pager.Replacement{
			Policy: pager.Policy{Mode: "either", EveryN: 10, ThresholdPct: 80, TargetPct: 60, Strategy: "value", KeepRecent: 3, Provider: "anthropic-5m", HardPct: 95},
			State: pager.PolicyState{Turns: 24, TurnsSince: 4, Runs: 2, LastTurnID: new(int64(24)), Last: &pager.PolicyRun{AtUS: sampleAt - 90_000_000, Turn: 20,
				Reason: "threshold", Before: 6801, After: 4877, Target: 4915, Reached: true, Evicted: 4}},
		},
		Warnings: []pager.Warning{
			{Code: "stale_copies", Message: "2 copies are out of date", Value: 2},
			{Code: "outline_nearly_full", Message: "fold it", Value: 29, Limit: 32},
		},
	}
	title := func(i int) string {
		if big {
			return hostile[i%len(hostile)]
		}
		return []string{"Rules of the house", "Goal: a tide table that is right", "Step: read the tables", "Log of the build", "Plan for the pier", "潮汐表的来源"}[i%6]
	}
	add := func(n int, segment string, outline bool) {
		for i := range n {
			p := pager.DashboardPage{PageID: fmt.Sprintf("%s-%d", map[string]string{"2": "c", "3": "w"}[segment], i), Version: int64(1 + i%3), Title: title(i + len(m.Pages)),
				Segment: segment, Bytes: int64(120 + 37*i), RenderedBytes: int64(190 + 37*i), Hits: int64(i * 7 % 11), IdleMS: new(int64(1000 * (1 + i*i*41))),
				Outline: outline, Stale: i == 2}
			if segment == "archive" {
				p.RenderedBytes = 0
				p.PageID = fmt.Sprintf("p%d", i)
			}
			if i%5 == 4 {
				p.IdleMS = nil
			}
			m.Pages = append(m.Pages, p)
		}
	}
	add(3, "2", false)
	add(6, "2", true)
	m.Pages[3].PageID = "row-0"
	add(6, "3", false)
	add(archived, "archive", false)
	stable := 900
	for i := range events { // oldest first, turned round below
		e := pager.RenderEvent{AtUS: sampleAt - int64(events-i)*30_000_000, Generation: int64(i + 1), StablePrefixBytes: stable, PrefixIntact: true,
			Operations: []pager.Operation{{Name: "write", PageID: fmt.Sprintf("w%d", i)}}}
		size := 1500 + 90*i%4300
		switch {
		case i == 0:
			e.First, e.RewrittenBytes = true, size
		case i%9 == 8:
			e.PrefixIntact, e.CommonBytes, e.InvalidatedBytes, e.RewrittenBytes = false, 420, size-700, size-420
			e.Operations = []pager.Operation{{Name: "fold"}, {Name: "page_out", PageID: fmt.Sprintf("w%d", i-1)}}
		case i%4 == 1:
			e.CommonBytes, e.InvalidatedBytes, e.RewrittenBytes = stable-2, size-stable, size-stable
			e.Operations = append(e.Operations, pager.Operation{Name: "recall"})
		default:
			e.CommonBytes, e.InvalidatedBytes, e.RewrittenBytes = size-130, 2, 130
		}
		e.TextBytes = e.CommonBytes + e.RewrittenBytes
		m.Renders = append([]pager.RenderEvent{e}, m.Renders...)

		move := pager.Movement{AtUS: e.AtUS, Operation: "write", PageID: fmt.Sprintf("w%d", i), From: "none", To: "working", Reason: "write", Bytes: 200 + i}
		switch i % 5 {
		case 2:
			move.Operation, move.From, move.To, move.Reason = "policy_tick", "working", "archive", "policy"
		case 4:
			move.Operation, move.From, move.To, move.Reason, move.Fault = "recall", "archive", "working", "recall", i%10 == 4
		}
		m.Residency = append([]pager.Movement{move}, m.Residency...)

		r := pager.UsageRecord{AtUS: e.AtUS, Source: "provider", Turn: new(int64(i / 3)), Step: new(int64(i % 3)), InputTokens: 60, CacheReadTokens: int64(e.CommonBytes / 4),
			CacheWriteTokens: int64(e.RewrittenBytes / 4), OutputTokens: 90}
		if i < events/3 {
			r.Source, r.Simulated = pager.SourceSimulated, true
		}
		r.BilledInput = r.InputTokens + r.CacheReadTokens + r.CacheWriteTokens
		r.HitRate = new(float64(r.CacheReadTokens) / float64(r.BilledInput))
		m.Usage.Records = append([]pager.UsageRecord{r}, m.Usage.Records...)
		sum := &m.Usage.Totals.Provider
		if r.Simulated {
			sum = &m.Usage.Totals.Simulated
		}
		sum.Calls++
		sum.Input += r.InputTokens
		sum.CacheRead += r.CacheReadTokens
		sum.CacheWrite += r.CacheWriteTokens
		sum.Output += r.OutputTokens
		sum.BilledInput += r.BilledInput
	}
	for _, sum := range []*pager.UsageSum{&m.Usage.Totals.Provider, &m.Usage.Totals.Simulated} {
		sum.HitRate = new(float64(sum.CacheRead) / float64(sum.BilledInput))
	}
	for _, made := range []bool{false, true} {
		m.Usage.Costs = append(m.Usage.Costs,
			pager.UsageCost{Profile: "anthropic-5m", Ratio: 0.412, Saved: 0.588, AsOf: "2026-12-01", Simulated: made},
			pager.UsageCost{Profile: "deepseek-flash", Ratio: 0.298, Saved: 0.702, AsOf: "2026-12-01", Simulated: made})
	}
	return m
}
