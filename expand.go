package loci

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/text"
)

// equivalents are a namespace's groups of words, ready to expand queries.
// They never change.
type equivalents struct {
	groups []wordGroup // by their first words
	words  map[string]*equivalent
	sizes  map[rune][]int // of words in bytes, ascending, by their first character
}

type wordGroup struct {
	words     []string // sorted
	canonical string
	members   []*equivalent // in the order of words
}

type equivalent struct {
	text  string
	group int
	terms []string // what a record must hold to hold the word
}

func noEquivalents() *equivalents { return &equivalents{} }

func newEquivalents(words []store.Equivalent) *equivalents {
	if len(words) == 0 {
		return noEquivalents()
	}
	slices.SortFunc(words, func(a, b store.Equivalent) int { return cmp.Compare(a.Word, b.Word) })
	x := &equivalents{words: make(map[string]*equivalent, len(words)), sizes: map[rune][]int{}}
	numbers := map[int64]int{}
	for _, w := range words {
		n, ok := numbers[w.Group]
		if !ok {
			n = len(x.groups)
			numbers[w.Group] = n
			x.groups = append(x.groups, wordGroup{})
		}
		e := &equivalent{text: w.Word, group: n, terms: termsOf(w.Word)}
		g := &x.groups[n]
		g.words, g.members = append(g.words, w.Word), append(g.members, e)
		// A group whose canonical word has left goes by its first one.
		if w.Canonical || g.canonical == "" {
			g.canonical = w.Word
		}
		first, _ := utf8.DecodeRuneInString(w.Word)
		x.words[w.Word] = e
		if at, known := slices.BinarySearch(x.sizes[first], len(w.Word)); !known {
			x.sizes[first] = slices.Insert(x.sizes[first], at, len(w.Word))
		}
	}
	return x
}

// termsOf gives the terms of a word, without those that only could stand for
// them; none for a stop word.
func termsOf(word string) (terms []string) {
	for _, g := range text.AnalyzeQuery(word).Groups {
		terms = append(terms, g.Alternatives[0]...)
	}
	return terms
}

// occurrences calls fn with the registered words in a normalised text, in the
// order in which they begin.
func (x *equivalents) occurrences(s string, fn func(e *equivalent, from, to int)) {
	for from, r := range s {
		for _, size := range x.sizes[r] {
			to := from + size
			if to > len(s) {
				break
			}
			if e := x.words[s[from:to]]; e != nil && text.IsWord(s, from, to) {
				fn(e, from, to)
			}
		}
	}
}

// expand gives the words of the groups of which a word occurs in a text, as
// ExpandQuery promises.
func (x *equivalents) expand(s string) (words []*equivalent) {
	if len(x.groups) == 0 {
		return nil
	}
	var seen map[int]bool
	x.occurrences(normalize(s), func(e *equivalent, _, _ int) {
		if !seen[e.group] {
			if seen == nil {
				seen = map[int]bool{}
			}
			seen[e.group] = true
			room := ExpandQueryLimit - len(words)
			members := x.groups[e.group].members
			words = append(words, members[:min(room, len(members))]...)
		}
	})
	return words
}

// expandQuery lets the equivalents of a query's words stand for them. The
// groups of q are replaced where they grow, never changed.
func (x *equivalents) expandQuery(q index.Query, s string) index.Query {
	if len(x.groups) == 0 {
		return q
	}
	s = normalize(s[:min(len(s), text.MaxQueryBytes)])
	words := x.expand(s)
	if len(words) == 0 {
		return q
	}
	allowed := make(map[*equivalent]bool, len(words))
	for _, e := range words {
		allowed[e] = true
	}
	byTerm := make(map[string]int, len(q.Groups))
	for i, g := range q.Groups {
		byTerm[g.Alternatives[0][0]] = i
	}
	groups := slices.Clone(q.Groups)
	replaced := map[int]map[*equivalent]bool{} // by number of the group: what stands for it already
	var lone []*equivalent                     // words of which the query has no term
	x.occurrences(s, func(e *equivalent, from, to int) {
		covered := false
		for _, term := range spanTerms(e, s, from, to) {
			n, ok := byTerm[term]
			if !ok {
				continue
			}
			covered = true
			if replaced[n] == nil {
				replaced[n] = map[*equivalent]bool{}
				groups[n].Alternatives = slices.Clone(groups[n].Alternatives)
			}
			for _, other := range x.groups[e.group].members {
				if other != e && allowed[other] && len(other.terms) > 0 && !replaced[n][other] {
					replaced[n][other] = true
					groups[n].Alternatives = append(groups[n].Alternatives, other.terms)
				}
			}
		}
		if !covered && !slices.Contains(lone, e) {
			lone = append(lone, e)
		}
	})
	for _, e := range lone {
		var g index.Group
		for _, other := range x.groups[e.group].members {
			if allowed[other] && len(other.terms) > 0 {
				g.Alternatives = append(g.Alternatives, other.terms)
			}
		}
		if len(g.Alternatives) > 0 {
			groups = append(groups, g)
		}
	}
	q.Groups = groups
	return q
}

// spanTerms gives the terms that a word may have in a query: its own, and the
// pairs that its outer characters make with their neighbours, which belong to
// the word where nothing separates words.
func spanTerms(e *equivalent, s string, from, to int) []string {
	terms := slices.Clone(e.terms)
	if _, size := utf8.DecodeLastRuneInString(s[:from]); size > 0 {
		_, first := utf8.DecodeRuneInString(s[from:])
		terms = append(terms, s[from-size:from+first])
	}
	if _, size := utf8.DecodeRuneInString(s[to:]); size > 0 {
		_, last := utf8.DecodeLastRuneInString(s[:to])
		terms = append(terms, s[to-last:to+size])
	}
	return terms
}

// maxCachedEquivalents bounds the namespaces whose equivalents are kept at
// hand, those that have none included.
const maxCachedEquivalents = 4096

// equivalentsCache keeps the equivalents of namespaces as they were read.
type equivalentsCache struct {
	mu      sync.Mutex
	changed int64 // what was read before this revision may have changed
	read    map[int64]*equivalents
}

// changing is called by an operation that changes equivalents, before it
// commits: no snapshot of that revision or a later one is served with what was
// read before.
func (c *equivalentsCache) changing(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.read = revision, nil
}

// equivalentsOf gives the equivalents of a namespace in a snapshot.
func (e *engine) equivalentsOf(tx *store.ReadTx, namespace string) (*equivalents, error) {
	id, ok, err := tx.StringID(namespace)
	if err != nil || !ok {
		return noEquivalents(), err
	}
	c := &e.equivalents
	c.mu.Lock()
	x, current := c.read[id], tx.Revision() >= c.changed
	c.mu.Unlock()
	if x != nil && current {
		return x, nil
	}
	words, err := tx.Equivalents(id)
	if err != nil {
		return noEquivalents(), err
	}
	x = newEquivalents(words)
	c.mu.Lock()
	defer c.mu.Unlock()
	if tx.Revision() < c.changed {
		return x, nil // it holds for this snapshot only
	}
	if c.read == nil {
		c.read = map[int64]*equivalents{}
	}
	if len(c.read) >= maxCachedEquivalents {
		for other := range maps.Keys(c.read) {
			delete(c.read, other)
			break
		}
	}
	c.read[id] = x
	return x, nil
}
