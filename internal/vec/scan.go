package vec

// ScanInt8 writes the inner product of q and row i to out[i], for len(out) rows
// that lie stride apart in rows. stride is at least len(q); rows holds at least
// (len(out)-1)*stride+len(q) codes. Exact for up to 65,536 elements.
func ScanInt8(q, rows []int8, stride int, out []int32) {
	checkScan(len(rows), stride, len(q), len(out))
	if len(q) == 0 {
		clear(out)
	} else if len(out) > 0 {
		scanInt8(q, rows, stride, out)
	}
}

// ScanFloat32 writes the inner product of q and row i to out[i]; shapes are
// those of ScanInt8.
func ScanFloat32(q, rows []float32, stride int, out []float32) {
	checkScan(len(rows), stride, len(q), len(out))
	if len(q) == 0 {
		clear(out)
	} else if len(out) > 0 {
		scanFloat32(q, rows, stride, out)
	}
}

// ScanInt8Batch does for each of several queries, of the same length, what
// ScanInt8 does: outs[j] is the result of qs[j]. It reads the rows once for four
// queries. All outs have the same length.
func ScanInt8Batch(qs [][]int8, rows []int8, stride int, outs [][]int32) {
	checkBatch(qs, outs)
	for ; len(qs) >= 4; qs, outs = qs[4:], outs[4:] {
		checkScan(len(rows), stride, len(qs[0]), len(outs[0]))
		if len(qs[0]) == 0 || len(outs[0]) == 0 {
			break
		}
		scanInt8x4((*[4][]int8)(qs), rows, stride, (*[4][]int32)(outs))
	}
	for j, q := range qs {
		ScanInt8(q, rows, stride, outs[j])
	}
}

// ScanFloat32Batch does for each of several queries, of the same length, what
// ScanFloat32 does; shapes are those of ScanInt8Batch.
func ScanFloat32Batch(qs [][]float32, rows []float32, stride int, outs [][]float32) {
	checkBatch(qs, outs)
	for ; len(qs) >= 4; qs, outs = qs[4:], outs[4:] {
		checkScan(len(rows), stride, len(qs[0]), len(outs[0]))
		if len(qs[0]) == 0 || len(outs[0]) == 0 {
			break
		}
		scanFloat32x4((*[4][]float32)(qs), rows, stride, (*[4][]float32)(outs))
	}
	for j, q := range qs {
		ScanFloat32(q, rows, stride, outs[j])
	}
}

// GatherInt8 writes the inner product of q and row ids[i] to out[i], for ids in
// any order; rows lie stride apart in rows. out is as long as ids. It asks the
// memory for rows ahead of their turn, which a loop over DotInt8 does not.
func GatherInt8(q, rows []int8, stride int, ids []uint32, out []int32) {
	if len(ids) != len(out) {
		panic("vec: GatherInt8 with ids and results of different lengths")
	}
	if len(ids) == 0 {
		return
	}
	var last uint32
	for _, id := range ids {
		last = max(last, id)
	}
	checkScan(len(rows), stride, len(q), int(last)+1)
	if len(q) == 0 {
		clear(out)
		return
	}
	gatherInt8(q, rows, stride, ids, out)
}

// checkScan panics unless have elements hold n rows of dim, stride apart.
// It divides, since a product could overflow and pass.
func checkScan(have, stride, dim, n int) {
	if stride < dim {
		panic("vec: a stride below the dimension")
	}
	if n <= 0 || dim == 0 {
		return
	}
	if have < dim || (have-dim)/stride < n-1 {
		panic("vec: fewer rows than results")
	}
}

// checkBatch panics unless there is one result per query and queries and
// results have one length each.
func checkBatch[Q, R any](qs [][]Q, outs [][]R) {
	if len(qs) != len(outs) {
		panic("vec: a batch with queries and results of different number")
	}
	for j := range qs {
		if len(qs[j]) != len(qs[0]) || len(outs[j]) != len(outs[0]) {
			panic("vec: a batch of different lengths")
		}
	}
}
