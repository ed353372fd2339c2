package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// floatMask is a table in which a load at 8-n words gives n lanes set.
var floatMask = tableOnce("floatMask", func() {
	for i := range 8 {
		DATA(4*i, U32(0xffffffff))
	}
	for i := range 8 {
		DATA(32+4*i, U32(0))
	}
})

// floatTail gives the mask of the last dim%8 elements, and jumps to none if
// there are none. It uses up dim.
func floatTail(dim Register, none string) VecVirtual {
	ANDQ(U8(7), dim)
	JEQ(LabelRef(none))
	table := GP64()
	LEAQ(floatMask(), table)
	SHLQ(U8(2), dim)
	SUBQ(dim, table)
	mask := YMM()
	VMOVDQU(Mem{Base: table, Disp: 32}, mask)
	return mask
}

// dotFloat32 has eight accumulators: two products may start in a cycle, and each
// takes four.
func dotFloat32() {
	function("dotFloat32AVX2", "func(a, b *float32, dim int) float32",
		"dotFloat32AVX2 gives the inner product of dim elements at a and b.")
	a, b, dim := argument("a"), argument("b"), argument("dim")
	acc := zeros(8)

	left := GP64()
	MOVQ(dim, left)
	Label("eight")
	SUBQ(U8(64), left)
	JLT(LabelRef("single"))
	for i, s := range acc {
		x := YMM()
		VMOVUPS(Mem{Base: a, Disp: 32 * i}, x)
		VFMADD231PS(Mem{Base: b, Disp: 32 * i}, x, s)
	}
	ADDQ(U32(256), a)
	ADDQ(U32(256), b)
	JMP(LabelRef("eight"))

	Label("single")
	ADDQ(U8(64), left)
	Label("one")
	SUBQ(U8(8), left)
	JLT(LabelRef("tail"))
	x := YMM()
	VMOVUPS(Mem{Base: a}, x)
	VFMADD231PS(Mem{Base: b}, x, acc[0])
	ADDQ(U8(32), a)
	ADDQ(U8(32), b)
	JMP(LabelRef("one"))

	Label("tail")
	mask := floatTail(dim, "sum")
	y := YMM()
	VMASKMOVPS(Mem{Base: a}, mask, x)
	VMASKMOVPS(Mem{Base: b}, mask, y)
	VFMADD231PS(x, y, acc[1])

	Label("sum")
	for n := 4; n > 0; n /= 2 {
		for i := range n {
			VADDPS(acc[n+i], acc[i], acc[i])
		}
	}
	half := XMM()
	VEXTRACTF128(U8(1), acc[0], half)
	VADDPS(half, acc[0].AsX(), half)
	VHADDPS(half, half, half)
	VHADDPS(half, half, half)
	Store(half, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// scanFloat32 takes four rows at a time, each with one accumulator.
func scanFloat32() {
	function("scanFloat32AVX2", "func(q *float32, dim int, rows *float32, stride, fours int, out *float32)",
		"scanFloat32AVX2 writes the inner products of q and 4*fours rows to out. fours is",
		"at least 1.")
	q, rows, stride := argument("q"), argument("rows"), argument("stride")
	fours, out := argument("fours"), argument("out")
	SHLQ(U8(2), stride)
	stride3 := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)

	Label("rows")
	acc := zeros(4)
	at := func(p Register) []Mem {
		return []Mem{{Base: p}, {Base: p, Index: stride, Scale: 1}, {Base: p, Index: stride, Scale: 2}, {Base: p, Index: stride3, Scale: 1}}
	}
	row, query := GP64(), GP64()
	MOVQ(rows, row)
	MOVQ(q, query)
	next := GP64()
	LEAQ(Mem{Base: rows, Disp: 2 * ahead}, next)
	dim := argument("dim")
	left := GP64()
	MOVQ(dim, left)
	SUBQ(U8(8), left)
	JLT(LabelRef("tail"))
	Label("chunk")
	x := YMM()
	VMOVUPS(Mem{Base: query}, x)
	PREFETCHT0(Mem{Base: next})
	PREFETCHT0(Mem{Base: next, Disp: 64})
	ADDQ(U8(128), next)
	for i, m := range at(row) {
		VFMADD231PS(m, x, acc[i])
	}
	ADDQ(U8(32), query)
	ADDQ(U8(32), row)
	SUBQ(U8(8), left)
	JGE(LabelRef("chunk"))

	Label("tail")
	mask := floatTail(dim, "sum")
	VMASKMOVPS(Mem{Base: query}, mask, x)
	for i, m := range at(row) {
		y := YMM()
		VMASKMOVPS(m, mask, y)
		VFMADD231PS(y, x, acc[i])
	}

	Label("sum")
	VMOVUPS(sumFour([4]VecVirtual(acc)), Mem{Base: out})
	ADDQ(U8(16), out)
	LEAQ(Mem{Base: rows, Index: stride, Scale: 4}, rows)
	DECQ(fours)
	JNE(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

// scanFloat32x4 takes two rows at a time for four queries: eight accumulators,
// of which each adds in the order in which scanFloat32's do.
func scanFloat32x4() {
	function("scanFloat32x4AVX2", "func(q0, q1, q2, q3 *float32, dim int, rows *float32, stride, pairs int, o0, o1, o2, o3 *float32)",
		"scanFloat32x4AVX2 does for four queries and 2*pairs rows what scanFloat32AVX2 does.",
		"pairs is at least 1.")
	q := []Register{argument("q0"), argument("q1"), argument("q2"), argument("q3")}
	row, stride, index := argument("rows"), argument("stride"), GP64()
	SHLQ(U8(2), stride)
	XORQ(index, index)

	Label("rows")
	acc := zeros(8)
	second := GP64()
	LEAQ(Mem{Base: row, Index: stride, Scale: 1}, second)
	offset := GP64()
	XORQ(offset, offset)
	next := GP64()
	LEAQ(Mem{Base: row, Disp: ahead}, next)
	left := argument("dim")
	SUBQ(U8(8), left)
	JLT(LabelRef("tail"))
	Label("chunk")
	x, y := YMM(), YMM()
	PREFETCHT0(Mem{Base: next, Index: offset, Scale: 2})
	VMOVUPS(Mem{Base: row, Index: offset, Scale: 1}, x)
	VMOVUPS(Mem{Base: second, Index: offset, Scale: 1}, y)
	for j := range q {
		z := YMM()
		VMOVUPS(Mem{Base: q[j], Index: offset, Scale: 1}, z)
		VFMADD231PS(x, z, acc[j])
		VFMADD231PS(y, z, acc[4+j])
	}
	ADDQ(U8(32), offset)
	SUBQ(U8(8), left)
	JGE(LabelRef("chunk"))

	Label("tail")
	dim := argument("dim")
	mask := floatTail(dim, "sum")
	VMASKMOVPS(Mem{Base: row, Index: offset, Scale: 1}, mask, x)
	VMASKMOVPS(Mem{Base: second, Index: offset, Scale: 1}, mask, y)
	for j := range q {
		z := YMM()
		VMASKMOVPS(Mem{Base: q[j], Index: offset, Scale: 1}, mask, z)
		VFMADD231PS(x, z, acc[j])
		VFMADD231PS(y, z, acc[4+j])
	}

	Label("sum")
	scatter(sumFour([4]VecVirtual(acc[:4])), index, 0)
	scatter(sumFour([4]VecVirtual(acc[4:])), index, 1)
	LEAQ(Mem{Base: row, Index: stride, Scale: 2}, row)
	ADDQ(U8(2), index)
	pairs, err := Param("pairs").Resolve()
	if err != nil {
		panic(err)
	}
	DECQ(pairs.Addr)
	JNE(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

func reachFloat32() {
	function("reachFloat32AVX2", "func(scores *float32, least float32, eights int) int",
		"reachFloat32AVX2 gives the first of 8*eights elements that is at least least, or",
		"8*eights.")
	scores, eights := argument("scores"), argument("eights")
	least := broadcast("least")
	index := GP64()
	XORQ(index, index)
	Label("loop")
	DECQ(eights)
	JLT(LabelRef("none"))
	x := YMM()
	VMOVUPS(Mem{Base: scores, Index: index, Scale: 4}, x)
	reached(x, least, index)
}

func reachInt8() {
	function("reachInt8AVX2", "func(sums *int32, scales *float32, qscale, least float32, eights int) int",
		"reachInt8AVX2 gives the first of 8*eights scores that is at least least, or",
		"8*eights.")
	sums, scales, eights := argument("sums"), argument("scales"), argument("eights")
	qscale, least := broadcast("qscale"), broadcast("least")
	index := GP64()
	XORQ(index, index)
	Label("loop")
	DECQ(eights)
	JLT(LabelRef("none"))
	x := YMM()
	VCVTDQ2PS(Mem{Base: sums, Index: index, Scale: 4}, x)
	VMULPS(Mem{Base: scales, Index: index, Scale: 4}, x, x)
	VMULPS(qscale, x, x)
	reached(x, least, index)
}

// reached ends a loop that looks for a lane of x that is at least least.
func reached(x, least VecVirtual, index Register) {
	const atLeastQuiet = 0x1d // false for NaN
	VCMPPS(U8(atLeastQuiet), least, x, x)
	bits := GP32()
	VMOVMSKPS(x, bits)
	TESTL(bits, bits)
	JNE(LabelRef("found"))
	ADDQ(U8(8), index)
	JMP(LabelRef("loop"))

	Label("found")
	lane := GP32()
	BSFL(bits, lane)
	ADDQ(lane.As64(), index)
	Label("none")
	Store(index, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func broadcast(name string) VecVirtual {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	x := YMM()
	VBROADCASTSS(p.Addr, x)
	return x
}
