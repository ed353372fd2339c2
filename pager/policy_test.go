package pager

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/internal/store"
)

func setPolicy(t testing.TB, cs *Store, req SetPolicyRequest) *SetPolicyResult {
	t.Helper()
	return must[*SetPolicyResult](t)(cs.SetPolicy(t.Context(), req))
}

func policyOf(t testing.TB, cs *Store) Replacement {
	t.Helper()
	return *must[*Replacement](t)(cs.ReplacementPolicy(t.Context(), ReplacementPolicyRequest{}))
}

func tick(t testing.TB, cs *Store, req PolicyTickRequest) *PolicyTickResult {
	t.Helper()
	return must[*PolicyTickResult](t)(cs.PolicyTick(t.Context(), req))
}

// stateNow is the scope's state in memory.
func stateNow(t testing.TB, cs *Store) (st state) {
	t.Helper()
	if err := cs.with(t.Context(), "test", func(s *scope) error { st = s.state; return nil }); err != nil {
		t.Fatal(err)
	}
	return st
}

// fill writes working pages of one size until the window costs exactly cost.
func fill(t testing.TB, cs *Store, cost int) (ids []string) {
	t.Helper()
	for {
		now := policyCost(t, cs)
		if now == cost {
			return ids
		}
		id := fmt.Sprintf("w%04d", stateNow(t, cs).NextAdmission)
		size := cost - now - len(newResident(&store.Page{PageID: id, PageRevision: store.PageRevision{Version: 1}}).line) - 1
		if must[*StatusResult](t)(cs.Status(t.Context(), StatusRequest{})).Counts.Working.Pages > 0 {
			size-- // a comma
		}
		if size > 400 {
			size = 200
		}
		if size < 1 {
			t.Fatalf("no page of any size makes the window cost %d", cost)
		}
		must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: id, Content: strings.Repeat("x", size), Tier: Working}))
		ids = append(ids, id)
	}
}

func policyCost(t testing.TB, cs *Store) int {
	t.Helper()
	return must[*Snapshot](t)(cs.Render(t.Context(), RenderRequest{})).Pressure.Cost
}

func ids(refs []Reference) (out []string) {
	for _, r := range refs {
		out = append(out, r.PageID)
	}
	return out
}

func TestPolicyDefaults(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n", "one"}})
	want := Policy{Mode: "manual", EveryN: 10, ThresholdPct: 80, TargetPct: 60, Strategy: "value", KeepRecent: 3, HardPct: 95}
	if got := policyOf(t, cs); got.Policy != want || got.State != (PolicyState{}) {
		t.Errorf("unset, the policy is %+v", got)
	}
	if got := setPolicy(t, cs, SetPolicyRequest{}); got.Changed || got.Policy != want {
		t.Errorf("set to nothing, it is %+v", got)
	}
	if must[*StatusResult](t)(cs.Status(t.Context(), StatusRequest{})).Configuration.Stored {
		t.Error("setting a policy stored the scope")
	}
}

