package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
)

// TestReplacingOneTenant holds that whatever is done to a memory as a whole leaves the
// others, their files and their positions as they were. // W5, W6
func TestReplacingOneTenant(t *testing.T) {
	m := openMemory(t, 4)
	ctx := t.Context()
	other := must[*AgentMemory](t)(Open(ctx, m.db, Config{Scope: "s2", Dimension: 4}))
	mine := &testMemory{AgentMemory: other, t: t, clock: m.clock, db: m.db, facts: other.Semantic(), episodes: other.Episodic(), procedures: other.Procedural()}
	furnish(t, mine)
	setPolicyOf(t, other, Policy{MaxSnapshots: new(2), ConsolidateAfterSeconds: new(int64(1 << 40))})
	takeSnapshot(t, other)
	m.clock.Set(T)
	furnish(t, m)
	before, files := whole(t, other), snapshotsOf(t, other)
	same := func(what string) {
		t.Helper()
		wantWhole(t, what, other, before)
		if got := snapshotsOf(t, other); !slices.Equal(got, files) {
			t.Errorf("%s: snapshots %+v, before %+v", what, got, files)
		}
	}
	setPolicyOf(t, m.AgentMemory, Policy{MaxSnapshots: new(1), ConsolidateAfterSeconds: new(int64(1)), EvictBelowConfidence: new(1.0), KeepVersions: new(0)})
	takeSnapshot(t, m.AgentMemory)
	takeSnapshot(t, m.AgentMemory)
	same("policy and retention")
	file := serialized(t, &m.facts.points)
	must[*loci.Receipt[int64]](t)(m.facts.Clear(ctx))
	same("clear")
	deserialize(t, &m.facts.points, file)
	same("deserialize")
	restoreVersion(t, m.AgentMemory, 2)
	same("restore")
	if out := autoExpire(t, m.AgentMemory); out.Consolidated != 2 || out.Evicted != 1 {
		t.Errorf("%+v", out)
	}
	same("auto_expire")
	_, err := mine.episodes.Record(ctx, EpisodeInput{PointInput: PointInput{ID: 77, Thread: new("talk"), Position: new(int64(3))}, Description: "e"})
	if err != nil {
		t.Errorf("a position of another scope or kind is in the way: %v", err)
	}
	_, err = mine.facts.Put(ctx, fact(78, "taken", x(), withThread("talk", 3)))
	wantCode(t, err, loci.ErrConflict)

	// Search names the scope as callers do, after all of that.
	for _, scope := range []string{"public", "s2"} {
		hits := must[*loci.SearchResult](t)(m.db.Search(ctx, loci.SearchRequest{
			Query: "tide", Kinds: []loci.Kind{loci.KindFact}, Filter: loci.ReadFilter{Scopes: []string{scope}},
		})).Hits
		if len(hits) == 0 {
			t.Errorf("nothing in %s", scope)
		}
		for _, h := range hits {
			if f, ok := h.Record.(*loci.Fact); !ok || f.Scope != scope {
				t.Errorf("in %q: %+v", scope, h.Record)
			}
		}
	}
	third := must[*AgentMemory](t)(Open(ctx, m.db, Config{Scope: "s3", Dimension: 4}))
	_, err = third.RestoreVersion(ctx, RestoreRequest{2})
	wantCode(t, err, loci.ErrNotFound)
}

// TestClearUnderReaders holds that others see all facts or none, and that what is
// stored after a clear returned stays. // L7
func TestClearUnderReaders(t *testing.T) {
	m := openMemory(t, 4)
	n := 3000
	if testing.Short() {
		n = 600
	}
	var batch []FactInput
	for id := range n {
		batch = append(batch, fact(loci.PointID(id), "tide", x()))
	}
	must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{batch}))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				all, err := m.facts.ListAll(t.Context())
				if err != nil || len(all) != n && len(all) > 1 {
					t.Errorf("%d facts %v", len(all), err)
					return
				}
			}
		})
	}
	if got := must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context())).Value; got != int64(n) {
		t.Errorf("cleared %d", got)
	}
	m.store(7, "stays", x())
	m.sweep()
	close(stop)
	readers.Wait()
	if f := m.get(7); f == nil || m.count() != 1 {
		t.Errorf("%+v, %d facts", f, m.count())
	}
	if h := m.deepCheck(); h.Counts["fact"] != 1 {
		t.Errorf("%v", h.Counts)
	}
}

// TestFoldersThatAreInTheWay gives what may lie where the snapshots are to be.
func TestFoldersThatAreInTheWay(t *testing.T) { // N6, N9
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	ctx := t.Context()
	dir := filepath.Dir(fileOf(m.AgentMemory, 1))
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	// A link out of the data directory is not followed.
	outside := t.TempDir()
	if err := os.Symlink(outside, dir); err != nil {
		t.Skip("no links here")
	}
	_, err := m.Snapshot(ctx)
	wantCode(t, err, loci.ErrIO)
	_, err = m.Snapshots(ctx)
	wantCode(t, err, loci.ErrIO)
	_, err = m.RestoreLatest(ctx)
	wantCode(t, err, loci.ErrIO)
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = m.Snapshot(ctx)
	wantCode(t, err, loci.ErrIO)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	taken := takeSnapshot(t, m.AgentMemory)
	for i, name := range []string{"snapshot-0.loci", "snapshot-01.loci", "snapshot--1.loci", "snapshot-99999999999999999999.loci", "notes.txt", "snapshot-4.loci.bak"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, snapshotName(taken.Version+1)), 0o700); err != nil {
		t.Fatal(err)
	}
	wantVersions(t, m.AgentMemory, taken.Version, -taken.Version-1)
	if out := must[*loci.Receipt[Restored]](t)(m.RestoreLatest(ctx)).Value; out.Version != taken.Version || len(out.Warnings) != 1 {
		t.Errorf("%+v", out)
	}
	if next := takeSnapshot(t, m.AgentMemory); next.Version != taken.Version+2 {
		t.Errorf("%+v", next)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(fmt.Errorf("a file that is none of ours is gone: %w", err))
	}
}
