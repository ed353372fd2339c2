package transformer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawFloats draws n values from a seed: some rows large, some tiny, some zero.
func drawFloats(t *rapid.T, name string, n int) []float32 {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, name), 1))
	scale := float32(math.Pow(10, rapid.Float64Range(-12, 4).Draw(t, name+" scale")))
	out := make([]float32, n)
	for i := range out {
		if r.IntN(8) > 0 {
			out[i] = float32(r.NormFloat64()) * scale
		}
		if r.IntN(50) == 0 {
			out[i] *= 100
		}
	}
	return out
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// The assembly gives the bits of the plain Go, on values of every size.
func TestKernelsAgree(t *testing.T) {
	for i, k := range available()[1:] {
		t.Run(fmt.Sprint(i), func(t *testing.T) { testKernels(t, k) })
	}
}

func testKernels(t *testing.T, fast kernels) {
	slow := portable()
	twice := func(x []float32) (a, b []float32) { return slices.Clone(x), slices.Clone(x) }

	t.Run("quantize", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			src := drawFloats(t, "src", BlockLen*rapid.IntRange(1, 9).Draw(t, "blocks"))
			a, b := make([]byte, len(src)/BlockLen*actBytes), make([]byte, len(src)/BlockLen*actBytes)
			fast.quantize(a, src)
			slow.quantize(b, src)
			if !slices.Equal(a, b) {
				t.Fatalf("%x\n%x", a, b)
			}
		})
	})
	t.Run("dotTile", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			blocks := rapid.IntRange(1, 13).Draw(t, "blocks")
			m := packFloats(panelRows, blocks*BlockLen, drawFloats(t, "weights", panelRows*blocks*BlockLen))
			x := drawFloats(t, "x", fast.dotRows*blocks*BlockLen)
			acts := make([]byte, fast.dotRows*blocks*actBytes)
			slow.quantize(acts, x)
			stride := rapid.IntRange(panelRows, 40).Draw(t, "stride")
			a, b := twice(drawFloats(t, "dst", fast.dotRows*stride))
			fast.dotTile(a, stride, acts, blocks*actBytes, m.packed, blocks)
			for r := 0; r < fast.dotRows; r += slow.dotRows {
				slow.dotTile(b[r*stride:], stride, acts[r*blocks*actBytes:], blocks*actBytes, m.packed, blocks)
			}
			if !sameBits(a, b) {
				t.Fatalf("%v\n%v", a, b)
			}
		})
	})
	t.Run("mixTile", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n, aMore, bMore := rapid.IntRange(1, 70).Draw(t, "n"), rapid.IntRange(0, 9).Draw(t, "a more"), rapid.IntRange(0, 9).Draw(t, "b more")
			x, y := drawFloats(t, "x", tileRows*(n+aMore)), drawFloats(t, "y", n*(tileCols+bMore))
			stride := rapid.IntRange(tileCols, 40).Draw(t, "stride")
			a, b := twice(make([]float32, tileRows*stride))
			fast.mixTile(a, stride, x, n+aMore, y, tileCols+bMore, n)
			slow.mixTile(b, stride, x, n+aMore, y, tileCols+bMore, n)
			if !sameBits(a, b) {
				t.Fatalf("%v\n%v", a, b)
			}
		})
	})
	t.Run("rows", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := 8 * rapid.IntRange(1, 60).Draw(t, "n")
			x, y, gain, bias := drawFloats(t, "x", n), drawFloats(t, "y", n), drawFloats(t, "gain", n), drawFloats(t, "bias", n)
			for _, op := range []struct {
				name string
				run  func(k kernels, x []float32)
			}{
				{"softmax", func(k kernels, x []float32) { k.softmax(x, 0.17) }},
				{"gelu", func(k kernels, x []float32) { k.gelu(x) }},
				{"norm", func(k kernels, x []float32) { k.norm(x, y, gain, bias, 1/float32(n), 1e-12) }},
			} {
				a, b := twice(x)
				op.run(fast, a)
				op.run(slow, b)
				if !sameBits(a, b) {
					t.Fatalf("%s\n%v\n%v", op.name, a, b)
				}
			}
		})
	})
}

// An offset and codes at their limits do not overflow the sums of 16 bits.
func TestDotTileExtremes(t *testing.T) {
	for _, code := range []byte{0x00, 0xff, 0x0f, 0xf0, 0x80} {
		for _, sign := range []float32{1, -1} {
			panel := make([]byte, packBytes)
			for i := range panelRows {
				panel[2*i], panel[2*i+1] = 0, 0x3c // 1
			}
			for i := scaleBytes; i < packBytes; i++ {
				panel[i] = code
			}
			for _, k := range available() {
				x := make([]float32, k.dotRows*BlockLen)
				for i := range x {
					x[i] = 127 * sign
				}
				acts := make([]byte, k.dotRows*actBytes)
				k.quantize(acts, x)
				dst := make([]float32, k.dotRows*panelRows)
				k.dotTile(dst, panelRows, acts, actBytes, string(panel), 1)
				for i, v := range dst {
					want := 32 * 127 * sign * (float32(code&15) - 8)
					if i%panelRows >= 8 {
						want = 32 * 127 * sign * (float32(code>>4) - 8)
					}
					if v != want {
						t.Fatalf("code %x sign %v value %d: %v, want %v", code, sign, i, v, want)
					}
				}
			}
		}
	}
}

// The approximations are close to what they stand for.
func TestFunctions(t *testing.T) {
	for x := -79.0; x < 10; x += 0.0137 {
		got, want := float64(exp(float32(x))), math.Exp(float64(float32(x)))
		if math.Abs(got-want) > 2.5e-7*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	for x := -20.0; x < 20; x += 0.0037 {
		v := []float32{float32(x), 0, 0, 0, 0, 0, 0, 0}
		gelu(v)
		f := float64(float32(x))
		if want := 0.5 * f * (1 + math.Erf(f/math.Sqrt2)); math.Abs(float64(v[0])-want) > 5e-7*max(1, math.Abs(f)) {
			t.Fatalf("gelu(%v) = %v, want %v", x, v[0], want)
		}
	}
	row := []float32{1, 2, 3, 4, 5, 6, -math.MaxFloat32, 200}
	softmax(row, 0.5)
	if row[7] != 1 || row[0] > 1e-30 || row[6] > 1e-30 {
		t.Fatal(row)
	}
}

// A block's scale and codes are within half a step of the values.
func TestQuantizeError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawFloats(t, "src", BlockLen)
		dst := make([]byte, actBytes)
		quantize(dst, src)
		scale := readFloat(dst)
		for k, v := range src {
			if got := float32(int8(dst[actHeader+k])) * scale; abs(got-v) > 0.5001*scale {
				t.Fatalf("value %d: %v became %v at scale %v", k, v, got, scale)
			}
		}
	})
}