// TestPolicyShared sets a policy where another scope of the namespace has its
// own in memory already, and opens the store again.
func TestPolicyShared(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir, nil)
	one, two, other := scopeOf(t, db, Config{Scope: Scope{"n", "one"}}), scopeOf(t, db, Config{Scope: Scope{"n", "two"}}), scopeOf(t, db, Config{Scope: Scope{"m", "one"}})
	for _, cs := range []*Store{one, two, other} {
		writeBase(t, cs)
		policyOf(t, cs)
	}
	set := setPolicy(t, one, SetPolicyRequest{Mode: new("either"), KeepRecent: new(0), Provider: new("anthropic-1h")})
	want := defaultPolicy()
	want.Mode, want.KeepRecent, want.Provider = "either", 0, "anthropic-1h"
	if !set.Changed || set.Policy != want {
		t.Errorf("set, the policy is %+v", set)
	}
	setPolicy(t, two, SetPolicyRequest{ThresholdPct: new(98)}) // merged with what the other scope set
	want.ThresholdPct, want.HardPct = 98, 98
	for _, cs := range []*Store{one, two} {
		if got := policyOf(t, cs).Policy; got != want {
			t.Errorf("%v goes by %+v", cs.Scope(), got)
		}
	}
	if got := policyOf(t, other).Policy; got != defaultPolicy() {
		t.Errorf("another namespace goes by %+v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := scopeOf(t, openDB(t, dir, nil), Config{Scope: Scope{"n", "three"}})
	if got := policyOf(t, again).Policy; got != want {
		t.Errorf("after opening again: %+v", got)
	}
	if got := setPolicy(t, again, SetPolicyRequest{Provider: new("")}); !got.Changed || got.Policy.Provider != "" {
		t.Errorf("without a provider: %+v", got)
	}
}

func TestPolicyRefused(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	before := dumpOf(t, cs)
	for name, c := range map[string]struct {
		req   SetPolicyRequest
		field string
	}{
		"mode":                 {SetPolicyRequest{Mode: new("sometimes")}, "mode"},
		"no mode":              {SetPolicyRequest{Mode: new("")}, "mode"},
		"every_n 0":            {SetPolicyRequest{EveryN: new(0)}, "every_n"},
		"every_n 101":          {SetPolicyRequest{EveryN: new(101)}, "every_n"},
		"threshold 9":          {SetPolicyRequest{ThresholdPct: new(9), TargetPct: new(5)}, "threshold_pct"},
		"threshold 101":        {SetPolicyRequest{ThresholdPct: new(101)}, "threshold_pct"},
		"target 4":             {SetPolicyRequest{TargetPct: new(4)}, "target_pct"},
		"target 96":            {SetPolicyRequest{TargetPct: new(96), ThresholdPct: new(100)}, "target_pct"},
		"target at threshold":  {SetPolicyRequest{TargetPct: new(80)}, "target_pct"},
		"threshold at target":  {SetPolicyRequest{ThresholdPct: new(60)}, "target_pct"},
		"strategy":             {SetPolicyRequest{Strategy: new("fifo")}, "strategy"},
		"keep -1":              {SetPolicyRequest{KeepRecent: new(-1)}, "keep_recent"},
		"keep 21":              {SetPolicyRequest{KeepRecent: new(21)}, "keep_recent"},
		"provider":             {SetPolicyRequest{Provider: new("acme")}, "provider"},
		"hard below threshold": {SetPolicyRequest{HardPct: new(79)}, "hard_pct"},
		"hard 101":             {SetPolicyRequest{HardPct: new(101)}, "hard_pct"},
		"one of two":           {SetPolicyRequest{EveryN: new(5), Strategy: new("x")}, "strategy"},
	} {
		_, err := cs.SetPolicy(t.Context(), c.req)
		if e := wantFail(t, err, ErrInvalidArgument, c.field); e.Op != "set_policy" {
			t.Errorf("%s: operation %s", name, e.Op)
		}
	}
	_, err := cs.PolicyTick(t.Context(), PolicyTickRequest{TurnID: new(int64(-1))})
	wantFail(t, err, ErrInvalidArgument, "turn_id")
	if policyOf(t, cs).Policy != defaultPolicy() {
		t.Error("a refused policy changed something")
	}
	if d := cmp.Diff(before, dumpOf(t, cs)); d != "" {
		t.Errorf("refused operations changed something:\n%s", d)
	}
	for _, edge := range []SetPolicyRequest{
		{EveryN: new(1), ThresholdPct: new(10), TargetPct: new(5), KeepRecent: new(20), HardPct: new(10), Strategy: new("lru"), Mode: new("turns")},
		{EveryN: new(100), ThresholdPct: new(100), TargetPct: new(95), KeepRecent: new(0), Mode: new("threshold")},
	} {
		setPolicy(t, cs, edge)
	}
}

// TestPolicyThreshold is the specification's vector: of a budget of 8192 at
// 80/60, 6553 is below the threshold and 6554 above.
func TestPolicyThreshold(t *testing.T) {
	for _, mode := range []string{"threshold", "either"} {
		for cost, fires := range map[int]bool{6553: false, 6554: true} {
			cs := openScope(t, Config{})
			setPolicy(t, cs, SetPolicyRequest{Mode: &mode})
			pages := fill(t, cs, cost)
			got := tick(t, cs, PolicyTickRequest{})
			if got.Triggered != fires || got.Before != cost || got.Target != 4915 || got.Turns != 1 || got.After != policyCost(t, cs) {
				t.Fatalf("%s at %d: %+v", mode, cost, got)
			}
			if !fires {
				if got.After != cost || len(got.Evicted) != 0 || got.Reached != nil || got.Runs != 0 {
					t.Errorf("nothing was due, and yet %+v", got)
				}
				continue
			}
			if got.After > 4915 || got.After < 4915-400 || !*got.Reached || got.Reason != "threshold" || got.Runs != 1 {
				t.Errorf("the run ended at %+v", got)
			}
			// The pages have the same worth but for their age: the oldest went.
			if d := cmp.Diff(pages[:len(got.Evicted)], ids(got.Evicted)); d != "" {
				t.Errorf("evicted:\n%s", d)
			}
			for _, r := range got.Evicted {
				if r.Tier != Archive {
					t.Errorf("%s lies in %s", r.PageID, r.Tier)
				}
			}
			last := policyOf(t, cs).State.Last
			want := &PolicyRun{AtUS: got.AtUS, Turn: 1, Reason: "threshold", Before: cost, After: got.After, Target: 4915, Reached: true, Evicted: len(got.Evicted)}
			if d := cmp.Diff(want, last); d != "" {
				t.Errorf("the last run:\n%s", d)
			}
			if totals := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})).Totals; totals.Evictions != int64(len(got.Evicted)) {
				t.Errorf("%d evictions are counted", totals.Evictions)
			}
		}
	}
}

