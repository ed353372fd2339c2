package agent

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

// benchFacts opens a memory of n facts with random vectors of 384 numbers.
func benchFacts(b *testing.B, n int) *SemanticMemory {
	return benchExpiring(b, n, nil, func(int) *uint64 { return nil })
}

// benchExpiring is benchFacts with a clock and with facts that expire.
func benchExpiring(b *testing.B, n int, clock func() time.Time, ttl func(i int) *uint64) *SemanticMemory {
	b.Helper()
	db, err := loci.Open(b.Context(), b.TempDir(), &loci.Options{NoBackgroundEmbedding: true, WaitForIndex: true, Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	s, err := OpenSemantic(b.Context(), db, 384)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := 0; i < n; i += 1000 {
		batch := make([]FactInput, 0, 1000)
		for j := i; j < min(i+1000, n); j++ {
			in := FactInput{Content: fmt.Sprintf("fact %d of the harbour, measured in week %d", j, r.IntN(5000))}
			in.ID, in.Embedding = loci.PointID(j), benchVector(r)
			in.TTLSeconds = ttl(j)
			in.Metadata = fmt.Appendf(nil, `{"ten":%d,"hundred":%d,"thousand":%d}`, r.IntN(10), r.IntN(100), r.IntN(1000))
			batch = append(batch, in)
		}
		if err := s.StoreBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func benchVector(r *rand.Rand) []float32 {
	v := make([]float32, 384)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func BenchmarkQuery(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			s := benchFacts(b, n)
			r := rand.New(rand.NewPCG(2, 2))
			questions := make([][]float32, 64)
			for i := range questions {
				questions[i] = benchVector(r)
			}
			for _, key := range []string{"", "ten", "hundred", "thousand"} {
				b.Run(key, func(b *testing.B) {
					b.ReportAllocs()
					for i := range b.N {
						var filter loci.Metadata
						if key != "" {
							filter = fmt.Appendf(nil, `{%q:%d}`, key, i%10)
						}
						if _, err := s.QueryFiltered(b.Context(), questions[i%64], 10, filter, 0); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

func BenchmarkStore(b *testing.B) {
	for _, size := range []int{1, 1000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := benchFacts(b, 1000)
			r := rand.New(rand.NewPCG(3, 3))
			batch := make([]FactInput, size)
			b.ReportAllocs()
			for i := range b.N {
				b.StopTimer()
				for j := range batch {
					batch[j] = FactInput{Content: fmt.Sprintf("fact %d of the harbour, stored in week %d", j, r.IntN(5000))}
					batch[j].ID, batch[j].Embedding = loci.PointID(1000+i*size+j), benchVector(r)
				}
				b.StartTimer()
				if err := s.StoreBatch(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}

// BenchmarkSweep removes expired facts, one in ten of all; an operation is one that is
// removed.
func BenchmarkSweep(b *testing.B) {
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s := benchExpiring(b, 10*b.N, clock, func(i int) *uint64 {
		if i%10 > 0 {
			return new(uint64(1 << 40))
		}
		return new(uint64(3600))
	})
	ahead.Store(int64(2 * time.Hour))
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := s.m.link.Sweep(b.Context()); err != nil {
		b.Fatal(err)
	}
}
