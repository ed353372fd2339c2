package transformer

//go:generate go -C gen run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg transformer

// Sizes of the kernels' tiles.
const (
	tileRows = 4  // tokens
	tileCols = 16 // values of a token
)

// Activations are stored a row a token, blocks of BlockLen after one another:
// the scale (float32), the offset and the codes (int8).
//
// Weights' codes are from 0 to 15 where -8 to 7 is meant. The offset makes up
// for it: two int16, -8 times the sum of the codes whose number modulo 4 is 0 or
// 1, and of the others. An int16 that starts from its offset and takes the
// products one by one never overflows: it is always a sum of 16 products of a
// value of at most 8 and one of at most 127.
const (
	actHeader = 8
	actBytes  = actHeader + BlockLen
)

// kernels are the loops that a forward pass spends its time in. All sets of
// them give the same bits: products and sums of floats are rounded one by one,
// in an order that is part of what a kernel is.
type kernels struct {
	// dotTile adds a tile of a matrix product, dotRows x panelRows, to dst, one
	// block after the other: acts holds a row of quantised activations a row of
	// the tile, panel a panel of weights. The number of blocks is at least 1.
	dotRows int // a multiple of tileRows
	dotTile func(dst []float32, dstStride int, acts []byte, actStride int, panel string, blocks int)

	// mixTile writes a tile of the product of a and b, tileRows x tileCols, to
	// dst. N is the number of columns of a, at least 1; products are summed from
	// the first to the last.
	mixTile func(dst []float32, dstStride int, a []float32, aStride int, b []float32, bStride, n int)

	// quantize writes the blocks of src, a multiple of BlockLen and not empty.
	quantize func(dst []byte, src []float32)

	// softmax multiplies a row by scale, which is above 0, and replaces it by its
	// softmax. The row's length is a multiple of 8 and not 0.
	softmax func(row []float32, scale float32)

	// gelu replaces the values of x, a multiple of 8 and not empty, by x times the
	// share of a normal distribution below x.
	gelu func(x []float32)

	// norm adds y to x and brings the sum to mean 0 and variance 1, then
	// multiplies by gain and adds bias. All are equally long, a multiple of 8;
	// share is 1 through that length.
	norm func(x, y, gain, bias []float32, share, epsilon float32)
}

// portable are the kernels in plain Go.
func portable() kernels {
	return kernels{dotRows: tileRows, dotTile: dotTile, mixTile: mixTile, quantize: quantize, softmax: softmax, gelu: gelu, norm: norm}
}
