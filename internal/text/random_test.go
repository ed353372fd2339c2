package text

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// randomText joins fragments that the analyser treats in different ways, with
// stray bytes and any other code points between.
func randomText(rng *rand.Rand) string {
	fragments := []string{"a", "A", "cat", "Cats", "CAT", "the", "not", "s", "t", "ll", "don", "1", "23", "456", "茶", "馆", "𠮷", "ー", "ｶ", "ﾞ", "한",
		"\u1100", "\u1161", "\u11a8", "ไ", "ย", "ß", "İ", "é", "\u0301", "\u3099", "\uFE0F", "\u20E3", "\u200D", "\u00AD", "🎉", "ﷺ", "½", "Ꭰ", "ꭰ",
		" ", "　", ",", ".", "-", "_", "/", "\\", "@", ":", "::", "'", "’", "‐", "&", "+", "++", "#", "\"", "。", "\xff", "\xe8\x8c"}
	var b []byte
	for range rng.IntN(14) {
		if rng.IntN(12) == 0 {
			b = utf8.AppendRune(b, rune(rng.IntN(utf8.MaxRune+1)))
			continue
		}
		b = append(b, fragments[rng.IntN(len(fragments))]...)
	}
	return string(b)
}

func TestRandomTexts(t *testing.T) {
	rounds := 30_000
	if testing.Short() {
		rounds = 3000
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		s := randomText(rng)
		checkAnalyze(t, s)
		checkQuery(t, s)
		checkNormalize(t, s)
		if t.Failed() {
			return
		}
	}
}
