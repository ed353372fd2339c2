package loci

import (
	"math"
	"strconv"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// finish loads the hits that may be given back: as many as are wanted, and all
// that a reranker is to be asked about, whose documents go into the draft.
func (r *searchRun) finish(hits []fusedHit, draft *rerankDraft) ([]finishedHit, error) {
	keep := min(len(hits), r.p.limit)
	if draft != nil {
		if err := r.fillDraft(hits, draft); err != nil {
			return nil, err
		}
		keep = max(keep, len(draft.documents))
	}
	hits = hits[:keep]
	if err := r.p.load(r.tx, hits); err != nil {
		return nil, err
	}
	if err := r.countChunks(hits); err != nil {
		return nil, err
	}
	space := ""
	if r.d.VectorUsed {
		space = r.scope.space.Name
	}
	out := make([]finishedHit, len(hits))
	for i := range hits {
		out[i] = finishedHit{SearchHit: r.result(&hits[i], space), id: hits[i].ID, record: hits[i].record}
	}
	return out, nil
}

// fillDraft puts the documents of the best hits into a draft until no more fit.
func (r *searchRun) fillDraft(hits []fusedHit, draft *rerankDraft) error {
	for i := range hits {
		if !draft.room() {
			return nil
		}
		if err := r.p.load(r.tx, hits[i:i+1]); err != nil {
			return err
		}
		d, err := documentOf(r.tx, hits[i].record)
		if err != nil {
			return err
		}
		if !draft.add(rerankText(d)) {
			return nil
		}
	}
	return nil
}

// load reads the records of hits that have none yet.
func (p *searchPlan) load(tx *store.ReadTx, hits []fusedHit) error {
	for i := range hits {
		h := &hits[i]
		if h.record != nil {
			continue
		}
		var err error
		if h.record, err = tx.SharedRecord(store.Kind(h.Kind), h.ID); err != nil {
			return err
		}
		if h.record == nil {
			// The index answered at this very snapshot's revision, so this is a
			// broken invariant and not a race.
			return errs.New(errs.Index, "the index names record %d, which is not there: rebuild the indexes", h.ID)
		}
	}
	return nil
}

// result is the hit as the caller gets it, before a reranker. space is the one
// whose vectors were compared.
func (r *searchRun) result(h *fusedHit, space string) SearchHit {
	head := h.record.Head()
	out := SearchHit{Key: string(kindOf(head.Kind)) + ":" + strconv.FormatInt(h.ID, 10), Score: h.score, Record: recordOf(h.record), VectorScores: map[string]float64{}}
	if h.rank > 0 {
		bm25 := h.BM25
		out.TextScore = &bm25
	}
	if h.vectorRank > 0 {
		out.VectorScores[space] = h.cosine
	}
	if r.p.req.GroupBy == GroupThread && head.Thread != "" {
		out.Key = "thread:" + head.Thread
	}
	if h.Kind == kindChunk && r.countsChunks() {
		out.NoteChunks, out.TopChunks = &h.noteChunks, h.top
	}
	if r.p.req.Explain {
		out.Explain = r.explain(h, head)
	}
	return out
}

func (r *searchRun) explain(h *fusedHit, head *store.Record) *Explain {
	x := &Explain{TextRank: h.rank, TextScore: h.Hit.Score, Round: roundNames[h.Round], Terms: []ExplainTerm{}, FusedScore: h.fused,
		NeighbourAdd: h.NeighbourAdd, ThreadAdd: h.ThreadAdd, RecencyAdd: h.recencyAdd, StrengthAdd: h.strengthAdd, GraphAdd: h.graphAdd,
		VectorRank: h.vectorRank, VectorNeighbourAdd: h.vectorNeighbourAdd, VectorThreadAdd: h.vectorThreadAdd,
		TextPart: h.textPart, VectorPart: h.vectorPart}
	if r.d.VectorUsed && !math.IsNaN(h.cosine) {
		x.VectorScore = h.cosine
	}
	q := r.q
	switch {
	case h.rank == 0:
		x.Round = ""
	case h.folder:
		x.Round, q.Field, q.Chars = "folder", index.FieldPath, nil
	case h.Round == index.RoundChar:
		q.Groups = nil
	default:
		q.Chars = nil // they add to nothing but the last round
	}
	if r.view == nil {
		return x
	}
	for _, term := range r.view.Explain(q, h.ID, head.NamespaceID, index.Kind(head.Kind)) {
		x.Terms = append(x.Terms, ExplainTerm{Term: term.Term, Score: term.Score})
	}
	return x
}

var roundNames = [...]string{index.RoundAll: "every_term", index.RoundAny: "any_term", index.RoundChar: "any_character"}
