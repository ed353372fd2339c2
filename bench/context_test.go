package bench

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/pager"
)

// smallContext does everything, and little of it.
func smallContext(parts ...ContextPart) ContextOptions {
	return ContextOptions{Pages: 1000, Parts: parts, unchanged: 50, changed: 6, queries: 4, rounds: 1, pages: 300, operations: 150, steps: 32, documents: 3}
}

// Every part on a small scale: the figures mean nothing, but none may be missing,
// and what has to be nothing is nothing at any scale.
func TestRunContext(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	o := smallContext()
	o.Dir = t.TempDir() + "/recall"
	var log bytes.Buffer
	loaded := 0
	o.Out, o.Progress = &log, func(done, _ int) { loaded = done }
	r, err := RunContext(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if loaded != 1000 {
		t.Errorf("progress ended at %d", loaded)
	}
	if len(r.Windows) != 4*4 {
		t.Fatalf("%d figures of windows", len(r.Windows))
	}
	for _, w := range r.Windows {
		if w.TextBytes < windowBytes*9/10 || w.TextBytes > windowBytes*11/10 || w.Snapshot.P50 <= 0 {
			t.Errorf("%+v", w)
		}
		if admits := strings.HasPrefix(w.Case, "an admission"); admits != (w.Evicted > 0) {
			t.Errorf("%s, %s: %d pages were evicted", w.Measure, w.Case, w.Evicted)
		}
	}
	if x := r.Random; x.Operations != 150 || x.Renders != 151 || x.Overruns != 0 || x.Unexplained != 0 || x.Breaks == 0 || x.HeapAfter <= 0 {
		t.Errorf("%+v", x)
	}
	if x := r.Recall; x.Pages < 1000 || len(x.Queries) != 6 || x.Load == nil {
		t.Errorf("%+v", x)
	} else {
		for i, q := range x.Queries {
			if admits := i%2 == 0; q.Admits != admits || admits != (q.Admitted > 0) || q.Latency.P50 <= 0 || q.Search.P50 <= 0 {
				t.Errorf("%+v", q)
			}
		}
	}
	sessions := r.Sessions
	for _, s := range sessions {
		checkSession(t, &s)
	}
	var text, raw bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"SIMULATED", "anthropic-5m", "an admission that evicts", "unexplained 0", "passage"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, text.String())
		}
	}
	if err := r.WriteJSON(&raw); err != nil || !json.Valid(raw.Bytes()) {
		t.Errorf("%v: %s", err, raw.String())
	}

	// The pages of recall are there the next time.
	o.Parts = []ContextPart{PartRecall}
	if r, err = RunContext(t.Context(), o); err != nil || r.Recall.Load != nil || r.Windows != nil {
		t.Errorf("%v, %+v", err, r)
	}
	// The same seed gives the same sessions.
	again, err := RunContext(t.Context(), smallContext(PartSession))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Sessions, sessions) {
		t.Errorf("sessions came out as\n%+v\nand as\n%+v", sessions, again.Sessions)
	}
	o.Pages = 5000
	if _, err := RunContext(t.Context(), o); err == nil {
		t.Error("1,000 pages are taken for 5,000")
	}
}

func checkSession(t *testing.T, s *SessionReport) {
	t.Helper()
	if want := len(pager.Profiles()) * 2 * len(s.Hosts); len(s.Hosts) != 4 || len(s.Bills) != want || !s.Simulated {
		t.Errorf("%d hosts, %d bills and not %d", len(s.Hosts), len(s.Bills), want)
	}
	steps := 0
	for _, x := range s.Resent {
		steps += x.Count
		if x.Bytes > 0 && !strings.HasPrefix(x.Steps, "core edited") {
			t.Errorf("budget %d: %+v", s.Budget, x)
		}
	}
	if steps != s.Steps-1 {
		t.Errorf("%d steps of %d", steps, s.Steps)
	}
	total := map[[2]any]int{}
	for _, b := range s.Bills {
		// What is sent does not depend on who bills it.
		key, sent := [2]any{b.Host, b.Before}, b.Input+b.Read+b.Write
		if before, ok := total[key]; ok && before != sent {
			t.Errorf("%s is billed for %d tokens and for %d", b.Host, before, sent)
		}
		total[key] = sent
	}
}

