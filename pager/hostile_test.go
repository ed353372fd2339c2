package pager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

// oddCounter counts as it is told.
type oddCounter struct{ count func(text string) int }

func (c *oddCounter) ID() string            { return "odd" }
func (c *oddCounter) Count(text string) int { return c.count(text) }

// TestOddCounts holds that a counter that counts nonsense makes no nonsense of
// the window's figures: below nothing is nothing, and too much is too much.
func TestOddCounts(t *testing.T) {
	for _, c := range []struct {
		counts int
		code   error
		level  string
		cost   int
	}{
		{0, nil, "low", 0}, {-5, nil, "low", 0}, {math.MinInt, nil, "low", 0}, {math.MaxInt, ErrCoreOverBudget, "", 0},
	} {
		cs := openScope(t, Config{Counter: &oddCounter{func(string) int { return c.counts }}})
		if _, err := cs.Write(t.Context(), WriteRequest{PageID: "a", Content: "text", Tier: Working}); !errors.Is(err, c.code) && err != c.code {
			t.Fatalf("counting %d: %v", c.counts, err)
		}
		s, err := cs.Snapshot(t.Context(), SnapshotRequest{})
		if !errors.Is(err, c.code) && err != c.code {
			t.Fatalf("counting %d: %v", c.counts, err)
		}
		if err == nil && (s.Pressure.Level != c.level || s.Pressure.Cost != c.cost || s.Pressure.Used != 0) {
			t.Errorf("counting %d: %+v", c.counts, s.Pressure)
		}
		d := must[*Dashboard](t)(cs.Dashboard(t.Context(), DashboardRequest{}))
		if over := c.counts > 0; over != (d.Now.Pressure == "hard") || d.Now.Used < 0 || d.Now.CoreCost < 0 {
			t.Errorf("counting %d: %+v", c.counts, d.Now)
		}
	}
}

// TestCounterPanics lets a caller's counter panic in the middle of operations: the
// scope is free again and as it was.
func TestCounterPanics(t *testing.T) {
	fails := false
	cs := openScope(t, Config{Wait: time.Nanosecond, Counter: &oddCounter{func(text string) int {
		if fails {
			panic("the counter fails")
		}
		return len(text)
	}}})
	// A short wait for the turn: one that was kept would be ErrBusy.
	cs.wait = defaultWait
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: "x", Content: "archived"})
	before := snapshot(t, cs)
	cs.wait = time.Nanosecond
	for name, run := range map[string]func() error{
		"page_in":  func() error { _, err := cs.PageIn(t.Context(), PageInRequest{PageID: "x"}); return err },
		"write":    func() error { _, err := cs.Write(t.Context(), WriteRequest{Content: "x", Tier: Core}); return err },
		"page_out": func() error { _, err := cs.PageOut(t.Context(), PageOutRequest{PageID: "w1"}); return err },
		"recall": func() error {
			_, err := cs.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "archived"}})
			return err
		},
		"status": func() error { _, err := cs.Status(t.Context(), StatusRequest{}); return err },
		"reconfigure": func() error {
			cfg := cs.cfg
			cfg.Budget, cfg.Reconfigure = new(4000), true
			_, err := Open(t.Context(), cs.reg.db, cfg)
			return err
		},
	} {
		fails = true
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the counter was not asked", name)
				}
			}()
			if err := run(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
		fails = false
		after, err := cs.Snapshot(t.Context(), SnapshotRequest{Since: &before.Generation})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after.Changed || after.Epoch != before.Epoch {
			t.Errorf("%s: %+v", name, after)
		}
	}
	cs.wait = defaultWait
	if in := must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: "x"})); !in.Changed {
		t.Errorf("%+v", in)
	}
}

// TestNothingBesideAnError holds that a handle or a result comes without an error
// only.
func TestNothingBesideAnError(t *testing.T) {
	cs := openScope(t, Config{Budget: new(4000)})
	put(t, cs, WriteRequest{PageID: "a", Content: "text"})
	if other, err := Open(t.Context(), cs.reg.db, Config{Scope: cs.scope, Budget: new(5000)}); !errors.Is(err, ErrConfigMismatch) || other != nil {
		t.Errorf("%v %v", other, err)
	}
	if out, err := cs.Write(t.Context(), WriteRequest{PageID: "a", Content: "more"}); !errors.Is(err, ErrVersionConflict) || out != nil {
		t.Errorf("%v %v", out, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := cs.Write(ended, WriteRequest{Content: "more"}); loci.CodeOf(err) != loci.ErrCanceled || out != nil {
		t.Errorf("%v %v", out, err)
	}
}

// TestPolicyStateIsTheCallers holds that a caller who changes an answer changes
// the answer only.
func TestPolicyStateIsTheCallers(t *testing.T) {
	cs := openScope(t, Config{})
	must[*PolicyTickResult](t)(cs.PolicyTick(t.Context(), PolicyTickRequest{TurnID: new(int64(3)), Force: true}))
	got := must[*Replacement](t)(cs.ReplacementPolicy(t.Context(), ReplacementPolicyRequest{}))
	*got.State.LastTurnID, got.State.Last.Reason = 77, "mine"
	got = must[*Replacement](t)(cs.ReplacementPolicy(t.Context(), ReplacementPolicyRequest{}))
	if *got.State.LastTurnID != 3 || got.State.Last.Reason != "force" {
		t.Errorf("%d %+v", *got.State.LastTurnID, got.State.Last)
	}
}

// TestImportedWindowKeepsItsBudget imports a window that fills its budget to the
// last byte into a store where its copies get longer names: whoever publishes it,
// or renders it, gets one that keeps the budget.
func TestImportedWindowKeepsItsBudget(t *testing.T) {
	for name, look := range map[string]func(*Store) (*Snapshot, error){
		"snapshot": func(cs *Store) (*Snapshot, error) { return cs.Snapshot(t.Context(), SnapshotRequest{}) },
		"recall": func(cs *Store) (*Snapshot, error) {
			out, err := cs.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "nothingofthekind"}})
			if err != nil {
				return nil, err
			}
			return out.Context, nil
		},
		"render": func(cs *Store) (*Snapshot, error) { return cs.Render(t.Context(), RenderRequest{}) },
	} {
		db, cs, memory := lived(t)
		copied := fmt.Sprintf("memory:%d", memory)
		size := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{})).TextBytes
		cfg := Config{Scope: cs.scope, Budget: new(size), Reconfigure: true}
		must[*Store](t)(Open(t.Context(), db, cfg))
		other := openDB(t, t.TempDir(), nil)
		for i := range 40 {
			must[*loci.Receipt[loci.Memory]](t)(other.Memories().Upsert(t.Context(), loci.MemoryInput{Judgment: fmt.Sprint("its own ", i)}))
		}
		must[*loci.ImportReport](t)(other.Import(t.Context(), strings.NewReader(exportOf(t, db)), nil))
		there := scopeOf(t, other, Config{Scope: cs.scope})
		seen := must[*Snapshot](t)(there.Snapshot(t.Context(), SnapshotRequest{Publish: new(false)}))
		if seen.TextBytes <= size || strings.Contains(*seen.Text, copied+`"`) {
			t.Fatalf("%s: the text did not grow: %+v", name, seen)
		}
		got, err := look(there)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.TextBytes > size || got.Pressure.Cost != got.TextBytes {
			t.Errorf("%s: %+v of a budget of %d", name, got, size)
		}
		if again := must[*Snapshot](t)(there.Snapshot(t.Context(), SnapshotRequest{})); *again.Text != *got.Text {
			t.Errorf("%s: %s", name, *again.Text)
		}
	}
}
