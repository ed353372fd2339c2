package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/transformer"
	"github.com/loci-memory/loci/internal/unigram"
)

// sectionRows is the table of a static model: a row a piece, in blocks.
const sectionRows = "rows"

// How a static table is made. The figures were chosen by evaluation, see
// docs/adr/0024-static-table.md.
type recipe struct {
	latin, han, other int     // most pieces with ASCII letters, with Han characters, without letters
	width             int     // values of a row
	smooth            float64 // the probability at which a piece has half its weight
}

func defaultRecipe() recipe {
	return recipe{latin: 30000, han: 14000, other: 2000, width: 256, smooth: 1e-4}
}

// An encoderFile is an open model file with all that embedding needs.
type encoderFile struct {
	card       modelfile.Card
	vocabulary *unigram.Model
	model      *transformer.Model
}

func openEncoder(data string) (encoderFile, error) {
	f, err := modelfile.Open(data)
	if err != nil {
		return encoderFile{}, err
	}
	if err := f.Verify(); err != nil {
		return encoderFile{}, err
	}
	c, err := f.Card()
	if err != nil {
		return encoderFile{}, err
	}
	v, err := unigram.Load(f)
	if err != nil {
		return encoderFile{}, err
	}
	w, err := transformer.ReadWeights(transformer.Config{Layers: c.Layers, Hidden: c.Dimension, Heads: c.Heads,
		Intermediate: c.Intermediate, MaxPositions: c.MaxTokens, Epsilon: c.Epsilon}, f.Section)
	if err != nil {
		return encoderFile{}, err
	}
	if w.Words.Rows() != v.Len() {
		return encoderFile{}, fmt.Errorf("%w: %d rows and %d pieces", modelfile.ErrFormat, w.Words.Rows(), v.Len())
	}
	m, err := transformer.New(w)
	return encoderFile{c, v, m}, err
}

// distil makes a static table of an encoder: each piece is embedded alone, the
// vectors are centred and whitened, and each is weighted by how rare its piece
// is, so that the sum of a text's rows is near to what the encoder makes of it.
func distil(data string, r recipe) (packed []byte, kept, all int, err error) {
	e, err := openEncoder(data)
	if err != nil {
		return nil, 0, 0, err
	}
	pieces := r.pick(e.vocabulary)
	vectors, err := alone(e.model, pieces[unigram.Specials:])
	if err != nil {
		return nil, 0, 0, err
	}
	if r.width > e.card.Dimension || r.width%transformer.BlockLen != 0 {
		return nil, 0, 0, fmt.Errorf("rows of %d values of vectors of %d", r.width, e.card.Dimension)
	}
	white := whiten(vectors, r.width)
	// The specials have rows of zeros: they say nothing. Neither does a space
	// that no word follows; with a row it would be the vector of all text that
	// the table knows nothing of.
	rows := transformer.Quantize(nil, make([]float32, unigram.Specials*r.width))
	for i, v := range white {
		id := pieces[unigram.Specials+i]
		p := math.Exp(e.vocabulary.Score(id))
		for j := range v {
			v[j] *= float32(r.smooth / (r.smooth + p))
			if e.vocabulary.Piece(id) == "\u2581" {
				v[j] = 0
			}
		}
		rows = transformer.Quantize(rows, v)
	}
	card, err := modelfile.Card{
		Name: e.card.Name + "-static", Version: "1", Licence: e.card.Licence, Source: e.card.Source,
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(data))), Dimension: r.width,
	}.Section()
	if err != nil {
		return nil, 0, 0, err
	}
	sections := append([]modelfile.Section{card}, subset(e.vocabulary, pieces)...)
	sections = append(sections, modelfile.Section{Name: sectionRows, Data: string(rows)})
	var out bytes.Buffer
	if err := modelfile.Write(&out, sections); err != nil {
		return nil, 0, 0, err
	}
	return out.Bytes(), len(pieces), e.vocabulary.Len(), nil
}

// pick gives the ids of the specials and of the most frequent pieces of each
// kind. Pieces come in the order of their frequency.
func (r recipe) pick(v *unigram.Model) []int32 {
	var out []int32
	for id := range int32(v.Len()) {
		left := &r.other
		switch text := strings.ReplaceAll(v.Piece(id), "\u2581", ""); {
		case id < unigram.Specials:
			out = append(out, id)
			continue
		case only(text, unicode.Han):
			left = &r.han
		case only(text, unicode.Latin) && !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII && unicode.IsLetter(r) }):
			left = &r.latin
		case strings.ContainsFunc(text, unicode.IsLetter):
			continue
		}
		if *left > 0 {
			*left--
			out = append(out, id)
		}
	}
	return out
}

// only says whether text has letters, all of them of the script.
func only(text string, script *unicode.RangeTable) bool {
	letters := false
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters = true
			if !unicode.Is(script, r) {
				return false
			}
		}
	}
	return letters
}

// subset gives the sections of a vocabulary that has these pieces only.
func subset(v *unigram.Model, pieces []int32) []modelfile.Section {
	var text, ends, scores []byte
	for _, id := range pieces {
		text = append(text, v.Piece(id)...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(text)))
		scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(float32(v.Score(id))))
	}
	return []modelfile.Section{
		{Name: unigram.SectionPieces, Data: string(text)},
		{Name: unigram.SectionEnds, Data: string(ends)},
		{Name: unigram.SectionScores, Data: string(scores)},
	}
}

// alone embeds each piece as a text of its own and gives vectors of length 1.
func alone(m *transformer.Model, pieces []int32) ([][]float32, error) {
	const batch = 64
	var out [][]float32
	for len(pieces) > 0 {
		n := min(batch, len(pieces))
		texts := make([][]int32, n)
		for i, id := range pieces[:n] {
			texts[i] = []int32{unigram.Begin, id, unigram.End}
		}
		vectors, err := m.Embed(texts)
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
		pieces = pieces[n:]
	}
	return out, nil
}

// whiten moves vectors to their mean and turns them to their main directions, of
// which it keeps the first width, each scaled to a variance of 1.
func whiten(vectors [][]float32, width int) [][]float32 {
	n := len(vectors[0])
	mean := make([]float64, n)
	for _, v := range vectors {
		for j, x := range v {
			mean[j] += float64(x) / float64(len(vectors))
		}
	}
	centred := make([]float64, n)
	covariance := make([][]float64, n)
	for i := range covariance {
		covariance[i] = make([]float64, n)
	}
	for _, v := range vectors {
		for j, x := range v {
			centred[j] = float64(x) - mean[j]
		}
		for i, x := range centred {
			row := covariance[i]
			for j := i; j < n; j++ {
				row[j] += x * centred[j]
			}
		}
	}
	for i := range covariance {
		for j := i; j < n; j++ {
			covariance[i][j] /= float64(len(vectors))
			covariance[j][i] = covariance[i][j]
		}
	}
	values, directions := eigen(covariance)
	out := make([][]float32, len(vectors))
	for i, v := range vectors {
		out[i] = make([]float32, width)
		for k := range width {
			var sum float64
			for j, x := range v {
				sum += (float64(x) - mean[j]) * directions[k][j]
			}
			if values[k] > 1e-12*values[0] {
				out[i][k] = float32(sum / math.Sqrt(values[k]))
			}
		}
	}
	return out
}
