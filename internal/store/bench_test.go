package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store/faultvfs"
)

func openTest(tb testing.TB, dir string, opts Options) *Store {
	tb.Helper()
	s, err := Open(context.Background(), dir, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func testMemory(rng *rand.Rand, i int) *Memory {
	return &Memory{
		Record: Record{
			Namespace: "default", Scope: "public", Created: int64(i), Updated: int64(i),
			Tags: []string{fmt.Sprintf("tag-%d", rng.IntN(100)), fmt.Sprintf("tag-%d", 100+rng.IntN(1000))},
		},
		Type:         "knowledge",
		Judgment:     fmt.Sprintf("Sentence %d is as long as what people note down in one go, about a hundred letters or so.", i),
		Reasoning:    "Because it was said in passing and nobody objected at the time.",
		JudgmentHash: int64(rng.Uint64()),
		State:        State{Strength: 1},
	}
}

func addBatch(tb testing.TB, s *Store, batch []*Memory) {
	_, err := s.Write(context.Background(), func(tx *WriteTx) error {
		for _, m := range batch {
			if err := tx.AddMemory(m); err != nil {
				return err
			}
			tx.Stage(&m.Record, nil)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkIngest(b *testing.B) {
	for _, before := range []int{0, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("after=%d", before), func(b *testing.B) {
			s := openTest(b, b.TempDir(), Options{})
			rng := rand.New(rand.NewPCG(1, 2))
			fill := func(n int) {
				for n > 0 {
					batch := make([]*Memory, min(n, 1000))
					for i := range batch {
						batch[i] = testMemory(rng, i)
					}
					n -= len(batch)
					addBatch(b, s, batch)
				}
			}
			fill(before)
			batches := make([][]*Memory, b.N/1000+1)
			for k := range batches {
				batches[k] = make([]*Memory, 1000)
				for i := range batches[k] {
					batches[k][i] = testMemory(rng, i)
				}
			}
			b.ResetTimer()
			cpu := cpuTime()
			for _, batch := range batches {
				addBatch(b, s, batch)
			}
			n := float64(len(batches) * 1000)
			b.ReportMetric(float64(cpuTime()-cpu)/1e3/n, "cpu-us/record")
			b.ReportMetric(n/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkHydrate(b *testing.B) {
	s := openTest(b, b.TempDir(), Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	const total = 100_000
	for k := 0; k < total/1000; k++ {
		batch := make([]*Memory, 1000)
		for i := range batch {
			batch[i] = testMemory(rng, i)
		}
		addBatch(b, s, batch)
	}
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ids := make([]int64, n)
			for b.Loop() {
				for i := range ids {
					ids[i] = 1 + rng.Int64N(total)
				}
				err := s.Read(context.Background(), func(tx *ReadTx) error {
					got, err := tx.Memories(ids)
					if len(got) != n {
						b.Fatal(len(got))
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGroupCommit(b *testing.B) {
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			measureCallers(b, Options{}, callers)
		})
	}
}

// measureCallers lets callers write one memory after the other.
func measureCallers(b *testing.B, opts Options, callers int) {
	var log hookLog
	opts.Hooks = &log
	s := openTest(b, b.TempDir(), opts)
	var wg sync.WaitGroup
	b.ResetTimer()
	for c := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(c)))
			for i := c; i < b.N; i += callers {
				addBatch(b, s, []*Memory{testMemory(rng, i)})
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64(b.N)/float64(max(log.stages, 1)), "writes/commit")
}

// BenchmarkGroupCommitSlowSync is the same on a disk whose sync takes 2 ms
// longer.
func BenchmarkGroupCommitSlowSync(b *testing.B) {
	fs := faultvfs.Register("slow-sync")
	b.Cleanup(fs.Close)
	fs.DelaySyncs(2 * time.Millisecond)
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			measureCallers(b, Options{VFS: fs.Name()}, callers)
		})
	}
}
