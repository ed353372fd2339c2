// Command gen writes the AVX2 kernels of package transformer. It is a module of
// its own, so that the assembler it uses is no dependency of the product.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The packed format, as in weights.go and quantize.go of package transformer.
const (
	tileRows   = 4 // of mixTile, and of dotTile in AVX2
	quads      = 8
	scaleBytes = 32
	lineBytes  = 32
	packBytes  = scaleBytes + quads*lineBytes
	actHeader  = 8
	actBytes   = actHeader + 32
)

func main() {
	ConstraintExpr("amd64,!purego")
	c := constants()
	dotTile(c)
	dotTileVNNI(c)
	mixTile()
	quantize(c)
	softmax(c)
	gelu(c)
	norm(c)
	cpuid()
	Generate()
}

// consts are vectors of eight equal values in memory.
type consts struct {
	nibbles, ones16, fours16, ones8, magnitude, one, negOne Mem
	tiny, full, order                                       Mem
	least, log2e, round, ln2High, ln2Low                    Mem
	exp                                                     []Mem // coefficients of r^7 down to r^0
	invSqrt2, erfStep                                       Mem
	erf                                                     []Mem // coefficients of t^5 down to t^1, halved
}

func constants() consts {
	bits := func(name string, v ...uint32) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(v[i%len(v)]))
		}
		return m
	}
	f := func(name string, v float32) Mem { return bits(name, math.Float32bits(v)) }
	c := consts{
		nibbles: bits("nibbles", 0x0f0f0f0f), ones16: bits("ones16", 0x00010001), fours16: bits("fours16", 0x00040004), ones8: bits("ones8", 0x01010101),
		magnitude: bits("magnitude", 0x7fffffff), one: f("one", 1), negOne: f("negOne", -1),
		tiny: f("tiny", 1e-30), full: f("full", 127), order: bits("order", 0, 4, 1, 5, 2, 6, 3, 7),
		least: f("least", -80), log2e: f("log2e", math.Log2E), round: f("round", 3<<22),
		ln2High: f("ln2High", 0x1.62ep-1), ln2Low: f("ln2Low", math.Ln2-0x1.62ep-1),
		invSqrt2: f("invSqrt2", 1/math.Sqrt2), erfStep: f("erfStep", 0.3275911),
	}
	for i, v := range []float32{1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2} {
		c.exp = append(c.exp, f("exp"+string(rune('7'-i)), v))
	}
	c.exp = append(c.exp, c.one, c.one)
	for i, v := range []float64{1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		c.erf = append(c.erf, f("erf"+string(rune('5'-i)), float32(v/2)))
	}
	return c
}

// rows addresses rows of a matrix: a base, and multiples of the stride that
// with the factors 1, 2 and 4 reach every row.
type rows struct {
	base  Register
	times map[int]Register
}

func loadRows(name, stride string, size, count int) rows {
	r := rows{base: Load(Param(name).Base(), GP64()), times: map[int]Register{1: Load(Param(stride), GP64())}}
	if size > 1 {
		IMUL3Q(Imm(uint64(size)), r.times[1], r.times[1])
	}
	for n := 3; n < count; n += 2 {
		r.times[n] = GP64()
		IMUL3Q(Imm(uint64(n)), r.times[1], r.times[n])
	}
	return r
}

func (r rows) at(row, disp int) Mem {
	if row == 0 {
		return Mem{Base: r.base, Disp: disp}
	}
	factor := row & -row
	return Mem{Base: r.base, Index: r.times[row/factor], Scale: uint8(factor), Disp: disp}
}

// loop runs body n times, n at least 1, and counts n down.
func loop(label string, n Register, body func()) {
	Label(label)
	body()
	DECQ(n)
	JNE(LabelRef(label))
}

