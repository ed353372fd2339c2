package unigram_test

import (
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/unigram"
	"github.com/loci-memory/loci/models/e5small"
)

// Our own sentences and the pieces that the reference engine of the weights
// splits them into, with the whole vocabulary.
//
//go:embed testdata/golden.json
var golden []byte

func builtin(t testing.TB) *unigram.Model {
	t.Helper()
	f, err := modelfile.Open(e5small.Data())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); err != nil {
		t.Fatal(err)
	}
	m, err := unigram.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func pieces(m *unigram.Model, ids []int32) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, m.Piece(id))
	}
	return out
}

func TestAgainstReference(t *testing.T) {
	var cases []struct {
		Text   string
		Pieces []string
	}
	if err := json.Unmarshal(golden, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 30 {
		t.Fatalf("only %d sentences", len(cases))
	}
	m := builtin(t)
	for _, c := range cases {
		ids, cut := m.Encode(nil, c.Text, math.MaxInt)
		if got := pieces(m, ids); !slices.Equal(got, c.Pieces) || cut != len(c.Text) {
			t.Errorf("%q gives %q, want %q", c.Text, got, c.Pieces)
		}
	}
}

// Where the reference engine differs from the tokenizer that the model was
// trained with, the latter is followed.
func TestUnlikeReference(t *testing.T) {
	m := builtin(t)
	for _, c := range []struct{ text, want string }{
		{"behind ", "▁behind"},                       // no piece for a space at the end
		{"cafe\u0301", "▁café"},                      // accents are composed
		{"ｶﾞ", "▁ ガ"},                                // so are the marks of half-width kana
		{"\U0001F9FF\U0001FA70", "▁ <unk>"},          // one piece for a run of unknown characters
		{"Россия and עברית", "▁ <unk> ▁and ▁ <unk>"}, // scripts that were left out
		{"～", "▁ ～"},                                 // not a tilde
	} {
		ids, _ := m.Encode(nil, c.text, math.MaxInt)
		if got := strings.Join(pieces(m, ids), " "); got != c.want {
			t.Errorf("%q gives %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSpecials(t *testing.T) {
	m := builtin(t)
	for id, want := range map[int32]string{unigram.Begin: "<s>", unigram.Pad: "<pad>", unigram.End: "</s>", unigram.Unknown: "<unk>"} {
		if got := m.Piece(id); got != want {
			t.Errorf("special %d is %s, want %s", id, got, want)
		}
	}
	// Behind the specials, pieces are in the order of their frequency.
	for id := int32(unigram.Specials + 1); int(id) < m.Len(); id++ {
		if m.Score(id) > m.Score(id-1)+1e-3 {
			t.Fatalf("piece %d is more frequent than the one before", id)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	f, err := modelfile.Open(e5small.Data())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := unigram.Load(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	m := builtin(b)
	for name, text := range map[string]string{
		"English": strings.Repeat("The committee met on Tuesday and agreed to answer in both languages. ", 4),
		"Chinese": strings.Repeat("我昨天在上海见了王小明，他说下个月要搬到北京去。", 4),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var ids []int32
			for b.Loop() {
				ids, _ = m.Encode(ids[:0], text, 512)
			}
		})
	}
}
