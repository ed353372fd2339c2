package pager

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/text"
)

// Pages without vectors are compared by their words: every text is a vector with
// a weight for each of its terms, and two texts are as like as the cosine of
// their vectors. The weight of a term is
//
//	(1 + ln tf) * (1 + ln((1+n)/(1+df)))
//
// where tf is how often the text has it, n the number of texts compared and df
// how many of them have it: the "ltc" of Salton and Buckley, "Term-weighting
// approaches in automatic text retrieval" (1988), with the idf smoothed as in
// scikit-learn, so that a term that every text has still counts. Terms are those
// of the text index, for Chinese single characters and pairs of them.

// maxComparedBytes bounds how much of a page's text is compared.
const maxComparedBytes = 64 << 10

// termCounts says how often a text has each of its terms.
type termCounts map[string]int

// countTerms counts the terms of a page.
func countTerms(title, summary, content string) termCounts {
	counts := termCounts{}
	var a text.Analyzer
	left := maxComparedBytes
	for _, s := range []string{title, summary, content} {
		s = cutAt(s, left)
		left -= len(s)
		a.Analyze(s, func(term []byte) { counts[string(term)]++ })
	}
	return counts
}

// similarities gives the cosine of a text with each of others, from 0 to 1, to
// six decimals.
func similarities(of termCounts, others []termCounts) []float64 {
	df := map[string]int{}
	for _, counts := range append([]termCounts{of}, others...) {
		for term := range counts {
			df[term]++
		}
	}
	n := float64(1 + len(others))
	weight := func(term string, tf int) float64 {
		return (1 + math.Log(float64(tf))) * (1 + math.Log((1+n)/float64(1+df[term])))
	}
	own := make(map[string]float64, len(of))
	for term, tf := range of {
		own[term] = weight(term, tf)
	}
	var ownSquare float64
	for _, term := range sortedTerms(of) { // in one order, so that sums are the same every time
		ownSquare += own[term] * own[term]
	}
	out := make([]float64, len(others))
	for i, counts := range others {
		var dot, sum float64
		for _, term := range sortedTerms(counts) {
			w := weight(term, counts[term])
			sum += w * w
			dot += w * own[term]
		}
		if dot > 0 {
			out[i] = roundCosine(dot / math.Sqrt(sum*ownSquare))
		}
	}
	return out
}

func sortedTerms(counts termCounts) []string {
	terms := make([]string, 0, len(counts))
	for term := range counts {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	return terms
}

// roundCosine gives a cosine to six decimals and from 0 to 1, so that like texts
// are at 1 whatever was lost on the way.
func roundCosine(cosine float64) float64 {
	return math.Round(min(max(cosine, 0), 1)*1e6) / 1e6
}

// maxQueryTerms bounds the terms that candidates are looked for with.
const maxQueryTerms = 24

// weightiest gives a query of the terms that stand for a page: those that it has
// most often, those of its title and summary counted more, longer ones first.
// Single characters of scripts without blanks are in too many pages to help, and
// so are left out where there is anything else.
func weightiest(title, summary, content string) string {
	counts := countTerms(title, summary, content)
	for term, n := range countTerms(title, summary, "") {
		counts[term] += 2 * n
	}
	terms := make([]string, 0, len(counts))
	for term := range counts {
		terms = append(terms, term)
	}
	lone := func(s string) bool { return utf8.RuneCountInString(s) == 1 }
	if slices.ContainsFunc(terms, func(s string) bool { return !lone(s) }) {
		terms = slices.DeleteFunc(terms, lone)
	}
	slices.SortFunc(terms, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(utf8.RuneCountInString(b), utf8.RuneCountInString(a)), cmp.Compare(a, b))
	})
	var query []string
	for _, term := range terms {
		if len(query) == maxQueryTerms {
			break
		}
		if staysTerm(term) {
			query = append(query, term)
		}
	}
	return strings.Join(query, " ")
}

// staysTerm says whether a term, analysed as a query, is looked for as itself:
// a few stems are stemmed further.
func staysTerm(term string) bool {
	found := false
	text.Analyze(term, func(t []byte) { found = found || string(t) == term })
	return found
}
