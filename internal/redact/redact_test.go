package redact

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestHide(t *testing.T) {
	const text = "Her sister's blood pressure has been high since May."
	for _, c := range []struct{ message, want string }{
		{"connection refused", "connection refused"},
		{"cannot embed: " + text, "cannot embed: [...]"},
		{`bad input "Her sister's blood pre..."`, `bad input "[...]..."`},
		{"near 阿青: no", "near [...]: no"},
		{"key sk-1: no", "key [...]: no"},
		{"twice 阿青阿青", "twice [...]"},
		{"\x9d\x92Her sis\xffter's blood", "[...]"},
		{"青aaa\xffaaa青, 青\x9d\x92aaaaaa青", "[...], [...]"},
		{"key s\xffk-1", "key [...]"},
		{"", ""},
	} {
		if got := Hide(c.message, []string{"sk-1", ""}, []string{text, "阿青", "no", "", "青aaaaaa青"}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestHideProperty has no message share a run with a text that stands in it.
func TestHideProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("ab 青.")), 0, 60, -1)
		text := letters.Draw(rt, "text")
		n := len(text)
		from := rapid.IntRange(0, n).Draw(rt, "from")
		message := letters.Draw(rt, "before") + text[from:] + letters.Draw(rt, "after")
		got := Hide(message, nil, []string{text})
		if !utf8.ValidString(got) {
			rt.Fatalf("%q is not valid", got)
		}
		for i := 0; i+sharedRun <= n; i++ {
			if run := text[i : i+sharedRun]; strings.Contains(got, run) && utf8.ValidString(run) {
				rt.Fatalf("%q still has %q", got, run)
			}
		}
	})
}
