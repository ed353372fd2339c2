package transformer

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

func readFloat(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// packFloats packs a matrix of floats by way of the block format.
func packFloats(rows, cols int, w []float32) Matrix {
	packed, err := Pack(rows, cols, Quantize(nil, w))
	if err != nil {
		panic(err)
	}
	m, err := NewMatrix(rows, cols, string(packed))
	if err != nil {
		panic(err)
	}
	return m
}

// unpack gives the weights of a matrix, read weight by weight from the format's
// description.
func unpack(m Matrix) [][]float64 {
	out := make([][]float64, m.Rows())
	for r := range out {
		out[r] = make([]float64, m.Cols())
		for c := range out[r] {
			block := m.packed[(r/16*(m.Cols()/32)+c/32)*288:][:288]
			j, k := r%16, c%32
			code := block[32+k/4*32+j%8*4+k%4]
			if j >= 8 {
				code >>= 4
			}
			scale := fromFloat16(binary.LittleEndian.Uint16([]byte(block[2*j : 2*j+2])))
			out[r][c] = float64(int(code&15)-8) * float64(scale)
		}
	}
	return out
}

// randomWeights makes a model of some shape whose activations have a few large
// channels, as those of real models do.
func randomWeights(c Config, words int, seed uint64) Weights {
	r := rand.New(rand.NewPCG(seed, 2))
	floats := func(n int, mean, spread float64) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(mean + spread*r.NormFloat64())
		}
		return out
	}
	gains := func() []float32 {
		g := floats(c.Hidden, 1, 0.1)
		g[r.IntN(len(g))] = 8
		return g
	}
	matrix := func(rows, cols int) Matrix {
		return packFloats(rows, cols, floats(rows*cols, 0, 0.7/math.Sqrt(float64(cols))))
	}
	table, err := NewTable(words, c.Hidden, string(Quantize(nil, floats(words*c.Hidden, 0, 1))))
	if err != nil {
		panic(err)
	}
	w := Weights{Config: c, Words: table, Positions: floats(c.MaxPositions*c.Hidden, 0, 0.3), EmbedGain: gains(), EmbedBias: floats(c.Hidden, 0, 0.1)}
	for range c.Layers {
		w.Layers = append(w.Layers, Layer{
			QKV: matrix(3*c.Hidden, c.Hidden), QKVBias: floats(3*c.Hidden, 0, 0.1),
			Out: matrix(c.Hidden, c.Hidden), OutBias: floats(c.Hidden, 0, 0.1),
			Up: matrix(c.Intermediate, c.Hidden), UpBias: floats(c.Intermediate, 0, 0.1),
			Down: matrix(c.Hidden, c.Intermediate), DownBias: floats(c.Hidden, 0, 0.1),
			AttnGain: gains(), AttnBias: floats(c.Hidden, 0, 0.1),
			FFNGain: gains(), FFNBias: floats(c.Hidden, 0, 0.1),
		})
	}
	return w
}

// naive runs one text in float64, with the inputs of matrices quantised as the
// package says.
func naive(w Weights, ids []int32) []float64 {
	c := w.Config
	x := make([][]float64, len(ids))
	row := make([]float32, c.Hidden)
	for i, id := range ids {
		w.Words.Row(row, int(id))
		x[i] = make([]float64, c.Hidden)
		for j := range row {
			x[i][j] = float64(row[j]) + float64(w.Positions[i*c.Hidden+j])
		}
	}
	naiveNorm(x, nil, w.EmbedGain, w.EmbedBias, c.Epsilon)
	for _, l := range w.Layers {
		qkv := naiveProduct(x, l.QKV, l.QKVBias)
		mixed := make([][]float64, len(x))
		head := c.Hidden / c.Heads
		for t := range x {
			mixed[t] = make([]float64, c.Hidden)
			for h := range c.Heads {
				weight, total := make([]float64, len(x)), 0.0
				for s := range x {
					var dot float64
					for e := range head {
						dot += qkv[t][h*head+e] * qkv[s][c.Hidden+h*head+e]
					}
					weight[s] = math.Exp(dot / math.Sqrt(float64(head)))
					total += weight[s]
				}
				for s := range x {
					for e := range head {
						mixed[t][h*head+e] += weight[s] / total * qkv[s][2*c.Hidden+h*head+e]
					}
				}
			}
		}
		naiveNorm(x, naiveProduct(mixed, l.Out, l.OutBias), l.AttnGain, l.AttnBias, c.Epsilon)
		mid := naiveProduct(x, l.Up, l.UpBias)
		for _, row := range mid {
			for j, v := range row {
				row[j] = 0.5 * v * (1 + math.Erf(v/math.Sqrt2))
			}
		}
		naiveNorm(x, naiveProduct(mid, l.Down, l.DownBias), l.FFNGain, l.FFNBias, c.Epsilon)
	}
	out, square := make([]float64, c.Hidden), 0.0
	for _, row := range x {
		for j, v := range row {
			out[j] += v
		}
	}
	for _, v := range out {
		square += v * v
	}
	for j := range out {
		out[j] /= math.Sqrt(square)
	}
	return out
}

func naiveProduct(x [][]float64, m Matrix, bias []float32) [][]float64 {
	w := unpack(m)
	out := make([][]float64, len(x))
	for t := range x {
		out[t] = make([]float64, len(w))
		in := naiveQuantize(x[t])
		for r := range w {
			out[t][r] = float64(bias[r])
			for k, v := range in {
				out[t][r] += v * w[r][k]
			}
		}
	}
	return out
}

func naiveNorm(x, y [][]float64, gain, bias []float32, epsilon float32) {
	for t, row := range x {
		var mean, variance float64
		for j := range row {
			if y != nil {
				row[j] += y[t][j]
			}
			mean += row[j] / float64(len(row))
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(len(row))
		}
		for j, v := range row {
			row[j] = (v-mean)/math.Sqrt(variance+float64(epsilon))*float64(gain[j]) + float64(bias[j])
		}
	}
}

func naiveQuantize(x []float64) []float64 {
	out := make([]float64, len(x))
	for from := 0; from < len(x); from += BlockLen {
		var peak float64
		for _, v := range x[from : from+BlockLen] {
			peak = max(peak, math.Abs(v))
		}
		for k, v := range x[from : from+BlockLen] {
			out[from+k] = math.RoundToEven(v/peak*127) / 127 * peak
		}
	}
	return out
}
