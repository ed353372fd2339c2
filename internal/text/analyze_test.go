package text

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// terms gives the terms of s and its length.
func terms(s string) (out []string, length int) {
	length = Analyze(s, func(term []byte) { out = append(out, string(term)) })
	return out, length
}

func TestAnalyze(t *testing.T) {
	for _, c := range []struct {
		name, in, want string // terms separated by blanks
		length         int
	}{
		{"empty", "", "", 0},
		{"blanks", " \t\n　", "", 0},
		{"English is stemmed", "Hoping ponies, RUNNING!", "hope poni run", 3},
		{"stop words are left out", "The cat and I, who are in it", "cat", 1},
		{"numbers are kept", "in 2023 or 1,000 or 12,34", "2023 1000 12 34", 4},
		{"possessive and shortened verbs", "Anna's dog’s we're I'll don't can't", "anna dog", 2},
		{"other apostrophes", "O'Brien", "o brien obrien", 2},

		{"snake", "max_tokens", "max token maxtoken", 2},
		{"kebab", "foo-bar", "foo bar foobar", 2},
		{"camel", "getUserName", "get user name getusernam", 3},
		{"capitals before a word", "XMLParser", "xml parser xmlparser", 2},
		{"plural of capitals", "APIs", "api", 1},
		{"letters and digits", "sha256", "sha 256 sha256", 2},
		{"version", "v1.2.3", "v 1 2 3 v1.2.3", 4},
		{"decimal", "3.14", "3 14 3.14", 2},
		{"date", "2023-05-08", "2023 05 08 2023-05-08", 3},
		{"path", "src/b/main.go", "src b main go srcbmaingo", 4},
		{"e-mail", "bob@mail.org", "bob mail org bobmailorg", 3},
		{"C++", "C++ and g++,", "c c++ g g++", 2},
		{"C#", "C#, F#", "c c# f f#", 2},
		{"C++ with a year", "C++17", "c c++ 17", 2},
		{"scope operator", "std::vector", "std vector stdvector", 2},
		{"only stop words inside", "to-do", "todo", 1},
		{"spellings of one thing", "WiFi wi-fi wifi wi_fi", "wi fi wifi wi fi wifi wifi wi fi wifi", 7},
		{"dangling connectors", "-a1- _foo_ bar. baz: /tmp/", "1 a1 foo bar baz tmp", 5},

		{"one character", "茶", "茶", 1},
		{"pairs", "红茶馆", "红 茶 红茶 馆 茶馆", 3},
		{"punctuation parts", "茶。馆", "茶 馆", 2},
		{"kana", "スーパー", "ス ー スー パ ーパ ー パー", 4},
		{"half-width kana", "ｶﾞｽ", "ガ ス ガス", 2},
		{"hangul", "한국", "한 국 한국", 2},
		{"decomposed hangul", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "한 국 한국", 2},
		{"Thai", "ดี", "ด ี ดี", 2},
		{"variation selector between", "葛\U000E0100城", "葛 城 葛城", 2},
		{"rare plane", "𠮷野", "𠮷 野 𠮷野", 2},
		{"scripts in one word", "重跑gen-itgc后50条", "重 跑 重跑 gen itgc genitgc 后 50 条", 7},
		{"full width", "ＡＰＩ　ｖ２", "api v 2 v2", 3},

		{"accents", "cafe\u0301 CAFÉ cafés cafe", "cafe cafe cafe cafe", 4},
		{"Latin without a simple base", "Ærøskøbing Łódź Đà Việt œuvre İI", "aeroskob lodz da viet oeuvr ii", 6},
		{"accents that do not compose", "x\u0304y за\u0301мок", "xy замок", 2},
		{"letters of other alphabets keep their marks", "Ёлка йод άλφα", "ёлка йод άλφα", 3},
		{"sharp s", "Straße", "strass", 1},
		{"Russian", "Привет, Мир", "привет мир", 2},
		{"soft hyphen", "co\u00ADoperate", "cooper", 1},
		{"ligature", "ﬁle", "file", 1},
		{"fraction", "½", "1 2", 2},
		{"emoji", "🎉👩‍💻🇨🇳", "", 0},
		{"keycap", "1\uFE0F\u20E3", "1", 1},
		{"emoji beside words", "party🎉time", "parti time", 2},
		{"lone marks", "\u0301\u0302 \uFE0F", "", 0},
		{"invalid UTF-8", "foo\xff\xfebar \xe8\x8c", "foo bar", 2},
		{"symbols", "← © $ % ^ * ( ) [ ] { } | \" ~ `", "", 0},
		{"operators", "cat AND (dog OR NOT \"big fish\") +a -b", "cat dog big fish b", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, n := terms(c.in)
			if strings.Join(got, " ") != c.want || n != c.length {
				t.Errorf("terms of %q\n got %q, length %d\nwant %q, length %d", c.in, got, n, strings.Fields(c.want), c.length)
			}
		})
	}
}

