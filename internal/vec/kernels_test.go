package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// longest is up to which length every length is tried.
const longest = 300

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func ints(b []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}

func fillFloat32(rng *rand.Rand, v []float32) {
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
}

// fillInt8 uses every int8, the extremes often.
func fillInt8(rng *rand.Rand, v []int8) {
	for i := range v {
		switch rng.IntN(8) {
		case 0:
			v[i] = -128
		case 1:
			v[i] = 127
		default:
			v[i] = int8(rng.Uint32())
		}
	}
}

// naive is the inner product and what rounding may move it by.
func naive(a, b []float32) (sum, slack float64) {
	for i := range a {
		p := float64(a[i]) * float64(b[i])
		sum += p
		slack += math.Abs(p)
	}
	return sum, slack*1e-6 + 1e-30
}

func naiveInt8(a, b []int8) int32 {
	sum := 0
	for i := range a {
		sum += int(a[i]) * int(b[i])
	}
	return int32(sum)
}

func near(t interface {
	Helper()
	Errorf(string, ...any)
}, got float32, a, b []float32) {
	t.Helper()
	if want, slack := naive(a, b); math.Abs(float64(got)-want) > slack {
		t.Errorf("length %d: got %v, want %v", len(a), got, want)
	}
}

// TestDotEveryLength tries each length at both ends of memory that may be read,
// and each alignment of either side.
func TestDotEveryLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, last := range []bool{false, true} {
		a, b := floats(guarded(t, 4*longest, last)), floats(guarded(t, 4*longest, last))
		c, d := ints(guarded(t, longest, last)), ints(guarded(t, longest, last))
		fillFloat32(rng, a)
		fillFloat32(rng, b)
		fillInt8(rng, c)
		fillInt8(rng, d)
		for n := range longest + 1 {
			for _, shift := range []int{0, 1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 32, 33, 63} {
				i, j := 0, min(shift, longest-n)
				if last {
					i, j = longest-n, max(0, longest-n-shift)
				}
				near(t, Dot(a[i:i+n], b[j:j+n]), a[i:i+n], b[j:j+n])
				near(t, dotGo(a[i:i+n], b[j:j+n]), a[i:i+n], b[j:j+n])
				want := naiveInt8(c[i:i+n], d[j:j+n])
				if got := DotInt8(c[i:i+n], d[j:j+n]); got != want {
					t.Fatalf("length %d at %d and %d: got %d, want %d", n, i, j, got, want)
				}
				if got := dotInt8Go(c[i:i+n], d[j:j+n]); got != want {
					t.Fatalf("length %d, plain Go: got %d, want %d", n, got, want)
				}
			}
		}
	}
}

func TestDotInt8Extremes(t *testing.T) {
	const n = 65536
	a := slices.Repeat([]int8{-128}, n)
	b := slices.Repeat([]int8{127}, n)
	for _, c := range []struct {
		a, b []int8
		want int32
	}{{a, a, n * 128 * 128}, {a, b, -n * 128 * 127}, {b, b, n * 127 * 127}} {
		if got := DotInt8(c.a, c.b); got != c.want {
			t.Errorf("got %d, want %d", got, c.want)
		}
		var one [1]int32
		if ScanInt8(c.a, c.b, n, one[:]); one[0] != c.want {
			t.Errorf("scan: got %d, want %d", one[0], c.want)
		}
	}
}

func TestDotSpecial(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x, y, want float32
	}{{inf, 1, inf}, {-inf, 1, -inf}, {inf, 0, nan}, {nan, 1, nan}, {math.MaxFloat32, 2, inf}, {inf, inf, inf}} {
		for n := 1; n < 70; n++ {
			for at := range n {
				a, b := make([]float32, n), make([]float32, n)
				a[at], b[at] = c.x, c.y
				var scanned [1]float32
				ScanFloat32(a, b, n, scanned[:])
				for _, got := range []float32{Dot(a, b), dotGo(a, b), scanned[0]} {
					if got != c.want && (got == got || c.want == c.want) {
						t.Fatalf("%v*%v at %d of %d: got %v, want %v", c.x, c.y, at, n, got, c.want)
					}
				}
			}
		}
	}
}

// shape is a matrix and what a batch of queries gives with it.
type shape struct{ dim, stride, n, queries int }

func drawShape(t *rapid.T) shape {
	dim := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, longest)).Draw(t, "dim")
	return shape{
		dim:     dim,
		stride:  dim + rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 37)).Draw(t, "padding"),
		n:       rapid.IntRange(0, 21).Draw(t, "rows"),
		queries: rapid.IntRange(0, 9).Draw(t, "queries"),
	}
}

// elements is how many the rows take: nothing follows the last one.
func (s shape) elements() int {
	if s.n == 0 {
		return 0
	}
	return (s.n-1)*s.stride + s.dim
}

