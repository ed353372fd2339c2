package loci

import (
	"github.com/loci-memory/loci/internal/index"
)

// coverageHits is how many of the best text hits are asked which of the query's
// words they hold. The answer hardly ever changes behind the third.
const coverageHits = 3

// coverage is the largest share of the query's words that one of the best text
// hits holds, above 0 and at most 1.
//
// Score fusion gives a path's best hit the path's whole weight, however bad an
// answer it is. A question in one language to memories in another may meet no
// more of them than by a year or a name, and what it finds by it must not stand
// before what the vectors find. So the text path's weight is multiplied by its
// coverage. Figures are in docs/adr.
func (r *searchRun) coverage() float64 {
	groups := len(r.q.Groups)
	if groups == 0 || r.view == nil { // an index that failed since cannot be asked
		return 1
	}
	most := 0
	for _, h := range r.text[:min(len(r.text), coverageHits)] {
		q := r.q
		q.Chars = nil
		switch {
		case h.Round == index.RoundAll && !r.folders[h.ID]:
			return 1
		case h.Round == index.RoundChar:
			continue
		case r.folders[h.ID]:
			q.Field = index.FieldPath
		}
		held := map[string]bool{}
		for _, t := range r.view.Explain(q, h.ID, r.f.Namespace, h.Kind) {
			held[t.Term] = true
		}
		most = max(most, groupsHeld(q.Groups, held))
	}
	// A hit by single characters answers something too: half a word.
	return max(float64(most), 0.5) / float64(groups)
}

// groupsHeld counts the groups of which an alternative is held in full.
func groupsHeld(groups []index.Group, held map[string]bool) (n int) {
	for _, g := range groups {
		for _, terms := range g.Alternatives {
			if len(terms) > 0 && allHeld(terms, held) {
				n++
				break
			}
		}
	}
	return n
}

func allHeld(terms []string, held map[string]bool) bool {
	for _, t := range terms {
		if !held[t] {
			return false
		}
	}
	return true
}
