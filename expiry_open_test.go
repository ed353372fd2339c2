package loci

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store"
)

// TestSweepWaitsForTheIndex holds that nothing is swept while an index is brought up
// to the truth: it would not learn of it, and be behind for good.
func TestSweepWaitsForTheIndex(t *testing.T) {
	at := time.UnixMicro(1_000_000_000_000_000)
	clock := func() time.Time { return at }
	dir := t.TempDir()
	db := must[*DB](t)(Open(t.Context(), dir, &Options{Clock: clock, WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true}))
	for key := range uint64(3) {
		addPoint(t, db, newFact(key, "tide", new(at.UnixMicro()+1)), nil, "")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	at = at.Add(time.Second)
	opts := &Options{Clock: clock, WaitForIndex: true, NoBackgroundEmbedding: true}
	opts.openIndex = func(ctx context.Context, e *engine, opts *Options) error {
		if err := openIndex(ctx, e, opts); err != nil {
			return err
		}
		before := e.store.Counters().Revision
		for range 2000 { // time for a sweep that does not wait
			runtime.Gosched()
			some := false
			if err := e.read(ctx, func(tx *store.ReadTx) (err error) {
				_, some, err = tx.NextExpiry()
				return err
			}); err != nil {
				return err
			}
			if now := e.store.Counters().Revision; !some || now != before {
				t.Errorf("revision %d became %d while the index was opened", before, now)
				break
			}
		}
		return nil
	}
	db = must[*DB](t)(Open(t.Context(), dir, opts))
	defer db.Close()
	if got := factKeys(t, db, SearchRequest{Query: "tide"}); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}
