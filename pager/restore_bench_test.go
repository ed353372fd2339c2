package pager

import (
	"strings"
	"testing"
)

// BenchmarkCheckpoint makes checkpoints of 100,000 pages of the archive, restores
// one after which nothing changed, and lists them.
func BenchmarkCheckpoint(b *testing.B) {
	cs := openScope(b, Config{})
	page := strings.Repeat("a page of some words\n", 50) + "\n"
	for range 2 {
		ingest(b, cs, IngestRequest{Content: strings.Repeat(page, 50_000), PageBytes: new(len(page))})
	}
	writeBase(b, cs)
	c := checkpoint(b, cs, "")
	if c.Archive != 100_000 {
		b.Fatalf("%+v", c)
	}
	b.Run("checkpoint", func(b *testing.B) {
		for b.Loop() {
			checkpoint(b, cs, "")
		}
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if restore(b, cs, c.CheckpointID).Changed {
				b.Fatal("something changed")
			}
		}
	})
	b.Run("checkpoints", func(b *testing.B) {
		for b.Loop() {
			must[*CheckpointsResult](b)(cs.Checkpoints(b.Context(), CheckpointsRequest{Limit: new(10)}))
		}
	})
}

// BenchmarkRestore restores 1,000 pages that were rewritten since.
func BenchmarkRestore(b *testing.B) {
	const n = 1000
	cs := openScope(b, Config{})
	page := strings.Repeat("a page of some words\n", 50) + "\n"
	got := ingest(b, cs, IngestRequest{Content: strings.Repeat(page, n), PageBytes: new(len(page))})
	first := checkpoint(b, cs, "")
	for _, p := range got.Pages {
		put(b, cs, WriteRequest{PageID: p.PageID, ExpectedVersion: &p.Version, Content: "another text"})
	}
	turn := []CheckpointInfo{first, checkpoint(b, cs, "")}
	for i := 0; b.Loop(); i++ {
		if r := restore(b, cs, turn[i%2].CheckpointID); len(r.Restored) != n {
			b.Fatalf("%d pages were restored", len(r.Restored))
		}
	}
}
