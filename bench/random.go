package bench

import (
	"math"
	"sort"
)

// random is a small generator with a fixed algorithm (splitmix64). The corpus
// depends on it, so it must not change when a library does.
type random struct{ state uint64 }

// newRandom derives an independent stream from a seed and a number.
func newRandom(seed, stream uint64) *random {
	r := &random{seed}
	r.state = r.next() ^ (stream+1)*0xD1B54A32D192ED03
	r.next()
	return r
}

func (r *random) next() uint64 {
	r.state += 0x9E3779B97F4A7C15
	z := r.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// float gives a number in [0, 1).
func (r *random) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// below gives a number in [0, n). The bias is below 2^-40 for the n in use.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// between gives a number in [low, high].
func (r *random) between(low, high int) int { return low + r.below(high-low+1) }

// normal gives a number of the standard normal distribution, nearly: the sum
// of twelve uniform ones, which needs no functions that differ by platform.
func (r *random) normal() float64 {
	sum := -6.0
	for range 12 {
		sum += r.float()
	}
	return sum
}

// logNormal gives a number whose logarithm is normal around that of median.
func (r *random) logNormal(median, sigma float64) float64 {
	return median * math.Exp(sigma*r.normal())
}

// zipf draws ranks from 0 on, rank r with a probability proportional to
// 1 / (r + 1 + shift)^s.
type zipf struct{ cumulative []float64 }

func newZipf(n int, s, shift float64) *zipf {
	z := &zipf{make([]float64, n)}
	sum := 0.0
	for r := range n {
		sum += math.Pow(float64(r+1)+shift, -s)
		z.cumulative[r] = sum
	}
	for r := range n {
		z.cumulative[r] /= sum
	}
	return z
}

func (z *zipf) draw(r *random) int {
	return min(sort.SearchFloat64s(z.cumulative, r.float()), len(z.cumulative)-1)
}
