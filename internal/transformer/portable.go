package transformer

import (
	"encoding/binary"
	"math"
)

// The kernels in plain Go. A product is converted to float32 before it is added
// to something, which keeps compilers from fusing the two: the assembly rounds
// twice, and so does this.

func dotTile(dst []float32, dstStride int, acts []byte, actStride int, panel string, blocks int) {
	var in [tileRows][BlockLen]int64
	var offsets [tileRows]int64
	var scales [tileRows]float32
	for b := range blocks {
		block := panel[b*packBytes:][:packBytes]
		for r := range in {
			act := acts[r*actStride+b*actBytes:][:actBytes]
			scales[r] = math.Float32frombits(binary.LittleEndian.Uint32(act))
			offset := int64(int16(binary.LittleEndian.Uint16(act[4:]))) + int64(int16(binary.LittleEndian.Uint16(act[6:])))
			offsets[r] = offset + offset<<32
			for k, code := range act[actHeader:] {
				in[r][k] = int64(int8(code))
			}
		}
		for j := range panelRows / 2 {
			// The sums of panel rows j and j+8 share an int64. What the lower one
			// borrows from the upper while it is negative is given back below.
			s0, s1, s2, s3 := offsets[0], offsets[1], offsets[2], offsets[3]
			for q := range blockQuads {
				codes := block[scaleBytes+q*lineBytes+j*quadWidth:][:quadWidth]
				for i := range quadWidth {
					code, k := int64(codes[i]), q*quadWidth+i
					pair := code&15 | code>>4<<32
					s0 += pair * in[0][k]
					s1 += pair * in[1][k]
					s2 += pair * in[2][k]
					s3 += pair * in[3][k]
				}
			}
			low := fromFloat16(uint16(block[2*j]) | uint16(block[2*j+1])<<8)
			high := fromFloat16(uint16(block[2*j+panelRows]) | uint16(block[2*j+panelRows+1])<<8)
			for r, pair := range [tileRows]int64{s0, s1, s2, s3} {
				first := int32(pair)
				second := int32((pair - int64(first)) >> 32)
				out := dst[r*dstStride:][:panelRows]
				out[j] += float32(float32(first) * float32(scales[r]*low))
				out[j+8] += float32(float32(second) * float32(scales[r]*high))
			}
		}
	}
}

func mixTile(dst []float32, dstStride int, a []float32, aStride int, b []float32, bStride, n int) {
	for r := range tileRows {
		var acc [tileCols]float32
		for k, x := range a[r*aStride:][:n] {
			row := b[k*bStride:][:tileCols]
			for j := range acc {
				acc[j] += float32(x * row[j])
			}
		}
		copy(dst[r*dstStride:][:tileCols], acc[:])
	}
}

// tiny stands for the largest magnitude of a block of zeros.
const tiny = 1e-30

func quantize(dst []byte, src []float32) {
	for ; len(src) > 0; src, dst = src[BlockLen:], dst[actBytes:] {
		peak := float32(tiny)
		for _, v := range src[:BlockLen] {
			peak = max(peak, abs(v))
		}
		binary.LittleEndian.PutUint32(dst, math.Float32bits(peak/127))
		inverse := 127 / peak
		var sums [2]int
		for k, v := range src[:BlockLen] {
			code := int8(math.RoundToEven(float64(float32(v * inverse))))
			dst[actHeader+k] = byte(code)
			sums[k/2%2] += int(code)
		}
		binary.LittleEndian.PutUint16(dst[4:], uint16(int16(-8*sums[0])))
		binary.LittleEndian.PutUint16(dst[6:], uint16(int16(-8*sums[1])))
	}
}

// exp gives e to the power of x, which must not be above 88, within 2 units in
// the last place. Below -80 it gives what it gives there, nearly 0.
func exp(x float32) float32 {
	const (
		magic   = 3 << 22 // adding it rounds to an integer, which the low bits then hold
		ln2High = 0x1.62ep-1
		ln2Low  = math.Ln2 - ln2High
	)
	x = max(x, -80)
	n := float32(x*math.Log2E) + magic
	whole := n - magic
	r := x - float32(whole*ln2High)
	r -= float32(whole * ln2Low)
	p := float32(1. / 5040)
	for _, c := range [...]float32{1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1} {
		p = float32(p*r) + c
	}
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(n)<<23)
}

// lanes is a sum in eight parts: value i goes to part i modulo 8.
type lanes [8]float32

func (l *lanes) sum() float32 {
	return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

func softmax(row []float32, scale float32) {
	peak := row[0]
	for _, v := range row {
		peak = max(peak, v)
	}
	var total lanes
	for i, v := range row {
		row[i] = exp(float32(v-peak) * scale)
		total[i%8] += row[i]
	}
	share := 1 / total.sum()
	for i := range row {
		row[i] *= share
	}
}

// gelu uses the error function's approximation 7.1.26 of Abramowitz and Stegun,
// which is off by at most 1.5e-7.
func gelu(x []float32) {
	for i, v := range x {
		size := abs(v)
		z := float32(size * (1 / math.Sqrt2))
		t := 1 / (float32(z*0.3275911) + 1)
		p := float32(1.061405429 / 2)
		for _, c := range [...]float32{-1.453152027 / 2, 1.421413741 / 2, -0.284496736 / 2, 0.254829592 / 2} {
			p = float32(p*t) + c
		}
		p = float32(p * t)
		p = float32(p * exp(-float32(z*z)))
		x[i] = max(v, 0) - float32(p*size)
	}
}

func norm(x, y, gain, bias []float32, share, epsilon float32) {
	var acc lanes
	for i := range x {
		x[i] += y[i]
		acc[i%8] += x[i]
	}
	mean := float32(acc.sum() * share)
	acc = lanes{}
	for i := range x {
		d := x[i] - mean
		acc[i%8] += float32(d * d)
	}
	variance := float32(acc.sum() * share)
	inverse := 1 / float32(math.Sqrt(float64(variance+epsilon)))
	for i := range x {
		x[i] = float32(float32((x[i]-mean)*inverse)*gain[i]) + bias[i]
	}
}
