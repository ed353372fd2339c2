package vec

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Lists gives how many lists an inverted file over n rows gets: about twice the
// square root, at least 1.
func Lists(n int) int {
	return max(1, int(2*math.Sqrt(float64(max(n, 0)))+0.5))
}

// KMeans clusters n points of unit length, dim elements each, which follow each
// other in points, by the angle between them, and gives min(k, n) centroids of
// unit length, which follow each other. It starts from points drawn with seed
// and improves them at most the given number of times, fewer if nothing moves;
// a centroid that no point is nearest to starts anew at the point that fits its
// own centroid worst. The result depends on the arguments alone, for the same
// kernels (see HasSIMD). stop, unless nil, is asked before every 64th
// point; once it says true, KMeans gives up and gives nil.
func KMeans(points []float32, n, dim, k, iterations int, seed uint64, stop func() bool) []float32 {
	checkScan(len(points), dim, dim, n)
	k = min(k, n)
	if k <= 0 || dim == 0 {
		return nil
	}
	points = points[:n*dim]
	centroids := make([]float32, 0, k*dim)
	for _, i := range draw(n, k, seed) {
		centroids = append(centroids, points[i*dim:(i+1)*dim]...)
	}
	c := clustering{
		points: points, n: n, dim: dim, k: k,
		centroids: centroids,
		lists:     make([]uint32, n), sims: make([]float32, n),
		sums: make([]float32, k*dim), sizes: make([]int, k),
	}
	before := make([]uint32, n)
	for round := range iterations {
		if !c.assign(stop) {
			return nil
		}
		if round > 0 && slices.Equal(before, c.lists) {
			break
		}
		copy(before, c.lists)
		c.move()
	}
	return c.centroids
}

// draw gives k different numbers below n, in ascending order.
func draw(n, k int, seed uint64) []int {
	rng := rand.New(rand.NewPCG(seed, 0x6c6f6369))
	out := make([]int, 0, k)
	// Each number is taken with the chance that makes all choices equal.
	for i := 0; len(out) < k; i++ {
		if rng.IntN(n-i) < k-len(out) {
			out = append(out, i)
		}
	}
	return out
}

// clustering is the state of one KMeans.
type clustering struct {
	points    []float32
	n, dim, k int
	centroids []float32
	lists     []uint32  // the nearest centroid of each point
	sims      []float32 // how near it is
	sums      []float32 // per centroid, the sum of its points
	sizes     []int     // per centroid, how many there are
}

// assign finds each point's centroid; false says that it was stopped.
func (c *clustering) assign(stop func() bool) bool {
	const block = 64
	for i := 0; i < c.n; i += block {
		if stop != nil && stop() {
			return false
		}
		end := min(i+block, c.n)
		Assign(c.points[i*c.dim:], c.dim, c.dim, c.centroids, c.lists[i:end], c.sims[i:end])
	}
	return true
}

// move puts each centroid in the middle of its points.
func (c *clustering) move() {
	clear(c.sums)
	clear(c.sizes)
	for i, list := range c.lists {
		sum := c.sums[int(list)*c.dim:][:c.dim]
		for j, x := range c.points[i*c.dim:][:c.dim] {
			sum[j] += x
		}
		c.sizes[list]++
	}
	var empty []int
	for j, size := range c.sizes {
		if size == 0 {
			empty = append(empty, j)
			continue
		}
		row := c.centroids[j*c.dim:][:c.dim]
		// Points that cancel out have no middle; the centroid then stays.
		Normalize(row, c.sums[j*c.dim:][:c.dim])
	}
	if len(empty) == 0 {
		return
	}
	var worst TopK
	worst.Reset(len(empty))
	for i, sim := range c.sims {
		worst.Push(uint32(i), -sim)
	}
	for e, h := range worst.Sorted(nil) {
		copy(c.centroids[empty[e]*c.dim:][:c.dim], c.points[int(h.Row)*c.dim:])
	}
}
