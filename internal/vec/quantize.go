package vec

import "math"

// maxCode is the largest code. -128 is left out, so that codes are symmetric.
const maxCode = 127

// Quantize writes v to codes, which must be as long, as whole numbers in
// -127..127 so that v[i] is about scale*codes[i], off by at most scale/2. Halves
// go to the even neighbour. The largest element gets 127 or -127. A zero
// vector, one with a NaN or an infinity, and one whose scale float32 could not
// hold in full precision (all elements below 1.5e-36) get scale 0 and codes 0.
func Quantize(codes []int8, v []float32) (scale float32) {
	if len(codes) != len(v) {
		panic("vec: Quantize of different lengths")
	}
	const abs, exponent = 1<<31 - 1, 0x7f800000
	var bits uint32 // those of the largest magnitude: positive floats sort as integers
	for _, x := range v {
		bits = max(bits, math.Float32bits(x)&abs)
	}
	largest := float64(math.Float32frombits(bits))
	scale = float32(largest / maxCode)
	const smallestNormal = 0x1p-126
	if scale < smallestNormal || bits >= exponent {
		clear(codes)
		return 0
	}
	inv := maxCode / largest
	for i, x := range v {
		codes[i] = int8(math.RoundToEven(float64(x) * inv))
	}
	return scale
}

// FineSteps is how many steps of Refine's codes make one of Quantize's.
const FineSteps = 2 * maxCode

// Refine writes what codes leave of v, in steps of scale/FineSteps, to fine, where
// Quantize gave codes and scale for v. Then v[i] is about
// scale*(codes[i]+fine[i]/FineSteps), off by at most scale/(2*FineSteps). All are of
// one length; a scale of 0 makes fine zero.
func Refine(fine, codes []int8, scale float32, v []float32) {
	if len(fine) != len(v) || len(codes) != len(v) {
		panic("vec: Refine of different lengths")
	}
	if scale == 0 {
		clear(fine)
		return
	}
	inv := FineSteps / float64(scale)
	for i, x := range v {
		// Rounding of the scale itself may carry it past half a step of the codes.
		f := math.RoundToEven(float64(x)*inv - FineSteps*float64(codes[i]))
		fine[i] = int8(min(max(f, -maxCode), maxCode))
	}
}

// QuantizeRows quantises len(scales) rows of dim elements each, which follow
// each other in v, into rows of codes that lie stride apart. What lies between
// two rows of codes is set to zero.
func QuantizeRows(codes []int8, stride int, scales []float32, v []float32, dim int) {
	checkRows(len(codes), len(v), stride, dim, len(scales))
	for i := range scales {
		row := codes[i*stride : min((i+1)*stride, len(codes))]
		scales[i] = Quantize(row[:dim], v[i*dim:(i+1)*dim])
		clear(row[dim:])
	}
}

// checkRows panics unless n rows lie in codes, stride apart, and in v.
func checkRows(codes, v, stride, dim, n int) {
	checkScan(codes, stride, dim, n)
	checkScan(v, dim, dim, n)
}
