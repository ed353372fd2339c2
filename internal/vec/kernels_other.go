//go:build !amd64 || purego

package vec

const simd = false

func dot(a, b []float32) float32 { return dotGo(a, b) }

func dotInt8(a, b []int8) int32 { return dotInt8Go(a, b) }

func scanFloat32(q, rows []float32, stride int, out []float32) { scanFloat32Go(q, rows, stride, out) }

func scanInt8(q, rows []int8, stride int, out []int32) { scanInt8Go(q, rows, stride, out) }

func scanFloat32x4(qs *[4][]float32, rows []float32, stride int, outs *[4][]float32) {
	scanFloat32x4Go(qs, rows, stride, outs)
}

func scanInt8x4(qs *[4][]int8, rows []int8, stride int, outs *[4][]int32) {
	scanInt8x4Go(qs, rows, stride, outs)
}

func gatherInt8(q, rows []int8, stride int, ids []uint32, out []int32) {
	gatherInt8Go(q, rows, stride, ids, out)
}

func reachInt8(sums []int32, scales []float32, qscale, least float32, from int) int {
	return reachInt8Go(sums, scales, qscale, least, from)
}

func reachFloat32(scores []float32, least float32, from int) int {
	return reachFloat32Go(scores, least, from)
}
