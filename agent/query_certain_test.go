package agent

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
)

// TestQueryCoarseCodes has a few vectors with one number that is far above all others,
// so that the index knows the rest of them only roughly: the best ones among many that
// it knows well.
func TestQueryCoarseCodes(t *testing.T) {
	const dim = 384
	m := openMemory(t, dim)
	r := rand.New(rand.NewPCG(1, 2))
	question := make([]float32, dim)
	for i := 1; i < dim; i++ {
		question[i] = float32(r.NormFloat64())
	}
	n := 3000
	if testing.Short() {
		n = 600
	}
	var batch []FactInput
	var want []Hit
	for id := range n {
		v := make([]float32, dim)
		if id%100 == 7 {
			for i := range v {
				v[i] = (0.001 + 0.00001*float32(r.NormFloat64())) * question[i]
			}
			v[0] = 1
		} else {
			for i := range v {
				v[i] = float32(r.NormFloat64())
			}
			// Nearly at a right angle to the question.
			share := naiveDot(v, question)/naiveDot(question, question) - 0.018*r.Float64()
			for i := range v {
				v[i] -= float32(share) * question[i]
			}
		}
		in := FactInput{Content: fmt.Sprint("fact ", id)}
		in.ID, in.Embedding = loci.PointID(id), v
		batch = append(batch, in)
		want = append(want, Hit{ID: in.ID, Score: naiveCosine(question, v), Content: in.Content})
	}
	if err := m.facts.StoreBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(want, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	for _, k := range []int{1, 3, 10, 100} {
		got := must[[]Hit](t)(m.facts.Query(t.Context(), question, k))
		if !sameHits(got, want[:k]) {
			t.Errorf("k %d:\n got %v\nwant %v", k, got, want[:k])
		}
	}
}

func naiveDot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
