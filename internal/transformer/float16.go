package transformer

import "math"

// fromFloat16 widens a float16, exactly.
func fromFloat16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, frac := uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0: // zero and subnormals, which are multiples of 2^-24
		return math.Float32frombits(math.Float32bits(float32(frac)*(1.0/(1<<24))) | sign)
	case 31: // infinities and not-a-numbers
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// toFloat16 rounds to the nearest float16, ties to even. Beyond the range it
// gives an infinity.
func toFloat16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, mag := uint16(bits>>16&0x8000), bits&^(1<<31)
	switch {
	case mag > 0xff<<23:
		return sign | 0x7e00
	case mag >= (127+16)<<23:
		return sign | 0x7c00
	case mag < (127-14)<<23:
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(mag))*(1<<24)))
	}
	mag += 0xfff + mag>>13&1 // a carry out of the fraction raises the exponent, as it should
	return sign | uint16(mag>>13-(127-15)<<10)
}
