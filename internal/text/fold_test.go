package text

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// The oracle is x/text's folder; Cherokee is where it goes in circles.
func TestAppendFoldEveryCodePoint(t *testing.T) {
	fold := cases.Fold()
	bad := 0
	for r := rune(0); r <= utf8.MaxRune; r += step() {
		if !utf8.ValidRune(r) || 0x13A0 <= r && r <= 0x13FD || 0xAB70 <= r && r <= 0xABBF {
			continue
		}
		want := fold.String(string(r))
		if got := string(appendFold(nil, r)); got != want {
			if bad++; bad < 40 {
				t.Errorf("fold of %U: %+q, want %+q", r, got, want)
			}
		}
	}
}

func TestAppendFoldCherokeeOneWay(t *testing.T) {
	for r := rune(0x13A0); r <= 0xABBF; r++ {
		if 0x13FD < r && r < 0xAB70 {
			continue
		}
		once := appendFold(nil, r)
		f, _ := utf8.DecodeRune(once)
		if f < 0x13A0 || f > 0x13F7 {
			t.Errorf("fold of %U is %U, which is no Cherokee capital", r, f)
		}
		if again := appendFold(nil, f); string(again) != string(once) {
			t.Errorf("fold of %U is not stable: %+q, then %+q", r, once, again)
		}
	}
	if got := string(appendFold(nil, 0xAB70)); got != "\u13A0" {
		t.Errorf("fold of U+AB70: %+q", got)
	}
	if got := string(appendFold(nil, 0x13F8)); got != "\u13F0" {
		t.Errorf("fold of U+13F8: %+q", got)
	}
}

// step is how far tests over every code point go at a time: one, unless the
// test is to be short.
func step() rune {
	if testing.Short() {
		return 37
	}
	return 1
}
