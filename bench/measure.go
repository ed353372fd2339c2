package bench

import (
	"math"
	"runtime/metrics"
	"slices"
	"time"
)

// Latency summarises how long an operation took, in microseconds.
type Latency struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50_us"`
	P95     float64 `json:"p95_us"`
	P99     float64 `json:"p99_us"`
	Max     float64 `json:"max_us"`
}

// newLatency summarises samples, which it sorts.
func newLatency(samples []time.Duration) Latency {
	slices.Sort(samples)
	return Latency{
		Samples: len(samples),
		P50:     microseconds(percentile(samples, 0.50)),
		P95:     microseconds(percentile(samples, 0.95)),
		P99:     microseconds(percentile(samples, 0.99)),
		Max:     microseconds(percentile(samples, 1)),
	}
}

// percentile gives the smallest sample that is not exceeded by at least share
// p of them (nearest rank). The samples are in ascending order.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// meter sums what stretches of work cost: wall time, processor time of the
// whole process, and bytes allocated.
type meter struct {
	wall, cpu time.Duration
	allocated uint64
}

// measure runs f and adds what it cost.
func (m *meter) measure(f func() error) error {
	alloc, cpu, begin := allocatedBytes(), processCPU(), time.Now()
	err := f()
	m.wall += time.Since(begin)
	m.cpu += processCPU() - cpu
	m.allocated += allocatedBytes() - alloc
	return err
}

// throughput says what n pieces of work cost.
func (m *meter) throughput(n int) *Throughput {
	return &Throughput{
		Records:      n,
		WallSeconds:  m.wall.Seconds(),
		CPUSeconds:   m.cpu.Seconds(),
		PerSecond:    ratio(float64(n), m.wall.Seconds()),
		PerCPUSecond: ratio(float64(n), m.cpu.Seconds()),
		AllocBytes:   ratio(float64(m.allocated), float64(n)),
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// allocatedBytes is what the process has allocated on the heap so far.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
