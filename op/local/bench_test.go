package local

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loci-memory/loci/op"
)

// sized gives two memories on a directory with so many records: the holder, and
// one that is attached.
func sized(b *testing.B, records int) (direct, attached *Memory) {
	dir := b.TempDir()
	open := func() *Memory {
		m, err := Open(b.Context(), dir, quiet())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := m.Close(); err != nil {
				b.Error(err)
			}
		})
		return m
	}
	direct, attached = open(), open()
	words := []string{"tide", "lamp", "harbour", "rope", "keeper", "storm", "ledger", "walrus", "潮水", "灯塔"}
	type item struct {
		Judgment string `json:"judgment"`
	}
	for from := 0; from < records; from += 500 {
		var in struct {
			Memories []item `json:"memories"`
		}
		for i := from; i < min(from+500, records); i++ {
			in.Memories = append(in.Memories, item{fmt.Sprintf("Entry %d: the %s near the %s was seen by the %s.", i, words[i%10], words[i/10%10], words[i/100%10])})
		}
		raw, err := json.Marshal(in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := attached.Call(b.Context(), "memories.upsert_many", raw); err != nil {
			b.Fatal(err)
		}
	}
	return direct, attached
}

// timed runs a call over and over and reports its percentiles.
func timed(b *testing.B, c op.Caller, name, in string) {
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := c.Call(b.Context(), name, []byte(in)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "p95-us")
}

// BenchmarkAttachedRecall compares a recall of ten memories through the socket
// with a direct one.
func BenchmarkAttachedRecall(b *testing.B) {
	direct, attached := sized(b, 20_000)
	const in = `{"query":"the storm near the harbour"}`
	b.Run("direct", func(b *testing.B) { timed(b, direct, "recall", in) })
	b.Run("attached", func(b *testing.B) { timed(b, attached, "recall", in) })
}

// BenchmarkAttachedSnapshot is context.snapshot of an unchanged context of 20
// pages.
func BenchmarkAttachedSnapshot(b *testing.B) {
	direct, attached := sized(b, 0)
	for i := range 20 {
		in := fmt.Sprintf(`{"scope":"bench","content":"Page %d says what the keeper wrote on the wall, in a few more words than one.","title":"page %d"}`, i, i)
		if _, err := attached.Call(b.Context(), "context.write", []byte(in)); err != nil {
			b.Fatal(err)
		}
	}
	const in = `{"scope":"bench"}`
	b.Run("direct", func(b *testing.B) { timed(b, direct, "context.snapshot", in) })
	b.Run("attached", func(b *testing.B) { timed(b, attached, "context.snapshot", in) })
}

// BenchmarkOpen is what serving others adds to a command that opens a memory and
// closes it again.
func BenchmarkOpen(b *testing.B) {
	for _, serve := range []bool{false, true} {
		b.Run(fmt.Sprintf("serve=%v", serve), func(b *testing.B) {
			dir := b.TempDir()
			var took []time.Duration
			for b.Loop() {
				o := quiet()
				o.NoServe = !serve
				start := time.Now()
				m, err := Open(b.Context(), dir, o)
				if err != nil {
					b.Fatal(err)
				}
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
		})
	}
}
