//go:build amd64 && !purego

package vec

//go:generate go -C gen run . -out ../kernels_amd64.s -stubs ../stubs_amd64.go -pkg vec

// simd says whether the assembly is used; it is computed once.
var simd = detect()

// window is the shortest int8 vector that the assembly takes.
const window = 16

// stretch is how many elements one call of the assembly may go over, which takes
// some 150 microseconds at most: the runtime cannot stop a goroutine inside.
const stretch = 1 << 19

func dot(a, b []float32) float32 {
	if !simd {
		return dotGo(a, b)
	}
	return dotFloat32AVX2(&a[0], &b[0], len(a))
}

func dotInt8(a, b []int8) int32 {
	if !simd || len(a) < window {
		return dotInt8Go(a, b)
	}
	return dotInt8AVX2(&a[0], &b[0], len(a))
}

func scanFloat32(q, rows []float32, stride int, out []float32) {
	if !simd {
		scanFloat32Go(q, rows, stride, out)
		return
	}
	if len(out) < 4 {
		// A stride of zero makes four of one row.
		var four [4]float32
		for i := range out {
			scanFloat32AVX2(&q[0], len(q), &rows[i*stride], 0, 1, &four[0])
			out[i] = four[0]
		}
		return
	}
	each := max(1, stretch/(4*len(q)))
	fours := len(out) / 4
	for i := 0; i < fours; i += each {
		scanFloat32AVX2(&q[0], len(q), &rows[4*i*stride], stride, min(each, fours-i), &out[4*i])
	}
	if len(out)%4 != 0 { // the last four rows, some of them again
		i := len(out) - 4
		scanFloat32AVX2(&q[0], len(q), &rows[i*stride], stride, 1, &out[i])
	}
}

func scanInt8(q, rows []int8, stride int, out []int32) {
	if !simd || len(q) < window {
		scanInt8Go(q, rows, stride, out)
		return
	}
	each := max(1, stretch/(4*len(q)))
	fours := len(out) / 4
	for i := 0; i < fours; i += each {
		scanInt8AVX2(&q[0], len(q), &rows[4*i*stride], stride, min(each, fours-i), &out[4*i])
	}
	for i := 4 * fours; i < len(out); i++ {
		out[i] = dotInt8AVX2(&q[0], &rows[i*stride], len(q))
	}
}

func scanFloat32x4(qs *[4][]float32, rows []float32, stride int, outs *[4][]float32) {
	if !simd {
		scanFloat32x4Go(qs, rows, stride, outs)
		return
	}
	dim, n := len(qs[0]), len(outs[0])
	if n == 1 {
		var two [4][2]float32
		scanFloat32x4AVX2(&qs[0][0], &qs[1][0], &qs[2][0], &qs[3][0], dim, &rows[0], 0, 1,
			&two[0][0], &two[1][0], &two[2][0], &two[3][0])
		for j := range two {
			outs[j][0] = two[j][0]
		}
		return
	}
	each := max(1, stretch/(8*dim))
	for i := 0; i < n/2; i += each {
		scanFloat32x4AVX2(&qs[0][0], &qs[1][0], &qs[2][0], &qs[3][0], dim, &rows[2*i*stride], stride, min(each, n/2-i),
			&outs[0][2*i], &outs[1][2*i], &outs[2][2*i], &outs[3][2*i])
	}
	if n%2 != 0 {
		i := n - 2
		scanFloat32x4AVX2(&qs[0][0], &qs[1][0], &qs[2][0], &qs[3][0], dim, &rows[i*stride], stride, 1,
			&outs[0][i], &outs[1][i], &outs[2][i], &outs[3][i])
	}
}

func scanInt8x4(qs *[4][]int8, rows []int8, stride int, outs *[4][]int32) {
	dim, n := len(qs[0]), len(outs[0])
	if !simd || dim < window {
		scanInt8x4Go(qs, rows, stride, outs)
		return
	}
	each := max(1, stretch/(8*dim))
	for i := 0; i < n/2; i += each {
		scanInt8x4AVX2(&qs[0][0], &qs[1][0], &qs[2][0], &qs[3][0], dim, &rows[2*i*stride], stride, min(each, n/2-i),
			&outs[0][2*i], &outs[1][2*i], &outs[2][2*i], &outs[3][2*i])
	}
	if n%2 != 0 {
		for j, q := range qs {
			outs[j][n-1] = dotInt8AVX2(&q[0], &rows[(n-1)*stride], dim)
		}
	}
}

func gatherInt8(q, rows []int8, stride int, ids []uint32, out []int32) {
	if !simd || len(q) < window {
		gatherInt8Go(q, rows, stride, ids, out)
		return
	}
	each := max(1, stretch/(4*len(q))) // rows are far apart: a quarter as many
	for i := 0; i < len(ids); i += each {
		gatherInt8AVX2(&q[0], len(q), &rows[0], stride, &ids[i], min(each, len(ids)-i), &out[i])
	}
}

func reachInt8(sums []int32, scales []float32, qscale, least float32, from int) int {
	if eights := (len(sums) - from) / 8; simd && eights > 0 {
		i := reachInt8AVX2(&sums[from], &scales[from], qscale, least, eights)
		from += i
		if i < 8*eights {
			return from
		}
	}
	return reachInt8Go(sums, scales, qscale, least, from)
}

func reachFloat32(scores []float32, least float32, from int) int {
	if eights := (len(scores) - from) / 8; simd && eights > 0 {
		i := reachFloat32AVX2(&scores[from], least, eights)
		from += i
		if i < 8*eights {
			return from
		}
	}
	return reachFloat32Go(scores, least, from)
}