func TestRunContextRefuses(t *testing.T) {
	for _, o := range []ContextOptions{{Pages: 10}, {Parts: []ContextPart{"other"}}} {
		if _, err := RunContext(t.Context(), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// profileOf gives a provider's profile as the bills need it.
func testProfile(t *testing.T, id string) *pager.Profile {
	t.Helper()
	for _, p := range pager.Profiles() {
		if p.ID == id {
			return &p
		}
	}
	t.Fatalf("no profile %q", id)
	return nil
}

// text is a block in which every byte is a token.
func text(content string, mark bool) block {
	return block{text: []byte(content), tokens: len(content), mark: mark}
}

func TestBilling(t *testing.T) {
	host := text(strings.Repeat("h", 2000), true)
	long := func(c string, n int) string { return strings.Repeat(c, n) }
	appended := func(n int, mark int) []block {
		out := []block{host}
		for i := range n {
			out = append(out, text(long(string(rune('a'+i)), 100), i == mark))
		}
		return out
	}
	for _, c := range []struct {
		name, profile string
		requests      [][]block
		after         time.Duration // between two
		want          []bill
	}{
		{"written, then read", "anthropic-5m", [][]block{{host, text("tail", true)}, {host, text("tail", true)}}, time.Minute,
			[]bill{{100, 0, 2004}, {100, 2004, 0}}},
		{"the tail changed", "anthropic-5m", [][]block{{host, text("tail", true)}, {host, text("other", true)}}, time.Minute,
			[]bill{{100, 0, 2004}, {100, 2000, 5}}},
		{"the tail without a mark", "anthropic-5m", [][]block{{host, text("tail", false)}, {host, text("tail", false)}}, time.Minute,
			[]bill{{104, 0, 2000}, {104, 2000, 0}}},
		{"too late", "anthropic-5m", [][]block{{host}, {host}, {host}}, 301 * time.Second, []bill{{100, 0, 2000}, {100, 0, 2000}, {100, 0, 2000}}},
		{"in time for longer", "anthropic-1h", [][]block{{host}, {host}}, 301 * time.Second, []bill{{100, 0, 2000}, {100, 2000, 0}}},
		{"renewed by each use", "anthropic-5m", [][]block{{host}, {host}, {host}}, 200 * time.Second, []bill{{100, 0, 2000}, {100, 2000, 0}, {100, 2000, 0}}},
		{"below the minimum", "anthropic-5m", [][]block{{text(long("x", 1023), true)}, {text(long("x", 1023), true)}}, time.Minute,
			[]bill{{1123, 0, 0}, {1123, 0, 0}}},
		{"looked for 20 blocks back", "anthropic-5m", [][]block{appended(1, 0), appended(21, 20)}, time.Minute, []bill{{100, 0, 2100}, {100, 2100, 2000}}},
		{"and no farther", "anthropic-5m", [][]block{appended(1, 0), appended(22, 21)}, time.Minute, []bill{{100, 0, 2100}, {100, 2000, 2200}}},
		{"at breakpoints alone", "openai-5.6", [][]block{appended(1, 0), appended(2, 1)}, time.Minute, []bill{{100, 0, 2100}, {100, 2000, 200}}},
		{"steps of 128", "openai", [][]block{{text(long("x", 2000), false)}, {text(long("x", 1300)+"y", false)}}, time.Minute,
			[]bill{{2100, 0, 0}, {1401 - 1280, 1280, 0}}},
		{"the best of all before", "openai", [][]block{{text(long("x", 2000), false)}, {text(long("y", 2000), false)}, {text(long("x", 2000), true)}},
			time.Minute, []bill{{2100, 0, 0}, {2100, 0, 0}, {2100 - 1920, 1920, 0}}},
		{"too little in common", "gemini-pro", [][]block{{host}, {host}}, time.Minute, []bill{{2100, 0, 0}, {2100, 0, 0}}},
		{"no minimum", "deepseek-pro", [][]block{{text(long("x", 200), false)}, {text(long("x", 200), false)}}, time.Minute, []bill{{300, 0, 0}, {172, 128, 0}}},
	} {
		cache := newPromptCache(testProfile(t, c.profile), func(text []byte) int { return len(text) })
		var now time.Time
		for i, blocks := range c.requests {
			got, err := cache.send(&request{blocks, 100}, now)
			if err != nil || got != c.want[i] {
				t.Errorf("%s: request %d is billed %+v, not %+v (%v)", c.name, i, got, c.want[i], err)
			}
			now = now.Add(c.after)
		}
	}
	cache := newPromptCache(testProfile(t, "anthropic-5m"), nil)
	if _, err := cache.send(&request{blocks: []block{host, host, host, host, host}}, time.Time{}); err == nil {
		t.Error("five breakpoints are taken")
	}
}

func TestBillCost(t *testing.T) {
	b := bill{input: 1000, read: 8000, write: 1000}
	if p := testProfile(t, "anthropic-5m"); b.hitRate() != 0.8 || b.cost(p)/float64(b.total()) != 0.305 {
		t.Errorf("hit rate %v, cost %v", b.hitRate(), b.cost(p))
	}
}
