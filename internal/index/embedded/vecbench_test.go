//go:build unix

package embedded

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// corpus makes vectors in clusters of clusters, each from its number alone, so
// that a million of them need not be kept.
type corpus struct {
	dim   int
	subs  [][]float32 // centres
	cum   []float64   // how common they are
	noise [][]float32
}

const corpusDim = 384

func newCorpus() *corpus {
	const topics, subs, noises = 50, 2000, 4096
	rng := rand.New(rand.NewPCG(5, 6))
	c := &corpus{dim: corpusDim}
	rotation := make([][]float32, c.dim)
	for i := range rotation {
		rotation[i] = make([]float32, c.dim)
		for j := range rotation[i] {
			rotation[i][j] = float32(rng.NormFloat64())
		}
		vec.Normalize(rotation[i], rotation[i])
	}
	// A vector whose parts shrink like those of real embeddings, turned.
	draw := func() []float32 {
		x := make([]float32, c.dim)
		for j := range x {
			x[j] = float32(rng.NormFloat64() / math.Sqrt(float64(j+1)))
		}
		out := make([]float32, c.dim)
		for i := range out {
			out[i] = vec.Dot(rotation[i], x)
		}
		vec.Normalize(out, out)
		return out
	}
	var centres [][]float32
	for range topics {
		centres = append(centres, draw())
	}
	sum := 0.0
	for i := range subs {
		x := draw()
		for j := range x {
			x[j] = 0.6*x[j] + 0.8*centres[i%topics][j]
		}
		c.subs = append(c.subs, x)
		sum += math.Pow(float64(i+1), -0.7)
		c.cum = append(c.cum, sum)
	}
	for range noises {
		c.noise = append(c.noise, draw())
	}
	return c
}

func (c *corpus) vector(id int64, dst []float32) []float32 {
	rng := rand.New(rand.NewPCG(uint64(id), 9))
	sub, _ := slices.BinarySearch(c.cum, rng.Float64()*c.cum[len(c.cum)-1])
	a, b, d := c.noise[rng.IntN(len(c.noise))], c.noise[rng.IntN(len(c.noise))], c.noise[rng.IntN(len(c.noise))]
	x := float32(0.3 + 0.2*rng.Float64())
	dst = dst[:0]
	for j, v := range c.subs[sub] {
		dst = append(dst, v+x*(a[j]+b[j]+d[j]))
	}
	vec.Normalize(dst, dst)
	return dst
}

// share says whether a record belongs to the given part of all, and is nothing
// that the vectors know of.
func inShare(id int64, per1000 uint64) bool {
	h := uint64(id) * 0x9e3779b97f4a7c15
	return (h^h>>29)%1000 < per1000
}

const (
	tag100 = 20 // 10 % have it
	tag10  = 21
	tag1   = 22
)

// benchLife lets 1 % of the records expire at 100, and half of them be valid until
// 200.
func benchLife(id int64) (l index.Life) {
	if inShare(id, 10) {
		l.Expires = 100
	}
	if inShare(id, 500) {
		l.ValidTo = 200
	}
	return l
}

// benchMetadata gives every record a city, a rare one to 1 % and to 0.1 % of them.
func benchMetadata(id int64) []index.Attribute {
	city := fmt.Sprint("city ", id%50)
	switch {
	case inShare(3*id, 1):
		city = "Aalen"
	case inShare(3*id, 11):
		city = "Ulm"
	}
	return []index.Attribute{{Key: "city", Value: index.Value{Type: index.TypeString, String: city}}}
}

func cityIs(name string) []index.Condition {
	return []index.Condition{{Key: "city", Op: index.OpEq, Values: []index.Value{{Type: index.TypeString, String: name}}}}
}

// benchDocument is the record of a vector.
func benchDocument(id int64) *index.Document {
	d := &index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 10 + id%3, Life: benchLife(id), Metadata: benchMetadata(id)}
	for t, per1000 := range map[int64]uint64{tag100: 100, tag10: 10, tag1: 1} {
		if inShare(id, per1000) {
			d.Tags = append(d.Tags, t)
		}
	}
	slices.Sort(d.Tags)
	return d
}

