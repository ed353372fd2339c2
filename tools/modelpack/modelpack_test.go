package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/transformer"
	"github.com/loci-memory/loci/internal/unigram"
	"github.com/loci-memory/loci/models/e5small"
)

// A tiny model in the source's format: every number in it is its place.
type tiny struct {
	hidden, layers, heads, intermediate, positions int
	pieces                                         []piece
	changes                                        map[rune]string
	skip                                           string // a tensor that is left out
}

func newTiny() tiny {
	return tiny{
		hidden: 32, layers: 1, heads: 2, intermediate: 64, positions: 3,
		pieces: []piece{{"<s>", 0}, {"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}, {",", -3}, {"▁the", -4}, {"да", -5}, {"知识", -6},
			{"▁é", -7}, {"カ1", -8}, {"한", -9}, {"α", -10}, {"😀", -11}, {"aд", -12}, {"ก", -13}, {"<mask>", 0}},
		changes: map[rune]string{1: "", '\t': " ", '½': "1⁄2", '¨': " ̈", '㍿': "株式会社"},
	}
}

func (m tiny) bytes() []byte {
	le := binary.LittleEndian
	b := []byte("E5S1")
	for _, n := range []int{1, m.hidden, m.layers, m.heads, m.intermediate, len(m.pieces), m.positions, 2} {
		b = le.AppendUint32(b, uint32(n))
	}
	b = le.AppendUint32(b, math.Float32bits(1e-12))
	for _, n := range []int{32, len(m.pieces), 0, 2, 1, 3} {
		b = le.AppendUint32(b, uint32(n))
	}
	var text, ends, scores, changes []byte
	ends = le.AppendUint32(ends, 0)
	for _, p := range m.pieces {
		text = append(text, p.text...)
		ends = le.AppendUint32(ends, uint32(len(text)))
		scores = le.AppendUint32(scores, math.Float32bits(p.score))
	}
	b = le.AppendUint64(b, uint64(len(text)))
	b = append(append(append(b, ends...), scores...), text...)
	for from, to := range m.changes {
		changes = le.AppendUint32(changes, uint32(from))
		changes = append(changes, byte(len([]rune(to))))
		for _, r := range to {
			changes = le.AppendUint32(changes, uint32(r))
		}
	}
	b = le.AppendUint32(b, uint32(len(m.changes)))
	b = le.AppendUint32(b, uint32(len(changes)))
	b = append(b, changes...)

	h, f := m.hidden, m.intermediate
	type entry struct {
		name   string
		blocks bool
		count  int
	}
	list := []entry{{"emb.word", true, len(m.pieces) * h}, {"emb.pos", false, m.positions * h}, {"emb.type", false, 2 * h},
		{"emb.ln.w", false, h}, {"emb.ln.b", false, h}}
	for i := range m.layers {
		for name, count := range map[string]int{"q.w": h * h, "k.w": h * h, "v.w": h * h, "ao.w": h * h, "fi.w": f * h, "fo.w": f * h} {
			list = append(list, entry{fmt.Sprintf("l%d.%s", i, name), true, count})
		}
		for name, count := range map[string]int{"q.b": h, "k.b": h, "v.b": h, "ao.b": h, "fi.b": f, "fo.b": h, "aln.w": h, "aln.b": h, "oln.w": h, "oln.b": h} {
			list = append(list, entry{fmt.Sprintf("l%d.%s", i, name), false, count})
		}
	}
	directory, data := []byte{}, []byte{}
	size := 0
	for _, e := range list {
		if e.name != m.skip {
			size += 2 + len(e.name) + 1 + 4 + 8 + 8
		}
	}
	base, n := len(b)+4+size, 0
	for _, e := range list {
		if e.name == m.skip {
			continue
		}
		n++
		from := len(data)
		for i := range e.count {
			switch {
			case !e.blocks:
				data = le.AppendUint32(data, math.Float32bits(float32(i)+0.5))
			case i%32 == 0:
				data = le.AppendUint16(data, uint16(0x3c00+i/32))
				for j := range 16 {
					data = append(data, byte(j*17+i/32))
				}
			}
		}
		kind := byte(0)
		if e.blocks {
			kind = 1
		}
		directory = le.AppendUint16(directory, uint16(len(e.name)))
		directory = append(append(directory, e.name...), kind)
		directory = le.AppendUint32(directory, uint32(e.count))
		directory = le.AppendUint64(directory, uint64(base+from))
		directory = le.AppendUint64(directory, uint64(len(data)-from))
	}
	b = le.AppendUint32(b, uint32(n))
	return append(append(b, directory...), data...)
}

func TestPack(t *testing.T) {
	m := newTiny()
	data := m.bytes()
	packed, kept, all, err := pack(data)
	if err != nil {
		t.Fatal(err)
	}
	if kept != 12 || all != 16 {
		t.Errorf("kept %d of %d", kept, all)
	}
	f, err := modelfile.Open(string(packed))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); err != nil {
		t.Fatal(err)
	}
	vocabulary, err := unigram.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for id := range vocabulary.Len() {
		got = append(got, vocabulary.Piece(int32(id)))
	}
	if want := "<s> <pad> </s> <unk> , ▁the 知识 ▁é カ1 한 α 😀"; strings.Join(got, " ") != want {
		t.Errorf("kept %s, want %s", strings.Join(got, " "), want)
	}
	c, err := f.Card()
	if err != nil {
		t.Fatal(err)
	}
	w, err := transformer.ReadWeights(transformer.Config{Layers: c.Layers, Hidden: c.Dimension, Heads: c.Heads,
		Intermediate: c.Intermediate, MaxPositions: c.MaxTokens, Epsilon: c.Epsilon}, f.Section)
	if err != nil {
		t.Fatal(err)
	}
	// The rows are those of the pieces, which stood elsewhere in the source.
	s, err := readSource(data)
	if err != nil {
		t.Fatal(err)
	}
	source, err := transformer.NewTable(len(m.pieces), m.hidden, string(s.tensors["emb.word"].data))
	if err != nil {
		t.Fatal(err)
	}
	for id, p := range got {
		for from := range m.pieces {
			if m.pieces[from].text != p {
				continue
			}
			have, want := make([]float32, m.hidden), make([]float32, m.hidden)
			w.Words.Row(have, id)
			source.Row(want, from)
			if fmt.Sprint(have) != fmt.Sprint(want) {
				t.Errorf("piece %s has the row %v, want %v", p, have, want)
			}
		}
	}
	// Positions hold the first token type.
	if at := w.Positions[m.hidden+2]; at != float32(m.hidden)+2.5+2.5 {
		t.Errorf("a position is %v", at)
	}
	again, _, _, err := pack(data)
	if err != nil || !bytes.Equal(again, packed) {
		t.Errorf("the second time gives other bytes: %v", err)
	}
}