func TestScanInt8(t *testing.T) {
	const most = 20*(longest+37) + longest
	memory := map[bool][]int8{true: ints(guarded(t, most, true)), false: ints(guarded(t, most, false))}
	rng := rand.New(rand.NewPCG(3, 4))
	fillInt8(rng, memory[true])
	fillInt8(rng, memory[false])
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		last := rapid.Bool().Draw(t, "last")
		rows := memory[last][:s.elements()]
		if last {
			rows = memory[last][most-s.elements():]
		}
		qs, outs := make([][]int8, s.queries), make([][]int32, s.queries)
		for j := range qs {
			qs[j], outs[j] = make([]int8, s.dim), make([]int32, s.n)
			fillInt8(rng, qs[j])
		}
		ScanInt8Batch(qs, rows, s.stride, outs)
		if s.queries >= 4 {
			var four [4][]int32
			for j := range four {
				four[j] = make([]int32, s.n)
			}
			scanInt8x4Go((*[4][]int8)(qs), rows, s.stride, &four)
			for j := range four {
				if !slices.Equal(four[j], outs[j]) {
					t.Fatalf("query %d of a batch: %v, in plain Go %v", j, outs[j], four[j])
				}
			}
		}
		ids := make([]uint32, s.n)
		for i := range ids {
			ids[i] = uint32(rng.IntN(s.n))
		}
		single, gathered, twin := make([]int32, s.n), make([]int32, s.n), make([]int32, s.n)
		for j, q := range qs {
			ScanInt8(q, rows, s.stride, single)
			GatherInt8(q, rows, s.stride, ids, gathered)
			scanInt8Go(q, rows, s.stride, twin)
			if !slices.Equal(single, twin) {
				t.Fatalf("query %d: %v, in plain Go %v", j, single, twin)
			}
			gatherInt8Go(q, rows, s.stride, ids, twin)
			if !slices.Equal(gathered, twin) {
				t.Fatalf("query %d gathered: %v, in plain Go %v", j, gathered, twin)
			}
			for i := range s.n {
				want := naiveInt8(q, rows[i*s.stride:][:s.dim])
				if single[i] != want || outs[j][i] != want {
					t.Fatalf("query %d, row %d: got %d, in the batch %d, want %d", j, i, single[i], outs[j][i], want)
				}
				if got := gathered[i]; got != single[ids[i]] {
					t.Fatalf("query %d, row %d gathered: got %d, want %d", j, ids[i], got, single[ids[i]])
				}
			}
		}
	})
}

// TestScanFloat32 also wants the same bits for a row wherever it lies and
// however many queries there are.
func TestScanFloat32(t *testing.T) {
	const most = 20*(longest+37) + longest
	memory := map[bool][]float32{true: floats(guarded(t, 4*most, true)), false: floats(guarded(t, 4*most, false))}
	rng := rand.New(rand.NewPCG(5, 6))
	fillFloat32(rng, memory[true])
	fillFloat32(rng, memory[false])
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		last := rapid.Bool().Draw(t, "last")
		rows := memory[last][:s.elements()]
		if last {
			rows = memory[last][most-s.elements():]
		}
		qs, outs := make([][]float32, s.queries), make([][]float32, s.queries)
		for j := range qs {
			qs[j], outs[j] = make([]float32, s.dim), make([]float32, s.n)
			fillFloat32(rng, qs[j])
		}
		ScanFloat32Batch(qs, rows, s.stride, outs)
		var four [4][]float32
		for j := range four {
			four[j] = make([]float32, s.n)
		}
		if s.queries >= 4 {
			scanFloat32x4Go((*[4][]float32)(qs), rows, s.stride, &four)
		}
		single, twin := make([]float32, s.n), make([]float32, s.n)
		for j, q := range qs {
			ScanFloat32(q, rows, s.stride, single)
			scanFloat32Go(q, rows, s.stride, twin)
			for i := range s.n {
				row := rows[i*s.stride:][:s.dim]
				near(t, single[i], q, row)
				near(t, twin[i], q, row)
				if s.queries >= 4 && j < 4 {
					near(t, four[j][i], q, row)
				}
				var alone [1]float32
				ScanFloat32(q, row, s.stride, alone[:])
				if single[i] != outs[j][i] || single[i] != alone[0] {
					t.Fatalf("query %d, row %d: %v in a scan, %v in a batch, %v alone", j, i, single[i], outs[j][i], alone[0])
				}
			}
		}
	})
}

// TestScanStretches covers more rows than one call of the assembly takes.
func TestScanStretches(t *testing.T) {
	const dim, n = 16, 70_003
	rng := rand.New(rand.NewPCG(7, 8))
	rows, q := make([]int8, n*dim), make([]int8, dim)
	fillInt8(rng, rows)
	fillInt8(rng, q)
	frows, fq := make([]float32, n*dim), make([]float32, dim)
	fillFloat32(rng, frows)
	fillFloat32(rng, fq)
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(i)
	}
	outs, fouts := make([][]int32, 6), make([][]float32, 5)
	for j := range outs {
		outs[j] = make([]int32, n)
	}
	for j := range fouts {
		fouts[j] = make([]float32, n)
	}
	ScanInt8(q, rows, dim, outs[0])
	GatherInt8(q, rows, dim, ids, outs[1])
	ScanInt8Batch([][]int8{q, q, q, q}, rows, dim, outs[2:])
	ScanFloat32(fq, frows, dim, fouts[0])
	ScanFloat32Batch([][]float32{fq, fq, fq, fq}, frows, dim, fouts[1:])
	for i := range n {
		want := naiveInt8(q, rows[i*dim:][:dim])
		for j, out := range outs {
			if out[i] != want {
				t.Fatalf("row %d, result %d: got %d, want %d", i, j, out[i], want)
			}
		}
		near(t, fouts[0][i], fq, frows[i*dim:][:dim])
		for j, out := range fouts {
			if out[i] != fouts[0][i] {
				t.Fatalf("row %d, result %d: got %v, want %v", i, j, out[i], fouts[0][i])
			}
		}
	}
}

