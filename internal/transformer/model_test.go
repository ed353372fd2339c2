package transformer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

var shapes = []Config{
	{Layers: 1, Hidden: 32, Heads: 1, Intermediate: 32, MaxPositions: 70, Epsilon: 1e-12},
	{Layers: 2, Hidden: 64, Heads: 4, Intermediate: 160, MaxPositions: 70, Epsilon: 1e-12},
	{Layers: 3, Hidden: 96, Heads: 2, Intermediate: 96, MaxPositions: 70, Epsilon: 1e-5},
}

func randomIDs(r *rand.Rand, n, words int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(words))
	}
	return ids
}

func cosine(a []float32, b []float64) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * b[i]
		aa += float64(a[i]) * float64(a[i])
		bb += b[i] * b[i]
	}
	return dot / math.Sqrt(aa*bb)
}

// A model agrees with the mathematics in float64, at lengths around every tile, up to codes
// that fall to the other side of a half; all sets of kernels give the same
// bits.
func TestAgainstNaive(t *testing.T) {
	for i, c := range shapes {
		w := randomWeights(c, 50, uint64(i))
		fast, err := New(w)
		if err != nil {
			t.Fatal(err)
		}
		var others []*Model
		for _, k := range available() {
			m, err := newModel(w, k)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, m)
		}
		r := rand.New(rand.NewPCG(9, uint64(i)))
		for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 36, 47, 48, 63, 64, 65, 69, 70} {
			ids := randomIDs(r, n, 50)
			got, err := fast.Embed([][]int32{ids})
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range others {
				if v, err := m.Embed([][]int32{ids}); err != nil || !sameBits(v[0], got[0]) {
					t.Fatalf("%+v, %d tokens: kernels %d differ, or %v", c, n, i, err)
				}
			}
			if cos := cosine(got[0], naive(w, ids)); !(cos > 0.9999) {
				t.Errorf("%+v, %d tokens: cosine %v", c, n, cos)
			}
		}
	}
}

// A text's vector has the same bits in whatever company, and at whatever
// concurrency.
func TestCompany(t *testing.T) {
	const words = 50
	c := shapes[1]
	m, err := New(randomWeights(c, words, 4))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var texts, alone [][]int32
		var want [][]float32
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, c.MaxPositions), 1, 9).Draw(t, "lengths") {
			texts = append(texts, randomIDs(r, n, words))
			alone = texts[len(texts)-1:]
			v, err := m.Embed(alone)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, v[0])
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				got, err := m.Embed(texts)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range want {
					if !sameBits(got[i], want[i]) {
						t.Errorf("text %d of %d differs", i, len(texts))
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestInput(t *testing.T) {
	w := randomWeights(shapes[0], 10, 5)
	m, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	for name, ids := range map[string][]int32{
		"empty": {}, "negative": {1, -1}, "not there": {10}, "too long": make([]int32, 71),
	} {
		if _, err := m.Embed([][]int32{{1}, ids}); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, err := m.Embed(nil); len(v) != 0 || err != nil {
		t.Errorf("no texts: %v, %v", v, err)
	}
	w.Layers[0].FFNBias = slices.Clone(w.Layers[0].FFNBias)
	w.Layers[0].FFNBias[3] = float32(math.NaN())
	broken, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Embed([][]int32{{1}}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("a weight that is not a number: %v", err)
	}
}

// realShape is that of a small model that is in use.
var realShape = Config{Layers: 12, Hidden: 384, Heads: 12, Intermediate: 1536, MaxPositions: 512, Epsilon: 1e-12}

func benchKernels(b *testing.B, run func(b *testing.B, k kernels)) {
	for i, k := range available() {
		b.Run([]string{"portable", "avx2", "vnni"}[i], func(b *testing.B) { run(b, k) })
	}
}

// BenchmarkForward runs one text of the length given in tokens.
func BenchmarkForward(b *testing.B) {
	w := randomWeights(realShape, 100, 1)
	for _, n := range []int{16, 64, 256, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchKernels(b, func(b *testing.B, k kernels) {
				m, err := newModel(w, k)
				if err != nil {
					b.Fatal(err)
				}
				ids := [][]int32{randomIDs(rand.New(rand.NewPCG(1, 1)), n, 100)}
				for b.Loop() {
					if _, err := m.Embed(ids); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkBulk runs texts of 40 tokens, twelve a pass.
func BenchmarkBulk(b *testing.B) {
	m, err := New(randomWeights(realShape, 100, 1))
	if err != nil {
		b.Fatal(err)
	}
	var texts [][]int32
	for i := range 12 {
		texts = append(texts, randomIDs(rand.New(rand.NewPCG(1, uint64(i))), 40, 100))
	}
	n := 0
	for b.Loop() {
		if _, err := m.Embed(texts); err != nil {
			b.Fatal(err)
		}
		n += len(texts)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "texts/s")
}

// BenchmarkGEMM multiplies 64 tokens by the two shapes of matrices.
func BenchmarkGEMM(b *testing.B) {
	for _, shape := range [][2]int{{1536, 384}, {384, 1536}} {
		b.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(b *testing.B) {
			benchKernels(b, func(b *testing.B, k kernels) {
				m := &Model{k: k}
				w := packFloats(shape[0], shape[1], make([]float32, shape[0]*shape[1]))
				s := &scratch{acts: make([]byte, 64*shape[1]/BlockLen*actBytes)}
				dst, src, bias := make([]float32, 64*shape[0]), make([]float32, 64*shape[1]), make([]float32, shape[0])
				n := 0
				for b.Loop() {
					m.product(s, dst, src, w, bias)
					n++
				}
				b.ReportMetric(float64(n)*2*64*float64(shape[0]*shape[1])/b.Elapsed().Seconds()/1e9, "GOP/s")
			})
		})
	}
}
