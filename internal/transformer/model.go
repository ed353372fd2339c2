package transformer

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// ErrInput means that a list of token ids cannot be run: it is empty, too long,
// or holds an id that the model does not have. It is meant for errors.Is.
var ErrInput = errors.New("unusable token ids")

// ErrNotFinite means that a text's vector came out as zero, infinite or not a
// number, which only damaged weights do. It is meant for errors.Is.
var ErrNotFinite = errors.New("the model gave no usable vector")

// A Model is an encoder that is ready to run. It is safe for concurrent use.
type Model struct {
	w       Weights
	k       kernels
	scratch sync.Pool // of *scratch
}

// New makes a model of weights, which must not change any more.
func New(w Weights) (*Model, error) { return newModel(w, fastest()) }

func newModel(w Weights, k kernels) (*Model, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	return &Model{w: w, k: k}, nil
}

// check says whether all parts of the weights fit the shape that they claim.
func (w *Weights) check() error {
	c := w.Config
	if err := c.check(); err != nil {
		return err
	}
	ok := w.Words.cols == c.Hidden && len(w.Positions) == c.MaxPositions*c.Hidden && len(w.Layers) == c.Layers &&
		len(w.EmbedGain) == c.Hidden && len(w.EmbedBias) == c.Hidden
	for i := range w.Layers {
		l := &w.Layers[i]
		for _, m := range []struct {
			Matrix
			bias       []float32
			rows, cols int
		}{
			{l.QKV, l.QKVBias, 3 * c.Hidden, c.Hidden}, {l.Out, l.OutBias, c.Hidden, c.Hidden},
			{l.Up, l.UpBias, c.Intermediate, c.Hidden}, {l.Down, l.DownBias, c.Hidden, c.Intermediate},
		} {
			ok = ok && m.Rows() == m.rows && m.Cols() == m.cols && len(m.bias) == m.rows
		}
		for _, v := range [][]float32{l.AttnGain, l.AttnBias, l.FFNGain, l.FFNBias} {
			ok = ok && len(v) == c.Hidden
		}
	}
	if !ok {
		return fmt.Errorf("%w: weights that do not fit model %+v", ErrShape, c)
	}
	return nil
}

// Config is the model's shape.
func (m *Model) Config() Config { return m.w.Config }

// Vocabulary is the number of token ids; they start at 0.
func (m *Model) Vocabulary() int { return m.w.Words.rows }

// Embed runs texts, given as token ids with whatever special tokens the model
// wants, in one pass. It gives a vector of Hidden values and length 1 for each:
// the mean over the text's tokens. Memory grows with the number of tokens in
// all, some 20 kB each at a width of 384. A text's vector does not depend on
// the others.
//
// Errors wrap ErrInput or ErrNotFinite.
func (m *Model) Embed(texts [][]int32) ([][]float32, error) {
	tokens := 0
	for i, ids := range texts {
		if len(ids) == 0 || len(ids) > m.w.MaxPositions {
			return nil, fmt.Errorf("%w: text %d has %d tokens, want 1 to %d", ErrInput, i, len(ids), m.w.MaxPositions)
		}
		for _, id := range ids {
			if id < 0 || int(id) >= m.w.Words.rows {
				return nil, fmt.Errorf("%w: text %d has the id %d, there are %d", ErrInput, i, id, m.w.Words.rows)
			}
		}
		tokens += len(ids)
	}
	if tokens == 0 {
		return nil, nil
	}
	s, _ := m.scratch.Get().(*scratch)
	if s == nil {
		s = new(scratch)
	}
	defer m.scratch.Put(s)
	s.resize(m.w.Config, tokens, m.k.dotRows)

	m.run(s, texts)
	return m.pool(s, texts)
}

// pool gives each text the mean of its tokens, at length 1.
func (m *Model) pool(s *scratch, texts [][]int32) ([][]float32, error) {
	width := m.w.Hidden
	out := make([][]float32, len(texts))
	flat := make([]float32, len(texts)*width)
	at := 0
	for i, ids := range texts {
		v := flat[i*width:][:width:width]
		for range ids {
			for j, x := range s.x[at*width:][:width] {
				v[j] += x
			}
			at++
		}
		var square float64
		for _, x := range v {
			square += float64(float64(x) * float64(x))
		}
		norm := math.Sqrt(square)
		if !(norm > 0) || math.IsInf(norm, 0) {
			return nil, fmt.Errorf("text %d: %w", i, ErrNotFinite)
		}
		for j := range v {
			v[j] = float32(float64(v[j]) / norm)
		}
		out[i] = v
	}
	return out, nil
}
