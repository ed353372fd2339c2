package embedded

import (
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// locate finds a record's live document among the parts of its partition.
func (k *searchKind) locate(id int64) (*searchPart, uint32, bool) {
	for _, p := range k.parts {
		if p.tail == nil {
			if doc, ok := p.seg.find(p.part, id); ok && !p.deleted(doc) {
				return p, doc, true
			}
			continue
		}
		if p.sorted {
			if doc, ok := slices.BinarySearch(p.tail.ids[:p.hi], id); ok && !p.deleted(uint32(doc)) {
				return p, uint32(doc), true
			}
			continue
		}
		// The last document of an id is the live one.
		for doc := int(p.hi) - 1; doc >= 0; doc-- {
			if p.tail.ids[doc] == id {
				if !p.deleted(uint32(doc)) {
					return p, uint32(doc), true
				}
				break
			}
		}
	}
	return nil, 0, false
}

// Explain implements index.View.
func (v *view) Explain(q index.Query, id int64, namespace int64, kind index.Kind) []index.TermScore {
	s := searchers.Get().(*searcher)
	defer s.release()
	f := index.Filter{Namespace: namespace, Kinds: []index.Kind{kind}}
	s.prepare(v, &q, &f)
	var out []index.TermScore
	for _, k := range s.kinds {
		p, doc, ok := k.locate(id)
		if !ok {
			continue
		}
		norm := p.norm(doc)
		for i, key := range s.terms {
			if share := s.share(p, i, doc, norm); share > 0 {
				out = append(out, index.TermScore{Term: key[1:], Score: float64(share) / scale})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b index.TermScore) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		default:
			return 0
		}
	})
	return out
}

// Scores implements index.View.
func (v *view) Scores(q index.Query, f index.Filter, ids []int64, kinds []index.Kind) (scores []float64, err error) {
	s := searchers.Get().(*searcher)
	defer s.finish(&err)
	q.Chars = nil
	s.prepare(v, &q, &f)
	scores = make([]float64, len(ids))
	for i, id := range ids {
		k := s.kind(kinds[i])
		if k == nil {
			continue
		}
		if p, doc, ok := k.locate(id); ok && p.filter.accept(doc) {
			scores[i] = float64(s.score(p, s.scored, doc)) / scale
		}
	}
	return scores, nil
}