// build puts n vectors and their records into an index.
func (c *corpus) build(tb testing.TB, n int, opts Options) *Index {
	tb.Helper()
	return c.buildIn(tb, tb.TempDir(), n, opts)
}

func (c *corpus) buildIn(tb testing.TB, dir string, n int, opts Options) *Index {
	tb.Helper()
	opts.Analyze, opts.Version, opts.StoreID = words, 1, "s"
	opts.OnError = func(err error) { tb.Error(err) }
	ix, err := Open(DirFS(dir), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ix.Close() })
	const batch = 500
	for from := 0; from < n; from += batch {
		var changes []index.Change
		for i := from; i < min(from+batch, n); i++ {
			id := int64(i + 1)
			d := benchDocument(id)
			changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(d)},
				index.Change{ID: id, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: d.Scope, Values: c.vector(id, nil)}})
		}
		ix.Stage(int64(from+1), changes)
		ix.Publish()
	}
	if err := ix.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := ix.mergeAll(); err != nil {
		tb.Fatal(err)
	}
	return ix
}

// truth gives the 10 nearest of each query among the records that pass.
func (c *corpus) truth(queries [][]float32, n int, pass func(id int64) bool) [][]int64 {
	tops := make([]vec.TopK, len(queries))
	for i := range tops {
		tops[i].Reset(10)
	}
	var v []float32
	for i := range n {
		if id := int64(i + 1); pass(id) {
			v = c.vector(id, v)
			for k, q := range queries {
				tops[k].Push(uint32(id), vec.Dot(q, v))
			}
		}
	}
	out := make([][]int64, len(queries))
	for i := range tops {
		for _, h := range tops[i].Sorted(nil) {
			out[i] = append(out[i], int64(h.Row))
		}
	}
	return out
}

// best scores hits again from the full vectors and gives the first 10.
func (c *corpus) best(q []float32, hits []index.VectorHit) []int64 {
	type scored struct {
		id    int64
		score float32
	}
	var all []scored
	var v []float32
	for _, h := range hits {
		v = c.vector(h.ID, v)
		all = append(all, scored{h.ID, vec.Dot(q, v)})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmpInt(a.score > b.score) })
	var out []int64
	for _, s := range all[:min(10, len(all))] {
		out = append(out, s.id)
	}
	return out
}

func overlap(got, want []int64) (n int) {
	for _, id := range got {
		if slices.Contains(want, id) {
			n++
		}
	}
	return n
}

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkNearest searches generated vectors: all of them exactly, through
// lists, and under filters. The metrics are the recall of the 10 nearest after
// the hits were scored again, and the median of the CPU time.
func BenchmarkNearest(b *testing.B) {
	c := newCorpus()
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ix := c.build(b, n, Options{})
			v, _ := ix.View(ix.Revision())
			defer v.Close()
			queries := make([][]float32, 100)
			for i := range queries {
				queries[i] = c.vector(int64(10_000_000+i), nil)
			}
			for _, bc := range []struct {
				name   string
				exact  bool
				limit  int
				filter index.Filter
			}{
				{"certain", true, 10, index.Filter{}},
				{"certain1%", true, 10, index.Filter{Where: cityIs("Ulm")}},
				{"certain0.1%", true, 10, index.Filter{Where: cityIs("Aalen")}},
				{"exact", true, 10, index.Filter{}},
				{"lists", false, 10, index.Filter{}},
				{"filter10%", false, 10, index.Filter{Tags: []int64{tag100}}},
				{"filter1%", false, 10, index.Filter{Tags: []int64{tag10}}},
				{"filter0.1%", false, 10, index.Filter{Tags: []int64{tag1}}},
				{"where1%", true, 25, index.Filter{Where: cityIs("Ulm")}},
				{"where0.1%", true, 25, index.Filter{Where: cityIs("Aalen")}},
				{"expired1%", true, 10, index.Filter{Now: 100}},
				{"expired1%lists", false, 10, index.Filter{Now: 100}},
				{"ended50%", true, 10, index.Filter{HasValid: true, ValidAt: 200}},
				{"ended50%lists", false, 10, index.Filter{HasValid: true, ValidAt: 200}},
			} {
				b.Run(bc.name, func(b *testing.B) {
					f := bc.filter
					f.Namespace, f.Kinds, f.Scopes = 1, []index.Kind{1}, []int64{10, 11, 12}
					certain := strings.HasPrefix(bc.name, "certain")
					want := c.truth(queries, n, func(id int64) bool { return modelAccepts(&f, benchDocument(id)) })
					found := 0
					for i, q := range queries {
						res, err := v.Nearest(index.VectorQuery{Space: 1, Values: q, Limit: bc.limit, Want: 10, Exact: bc.exact, Certain: certain}, f)
						if err != nil {
							b.Fatal(err)
						}
						found += overlap(c.best(q, res.Hits), want[i])
					}
					times := make([]time.Duration, 0, 1000)
					i := 0
					for b.Loop() {
						start := cpuTime()
						if _, err := v.Nearest(index.VectorQuery{Space: 1, Values: queries[i%len(queries)], Limit: bc.limit, Want: 10, Exact: bc.exact, Certain: certain}, f); err != nil {
							b.Fatal(err)
						}
						if len(times) < cap(times) {
							times = append(times, cpuTime()-start)
						}
						i++
					}
					slices.Sort(times)
					b.ReportMetric(float64(found)/float64(10*len(queries)), "recall@10")
					b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-cpu-µs")
				})
			}
		})
	}
}

