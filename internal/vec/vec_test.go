package vec

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalize(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	big, small := float32(math.MaxFloat32), float32(math.SmallestNonzeroFloat32)
	cases := []struct {
		name string
		in   []float32
		norm float32
		ok   bool
		want []float32
	}{
		{"plain", []float32{3, 4}, 5, true, []float32{0.6, 0.8}},
		{"huge", []float32{big, 0}, big, true, []float32{1, 0}},
		{"longer than float32 holds", []float32{big, big}, inf, true, []float32{float32(math.Sqrt2 / 2), float32(math.Sqrt2 / 2)}},
		{"tiny", []float32{0, -small}, small, true, []float32{0, -1}},
		{"zero", []float32{0, 0}, 0, false, []float32{0, 0}},
		{"empty", []float32{}, 0, false, []float32{}},
		{"inf", []float32{1, -inf}, 0, false, []float32{1, -inf}},
		{"nan", []float32{nan}, 0, false, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			norm, ok := Normalize(c.in, c.in)
			if norm != c.norm || ok != c.ok {
				t.Errorf("got %v, %v; want %v, %v", norm, ok, c.norm, c.ok)
			}
			if c.want != nil && !cmp.Equal(c.in, c.want) {
				t.Error(cmp.Diff(c.want, c.in))
			}
		})
	}
}

func TestFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	if !Finite(nil) || !Finite([]float32{0, -1, math.MaxFloat32, math.SmallestNonzeroFloat32}) {
		t.Error("numbers are finite")
	}
	for _, x := range []float32{nan, inf, -inf} {
		if Finite([]float32{1, x, 1}) {
			t.Errorf("%v is not", x)
		}
	}
}

func TestQuantize(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := []struct {
		name  string
		in    []float32
		scale float32
		want  []int8
	}{
		{"whole numbers", []float32{127, -127, 1, 0}, 1, []int8{127, -127, 1, 0}},
		{"halves to even", []float32{127, 0.5, 1.5, 2.5, -0.5, -1.5}, 1, []int8{127, 0, 2, 2, 0, -2}},
		{"negative largest", []float32{-254, 3}, 2, []int8{-127, 2}},
		{"huge", []float32{math.MaxFloat32, -math.MaxFloat32}, math.MaxFloat32 / 127, []int8{127, -127}},
		{"small", []float32{127 * 0x1p-126, 0x1p-126}, 0x1p-126, []int8{127, 1}},
		{"below", []float32{127 * 0x1p-127, 0x1p-127}, 0, []int8{0, 0}},
		{"too small", []float32{math.SmallestNonzeroFloat32}, 0, []int8{0}},
		{"zero", []float32{0, 0}, 0, []int8{0, 0}},
		{"empty", nil, 0, []int8{}},
		{"nan", []float32{1, nan}, 0, []int8{0, 0}},
		{"inf", []float32{1, -inf}, 0, []int8{0, 0}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			codes := make([]int8, len(c.in))
			for i := range codes {
				codes[i] = 99
			}
			if scale := Quantize(codes, c.in); scale != c.scale || !cmp.Equal(codes, c.want) {
				t.Errorf("got %v %v, want %v %v", scale, codes, c.scale, c.want)
			}
		})
	}
}
