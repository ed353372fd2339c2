package loci_test

import (
	"fmt"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

// state is all that reads tell of the facts, with their versions and relations.
func (b *faultBox) state() string {
	b.t.Helper()
	ctx, facts := b.t.Context(), b.m.Semantic()
	page, err := facts.List(ctx, agent.ListRequest{Limit: new(1000)})
	if err != nil {
		b.t.Fatal(err)
	}
	out := ""
	for _, f := range page.Items {
		history, err := facts.History(ctx, agent.PointRequest{ID: f.ID})
		if err != nil {
			b.t.Fatal(err)
		}
		edges, err := facts.Relations(ctx, agent.RelationsRequest{ID: f.ID})
		if err != nil {
			b.t.Fatal(err)
		}
		got, err := facts.Get(ctx, agent.GetRequest{ID: f.ID, WithEmbedding: true})
		if err != nil {
			b.t.Fatal(err)
		}
		out += fmt.Sprintf("%d %q %s %v %d versions %d relations\n", f.ID, f.Content, f.Metadata, got.Embedding, len(history.Versions), len(edges.Edges))
	}
	hits, err := facts.Query(ctx, []float32{1, 0, 0, 0}, 10000)
	if err != nil {
		b.t.Fatal(err)
	}
	count, err := facts.Count(ctx)
	if err != nil || int(count.Count) != len(page.Items) || len(hits) != len(page.Items) {
		b.t.Fatalf("%d facts listed, %+v counted, %d found: %v", len(page.Items), count, len(hits), err)
	}
	return out
}

// TestFactFailures holds that a write during which the disk fails leaves all of it or
// nothing, and that it can be tried again. // B5, K2
func TestFactFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("a write has too few operations to try some of them only")
	}
	b := newFaultBox(t, "facts")
	start := t.TempDir()
	b.open(start)
	ctx := t.Context()
	x := []float32{1, 0, 0, 0}
	input := func(id loci.PointID, content string, ttl *uint64) agent.FactInput {
		return agent.FactInput{PointInput: agent.PointInput{ID: id, Embedding: x, Metadata: loci.Metadata(`{"k":1}`), TTLSeconds: ttl}, Content: content}
	}
	for _, content := range []string{"first", "second"} {
		if err := b.m.Semantic().StoreBatch(ctx, []agent.FactInput{input(1, content, nil), input(2, content, new(uint64(10)))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ends := range [][2]loci.PointID{{1, 2}, {2, 1}, {1, 1}} {
		if _, err := b.m.Semantic().Relate(ctx, agent.RelateRequest{From: ends[0], To: ends[1], Type: "causes"}); err != nil {
			t.Fatal(err)
		}
	}
	b.now += 10_000_000 // 2 is expired, and still in the file
	before := b.state()
	b.close()
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"a batch", func() error {
			batch := []agent.FactInput{input(1, "third", nil), input(2, "third", nil)}
			for id := range loci.PointID(40) {
				batch = append(batch, input(id+10, fmt.Sprint("text ", id), nil))
			}
			return b.m.Semantic().StoreBatch(ctx, batch)
		}},
		{"over an expired one", func() error { return b.m.Semantic().Store(ctx, 2, "third", x) }},
		{"an update", func() error {
			_, err := b.m.Semantic().UpdateMetadata(ctx, agent.UpdateRequest{ID: 1, Updates: loci.Metadata(`{"k":null,"content":"third"}`)})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer := b.t
			b.t = t
			defer func() { b.t = outer }()
			after := ""
			b.failEach(start, 1, faultvfs.ErrDiskFull, c.do, func(n int64, err error) {
				got := b.state()
				// A commit may have reached the disk and still have failed.
				if err == nil && got == before {
					t.Fatalf("operation %d: nothing was written, and no error", n)
				}
				if got != before && after == "" {
					after = got
				}
				if got != before && got != after {
					t.Fatalf("operation %d: %v, and a part of it:\n%s", n, err, got)
				}
				if got == before {
					if err := c.do(); err != nil {
						t.Fatalf("operation %d: tried again: %v", n, err)
					}
					if got := b.state(); after != "" && got != after {
						t.Fatalf("operation %d: tried again:\n%s", n, got)
					}
				}
			})
		})
	}
}