// BenchmarkBuildVectors measures staging, writing and merging; the metric is CPU
// seconds of all goroutines, the making of the vectors taken off.
func BenchmarkBuildVectors(b *testing.B) {
	c := newCorpus()
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			start := cpuTime()
			var v []float32
			for i := range n {
				v = c.vector(int64(i+1), v)
			}
			made := cpuTime() - start
			for b.Loop() {
				start := cpuTime()
				ix := c.build(b, n, Options{})
				b.ReportMetric((cpuTime() - start - made).Seconds(), "cpu-s")
				b.ReportMetric(float64(ix.Stats().Segments), "segments")
				ix.Close()
			}
		})
	}
}

// BenchmarkOpenVectors opens an index of 100,000 records with vectors and asks
// once; the metric is the CPU time of the opening alone.
func BenchmarkOpenVectors(b *testing.B) {
	c := newCorpus()
	dir := b.TempDir()
	if err := c.buildIn(b, dir, 100_000, Options{}).Close(); err != nil {
		b.Fatal(err)
	}
	q := index.VectorQuery{Space: 1, Values: c.vector(10_000_000, nil), Limit: 50}
	var opening time.Duration
	for b.Loop() {
		start := cpuTime()
		ix, err := Open(DirFS(dir), Options{Analyze: words, Version: 1, StoreID: "s"})
		if err != nil {
			b.Fatal(err)
		}
		opening += cpuTime() - start
		v, _ := ix.View(ix.Revision())
		if _, err := v.Nearest(q, index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10, 11, 12}}); err != nil {
			b.Fatal(err)
		}
		v.Close()
		if err := ix.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(opening.Microseconds())/float64(b.N), "open-cpu-µs")
}

// BenchmarkMissing looks for the one record of 100,000 that has no vector, which
// is the oldest, and for none.
func BenchmarkMissing(b *testing.B) {
	ix := newCorpus().build(b, 100_000, Options{})
	v, _ := ix.View(ix.Revision())
	rev := v.Revision()
	v.Close()
	for _, missing := range []int{0, 1} {
		if missing > 0 {
			ix.Stage(rev+1, []index.Change{{ID: 1, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: 10}}})
			ix.Publish()
		}
		b.Run(fmt.Sprint(missing), func(b *testing.B) {
			v, _ := ix.View(ix.Revision())
			defer v.Close()
			for b.Loop() {
				if got := v.Missing(1, 1, 1, 10, nil); len(got) != missing {
					b.Fatalf("%v", got)
				}
			}
		})
	}
}
