package loci

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/testkit/crash"
)

var crashRounds = flag.Int("crash.rounds", 8, "how often TestKill kills a writing process")

func TestMain(m *testing.M) {
	crash.Child(crashChild)
	os.Exit(m.Run())
}

// crashChild writes batches from several goroutines until it is killed. A
// batch's number and size stand in each of its judgments; it is reported once
// its receipt is there.
func crashChild(report func(string)) {
	ctx := context.Background()
	db, err := Open(ctx, os.Getenv("LOCI_CRASH_DIR"), nil)
	if err != nil {
		panic(err)
	}
	round := os.Getenv("LOCI_CRASH_ROUND")
	report("open")
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), uint64(os.Getpid())))
			for n := 0; n < 5000; n++ {
				size := 1 + rng.IntN(40)
				batch := fmt.Sprintf("%s-%d-%d", round, g, n)
				ins := make([]MemoryInput, size)
				for i := range ins {
					ins[i] = MemoryInput{Judgment: fmt.Sprintf("batch %s of %d", batch, size), RecordInput: RecordInput{Tags: []string{"t" + strconv.Itoa(n%7)}}}
				}
				r, err := db.Memories().UpsertMany(ctx, ins)
				if err != nil {
					panic(err)
				}
				report(fmt.Sprintf("wrote %s %d", batch, size))
				if n%5 == 4 {
					if _, err := db.Memories().Delete(ctx, r.Value[0].ID, ReadFilter{}); err != nil {
						panic(err)
					}
					report(fmt.Sprintf("deleted %s", batch))
				}
			}
		})
	}
	wg.Wait()
}

// TestKill kills a writing process again and again: whatever had a receipt is
// there, whatever had none is there as a whole or not at all, and the index
// finds all of it (O5).
func TestKill(t *testing.T) {
	dir := t.TempDir()
	acknowledged, deleted := map[string]int{}, map[string]bool{}
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for round := range *crashRounds {
		lines, err := crash.Run(t.Context(), time.Duration(rng.Int64N(int64(250*time.Millisecond))),
			"LOCI_CRASH_DIR="+dir, "LOCI_CRASH_ROUND="+strconv.Itoa(round))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			f := strings.Fields(line)
			switch f[0] {
			case "wrote":
				acknowledged[f[1]], _ = strconv.Atoi(f[2])
			case "deleted":
				deleted[f[1]] = true
			}
		}
		db, err := Open(t.Context(), dir, &Options{WaitForIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		found, sizes := map[string]int{}, map[string]int{}
		all := listMemories(t, db, ReadFilter{})
		for _, m := range all {
			var batch string
			var size int
			if _, err := fmt.Sscanf(m.Judgment, "batch %s of %d", &batch, &size); err != nil {
				t.Fatal(err)
			}
			found[batch]++
			sizes[batch] = size
		}
		for batch, size := range acknowledged {
			if want := size - boolInt(deleted[batch]); found[batch] != want && !(found[batch] == want-1 && !deleted[batch]) {
				t.Fatalf("round %d: %d of batch %s are there, want %d", round, found[batch], batch, want)
			}
		}
		for batch, n := range found {
			if n != sizes[batch] && n != sizes[batch]-1 {
				t.Fatalf("round %d: %d of batch %s of %d are there", round, n, batch, sizes[batch])
			}
		}
		h := must[*HealthReport](t)(db.DeepHealth(t.Context()))
		if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.RecordCount != int64(len(all)) || h.IndexedDocuments != int64(len(all)) || h.PendingIndexUpdates != 0 {
			t.Fatalf("round %d: %d memories, %+v", round, len(all), h)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d batches acknowledged in %d rounds", len(acknowledged), *crashRounds)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