func TestPolicyTurns(t *testing.T) {
	for mode, at := range map[string][]int{"turns": {3, 6, 9}, "either": {3, 6, 9}, "manual": nil, "threshold": nil} {
		cs := openScope(t, Config{})
		setPolicy(t, cs, SetPolicyRequest{Mode: &mode, EveryN: new(3), TargetPct: new(5), KeepRecent: new(0)})
		var ran []int
		for turn := 1; turn <= 10; turn++ {
			must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: fmt.Sprintf("p%02d", turn), Content: strings.Repeat("x", 500), Tier: Working}))
			got := tick(t, cs, PolicyTickRequest{TurnID: new(int64(100 * turn))})
			if got.Turns != int64(turn) || !got.Counted {
				t.Fatalf("%s, turn %d: %+v", mode, turn, got)
			}
			if got.Triggered {
				ran = append(ran, turn)
				if got.Reason != "turns" || !*got.Reached || got.After != 33 {
					t.Errorf("%s, turn %d: %+v", mode, turn, got)
				}
			}
		}
		if d := cmp.Diff(at, ran); d != "" {
			t.Errorf("%s ran at:\n%s", mode, d)
		}
		if got := policyOf(t, cs).State; got.Runs != int64(len(at)) || *got.LastTurnID != 1000 || got.TurnsSince != int64(10-3*len(at)) {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}

