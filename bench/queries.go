package bench

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Class is a kind of query. What a search costs depends on how common its
// words are, so each class is measured apart.
type Class string

// The query classes.
const (
	OneRare         Class = "one rare term"      // in at most 0.01 % of the records
	OneMid          Class = "one mid term"       // in 0.05 to 0.5 %
	OneFrequent     Class = "one frequent term"  // among the most frequent content words
	FiveMixed       Class = "five terms, mixed"  // two frequent, two mid, one rare
	FiveFrequent    Class = "five frequent"      // five of the most frequent content words
	EnglishQuestion Class = "English question"   // eight words, half of them of grammar
	ChineseQuestion Class = "Chinese question"   // eight to twelve characters from a record, perturbed
	TwoCharacters   Class = "two-character word" // a Chinese word as often as it occurs
	OneCharacter    Class = "one character"      // a Chinese character as often as it occurs
)

// Classes gives every class in the order of reports.
func Classes() []Class {
	return []Class{OneRare, OneMid, OneFrequent, FiveMixed, FiveFrequent, EnglishQuestion, ChineseQuestion, TwoCharacters, OneCharacter}
}

// statistics are document frequencies by rank, over a sample of the corpus.
type statistics struct {
	sample   int
	en, zh   []int32
	rare     [2][]string // content words by band; English, Chinese
	mid      [2][]string
	frequent [2][]string
}

// sampleSize bounds what Queries reads of the corpus. Frequencies of words are
// the same in a larger one.
const sampleSize = 100_000

// frequentWords is how many content words of a language count as frequent.
const frequentWords = 40

func (c *Corpus) statistics() *statistics {
	s := &statistics{sample: min(c.records, sampleSize), en: make([]int32, len(c.en.words)), zh: make([]int32, len(c.zh.words))}
	for i := range s.sample {
		d := c.draft(i)
		countOnce(s.en, d.english)
		countOnce(s.zh, d.chinese)
	}
	for l, v := range []*vocabulary{c.en, c.zh} {
		df := [][]int32{s.en, s.zh}[l]
		var ranks []int
		for rank := range v.words {
			// A single character is a class of its own.
			if !v.function[rank] && df[rank] > 0 && utf8.RuneCountInString(v.words[rank]) > 1 {
				ranks = append(ranks, rank)
			}
		}
		slices.SortStableFunc(ranks, func(a, b int) int { return int(df[b] - df[a]) })
		for i, rank := range ranks {
			share := float64(df[rank]) / float64(s.sample)
			switch w := v.words[rank]; {
			case i < frequentWords:
				s.frequent[l] = append(s.frequent[l], w)
			case share <= 0.0001 || df[rank] == 1:
				s.rare[l] = append(s.rare[l], w)
			case share >= 0.0005 && share <= 0.005:
				s.mid[l] = append(s.mid[l], w)
			}
		}
	}
	return s
}

// countOnce counts the distinct ranks of one record.
func countOnce(df []int32, ranks []int) {
	slices.Sort(ranks)
	for i, rank := range ranks {
		if i == 0 || ranks[i-1] != rank {
			df[rank]++
		}
	}
}

// Queries draws n queries for each class from the corpus.
func (c *Corpus) Queries(n int) map[Class][]string {
	s := c.statistics()
	out := map[Class][]string{}
	for k, class := range Classes() {
		r := newRandom(c.seed, 1<<42+uint64(k))
		for i := range n {
			out[class] = append(out[class], c.query(class, s, r, i%2))
		}
	}
	return out
}

// query draws one query; lang is 0 for English words, 1 for Chinese ones.
func (c *Corpus) query(class Class, s *statistics, r *random, lang int) string {
	rare, mid, frequent := s.rare[lang], s.mid[lang], s.frequent[lang]
	switch class {
	case OneRare:
		return pick(r, rare, 1)
	case OneMid:
		return pick(r, mid, 1)
	case OneFrequent:
		return pick(r, frequent, 1)
	case FiveMixed:
		return pick(r, frequent, 2) + " " + pick(r, mid, 2) + " " + pick(r, rare, 1)
	case FiveFrequent:
		return pick(r, frequent, 5)
	case EnglishQuestion:
		return c.englishQuestion(r)
	case ChineseQuestion:
		return c.chineseQuestion(r)
	case TwoCharacters:
		return c.chineseWord(r)
	case OneCharacter:
		text := []rune(c.han(r, 1))
		return string(text[r.below(len(text))])
	}
	panic(fmt.Sprintf("bench: no class %q", class))
}

// pick draws n different words.
func pick(r *random, words []string, n int) string {
	chosen := make([]string, 0, n)
	for tries := 0; len(chosen) < min(n, len(words)) && tries < 100*n; tries++ {
		if w := words[r.below(len(words))]; !slices.Contains(chosen, w) {
			chosen = append(chosen, w)
		}
	}
	return strings.Join(chosen, " ")
}

// englishQuestion asks for four content words of one record, put into a frame
// of function words: eight words in all.
func (c *Corpus) englishQuestion(r *random) string {
	frames := [][]string{
		{"what", "is", "the", "", "of", "", "", ""},
		{"how", "did", "", "", "the", "", "and", ""},
		{"when", "was", "", "with", "", "", "the", ""},
		{"where", "do", "they", "", "", "for", "", ""},
	}
	for {
		d := c.draft(r.below(c.records))
		var content []string
		for _, rank := range d.english {
			if w := c.en.words[rank]; !c.en.function[rank] && !slices.Contains(content, w) {
				content = append(content, w)
			}
		}
		if len(content) < 4 {
			continue
		}
		frame := slices.Clone(frames[r.below(len(frames))])
		from := r.below(len(content) - 3)
		for i := range frame {
			if frame[i] == "" {
				frame[i] = content[from]
				from++
			}
		}
		return strings.Join(frame, " ") + "?"
	}
}

// chineseQuestion cuts a stretch from a record, replaces a character and
// appends a question word, which makes eight to twelve characters: what
// somebody asks who remembers the record, but not to the letter.
func (c *Corpus) chineseQuestion(r *random) string {
	length := r.between(8, 12) - 1
	text := []rune(c.han(r, length))
	from := r.below(len(text) - length + 1)
	cut := slices.Clone(text[from : from+length])
	other := []rune(c.han(r, 1))
	cut[r.between(1, length-2)] = other[r.below(len(other))]
	return string(cut) + "吗"
}

// chineseWord gives a two-character content word, as often as it occurs.
func (c *Corpus) chineseWord(r *random) string {
	for {
		d := c.draft(r.below(c.records))
		if len(d.chinese) == 0 {
			continue
		}
		rank := d.chinese[r.below(len(d.chinese))]
		if w := c.zh.words[rank]; !c.zh.function[rank] && utf8.RuneCountInString(w) == 2 {
			return w
		}
	}
}

// han gives the Chinese characters of a record that has at least n of them,
// without the marks between.
func (c *Corpus) han(r *random, n int) string {
	for {
		text := strings.Map(func(x rune) rune {
			if unicode.Is(unicode.Han, x) {
				return x
			}
			return -1
		}, c.Record(r.below(c.records)).Judgment)
		if utf8.RuneCountInString(text) >= n {
			return text
		}
	}
}
