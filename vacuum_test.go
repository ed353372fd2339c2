package loci

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/store/faultvfs"
	"github.com/loci-memory/loci/internal/testkit/crash"
)

// vacuumStore is a store with records of which every other one was deleted.
func vacuumStore(t testing.TB, dir string, opts *Options) (*DB, []ID) {
	t.Helper()
	opts.WaitForIndex = true
	db := must[*DB](t)(Open(t.Context(), dir, opts))
	t.Cleanup(func() { db.Close() })
	ins := make([]MemoryInput, 400)
	for i := range ins {
		ins[i] = MemoryInput{Judgment: fmt.Sprintf("Walrus %d sat on the quay. %s", i, strings.Repeat("Nobody minded. ", 40)), RecordInput: RecordInput{Tags: []string{fmt.Sprint("half ", i%2)}}}
	}
	written := must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), ins)).Value
	must[*Receipt[int64]](t)(db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: ReadFilter{Tags: []string{"half 1"}}}))
	var left []ID
	for i, m := range written {
		if i%2 == 0 {
			left = append(left, m.ID)
		}
	}
	return db, left
}

// checkVacuumed holds that a store holds the records, whole, and finds them.
func checkVacuumed(t testing.TB, db *DB, left []ID) {
	t.Helper()
	found := listMemories(t, db, ReadFilter{})
	if len(found) != len(left) {
		t.Fatalf("%d records are there, want %d", len(found), len(left))
	}
	for i, m := range found {
		if m.ID != left[i] || !strings.HasSuffix(m.Judgment, "Nobody minded.") {
			t.Fatalf("record %d is %+v", left[i], m)
		}
	}
	h := must[*HealthReport](t)(db.DeepHealth(t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || !h.IndexUsable || h.IndexedDocuments != int64(len(left)) {
		t.Fatalf("%+v", h)
	}
	if r := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "walrus quay"})); len(r.Hits) == 0 || len(r.Diagnostics.Degraded) > 0 {
		t.Fatalf("%d hits, degraded %v", len(r.Hits), r.Diagnostics.Degraded)
	}
}

// TestVacuum holds that a vacuum gives back space, removes what was left behind, and
// tells of copies that it leaves.
func TestVacuum(t *testing.T) {
	dir := t.TempDir()
	db, left := vacuumStore(t, dir, &Options{})
	leftovers := []string{"index/" + damagedPrefix + "g000001/seg-00000001", damagedPrefix + indexFolder, store.PartialPrefix + "1",
		"agent/n/s/snapshot-1.loci.tmp", "agent/~restore-x.tmp", store.DatabaseFile + ".vacuum", store.DatabaseFile + ".vacuum-wal"}
	for _, name := range append(leftovers, store.DatabaseFile+".v3", "mine.txt") {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("walrus"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var last atomic.Int64
	report := must[*VacuumReport](t)(db.Vacuum(t.Context(), func(done, total int64) {
		if done < last.Load() || done > total || total != vacuumAll {
			t.Errorf("progress %d of %d after %d", done, total, last.Load())
		}
		last.Store(done)
	}))
	if last.Load() != vacuumAll {
		t.Errorf("progress ended at %d", last.Load())
	}
	if report.After.Database >= report.Before.Database || report.After.Total >= report.Before.Total || report.After.Index == 0 {
		t.Errorf("%+v", report)
	}
	if report.Removed < 5 || len(report.NotReached) != 1 || filepath.Base(report.NotReached[0].File) != store.DatabaseFile+".v3" {
		t.Errorf("%+v", report)
	}
	for _, name := range leftovers {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "mine.txt")); err != nil {
		t.Error(err)
	}
	checkVacuumed(t, db, left)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := must[*DB](t)(Open(t.Context(), dir, &Options{WaitForIndex: true}))
	defer again.Close()
	checkVacuumed(t, again, left)
}

// TestVacuumNoRoom holds that a vacuum without room says so, and changes nothing.
func TestVacuumNoRoom(t *testing.T) {
	dir := t.TempDir()
	db, left := vacuumStore(t, dir, &Options{})
	use, err := db.eng.diskUse()
	if err != nil {
		t.Fatal(err)
	}
	db.eng.room = func(string) (uint64, bool) { return uint64(roomFor(use)) - 1, true }
	before := stateOf(t, db)
	_, err = db.Vacuum(t.Context())
	wantCode(t, err, ErrIO)
	if now := stateOf(t, db); now != before {
		t.Errorf("%+v, was %+v", now, before)
	}
	db.eng.room = func(string) (uint64, bool) { return uint64(roomFor(use)), true }
	must[*VacuumReport](t)(db.Vacuum(t.Context()))
	db.eng.room = func(string) (uint64, bool) { return 0, false } // a system that does not tell
	must[*VacuumReport](t)(db.Vacuum(t.Context()))
	checkVacuumed(t, db, left)
}

// TestVacuumFaults has the disk fill at one step of a vacuum after the other. Each
// time everything is as it was.
func TestVacuumFaults(t *testing.T) {
	vfs := faultvfs.Register("vacuum")
	t.Cleanup(vfs.Close)
	opts := &Options{}
	opts.store.VFS = vfs.Name()
	db, left := vacuumStore(t, t.TempDir(), opts)
	before := stateOf(t, db)
	failed := 0
	for n := int64(1); ; n += 1 + n/3 { // all of the first steps, then ever fewer
		vfs.FailAt(n, faultvfs.Write|faultvfs.Sync|faultvfs.Truncate, faultvfs.ErrDiskFull, true)
		_, err := db.Vacuum(t.Context())
		vfs.FailAt(0, 0, nil, false)
		if err == nil {
			break
		}
		failed++
		if now := stateOf(t, db); now != before {
			t.Fatalf("step %d: %+v, was %+v", n, now, before)
		}
		if h, err := db.eng.store.DeepCheck(t.Context()); err != nil || h.Integrity != "ok" {
			t.Fatalf("step %d: %+v, %v", n, h, err)
		}
		if _, err := os.Stat(filepath.Join(db.Directory(), store.DatabaseFile+".vacuum")); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("step %d left its copy: %v", n, err)
		}
	}
	if failed < 5 {
		t.Fatalf("only %d steps failed", failed)
	}
	checkVacuumed(t, db, left)
}

