// Command gen writes the assembly kernels of package vec for amd64: it needs
// AVX2 and FMA. It is a module of its own, so that the generator's dependencies
// never become the product's. Run it with go generate in the package vec.
//
// Every kernel reads exactly the elements it is given. The float kernels end
// with a masked load. The int8 kernels need at least 16 elements and end with a
// window over the last 16, of which the query's share that was counted before
// is masked out.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ahead is how many bytes before their turn the scans ask for rows: about what
// memory delivers while it is late. Asking past the end is harmless.
const ahead = 4096

func main() {
	ConstraintExpr("amd64,!purego")
	detect()
	dotFloat32()
	dotInt8()
	scanFloat32()
	scanFloat32x4()
	scanInt8()
	scanInt8x4()
	gatherInt8()
	reachInt8()
	reachFloat32()
	Generate()
}

// function opens a function whose pointer arguments do not escape.
func function(name, signature string, doc ...string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc...)
}

func argument(name string) Register { return Load(Param(name), GP64()) }

// detect asks the processor for what the kernels use, and the operating system
// for whether it keeps the wide registers.
func detect() {
	TEXT("detect", NOSPLIT, "func() bool")
	Doc("detect says whether processor and operating system support AVX2 and FMA.")
	result, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	XORL(ECX, ECX)
	XORL(EAX, EAX)
	CPUID()
	CMPL(EAX, U8(7))
	JLT(LabelRef("no"))

	const fma, osxsave, avx = 1 << 12, 1 << 27, 1 << 28
	XORL(ECX, ECX)
	MOVL(U32(1), EAX)
	CPUID()
	ANDL(U32(fma|osxsave|avx), ECX)
	CMPL(ECX, U32(fma|osxsave|avx))
	JNE(LabelRef("no"))

	const xmmAndYmm = 6
	XORL(ECX, ECX)
	XGETBV()
	ANDL(U32(xmmAndYmm), EAX)
	CMPL(EAX, U32(xmmAndYmm))
	JNE(LabelRef("no"))

	const avx2 = 1 << 5
	XORL(ECX, ECX)
	MOVL(U32(7), EAX)
	CPUID()
	ANDL(U32(avx2), EBX)
	JEQ(LabelRef("no"))
	MOVB(U8(1), result.Addr)
	RET()
	Label("no")
	MOVB(U8(0), result.Addr)
	RET()
}

// sumFour adds up the lanes of four float accumulators: out is their sums in
// order. Every float kernel that scans ends like this, so that all round alike.
func sumFour(a [4]VecVirtual) VecVirtual {
	VHADDPS(a[1], a[0], a[0])
	VHADDPS(a[3], a[2], a[2])
	VHADDPS(a[2], a[0], a[0])
	high := XMM()
	VEXTRACTF128(U8(1), a[0], high)
	VADDPS(high, a[0].AsX(), high)
	return high
}

// sumFourInt is sumFour for lanes of int32.
func sumFourInt(a [4]VecVirtual) VecVirtual {
	VPHADDD(a[1], a[0], a[0])
	VPHADDD(a[3], a[2], a[2])
	VPHADDD(a[2], a[0], a[0])
	high := XMM()
	VEXTRACTI128(U8(1), a[0], high)
	VPADDD(high, a[0].AsX(), high)
	return high
}

// zeros gives n registers of zero.
func zeros(n int) []VecVirtual {
	out := make([]VecVirtual, n)
	for i := range out {
		out[i] = YMM()
		VXORPS(out[i], out[i], out[i])
	}
	return out
}

// scatter stores the four lanes of sums, one to each result slice, at element
// index+plus. The slices' addresses come from the frame: there are too few
// registers to keep them.
func scatter(sums VecVirtual, index Register, plus int) {
	for j, name := range []string{"o0", "o1", "o2", "o3"} {
		out := argument(name)
		VEXTRACTPS(U8(j), sums, Mem{Base: out, Index: index, Scale: 4, Disp: 4 * plus})
	}
}