// TestPolicyTurnIDs counts a turn once, whatever is retried or comes late.
func TestPolicyTurnIDs(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir, nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n"}})
	setPolicy(t, cs, SetPolicyRequest{Mode: new("turns"), EveryN: new(1)})
	check := func(name string, req PolicyTickRequest, counted, triggered bool, turns, turn int64) {
		t.Helper()
		got := tick(t, cs, req)
		if got.Counted != counted || got.Triggered != triggered || got.Turns != turns || stateNow(t, cs).Turn != turn {
			t.Errorf("%s: %+v, turn %d", name, got, stateNow(t, cs).Turn)
		}
	}
	must[*PolicyTickResult](t)(cs.PolicyTick(t.Context(), PolicyTickRequest{Force: true}))
	if stateNow(t, cs).Ticked {
		t.Error("a forced run without a turn counts turns from now on")
	}
	must[*RecallResult](t)(cs.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "anything"}}))
	check("first", PolicyTickRequest{TurnID: new(int64(0))}, true, true, 1, 2)
	check("again", PolicyTickRequest{TurnID: new(int64(0))}, false, false, 1, 2)
	check("next", PolicyTickRequest{TurnID: new(int64(7))}, true, true, 2, 3)
	check("late", PolicyTickRequest{TurnID: new(int64(6))}, false, false, 2, 3)
	check("late and forced", PolicyTickRequest{TurnID: new(int64(6)), Force: true}, false, true, 2, 3)
	check("forced", PolicyTickRequest{Force: true}, false, true, 2, 3)
	check("forced and new", PolicyTickRequest{TurnID: new(int64(8)), Force: true}, true, true, 3, 4)
	check("without a number", PolicyTickRequest{}, true, true, 4, 5)
	check("after one without a number", PolicyTickRequest{TurnID: new(int64(8))}, false, false, 4, 5)
	must[*RecallResult](t)(cs.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "anything"}}))
	check("the greatest", PolicyTickRequest{TurnID: new(int64(math.MaxInt64))}, true, true, 5, 6)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	cs = scopeOf(t, openDB(t, dir, nil), Config{Scope: Scope{"n"}})
	check("after opening again", PolicyTickRequest{TurnID: new(int64(math.MaxInt64))}, false, false, 5, 6)
}

// TestPolicyKeeps keeps core and the pages that were touched last, and says when
// that leaves it above its target.
func TestPolicyKeeps(t *testing.T) {
	cs := openScope(t, Config{Budget: new(4096)})
	setPolicy(t, cs, SetPolicyRequest{Mode: new("turns"), EveryN: new(1), TargetPct: new(5), KeepRecent: new(2), Strategy: new("lru")})
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "core", Content: strings.Repeat("c", 500), Tier: Core}))
	for _, id := range []string{"a", "b", "c", "d"} {
		must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: id, Content: strings.Repeat(id, 500), Tier: Working}))
	}
	// Read is what touches a page without any write: it waits in memory.
	must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "a"}))
	got := tick(t, cs, PolicyTickRequest{})
	if d := cmp.Diff([]string{"b", "c"}, ids(got.Evicted)); d != "" {
		t.Errorf("evicted:\n%s", d)
	}
	if !got.Triggered || *got.Reached || got.After <= got.Target || got.After != policyCost(t, cs) {
		t.Errorf("with what is kept above the target: %+v", got)
	}
	if last := policyOf(t, cs).State.Last; last.Reached || last.Evicted != 2 {
		t.Errorf("the last run: %+v", last)
	}
	setPolicy(t, cs, SetPolicyRequest{KeepRecent: new(0)})
	if got := tick(t, cs, PolicyTickRequest{}); len(got.Evicted) != 2 || *got.Reached {
		t.Errorf("core alone is above the target: %+v", got)
	}
	if got := tick(t, cs, PolicyTickRequest{}); !got.Triggered || len(got.Evicted) != 0 || got.Evicted == nil {
		t.Errorf("with nothing left to evict: %+v", got)
	}
	var reasons []string
	for _, m := range must[*Dashboard](t)(cs.Dashboard(t.Context(), DashboardRequest{})).Residency[:4] {
		reasons = append(reasons, m.Operation+" "+m.PageID+" "+m.From+" "+m.To+": "+m.Reason)
	}
	want := []string{"policy_tick a working archive: policy: turns", "policy_tick d working archive: policy: turns",
		"policy_tick c working archive: policy: turns", "policy_tick b working archive: policy: turns"}
	if d := cmp.Diff(want, reasons); d != "" {
		t.Errorf("the ledger:\n%s", d)
	}
}

