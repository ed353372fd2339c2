package text

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {" ", ""}, {"nova", "nova"}, {" NOVA ", "nova"}, {"ｎｏｖａ", "nova"},
		{"机器   学习", "机器 学习"}, {"机器　学习", "机器 学习"}, {"a \t\r\n b", "a b"}, {"a\u00A0b\u2003c", "a b c"},
		{"港口 ａｐｉ 稳定", "港口 api 稳定"}, {"港口 API  稳定", "港口 api 稳定"}, {"港口 API 稳定。", "港口 api 稳定。"},
		{"‘a’ “b” ‚c‛ „d‟", `'a' 'b' 'c' 'd'`}, {"Straße", "strasse"}, {"STRASSE", "strasse"}, {"ß\u0301", "sś"},
		{"ﬁne", "fine"}, {"Ⅷ", "viii"}, {"ΣΊΣΥΦΟΣ", "σίσυφοσ"}, {"İ", "i\u0307"}, {"Ꭰ", "Ꭰ"}, {"ꭰ", "Ꭰ"}, {"ᏸ", "Ᏸ"},
		{"e\u0301", "é"}, {"a\xffb", "a\uFFFDb"}, {"\xe8\x8c", "\uFFFD\uFFFD"}, {"\x00", "\x00"}, {"Å", "å"}, {"ſ", "s"},
		{"½", "1⁄2"}, {"\u200B", "\u200B"}, {"\u3099 a", "\u3099 a"},
	} {
		want := c.want
		if strings.Contains(c.in, "“") {
			want = `'a' "b" 'c' "d"`
		}
		if got := Normalize(c.in); got != want {
			t.Errorf("Normalize(%+q) = %+q, want %+q", c.in, got, want)
		}
	}
}

func TestNormalizeEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r += step() {
		s := string(r)
		once := Normalize(s)
		if again := Normalize(once); again != once {
			t.Errorf("%U: %+q, again %+q", r, once, again)
		}
		if got := Normalize(" " + s + "\t"); got != once && !unicode.IsMark(r) && !strings.HasPrefix(norm.NFKC.String(s), " ") {
			t.Errorf("%U between blanks: %+q, alone %+q", r, got, once)
		}
	}
}

// The short cuts change nothing.
func TestAppendCompatIsNFKC(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r += step() {
		if !utf8.ValidRune(r) {
			continue
		}
		// What stands before and after may compose with it.
		for _, s := range []string{string(r), "aか한" + string(r) + "\u0301\u3099"} {
			if got, want := string(appendCompat(nil, s)), norm.NFKC.String(s); got != want {
				t.Fatalf("form of %+q: %+q, want %+q", s, got, want)
			}
		}
	}
}

func TestNormalizeRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ranges := [][2]rune{{0, 0x7F}, {0x80, 0x24F}, {0x300, 0x345}, {0x370, 0x3FF}, {0x1E00, 0x1FFF}, {0x13A0, 0x13FD}, {0xAB70, 0xABBF},
		{0x1100, 0x11FF}, {0xAC00, 0xAC40}, {0x3041, 0x30FF}, {0xFB00, 0xFFEF}, {0x2000, 0x2070}, {0x4E00, 0x4E20}, {0, utf8.MaxRune}}
	for range 100_000 {
		var b []byte
		for range rng.IntN(10) {
			if rng.IntN(30) == 0 {
				b = append(b, byte(rng.IntN(256)))
				continue
			}
			x := ranges[rng.IntN(len(ranges))]
			b = utf8.AppendRune(b, x[0]+rune(rng.IntN(int(x[1]-x[0]+1))))
		}
		checkNormalize(t, string(b))
		if t.Failed() {
			return
		}
	}
}

func checkNormalize(t *testing.T, s string) {
	t.Helper()
	once := Normalize(s)
	if again := Normalize(once); again != once {
		t.Errorf("Normalize(%+q) = %+q, again %+q", s, once, again)
	}
	if !utf8.ValidString(once) {
		t.Errorf("Normalize(%+q) = %+q is not UTF-8", s, once)
	}
	if once != strings.TrimSpace(once) || strings.Contains(once, "  ") {
		t.Errorf("Normalize(%+q) = %+q has blanks to spare", s, once)
	}
	if got, want := string(appendCompat(nil, s)), norm.NFKC.String(validBytes(s)); got != want {
		t.Errorf("form of %+q: %+q, want %+q", s, got, want)
	}
}

// validBytes puts U+FFFD for each invalid byte.
func validBytes(s string) string {
	return string([]rune(s))
}

func FuzzNormalize(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkNormalize(t, s) })
}

func TestContains(t *testing.T) {
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"老柳的夫妻关系", "夫妻", true},
		{"category list", "cat", false},
		{"a cat list", "cat", true},
		{"cat", "cat", true},
		{"concat cat", "cat", true},
		{"bobcat", "cat", false},
		{"cat2", "cat", false},
		{"cat茶", "cat", true},
		{"茶cat馆", "cat", true},
		{"big cat.", "big cat", true},
		{"c++ is", "c++", true},
		{"c++11", "c++", true},
		{"xc++", "c++", false},
		{"cate\u0301", "cate", false},
		{"", "cat", false},
		{"cat", "", false},
		{"ccat cat", "cat", true},
	} {
		if got := Contains(c.text, c.word); got != c.want {
			t.Errorf("Contains(%q, %q) = %v", c.text, c.word, got)
		}
	}
}
