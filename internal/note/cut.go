package note

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is how many characters may be moved to the next piece to keep a word
// whole. What is longer is no word.
const maxWord = 32

// cut returns where to cut s, which has more than target characters or is
// taken whole: at most target characters from its start and at least one.
func cut(s string, target int) int {
	c := cutter{s: s, least: target / 4}
	for i, n := 0, 0; ; n++ {
		if i == len(s) {
			return i
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		c.see(r, size, i, n)
		if n == target {
			if c.best > 0 {
				return c.best
			}
			return keepWhole(s, keepMarkup(s, i))
		}
		i += size
	}
}

// A cutter looks for the last sentence end. It is shown one character after
// the other, since only the one behind a sentence end tells that it is one.
type cutter struct {
	s       string
	least   int // characters that a piece must have to end with a sentence
	best    int // where the last sentence ends
	open    int // where a sentence ends unless the next character says no, or 0
	western bool
}

// see takes the n-th character, r, which stands at i and has size bytes.
func (c *cutter) see(r rune, size, i, n int) {
	end := i + size
	if c.open > 0 {
		if isStop(r) || isCloser(r) {
			c.open = end
			c.western = c.western && !isWideStop(r)
			return
		}
		// A Western stop needs a blank behind it: 3.5 and a.go are no ends.
		if n >= c.least && (!c.western || unicode.IsSpace(r) || isCJK(r)) {
			c.best = i
		}
		c.open = 0
	}
	switch {
	case isStop(r):
		if r != '.' || !isAbbreviation(c.s[:i]) {
			c.open, c.western = end, !isWideStop(r)
		}
	case r == '\n' && n >= c.least && startsItem(c.s[end:]):
		c.best = i // between two items of a list
	}
}

// startsItem looks for a list marker near the start of s.
func startsItem(s string) bool {
	if len(s) > 64 {
		s = s[:64]
	}
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return listMarker(s) > 0
}

func isStop(r rune) bool {
	return r == '.' || r == '!' || r == '?' || r == '…' || isWideStop(r)
}

// isWideStop is true for stops that need no blank behind them.
func isWideStop(r rune) bool {
	return r == '。' || r == '！' || r == '？' || r == '｡' || r == '．'
}

// isCloser is true for what stands behind the stop of a sentence and still
// belongs to it.
func isCloser(r rune) bool {
	switch r {
	case '"', '\'', ')', ']', '*', '_', '`', '”', '’', '」', '』', '）', '】', '》', '〉', '〕', '］', '｣', '»':
		return true
	}
	return false
}

// isAbbreviation says whether the stop behind s ends no sentence: that of an
// initial, of a list number, or of a word that is hardly ever written out.
func isAbbreviation(s string) bool {
	i := len(s)
	for i > 0 && len(s)-i < 8 && isWordByte(s[i-1]) {
		i--
	}
	word := s[i:]
	alone := i == 0 || s[i-1] == ' ' || s[i-1] == '\t' || s[i-1] == '\n' || s[i-1] == '(' || s[i-1] == '.'
	if word == "" || !alone {
		return false
	}
	if word[0] <= '9' {
		line := s[max(0, i-16):i]
		if n := strings.LastIndexByte(line, '\n'); n >= 0 {
			line = line[n+1:]
		} else if i > len(line) {
			return false
		}
		return isBlank(line) && strings.Trim(word, "0123456789") == ""
	}
	if len(word) == 1 {
		return word != "I"
	}
	switch strings.ToLower(word) {
	case "mr", "mrs", "ms", "dr", "prof", "st", "vs", "cf", "fig", "approx":
		return true
	}
	return false
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// maxMarkup is how many bytes on each side of a cut are looked at for markup.
const maxMarkup = 512

// keepMarkup moves a cut at i to the left, in front of the link or the tag that
// it would cut: half an address is no text, but would be read as one.
func keepMarkup(s string, i int) int {
	from := max(0, i-maxMarkup)
	left, right := s[from:i], s[i:min(len(s), i+maxMarkup)]
	if n := strings.IndexByte(right, '\n'); n >= 0 {
		right = right[:n]
	}
	left = left[strings.LastIndexByte(left, '\n')+1:]
	from = i - len(left)

	at := from + min(tagStart(left, right), linkStart(left, right))
	if at < i/4 {
		return i
	}
	return at
}

// tagStart is where the tag begins that reaches from left into right, or the
// end of left.
func tagStart(left, right string) int {
	j := strings.LastIndexByte(left, '<')
	if j < 0 || strings.IndexByte(left[j:], '>') >= 0 || strings.IndexByte(right, '>') < 0 {
		return len(left)
	}
	if next := (left + right)[j+1]; next != '/' && !isWordByte(next) {
		return len(left)
	}
	return j
}

// linkStart is the same for a link, which may be cut in its text or in its
// address.
func linkStart(left, right string) int {
	j := strings.LastIndexByte(left, '[')
	if j < 0 {
		return len(left)
	}
	rest := left[j:] + right
	end := strings.Index(rest, "](")
	if end >= 0 {
		n := strings.IndexByte(rest[end:], ')')
		if n < 0 {
			return len(left)
		}
		end += n
	} else {
		end = strings.Index(rest, "]]")
	}
	if j+end < len(left) {
		return len(left)
	}
	for j > 0 && (left[j-1] == '[' || left[j-1] == '!') {
		j--
	}
	return j
}

// keepWhole moves a cut at i to the left, in front of the word that it would
// cut, or of the character whose accents it would cut off.
func keepWhole(s string, i int) int {
	start, end, n := i, i, 0
	for n <= maxWord && start > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:start])
		if !isWordRune(r) {
			break
		}
		start -= size
		n++
	}
	for n <= maxWord && end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !isWordRune(r) {
			break
		}
		end += size
		n++
	}
	if 0 < start && start < i && i < end && n <= maxWord && strings.IndexByte(blanks, s[start-1]) >= 0 {
		return start
	}
	at := i
	for range maxWord {
		r, _ := utf8.DecodeRuneInString(s[at:])
		before, size := utf8.DecodeLastRuneInString(s[:at])
		if !isExtender(r) && before != zeroWidthJoiner {
			return at
		}
		if at -= size; at == 0 {
			break
		}
	}
	return i
}

const zeroWidthJoiner = '\u200d'

// isExtender is true for what changes the character in front of it.
func isExtender(r rune) bool {
	if r < 0x300 {
		return false
	}
	return r == zeroWidthJoiner || 0x1F3FB <= r && r <= 0x1F3FF || unicode.Is(unicode.M, r)
}

// isWordRune is true for characters of words in scripts that have blanks
// between them.
func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || r == '-' || r == '\'' || isWordByte(byte(r))
	}
	return !isCJK(r) && (unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.IsDigit(r))
}

// isCJK is true for Chinese, Japanese and Korean characters, with their
// punctuation and wide forms.
func isCJK(r rune) bool {
	return r >= 0x2E80 && (r < 0xA4D0 || 0xAC00 <= r && r < 0xD7B0 || 0xF900 <= r && r < 0xFB00 ||
		0xFE30 <= r && r < 0xFE50 || 0xFF00 <= r && r < 0xFFF0 || 0x20000 <= r && r < 0x40000)
}