func TestPackRefuses(t *testing.T) {
	for name, change := range map[string]func(*tiny){
		"a missing matrix":        func(m *tiny) { m.skip = "l0.k.w" },
		"a missing bias":          func(m *tiny) { m.skip = "l0.fi.b" },
		"no words":                func(m *tiny) { m.skip = "emb.word" },
		"no positions":            func(m *tiny) { m.skip = "emb.pos" },
		"no token types":          func(m *tiny) { m.skip = "emb.type" },
		"another normaliser":      func(m *tiny) { m.changes['x'] = "y" },
		"a character it drops":    func(m *tiny) { m.changes['x'] = "" },
		"a width without a block": func(m *tiny) { m.hidden = 16 },
	} {
		m := newTiny()
		change(&m)
		if _, _, _, err := pack(m.bytes()); !errors.Is(err, errSource) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCutSource(t *testing.T) {
	whole := newTiny().bytes()
	for n := 0; n < len(whole); n += 7 {
		if _, _, _, err := pack(whole[:n]); !errors.Is(err, errSource) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

func FuzzReadSource(f *testing.F) {
	f.Add(newTiny().bytes())
	f.Add([]byte("E5S1\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		packed, _, _, err := pack(data)
		if err != nil {
			return
		}
		file, err := modelfile.Open(string(packed))
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Verify(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	in, result := filepath.Join(dir, "in"), filepath.Join(dir, "result")
	if err := os.WriteFile(in, newTiny().bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"encoder", in, result}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "kept 12 of 16 pieces, ") || strings.Count(out.String(), "\n") != 3 {
		t.Error(out.String())
	}
	if err := run([]string{"encoder", in}, &out); !errors.Is(err, errUsage) {
		t.Error(err)
	}
	if err := run([]string{"encoder", filepath.Join(dir, "none"), result}, &out); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := run([]string{"encoder", result, in}, &out); !errors.Is(err, errSource) {
		t.Error(err)
	}
}

// The committed file is one that this program can have made: what it says of
// itself fits the encoder and the tokenizer.
func TestCommittedModel(t *testing.T) {
	f, err := modelfile.Open(e5small.Data())
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.Card()
	if err != nil {
		t.Fatal(err)
	}
	w, err := transformer.ReadWeights(transformer.Config{Layers: c.Layers, Hidden: c.Dimension, Heads: c.Heads,
		Intermediate: c.Intermediate, MaxPositions: c.MaxTokens, Epsilon: c.Epsilon}, f.Section)
	if err != nil {
		t.Fatal(err)
	}
	v, err := unigram.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	if w.Words.Rows() != v.Len() || v.Len() != 145767 || c.Dimension != 384 || c.Query != "query: " {
		t.Errorf("%d rows, %d pieces, %+v", w.Words.Rows(), v.Len(), c)
	}
}