func dotTile(c consts) {
	TEXT("dotTileAVX2", NOSPLIT, "func(dst []float32, dstStride int, acts []byte, actStride int, panel string, blocks int)")
	Pragma("noescape")
	Doc("dotTileAVX2 is dotTile in AVX2.")
	dst := loadRows("dst", "dstStride", 4, tileRows)
	acts := loadRows("acts", "actStride", 1, tileRows)
	panel := Load(Param("panel").Base(), GP64())
	n := Load(Param("blocks"), GP64())
	mask, ones := YMM(), YMM()
	VMOVDQU(c.nibbles, mask)
	VMOVDQU(c.ones16, ones)
	loop("block", n, func() {
		var acc [tileRows][2]VecVirtual
		for r := range acc {
			acc[r] = [2]VecVirtual{YMM(), YMM()}
			VPBROADCASTD(acts.at(r, 4), acc[r][0])
			VMOVDQA(acc[r][0], acc[r][1])
		}
		w0, w1, a, t := YMM(), YMM(), YMM(), YMM()
		for q := range quads {
			VMOVDQU(Mem{Base: panel, Disp: scaleBytes + q*lineBytes}, w0)
			VPSRLW(Imm(4), w0, w1)
			VPAND(mask, w0, w0)
			VPAND(mask, w1, w1)
			for r := range acc {
				VPBROADCASTD(acts.at(r, actHeader+4*q), a)
				VPMADDUBSW(a, w0, t)
				VPADDW(t, acc[r][0], acc[r][0])
				VPMADDUBSW(a, w1, a)
				VPADDW(a, acc[r][1], acc[r][1])
			}
		}
		scale := [2]VecVirtual{w0, w1}
		VCVTPH2PS(Mem{Base: panel}, scale[0])
		VCVTPH2PS(Mem{Base: panel, Disp: 16}, scale[1])
		for r := range acc {
			VBROADCASTSS(acts.at(r, 0), a)
			for i, sum := range acc[r] {
				VPMADDWD(ones, sum, sum)
				VCVTDQ2PS(sum, sum)
				VMULPS(scale[i], a, t)
				VMULPS(t, sum, sum)
				VADDPS(dst.at(r, 32*i), sum, sum)
				VMOVUPS(sum, dst.at(r, 32*i))
			}
		}
		ADDQ(U32(packBytes), panel)
		ADDQ(Imm(actBytes), acts.base)
	})
	VZEROUPPER()
	RET()
}

// dotTileVNNI takes twice the rows and all columns of a panel at once.
func dotTileVNNI(c consts) {
	const count = 2 * tileRows
	TEXT("dotTileVNNI", NOSPLIT, "func(dst []float32, dstStride int, acts []byte, actStride int, panel string, blocks int)")
	Pragma("noescape")
	Doc("dotTileVNNI is dotTile in AVX-512 with VNNI.")
	dst := loadRows("dst", "dstStride", 4, count)
	acts := loadRows("acts", "actStride", 1, count)
	panel := Load(Param("panel").Base(), GP64())
	n := Load(Param("blocks"), GP64())
	mask, ones, halves := ZMM(), ZMM(), ZMM()
	VPBROADCASTD(c.nibbles, mask)
	VPBROADCASTD(c.ones16, ones)
	// A shift by nothing below and by four bits above.
	VPBROADCASTD(c.fours16, halves.AsY())
	VPXORD(Z31, Z31, Z31)
	VINSERTI64X4(Imm(1), halves.AsY(), Z31, halves)
	loop("block", n, func() {
		var acc [count]VecVirtual
		for r := range acc {
			acc[r] = ZMM()
			VPBROADCASTD(acts.at(r, 4), acc[r])
			VPMADDWD(ones, acc[r], acc[r])
		}
		w, t := ZMM(), ZMM()
		for q := range quads {
			VBROADCASTI64X4(Mem{Base: panel, Disp: scaleBytes + q*lineBytes}, w)
			VPSRLVW(halves, w, w)
			VPANDD(mask, w, w)
			for r := range acc {
				dotBytes(acts.at(r, actHeader+4*q), w, acc[r])
			}
		}
		VCVTPH2PS(Mem{Base: panel}, w)
		for r, sum := range acc {
			VCVTDQ2PS(sum, sum)
			VMULPS_BCST(acts.at(r, 0), w, t)
			VMULPS(t, sum, sum)
			VADDPS(dst.at(r, 0), sum, sum)
			VMOVUPS(sum, dst.at(r, 0))
		}
		ADDQ(U32(packBytes), panel)
		ADDQ(Imm(actBytes), acts.base)
	})
	VZEROUPPER()
	RET()
}

