package vec

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

const benchDim = 384

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

// BenchmarkDot times one product of 384 elements in cache.
func BenchmarkDot(b *testing.B) {
	x, y := make([]float32, benchDim), make([]float32, benchDim)
	fillFloat32(rand.New(rand.NewPCG(1, 1)), x)
	fillFloat32(rand.New(rand.NewPCG(2, 1)), y)
	for _, c := range []struct {
		name string
		dot  func(a, b []float32) float32
	}{{"plain", plainDot}, {"go", dotGo}, {"simd", Dot}} {
		b.Run(c.name, func(b *testing.B) {
			var sum float32
			for b.Loop() {
				sum += c.dot(x, y)
			}
			runtime.KeepAlive(sum)
		})
	}
}

// BenchmarkDotInt8 is BenchmarkDot for codes.
func BenchmarkDotInt8(b *testing.B) {
	x, y := make([]int8, benchDim), make([]int8, benchDim)
	fillInt8(rand.New(rand.NewPCG(1, 1)), x)
	fillInt8(rand.New(rand.NewPCG(2, 1)), y)
	for _, c := range []struct {
		name string
		dot  func(a, b []int8) int32
	}{{"plain", plainDotInt8}, {"go", dotInt8Go}, {"simd", DotInt8}} {
		b.Run(c.name, func(b *testing.B) {
			var sum int32
			for b.Loop() {
				sum += c.dot(x, y)
			}
			runtime.KeepAlive(sum)
		})
	}
}

// BenchmarkScanInCache times a row of 384 elements among 256 in cache.
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
	run := func(name string, products int, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*products), "ns/product")
		})
	}
	run("int8", n, func() { ScanInt8(qs[0], rows, benchDim, outs[0]) })
	run("int8/batch", 4*n, func() { ScanInt8Batch(qs, rows, benchDim, outs) })
	run("float32", n, func() { ScanFloat32(fqs[0], frows, benchDim, fouts[0]) })
	run("float32/batch", 4*n, func() { ScanFloat32Batch(fqs, frows, benchDim, fouts) })
}

// BenchmarkScan100k finds the ten best of 100,000 rows of 384 elements, next to
// how fast the memory gives the same bytes.
func BenchmarkScan100k(b *testing.B) {
	const n, block, k = 100_000, 256, 10
	rng := rand.New(rand.NewPCG(4, 1))
	frows := make([]float32, n*benchDim)
	fillFloat32(rng, frows)
	rows, scales := make([]int8, n*benchDim), make([]float32, n)
	QuantizeRows(rows, benchDim, scales, frows, benchDim)
	words := unsafe.Slice((*float32)(unsafe.Pointer(&rows[0])), n*benchDim/4)
	inf := float32(math.Inf(1))
	q, fq := rows[:benchDim], frows[:benchDim]
	sums, scores := make([]int32, block), make([]float32, block)
	var top TopK
	rate := func(b *testing.B, bytes int) {
		b.SetBytes(int64(bytes))
		b.ReportMetric(float64(bytes)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
	}
	// Reads the codes as words, none of which is infinite, and does little else.
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			for i := 0; i < len(words); i += 1 << 14 {
				reachFloat32(words[i:min(i+1<<14, len(words))], inf, 0)
			}
		}
		rate(b, 4*len(words))
	})
	b.Run("int8", func(b *testing.B) {
		for b.Loop() {
			top.Reset(k)
			for i := 0; i < n; i += block {
				out := sums[:min(block, n-i)]
				ScanInt8(q, rows[i*benchDim:], benchDim, out)
				top.PushInt8(out, scales[i:], 1, uint32(i))
			}
		}
		rate(b, n*(benchDim+4))
	})
	b.Run("float32", func(b *testing.B) {
		for b.Loop() {
			top.Reset(k)
			for i := 0; i < n; i += block {
				out := scores[:min(block, n-i)]
				ScanFloat32(fq, frows[i*benchDim:], benchDim, out)
				top.PushFloat32(out, uint32(i))
			}
		}
		rate(b, 4*n*benchDim)
	})
	qs, outs := [][]int8{q, rows[benchDim:][:benchDim], rows[2*benchDim:][:benchDim], rows[3*benchDim:][:benchDim]}, make([][]int32, 4)
	tops := make([]TopK, 4)
	for j := range outs {
		outs[j] = make([]int32, block)
	}
	b.Run("int8/batch", func(b *testing.B) {
		for b.Loop() {
			for j := range tops {
				tops[j].Reset(k)
			}
			for i := 0; i < n; i += block {
				for j := range outs {
					outs[j] = outs[j][:min(block, n-i)]
				}
				ScanInt8Batch(qs, rows[i*benchDim:], benchDim, outs)
				for j := range tops {
					tops[j].PushInt8(outs[j], scales[i:], 1, uint32(i))
				}
			}
			for j := range outs {
				outs[j] = outs[j][:block]
			}
		}
		rate(b, n*(benchDim+4))
	})
	ids, gathered := make([]uint32, n/10), make([]int32, n/10)
	for i := range ids {
		ids[i] = uint32(10*i + rng.IntN(10))
	}
	b.Run("int8/gather10k", func(b *testing.B) {
		for b.Loop() {
			GatherInt8(q, rows, benchDim, ids, gathered)
		}
		rate(b, len(ids)*benchDim)
	})
	b.Run("int8/one by one 10k", func(b *testing.B) {
		for b.Loop() {
			for i, id := range ids {
				gathered[i] = DotInt8(q, rows[int(id)*benchDim:][:benchDim])
			}
		}
		rate(b, len(ids)*benchDim)
	})
}

