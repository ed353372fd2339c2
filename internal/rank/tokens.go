package rank

import "unicode/utf8"

// Tokens of a character, in hundredths: no model's own count, which nobody but
// the model knows, but near enough for budgets.
const (
	asciiTokens = 25
	otherTokens = 48
	tokenUnits  = 100
)

// Tokens estimates how many tokens a text has: 0.25 a character in ASCII and 0.48
// elsewhere, rounded up.
func Tokens(s string) int {
	units := 0
	for _, r := range s {
		units += tokensOf(r)
	}
	return whole(units)
}

// whole rounds up to tokens.
func whole(units int) int { return (units + tokenUnits - 1) / tokenUnits }

func tokensOf(r rune) int {
	if r < utf8.RuneSelf {
		return asciiTokens
	}
	return otherTokens
}

// CutTokens gives the longest beginning of a text that has at most so many
// tokens, in whole characters, and whether anything was cut off.
func CutTokens(s string, most int) (kept string, cut bool) {
	if len(s)/2 < most {
		return s, false // two characters are less than a token, and each has a byte
	}
	units := 0
	for i, r := range s {
		if units += tokensOf(r); whole(units) > most {
			return s[:i], true
		}
	}
	return s, false
}
