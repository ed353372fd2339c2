package loci

import (
	"context"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

// waitRebuild waits for the end of a rebuild and calls look now and then.
func waitRebuild(ctx context.Context, run *rebuildRun, look func()) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-run.done:
			return nil
		case <-tick.C:
			look()
		case <-ctx.Done():
			return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while the index was built anew")
		}
	}
}
