package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/transformer"
	"github.com/loci-memory/loci/internal/unigram"
)

// vocabulary makes the sections of the tokenizer. The specials get the lowest
// score of the source's pieces, which is what the tokenizer makes the score of
// unknown characters from: it must not depend on which pieces are kept.
func vocabulary(s *source, kept []int) []modelfile.Section {
	least := float32(0)
	for _, p := range s.pieces {
		least = min(least, p.score)
	}
	var text, ends, scores []byte
	for i, id := range kept {
		p := s.pieces[id]
		if i < unigram.Specials {
			p.score = least
		}
		text = append(text, p.text...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(text)))
		scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(p.score))
	}
	return []modelfile.Section{
		{Name: unigram.SectionPieces, Data: string(text)},
		{Name: unigram.SectionEnds, Data: string(ends)},
		{Name: unigram.SectionScores, Data: string(scores)},
	}
}

// A packer turns tensors into sections until one does not fit.
type packer struct {
	source   *source
	sections []modelfile.Section
	err      error
}

func (p *packer) add(name string, data []byte, err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("section %s: %w", name, err)
	}
	p.sections = append(p.sections, modelfile.Section{Name: name, Data: string(data)})
}

// floats adds the tensors of n values each, one behind the other.
func (p *packer) floats(name string, n int, tensors ...string) {
	var out []byte
	for _, t := range tensors {
		data, err := p.source.floats(t, n)
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("section %s: %w", name, err)
		}
		out = append(out, data...)
	}
	p.add(name, out, nil)
}

// matrix adds the tensors of rows x cols values each as one packed matrix.
func (p *packer) matrix(name string, rows, cols int, tensors ...string) {
	var blocks []byte
	for _, t := range tensors {
		data, err := p.source.matrix(t, rows, cols)
		if err != nil {
			p.add(name, nil, err)
			return
		}
		blocks = append(blocks, data...)
	}
	packed, err := transformer.Pack(rows*len(tensors), cols, blocks)
	p.add(name, packed, err)
}

// words adds the rows of the kept pieces.
func (p *packer) words(kept []int) {
	width := p.source.hidden
	size := width / transformer.BlockLen * transformer.BlockBytes
	t := p.source.tensors["emb.word"]
	var out []byte
	for _, id := range kept {
		if !t.blocks || (id+1)*size > len(t.data) {
			p.add(transformer.SectionWords, nil, fmt.Errorf("%w: piece %d has no row", errSource, id))
			return
		}
		out = append(out, t.data[id*size:(id+1)*size]...)
	}
	p.add(transformer.SectionWords, out, nil)
}

// positions adds the rows of the positions, each with the row of the first
// token type added.
func (p *packer) positions() {
	width, count := p.source.hidden, p.source.positions
	rows, err := p.source.floats("emb.pos", width*count)
	all := p.source.tensors["emb.type"]
	if err == nil && (all.blocks || len(all.data) < 4*width) {
		err = fmt.Errorf("%w: it has no token types", errSource)
	}
	if err != nil {
		p.add(transformer.SectionPositions, nil, err)
		return
	}
	var out []byte
	for i := range width * count {
		sum := float(rows, i) + float(all.data, i%width)
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(sum))
	}
	p.add(transformer.SectionPositions, out, nil)
}

// encoder makes the sections of the transformer.
func encoder(s *source, kept []int) ([]modelfile.Section, error) {
	p := &packer{source: s}
	p.words(kept)
	p.positions()
	p.floats(transformer.SectionEmbedGain, s.hidden, "emb.ln.w")
	p.floats(transformer.SectionEmbedBias, s.hidden, "emb.ln.b")
	for i := 0; i < s.layers && p.err == nil; i++ {
		to := func(section string) string { return transformer.LayerSection(i, section) }
		from := func(tensor string) string { return fmt.Sprintf("l%d.%s", i, tensor) }
		p.matrix(to(transformer.SectionQKV), s.hidden, s.hidden, from("q.w"), from("k.w"), from("v.w"))
		p.floats(to(transformer.SectionQKVBias), s.hidden, from("q.b"), from("k.b"), from("v.b"))
		p.matrix(to(transformer.SectionOut), s.hidden, s.hidden, from("ao.w"))
		p.floats(to(transformer.SectionOutBias), s.hidden, from("ao.b"))
		p.floats(to(transformer.SectionAttnGain), s.hidden, from("aln.w"))
		p.floats(to(transformer.SectionAttnBias), s.hidden, from("aln.b"))
		p.matrix(to(transformer.SectionUp), s.intermediate, s.hidden, from("fi.w"))
		p.floats(to(transformer.SectionUpBias), s.intermediate, from("fi.b"))
		p.matrix(to(transformer.SectionDown), s.hidden, s.intermediate, from("fo.w"))
		p.floats(to(transformer.SectionDownBias), s.hidden, from("fo.b"))
		p.floats(to(transformer.SectionFFNGain), s.hidden, from("oln.w"))
		p.floats(to(transformer.SectionFFNBias), s.hidden, from("oln.b"))
	}
	return p.sections, p.err
}

func float(data []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
}
