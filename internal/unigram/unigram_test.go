package unigram

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/modelfile"
)

// A vocabulary in the form of the sections, and as a map.
type vocabulary struct {
	pieces, ends, scores []byte
	byText               map[string]float64
}

func (v *vocabulary) add(text string, score float32) {
	v.pieces = append(v.pieces, text...)
	v.ends = binary.LittleEndian.AppendUint32(v.ends, uint32(len(v.pieces)))
	v.scores = binary.LittleEndian.AppendUint32(v.scores, math.Float32bits(score))
	v.byText[text] = float64(score)
}

func newVocabulary() *vocabulary {
	v := &vocabulary{byText: map[string]float64{}}
	for _, s := range []string{"<s>", "<pad>", "</s>", "<unk>"} {
		v.add(s, -20)
	}
	clear(v.byText)
	return v
}

func (v *vocabulary) model(t interface{ Fatal(...any) }) *Model {
	m, err := New(string(v.pieces), string(v.ends), string(v.scores))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// small is a vocabulary in which some things can be said.
func small() *vocabulary {
	v := newVocabulary()
	for i, s := range []string{"▁", "▁the", "▁cat", "s", "a", "c", "t", "at", "▁cats", "知识", "知", "识", "▁知识", "库", "é", "8", "株式", "会社", "会", "社", "😀", "<s>"} {
		v.add(s, -3-float32(i)/8)
	}
	return v
}

func texts(m *Model, ids []int32) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, m.Piece(id))
	}
	return out
}

func TestEncode(t *testing.T) {
	m := small().model(t)
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\r\n\u3000\u200b\ufeff", ""},
		{"\x00", "▁ <unk>"},
		{"\x01\x02", ""},
		{"the cats", "▁the ▁cats"},
		{"  the \n\n cats \t", "▁the ▁cats"},
		{"thecats", "▁the c at s"},
		{"THE", "▁ <unk>"},
		{"知识库", "▁知识 库"},
		{"库知识", "▁ 库 知识"},
		{"the知识库", "▁the 知识 库"},
		{"qqqaqqq", "▁ <unk> a <unk>"},
		{"q q", "▁ <unk> ▁ <unk>"},
		{"e\u0301 é", "▁ é ▁ é"},
		{"８", "▁ 8"},
		{"ｃａｔ", "▁cat"},
		{"\u33ff", "▁ <unk> a <unk>"}, // gal
		{"㍿", "▁ 株式 会社"},
		{"😀", "▁ 😀"},
		{"th\u200de", "▁ t <unk> ▁ <unk>"},
		{"t\x01he", "▁the"},
		{"\xff\xfethe", "▁the"},
		{"▁cat▁cat", "▁cat ▁cat"},
		{"<s>", "▁ <s>"},
		{"～", "▁ <unk>"},
	} {
		ids, cut := m.Encode(nil, c.text, math.MaxInt)
		if got := strings.Join(texts(m, ids), " "); got != c.want || cut != len(c.text) {
			t.Errorf("%q gives %q up to %d, want %q", c.text, got, cut, c.want)
		}
		for _, id := range ids {
			if id < Specials && id != Unknown {
				t.Errorf("%q gives the special %d", c.text, id)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	m := small().model(t)
	for _, c := range []struct {
		text  string
		limit int
		want  string
		cut   int
	}{
		{"the cats", 1, "▁the", 3},
		{"the cats", 0, "", 0},
		{"the cats", -5, "", 0},
		{"", 0, "", 0},
		{"  ", 0, "", 2},
		{"the  ", 1, "▁the", 5},
		{"  thecats", 2, "▁the c", 6},
		{"知识库", 1, "▁知识", 6},
		{"a㍿", 2, "▁ a", 1},
		{"a㍿", 3, "▁ a 株式", 1}, // the character is not wholly there
		{"a㍿", 4, "▁ a 株式 会社", 4},
		{"¨a", 1, "▁", 0}, // a space and an accent come of one character
	} {
		ids, cut := m.Encode(nil, c.text, c.limit)
		if got := strings.Join(texts(m, ids), " "); got != c.want || cut != c.cut {
			t.Errorf("%q limited to %d gives %q up to %d, want %q up to %d", c.text, c.limit, got, cut, c.want, c.cut)
		}
	}
}

func TestEncodeAppends(t *testing.T) {
	m := small().model(t)
	ids, _ := m.Encode([]int32{Begin}, "the", 5)
	if want := []int32{Begin, 5}; !slices.Equal(ids, want) {
		t.Error(ids)
	}
}

func TestLookup(t *testing.T) {
	m := small().model(t)
	for id := int32(0); int(id) < m.Len(); id++ {
		got, ok := m.Lookup(m.Piece(id))
		if id < Specials {
			if ok && got < Specials {
				t.Errorf("the special %s is found", m.Piece(id))
			}
			continue
		}
		if got != id || !ok {
			t.Errorf("piece %d %q is found as %d, %v", id, m.Piece(id), got, ok)
		}
	}
	if id, ok := m.Lookup("▁th"); ok || id != 0 {
		t.Error(id)
	}
	if s := m.Score(5); s != -3.125 {
		t.Error(s)
	}
}

// naive normalises a text in one go.
func naive(text string) []string {
	var b, part strings.Builder
	flush := func() {
		b.WriteString(norm.NFKC.String(part.String()))
		part.Reset()
	}
	for _, r := range text {
		switch m := mapped(r); {
		case m == drop:
			flush()
		case m == ' ' || m == fullwidthTild:
			flush()
			b.WriteRune(m)
		default:
			part.WriteRune(r)
		}
	}
	flush()
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == ' ' })
}

