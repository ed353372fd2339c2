package local

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/models/e5small"
)

// realModel opens the built-in model.
func realModel(tb testing.TB) *Embedder {
	tb.Helper()
	e, err := Open(e5small.Data(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// golden are texts with vectors that a reference made of the source's weights
// widened to float32: all arithmetic in float32, nothing quantised, with the
// source's own splitting into pieces.
func golden(tb testing.TB) []goldenText {
	tb.Helper()
	data, err := os.ReadFile("testdata/e5small.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out []goldenText
	if err := json.Unmarshal(data, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

type goldenText struct {
	Purpose embed.Purpose `json:"purpose"`
	Text    string        `json:"text"`
	Tokens  int           `json:"tokens"`
	Vector  string        `json:"vector"` // base64 of float32, little endian
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// goldenBits is the digest of the vectors of the golden texts, little endian
// and one after another, that goldenID gives on every machine. If it is another
// on one machine only, a compiler fused a product with a sum; if it is another
// on all, the arithmetic or the weights changed, and transformer.Numerics or the
// model's version must be raised.
const (
	goldenID   = "e5-small-cut@1.1"
	goldenBits = "8a86ad0bfbb0d2291ba79dd4d08941f92cce75a408e2732259d980bb7b500bd8"
)

// The built-in model gives the vectors of the float reference, keeps the
// similarities between them, and always gives the same bits.
func TestGolden(t *testing.T) {
	e := realModel(t)
	bits := sha256.New()
	var want, got [][]float32
	for _, g := range golden(t) {
		raw, err := base64.StdEncoding.DecodeString(g.Vector)
		if err != nil {
			t.Fatal(err)
		}
		w := make([]float32, len(raw)/4)
		for i := range w {
			w[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		v, err := e.Embed(t.Context(), []string{g.Text}, g.Purpose)
		if err != nil {
			t.Fatal(err)
		}
		if len(v[0]) != e.Dimension() || len(w) != e.Dimension() {
			t.Fatalf("%d values, the reference has %d", len(v[0]), len(w))
		}
		if cos := dot(v[0], w); !(cos > 0.9995) {
			t.Errorf("%q: cosine %v to the reference", g.Text, cos)
		}
		engine, err := e.load()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(engine.encode(g.Text, g.Purpose)); n != g.Tokens {
			t.Errorf("%q: %d tokens, want %d", g.Text, n, g.Tokens)
		}
		if err := binary.Write(bits, binary.LittleEndian, v[0]); err != nil {
			t.Fatal(err)
		}
		want, got = append(want, w), append(got, v[0])
	}
	for i := range want {
		for j := range i {
			if a, b := dot(got[i], got[j]), dot(want[i], want[j]); math.Abs(a-b) > 0.005 {
				t.Errorf("similarity of texts %d and %d is %v, want %v", i, j, a, b)
			}
		}
	}
	if sum := fmt.Sprintf("%x", bits.Sum(nil)); e.ModelID() != goldenID || sum != goldenBits {
		t.Errorf("%s gives %s, want %s from %s", e.ModelID(), sum, goldenBits, goldenID)
	}
}

// In a frame, vectors are what they were less the centre and what lies in the
// directions, at unit length; and a question finds the passage that answers it in
// the other language before one about something else in its own.
func TestFrame(t *testing.T) {
	frame := e5small.Frame()
	plain := realModel(t)
	n := plain.Dimension()
	e, err := Open(e5small.Data(), &Options{Frame: frame})
	if err != nil {
		t.Fatal(err)
	}
	if e.ModelID() == plain.ModelID() {
		t.Error("another frame is another model, by the same id")
	}
	texts := []string{"猫在沙发上睡觉。", "Interest rates rose again in March."}
	got := embedAll(t, e, texts, embed.Passage)
	raw := embedAll(t, plain, texts, embed.Passage)
	for i := range texts {
		want := slices.Clone(raw[i])
		for k := range want {
			want[k] -= frame[k]
		}
		for axis := frame[n:]; len(axis) > 0; axis = axis[n:] {
			if c := dot(got[i], axis[:n]); math.Abs(c) > 1e-5 {
				t.Errorf("text %d: %v is left of a direction", i, c)
			}
			share := float32(dot(want, axis[:n]))
			for k := range want {
				want[k] -= share * axis[k]
			}
		}
		if c := dot(got[i], want) / math.Sqrt(dot(want, want)); math.Abs(c-1) > 1e-5 || math.Abs(dot(got[i], got[i])-1) > 1e-5 {
			t.Errorf("text %d: cosine %v to what it should be", i, c)
		}
	}
	question := "Where is the cat sleeping?"
	q := embedAll(t, e, []string{question}, embed.Query)[0]
	if answer, other := dot(q, got[0]), dot(q, got[1]); answer <= other {
		t.Errorf("cosines: %.3f to the answer, %.3f to another matter", answer, other)
	}
	bent := slices.Clone(frame)
	bent[n] += 0.1
	holed := slices.Clone(frame)
	holed[0] = float32(math.NaN())
	for name, bad := range map[string][]float32{"a part of a row": frame[1:], "a direction of another length": bent, "a value that is no number": holed} {
		if _, err := Open(e5small.Data(), &Options{Frame: bad}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Text in scripts that were left out is refused instead of being given one
// vector for all.
func TestStrangeScripts(t *testing.T) {
	e := realModel(t)
	for _, text := range []string{"Привет, как дела?", "สวัสดีครับ", "مرحبا بالعالم"} {
		if _, err := e.Embed(t.Context(), []string{"hello", text}, embed.Passage); !errors.Is(err, embed.ErrRefused) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"hello", "你好", "こんにちは", "안녕하세요", "naïve café", "🙂", "x := y[3] // ok", "12:30", "the word Привет means hello", "!"} {
		if _, err := e.Embed(t.Context(), []string{text}, embed.Query); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := Open(e5small.Data(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			e, err := Open(e5small.Data(), nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := e.load(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEmbed embeds the golden texts, one at a time and all in one call.
func BenchmarkEmbed(b *testing.B) {
	e := realModel(b)
	var texts []string
	tokens := 0
	for _, g := range golden(b) {
		texts = append(texts, g.Text)
		tokens += g.Tokens
	}
	for name, calls := range map[string][][]string{"query": {texts[2:3]}, "all": {texts}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, call := range calls {
					if _, err := e.Embed(b.Context(), call, embed.Query); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
