package rank

import (
	"math"
	"slices"
	"testing"
)

func TestRRF(t *testing.T) {
	got := RRF(Path{Weight: 2, Scores: []float64{9, 9, 1}})
	if want := []float64{2.0 / 61, 2.0 / 62, 2.0 / 63}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := RRF(Path{Weight: 1}); len(got) != 0 {
		t.Errorf("an empty path gives %v", got)
	}
}

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		scores, want []float64
	}{
		{nil, []float64{}},
		{[]float64{7}, []float64{0.5}},
		{[]float64{4, 4}, []float64{0.5, 0.5}},
		{[]float64{10, 6, 2}, []float64{0.5, 0.25, 0}},
		{[]float64{0, -2}, []float64{0.5, 0}},
	} {
		if got := Scaled(Path{Weight: 0.5, Scores: c.scores}); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.scores, got, c.want)
		}
	}
}

func TestRecency(t *testing.T) {
	for age, want := range map[float64]float64{-5: 1, 0: 1, 1: 0.5, 2: 0.25, math.Inf(1): 0} {
		if got := Recency(age); got != want {
			t.Errorf("%v half-lives: %v, want %v", age, got, want)
		}
	}
}

func TestSaturation(t *testing.T) {
	for s, want := range map[float64]float64{-1: 0, 0: 0, 1: 0.5, 3: 0.75} {
		if got := Saturation(s); got != want {
			t.Errorf("%v: %v, want %v", s, got, want)
		}
	}
}
