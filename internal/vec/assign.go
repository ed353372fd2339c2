package vec

import "math"

// tile is how many centroids are compared before the best is looked for: their
// scores stay in the first-level cache and on the stack.
const tile = 256

// Assign finds for each of len(lists) points, which lie stride apart in points,
// the centroid with the highest inner product, of equals the first, and writes
// its number to lists and the product to sims, which is as long or nil. The
// centroids follow each other, dim elements each; there is at least one. A
// point that compares with none (NaN) gets number 0 and -Inf.
func Assign(points []float32, stride, dim int, centroids []float32, lists []uint32, sims []float32) {
	checkScan(len(points), stride, dim, len(lists))
	k := countCentroids(len(centroids), dim)
	var (
		scores [4][tile]float32
		qs     [4][]float32
		outs   [4][]float32
		best   [4]float32
	)
	for i := 0; i < len(lists); i += 4 {
		group := min(4, len(lists)-i)
		for j := range group {
			qs[j] = points[(i+j)*stride:][:dim]
			lists[i+j] = 0
			best[j] = float32(math.Inf(-1))
		}
		for c := 0; c < k; c += tile {
			n := min(tile, k-c)
			for j := range group {
				outs[j] = scores[j][:n]
			}
			ScanFloat32Batch(qs[:group], centroids[c*dim:], dim, outs[:group])
			for j, out := range outs[:group] {
				for at := reachFloat32(out, best[j], 0); at < n; at = reachFloat32(out, best[j], at+1) {
					if out[at] > best[j] {
						lists[i+j], best[j] = uint32(c+at), out[at]
					}
				}
			}
		}
		if sims != nil {
			copy(sims[i:i+group], best[:group])
		}
	}
}

// AssignInt8 is Assign for codes: the points are rows of dim codes that lie
// stride apart, the centroids len(scales) such rows (see QuantizeRows), and a
// centroid's inner product counts by its scale. The points' own scales do not
// change which centroid is best.
func AssignInt8(codes []int8, stride, dim int, centroids []int8, scales []float32, lists []uint32) {
	checkScan(len(codes), stride, dim, len(lists))
	checkScan(len(centroids), stride, dim, len(scales))
	countCentroids(len(scales), 1)
	var (
		sums [4][tile]int32
		qs   [4][]int8
		outs [4][]int32
		best [4]float32
	)
	for i := 0; i < len(lists); i += 4 {
		group := min(4, len(lists)-i)
		for j := range group {
			qs[j] = codes[(i+j)*stride:][:dim]
			lists[i+j] = 0
			best[j] = float32(math.Inf(-1))
		}
		for c := 0; c < len(scales); c += tile {
			part := scales[c:min(c+tile, len(scales))]
			for j := range group {
				outs[j] = sums[j][:len(part)]
			}
			ScanInt8Batch(qs[:group], centroids[c*stride:], stride, outs[:group])
			for j, out := range outs[:group] {
				for at := reachInt8(out, part, 1, best[j], 0); at < len(out); at = reachInt8(out, part, 1, best[j], at+1) {
					if score := scoreInt8(out[at], part[at], 1); score > best[j] {
						lists[i+j], best[j] = uint32(c+at), score
					}
				}
			}
		}
	}
}

// countCentroids gives how many there are and panics if that is none.
func countCentroids(have, dim int) int {
	if dim == 0 || have < dim {
		panic("vec: no centroid to assign to")
	}
	return have / dim
}
