package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Normalize gives the form in which tags, aliases, names, judgments and query
// words are compared: NFKC, curly quotes straight, case folded (full folding),
// NFKC again, blanks trimmed outside and collapsed to one space inside. Each
// invalid UTF-8 byte becomes U+FFFD. Normalize(Normalize(s)) == Normalize(s)
// for every string.
func Normalize(s string) string {
	if isNormalASCII(s) {
		return s
	}
	b := appendCompat(make([]byte, 0, len(s)+len(s)/2), s)
	folded := make([]byte, 0, len(b)+16)
	ascii := true
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			folded = append(folded, lowerASCII(b[i]))
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		i += size
		ascii = false
		folded = appendFold(folded, straightQuote(r))
	}
	if !ascii {
		folded = appendCompat(b[:0], string(folded))
	}
	return string(collapse(folded))
}

// isNormalASCII reports whether s is ASCII and already in normal form.
func isNormalASCII(s string) bool {
	blank := true // what stands before the first byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ':
			if blank {
				return false
			}
			blank = true
			continue
		case c >= utf8.RuneSelf, '\t' <= c && c <= '\r', 'A' <= c && c <= 'Z':
			return false
		}
		blank = false
	}
	return !blank || s == ""
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// straightQuote maps the curly and low quotation marks to ' and ".
func straightQuote(r rune) rune {
	switch {
	case 0x2018 <= r && r <= 0x201B:
		return '\''
	case 0x201C <= r && r <= 0x201F:
		return '"'
	}
	return r
}

// collapse trims blanks and collapses inner runs of them to one space, in place.
func collapse(b []byte) []byte {
	out := b[:0]
	blank := false
	for i := 0; i < len(b); {
		r, size := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[i:])
		}
		if unicode.IsSpace(r) {
			blank = true
			i += size
			continue
		}
		if blank && len(out) > 0 {
			out = append(out, ' ')
		}
		blank = false
		out = append(out, b[i:i+size]...)
		i += size
	}
	return out
}

// Contains reports whether word occurs in text as a word. Both must be in
// normal form. An end of word that is a letter or digit of a script with
// blanks between its words must meet no other such letter in text: "cat" is
// not in "category". Scripts written without blanks have no such ends: 夫妻 is
// in 夫妻关系. A blank word is nowhere.
func Contains(text, word string) bool {
	if word == "" {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		if IsWord(text, at, at+len(word)) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

// IsWord reports whether text[from:to], which must not be empty, stands there
// as a word in the sense of Contains.
func IsWord(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	first, _ := utf8.DecodeRuneInString(text[from:to])
	last, _ := utf8.DecodeLastRuneInString(text[from:to])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !(inWord(first) && inWord(before)) && !(inWord(last) && inWord(after))
}
