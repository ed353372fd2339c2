package embedded

import (
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// Adjacent implements index.View.
func (v *view) Adjacent(f index.Filter, ids []int64, kinds []index.Kind) [][2]int64 {
	out := make([][2]int64, len(ids))
	s := searchers.Get().(*searcher)
	defer s.release()
	s.prepare(v, &index.Query{}, &f)
	for i, id := range ids {
		k := s.kind(kinds[i])
		if k == nil {
			continue
		}
		p, doc, ok := k.locate(id)
		if !ok {
			continue
		}
		r := ranked{part: p, doc: doc, hit: index.Hit{Thread: p.thread(doc)}}
		for side, forward := range [2]bool{false, true} {
			if p, doc, ok := s.neighbour(&r, forward); ok {
				out[i][side] = p.id(doc)
			}
		}
	}
	return out
}

// kind is the opened partition of a kind; nil when it holds nothing.
func (s *searcher) kind(kind index.Kind) *searchKind {
	i := slices.IndexFunc(s.kinds, func(k *searchKind) bool { return k.key.kind == kind })
	if i < 0 {
		return nil
	}
	return s.kinds[i]
}
