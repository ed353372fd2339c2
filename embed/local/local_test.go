package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/transformer"
	"github.com/loci-memory/loci/internal/unigram"
)

// smallCard is that of a model small enough to be made in a test.
var smallCard = modelfile.Card{Name: "small", Version: "7", Dimension: 32, MaxTokens: 40, Query: "q: ", Passage: "p: ",
	Layers: 2, Heads: 2, Intermediate: 64, Epsilon: 1e-6}

const smallPositions = 48

// smallSections are the sections of a model of random weights, whose pieces are
// the letters and a few pairs.
func smallSections(tb testing.TB) []modelfile.Section {
	tb.Helper()
	card, err := smallCard.Section()
	if err != nil {
		tb.Fatal(err)
	}
	pieces := []string{"<s>", "<pad>", "</s>", "<unk>", "▁", ":", ".", "天", "气", "天气", "th", "the", "▁the"}
	for c := 'a'; c <= 'z'; c++ {
		pieces = append(pieces, string(c))
	}
	var all, ends, scores []byte
	for i, p := range pieces {
		all = append(all, p...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(all)))
		scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(-float32(i%5)-1))
	}
	r := rand.New(rand.NewPCG(1, 2))
	values := func(n int, mean float32) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = mean + float32(r.NormFloat64())/5
		}
		return out
	}
	floats := func(name string, n int, mean float32) modelfile.Section {
		var b []byte
		for _, v := range values(n, mean) {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return modelfile.Section{Name: name, Data: string(b)}
	}
	matrix := func(name string, rows, cols int) modelfile.Section {
		packed, err := transformer.Pack(rows, cols, transformer.Quantize(nil, values(rows*cols, 0)))
		if err != nil {
			tb.Fatal(err)
		}
		return modelfile.Section{Name: name, Data: string(packed)}
	}
	width, mid := smallCard.Dimension, smallCard.Intermediate
	out := []modelfile.Section{card,
		{Name: unigram.SectionPieces, Data: string(all)}, {Name: unigram.SectionEnds, Data: string(ends)}, {Name: unigram.SectionScores, Data: string(scores)},
		{Name: transformer.SectionWords, Data: string(transformer.Quantize(nil, values(len(pieces)*width, 0)))},
		floats(transformer.SectionPositions, smallPositions*width, 0),
		floats(transformer.SectionEmbedGain, width, 1), floats(transformer.SectionEmbedBias, width, 0),
	}
	for i := range smallCard.Layers {
		at := func(name string) string { return transformer.LayerSection(i, name) }
		out = append(out,
			matrix(at(transformer.SectionQKV), 3*width, width), floats(at(transformer.SectionQKVBias), 3*width, 0),
			matrix(at(transformer.SectionOut), width, width), floats(at(transformer.SectionOutBias), width, 0),
			floats(at(transformer.SectionAttnGain), width, 1), floats(at(transformer.SectionAttnBias), width, 0),
			matrix(at(transformer.SectionUp), mid, width), floats(at(transformer.SectionUpBias), mid, 0),
			matrix(at(transformer.SectionDown), width, mid), floats(at(transformer.SectionDownBias), width, 0),
			floats(at(transformer.SectionFFNGain), width, 1), floats(at(transformer.SectionFFNBias), width, 0))
	}
	return out
}

