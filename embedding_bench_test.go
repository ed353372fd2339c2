package loci

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// BenchmarkWriteBesideSpaces writes new memories and writes them again with
// another text, in a store without spaces, with a space that is empty, and with
// one in which they have vectors.
func BenchmarkWriteBesideSpaces(b *testing.B) {
	for _, mode := range []string{"none", "empty", "filled"} {
		b.Run("space="+mode, func(b *testing.B) {
			db := openQuiet(b, b.TempDir())
			defer db.Close()
			if mode != "none" {
				registerSpace(b, db, "v", 384)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			const n = 1000
			var ids []ID
			write := func(name string, again bool) {
				b.Run(name, func(b *testing.B) {
					batches := make([][]MemoryInput, b.N/n+1)
					for i := range batches {
						batches[i] = benchInputs(rng, n)
						for j := range batches[i] {
							if again {
								batches[i][j].ID = ids[(i*n+j)%len(ids)]
							}
						}
					}
					b.ResetTimer()
					for _, batch := range batches {
						r, err := db.Memories().UpsertMany(b.Context(), batch)
						if err != nil {
							b.Fatal(err)
						}
						for _, m := range r.Value {
							if !again {
								ids = append(ids, m.ID)
							}
						}
					}
				})
			}
			write("new", false)
			if mode == "filled" {
				if err := db.Embeddings().RegisterEmbedder(b.Context(), "v", fakeembed.New(384), nil); err != nil {
					b.Fatal(err)
				}
				if _, err := db.Embeddings().Sync(b.Context(), "v", EmbeddingSyncOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			write("again", true)
		})
	}
}

// ready384 is a model that costs nothing.
type ready384 struct{ vector []float32 }

func (m *ready384) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = slices.Clone(m.vector)
	}
	return out, nil
}

// BenchmarkEmbeddingSync is what a sync costs beside the model.
func BenchmarkEmbeddingSync(b *testing.B) {
	for _, batch := range []int{32, 256} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			db := openQuiet(b, b.TempDir())
			defer db.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			for left := b.N; left > 0; left -= 1000 {
				if _, err := db.Memories().UpsertMany(b.Context(), benchInputs(rng, min(left, 1000))); err != nil {
					b.Fatal(err)
				}
			}
			registerSpace(b, db, "v", 384)
			m := &ready384{fakeembed.New(384).Vector("tide table")}
			if err := db.Embeddings().RegisterEmbedder(b.Context(), "v", m, &EmbedderOptions{MaxBatch: &batch}); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			r, err := db.Embeddings().Sync(b.Context(), "v", EmbeddingSyncOptions{})
			if err != nil || r.Value.Embedded != int64(b.N) {
				b.Fatal(r, err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "vectors/s")
		})
	}
}
