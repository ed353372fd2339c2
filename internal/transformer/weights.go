package transformer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Config is the shape of an encoder.
type Config struct {
	Layers       int     // blocks of attention and feed-forward
	Hidden       int     // width of a token's vector, a multiple of 32
	Heads        int     // attention heads; Hidden/Heads is a multiple of 16
	Intermediate int     // width between the two feed-forward matrices, a multiple of 32
	MaxPositions int     // most tokens in a text
	Epsilon      float32 // what layer norms add to the variance
}

// The block format: a row of weights is cut into blocks of BlockLen, and a
// block is a scale (float16, little endian) followed by 16 bytes of codes. Code
// j is the low half of byte j for j below 16, else the high half of byte j-16.
// The weight is (code - 8) * scale.
const (
	BlockLen   = 32 // weights in a block
	BlockBytes = 18 // bytes of a block
)

// The packed format holds the same scales and codes, in the order in which a
// kernel wants them. A panel is panelRows rows of weights; within a panel the
// blocks follow one another along the columns, each as the rows' scales and
// then one line for every quadWidth columns. Byte quadWidth*j+i of line q holds
// the codes of column quadWidth*q+i: the low half that of row j, the high half
// that of row j+8.
const (
	panelRows  = 16
	quadWidth  = 4
	blockQuads = BlockLen / quadWidth
	lineBytes  = panelRows / 2 * quadWidth
	scaleBytes = 2 * panelRows
	packBytes  = scaleBytes + blockQuads*lineBytes // of one block of a panel
)

// ErrShape means that a matrix, a section or a model has a size that does not
// fit the others. It is meant for errors.Is.
var ErrShape = errors.New("wrong shape")

// A Matrix is a matrix of 4-bit weights in packed form, Rows x Cols, which
// takes Cols values to Rows values. It shares the bytes that it was made of.
type Matrix struct {
	rows, cols int
	packed     string
}

// NewMatrix makes a matrix of what Pack gave, without copying it.
func NewMatrix(rows, cols int, packed string) (Matrix, error) {
	if err := checkShape(rows, cols); err != nil {
		return Matrix{}, err
	}
	if len(packed) != PackedSize(rows, cols) {
		return Matrix{}, fmt.Errorf("%w: %d bytes of a %d x %d matrix, want %d", ErrShape, len(packed), rows, cols, PackedSize(rows, cols))
	}
	return Matrix{rows: rows, cols: cols, packed: packed}, nil
}

// Rows is the number of values that the matrix gives.
func (m Matrix) Rows() int { return m.rows }

// Cols is the number of values that the matrix takes.
func (m Matrix) Cols() int { return m.cols }

// PackedSize is the number of bytes that a packed matrix takes: 4.5 bits a
// weight.
func PackedSize(rows, cols int) int { return rows / panelRows * (cols / BlockLen) * packBytes }

// Pack brings a matrix from the block format, row after row, into the packed
// one. Nothing is lost. Rows must be a multiple of 16 and cols one of 32.
//
// Matrices packed one after the other are the packed form of the matrix that
// has the rows of all of them.
func Pack(rows, cols int, blocks []byte) ([]byte, error) {
	if err := checkShape(rows, cols); err != nil {
		return nil, err
	}
	perRow := cols / BlockLen
	if len(blocks) != rows*perRow*BlockBytes {
		return nil, fmt.Errorf("%w: %d bytes of blocks for %d x %d weights", ErrShape, len(blocks), rows, cols)
	}
	out := make([]byte, PackedSize(rows, cols))
	for r := range rows {
		j, shift := r%panelRows, 0
		if j >= panelRows/2 {
			shift = 4
		}
		for b := range perRow {
			src := blocks[(r*perRow+b)*BlockBytes:][:BlockBytes]
			dst := out[(r/panelRows*perRow+b)*packBytes:][:packBytes]
			copy(dst[2*j:], src[:2])
			lines := dst[scaleBytes:]
			for k := range BlockLen {
				at := k/quadWidth*lineBytes + j%(panelRows/2)*quadWidth + k%quadWidth
				lines[at] |= blockCode(src, k) << shift
			}
		}
	}
	return out, nil
}

// Quantize brings a row of weights, a multiple of BlockLen, into the block
// format. The value of the largest magnitude in a block keeps it, up to the
// rounding of the scale to float16.
func Quantize(dst []byte, row []float32) []byte {
	for ; len(row) >= BlockLen; row = row[BlockLen:] {
		var peak float32
		for _, v := range row[:BlockLen] {
			if abs(v) > abs(peak) {
				peak = v
			}
		}
		half := toFloat16(peak / -8)
		scale, inverse := fromFloat16(half), float32(0)
		if scale != 0 {
			inverse = 1 / scale
		}
		at := len(dst)
		dst = binary.LittleEndian.AppendUint16(dst, half)
		dst = append(dst, make([]byte, BlockBytes-2)...)
		for k, v := range row[:BlockLen] {
			code := byte(max(0, min(15, math.RoundToEven(float64(v*inverse))+8)))
			dst[at+2+k%16] |= code << (k / 16 * 4)
		}
	}
	return dst
}

// A Table is a list of vectors in the block format, of which rows are read one
// at a time. It shares the bytes that it was made of.
type Table struct {
	rows, cols int
	blocks     string
}

// NewTable makes a table of rows vectors of cols values each, row after row in
// the block format, without copying them. Cols is a multiple of 32.
func NewTable(rows, cols int, blocks string) (Table, error) {
	if rows <= 0 || cols <= 0 || cols%BlockLen != 0 || len(blocks)/rows != cols/BlockLen*BlockBytes || len(blocks)%rows != 0 {
		return Table{}, fmt.Errorf("%w: %d bytes of a table of %d x %d", ErrShape, len(blocks), rows, cols)
	}
	return Table{rows: rows, cols: cols, blocks: blocks}, nil
}

// Rows is the number of vectors.
func (t Table) Rows() int { return t.rows }

// Cols is the length of a vector.
func (t Table) Cols() int { return t.cols }

// Row writes vector i, which must be at least 0 and below Rows, to dst, which
// has Cols values.
func (t Table) Row(dst []float32, i int) {
	perRow := t.cols / BlockLen
	for b := range perRow {
		src := t.blocks[(i*perRow+b)*BlockBytes:][:BlockBytes]
		scale := fromFloat16(uint16(src[0]) | uint16(src[1])<<8)
		out := dst[b*BlockLen:][:BlockLen]
		for k := range 16 {
			out[k] = float32(int(src[2+k]&15)-8) * scale
			out[k+16] = float32(int(src[2+k]>>4)-8) * scale
		}
	}
}

// blockCode gives code k of a block.
func blockCode(block []byte, k int) byte {
	if k < 16 {
		return block[2+k] & 15
	}
	return block[2+k-16] >> 4
}

func checkShape(rows, cols int) error {
	if rows <= 0 || cols <= 0 || rows%panelRows != 0 || cols%BlockLen != 0 {
		return fmt.Errorf("%w: %d x %d, want multiples of %d and %d", ErrShape, rows, cols, panelRows, BlockLen)
	}
	return nil
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }
