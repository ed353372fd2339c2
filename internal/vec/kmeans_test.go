package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// clusters gives n unit vectors around random centres; spread is the length of
// the noise against a centre of length 1.
func clusters(rng *rand.Rand, n, dim, centres int, spread float64) []float32 {
	middle := make([]float32, centres*dim)
	for i := range centres {
		row := middle[i*dim:][:dim]
		fillFloat32(rng, row)
		Normalize(row, row)
	}
	points := make([]float32, n*dim)
	for i := range n {
		row, centre := points[i*dim:][:dim], middle[rng.IntN(centres)*dim:]
		for j := range row {
			row[j] = centre[j] + float32(rng.NormFloat64()*spread/math.Sqrt(float64(dim)))
		}
		Normalize(row, row)
	}
	return points
}

func TestLists(t *testing.T) {
	for n, want := range map[int]int{-1: 1, 0: 1, 1: 2, 100: 20, 100_000: 632, 1_000_000: 2000} {
		if got := Lists(n); got != want {
			t.Errorf("%d rows: %d, want %d", n, got, want)
		}
	}
}

func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		dim := rapid.IntRange(1, 50).Draw(t, "dim")
		stride := dim + rapid.IntRange(0, 5).Draw(t, "padding")
		n := rapid.IntRange(1, 11).Draw(t, "points")
		k := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(tile-2, 2*tile+2)).Draw(t, "centroids")
		points := make([]float32, (n-1)*stride+dim)
		fillFloat32(rng, points)
		centroids := clusters(rng, k, dim, k, 0)
		lists, sims := make([]uint32, n), make([]float32, n)
		Assign(points, stride, dim, centroids, lists, sims)
		for i := range lists {
			scores := make([]float32, k)
			ScanFloat32(points[i*stride:][:dim], centroids, dim, scores)
			want := slices.Max(scores)
			if sims[i] != want || int(lists[i]) != slices.Index(scores, want) {
				t.Fatalf("point %d: list %d at %v, want %d at %v", i, lists[i], sims[i], slices.Index(scores, want), want)
			}
		}
		again := make([]uint32, n)
		Assign(points, stride, dim, centroids, again, nil)
		if !slices.Equal(lists, again) {
			t.Fatal("without similarities: other lists")
		}

		codes, scales := make([]int8, (n-1)*stride+dim), make([]float32, k)
		fillInt8(rng, codes)
		rows := make([]int8, k*stride)
		QuantizeRows(rows, stride, scales, centroids, dim)
		AssignInt8(codes, stride, dim, rows, scales, lists)
		for i := range lists {
			want, at := float32(math.Inf(-1)), 0
			for c := range k {
				if s := float32(naiveInt8(codes[i*stride:][:dim], rows[c*stride:])) * scales[c]; s > want {
					want, at = s, c
				}
			}
			if int(lists[i]) != at {
				t.Fatalf("code point %d: list %d, want %d", i, lists[i], at)
			}
		}
	})
}

func TestAssignNaN(t *testing.T) {
	nan := float32(math.NaN())
	lists, sims := []uint32{9}, []float32{9}
	Assign([]float32{nan, nan}, 2, 2, []float32{1, 0, 0, 1}, lists, sims)
	if lists[0] != 0 || sims[0] != float32(math.Inf(-1)) {
		t.Errorf("got list %d at %v", lists[0], sims[0])
	}
}

// TestKMeansFindsClusters wants points that lie close around a few centres to
// end up in lists of their own, centre by centre.
func TestKMeansFindsClusters(t *testing.T) {
	const n, dim, centres = 600, 32, 6
	points := clusters(rand.New(rand.NewPCG(1, 1)), n, dim, centres, 0.05)
	centroids := KMeans(points, n, dim, 3*centres, 20, 1, nil)
	lists, sims := make([]uint32, n), make([]float32, n)
	Assign(points, dim, dim, centroids, lists, sims)
	if worst := slices.Min(sims); worst < 0.98 {
		t.Errorf("a point is only %v near its centroid", worst)
	}
}

func TestKMeansProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "data"), 1))
		n, dim := rapid.IntRange(0, 150).Draw(t, "points"), rapid.IntRange(1, 20).Draw(t, "dim")
		k := rapid.IntRange(0, 40).Draw(t, "k")
		seed := rapid.Uint64().Draw(t, "seed")
		points := clusters(rng, n, dim, 5, rapid.Float64Range(0, 1).Draw(t, "spread"))
		before := slices.Clone(points)
		got := KMeans(points, n, dim, k, 5, seed, nil)
		if len(got) != min(k, n)*dim {
			t.Fatalf("%d elements for %d centroids", len(got), min(k, n))
		}
		for i := 0; i < len(got); i += dim {
			if norm, _ := naive(got[i:i+dim], got[i:i+dim]); math.Abs(norm-1) > 1e-5 {
				t.Fatalf("centroid %d has length %v", i/dim, math.Sqrt(norm))
			}
		}
		if !slices.Equal(points, before) {
			t.Fatal("the points were changed")
		}
		if !slices.Equal(got, KMeans(points, n, dim, k, 5, seed, nil)) {
			t.Fatal("not the same again")
		}
	})
}