func TestAnalyzeLongTokens(t *testing.T) {
	long := strings.Repeat("abcde", 100)
	got, n := terms(long)
	if len(got) != 1 || got[0] != long[:MaxTermRunes] || n != 1 {
		t.Errorf("terms of a word of 500 letters: %q, length %d", got, n)
	}
	wide := strings.Repeat("ж", 100)
	if got, _ := terms(wide); len(got) != 1 || utf8.RuneCountInString(got[0]) != MaxTermRunes {
		t.Errorf("terms of 100 Russian letters: %q", got)
	}
	hash := "9f86d081884c7d659a2feaa0c55ad015"
	if got, _ := terms(hash); !slices.Equal(got, []string{hash}) {
		t.Errorf("terms of a hash: %q", got)
	}
	path := strings.Repeat("folder/", 30)
	got, n = terms(path)
	for _, term := range got {
		if term != "folder" {
			t.Errorf("a path of 210 bytes has the term %q", term)
		}
	}
	if n != 30 {
		t.Errorf("length of 30 folders: %d", n)
	}
}

// The buffers of one call must not show in the next.
func TestAnalyzerReuse(t *testing.T) {
	var a Analyzer
	for _, s := range []string{"getUserName 红茶馆", "cat", "", "v1.2.3 foo_bar", "don't", "x"} {
		want, wantN := terms(s)
		var got []string
		n := a.Analyze(s, func(term []byte) { got = append(got, string(term)) })
		if n != wantN || !slices.Equal(got, want) {
			t.Errorf("terms of %q with used buffers: %q, %d; with new ones: %q, %d", s, got, n, want, wantN)
		}
	}
}

// plain is a short cut of scan.
func TestPlainIsScan(t *testing.T) {
	for _, s := range []string{"cat", "Cat ", "CAT,", "caT", "CATs", "cat.", "cat. x", "cat.x", "cat's", "cat:", "cat::x", "cat;x", "cat茶", "cat1", "cat+", "c#"} {
		a := Analyzer{buf: []byte(s)}
		end := a.plain(0)
		if end == 0 {
			continue
		}
		fast := slices.Clone(a.whole)
		at := a.scan(0)
		if len(a.parts) != 1 || !bytes.Equal(a.part(0), fast) || at != end || a.suffix(at) != "" {
			t.Errorf("%q: plain gives %q to %d, scan %q in %d parts to %d", s, fast, end, a.whole, len(a.parts), at)
		}
	}
}

// checkAnalyze tests what holds for every text.
func checkAnalyze(t *testing.T, s string) {
	t.Helper()
	got, n := terms(s)
	if n < 0 || n > utf8.RuneCount(appendCompat(nil, s)) {
		t.Errorf("length of %q: %d", s, n)
	}
	if n > 0 != (len(got) > 0) {
		t.Errorf("%q: length %d with %d terms", s, n, len(got))
	}
	// Each character gives itself and a pair; each part itself, with one whole.
	if len(got) > 2*n {
		t.Errorf("%q: %d terms for length %d", s, len(got), n)
	}
	for _, term := range got {
		switch {
		case term == "":
			t.Errorf("%q has an empty term", s)
		case !utf8.ValidString(term):
			t.Errorf("%q has the invalid term %q", s, term)
		case utf8.RuneCountInString(term) > MaxTermRunes:
			t.Errorf("%q has the long term %q", s, term)
		case strings.ContainsAny(term, " \t\n"):
			t.Errorf("%q has the term %q with a blank", s, term)
		}
	}
	// Blanks and punctuation at the ends say nothing.
	more, m := terms(" «" + s + "» ")
	if m != n || !slices.Equal(more, got) {
		t.Errorf("terms of %q in quotation marks: %q, without: %q", s, more, got)
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkAnalyze(t, s) })
}

// seeds start the fuzzers with something of everything.
var seeds = []string{
	"", "The cat's getUserName foo-bar v1.2.3 C++", "重跑gen-itgc后50条", "ｶﾞｽ한국สวัสดี", "e\u0301ß\u0301Ꭰꭰ", "1,000,000.5",
	"\xff\xc3\x28", "👩‍💻1\uFE0F\u20E3", "a_b-c.d/e\\f@g:h'i&j+k#l::m", "don't shan’t", "ABCdEFg1h2I3", strings.Repeat("x", 80),
	"\u1112\u1161\u11ab", "́̂ " + strings.Repeat("\u0301", 40), "½²℃㍿ﷺ",
}
