package transformer

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every float16 widens to the value that its fields stand for, and narrows back
// to itself.
func TestFloat16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		exp, frac := int(h>>10&31), float64(h&0x3ff)
		want := math.Ldexp(1+frac/1024, exp-15)
		switch {
		case exp == 0:
			want = math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			want = math.Inf(1)
		case exp == 31:
			want = math.NaN()
		}
		if h&0x8000 != 0 {
			want = -want
		}
		got := fromFloat16(h)
		if math.IsNaN(want) {
			if !math.IsNaN(float64(got)) || toFloat16(got)&0x7e00 != 0x7e00 {
				t.Fatalf("%04x: %v", h, got)
			}
			continue
		}
		if float64(got) != want || toFloat16(got) != h {
			t.Fatalf("%04x: %v and back %04x, want %v", h, got, toFloat16(got), want)
		}
	}
	for f, want := range map[float32]uint16{
		65519: 0x7bff, 65520: 0x7c00, 1e9: 0x7c00, 1 + 1.0/2048: 0x3c00, 1 + 3.0/2048: 0x3c02, // ties go to even
		2047.5 / 1024: 0x4000, 0x1p-25: 0, 0x1.8p-25: 1, -0x1.8p-24: 0x8002, 0x1.ff8p-15: 0x3ff, 0x1.ffcp-15: 0x400,
	} {
		if got := toFloat16(f); got != want {
			t.Errorf("%v became %04x, want %04x", f, got, want)
		}
	}
}

// A packed matrix holds the weights of the blocks it was packed from; a table's
// rows are those blocks too.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := panelRows*rapid.IntRange(1, 4).Draw(t, "panels"), BlockLen*rapid.IntRange(1, 5).Draw(t, "blocks")
		blocks := rapid.SliceOfN(rapid.Byte(), rows*cols/BlockLen*BlockBytes, -1).Draw(t, "bytes")[:rows*cols/BlockLen*BlockBytes]
		for i := 1; i < len(blocks); i += BlockBytes {
			blocks[i] &= 0xbf // a finite scale
		}
		packed, err := Pack(rows, cols, blocks)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatrix(rows, cols, string(packed))
		if err != nil {
			t.Fatal(err)
		}
		table, err := NewTable(rows, cols, string(blocks))
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float32, cols)
		for r, weights := range unpack(m) {
			table.Row(row, r)
			for c, want := range weights {
				if float64(row[c]) != want {
					t.Fatalf("row %d column %d: %v in the table, %v in the matrix", r, c, row[c], want)
				}
			}
		}
	})
}

// Quantising loses at most half a step of the block's scale, and a whole one at
// the end of the range that has no code.
func TestQuantize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := drawFloats(t, "row", BlockLen)
		for i := range row {
			row[i] = max(-1e4, min(1e4, row[i]))
		}
		table, err := NewTable(1, BlockLen, string(Quantize(nil, row)))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, BlockLen)
		table.Row(got, 0)
		var peak float32
		for _, v := range row {
			peak = max(peak, abs(v))
		}
		for i, v := range row {
			if abs(got[i]-v) > peak/8*1.002+1e-6 {
				t.Fatalf("%v became %v, peak %v", v, got[i], peak)
			}
		}
	})
}

func TestShapes(t *testing.T) {
	for name, f := range map[string]func() error{
		"rows":         func() error { _, err := Pack(8, 32, make([]byte, 8*BlockBytes)); return err },
		"columns":      func() error { _, err := Pack(16, 48, nil); return err },
		"few blocks":   func() error { _, err := Pack(16, 32, make([]byte, 15*BlockBytes)); return err },
		"matrix bytes": func() error { _, err := NewMatrix(16, 32, "short"); return err },
		"table bytes":  func() error { _, err := NewTable(2, 32, strings.Repeat("x", 37)); return err },
		"empty table":  func() error { _, err := NewTable(0, 32, ""); return err },
		"heads": func() error {
			_, err := ReadWeights(Config{Layers: 1, Hidden: 64, Heads: 8, Intermediate: 64, MaxPositions: 1, Epsilon: 1}, none)
			return err
		},
		"epsilon": func() error {
			_, err := ReadWeights(Config{Layers: 1, Hidden: 64, Heads: 1, Intermediate: 64, MaxPositions: 1}, none)
			return err
		},
		"no sections": func() error { _, err := ReadWeights(shapes[0], none); return err },
		"other shape": func() error { w := randomWeights(shapes[0], 3, 1); w.Config = shapes[1]; _, err := New(w); return err },
		"odd bias": func() error {
			w := randomWeights(shapes[0], 3, 1)
			w.Layers[0].UpBias = nil
			_, err := New(w)
			return err
		},
	} {
		if err := f(); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func none(string) (string, bool) { return "", false }

// FuzzReadWeights reads sections of any lengths: an error, or weights that run.
func FuzzReadWeights(f *testing.F) {
	f.Add(uint8(3), int16(0), []byte("words"))
	f.Add(uint8(0), int16(-1), []byte{1, 2})
	f.Fuzz(func(t *testing.T, broken uint8, more int16, fill []byte) {
		c := shapes[0]
		n := -1
		w, err := ReadWeights(c, func(name string) (string, bool) {
			size := sectionSize(c, name)
			if n++; n == int(broken) {
				size = max(0, size+int(more))
			}
			return strings.Repeat(string(fill)+"\x00", size/(len(fill)+1)+1)[:size], true
		})
		if err != nil {
			if !errors.Is(err, ErrShape) {
				t.Fatal(err)
			}
			return
		}
		m, err := New(w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Embed([][]int32{{0, 1}, {2}}); err != nil && !errors.Is(err, ErrNotFinite) && !errors.Is(err, ErrInput) {
			t.Fatal(err)
		}
	})
}

// sectionSize is the size that a section should have, with three words.
func sectionSize(c Config, name string) int {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case SectionWords:
		return 3 * c.Hidden / BlockLen * BlockBytes
	case SectionPositions:
		return 4 * c.MaxPositions * c.Hidden
	case SectionQKV:
		return PackedSize(3*c.Hidden, c.Hidden)
	case SectionOut:
		return PackedSize(c.Hidden, c.Hidden)
	case SectionUp:
		return PackedSize(c.Intermediate, c.Hidden)
	case SectionDown:
		return PackedSize(c.Hidden, c.Intermediate)
	}
	switch {
	case strings.HasSuffix(name, SectionQKVBias):
		return 12 * c.Hidden
	case strings.HasSuffix(name, SectionUpBias):
		return 4 * c.Intermediate
	}
	return 4 * c.Hidden
}
