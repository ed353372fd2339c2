package loci

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestRebuildIsTriedAgain fills the disk while a rebuild runs that nobody waits
// for: when there is room again the index comes back without being asked for.
func TestRebuildIsTriedAgain(t *testing.T) {
	dir, want := closedLibrary(t, 200)
	if err := os.RemoveAll(filepath.Join(dir, indexFolder)); err != nil {
		t.Fatal(err)
	}
	var full atomic.Bool
	full.Store(true)
	failed := make(chan struct{}, 100)
	db, err := Open(context.Background(), dir, &Options{indexFS: hookIndexFS(func(op, _ string) error {
		if full.Load() {
			failed <- struct{}{}
			return errors.New("no space left")
		}
		return nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	<-failed
	if h := must[*HealthReport](t)(db.Health(t.Context())); h.IndexUsable {
		t.Fatal("an index that cannot be written is usable")
	}
	full.Store(false)
	for {
		if h := must[*HealthReport](t)(db.Health(t.Context())); h.IndexUsable {
			break
		}
		// Only the test's own deadline bounds this: nothing here asks for the
		// rebuild.
		time.Sleep(10 * time.Millisecond)
	}
	wantAnswers(t, db, libraryQueries(), want)
}
