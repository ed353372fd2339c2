package transformer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Names of the sections that a stored model consists of. Those of a layer
// stand behind "layer.N.", N from 0.
//
// Vectors are float32, little endian. Matrices are packed. Words is in the
// block format, one row a token id.
const (
	SectionWords     = "words"      // ids x Hidden
	SectionPositions = "positions"  // MaxPositions x Hidden floats, the vector of the only token type added
	SectionEmbedGain = "embed.gain" // layer norm of the sum of the two
	SectionEmbedBias = "embed.bias"

	SectionQKV      = "qkv"       // matrix 3*Hidden x Hidden: queries, keys, values
	SectionQKVBias  = "qkv.bias"  // 3*Hidden
	SectionOut      = "out"       // matrix Hidden x Hidden: what leaves attention
	SectionOutBias  = "out.bias"  // Hidden
	SectionAttnGain = "attn.gain" // layer norm after attention
	SectionAttnBias = "attn.bias"
	SectionUp       = "up"        // matrix Intermediate x Hidden, before GELU
	SectionUpBias   = "up.bias"   // Intermediate
	SectionDown     = "down"      // matrix Hidden x Intermediate
	SectionDownBias = "down.bias" // Hidden
	SectionFFNGain  = "ffn.gain"  // layer norm after the feed-forward part
	SectionFFNBias  = "ffn.bias"
)

// LayerSection gives the name of a layer's section in the stored model.
func LayerSection(layer int, name string) string { return fmt.Sprintf("layer.%d.%s", layer, name) }

// Weights are all that a model consists of.
type Weights struct {
	Config
	Words                Table
	Positions            []float32
	EmbedGain, EmbedBias []float32
	Layers               []Layer
}

// Layer is one block of attention and feed-forward. See the sections' names.
type Layer struct {
	QKV, Out, Up, Down                 Matrix
	QKVBias, OutBias, UpBias, DownBias []float32
	AttnGain, AttnBias                 []float32
	FFNGain, FFNBias                   []float32
}

// ReadWeights builds the weights of a stored model. Section gives the bytes of
// a section, and false if there is none. The matrices and the table share the
// sections' bytes.
func ReadWeights(c Config, section func(name string) (string, bool)) (Weights, error) {
	if err := c.check(); err != nil {
		return Weights{}, err
	}
	r := sectionReader{section: section}
	w := Weights{Config: c, Positions: r.floats(SectionPositions, c.MaxPositions*c.Hidden),
		EmbedGain: r.floats(SectionEmbedGain, c.Hidden), EmbedBias: r.floats(SectionEmbedBias, c.Hidden)}
	words, rowBytes := r.get(SectionWords), c.Hidden/BlockLen*BlockBytes
	if r.err == nil {
		w.Words, r.err = NewTable(len(words)/rowBytes, c.Hidden, words)
	}
	for i := range c.Layers {
		at := func(name string) string { return LayerSection(i, name) }
		w.Layers = append(w.Layers, Layer{
			QKV: r.matrix(at(SectionQKV), 3*c.Hidden, c.Hidden), QKVBias: r.floats(at(SectionQKVBias), 3*c.Hidden),
			Out: r.matrix(at(SectionOut), c.Hidden, c.Hidden), OutBias: r.floats(at(SectionOutBias), c.Hidden),
			AttnGain: r.floats(at(SectionAttnGain), c.Hidden), AttnBias: r.floats(at(SectionAttnBias), c.Hidden),
			Up: r.matrix(at(SectionUp), c.Intermediate, c.Hidden), UpBias: r.floats(at(SectionUpBias), c.Intermediate),
			Down: r.matrix(at(SectionDown), c.Hidden, c.Intermediate), DownBias: r.floats(at(SectionDownBias), c.Hidden),
			FFNGain: r.floats(at(SectionFFNGain), c.Hidden), FFNBias: r.floats(at(SectionFFNBias), c.Hidden),
		})
	}
	if r.err != nil {
		return Weights{}, r.err
	}
	return w, nil
}

// Limits of a shape, far above any small model, so that a damaged header asks
// for no memory that its sections could not fill.
const (
	maxLayers = 256
	maxWidth  = 1 << 16
)

func (c Config) check() error {
	switch {
	case c.Layers < 1 || c.Layers > maxLayers,
		c.Hidden < BlockLen || c.Hidden > maxWidth || c.Hidden%BlockLen != 0,
		c.Intermediate < BlockLen || c.Intermediate > maxWidth || c.Intermediate%BlockLen != 0,
		c.Heads < 1 || c.Hidden%c.Heads != 0 || c.Hidden/c.Heads%tileCols != 0,
		c.MaxPositions < 1 || c.MaxPositions > maxWidth,
		!(c.Epsilon > 0) || math.IsInf(float64(c.Epsilon), 0):
		return fmt.Errorf("%w: model %+v", ErrShape, c)
	}
	return nil
}

// sectionReader reads sections until one is missing or of a wrong size.
type sectionReader struct {
	section func(string) (string, bool)
	err     error
}

func (r *sectionReader) get(name string) string {
	s, ok := r.section(name)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: section %s is missing", ErrShape, name)
	}
	return s
}

func (r *sectionReader) matrix(name string, rows, cols int) Matrix {
	m, err := NewMatrix(rows, cols, r.get(name))
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("section %s: %w", name, err)
	}
	return m
}

func (r *sectionReader) floats(name string, n int) []float32 {
	s := r.get(name)
	if len(s) != 4*n {
		if r.err == nil {
			r.err = fmt.Errorf("%w: section %s has %d bytes, want %d", ErrShape, name, len(s), 4*n)
		}
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(s[4*i : 4*i+4])))
	}
	return out
}