// dotBytes adds to each lane of acc the product of four unsigned bytes of w and
// the four signed ones at m. The assembler's tables end before this
// instruction.
func dotBytes(m Mem, w, acc Register) {
	Instruction(&ir.Instruction{
		Opcode: "VPDPBUSD", Suffixes: []string{"BCST"},
		Operands: []Op{m, w, acc}, Inputs: []Op{m, w, acc}, Outputs: []Op{acc},
	})
}

func mixTile() {
	TEXT("mixTileAVX2", NOSPLIT, "func(dst []float32, dstStride int, a []float32, aStride int, b []float32, bStride int, n int)")
	Pragma("noescape")
	Doc("mixTileAVX2 is mixTile in AVX2.")
	dst := loadRows("dst", "dstStride", 4, tileRows)
	a := loadRows("a", "aStride", 4, tileRows)
	b := Load(Param("b").Base(), GP64())
	step := Load(Param("bStride"), GP64())
	SHLQ(Imm(2), step)
	n := Load(Param("n"), GP64())
	var acc [tileRows][2]VecVirtual
	for r := range acc {
		acc[r] = [2]VecVirtual{YMM(), YMM()}
		for _, v := range acc[r] {
			VXORPS(v, v, v)
		}
	}
	loop("step", n, func() {
		b0, b1 := YMM(), YMM()
		VMOVUPS(Mem{Base: b}, b0)
		VMOVUPS(Mem{Base: b, Disp: 32}, b1)
		for r := range acc {
			x, t := YMM(), YMM()
			VBROADCASTSS(a.at(r, 0), x)
			VMULPS(b0, x, t)
			VADDPS(t, acc[r][0], acc[r][0])
			VMULPS(b1, x, x)
			VADDPS(x, acc[r][1], acc[r][1])
		}
		ADDQ(Imm(4), a.base)
		ADDQ(step, b)
	})
	for r := range acc {
		for i, v := range acc[r] {
			VMOVUPS(v, dst.at(r, 32*i))
		}
	}
	VZEROUPPER()
	RET()
}

func quantize(c consts) {
	TEXT("quantizeAVX2", NOSPLIT, "func(dst []byte, src []float32)")
	Pragma("noescape")
	Doc("quantizeAVX2 is quantize in AVX2.")
	dst := Load(Param("dst").Base(), GP64())
	src := Load(Param("src").Base(), GP64())
	n := Load(Param("src").Len(), GP64())
	SHRQ(Imm(5), n)
	magnitude, order, ones, ones16 := YMM(), YMM(), YMM(), YMM()
	VMOVDQU(c.magnitude, magnitude)
	VMOVDQU(c.order, order)
	VMOVDQU(c.ones8, ones)
	VMOVDQU(c.ones16, ones16)
	loop("block", n, func() {
		v := [4]VecVirtual{YMM(), YMM(), YMM(), YMM()}
		peak, t := YMM(), YMM()
		for i := range v {
			VMOVUPS(Mem{Base: src, Disp: 32 * i}, v[i])
			if i == 0 {
				VANDPS(magnitude, v[i], peak)
			} else {
				VANDPS(magnitude, v[i], t)
				VMAXPS(t, peak, peak)
			}
		}
		half := XMM()
		VEXTRACTF128(Imm(1), peak, half)
		VMAXPS(half, peak.AsX(), half)
		x := XMM()
		VPSHUFD(Imm(0x4e), half, x)
		VMAXPS(x, half, half)
		VPSHUFD(Imm(0xb1), half, x)
		VMAXPS(x, half, half)
		VMAXPS(c.tiny, half, half)
		full := XMM()
		VMOVSS(c.full, full)
		VDIVSS(full, half, x) // peak / 127
		VMOVSS(x, Mem{Base: dst})
		VDIVSS(half, full, full) // 127 / peak
		inverse := YMM()
		VBROADCASTSS(full, inverse)
		for i := range v {
			VMULPS(inverse, v[i], v[i])
			VCVTPS2DQ(v[i], v[i])
		}
		VPACKSSDW(v[1], v[0], v[0])
		VPACKSSDW(v[3], v[2], v[2])
		VPACKSSWB(v[2], v[0], v[0])
		VPERMD(v[0], order, v[0])
		VMOVDQU(v[0], Mem{Base: dst, Disp: actHeader})
		// Sums of the columns 4q and 4q+1 in the low half of a lane, of 4q+2 and
		// 4q+3 in the high one.
		VPMADDUBSW(v[0], ones, t)
		VEXTRACTI128(Imm(1), t, x)
		VPADDW(x, t.AsX(), half)
		VPSHUFD(Imm(0x4e), half, x)
		VPADDW(x, half, half)
		VPSHUFD(Imm(0xb1), half, x)
		VPADDW(x, half, half)
		VPSLLW(Imm(3), half, half)
		VPXOR(x, x, x)
		VPSUBW(half, x, half)
		VMOVD(half, Mem{Base: dst, Disp: 4})
		ADDQ(Imm(128), src)
		ADDQ(Imm(actBytes), dst)
	})
	VZEROUPPER()
	RET()
}

