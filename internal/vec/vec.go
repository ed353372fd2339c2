// Package vec computes with vectors: dot products of float32 and int8 rows,
// scans of many rows against one or several queries, quantisation, the k best
// of many scores, and the clustering that an inverted file needs.
//
// A matrix is one flat slice of rows that lie stride elements apart, stride
// being at least the dimension; what lies between two rows is never read. Every
// function checks that its slices are long enough and panics when they are not.
//
// On amd64 with AVX2 and FMA the loops are assembly, elsewhere (and with the
// build tag purego) plain Go. Integer results are the same in both. Float
// results differ by rounding only; the functions that scan give one row and one
// query the same bits wherever the row lies and however many queries there are.
package vec

import "math"

// HasSIMD says whether the assembly kernels are in use.
func HasSIMD() bool { return simd }

// Dot gives the inner product of a and b, which must have the same length.
// NaN and infinities follow the rules of float arithmetic.
func Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic("vec: Dot of different lengths")
	}
	if len(a) == 0 {
		return 0
	}
	return dot(a, b)
}

// DotInt8 gives the inner product of a and b, which must have the same length.
// Every int8 is allowed; the result is exact for up to 65,536 elements.
func DotInt8(a, b []int8) int32 {
	if len(a) != len(b) {
		panic("vec: DotInt8 of different lengths")
	}
	if len(a) == 0 {
		return 0
	}
	return dotInt8(a, b)
}

// Finite says whether v holds neither NaN nor an infinity.
func Finite(v []float32) bool {
	const exponent = 0x7f800000
	for _, x := range v {
		if math.Float32bits(x)&exponent == exponent {
			return false
		}
	}
	return true
}

// Normalize writes src, scaled to length 1, to dst, which must be as long and
// may be src itself. It gives the length that src had, +Inf if float32 cannot
// hold it. A vector without a direction (zero, empty, or with a NaN or an
// infinity) gives ok false and leaves dst as it was.
func Normalize(dst, src []float32) (norm float32, ok bool) {
	if len(dst) != len(src) {
		panic("vec: Normalize of different lengths")
	}
	// Squares of float32 neither overflow nor vanish in float64.
	sum := 0.0
	for _, x := range src {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0, false
	}
	length := math.Sqrt(sum)
	inv := 1 / length
	for i, x := range src {
		dst[i] = float32(float64(x) * inv)
	}
	return float32(length), true
}
