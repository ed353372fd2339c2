package pager

import (
	"strings"
	"testing"
)

// BenchmarkLook looks at a scope with 100,000 pages in the archive and a full log.
func BenchmarkLook(b *testing.B) {
	cs := openScope(b, Config{})
	page := strings.Repeat("a page of some words\n", 50) + "\n"
	for range 2 {
		must[*IngestResult](b)(cs.Ingest(b.Context(), IngestRequest{Content: strings.Repeat(page, 50_000), PageBytes: new(len(page))}))
	}
	writeBase(b, cs)
	for range 1000 {
		record(b, cs, RecordUsageRequest{InputTokens: 1000, CacheReadTokens: 8000})
	}
	b.Run("dashboard", func(b *testing.B) {
		for b.Loop() {
			if d := dashboard(b, cs); d.Composition.Archive.Pages != 100_000 {
				b.Fatalf("%+v", d.Composition)
			}
		}
	})
	b.Run("status", func(b *testing.B) {
		for b.Loop() {
			status(b, cs, StatusRequest{})
		}
	})
	b.Run("metrics", func(b *testing.B) {
		for b.Loop() {
			must[*MetricsResult](b)(cs.Metrics(b.Context(), MetricsRequest{}))
		}
	})
	b.Run("usage", func(b *testing.B) {
		for b.Loop() {
			usageOf(b, cs, UsageRequest{Provider: "openai"})
		}
	})
	b.Run("tick", func(b *testing.B) {
		for b.Loop() {
			tick(b, cs, PolicyTickRequest{})
		}
	})
	b.Run("record", func(b *testing.B) {
		for b.Loop() {
			record(b, cs, RecordUsageRequest{InputTokens: 1})
		}
	})
}
