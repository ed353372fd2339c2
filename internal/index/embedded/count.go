package embedded

import (
	"math/bits"

	"github.com/loci-memory/loci/internal/index"
)

// Count implements index.View.
func (v *view) Count(f index.Filter) (n int64, err error) {
	s := searchers.Get().(*searcher)
	defer s.finish(&err)
	s.prepare(v, &index.Query{}, &f)
	s.each(func(p *searchPart) { n += p.count() })
	return n, nil
}

// count is how many of a part's live documents pass.
func (p *searchPart) count() (n int64) {
	switch p.filter.mode {
	case filterAll:
		gone := p.seg.deletes.statsAt(p.part, p.rev)
		return int64(p.hi-p.lo) - gone.docs[lenAll]
	case filterTail:
		for doc := p.lo; doc < p.hi; doc++ {
			if p.accept(doc) {
				n++
			}
		}
		return n
	case filterSome:
		n = int64(p.filter.n)
		if p.seg.del.count == 0 {
			return n
		}
		if p.filter.list != nil {
			for _, doc := range p.filter.list {
				if p.deleted(doc) {
					n--
				}
			}
			return n
		}
		for i, w := range p.filter.bits {
			n -= int64(bits.OnesCount64(w & p.seg.del.word(p.lo+uint32(i*64))))
		}
		return n
	default:
		return 0
	}
}