// BenchmarkTopK offers 100,000 scores in blocks.
func BenchmarkTopK(b *testing.B) {
	const n, block = 100_000, 256
	rng := rand.New(rand.NewPCG(5, 1))
	sums, scales := make([]int32, n), make([]float32, n)
	for i := range sums {
		sums[i], scales[i] = int32(rng.NormFloat64()*1e5), 1e-5
	}
	for name, k := range map[string]int{"10": 10, "100": 100, "1000": 1000} {
		b.Run(name, func(b *testing.B) {
			var top TopK
			for b.Loop() {
				top.Reset(k)
				for i := 0; i < n; i += block {
					top.PushInt8(sums[i:min(i+block, n)], scales[i:], 1, uint32(i))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/score")
		})
	}
}

// BenchmarkQuantize quantises one vector of 384 elements.
func BenchmarkQuantize(b *testing.B) {
	v, codes := make([]float32, benchDim), make([]int8, benchDim)
	fillFloat32(rand.New(rand.NewPCG(6, 1)), v)
	for b.Loop() {
		Quantize(codes, v)
	}
}

// BenchmarkKMeans clusters 20,000 points around 500 centres into 283 lists.
func BenchmarkKMeans(b *testing.B) {
	const n = 20_000
	points := clusters(rand.New(rand.NewPCG(7, 1)), n, benchDim, 500, 0.8)
	for b.Loop() {
		KMeans(points, n, benchDim, Lists(n), 6, 1, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
}

// BenchmarkAssign finds the nearest of 1,024 centroids.
func BenchmarkAssign(b *testing.B) {
	const n, k = 1024, 1024
	rng := rand.New(rand.NewPCG(8, 1))
	points := clusters(rng, n, benchDim, 100, 0.8)
	centroids := clusters(rng, k, benchDim, 100, 0.8)
	codes, ccodes := make([]int8, n*benchDim), make([]int8, k*benchDim)
	scales, cscales := make([]float32, n), make([]float32, k)
	QuantizeRows(codes, benchDim, scales, points, benchDim)
	QuantizeRows(ccodes, benchDim, cscales, centroids, benchDim)
	lists := make([]uint32, n)
	b.Run("float32", func(b *testing.B) {
		for b.Loop() {
			Assign(points, benchDim, benchDim, centroids, lists, nil)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
	})
	b.Run("int8", func(b *testing.B) {
		for b.Loop() {
			AssignInt8(codes, benchDim, benchDim, ccodes, cscales, lists)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
	})
}