func TestReach(t *testing.T) {
	score := rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{0, 1, -1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}))
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(score, 0, 50).Draw(t, "scores")
		sums := rapid.SliceOfN(rapid.Int32(), len(scores), len(scores)).Draw(t, "sums")
		least, qscale := score.Draw(t, "least"), score.Draw(t, "qscale")
		from := rapid.IntRange(0, len(scores)).Draw(t, "from")
		if got, want := reachFloat32(scores, least, from), reachFloat32Go(scores, least, from); got != want {
			t.Fatalf("float32: got %d, want %d", got, want)
		}
		if got, want := reachInt8(sums, scores, qscale, least, from), reachInt8Go(sums, scores, qscale, least, from); got != want {
			t.Fatalf("int8: got %d, want %d", got, want)
		}
	})
}

func TestShapes(t *testing.T) {
	f, c := make([]float32, 100), make([]int8, 100)
	of, oc := make([]float32, 4), make([]int32, 4)
	cases := map[string]func(){
		"Dot":                 func() { Dot(f, f[1:]) },
		"DotInt8":             func() { DotInt8(c, c[1:]) },
		"Normalize":           func() { Normalize(f, f[1:]) },
		"Quantize":            func() { Quantize(c, f[1:]) },
		"short rows":          func() { ScanInt8(c[:20], c[:99], 26, make([]int32, 5)) },
		"short float rows":    func() { ScanFloat32(f[:25], f[:99], 25, of) },
		"no rows":             func() { ScanInt8(c[:20], nil, 20, oc) },
		"stride":              func() { ScanInt8(c[:20], c, 19, oc) },
		"stride zero":         func() { ScanFloat32(f[:1], f, 0, of) },
		"negative stride":     func() { ScanFloat32(f[:1], f, -1, of) },
		"stride that wraps":   func() { ScanInt8(c[:16], c, 1<<62, make([]int32, 5)) },
		"queries and results": func() { ScanInt8Batch([][]int8{c}, c, 100, nil) },
		"query lengths":       func() { ScanFloat32Batch([][]float32{f[:5], f[:6]}, f, 10, [][]float32{of, of}) },
		"result lengths":      func() { ScanFloat32Batch([][]float32{f[:5], f[:5]}, f, 10, [][]float32{of, of[1:]}) },
		"batch short of rows": func() { ScanInt8Batch([][]int8{c[:50], c[:50], c[:50], c[:50]}, c, 50, [][]int32{oc, oc, oc, oc}) },
		"id":                  func() { GatherInt8(c[:20], c, 20, []uint32{0, 5}, oc[:2]) },
		"ids and results":     func() { GatherInt8(c[:20], c, 20, []uint32{0}, oc[:2]) },
		"no centroid":         func() { Assign(f, 10, 10, nil, make([]uint32, 1), nil) },
		"points":              func() { Assign(f, 10, 10, f[:10], make([]uint32, 11), nil) },
		"code points":         func() { AssignInt8(c, 10, 10, c, make([]float32, 11), make([]uint32, 1)) },
		"cluster":             func() { KMeans(f, 11, 10, 2, 1, 1, nil) },
		"quantised rows":      func() { QuantizeRows(c, 30, of, f, 25) },
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestNoAllocations(t *testing.T) {
	const dim, n = 64, 100
	rng := rand.New(rand.NewPCG(9, 9))
	rows, frows := make([]int8, n*dim), make([]float32, n*dim)
	fillInt8(rng, rows)
	fillFloat32(rng, frows)
	sums, scores, scales := make([]int32, n), make([]float32, n), make([]float32, n)
	lists := make([]uint32, n)
	hits := make([]Hit, 0, 10)
	var top TopK
	run := func() {
		ScanInt8(rows[:dim], rows, dim, sums)
		ScanFloat32(frows[:dim], frows, dim, scores)
		top.Reset(10)
		top.PushInt8(sums, scales, 1, 0)
		top.PushFloat32(scores, 0)
		hits = top.Sorted(hits[:0])
		Assign(frows, dim, dim, frows[:20*dim], lists, scores)
		AssignInt8(rows, dim, dim, rows, scales, lists)
	}
	run()
	if got := testing.AllocsPerRun(10, run); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func ExampleScanInt8() {
	q := []int8{1, 2, 3}
	rows := []int8{1, 0, 0, 99, 0, 1, 1, 99, -1, -1, -1}
	out := make([]int32, 3)
	ScanInt8(q, rows, 4, out)
	fmt.Println(out)
	// Output: [1 5 -6]
}
