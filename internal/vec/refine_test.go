package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRefine holds what both codes stand for to half a fine step.
func TestRefine(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	for n := range 70 {
		for _, size := range []float64{1e-30, 1, 1e30} {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(size * rng.NormFloat64())
				if rng.IntN(5) == 0 {
					v[i] = float32(int(8*v[i]/float32(size))) * float32(size) / 8 // on the edge of steps at times
				}
			}
			codes, fine := make([]int8, n), make([]int8, n)
			scale := Quantize(codes, v)
			Refine(fine, codes, scale, v)
			for i, x := range v {
				got := float64(scale) * (float64(codes[i]) + float64(fine[i])/FineSteps)
				if off := math.Abs(got - float64(x)); off > float64(scale)*(0.5/FineSteps+1e-5) {
					t.Fatalf("length %d: %v became %v, off by %v steps", n, x, got, off/float64(scale)*FineSteps)
				}
			}
		}
	}
}

func TestRefineNothing(t *testing.T) {
	fine := []int8{1, 2}
	for _, v := range [][]float32{{0, 0}, {float32(math.NaN()), 1}, {float32(math.Inf(1)), 1}} {
		codes := make([]int8, 2)
		Refine(fine, codes, Quantize(codes, v), v)
		if fine[0] != 0 || fine[1] != 0 {
			t.Errorf("%v leaves %v", v, fine)
		}
	}
}
