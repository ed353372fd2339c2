package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// intMask is a table in which a load at n words gives the last n of 16 set.
var intMask = tableOnce("intMask", func() {
	for i := range 4 {
		DATA(8*i, U64(0))
	}
	for i := range 4 {
		DATA(32+8*i, U64(0xffffffffffffffff))
	}
})

// tableOnce gives a function that makes a read-only table at its first call.
func tableOnce(name string, fill func()) func() Mem {
	var table *Mem
	return func() Mem {
		if table == nil {
			m := GLOBL(name, RODATA|NOPTR)
			table = &m
			fill()
		}
		return *table
	}
}

// widen loads 16 codes as words. Products of two words are added in pairs to
// int32 lanes, which no int8 can overflow.
func widen(m Mem) VecVirtual {
	x := YMM()
	VPMOVSXBW(m, x)
	return x
}

func multiplyAdd(x, y, acc VecVirtual) {
	VPMADDWD(x, y, y)
	VPADDD(y, acc, acc)
}

// chunks runs body for each 16 codes, at offset; then, if some are left, for
// the last 16, with a mask of those not counted yet. dim is left as it was.
func chunks(dim Register, body func(offset Register, mask *VecVirtual)) {
	offset, end := GP64(), GP64()
	XORQ(offset, offset)
	MOVQ(dim, end)
	ANDQ(I8(-16), end)
	Label("chunk")
	body(offset, nil)
	ADDQ(U8(16), offset)
	CMPQ(offset, end)
	JLT(LabelRef("chunk"))

	left := GP64()
	MOVQ(dim, left)
	SUBQ(end, left)
	JEQ(LabelRef("sum"))
	table := GP64()
	LEAQ(intMask(), table)
	mask := YMM()
	VMOVDQU(Mem{Base: table, Index: left, Scale: 2}, mask)
	LEAQ(Mem{Base: dim, Disp: -16}, offset)
	body(offset, &mask)
	Label("sum")
}

// dotRow is the inner product of one row and the query, in two accumulators.
func dotRow(q, row, dim Register) VecVirtual {
	acc := zeros(2)
	offset, end := GP64(), GP64()
	XORQ(offset, offset)
	MOVQ(dim, end)
	ANDQ(I8(-32), end)
	JEQ(LabelRef("rest"))
	at := func(p Register, plus int) Mem { return Mem{Base: p, Index: offset, Scale: 1, Disp: plus} }
	Label("two")
	for i, s := range acc {
		multiplyAdd(widen(at(q, 16*i)), widen(at(row, 16*i)), s)
	}
	ADDQ(U8(32), offset)
	CMPQ(offset, end)
	JLT(LabelRef("two"))

	Label("rest")
	left := GP64()
	MOVQ(dim, left)
	SUBQ(end, left)
	SUBQ(U8(16), left)
	JLT(LabelRef("window"))
	multiplyAdd(widen(at(q, 0)), widen(at(row, 0)), acc[0])
	JEQ(LabelRef("sum"))
	SUBQ(U8(16), left)
	Label("window")
	ADDQ(U8(16), left)
	JEQ(LabelRef("sum"))
	table := GP64()
	LEAQ(intMask(), table)
	LEAQ(Mem{Base: dim, Disp: -16}, offset)
	x := widen(at(q, 0))
	VPAND(Mem{Base: table, Index: left, Scale: 2}, x, x)
	multiplyAdd(x, widen(at(row, 0)), acc[1])

	Label("sum")
	VPADDD(acc[1], acc[0], acc[0])
	half := XMM()
	VEXTRACTI128(U8(1), acc[0], half)
	VPADDD(half, acc[0].AsX(), half)
	VPHADDD(half, half, half)
	VPHADDD(half, half, half)
	return half
}

