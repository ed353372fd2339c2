package vec

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"
)

const benchDim = 384

// timed runs f, which does something per times and reads so many bytes, and
// reports the median run in CPU time. Neighbours on the machine disturb some
// runs, and a virtual machine counts some too short: the mean and the best are
// both worth less.
func timed(b *testing.B, per, bytes int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var runs []int64
	for b.Loop() {
		start := cpuTime(b)
		f()
		runs = append(runs, cpuTime(b)-start)
	}
	slices.Sort(runs)
	median := float64(runs[len(runs)/2])
	b.ReportMetric(median/float64(per), "cpu-ns")
	if bytes > 0 {
		b.ReportMetric(float64(bytes)/median, "GB/s")
	}
}

// plainDot is the loop that everybody writes first, and the measure.
func plainDot(a, b []float32) float32 {
	var sum float32
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func plainDotInt8(a, b []int8) int32 {
	var sum int32
	for i := range a {
		sum += int32(a[i]) * int32(b[i])
	}
	return sum
}

// BenchmarkDot times one product of 384 elements in cache, one call each.
func BenchmarkDot(b *testing.B) {
	const times = 500
	x, y := make([]float32, benchDim), make([]float32, benchDim)
	fillFloat32(rand.New(rand.NewPCG(1, 1)), x)
	fillFloat32(rand.New(rand.NewPCG(2, 1)), y)
	for _, c := range []struct {
		name string
		dot  func(a, b []float32) float32
	}{{"plain", plainDot}, {"go", dotGo}, {"simd", Dot}} {
		b.Run(c.name, func(b *testing.B) {
			var sum float32
			timed(b, times, 0, func() {
				for range times {
					sum += c.dot(x, y)
				}
			})
			runtime.KeepAlive(sum)
		})
	}
}

// BenchmarkDotInt8 is BenchmarkDot for codes.
func BenchmarkDotInt8(b *testing.B) {
	const times = 500
	x, y := make([]int8, benchDim), make([]int8, benchDim)
	fillInt8(rand.New(rand.NewPCG(1, 1)), x)
	fillInt8(rand.New(rand.NewPCG(2, 1)), y)
	for _, c := range []struct {
		name string
		dot  func(a, b []int8) int32
	}{{"plain", plainDotInt8}, {"go", dotInt8Go}, {"simd", DotInt8}} {
		b.Run(c.name, func(b *testing.B) {
			var sum int32
			timed(b, times, 0, func() {
				for range times {
					sum += c.dot(x, y)
				}
			})
			runtime.KeepAlive(sum)
		})
	}
}

// BenchmarkScanInCache times a product of 384 elements in a scan of 256 rows.
func BenchmarkScanInCache(b *testing.B) {
	const n = 256
	rng := rand.New(rand.NewPCG(3, 1))
	rows, frows := make([]int8, n*benchDim), make([]float32, n*benchDim)
	fillInt8(rng, rows)
	fillFloat32(rng, frows)
	qs, fqs := make([][]int8, 4), make([][]float32, 4)
	outs, fouts := make([][]int32, 4), make([][]float32, 4)
	for j := range qs {
		qs[j], fqs[j] = rows[j*benchDim:][:benchDim], frows[j*benchDim:][:benchDim]
		outs[j], fouts[j] = make([]int32, n), make([]float32, n)
	}
	for _, c := range []struct {
		name     string
		products int
		f        func()
	}{
		{"int8/go", n, func() { scanInt8Go(qs[0], rows, benchDim, outs[0]) }},
		{"int8/simd", n, func() { ScanInt8(qs[0], rows, benchDim, outs[0]) }},
		{"int8/simd/batch", 4 * n, func() { ScanInt8Batch(qs, rows, benchDim, outs) }},
		{"float32/go", n, func() { scanFloat32Go(fqs[0], frows, benchDim, fouts[0]) }},
		{"float32/simd", n, func() { ScanFloat32(fqs[0], frows, benchDim, fouts[0]) }},
		{"float32/simd/batch", 4 * n, func() { ScanFloat32Batch(fqs, frows, benchDim, fouts) }},
	} {
		b.Run(c.name, func(b *testing.B) { timed(b, c.products, 0, c.f) })
	}
}

// BenchmarkScan100k finds the ten best of 100,000 rows of 384 elements, next to
// how fast the memory gives the very same bytes.
func BenchmarkScan100k(b *testing.B) {
	const n, block, k = 100_000, 256, 10
	rng := rand.New(rand.NewPCG(4, 1))
	frows := make([]float32, n*benchDim)
	fillFloat32(rng, frows)
	rows, scales := make([]int8, n*benchDim), make([]float32, n)
	QuantizeRows(rows, benchDim, scales, frows, benchDim)

	// Codes read as words: none is infinite, so this reads all and does no more.
	words := unsafe.Slice((*float32)(unsafe.Pointer(&rows[0])), n*benchDim/4)
	inf := float32(math.Inf(1))
	read := func(words []float32) func() {
		return func() {
			for i := 0; i < len(words); i += 1 << 14 {
				reachFloat32(words[i:min(i+1<<14, len(words))], inf, 0)
			}
		}
	}
	qs, fqs := make([][]int8, 4), make([][]float32, 4)
	sums, scores := make([][]int32, 4), make([][]float32, 4)
	for j := range qs {
		qs[j], fqs[j] = rows[j*benchDim:][:benchDim], frows[j*benchDim:][:benchDim]
	}
	var blocks [4][block]int32
	var fblocks [4][block]float32
	tops := make([]TopK, 4)
	scan := func(queries int) func() {
		return func() {
			for j := range queries {
				tops[j].Reset(k)
			}
			for i := 0; i < n; i += block {
				for j := range queries {
					sums[j] = blocks[j][:min(block, n-i)]
				}
				ScanInt8Batch(qs[:queries], rows[i*benchDim:], benchDim, sums[:queries])
				for j := range queries {
					tops[j].PushInt8(sums[j], scales[i:], 1, uint32(i))
				}
			}
		}
	}
	fscan := func(queries int) func() {
		return func() {
			for j := range queries {
				tops[j].Reset(k)
			}
			for i := 0; i < n; i += block {
				for j := range queries {
					scores[j] = fblocks[j][:min(block, n-i)]
				}
				ScanFloat32Batch(fqs[:queries], frows[i*benchDim:], benchDim, scores[:queries])
				for j := range queries {
					tops[j].PushFloat32(scores[j], uint32(i))
				}
			}
		}
	}
	ids, gathered := make([]uint32, n/10), make([]int32, n/10)
	for i := range ids {
		ids[i] = uint32(10*i + rng.IntN(10))
	}
	const bytes = n * benchDim
	for _, c := range []struct {
		name  string
		bytes int
		f     func()
	}{
		{"int8/memory", bytes, read(words)},
		{"int8/one", bytes, scan(1)},
		{"int8/four", bytes, scan(4)},
		{"float32/memory", 4 * bytes, read(frows)},
		{"float32/one", 4 * bytes, fscan(1)},
		{"float32/four", 4 * bytes, fscan(4)},
		{"int8/10k by id", bytes / 10, func() { GatherInt8(qs[0], rows, benchDim, ids, gathered) }},
		{"int8/10k by id, call by call", bytes / 10, func() {
			for i, id := range ids {
				gathered[i] = DotInt8(qs[0], rows[int(id)*benchDim:][:benchDim])
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) { timed(b, 1, c.bytes, c.f) })
	}
}

// BenchmarkTopK offers 100,000 scores in blocks; the time is that of one score.
func BenchmarkTopK(b *testing.B) {
	const n, block = 100_000, 256
	rng := rand.New(rand.NewPCG(5, 1))
	sums, scales := make([]int32, n), make([]float32, n)
	for i := range sums {
		sums[i], scales[i] = int32(rng.NormFloat64()*1e5), 1e-5
	}
	for _, c := range []struct {
		name string
		k    int
	}{{"10", 10}, {"100", 100}, {"1000", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			var top TopK
			timed(b, n, 0, func() {
				top.Reset(c.k)
				for i := 0; i < n; i += block {
					top.PushInt8(sums[i:min(i+block, n)], scales[i:], 1, uint32(i))
				}
			})
		})
	}
}

// BenchmarkQuantize quantises rows of 384 elements; the time is that of one.
func BenchmarkQuantize(b *testing.B) {
	const n = 100
	v, codes, scales := make([]float32, n*benchDim), make([]int8, n*benchDim), make([]float32, n)
	fillFloat32(rand.New(rand.NewPCG(6, 1)), v)
	timed(b, n, 0, func() { QuantizeRows(codes, benchDim, scales, v, benchDim) })
}

// BenchmarkKMeans clusters 10,000 points around 500 centres into 200 lists, in
// six rounds; the time is that of one product.
func BenchmarkKMeans(b *testing.B) {
	const n, rounds = 10_000, 6
	points := clusters(rand.New(rand.NewPCG(7, 1)), n, benchDim, 500, 0.8)
	timed(b, n*Lists(n)*rounds, 0, func() { KMeans(points, n, benchDim, Lists(n), rounds, 1, nil) })
}

// BenchmarkAssign finds the nearest of 1,024 centroids; the time is that of one
// product.
func BenchmarkAssign(b *testing.B) {
	const n, k = 512, 1024
	rng := rand.New(rand.NewPCG(8, 1))
	points := clusters(rng, n, benchDim, 100, 0.8)
	centroids := clusters(rng, k, benchDim, 100, 0.8)
	codes, ccodes := make([]int8, n*benchDim), make([]int8, k*benchDim)
	scales, cscales := make([]float32, n), make([]float32, k)
	QuantizeRows(codes, benchDim, scales, points, benchDim)
	QuantizeRows(ccodes, benchDim, cscales, centroids, benchDim)
	lists := make([]uint32, n)
	b.Run("float32", func(b *testing.B) {
		timed(b, n*k, 0, func() { Assign(points, benchDim, benchDim, centroids, lists, nil) })
	})
	b.Run("int8", func(b *testing.B) {
		timed(b, n*k, 0, func() { AssignInt8(codes, benchDim, benchDim, ccodes, cscales, lists) })
	})
}
