package pager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// benchWindow opens a scope whose window has about 64 KiB, a quarter of it core,
// and a budget that it nearly fills. Pages have about 1,000 bytes.
func benchWindow(b *testing.B, counter Counter) (cs *Store, p *prose) {
	b.Helper()
	p = newProse(7)
	cfg := Config{Scope: Scope{"project", "session"}, Budget: new(MaxBudget), Counter: counter}
	db := openDB(b, b.TempDir(), nil)
	cs = scopeOf(b, db, cfg)
	for i := range 64 {
		tier := Working
		if i < 16 {
			tier = Core
		}
		must[*WriteResult](b)(cs.Write(b.Context(), WriteRequest{PageID: fmt.Sprintf("w%d", i), Content: p.page(150), Tier: tier}))
	}
	s := snapshot(b, cs)
	cfg.Budget, cfg.Reconfigure = new(s.Pressure.Cost*129/128), true
	return scopeOf(b, db, cfg), p
}

// page is a text of n words.
func (p *prose) page(n int) string {
	var text strings.Builder
	p.words(&text, n)
	return text.String()
}

// BenchmarkSnapshotUnchanged is what a host calls at every step.
func BenchmarkSnapshotUnchanged(b *testing.B) {
	cs, _ := benchWindow(b, nil)
	s := snapshot(b, cs)
	b.ReportAllocs()
	for b.Loop() {
		if again := must[*Snapshot](b)(cs.Snapshot(b.Context(), SnapshotRequest{Since: &s.Generation})); again.Changed {
			b.Fatal("the window changed by itself")
		}
	}
}

// BenchmarkSnapshotChanged is a snapshot after a page of the window got other
// content; the write before it is not counted in. Its sync is.
func BenchmarkSnapshotChanged(b *testing.B) {
	for _, c := range []struct{ name, page string }{{"working", "w40"}, {"core", "w8"}} {
		b.Run(c.name, func(b *testing.B) {
			cs, p := benchWindow(b, nil)
			version := int64(1)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				out := must[*WriteResult](b)(cs.Write(b.Context(), WriteRequest{PageID: c.page, ExpectedVersion: &version, Content: p.page(150)}))
				version = out.Page.Version
				b.StartTimer()
				snapshot(b, cs)
			}
		})
	}
}

// BenchmarkEviction is a write into a full window of 64 KiB, which evicts a page
// or two, by how the window is measured. Its sync is counted in.
func BenchmarkEviction(b *testing.B) {
	asked := 0
	for _, c := range []struct {
		name    string
		counter Counter
	}{{"bytes", nil}, {"words of the whole text", wordsCounter{&asked}}} {
		b.Run(c.name, func(b *testing.B) {
			cs, p := benchWindow(b, c.counter)
			evicted := 0
			asked = 0
			for b.Loop() {
				evicted += len(must[*WriteResult](b)(cs.Write(b.Context(), WriteRequest{Content: p.page(150), Tier: Working})).Evicted)
			}
			b.ReportMetric(float64(evicted)/float64(b.N), "evicted/op")
			b.ReportMetric(float64(asked)/float64(b.N), "counts/op")
		})
	}
}

// manyResidents is a window of 1,000 pages, a fifth of them core.
func manyResidents() *window {
	p, w := newProse(9), &window{}
	for i := range 1000 {
		r := newResident(&store.Page{PageID: fmt.Sprintf("w%d", i), PageRevision: store.PageRevision{Version: 1, Importance: 0.5, Content: p.page(20)}})
		if i < 200 {
			w.core = append(w.core, r)
		} else {
			r.Touched, r.Admission = int64(i*7919%1000), int64(i)
			w.working = append(w.working, r)
		}
	}
	return w
}

// BenchmarkCost measures a window of 1,000 pages.
func BenchmarkCost(b *testing.B) {
	w := manyResidents()
	asked := 0
	for _, c := range []struct {
		name string
		m    meter
	}{{"bytes", meter{}}, {"words of the whole text", meter{wordsCounter{&asked}}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.m.cost(w)
			}
		})
	}
}

// BenchmarkShortestEviction orders 800 working pages and finds how many have to go
// for a tenth of the window.
func BenchmarkShortestEviction(b *testing.B) {
	w := manyResidents()
	cost := meter{}.cost(w)
	b.ReportAllocs()
	for b.Loop() {
		order := append([]*resident(nil), w.working...)
		evictionOrder(order, strategyValue, 1000, 0)
		if n, _ := (meter{}).shortestEviction(w, order, cost, cost*9/10); n < 50 {
			b.Fatal(n)
		}
	}
}
