package pager

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// prose makes sentences of a vocabulary in which few words are common and most
// are rare.
type prose struct {
	random *rand.Rand
	zipf   *rand.Zipf
}

func newProse(seed uint64) *prose {
	random := rand.New(rand.NewPCG(seed, 1))
	return &prose{random, rand.NewZipf(random, 1.1, 8, 30_000)}
}

// words appends n words.
func (p *prose) words(b *strings.Builder, n int) {
	const letters = "bcdfghklmnprstvz"
	const vowels = "aeiou"
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		for w := p.zipf.Uint64() + 17; w > 0; w /= uint64(len(letters) * len(vowels)) {
			b.WriteByte(letters[w%uint64(len(letters))])
			b.WriteByte(vowels[w/uint64(len(letters))%uint64(len(vowels))])
		}
	}
}

// question is a few words that some page may hold.
func (p *prose) question() string {
	var b strings.Builder
	p.words(&b, 3+p.random.IntN(3))
	return b.String()
}

// BenchmarkRecall recalls over 100,000 pages of about 200 bytes, without an
// embedder: each call searches, admits, evicts, publishes and is durable. p50 and
// p99 are of single calls; commit is p50 of a transaction that writes next to
// nothing, and so what durability alone costs on the machine.
func BenchmarkRecall(b *testing.B) {
	for _, pages := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint("pages=", pages), func(b *testing.B) {
			cs := openScope(b, Config{})
			p := newProse(1)
			for made := 0; made < pages; {
				var text strings.Builder
				for range min(pages-made, 20_000) {
					p.words(&text, 35)
					text.WriteString(".\n\n")
				}
				out := must[*IngestResult](b)(cs.Ingest(b.Context(), IngestRequest{Content: text.String(), PageBytes: new(300)}))
				made += len(out.Pages)
			}
			var took, commits []time.Duration
			for b.Loop() {
				query := p.question()
				begun := time.Now()
				must[*RecallResult](b)(cs.Recall(b.Context(), RecallRequest{SearchRequest: SearchRequest{Query: query}}))
				took = append(took, time.Since(begun))
				b.StopTimer()
				begun = time.Now()
				if err := cs.mutate(b.Context(), "commit", func(c *change) error { c.state.Turn++; return nil }, nil); err != nil {
					b.Fatal(err)
				}
				commits = append(commits, time.Since(begun))
				b.StartTimer()
			}
			slices.Sort(took)
			slices.Sort(commits)
			us := func(of []time.Duration, pct int) float64 { return float64(of[len(of)*pct/100].Nanoseconds()) / 1000 }
			b.ReportMetric(us(took, 50), "p50-µs")
			b.ReportMetric(us(took, 99), "p99-µs")
			b.ReportMetric(us(commits, 50), "commit-µs")
		})
	}
}
