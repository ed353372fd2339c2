package pager

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func cutAll(text string, size int) (pieces []string) {
	cutPages(text, size, func(piece string) bool {
		pieces = append(pieces, piece)
		return true
	})
	return pieces
}

// TestCutPlaces cuts at 32 bytes, so that places from 17 to 32 count.
func TestCutPlaces(t *testing.T) {
	const a = "0123456789"
	for _, c := range []struct{ name, text, first string }{
		{"short", a, a},
		{"as long as a page", a + a + a + "01", a + a + a + "01"},
		{"nowhere", a + a + a + a, a + a + a + "01"},
		{"a blank", a + a + " " + a + a, a + a + " "},
		{"the last blank", a + a + " x y " + a + a, a + a + " x y "},
		{"a blank in the first half", a + " " + a + a + a, a + " " + a + a + "0"},
		{"blanks", a + a + "     " + a + a, a + a + "     "},
		{"a line before a blank", a + a + "\nx y " + a + a, a + a + "\n"},
		{"a line of Windows", a + a + "\r\nx y " + a + a, a + a + "\r\n"},
		{"a line of the old Mac", a + a + "\rx y " + a + a, a + a + "\r"},
		{"the last line", a + a + "\nx\ny " + a + a, a + a + "\nx\n"},
		{"a paragraph before a line", a + a + "\n\nx\ny " + a + a, a + a + "\n\n"},
		{"a paragraph of Windows", a + a + "\r\n\r\nx\ny " + a + a, a + a + "\r\n\r\n"},
		{"a paragraph of the old Mac", a + a + "\r\rx\ry " + a + a, a + a + "\r\r"},
		{"a line of blanks", a + a + "\n \t\u3000\nx\ny " + a, a + a + "\n \t\u3000\n"},
		{"a sentence before a blank", a + a + ". x y " + a + a, a + a + ". "},
		{"no sentence", a + a + ".x y " + a + a, a + a + ".x y "},
		{"a number", a + a + "3.14 y " + a + a, a + a + "3.14 y "},
		{"an exclamation", a + a + "!  x y " + a + a, a + a + "!  "},
		{"a question in quotes", a + a + "?\") x y " + a + a, a + a + "?\") "},
		{"a quoted sentence follows", a + a + ". \"x y " + a + a, a + a + ". "},
		{"a line before a sentence", a + a + "\nx. y " + a + a, a + a + "\n"},
		{"a sentence of Chinese", strings.Repeat("字", 6) + "。" + strings.Repeat("字", 6), strings.Repeat("字", 6) + "。"},
		{"one in quotes", strings.Repeat("字", 5) + "？」" + strings.Repeat("字", 6), strings.Repeat("字", 5) + "？」"},
		{"two marks", strings.Repeat("字", 5) + "？！" + strings.Repeat("字", 6), strings.Repeat("字", 5) + "？！"},
		{"a blank behind one", strings.Repeat("字", 6) + "。 " + strings.Repeat("字", 6), strings.Repeat("字", 6) + "。 "},
		{"characters of Chinese", strings.Repeat("字", 12), strings.Repeat("字", 10)},
		{"a character that combines", a + a + "0123456789e\u0301" + a, a + a + "0123456789"},
		{"people", a + a + "012345" + "👩‍👩‍👧" + a, a + a + "012345"},
		{"flags", a + a + "012345" + "🇩🇪🇫🇷" + a, a + a + "012345"},
		{"a mark on a blank", a + a + "x \u0301" + a + a, a + a + "x \u0301" + a[:8]},
		{"one character longer than a page", "e" + strings.Repeat("\u0301", 40), "e" + strings.Repeat("\u0301", 15)},
		{"a line's end at the edge", a + a + a + "0\r\n" + a, a + a + a + "0"},
	} {
		if got := cutAll(c.text, 32); got[0] != c.first {
			t.Errorf("%s: %q, not %q", c.name, got[0], c.first)
		}
	}
	if got := cutAll("", 32); got != nil {
		t.Errorf("nothing became %q", got)
	}
	n := 0
	if cutPages(strings.Repeat(a, 100), 32, func(string) bool { n++; return n < 2 }); n != 2 {
		t.Error("not ended early:", n)
	}
}

// checkCut says what is wrong with pieces.
func checkCut(t *testing.T, text string, size int, pieces []string) {
	t.Helper()
	if strings.Join(pieces, "") != text {
		t.Fatal("the pieces are not the text")
	}
	for i, p := range pieces {
		if p == "" || len(p) > size || !utf8.ValidString(p) {
			t.Fatalf("piece %d of %q is %q", i, text, p)
		}
		if i < len(pieces)-1 {
			next := pieces[i+1]
			if len(p) <= size/2 {
				t.Fatalf("piece %d of %q has %d bytes", i, text, len(p))
			}
			if strings.HasSuffix(p, "\r") && strings.HasPrefix(next, "\n") {
				t.Fatalf("a line's end is cut in %q", text)
			}
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("Lorem ipsum.\n\nDolor sit amet! 漢字。かな\r\n👩‍👩‍👧", 32)
	f.Add(strings.Repeat(" ", 200), 40)
	f.Add(strings.Repeat("e\u0301\u200d", 90), 33)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = MinPageBytes + int(uint(size)%64)
		text = strings.ToValidUTF8(text, "?")
		pieces := cutAll(text, size)
		checkCut(t, text, size, pieces)
		// A long text of it is cut alike from the same place on.
		if len(pieces) > 1 && !slices.Equal(cutAll(strings.Join(pieces[1:], ""), size), pieces[1:]) {
			t.Fatalf("the rest of %q is cut elsewhere", text)
		}
	})
}

// TestCutHostile cuts texts in which every place looks like one. It must not
// take long.
func TestCutHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	const n = 1 << 20
	for _, unit := range []string{" ", "\n", "\r", "\r\n", "a\n", ".", ". ", "。", ")", "。)", "\u0301", "\u200d", "🇩", "\u3000", "a", "漢", " \n", ".\")"} {
		text := strings.Repeat(unit, n/len(unit))
		for _, size := range []int{MinPageBytes, MinPageBytes + 1, DefaultPageBytes, MaxPageBytes} {
			checkCut(t, text, size, cutAll(text, size))
		}
	}
}

func BenchmarkCut(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"english", "The quick brown fox jumps over the lazy dog. It does so often.\n"}, {"chinese", "从前有一只狐狸它跳过了一只懒狗"},
	} {
		text := strings.Repeat(c.text, 4<<20/len(c.text))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				cutPages(text, DefaultPageBytes, func(string) bool { return true })
			}
		})
	}
}
