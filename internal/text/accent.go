package text

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Accents are taken off Latin letters in terms, so that cafe finds café and the
// stemmer sees letters that it knows; few people type them in a query, and on
// the evaluation sets it costs nothing. Names and tags keep theirs: Normalize
// takes none off.

// firstAccent..lastAccent are Latin-1 letters to Latin Extended-B; the second
// range is Latin Extended Additional.
const (
	firstAccent, lastAccent         = 0xC0, 0x24F
	firstAdditional, lastAdditional = 0x1E00, 0x1EFF
)

// bases holds the letter without accents, 0 where there is none in ASCII: first
// for firstAccent on, then for firstAdditional on.
var bases = func() (t [lastAccent - firstAccent + 1 + lastAdditional - firstAdditional + 1]byte) {
	for i := range t {
		r := rune(firstAccent + i)
		if r > lastAccent {
			r += firstAdditional - lastAccent - 1
		}
		var b [utf8.UTFMax]byte
		d := norm.NFD.Properties(b[:utf8.EncodeRune(b[:], r)]).Decomposition()
		if len(d) > 0 && d[0] < utf8.RuneSelf {
			t[i] = d[0]
		}
	}
	for r, base := range map[rune]byte{'ø': 'o', 'ł': 'l', 'đ': 'd', 'ħ': 'h', 'ı': 'i'} {
		t[r-firstAccent] = base
	}
	return t
}()

// appendTermRune appends r as it stands in terms: folded and without accents.
func appendTermRune(dst []byte, r rune) []byte {
	if r == 'İ' { // folded it is an i and a dot
		return append(dst, 'i')
	}
	at := len(dst)
	dst = appendFold(dst, r)
	f, size := utf8.DecodeRune(dst[at:])
	i := -1
	switch {
	case firstAccent <= f && f <= lastAccent:
		i = int(f) - firstAccent
	case firstAdditional <= f && f <= lastAdditional:
		i = int(f) - firstAdditional + lastAccent - firstAccent + 1
	}
	if i >= 0 && at+size == len(dst) {
		switch base := bases[i]; {
		case base != 0:
			return append(dst[:at], base)
		case f == 'æ':
			return append(dst[:at], "ae"...)
		case f == 'œ':
			return append(dst[:at], "oe"...)
		}
	}
	return dst
}

// isDroppedMark holds for marks that terms do without: accents that did not
// compose, variation selectors and enclosing marks, which change how a
// character looks and not what it is.
func isDroppedMark(r rune) bool {
	return 0x300 <= r && r <= 0x36F || 0xFE00 <= r && r <= 0xFE0F || 0xE0100 <= r && r <= 0xE01EF ||
		0x20D0 <= r && r <= 0x20F0 || 0x180B <= r && r <= 0x180F
}
