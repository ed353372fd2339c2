package loci

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/testkit/fakeindex"
)

// testClock stands still until it is moved.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock { return &testClock{now: time.UnixMicro(1_700_000_000_000_000)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Set(us int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = time.UnixMicro(us)
}

// withFakeIndex makes Open use a naive index, brought up by the journal.
func withFakeIndex(opts *Options, got **fakeindex.Index) *Options {
	opts.openIndex = func(ctx context.Context, e *engine, _ *Options) error {
		ix := fakeindex.New(0)
		if got != nil {
			*got = ix
		}
		if err := e.replay(ctx, ix); err != nil {
			return err
		}
		e.setIndex(ix)
		return nil
	}
	return opts
}

func openTestDB(t testing.TB, dir string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dir, withFakeIndex(&Options{Clock: newTestClock().Now}, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func wantCode(t testing.TB, err error, code Code) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, code) {
		t.Fatalf("error %v, want code %s", err, code)
	}
	if e.Op == "" {
		t.Fatalf("error %v names no operation", err)
	}
	return e
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func scoped(scopes ...string) ReadFilter { return ReadFilter{Scopes: scopes} }

func addMemory(t testing.TB, db *DB, in MemoryInput) Memory {
	t.Helper()
	return must[*Receipt[Memory]](t)(db.Memories().Upsert(t.Context(), in)).Value
}

func getMemory(t testing.TB, db *DB, id ID, f ReadFilter) Memory {
	t.Helper()
	return *must[*Memory](t)(db.Memories().Get(t.Context(), id, f))
}

func listMemories(t testing.TB, db *DB, f ReadFilter) []Memory {
	t.Helper()
	var all []Memory
	req := PageRequest{Filter: f, Limit: new(1000)}
	for {
		page := must[*Page[Memory]](t)(db.Memories().List(t.Context(), req))
		all = append(all, page.Items...)
		if page.NextCursor == 0 {
			return all
		}
		req.After = page.NextCursor
	}
}

// state is what a failed write must leave as it was.
type dbState struct{ revision, records, documents int64 }

func stateOf(t testing.TB, db *DB) dbState {
	t.Helper()
	h := must[*HealthReport](t)(db.Health(t.Context()))
	return dbState{h.Revision, h.RecordCount, h.IndexedDocuments}
}