// anyText draws text of what is hard to normalise.
func anyText(alphabet string) *rapid.Generator[string] {
	one := rapid.OneOf(rapid.SampledFrom([]rune(alphabet)), rapid.SampledFrom([]rune(alphabet)), rapid.Rune())
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(one, 0, 40, -1).Draw(t, "text")
		if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
			s = s[:rapid.IntRange(0, len(s)).Draw(t, "end")] + "\xe7" + s
		}
		return s
	})
}

const hard = "  ab知é\u0301\u0327ｶﾞ\u3099か\u200d\u200b\ufeff\x01\x00\t\n～¨´ﬁ㍿\ufdfa한\u1100\u1161\u11a8😀👩\u00a0▁"

func TestNormalizeAgainstWholeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText(hard).Draw(t, "text")
		want := ""
		for _, w := range naive(text) {
			want += space + w
		}
		if got := Normalize(text); got != want {
			t.Fatalf("%q gives %q, want %q", text, got, want)
		}
	})
}

// bestSplit tries every split of the first n characters of a word.
func bestSplit(word []rune, n int, v *vocabulary, unknown float64, memo map[int]split) split {
	if n == 0 {
		return split{}
	}
	if s, ok := memo[n]; ok {
		return s
	}
	best := split{score: math.Inf(-1)}
	for from := range n {
		text := string(word[from:n])
		score, ok := v.byText[text]
		if !ok {
			if from != n-1 {
				continue
			}
			score, text = unknown, "<unk>"
		}
		s := bestSplit(word, from, v, unknown, memo)
		if s.score+score > best.score {
			best = split{s.score + score, append(slices.Clone(s.pieces), text)}
		}
	}
	memo[n] = best
	return best
}

type split struct {
	score  float64
	pieces []string
}

func TestEncodeAgainstEverySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newVocabulary()
		letter := rapid.SampledFrom([]rune("ab知识"))
		for _, p := range rapid.SliceOfNDistinct(rapid.StringOfN(letter, 1, 4, -1), 0, 12, rapid.ID[string]).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "opens a word") {
				p = space + p
			}
			// Sums of eighths are exact, so equal scores are equal.
			if _, twice := v.byText[p]; !twice {
				v.add(p, -float32(rapid.IntRange(8, 80).Draw(t, "eighths"))/8)
			}
		}
		m := v.model(t)
		text := anyText("aabb知识 q").Draw(t, "text")
		var want []string
		for _, w := range naive(text) {
			runes := []rune(space + w)
			want = append(want, fuse(bestSplit(runes, len(runes), v, -30, map[int]split{}).pieces)...)
		}
		ids, cut := m.Encode(nil, text, math.MaxInt)
		if got := texts(m, ids); !slices.Equal(got, want) || cut != len(text) {
			t.Fatalf("%q gives %q up to %d, want %q", text, got, cut, want)
		}
	})
}

// fuse makes runs of unknown characters of a word one.
func fuse(pieces []string) []string {
	var out []string
	for _, p := range pieces {
		if p == "<unk>" && len(out) > 0 && out[len(out)-1] == "<unk>" {
			continue
		}
		out = append(out, p)
	}
	return out
}

// checkCuts holds for every text and limit.
func checkCuts(t interface{ Fatalf(string, ...any) }, m *Model, text string) {
	all, _ := m.Encode(nil, text, math.MaxInt)
	before := 0
	for limit := 0; limit <= len(all)+1; limit++ {
		ids, cut := m.Encode(nil, text, limit)
		switch {
		case !slices.Equal(ids, all[:min(limit, len(all))]):
			t.Fatalf("%q limited to %d gives %v, and %v without", text, limit, ids, all)
		case cut < before || cut > len(text):
			t.Fatalf("%q limited to %d is cut at %d, before at %d", text, limit, cut, before)
		case cut == len(text) && Normalize(text[:cut]) != "" && limit == 0:
			t.Fatalf("%q was encoded in no pieces", text)
		case limit >= len(all) && cut != len(text):
			t.Fatalf("%q ends at %d", text, cut)
		case cut < len(text) && !utf8.RuneStart(text[cut]) && utf8.ValidString(text):
			t.Fatalf("%q limited to %d is cut at %d, inside a character", text, limit, cut)
		}
		for _, id := range ids {
			if id < Unknown || int(id) >= m.Len() {
				t.Fatalf("%q gives %d", text, id)
			}
		}
		before = cut
	}
}

