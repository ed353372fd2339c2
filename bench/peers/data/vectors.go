package data

import (
	"bufio"
	"math"
	"math/rand/v2"
	"runtime"
	"sort"

	"github.com/loci-memory/loci/internal/vec"
)

// Vectors imitate those of a model of sentences where search in them is hard: two
// thousand themes of unequal size that belong to fifty topics, spread in all
// directions but not evenly, and a record's own part nearly as large as what it
// shares with its theme.
const (
	dimension = 384
	topics    = 50
	perTopic  = 40
	themes    = topics * perTopic
	skew      = 0.7 // of the themes' sizes: Zipf's exponent
	themePart = 0.7 // how far a theme lies from its topic's centre
	ownPart   = 0.6 // how far a record lies from its theme's
	decay     = 0.5 // the deviation along direction j is j^-decay
)

// Streams of random numbers: all vectors of records are made before any query's
// is, whatever the number of records.
const (
	shared   = 1 << 60
	recorded = 2 << 60
	asked    = 3 << 60
)

type generator struct {
	seed     uint64
	spectrum [dimension]float64
	centres  [][dimension]float64 // of themes
	bounds   []float64            // of themes: sums of their shares
	rotation []float32            // rows are directions
}

func newGenerator(seed uint64) *generator {
	g := &generator{seed: seed}
	r := rand.New(rand.NewPCG(seed, shared))
	for j := range g.spectrum {
		g.spectrum[j] = math.Pow(float64(j+1), -decay)
	}
	var centre [dimension]float64
	for i := range themes {
		if i%perTopic == 0 {
			for j := range centre {
				centre[j] = r.NormFloat64() * g.spectrum[j]
			}
		}
		theme := centre
		for j := range theme {
			theme[j] += themePart * r.NormFloat64() * g.spectrum[j]
		}
		g.centres = append(g.centres, theme)
	}
	shares := make([]float64, themes)
	for i, place := range r.Perm(themes) {
		shares[place] = math.Pow(float64(i+1), -skew)
	}
	sum := 0.0
	for _, x := range shares {
		sum += x
		g.bounds = append(g.bounds, sum)
	}
	for i := range g.bounds {
		g.bounds[i] /= sum
	}
	g.rotation = rotation(r)
	return g
}

// rotation gives a random orthogonal matrix: random rows, made orthogonal one after
// the other.
func rotation(r *rand.Rand) []float32 {
	var rows [][dimension]float64
	for len(rows) < dimension {
		var v [dimension]float64
		for j := range v {
			v[j] = r.NormFloat64()
		}
		// Twice, because once leaves what rounding adds.
		for range 2 {
			for i := range rows {
				dot := 0.0
				for j, x := range rows[i] {
					dot += x * v[j]
				}
				for j, x := range rows[i] {
					v[j] -= dot * x
				}
			}
		}
		norm := 0.0
		for _, x := range v {
			norm += x * x
		}
		norm = math.Sqrt(norm)
		for j := range v {
			v[j] /= norm
		}
		rows = append(rows, v)
	}
	out := make([]float32, 0, dimension*dimension)
	for _, row := range rows {
		for _, x := range row {
			out = append(out, float32(x))
		}
	}
	return out
}

// row makes vector i of a stream, in scratch, and writes it to out.
func (g *generator) row(stream uint64, i int, scratch, out []float32) {
	r := rand.New(rand.NewPCG(g.seed, stream^uint64(i+1)*0x9E3779B97F4A7C15))
	theme := &g.centres[min(sort.SearchFloat64s(g.bounds, r.Float64()), themes-1)]
	for j := range scratch {
		scratch[j] = float32(theme[j] + ownPart*r.NormFloat64()*g.spectrum[j])
	}
	vec.ScanFloat32(scratch, g.rotation, dimension, out)
	vec.Normalize(out, out)
}

// write makes a file of the first n vectors of a stream.
func (g *generator) write(name string, stream uint64, n int) error {
	const block = 4096
	return writeFile(name, func(w *bufio.Writer) error {
		rows := make([]float32, block*dimension)
		var raw []byte
		for from := 0; from < n; from += block {
			count := min(block, n-from)
			share(count, func(a, b int) {
				scratch := make([]float32, dimension)
				for i := a; i < b; i++ {
					g.row(stream, from+i, scratch, rows[i*dimension:(i+1)*dimension])
				}
			})
			raw = appendFloats(raw[:0], rows[:count*dimension])
			if _, err := w.Write(raw); err != nil {
				return err
			}
		}
		return nil
	})
}

func processors() int { return runtime.GOMAXPROCS(0) }