// TestPolicyTies keeps, of pages that were touched in the same moment, those that
// came in later.
func TestPolicyTies(t *testing.T) {
	cs := openScope(t, Config{})
	for _, id := range []string{"a", "b", "c", "d"} {
		must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: id, Content: "zebra " + id + strings.Repeat(".", 200), Tier: Working}))
	}
	must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "zebra"})) // touches all of them at once
	setPolicy(t, cs, SetPolicyRequest{TargetPct: new(5), ThresholdPct: new(10), KeepRecent: new(1), Strategy: new("lru")})
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "big", Content: strings.Repeat("x", 300), Tier: Working}))
	must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "zebra"}))
	got := tick(t, cs, PolicyTickRequest{Force: true})
	if d := cmp.Diff([]string{"big", "a"}, ids(got.Evicted)[:2]); d != "" {
		t.Errorf("evicted:\n%s", d)
	}
	if left := must[*Snapshot](t)(cs.Render(t.Context(), RenderRequest{})); !strings.Contains(*left.Text, "zebra d") {
		t.Errorf("what came in last was not kept:\n%s", *left.Text)
	}
}

func TestPolicyWaits(t *testing.T) {
	clock := &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	cs := scopeOf(t, openDB(t, t.TempDir(), clock), Config{Scope: Scope{"n"}})
	setPolicy(t, cs, SetPolicyRequest{Mode: new("turns"), EveryN: new(1), Provider: new("anthropic-5m"), TargetPct: new(10), ThresholdPct: new(50), HardPct: new(60), KeepRecent: new(0)})
	fill(t, cs, 2000)
	must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1, Source: "simulated"}))
	record := func() {
		t.Helper()
		must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1}))
	}
	if got := tick(t, cs, PolicyTickRequest{}); !got.Triggered {
		t.Errorf("what is simulated warms no cache: %+v", got)
	}
	fill(t, cs, 2000)
	record()
	clock.at = clock.at.Add(299 * time.Second)
	got := tick(t, cs, PolicyTickRequest{})
	if got.Triggered || !got.Deferred || got.Reason != "the prompt cache of anthropic-5m is warm for 1 more seconds" || len(got.Evicted) != 0 || got.After != 2000 {
		t.Errorf("while the cache is warm: %+v", got)
	}
	clock.at = clock.at.Add(-time.Hour)
	if got := tick(t, cs, PolicyTickRequest{}); !got.Deferred || !strings.Contains(got.Reason, "300") {
		t.Errorf("with a clock that went backwards: %+v", got)
	}
	if got := tick(t, cs, PolicyTickRequest{Force: true}); !got.Triggered || got.Deferred || got.Reason != "force" {
		t.Errorf("forced: %+v", got)
	}
	fill(t, cs, 60*8192/100) // 4915, below 60 %
	if got := tick(t, cs, PolicyTickRequest{}); !got.Deferred {
		t.Errorf("just below the hard threshold: %+v", got)
	}
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "more", Content: "x", Tier: Working}))
	if got := tick(t, cs, PolicyTickRequest{}); !got.Triggered {
		t.Errorf("above the hard threshold: %+v", got)
	}
	fill(t, cs, 2000)
	clock.at = clock.at.Add(time.Hour + 299*time.Second + 300*time.Second)
	if got := tick(t, cs, PolicyTickRequest{}); !got.Triggered {
		t.Errorf("once the cache is cold: %+v", got)
	}
}

