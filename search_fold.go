package loci

import (
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// kindChunk is the kind of chunks as the index knows it.
const kindChunk = index.Kind(store.KindChunk)

func isChunk(h index.Hit) bool { return h.Kind == kindChunk }

// defaultTopChunks is how many chunks of a note a hit names unless told
// otherwise.
const defaultTopChunks = 3

// fold leaves of each note's chunks the best one, which takes the place of all
// and keeps the others' ids. hits are in their order, and stay in it.
func fold(hits []fusedHit) []fusedHit {
	at := map[int64]int{} // by note
	out := hits[:0]
	for _, h := range hits {
		if h.Kind != kindChunk {
			out = append(out, h)
			continue
		}
		if i, ok := at[h.Thread]; ok {
			out[i].chunks = append(out[i].chunks, h.ID)
			continue
		}
		at[h.Thread] = len(out)
		h.chunks = []int64{h.ID}
		out = append(out, h)
	}
	return out
}

// folded is how many hits would be left of these.
func folded(hits []index.Hit) int {
	notes := map[int64]bool{}
	n := 0
	for _, h := range hits {
		switch {
		case h.Kind != kindChunk:
			n++
		case !notes[h.Thread]:
			notes[h.Thread] = true
			n++
		}
	}
	return n
}

// countsChunks says whether hits tell how many of their note's chunks match,
// which is asked of the text: the name and the folders stand in the first chunk
// only.
func (r *searchRun) countsChunks() bool {
	return r.d.TextUsed && r.view != nil && r.p.req.MatchField != MatchName && r.p.req.MatchField != MatchPath
}

// countChunks fills in what hits say of their notes. Only the notes that may be
// given back are counted. The hit itself counts, whatever found it.
func (r *searchRun) countChunks(hits []fusedHit) error {
	for i := range hits {
		h := &hits[i]
		if h.Kind != kindChunk || !r.countsChunks() {
			continue
		}
		own := r.f
		own.Kinds, own.Threads = []index.Kind{kindChunk}, []int64{h.Thread}
		counted, err := r.view.Search(r.q, own, index.Options{Total: true})
		if err != nil {
			r.indexFailed() // nothing is told of notes then
			continue
		}
		h.noteChunks = max(counted.Total, 1)
		for _, id := range h.chunks[:min(len(h.chunks), r.p.topChunks)] {
			c, err := r.tx.Chunk(id)
			if err != nil {
				return err
			}
			if c != nil {
				h.top = append(h.top, ChunkRef{ID: ID(c.ID), Offset: c.Offset})
			}
		}
	}
	return nil
}

// looksAtFolders says whether folder names are matched too, under any hit of
// another field.
func (p *searchPlan) looksAtFolders(e *engine) bool {
	return (p.req.MatchField == MatchAll || p.req.MatchField == "") && p.req.GroupBy != GroupThread &&
		slices.Contains(p.kinds, kindChunk) && e.store.Counters().Counts[store.KindChunk] > 0
}

// byFolder finds the first chunks of notes that lie in folders of the query's
// words.
func (p *searchPlan) byFolder(view index.View, q index.Query, f index.Filter, limit int) ([]index.Hit, error) {
	q.Field, q.Chars = index.FieldPath, nil // a single character says too little of a folder
	f.Kinds = []index.Kind{kindChunk}
	found, err := view.Search(q, f, index.Options{Limit: limit})
	return found.Hits, err
}

// addFolders fills the rest of the candidate window with notes that are found
// by their folders. They stand below all others, as a later round does.
func (p *searchPlan) addFolders(view index.View, q index.Query, f index.Filter, found []index.Hit) (all []index.Hit, folders map[int64]bool, err error) {
	room := p.candidates - len(found)
	if room <= 0 {
		return found, nil, nil
	}
	// Those found already take their places too.
	hits, err := p.byFolder(view, q, f, p.candidates)
	if err != nil || len(hits) == 0 {
		return found, nil, err
	}
	in := make(map[int64]bool, len(found)) // notes
	for _, h := range found {
		if h.Kind == kindChunk {
			in[h.Thread] = true
		}
	}
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return in[h.Thread] })
	hits = hits[:min(len(hits), room)]
	if len(hits) == 0 {
		return found, nil, nil
	}
	for i := range found {
		found[i].Score += hits[0].Score
	}
	folders = make(map[int64]bool, len(hits))
	for _, h := range hits {
		folders[h.ID] = true
	}
	return append(found, hits...), folders, nil
}

// onlyByFolder counts the records that nothing but their folder finds.
func (p *searchPlan) onlyByFolder(view index.View, q index.Query, f index.Filter) (n int64, err error) {
	hits, err := p.byFolder(view, q, f, MaxPage)
	for _, h := range hits {
		if len(view.Explain(q, h.ID, f.Namespace, h.Kind)) == 0 {
			n++
		}
	}
	return n, err
}