func write(tb testing.TB, sections []modelfile.Section) string {
	tb.Helper()
	var b bytes.Buffer
	if err := modelfile.Write(&b, sections); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func open(tb testing.TB, data string, threads int) *Embedder {
	tb.Helper()
	e, err := Open(data, &Options{Threads: threads})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func embedAll(tb testing.TB, e *Embedder, texts []string, purpose embed.Purpose) [][]float32 {
	tb.Helper()
	v, err := e.Embed(tb.Context(), texts, purpose)
	if err != nil {
		tb.Fatal(err)
	}
	if len(v) != len(texts) {
		tb.Fatalf("%d vectors of %d texts", len(v), len(texts))
	}
	return v
}

func TestEmbed(t *testing.T) {
	e := open(t, write(t, smallSections(t)), 0)
	if e.Dimension() != 32 || e.MaxTokens() != 40 || e.ModelID() != "small@7.1" {
		t.Errorf("%d, %d, %s", e.Dimension(), e.MaxTokens(), e.ModelID())
	}
	if err := e.Verify(); err != nil {
		t.Error(err)
	}
	texts := []string{"the weather", "天气", "", " ", "the  weather ", "the \xff\x00", "the weather: 鱼"}
	queries, passages := embedAll(t, e, texts, embed.Query), embedAll(t, e, texts, embed.Passage)
	for i := range texts {
		if n := dot(queries[i], queries[i]); math.Abs(n-1) > 1e-6 {
			t.Errorf("%q has a vector of length %v", texts[i], math.Sqrt(n))
		}
		if slices.Equal(queries[i], passages[i]) {
			t.Errorf("%q: the purpose makes no difference", texts[i])
		}
	}
	if !slices.Equal(queries[0], queries[4]) || slices.Equal(queries[0], queries[1]) {
		t.Error("spaces make a difference, or words do not")
	}
	if v := embedAll(t, e, nil, embed.Query); len(v) != 0 {
		t.Errorf("%d vectors of no texts", len(v))
	}
	if _, err := e.Embed(t.Context(), texts, "other"); err == nil {
		t.Error("an unknown purpose passes")
	}
}

// A text of which the model knows next to nothing is refused and named, before any
// other is embedded.
func TestStrange(t *testing.T) {
	e := open(t, write(t, smallSections(t)), 2)
	for _, c := range []struct {
		texts []string
		named string
	}{
		{[]string{"鱼"}, "text 0"},
		{[]string{"the weather", "天气", "鱼 鱼 鱼", "the"}, "text 2"},
	} {
		v, err := e.Embed(t.Context(), c.texts, embed.Passage)
		if v != nil || !errors.Is(err, embed.ErrRefused) || !strings.Contains(err.Error(), c.named) {
			t.Errorf("%q: %v, %v", c.texts, v, err)
		}
	}
	embedAll(t, e, []string{"the weather", "the 鱼", ""}, embed.Passage)
}

// A text has the same bits in every company, order and number of threads, and
// in calls at the same time.
func TestCompany(t *testing.T) {
	data := write(t, smallSections(t))
	one, three := open(t, data, 1), open(t, data, 3)
	words := []string{"the", "weather", "天气", "a", "zzz", "鱼", ".", "thethe"}
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 30).Draw(rt, "words"), " ")
		}), 1, 40).Draw(rt, "texts")
		texts = slices.DeleteFunc(texts, func(text string) bool {
			_, err := one.Embed(t.Context(), []string{text}, embed.Passage)
			return errors.Is(err, embed.ErrRefused)
		})
		var want [][]float32
		for _, text := range texts {
			want = append(want, embedAll(t, one, []string{text}, embed.Passage)[0])
		}
		var wg sync.WaitGroup
		for _, e := range []*Embedder{one, three, three} {
			wg.Go(func() {
				got, err := e.Embed(t.Context(), texts, embed.Passage)
				if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("vectors differ, or %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// What Limit keeps gives the vector of the whole; a character more than that
// does not fit.
func TestLimit(t *testing.T) {
	e := open(t, write(t, smallSections(t)), 1)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abthe 天气鱼.　")), 0, 120, -1).Draw(rt, "text")
		kept, cut := e.Limit(text, embed.Query)
		if !strings.HasPrefix(text, kept) || cut != (len(kept) < len(text)) {
			rt.Fatalf("kept %q of %q, cut %v", kept, text, cut)
		}
		v, err := e.Embed(t.Context(), []string{text, kept}, embed.Query)
		if errors.Is(err, embed.ErrRefused) {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(v[0], v[1]) {
			rt.Fatalf("%q and %q have other vectors", text, kept)
		}
		if again, cut := e.Limit(kept, embed.Query); again != kept || cut {
			rt.Fatalf("%q is cut again, to %q", kept, again)
		}
	})
	for text, want := range map[string]bool{strings.Repeat("a", 34): false, strings.Repeat("天气 ", 60): true, "": false} {
		if _, cut := e.Limit(text, embed.Query); cut != want {
			t.Errorf("%q: cut %v", text, cut)
		}
	}
}

// cancelAfter is a context that ends when it has been asked n times.
type cancelAfter struct {
	context.Context
	mu sync.Mutex
	n  int
}

func (c *cancelAfter) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestContext(t *testing.T) {
	data := write(t, smallSections(t))
	texts := slices.Repeat([]string{"the weather is the weather"}, 50)
	for _, threads := range []int{1, 3} {
		e := open(t, data, threads)
		for n := range 20 {
			ctx := &cancelAfter{Context: t.Context(), n: n}
			if v, err := e.Embed(ctx, texts, embed.Query); !errors.Is(err, context.Canceled) || v != nil {
				t.Errorf("after %d looks: %d vectors, %v", n, len(v), err)
			}
		}
	}
}

// Whatever is wrong with a model file is an error, at Open or at the first
// text.
func TestDamage(t *testing.T) {
	replace := func(name string, change func(string) string) func([]modelfile.Section) []modelfile.Section {
		return func(s []modelfile.Section) []modelfile.Section {
			i := slices.IndexFunc(s, func(s modelfile.Section) bool { return s.Name == name })
			s[i].Data = change(s[i].Data)
			return s
		}
	}
	card := func(change func(*modelfile.Card)) func([]modelfile.Section) []modelfile.Section {
		return func(s []modelfile.Section) []modelfile.Section {
			c := smallCard
			change(&c)
			section, err := c.Section()
			if err != nil {
				t.Fatal(err)
			}
			s[0] = section
			return s
		}
	}
	half := func(s string) string { return s[:len(s)/2] }
	for name, change := range map[string]func([]modelfile.Section) []modelfile.Section{
		"no encoder":      card(func(c *modelfile.Card) { c.Layers = 0 }),
		"no name":         card(func(c *modelfile.Card) { c.Name = "" }),
		"more layers":     card(func(c *modelfile.Card) { c.Layers = 3 }),
		"wider":           card(func(c *modelfile.Card) { c.Dimension = 64 }),
		"odd heads":       card(func(c *modelfile.Card) { c.Heads = 3 }),
		"too few tokens":  card(func(c *modelfile.Card) { c.MaxTokens = 4 }),
		"half a matrix":   replace("layer.1.up", half),
		"half the words":  replace(transformer.SectionWords, half),
		"other pieces":    replace(unigram.SectionEnds, half),
		"missing section": func(s []modelfile.Section) []modelfile.Section { return s[:len(s)-1] },
		"no positions":    replace(transformer.SectionPositions, func(string) string { return "" }),
		"weight not a number": replace("layer.1.ffn.bias", func(s string) string {
			return "\x00\x00\xc0\x7f" + s[4:]
		}),
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(write(t, change(smallSections(t))), nil)
			if err == nil {
				_, err = e.Embed(t.Context(), []string{"the"}, embed.Query)
			}
			if !errors.Is(err, modelfile.ErrFormat) && !errors.Is(err, transformer.ErrNotFinite) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Open("no model", nil); !errors.Is(err, modelfile.ErrFormat) {
		t.Errorf("no model: %v", err)
	}
	if _, err := Open(write(t, smallSections(t)), &Options{Threads: -1}); err == nil {
		t.Error("-1 threads pass")
	}
	data := []byte(write(t, smallSections(t)))
	data[len(data)-1] ^= 1
	if err := open(t, string(data), 1).Verify(); !errors.Is(err, modelfile.ErrFormat) {
		t.Errorf("a flipped bit: %v", err)
	}
}

// FuzzDamage changes a few bytes of a model file, which only Verify would see:
// any text is embedded or gives an error.
func FuzzDamage(f *testing.F) {
	data := write(f, smallSections(f))
	f.Add(uint32(20), []byte("xx"), "the 天气")
	f.Add(uint32(700), []byte{0xff, 0x7f, 0x80}, "abc")
	f.Add(uint32(len(data)-6), []byte{0, 0, 0xc0, 0x7f}, "")
	f.Fuzz(func(t *testing.T, at uint32, change []byte, text string) {
		b := []byte(data)
		copy(b[int(at)%len(b):], change)
		e, err := Open(string(b), nil)
		if err != nil {
			return
		}
		kept, cut := e.Limit(text, embed.Query)
		if !strings.HasPrefix(text, kept) || cut != (kept != text) {
			t.Errorf("kept %q of %q, cut %v", kept, text, cut)
		}
		v, err := e.Embed(t.Context(), []string{text, "a"}, embed.Query)
		if err == nil && (len(v) != 2 || !(math.Abs(dot(v[0], v[0])-1) < 1e-5)) {
			t.Errorf("%d vectors, the first of square length %v", len(v), dot(v[0], v[0]))
		}
	})
}