// TestVacuumMeanwhile has readers and writers at work while one vacuum follows the
// other, and a reader of an old state whose end the vacuum has to wait for.
func TestVacuumMeanwhile(t *testing.T) {
	db, left := vacuumStore(t, t.TempDir(), &Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var added atomic.Int64
	for i := range 2 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: fmt.Sprint("written ", i, n), RecordInput: RecordInput{Scope: new("new")}}); err != nil {
					t.Error(err)
					return
				}
				added.Add(1)
			}
		})
		group.Go(func() {
			for ctx.Err() == nil {
				if r, err := db.Search(t.Context(), SearchRequest{Query: "walrus"}); err != nil || len(r.Hits) == 0 {
					t.Errorf("%v, %v", r, err)
					return
				}
			}
		})
	}
	for range 2 {
		must[*VacuumReport](t)(db.Vacuum(t.Context()))
	}
	cancel()
	group.Wait()
	if n := len(listMemories(t, db, scoped("new"))); int64(n) != added.Load() {
		t.Errorf("%d records are there, %d were written", n, added.Load())
	}

	reading, end := make(chan struct{}), make(chan struct{})
	group.Go(func() {
		err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
			close(reading)
			<-end
			_, err := tx.Memory(int64(left[0]))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-reading
	short, stop := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer stop()
	// It ends with this context, or with that reader, which holds it up.
	_, err := db.Vacuum(short)
	wantCode(t, err, ErrCanceled)
	close(end)
	group.Wait()
	must[*VacuumReport](t)(db.Vacuum(t.Context()))
	must[*Receipt[int64]](t)(db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: scoped("new")}))
	checkVacuumed(t, db, left)
}

// TestUpkeepChild is what the child processes of TestKillDuringUpkeep run.
func TestUpkeepChild(t *testing.T) {
	role, args := crash.Role()
	if role != "upkeep" {
		t.Skip("only in a child process")
	}
	db, err := Open(t.Context(), args[0], &Options{WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	crash.Say("open")
	for {
		if _, err := db.Erase(t.Context(), EraseRequest{Mentions: []string{"gone"}, EraseMentions: true}); err != nil {
			crash.Say("failed erase: %v", err)
			os.Exit(1)
		}
		crash.Say("erased")
		if _, err := db.Vacuum(t.Context()); err != nil {
			crash.Say("failed vacuum: %v", err)
			os.Exit(1)
		}
	}
}

// TestKillDuringUpkeep kills erasures and vacuums. What was to stay is there as a
// whole, nothing is half there, and another erasure goes on to the end.
func TestKillDuringUpkeep(t *testing.T) {
	if runtime.GOOS == "windows" || testing.Short() {
		t.Skip("kills processes")
	}
	random := rand.New(rand.NewPCG(7, 7))
	midway := 0
	for round := range 4 {
		dir := t.TempDir()
		db, left := vacuumStore(t, dir, &Options{})
		gone := make([]MemoryInput, 2000)
		for i := range gone {
			gone[i] = MemoryInput{Judgment: fmt.Sprint("gone for good ", i), RecordInput: RecordInput{Tags: []string{fmt.Sprint("gone", i)}}}
		}
		must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), gone))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		child, err := crash.Start("TestUpkeepChild", "upkeep", dir)
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := child.First(); !ok || line != "open" {
			_, _, output := child.Wait()
			t.Fatalf("round %d: the child did not open the store: %q %s", round, line, output)
		}
		// The moment is what this test varies; nothing depends on which it is.
		time.Sleep(time.Duration(random.IntN(700_000)) * time.Microsecond)
		child.Kill()
		if said, ended, output := child.Wait(); ended {
			t.Fatalf("round %d: the child ended by itself: %v %s", round, said, output)
		}
		again := must[*DB](t)(Open(t.Context(), dir, &Options{WaitForIndex: true}))
		n := len(listMemories(t, again, ReadFilter{})) - len(left)
		if n < 0 || n > len(gone) {
			t.Fatalf("round %d: %d records too many", round, n)
		}
		if n > 0 && n < len(gone) {
			midway++
		}
		if h := must[*HealthReport](t)(again.DeepHealth(t.Context())); h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
			t.Fatalf("round %d: %+v", round, h)
		}
		if report := erase(t, again, EraseRequest{Mentions: []string{"gone"}, EraseMentions: true}); report.Total != int64(n) {
			t.Fatalf("round %d: %d went, %d were left", round, report.Total, n)
		}
		must[*VacuumReport](t)(again.Vacuum(t.Context()))
		checkVacuumed(t, again, left)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of the kills came in the middle of an erasure", midway)
}
