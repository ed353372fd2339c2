package vec

// The kernels in plain Go. They are what other processors run, and what the
// tests hold the assembly against.

func dotGo(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return (s0 + s2) + (s1 + s3)
}

func dotInt8Go(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += int32(a[0]) * int32(b[0])
		s1 += int32(a[1]) * int32(b[1])
		s2 += int32(a[2]) * int32(b[2])
		s3 += int32(a[3]) * int32(b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += int32(x) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}

func scanFloat32Go(q, rows []float32, stride int, out []float32) {
	for i := range out {
		out[i] = dotGo(q, rows[i*stride:][:len(q)])
	}
}

func scanInt8Go(q, rows []int8, stride int, out []int32) {
	for i := range out {
		out[i] = dotInt8Go(q, rows[i*stride:][:len(q)])
	}
}

func scanFloat32x4Go(qs *[4][]float32, rows []float32, stride int, outs *[4][]float32) {
	for i := range outs[0] {
		row := rows[i*stride:]
		for j, q := range qs {
			outs[j][i] = dotGo(q, row[:len(q)])
		}
	}
}

func scanInt8x4Go(qs *[4][]int8, rows []int8, stride int, outs *[4][]int32) {
	for i := range outs[0] {
		row := rows[i*stride:]
		for j, q := range qs {
			outs[j][i] = dotInt8Go(q, row[:len(q)])
		}
	}
}

func gatherInt8Go(q, rows []int8, stride int, ids []uint32, out []int32) {
	for i, id := range ids {
		out[i] = dotInt8Go(q, rows[int(id)*stride:][:len(q)])
	}
}

// reachInt8Go gives the first i at or after from whose score, as scoreInt8
// computes it, is at least least, or len(sums). NaN is never reached.
func reachInt8Go(sums []int32, scales []float32, qscale, least float32, from int) int {
	for i := from; i < len(sums); i++ {
		if scoreInt8(sums[i], scales[i], qscale) >= least {
			return i
		}
	}
	return len(sums)
}

// reachFloat32Go gives the first i at or after from with scores[i] >= least, or
// len(scores).
func reachFloat32Go(scores []float32, least float32, from int) int {
	for i := from; i < len(scores); i++ {
		if scores[i] >= least {
			return i
		}
	}
	return len(scores)
}
