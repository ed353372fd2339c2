package text

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// appendCompat appends the NFKC form of s, each invalid byte being U+FFFD.
// It is norm.NFKC with short cuts for the characters that most text is made
// of, whose form needs no tables: ASCII, CJK and its full-width punctuation,
// and Western letters.
func appendCompat(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			j := i + 1
			for j < len(s) && s[j] < utf8.RuneSelf {
				j++
			}
			dst = append(dst, s[i:j]...)
			i = j
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if to := compatOf(r); to != 0 {
			if r == utf8.RuneError || to != r {
				dst = utf8.AppendRune(dst, to)
				i += size
				continue
			}
			j := i + size
			for j < len(s) && s[j] >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(s[j:])
				if r == utf8.RuneError || compatOf(r) != r {
					break
				}
				j += size
			}
			dst = append(dst, s[i:j]...)
			i = j
			continue
		}
		j := i + size
		for j < len(s) && s[j] >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[j:])
			if compatOf(r) != 0 {
				break
			}
			j += size
		}
		// This also takes back from dst what the run's marks compose with.
		dst = norm.NFKC.AppendString(dst, s[i:j])
		i = j
	}
	return dst
}

// compatOf gives the NFKC form of a non-ASCII rune that always has the same
// form, of one rune, and never changes what stands before it. It gives 0 for
// every other rune.
func compatOf(r rune) rune {
	switch {
	case 0x4E00 <= r && r < 0xA000, 0x3400 <= r && r < 0x4DC0, 0xAC00 <= r && r < 0xD7A4,
		0x3041 <= r && r < 0x3097, 0x30A1 <= r && r < 0x30FF, 0x20000 <= r && r < 0x2A6E0,
		0x3001 <= r && r < 0x3012, r == utf8.RuneError:
		return r
	case 0xFF01 <= r && r <= 0xFF5E:
		return r - 0xFEE0
	case r == 0x3000:
		return ' '
	case 0xC0 <= r && r < 0x132, 0x400 <= r && r < 0x460,
		0x2012 <= r && r < 0x2017, 0x2018 <= r && r < 0x2024, 0x3014 <= r && r < 0x301C:
		return r
	}
	return 0
}