func TestEvictionVectors(t *testing.T) {
	page := func(id string, importance float64, hits, age int64) *resident {
		return &resident{Page: &store.Page{PageID: id, Hits: hits, Touched: 100 - age, PageRevision: store.PageRevision{Importance: importance}}}
	}
	pages := []*resident{page("p", .5, 3, 0), page("q", .9, 0, 40), page("r", .5, 0, 2), page("s", .2, 15, 24)}
	for i, want := range []int64{6300, 4998, 4900, 3350} {
		r := pages[i]
		if got := value(r.Importance, r.Hits, 100-r.Touched); got != want {
			t.Errorf("%s is worth %d, not %d", r.PageID, got, want)
		}
	}
	for strategy, want := range map[string]string{"value": "srqp", "lru": "qsrp"} {
		evictionOrder(pages, strategy, 100, 0)
		got := ""
		for _, r := range pages {
			got += r.PageID
		}
		if got != want {
			t.Errorf("%s evicts %s", strategy, got)
		}
	}
}

// TestPolicyUnknownProvider goes on with a policy that names a profile which has
// gone since: nothing waits for it.
func TestPolicyUnknownProvider(t *testing.T) {
	cs := openScope(t, Config{})
	p := defaultPolicy()
	p.Provider, p.Mode, p.EveryN = "gone", "turns", 1
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.reg.link.Write(t.Context(), func(tx *store.WriteTx) error { return tx.SetPolicy("project", raw) }); err != nil {
		t.Fatal(err)
	}
	cs.reg.Changed()
	must[*RecordUsageResult](t)(cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1}))
	if got := tick(t, cs, PolicyTickRequest{}); !got.Triggered {
		t.Errorf("%+v", got)
	}
	_, err = cs.SetPolicy(t.Context(), SetPolicyRequest{EveryN: new(2)})
	wantFail(t, err, ErrInvalidArgument, "provider")
	setPolicy(t, cs, SetPolicyRequest{Provider: new("")})
}

// TestPolicyConcurrent sets fields of one policy from several scopes at once,
// while others go by it: none of them is lost, and nobody keeps an old policy.
func TestPolicyConcurrent(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	patches := []SetPolicyRequest{{EveryN: new(7)}, {KeepRecent: new(9)}, {Strategy: new("lru")}, {Provider: new("openai")}, {HardPct: new(97)}, {TargetPct: new(41)}}
	var scopes []*Store
	for i := range patches {
		scopes = append(scopes, scopeOf(t, db, Config{Scope: Scope{"n", fmt.Sprint(i)}}))
	}
	var running sync.WaitGroup
	for i, patch := range patches {
		running.Go(func() {
			for range 5 {
				if _, err := scopes[i].SetPolicy(t.Context(), patch); err != nil {
					t.Error(err)
				}
				if _, err := scopes[(i+1)%len(scopes)].PolicyTick(t.Context(), PolicyTickRequest{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	want := Policy{Mode: "manual", EveryN: 7, ThresholdPct: 80, TargetPct: 41, Strategy: "lru", KeepRecent: 9, Provider: "openai", HardPct: 97}
	for _, cs := range scopes {
		if got := policyOf(t, cs); got.Policy != want || got.State.Turns != 5 {
			t.Errorf("%v goes by %+v", cs.Scope(), got)
		}
	}
}

// TestPolicyBusy does not wait for the writer for ever.
func TestPolicyBusy(t *testing.T) {
	cs := openScope(t, Config{Wait: time.Millisecond})
	writing, finish := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := cs.reg.link.Write(context.Background(), func(*store.WriteTx) error {
			close(writing)
			<-finish
			return nil
		})
		done <- err
	}()
	<-writing
	_, err := cs.SetPolicy(t.Context(), SetPolicyRequest{EveryN: new(3)})
	wantFail(t, err, ErrBusy, "")
	_, err = cs.PolicyTick(t.Context(), PolicyTickRequest{})
	wantFail(t, err, ErrBusy, "")
	_, err = cs.RecordUsage(t.Context(), RecordUsageRequest{InputTokens: 1})
	wantFail(t, err, ErrBusy, "")
	close(finish)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := policyOf(t, cs); got.Policy != defaultPolicy() || got.State != (PolicyState{}) {
		t.Errorf("after operations that did not wait: %+v", got)
	}
}