// exp replaces x, which must not be above 88, by its exponential.
func exp(c consts, x VecVirtual) {
	n, t, r, p := YMM(), YMM(), YMM(), YMM()
	VMAXPS(c.least, x, x)
	VMULPS(c.log2e, x, n)
	VADDPS(c.round, n, n)
	VSUBPS(c.round, n, t)
	VMULPS(c.ln2High, t, r)
	VSUBPS(r, x, r)
	VMULPS(c.ln2Low, t, t)
	VSUBPS(t, r, r)
	VMOVUPS(c.exp[0], p)
	for _, k := range c.exp[1:] {
		VMULPS(r, p, p)
		VADDPS(k, p, p)
	}
	VPSLLD(Imm(23), n, n)
	VPADDD(n, p, x)
}

// sum adds up the lanes of v: halves, then quarters, then the last two.
func sum(v VecVirtual) VecVirtual {
	a, b := XMM(), XMM()
	VEXTRACTF128(Imm(1), v, a)
	VADDPS(a, v.AsX(), a)
	VPSHUFD(Imm(0x4e), a, b)
	VADDPS(b, a, a)
	VPSHUFD(Imm(0xb1), a, b)
	VADDPS(b, a, a)
	return a
}

func softmax(c consts) {
	TEXT("softmaxAVX2", NOSPLIT, "func(row []float32, scale float32)")
	Pragma("noescape")
	Doc("softmaxAVX2 is softmax in AVX2.")
	row := Load(Param("row").Base(), GP64())
	n := Load(Param("row").Len(), GP64())
	SHRQ(Imm(3), n)
	at, left := GP64(), GP64()
	start := func() { MOVQ(row, at); MOVQ(n, left) }
	next := func() { ADDQ(Imm(32), at) }

	start()
	peak := YMM()
	VMOVUPS(Mem{Base: at}, peak)
	loop("peak", left, func() {
		VMAXPS(Mem{Base: at}, peak, peak)
		next()
	})
	half, x := XMM(), XMM()
	VEXTRACTF128(Imm(1), peak, half)
	VMAXPS(half, peak.AsX(), half)
	VPSHUFD(Imm(0x4e), half, x)
	VMAXPS(x, half, half)
	VPSHUFD(Imm(0xb1), half, x)
	VMAXPS(x, half, half)
	VBROADCASTSS(half, peak)

	scale, total := YMM(), YMM()
	VBROADCASTSS(NewParamAddr("scale", 24), scale)
	VXORPS(total, total, total)
	start()
	loop("exp", left, func() {
		v := YMM()
		VMOVUPS(Mem{Base: at}, v)
		VSUBPS(peak, v, v)
		VMULPS(scale, v, v)
		exp(c, v)
		VMOVUPS(v, Mem{Base: at})
		VADDPS(v, total, total)
		next()
	})
	all := sum(total)
	VMOVSS(c.one, x)
	VDIVSS(all, x, x)
	VBROADCASTSS(x, scale)
	start()
	loop("share", left, func() {
		v := YMM()
		VMULPS(Mem{Base: at}, scale, v)
		VMOVUPS(v, Mem{Base: at})
		next()
	})
	VZEROUPPER()
	RET()
}