// TestKMeansEmpty starts two centroids at equal points: one of them is left
// without points and must find the others.
func TestKMeansEmpty(t *testing.T) {
	points := slices.Concat(slices.Repeat([]float32{1, 0}, 50), []float32{0, 1})
	for seed := range uint64(20) {
		got := KMeans(points, 51, 2, 2, 5, seed, nil)
		slices.Sort(got)
		if !slices.Equal(got, []float32{0, 0, 1, 1}) {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
}

func TestKMeansStops(t *testing.T) {
	points := clusters(rand.New(rand.NewPCG(1, 1)), 1000, 8, 20, 1)
	asked := 0
	for most := range 60 {
		asked = 0
		got := KMeans(points, 1000, 8, 20, 3, 1, func() bool { asked++; return asked > most })
		if most < 16 && (got != nil || asked != most+1) {
			t.Fatalf("stopped at %d: asked %d times, got %d elements", most, asked, len(got))
		}
		if most > 48 && got == nil {
			t.Fatalf("never stopped, and nothing came")
		}
	}
}

// TestAssignInt8Agrees bounds what codes lose: the list found is as near as the
// nearest one, to a hundredth.
func TestAssignInt8Agrees(t *testing.T) {
	const n, dim, k = 2000, 96, 100
	points := clusters(rand.New(rand.NewPCG(2, 1)), n, dim, 200, 1)
	centroids := KMeans(points, n, dim, k, 6, 1, nil)
	codes, scales := make([]int8, n*dim), make([]float32, n)
	QuantizeRows(codes, dim, scales, points, dim)
	ccodes, cscales := make([]int8, k*dim), make([]float32, k)
	QuantizeRows(ccodes, dim, cscales, centroids, dim)
	exact, sims, coded := make([]uint32, n), make([]float32, n), make([]uint32, n)
	Assign(points, dim, dim, centroids, exact, sims)
	AssignInt8(codes, dim, dim, ccodes, cscales, coded)
	differ := 0
	for i := range exact {
		if exact[i] != coded[i] {
			differ++
		}
		if near := Dot(points[i*dim:][:dim], centroids[int(coded[i])*dim:][:dim]); near < sims[i]-0.01 {
			t.Errorf("point %d: %v instead of %v", i, near, sims[i])
		}
	}
	if differ > n/50 {
		t.Errorf("%d of %d lists differ", differ, n)
	}
	t.Logf("%d of %d lists differ", differ, n)
}

// TestQuantizeError bounds the error of every element, and wants the same codes
// for the rows of a matrix.
func TestQuantizeError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim, n := rapid.IntRange(1, 40).Draw(t, "dim"), rapid.IntRange(1, 5).Draw(t, "rows")
		stride := dim + rapid.IntRange(0, 20).Draw(t, "padding")
		element := rapid.OneOf(rapid.Float32Range(-1, 1), rapid.Float32Range(-1e38, 1e38), rapid.Float32Range(-1e-37, 1e-37))
		v := rapid.SliceOfN(element, n*dim, n*dim).Draw(t, "elements")
		codes := slices.Repeat([]int8{9}, (n-1)*stride+dim+rapid.IntRange(0, 20).Draw(t, "more"))
		scales := make([]float32, n)
		QuantizeRows(codes, stride, scales, v, dim)
		for i, scale := range scales {
			row := codes[i*stride:]
			one := make([]int8, dim)
			if s := Quantize(one, v[i*dim:][:dim]); s != scale || !slices.Equal(one, row[:dim]) {
				t.Fatalf("row %d alone: other codes", i)
			}
			for j, x := range v[i*dim:][:dim] {
				if row[j] == -128 {
					t.Fatal("-128")
				}
				off := math.Abs(float64(x) - float64(scale)*float64(row[j]))
				if scale != 0 && off > float64(scale)*0.50001 || scale == 0 && math.Abs(float64(x)) > 1.5e-36 {
					t.Fatalf("%v became %d times %v", x, row[j], scale)
				}
			}
			for _, c := range row[dim:min(stride, len(row))] {
				if c != 0 {
					t.Fatal("padding is not zero")
				}
			}
		}
	})
}
