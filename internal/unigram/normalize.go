package unigram

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// space is U+2581, which stands for the space before a word, in UTF-8.
const space = "\u2581"

// Characters that the rules name.
const (
	drop          = -1     // gives nothing
	fullwidthTild = 0xff5e // the one character that is kept from NFKC
)

// A word is the normalised text between two spaces, with where it comes from.
type word struct {
	text  []byte
	start []int32 // where each character of text begins; one more for the end
	from  []int   // where in the source the character that gave it begins
	to    []int   // and ends
}

func (w *word) reset() {
	w.text, w.start, w.from, w.to = w.text[:0], w.start[:0], w.from[:0], w.to[:0]
}

// add appends normalised characters that all come from source[from:to].
func (w *word) add(s string, from, to int) {
	for i := range s {
		w.start = append(w.start, int32(len(w.text)+i))
		w.from, w.to = append(w.from, from), append(w.to, to)
	}
	w.text = append(w.text, s...)
}

// A scanner normalises a text and gives its words. The normal form is the one
// that the model's vocabulary was made with: NFKC, control characters dropped,
// every kind of space and every joiner a space, runs of spaces one.
type scanner struct {
	source string
	at     int    // what lies before has been read
	held   string // normalised, behind a space in the same run, not given out yet
	from   int    // where held comes from; its end is at
	inWord bool   // the last word was left half-way
}

// next reads the next word, or its next part if it is longer than limit
// characters, and says whether there was one.
func (s *scanner) next(w *word, limit int) bool {
	w.reset()
	if !s.inWord {
		s.open(w)
	}
	opening := len(w.start)
	s.inWord = false
	for {
		run, from := s.held, s.from
		s.held = ""
		if run == "" {
			if s.at == len(s.source) {
				break
			}
			from = s.at
			run = s.read()
		}
		// Most runs are one character. What is longer may hold spaces, since
		// the compatibility form of some accents is a space and an accent.
		i := indexSpace(run)
		w.add(run[:i], from, s.at)
		if i == len(run) {
			if len(w.start) >= limit {
				s.inWord = true
				break
			}
			continue
		}
		s.held, s.from = run[i+1:], from
		if len(w.start) > opening {
			break
		}
		if opening == 0 {
			s.open(w)
			opening = len(w.start)
		}
	}
	if len(w.start) == opening {
		return false
	}
	w.start = append(w.start, int32(len(w.text)))
	return true
}

// open begins a word with the space before it, which is empty in the source.
func (s *scanner) open(w *word) {
	at := s.at
	if s.held != "" {
		at = s.from
	}
	w.add(space, at, at)
}

func indexSpace(run string) int {
	for i := range len(run) {
		if run[i] == ' ' {
			return i
		}
	}
	return len(run)
}

// read takes the next character with all that may combine with it, and gives
// its normal form.
func (s *scanner) read() string {
	rest := s.source[s.at:]
	r, size := utf8.DecodeRuneInString(rest)
	switch m := mapped(r); m {
	case drop:
		s.at += size
		return ""
	case ' ':
		s.at += size
		return " "
	case fullwidthTild:
		s.at += size
		return rest[:size]
	}
	if alone(r) {
		next, _ := utf8.DecodeRuneInString(rest[size:])
		if size == len(rest) || alone(next) {
			s.at += size
			return rest[:size]
		}
	}
	n := norm.NFKC.NextBoundaryInString(rest, true)
	s.at += n
	return norm.NFKC.String(rest[:n])
}

// alone says of the commonest characters that NFKC leaves them as they are and
// that they combine with nothing before them.
func alone(r rune) bool {
	return r < 0x80 || r >= 0x4e00 && r <= 0x9fff || r >= 0x3041 && r <= 0x3096 || r >= 0x30a1 && r <= 0x30fa
}

// mapped gives what a character becomes before NFKC: itself, a space, or drop.
// The list is that of the normaliser the vocabulary was trained with.
func mapped(r rune) rune {
	switch {
	case r > ' ' && r < 0x7f:
		return r
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029,
		r == 0x2581, r == 0xfeff, r == utf8.RuneError:
		return ' '
	case r > 0 && r < ' ', r == 0x7f, r == 0x8f, r == 0x9f:
		return drop
	}
	return r
}

// Normalize gives text in the form in which Encode looks for pieces: its words,
// each behind a U+2581.
func Normalize(text string) string {
	var out []byte
	var w word
	for s := (scanner{source: text}); s.next(&w, maxWord); {
		out = append(out, w.text...)
	}
	return string(out)
}
