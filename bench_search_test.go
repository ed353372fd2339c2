package loci

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// BenchmarkHybrid searches 100,000 memories by text and by vectors of 384
// dimensions. The query's own embedding, by a bag of words, is a few microseconds
// of it.
func BenchmarkHybrid(b *testing.B) {
	const records, batch, dimension = 100_000, 5000, 384
	db, err := Open(b.Context(), b.TempDir(), &Options{WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	var queries []string
	for range records / batch {
		ins := benchInputs(rng, batch)
		must[*Receipt[[]Memory]](b)(db.Memories().UpsertMany(b.Context(), ins))
		words := strings.Fields(ins[0].Judgment)
		queries = append(queries, strings.Join(words[:3], " "), strings.Join(words[5:10], " "))
	}
	must[*Receipt[EmbeddingSpace]](b)(db.Embeddings().RegisterSpace(b.Context(), EmbeddingSpace{ID: "v", Model: "bag of words", Dimension: dimension}))
	if err := db.Embeddings().RegisterEmbedder(b.Context(), "v", fakeembed.New(dimension), &EmbedderOptions{MaxBatch: new(256)}); err != nil {
		b.Fatal(err)
	}
	r := must[*Receipt[EmbeddingReport]](b)(db.Embeddings().Sync(b.Context(), "v", EmbeddingSyncOptions{Batch: new(5000)}))
	if r.Value.Embedded != records {
		b.Fatalf("%+v", r.Value)
	}
	for _, c := range []struct {
		name string
		req  SearchRequest
	}{
		{"text", SearchRequest{NoVector: true}},
		{"vector", SearchRequest{NoText: true}},
		{"score", SearchRequest{}},
		{"rrf", SearchRequest{Fusion: FusionRRF}},
		{"exact", SearchRequest{Exact: true}},
		{"one scope and tag", SearchRequest{Filter: ReadFilter{Tags: []string{"tag 3"}}}},
		{"neighbours", SearchRequest{NeighbourWeight: 0.3}},
		{"without an index", SearchRequest{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.name == "without an index" {
				abandon(db.eng.setIndex(nil))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.req.Query = queries[i%len(queries)]
				if res := must[*SearchResult](b)(db.Search(b.Context(), c.req)); len(res.Hits) == 0 {
					b.Fatal("no hits")
				}
			}
		})
	}
}
