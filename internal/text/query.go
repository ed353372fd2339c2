package text

import (
	"slices"
	"unicode/utf8"
)

// Limits of a query. What is beyond them is left out.
const (
	// MaxQueryBytes is how much of a query is read, to the last whole rune.
	MaxQueryBytes = 32 << 10
	// MaxQueryGroups bounds the groups of a query, and so does its Chars.
	MaxQueryGroups = 1024
	// MaxAlternatives bounds the alternatives of a group, and its optional
	// terms.
	MaxAlternatives = 16
)

// A Query is an analysed query.
type Query struct {
	// Groups are the query's words in the order of their first occurrence,
	// without repeats.
	Groups []Group
	// Chars are the single Han characters of the query's longer runs, in the
	// order of their first occurrence, without repeats.
	Chars []string
}

// A Group is one word of a query. A record answers it when it holds all terms
// of any of the Alternatives. Optional terms only add to the score.
type Group struct {
	Alternatives [][]string
	Optional     []string
}

// AnalyzeQuery turns a query into groups of the terms that Analyze gives for
// documents. A query is plain words: nothing in it is an operator.
//
//   - A word is a group.
//   - Each part of an identifier is a group, for which the whole may stand too,
//     so that JavaScript finds javascript and wi-fi finds wifi as well; the
//     whole is also an Optional term of the first of these groups, so that a
//     record with the identifier as it is written stands before one with its
//     parts. An index must score a term once, however often the query names it.
//     An identifier whose parts are all stop words is a group by its whole.
//   - Two or more CJK characters in a row give their adjacent pairs as groups
//     and the Han ones among them to Chars; a character on its own is a group.
//
// A query of stop words and punctuation has no groups and no chars.
func AnalyzeQuery(s string) Query {
	if len(s) > MaxQueryBytes {
		end := MaxQueryBytes
		for end > MaxQueryBytes-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	var q queryBuilder
	a := Analyzer{query: &q}
	a.run(s)
	return q.out
}

// queryBuilder gathers the terms of a query.
type queryBuilder struct {
	out    Query
	groups termIndex // first terms of the groups
	chars  termIndex
	ident  []int // groups of the parts of the identifier at hand
	terms  []string
	alts   [][]string
}

func (q *queryBuilder) add(term []byte, kind termKind) {
	switch kind {
	case kindChar:
		if r, _ := utf8.DecodeRune(term); !isHan(r) || len(q.out.Chars) >= MaxQueryGroups || q.chars.find(q.out.Chars, term) >= 0 {
			return
		}
		q.out.Chars = append(q.out.Chars, string(term))
		q.chars.added(q.out.Chars)
	case kindWhole:
		if len(q.ident) == 0 {
			q.group(term)
			return
		}
		q.identifier(string(term))
	default:
		g := q.group(term)
		if kind == kindPart && g >= 0 {
			q.ident = append(q.ident, g)
		}
	}
}

// group gives the number of the group of a term, a new one if need be, or -1
// when there is no room.
func (q *queryBuilder) group(term []byte) int {
	if g := q.groups.find(q.terms, term); g >= 0 {
		return g
	}
	g := len(q.terms)
	if g >= MaxQueryGroups {
		return -1
	}
	q.terms = append(q.terms, string(term))
	q.groups.added(q.terms)
	// Each group's alternatives are a window of one slice; the third index makes
	// a group that takes another one move elsewhere.
	q.alts = append(q.alts, q.terms[g:g+1:g+1])
	q.out.Groups = append(q.out.Groups, Group{Alternatives: q.alts[g : g+1 : g+1]})
	return g
}

// identifier gives the whole of the identifier at hand to the groups of its
// parts.
func (q *queryBuilder) identifier(whole string) {
	for _, g := range q.ident {
		group := &q.out.Groups[g]
		if len(group.Alternatives) < MaxAlternatives && !slices.ContainsFunc(group.Alternatives, func(a []string) bool { return a[0] == whole }) {
			group.Alternatives = append(group.Alternatives, []string{whole})
		}
	}
	first := &q.out.Groups[q.ident[0]]
	if len(first.Optional) < MaxAlternatives && !slices.Contains(first.Optional, whole) {
		first.Optional = append(first.Optional, whole)
	}
}

// termIndex finds a term in a list: by looking through a short list, by a map that
// is made when the list has grown long.
type termIndex struct{ numbers map[string]int }

const shortList = 24

func (x *termIndex) find(list []string, term []byte) int {
	if x.numbers != nil {
		if n, ok := x.numbers[string(term)]; ok {
			return n
		}
		return -1
	}
	for i, t := range list {
		if t == string(term) {
			return i
		}
	}
	return -1
}

// added takes notice of the last of list.
func (x *termIndex) added(list []string) {
	switch {
	case x.numbers != nil:
		x.numbers[list[len(list)-1]] = len(list) - 1
	case len(list) > shortList:
		x.numbers = make(map[string]int, 2*len(list))
		for i, t := range list {
			x.numbers[t] = i
		}
	}
}
