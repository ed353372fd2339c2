package loci

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// fixed is a model that knows its texts.
type fixed map[string][]float32

func (m fixed) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if out[i] = m[text]; out[i] == nil {
			out[i] = []float32{1, 2, 3, 4}
		}
	}
	return out, nil
}

// TestCaseV17Encodings compares both encodings over the same vectors: the same
// order, and cosines that differ in rounding only, since hits are scored by the
// vectors themselves.
func TestCaseV17Encodings(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	model := fixed{"stored": {3, 4, 0, 0}, "query": {0.6, 0.8, 0, 0}, "opposite": {-3, -4, 0, 0}}
	for _, text := range []string{"stored", "opposite"} {
		addMemory(t, db, MemoryInput{Judgment: text})
	}
	for i, text := range []string{"a1", "b2", "c3", "d4", "e5", "f6"} {
		model[text] = []float32{float32(i), 1, float32(3 - i), 0.5}
		addMemory(t, db, MemoryInput{Judgment: text})
	}
	// What the index knows of a vector by its codes is right to four digits, and exact
	// searches score by the vectors themselves.
	for _, exact := range []bool{false, true} {
		within := 1e-4
		if exact {
			within = 1e-6
		}
		var keys [][]string
		var scores [][]float64
		for _, encoding := range []VectorEncoding{EncodingF32, EncodingSQ8} {
			id := string(encoding)
			if !exact {
				must[*Receipt[EmbeddingSpace]](t)(s.RegisterSpace(t.Context(), EmbeddingSpace{ID: id, Model: "m", Dimension: 4, Encoding: encoding}))
				if err := s.RegisterEmbedder(t.Context(), id, model, nil); err != nil {
					t.Fatal(err)
				}
				if got := syncSpace(t, db, id, 32); got.Embedded != 8 {
					t.Errorf("%+v", got)
				}
			}
			res := search(t, db, SearchRequest{Query: "query", NoText: true, EmbedSpace: id, Exact: exact})
			var k []string
			var v []float64
			for _, hit := range res.Hits {
				score, ok := hit.VectorScores[id]
				if !ok || score < -1 || score > 1 || len(hit.VectorScores) != 1 {
					t.Errorf("%+v", hit)
				}
				k, v = append(k, hit.Key), append(v, score)
			}
			keys, scores = append(keys, k), append(scores, v)
		}
		if len(keys[0]) != 8 || !slices.Equal(keys[0], keys[1]) {
			t.Fatalf("%v", keys)
		}
		for i := range scores[0] {
			if math.Abs(scores[0][i]-scores[1][i]) > within {
				t.Errorf("%v", scores)
			}
		}
		for i := range scores {
			if keys[i][0] != "memory:1" || math.Abs(scores[i][0]-1) > 1e-6 || math.Abs(scores[i][7]+1) > 1e-6 {
				t.Errorf("%v, %v", keys, scores)
			}
		}
	}
}

// TestCasesOfSearchesByVector are what V12, V13, V15, V16 and V18 say of searches.
func TestCasesOfSearchesByVector(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	bind(t, db, "old", fakeembed.New(16), nil)
	bind(t, db, "new", fakeembed.New(32), nil)
	setTier(t, db, TierNotes, true)
	putNote(t, db, "tide.md", "The tide table is updated weekly.\n")
	m := addMemory(t, db, MemoryInput{Judgment: "lamps burn all night"})
	for _, space := range []string{"old", "new"} {
		syncSpace(t, db, space, 32)
		for query, key := range map[string]string{"lamps burn all night": "memory", "tide table updated weekly": "chunk"} {
			res := search(t, db, SearchRequest{Query: query, NoText: true, EmbedSpace: space})
			if len(res.Hits) != 2 || !res.Diagnostics.VectorUsed || res.Hits[0].Key[:len(key)] != key {
				t.Errorf("%s in %s: %+v", query, space, res)
			}
		}
	}
	keys := func(query string) []string {
		return keysOf(search(t, db, SearchRequest{Query: query, NoText: true, EmbedSpace: "old"}))
	}
	setTier(t, db, TierNotes, false)
	if got := keys("tide table"); len(got) != 1 || got[0] != fmt.Sprintf("memory:%d", m.ID) {
		t.Errorf("V12: %v", got)
	}
	setTier(t, db, TierNotes, true)
	if got := keys("tide table"); len(got) != 2 {
		t.Errorf("V12: %v", got)
	}
	must[*Receipt[bool]](t)(s.SetNamespaceVectorization(t.Context(), DefaultNamespace, false))
	res := search(t, db, SearchRequest{Query: "tide", EmbedSpace: "old"})
	if res.Diagnostics.VectorUsed || !slices.Equal(res.Diagnostics.Degraded, []Degrade{DegradeNamespaceDisabled}) || len(res.Hits) != 1 {
		t.Errorf("V13: %+v", res)
	}
	must[*Receipt[bool]](t)(s.SetNamespaceVectorization(t.Context(), DefaultNamespace, true))
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: m.ID}, Judgment: "something else altogether"})
	if got := keys("lamps burn all night"); len(got) != 1 {
		t.Errorf("V18: %v", got)
	}
	must[*Receipt[bool]](t)(s.DeleteSpace(t.Context(), "old"))
	_, err := db.Search(t.Context(), SearchRequest{Query: "tide", EmbedSpace: "old"})
	wantCode(t, err, ErrNotFound)
	if got := search(t, db, SearchRequest{Query: "tide", NoText: true}); len(got.Hits) == 0 {
		t.Errorf("V15: %+v", got)
	}
}
