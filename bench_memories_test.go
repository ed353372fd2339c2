package loci

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// benchInputs are memories of about 160 bytes with two tags.
func benchInputs(rng *rand.Rand, n int) []MemoryInput {
	words := []string{"harbour", "tide", "table", "weekly", "pilot", "crane", "灯塔", "潮水", "signal", "night", "fog", "北岸", "customs", "delay"}
	ins := make([]MemoryInput, n)
	for i := range ins {
		var text string
		for range 18 {
			text += words[rng.IntN(len(words))] + fmt.Sprint(rng.IntN(400)) + " "
		}
		ins[i] = MemoryInput{Judgment: text, RecordInput: RecordInput{Tags: []string{fmt.Sprint("tag ", rng.IntN(20)), fmt.Sprint("topic ", rng.IntN(200))},
			Metadata: Metadata(`{"source":"bench","n":1}`)}}
	}
	return ins
}

func BenchmarkUpsertMany(b *testing.B) {
	db, err := Open(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	batches := make([][]MemoryInput, b.N/1000+1)
	for i := range batches {
		batches[i] = benchInputs(rng, 1000)
	}
	b.ResetTimer()
	for _, batch := range batches {
		if _, err := db.Memories().UpsertMany(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(1000*len(batches))/b.Elapsed().Seconds(), "memories/s")
}

func BenchmarkUpsert(b *testing.B) {
	for _, callers := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db, err := Open(b.Context(), b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			ins := benchInputs(rand.New(rand.NewPCG(1, 2)), b.N)
			b.ResetTimer()
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for i := c; i < b.N; i += callers {
						if _, err := db.Memories().Upsert(b.Context(), ins[i]); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "memories/s")
		})
	}
}
