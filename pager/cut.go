package pager

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// cutPages cuts a text, which must be valid UTF-8, into pieces of at most size
// bytes, size at least 32. The pieces one after the other are the text. Each but
// the last is longer than half of size, so that it can end in the second half of
// its window, where the best place is: the last end of a paragraph or else of a
// line, of a sentence, of a word, or else of a character.
//
// yield gets the pieces in order, until it gives false.
func cutPages(text string, size int, yield func(piece string) bool) {
	for len(text) > size {
		at := cutPlace(text, size)
		if !yield(text[:at]) {
			return
		}
		text = text[at:]
	}
	if text != "" {
		yield(text)
	}
}

// cutPlace gives where the first piece of a text that is longer than size ends.
func cutPlace(text string, size int) int {
	least := size/2 + 1
	end := size
	for !utf8.RuneStart(text[end]) {
		end--
	}
	line, sentence, word := 0, 0, 0
	for at := end; at >= least; {
		before, width := utf8.DecodeLastRuneInString(text[:at])
		switch {
		case before == '\n' || before == '\r' && text[at] != '\n':
			if blankLineBefore(text[:at]) {
				return at
			}
			line = cmp.Or(line, at)
		case line != 0: // only a paragraph is better, and only a line ends one
		case sentence == 0 && (unicode.IsSpace(before) || endsWide(before) || closes(before)) && endsSentence(text, at):
			sentence = at
		case word == 0 && unicode.IsSpace(before) && before != '\r' && !joins(text[at:]):
			word = at
		}
		at -= width
	}
	switch {
	case line != 0:
		return line
	case sentence != 0:
		return sentence
	case word != 0:
		return word
	}
	return wholeCharacters(text, least, end)
}

// blankLineBefore says whether the last line of a text, which ends in a line
// break, is blank. The first line of a text ends no paragraph.
func blankLineBefore(text string) bool {
	_, width := utf8.DecodeLastRuneInString(text)
	rest := text[:len(text)-width]
	if text[len(text)-1] == '\n' {
		rest = strings.TrimSuffix(rest, "\r")
	}
	for rest != "" {
		r, width := utf8.DecodeLastRuneInString(rest)
		if r == '\n' || r == '\r' {
			return true
		}
		if !unicode.IsSpace(r) {
			return false
		}
		rest = rest[:len(rest)-width]
	}
	return false
}

// endsSentence says whether a sentence ends at a place of the text: behind a
// mark of a script that sets no blanks, and what closes behind it, or behind the
// blanks that follow a mark of the others. Of a row of such places it is the
// last, so that a row is looked through once.
func endsSentence(text string, at int) bool {
	rest := text[:at]
	before, _ := utf8.DecodeLastRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(text[at:])
	blank := unicode.IsSpace(before)
	if joins(text[at:]) || blank && unicode.IsSpace(next) || !blank && (closes(next) || endsWide(next)) {
		return false
	}
	rest = strings.TrimRightFunc(rest, unicode.IsSpace)
	rest = strings.TrimRightFunc(rest, closes)
	mark, _ := utf8.DecodeLastRuneInString(rest)
	return endsWide(mark) || blank && (mark == '.' || mark == '!' || mark == '?')
}

// endsWide says whether a character ends a sentence without a blank behind it.
func endsWide(r rune) bool {
	switch r {
	case '。', '！', '？', '；', '…', '｡', '।', '۔', '؟':
		return true
	}
	return false
}

// closes says whether a character may stand between a sentence's mark and its
// end.
func closes(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '"' || r == '\'' || r == ')' || r == ']' || r == '}'
	}
	return !isIdeograph(r) && unicode.In(r, unicode.Pe, unicode.Pf)
}

// joins says whether a text begins with what belongs to the character before
// it.
func joins(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r >= '\u0300' && !isIdeograph(r) && (r == '\u200d' || unicode.Is(unicode.M, r))
}

// isIdeograph knows the commonest characters that neither close nor join.
func isIdeograph(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }

// wholeCharacters gives the last place from least to end, a character's
// boundary, that does not cut what a reader takes for one character. It looks at
// a short stretch only: where that is all one character, or a long row of flags,
// it cuts between code points.
func wholeCharacters(text string, least, end int) int {
	const stretch = 256
	before, _ := utf8.DecodeLastRuneInString(text[:end])
	after, _ := utf8.DecodeRuneInString(text[end:])
	plain := func(r rune) bool { return r < utf8.RuneSelf && r != '\r' || isIdeograph(r) }
	if plain(before) && plain(after) {
		return end
	}
	from := max(least, end-stretch)
	for !utf8.RuneStart(text[from]) {
		from++
	}
	at, state := from, -1
	to := min(len(text), end+stretch)
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	rest := text[from:to]
	for rest != "" {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if at+len(cluster) > end {
			break
		}
		at += len(cluster)
	}
	if at == from && from < end {
		return end
	}
	return at
}