func gelu(c consts) {
	TEXT("geluAVX2", NOSPLIT, "func(x []float32)")
	Pragma("noescape")
	Doc("geluAVX2 is gelu in AVX2.")
	at := Load(Param("x").Base(), GP64())
	n := Load(Param("x").Len(), GP64())
	SHRQ(Imm(3), n)
	zero := YMM()
	VXORPS(zero, zero, zero)
	loop("gelu", n, func() {
		x, size, z, t, p, e := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: at}, x)
		VANDPS(c.magnitude, x, size)
		VMULPS(c.invSqrt2, size, z)
		VMULPS(c.erfStep, z, t)
		VADDPS(c.one, t, t)
		one := YMM()
		VMOVUPS(c.one, one)
		VDIVPS(t, one, t)
		VMOVUPS(c.erf[0], p)
		for _, k := range c.erf[1:] {
			VMULPS(t, p, p)
			VADDPS(k, p, p)
		}
		VMULPS(t, p, p)
		VMULPS(z, z, e)
		VMULPS(c.negOne, e, e)
		exp(c, e)
		VMULPS(e, p, p)
		VMULPS(size, p, p)
		VMAXPS(zero, x, x)
		VSUBPS(p, x, x)
		VMOVUPS(x, Mem{Base: at})
		ADDQ(Imm(32), at)
	})
	VZEROUPPER()
	RET()
}

func norm(c consts) {
	TEXT("normAVX2", NOSPLIT, "func(x, y, gain, bias []float32, share, epsilon float32)")
	Pragma("noescape")
	Doc("normAVX2 is norm in AVX2.")
	x := Load(Param("x").Base(), GP64())
	y := Load(Param("y").Base(), GP64())
	gain := Load(Param("gain").Base(), GP64())
	bias := Load(Param("bias").Base(), GP64())
	n := Load(Param("x").Len(), GP64())
	SHRQ(Imm(3), n)
	share, at, left, disp := XMM(), GP64(), GP64(), GP64()
	VMOVSS(NewParamAddr("share", 96), share)
	acc, v, mean := YMM(), YMM(), YMM()
	indexed := func(base Register) Mem { return Mem{Base: base, Index: disp, Scale: 1} }
	start := func() { MOVQ(x, at); MOVQ(n, left); XORQ(disp, disp); VXORPS(acc, acc, acc) }
	next := func() { ADDQ(Imm(32), disp) }

	start()
	loop("mean", left, func() {
		VMOVUPS(indexed(x), v)
		VADDPS(indexed(y), v, v)
		VMOVUPS(v, indexed(x))
		VADDPS(v, acc, acc)
		next()
	})
	s := sum(acc)
	VMULSS(share, s, s)
	VBROADCASTSS(s, mean)
	start()
	loop("variance", left, func() {
		VMOVUPS(indexed(x), v)
		VSUBPS(mean, v, v)
		VMULPS(v, v, v)
		VADDPS(v, acc, acc)
		next()
	})
	s = sum(acc)
	VMULSS(share, s, s)
	VADDSS(NewParamAddr("epsilon", 100), s, s)
	VSQRTSS(s, s, s)
	one := XMM()
	VMOVSS(c.one, one)
	VDIVSS(s, one, one)
	inverse := YMM()
	VBROADCASTSS(one, inverse)
	start()
	loop("scale", left, func() {
		VMOVUPS(indexed(x), v)
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		VMULPS(indexed(gain), v, v)
		VADDPS(indexed(bias), v, v)
		VMOVUPS(v, indexed(x))
		next()
	})
	VZEROUPPER()
	RET()
}

func cpuid() {
	TEXT("cpuid", NOSPLIT, "func(leaf uint32) (ecx uint32)")
	Doc("cpuid gives what the processor says of itself in ECX.")
	Load(Param("leaf"), EAX)
	XORL(ECX, ECX)
	CPUID()
	Store(ECX, ReturnIndex(0))
	RET()
}