func dotInt8() {
	function("dotInt8AVX2", "func(a, b *int8, dim int) int32",
		"dotInt8AVX2 gives the inner product of dim codes at a and b; dim is at least 16.")
	sum := dotRow(argument("a"), argument("b"), argument("dim"))
	result := GP32()
	VMOVD(sum, result)
	Store(result, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func scanInt8() {
	function("scanInt8AVX2", "func(q *int8, dim int, rows *int8, stride, fours int, out *int32)",
		"scanInt8AVX2 writes the inner products of q and 4*fours rows to out. dim is at",
		"least 16, fours at least 1.")
	q, dim, rows, stride := argument("q"), argument("dim"), argument("rows"), argument("stride")
	fours, out := argument("fours"), argument("out")
	stride3 := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)

	Label("rows")
	acc := zeros(4)
	row, next := GP64(), GP64()
	LEAQ(Mem{Base: rows, Disp: ahead}, next)
	chunks(dim, func(offset Register, mask *VecVirtual) {
		x := widen(Mem{Base: q, Index: offset, Scale: 1})
		if mask != nil {
			VPAND(*mask, x, x)
		}
		LEAQ(Mem{Base: rows, Index: offset, Scale: 1}, row)
		PREFETCHT0(Mem{Base: next, Index: offset, Scale: 4})
		for i, m := range []Mem{{Base: row}, {Base: row, Index: stride, Scale: 1}, {Base: row, Index: stride, Scale: 2}, {Base: row, Index: stride3, Scale: 1}} {
			multiplyAdd(x, widen(m), acc[i])
		}
	})
	VMOVDQU(sumFourInt([4]VecVirtual(acc)), Mem{Base: out})
	ADDQ(U8(16), out)
	LEAQ(Mem{Base: rows, Index: stride, Scale: 4}, rows)
	DECQ(fours)
	JNE(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

func scanInt8x4() {
	function("scanInt8x4AVX2", "func(q0, q1, q2, q3 *int8, dim int, rows *int8, stride, pairs int, o0, o1, o2, o3 *int32)",
		"scanInt8x4AVX2 does for four queries and 2*pairs rows what scanInt8AVX2 does.",
		"pairs is at least 1.")
	q := []Register{argument("q0"), argument("q1"), argument("q2"), argument("q3")}
	dim, row, stride, index := argument("dim"), argument("rows"), argument("stride"), GP64()
	XORQ(index, index)

	Label("rows")
	acc := zeros(8)
	second := GP64()
	LEAQ(Mem{Base: row, Index: stride, Scale: 1}, second)
	next := GP64()
	LEAQ(Mem{Base: row, Disp: ahead}, next)
	chunks(dim, func(offset Register, mask *VecVirtual) {
		PREFETCHT0(Mem{Base: next, Index: offset, Scale: 2})
		x := widen(Mem{Base: row, Index: offset, Scale: 1})
		y := widen(Mem{Base: second, Index: offset, Scale: 1})
		if mask != nil {
			VPAND(*mask, x, x)
			VPAND(*mask, y, y)
		}
		for j := range q {
			z := widen(Mem{Base: q[j], Index: offset, Scale: 1})
			product := YMM()
			VPMADDWD(x, z, product)
			VPADDD(product, acc[j], acc[j])
			multiplyAdd(y, z, acc[4+j])
		}
	})
	scatter(sumFourInt([4]VecVirtual(acc[:4])), index, 0)
	scatter(sumFourInt([4]VecVirtual(acc[4:])), index, 1)
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

// gatherInt8 asks for a row eight turns before it is needed.
func gatherInt8() {
	const turns = 8
	function("gatherInt8AVX2", "func(q *int8, dim int, rows *int8, stride int, ids *uint32, n int, out *int32)",
		"gatherInt8AVX2 writes the inner products of q and the n rows at ids to out. dim is",
		"at least 16, n at least 1.")
	q, dim, ids, n, out := argument("q"), argument("dim"), argument("ids"), argument("n"), argument("out")

	Label("rows")
	CMPQ(n, U8(turns))
	JLE(LabelRef("dot"))
	next, end := address(ids, turns), GP64()
	LEAQ(Mem{Base: next, Index: dim, Scale: 1}, end)
	Label("fetch")
	PREFETCHT0(Mem{Base: next})
	ADDQ(U8(64), next)
	CMPQ(next, end)
	JCS(LabelRef("fetch"))

	Label("dot")
	row := address(ids, 0)
	VMOVD(dotRow(q, row, dim), Mem{Base: out})
	ADDQ(U8(4), out)
	ADDQ(U8(4), ids)
	DECQ(n)
	JNE(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

// address gives where the row ids[plus] is.
func address(ids Register, plus int) Register {
	id := GP64()
	MOVL(Mem{Base: ids, Disp: 4 * plus}, id.As32())
	stride := argument("stride")
	IMULQ(stride, id)
	rows := argument("rows")
	ADDQ(rows, id)
	return id
}
