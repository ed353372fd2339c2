// Package static is an embedder that looks vectors up instead of computing them:
// a text's vector is the sum of the rows of its pieces, weighted when the table
// was made. It needs no fast arithmetic, so it is what is left where a
// transformer would be too slow. It knows nothing of the order of words.
package static

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/transformer"
	"github.com/loci-memory/loci/internal/unigram"
)

// sectionRows is the table's section of the model file: a row a piece.
const sectionRows = "rows"

// ErrModel means that the data given to Open is no static model. It is meant for
// errors.Is.
var ErrModel = errors.New("not a usable static model")

// An Embedder embeds texts by a table. It is safe for concurrent use and
// deterministic: a text's vector depends on nothing else.
type Embedder struct {
	card       modelfile.Card
	vocabulary *unigram.Model
	rows       transformer.Table
}

// Open makes an embedder of a model file, which it keeps: that of package
// models/static, or another of its kind. The whole file is checked, which takes
// some milliseconds. Errors wrap ErrModel.
func Open(model string) (*Embedder, error) {
	e, err := open(model)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return e, nil
}

func open(model string) (*Embedder, error) {
	f, err := modelfile.Open(model)
	if err != nil {
		return nil, err
	}
	if err := f.Verify(); err != nil {
		return nil, err
	}
	e := &Embedder{}
	if e.card, err = f.Card(); err != nil {
		return nil, err
	}
	if e.vocabulary, err = unigram.Load(f); err != nil {
		return nil, err
	}
	rows, err := f.Need(sectionRows)
	if err != nil {
		return nil, err
	}
	e.rows, err = transformer.NewTable(e.vocabulary.Len(), e.card.Dimension, rows[0])
	return e, err
}

// ModelID names the model: two embedders with one id give the same vectors.
func (e *Embedder) ModelID() string { return e.card.Name + "-" + e.card.Version }

// Dimension is the number of values of a vector.
func (e *Embedder) Dimension() int { return e.card.Dimension }

// Limit gives the whole text, since nothing is cut off.
func (e *Embedder) Limit(text string, _ embed.Purpose) (kept string, cut bool) { return text, false }

// Embed gives a vector of length 1 for each text. Both purposes give the same.
//
// A text that has none of the table's pieces, such as an empty one or one in a
// script that the table leaves out, has no vector: the error wraps
// embed.ErrRefused and names it. Other errors are the context's, which is looked
// at before each text.
func (e *Embedder) Embed(ctx context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	width := e.card.Dimension
	out := make([][]float32, len(texts))
	flat := make([]float32, (len(texts)+1)*width)
	row := flat[len(texts)*width:]
	var ids []int32
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vector := flat[i*width : (i+1)*width : (i+1)*width]
		ids, _ = e.vocabulary.Encode(ids[:0], text, math.MaxInt)
		for _, id := range ids {
			if id == unigram.Unknown {
				continue
			}
			e.rows.Row(row, int(id))
			for j, x := range row {
				vector[j] += x
			}
		}
		if !unit(vector) {
			return nil, fmt.Errorf("%w: text %d has none of the words that %s knows", embed.ErrRefused, i, e.ModelID())
		}
		out[i] = vector
	}
	return out, nil
}

// unit scales a vector to length 1, unless it has no direction.
func unit(v []float32) bool {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if !(square > 0) || math.IsInf(square, 0) {
		return false
	}
	scale := 1 / math.Sqrt(square)
	for j, x := range v {
		v[j] = float32(float64(x) * scale)
	}
	return true
}
