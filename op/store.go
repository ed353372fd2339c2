package op

import (
	"context"
	"sync"
	"time"

	"github.com/loci-memory/loci"
)

// Nothing is the input of an operation that takes none.
type Nothing struct{}

// HealthQuery asks for the store's state.
type HealthQuery struct {
	Deep bool `json:"deep,omitempty"` // also check the database's integrity, which reads every page
}

// BackupTarget says where a backup goes.
type BackupTarget struct {
	Target string `json:"target"` // path of a file that does not exist, in a folder that does
}

func storeOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "health",
			Summary:     "Show the store's counters",
			Description: "Costs microseconds, unless deep asks for the integrity of the database as well.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"DB.Health", "DB.DeepHealth"},
		}, func(ctx context.Context, db *loci.DB, in HealthQuery) (*loci.HealthReport, error) {
			if in.Deep {
				return db.DeepHealth(ctx)
			}
			return db.Health(ctx)
		}),
		Define(Spec{
			Name:        "update_index",
			Summary:     "Bring the index up to what is stored",
			Description: "Writes do this themselves, so it is rarely needed and cheap.",
			Idempotent:  true,
			Admin:       true,
			Covers:      []string{"DB.UpdateIndex"},
		}, func(ctx context.Context, db *loci.DB, _ Nothing) (*loci.HealthReport, error) {
			return db.UpdateIndex(ctx)
		}),
		Define(Spec{
			Name:        "rebuild_indexes",
			Summary:     "Build every index anew from what is stored",
			Description: "Reads and writes go on meanwhile. A second call waits for the first.",
			Idempotent:  true, LongRunning: true,
			Admin:  true,
			Covers: []string{"DB.RebuildIndexes"},
		}, rebuild),
		Define(Spec{
			Name:     "rebuild_progress",
			Summary:  "Show how far an index rebuild is",
			ReadOnly: true, Idempotent: true,
			Admin:  true,
			Covers: []string{"DB.RebuildProgress"},
		}, func(_ context.Context, db *loci.DB, _ Nothing) (loci.RebuildProgress, error) {
			return db.RebuildProgress(), nil
		}),
		Define(Spec{
			Name:        "backup",
			Summary:     "Copy everything that is stored to a new file",
			Description: "The copy is the store at one moment; reads and writes go on meanwhile. A file that exists is refused and stays as it is. A backup becomes a store again with loci restore." + absolutePaths,
			Positional:  []string{"target"},
			LocalPaths:  []string{"target"},
			LongRunning: true,
			Admin:       true,
			Covers:      []string{"DB.Backup"},
		}, func(ctx context.Context, db *loci.DB, in BackupTarget) (*loci.BackupReport, error) {
			return db.Backup(ctx, in.Target, ProgressFrom(ctx))
		}),
	}
}

// progressEvery is how often a rebuild's progress is looked at.
const progressEvery = 100 * time.Millisecond

// rebuild runs a rebuild and, when someone wants to know, watches it.
func rebuild(ctx context.Context, db *loci.DB, _ Nothing) (*loci.HealthReport, error) {
	report := ProgressFrom(ctx)
	if report == nil {
		return db.RebuildIndexes(ctx)
	}
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if p := db.RebuildProgress(); p.Active {
					report(p.Processed, p.Total)
				}
			}
		}
	})
	h, err := db.RebuildIndexes(ctx)
	close(done)
	watcher.Wait()
	if err == nil {
		report(h.RecordCount, h.RecordCount)
	}
	return h, err
}
