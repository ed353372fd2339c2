package pager

import (
	"strconv"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// TestLogIsTrimmed fills a scope's log by few operations with very many entries
// and by many with one: what it keeps is bounded, the newest stay, and what was
// billed is kept whole.
func TestLogIsTrimmed(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	cs := openScope(t, Config{})
	next := 0
	add := func(n int) {
		t.Helper()
		err := cs.mutate(t.Context(), "test", func(c *change) error {
			for i := range n {
				if err := c.appendLog(store.LogResidency, "", Movement{Bytes: next + i + 1}); err != nil {
					return err
				}
				if err := c.appendLog(store.LogUsage, "call "+strconv.Itoa(next+i), UsageRecord{}); err != nil {
					return err
				}
			}
			return nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		next += n
	}
	for _, n := range []int{keptLog - 1, 3, 996, 1, 1, 2500, 998, 1, 1} {
		add(n)
		err := cs.with(t.Context(), "test", func(s *scope) error {
			moves, err := s.movements(t.Context(), 1<<20)
			if err != nil {
				return err
			}
			if len(moves) < min(next, keptLog) || len(moves) >= keptLog+1000 {
				t.Errorf("of %d entries %d are kept", next, len(moves))
			}
			for i := range moves {
				if moves[i].Bytes != next-i {
					t.Fatalf("entry %d of the newest is number %d of %d", i, moves[i].Bytes, next)
				}
			}
			calls, err := s.usageRecords(t.Context(), 1<<20)
			if err == nil && len(calls) != next {
				t.Errorf("of %d billed calls %d are kept", next, len(calls))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