func TestCuts(t *testing.T) {
	m := small().model(t)
	rapid.Check(t, func(t *rapid.T) { checkCuts(t, m, anyText(hard+"thecats").Draw(t, "text")) })
}

// A word longer than one search covers is taken in parts.
func TestVeryLongWord(t *testing.T) {
	m := small().model(t)
	for _, unit := range []string{"a", "知识", "q", "㍿", "é"} {
		text := strings.Repeat(unit, 3*maxWord/2)
		ids, cut := m.Encode(nil, text, math.MaxInt)
		if cut != len(text) || !strings.HasPrefix(m.Piece(ids[0]), space) {
			t.Errorf("%q repeated: %d pieces from %d, up to %d of %d", unit, len(ids), ids[0], cut, len(text))
		}
		for _, limit := range []int{1, 2, 500} {
			short, cut := m.Encode(nil, text, limit)
			if n := min(limit, len(ids)); !slices.Equal(short, ids[:n]) || cut == 0 && limit > 2 {
				t.Errorf("%q repeated, limited to %d: %v up to %d", unit, limit, short, cut)
			}
		}
		spaced := text + " the"
		if ids, _ := m.Encode(nil, spaced, math.MaxInt); m.Piece(ids[len(ids)-1]) != "▁the" {
			t.Errorf("%q repeated: the word behind it is lost", unit)
		}
	}
}

func TestConcurrent(t *testing.T) {
	m := small().model(t)
	want, _ := m.Encode(nil, "the cats 知识库", 50)
	done := make(chan []int32)
	for range 8 {
		go func() {
			var ids []int32
			for range 200 {
				ids, _ = m.Encode(ids[:0], "the cats 知识库", 50)
			}
			done <- ids
		}()
	}
	for range 8 {
		if ids := <-done; !slices.Equal(ids, want) {
			t.Error(ids)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*vocabulary){
		"nothing":          func(v *vocabulary) { *v = vocabulary{byText: v.byText} },
		"no specials":      func(v *vocabulary) { v.ends, v.scores = v.ends[:12], v.scores[:12] },
		"half an end":      func(v *vocabulary) { v.ends = v.ends[:len(v.ends)-1] },
		"a score fewer":    func(v *vocabulary) { v.scores = v.scores[4:] },
		"an empty piece":   func(v *vocabulary) { v.add("", -1) },
		"a piece twice":    func(v *vocabulary) { v.add("▁the", -1) },
		"a long piece":     func(v *vocabulary) { v.add(strings.Repeat("x", maxPieceBytes+1), -1) },
		"no text":          func(v *vocabulary) { v.add("\xff", -1) },
		"a score above 0":  func(v *vocabulary) { v.add("x", 0.5) },
		"not a number":     func(v *vocabulary) { v.add("x", float32(math.NaN())) },
		"minus infinity":   func(v *vocabulary) { v.add("x", float32(math.Inf(-1))) },
		"bytes behind":     func(v *vocabulary) { v.pieces = append(v.pieces, 'x') },
		"an end before":    func(v *vocabulary) { binary.LittleEndian.PutUint32(v.ends[8:], 0) },
		"an end far away":  func(v *vocabulary) { binary.LittleEndian.PutUint32(v.ends[8:], 1<<31) },
		"an end cut short": func(v *vocabulary) { v.pieces = v.pieces[:len(v.pieces)-1] },
	} {
		v := small()
		change(v)
		if _, err := New(string(v.pieces), string(v.ends), string(v.scores)); !errors.Is(err, modelfile.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzEncode(f *testing.F) {
	m := small().model(f)
	f.Add("the cats 知识库 ｶﾞ㍿ e\u0301")
	f.Add(hard)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 {
			text = text[:300]
		}
		checkCuts(t, m, text)
	})
}

func FuzzNew(f *testing.F) {
	v := small()
	f.Add(v.pieces, v.ends, v.scores)
	f.Add([]byte("<s><pad></s><unk>"), []byte{3, 0, 0, 0, 8, 0, 0, 0, 12, 0, 0, 0, 17, 0, 0, 0}, make([]byte, 16))
	f.Fuzz(func(t *testing.T, pieces, ends, scores []byte) {
		m, err := New(string(pieces), string(ends), string(scores))
		if err != nil {
			if !errors.Is(err, modelfile.ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		checkCuts(t, m, "the cats 知识库 "+m.Piece(int32(m.Len()-1)))
	})
}
