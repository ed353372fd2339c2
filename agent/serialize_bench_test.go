package agent

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

// peakHeap watches what is live on the heap while fn runs, as each collection finds
// it, and gives how far that went above what it was before, in MiB.
func peakHeap(fn func()) float64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	var peak atomic.Uint64
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		own := []metrics.Sample{{Name: sample[0].Name}}
		for {
			metrics.Read(own)
			peak.Store(max(peak.Load(), own[0].Value.Uint64()))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	fn()
	close(done)
	<-stopped
	return float64(peak.Load()-min(before, peak.Load())) / (1 << 20)
}

// BenchmarkWhole writes and restores a memory of 100,000 facts of 384 dimensions, a
// tenth of them with a relation and an earlier version.
func BenchmarkWhole(b *testing.B) {
	const n, dimension = 100_000, 384
	m := openMemory(b, dimension)
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"tide", "harbour", "lamp", "ferry", "storm", "rope", "captain", "light"}
	for from := 0; from < n; from += 1000 {
		var batch []FactInput
		for id := from; id < from+1000; id++ {
			v := make([]float32, dimension)
			for i := range v {
				v[i] = random.Float32() - 0.5
			}
			text := fmt.Sprintf("fact %d", id)
			for range 12 {
				text += " " + words[random.IntN(len(words))]
			}
			batch = append(batch, fact(loci.PointID(id), text, v, withMetadata(fmt.Sprintf(`{"n":%d}`, id%100))))
		}
		for range 2 - min(1, from%10_000) { // every tenth batch twice
			must[*loci.Receipt[BatchResult]](b)(m.facts.PutBatch(b.Context(), FactBatch{batch}))
		}
		if from%10_000 == 0 {
			for id := from; id < from+1000; id++ {
				m.relate2(loci.PointID(id), loci.PointID(id/2))
			}
		}
	}
	b.Run("serialize", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(peakHeap(func() { must[*Summary](b)(m.facts.Serialize(b.Context(), io.Discard)) }), "MiB-above")
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(peakHeap(func() { takeSnapshot(b, m.AgentMemory) }), "MiB-above")
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			clear(m.turns().checked)
			snapshotsOf(b, m.AgentMemory)
		}
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(peakHeap(func() { must[*loci.Receipt[Restored]](b)(m.RestoreLatest(b.Context())) }), "MiB-above")
			b.StopTimer()
			m.sweep()
			b.StartTimer()
		}
	})
	b.Run("clear", func(b *testing.B) {
		for b.Loop() {
			must[*loci.Receipt[int64]](b)(m.facts.Clear(b.Context()))
			b.StopTimer()
			must[*loci.Receipt[Restored]](b)(m.RestoreLatest(b.Context()))
			m.sweep()
			b.StartTimer()
		}
	})
}
