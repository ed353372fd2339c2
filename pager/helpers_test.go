package pager

import (
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

// testClock is a clock that tests move.
type testClock struct{ at time.Time }

func (c *testClock) now() time.Time { return c.at }

// openDB opens a store in a folder, without anything in the background.
func openDB(t testing.TB, dir string, clock *testClock) *loci.DB {
	t.Helper()
	if clock == nil {
		clock = &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	}
	db, err := loci.Open(t.Context(), dir, &loci.Options{Clock: clock.now, WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// openScope opens a scope of a fresh store.
func openScope(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Scope == nil {
		cfg.Scope = Scope{"project", "session"}
	}
	return scopeOf(t, openDB(t, t.TempDir(), nil), cfg)
}

func scopeOf(t testing.TB, db *loci.DB, cfg Config) *Store {
	t.Helper()
	cs, err := Open(t.Context(), db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
