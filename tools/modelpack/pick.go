package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/internal/unigram"
)

// scripts are the writing systems whose pieces are kept, each of them whole, so
// that every language written in them reads as in the source. What belongs to no
// script or to several (digits, punctuation, symbols, emoji, accents) is kept
// too.
func scripts() []*unicode.RangeTable {
	return []*unicode.RangeTable{
		unicode.Common, unicode.Inherited,
		unicode.Latin, unicode.Greek,
		unicode.Han, unicode.Bopomofo, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
	}
}

// pick gives the numbers of the pieces that are kept, in the order of the new
// vocabulary: the specials, then the others in the order of the source, which
// is that of their frequency.
func pick(s *source) ([]int, error) {
	kept := []int{s.begin, s.pad, s.end, s.unknown}
	special := map[int]bool{s.begin: true, s.pad: true, s.end: true, s.unknown: true}
	if len(special) != unigram.Specials {
		return nil, fmt.Errorf("%w: two of its specials are one piece", errSource)
	}
	tables := scripts()
	for id, p := range s.pieces {
		text := strings.ReplaceAll(p.text, "\u2581", "")
		foreign := func(r rune) bool { return !unicode.In(r, tables...) }
		if special[id] || p.text == "<mask>" || strings.ContainsFunc(text, foreign) {
			continue
		}
		kept = append(kept, id)
	}
	return kept, nil
}

// checkNormaliser compares what the source's normaliser makes of single
// characters with what ours does, which is not stored but built in.
func checkNormaliser(s *source) error {
	for from, to := range s.changes {
		// Full stops on both sides combine with nothing.
		want := "\u2581." + strings.ReplaceAll(string(to), " ", "\u2581") + "."
		if got := unigram.Normalize("." + string(from) + "."); got != want {
			return fmt.Errorf("%w: its normaliser makes %q of %U, ours %q", errSource, want, from, got)
		}
	}
	return nil
}
