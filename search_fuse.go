package loci

import (
	"cmp"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/rank"
	"github.com/loci-memory/loci/internal/store"
)

const (
	// scoreVectorWeight is what the vector path is worth beside a text path of 1
	// under score fusion, for an embedder that says nothing of it. Chosen on the
	// evaluation sets with the built-in model (docs/adr).
	scoreVectorWeight = 0.5
	// rrfVectorWeight is the same under reciprocal rank fusion.
	rrfVectorWeight = 1.0
	// fillBest is how many of each path's own finds, from its best, score fusion
	// asks the other path about: all of them, which costs a few microseconds each
	// by text and less by vectors. 0: none.
	fillBest = MaxPage
)

// fusedHit is a candidate after fusion.
type fusedHit struct {
	index.Hit
	rank        int // in the text path, from 1; 0: not found by it
	score       float64
	recencyAdd  float64
	strengthAdd float64
	graphAdd    float64
	record      store.Stored
	fused       float64

	vectorRank           int     // in the vector path, likewise
	cosine               float64 // NaN: not known
	vectorNeighbourAdd   float64
	vectorThreadAdd      float64
	textPart, vectorPart float64 // what the paths gave to fused

	folder     bool    // found by its folder only
	chunks     []int64 // the note's chunks among the candidates, best first
	noteChunks int64
	top        []ChunkRef
}

// fuse makes one list of what the paths found, best first, ties by ascending id.
func (r *searchRun) fuse(v *vectorPath) ([]fusedHit, error) {
	r.settleFusion(v)
	hits := make([]fusedHit, len(r.text), len(r.text)+len(r.vectors))
	for i, h := range r.text {
		hits[i] = fusedHit{Hit: h, rank: i + 1, cosine: math.NaN(), folder: r.folders[h.ID]}
	}
	text := rank.Column{Weight: r.p.textWeight, Ranks: make([]int, len(hits), cap(hits)), Scores: r.textScores()}
	for i := range hits {
		text.Ranks[i] = i + 1
	}
	if !r.d.VectorUsed {
		for i, part := range r.column(text) {
			h := &hits[i]
			h.textPart, h.fused, h.score = part, part, part
		}
		return hits, nil
	}
	vector := rank.Column{Weight: r.vectorWeight(v), Ranks: make([]int, len(hits), cap(hits)), Scores: make([]float64, len(hits), cap(hits))}
	for i := range vector.Scores {
		vector.Scores[i] = math.NaN()
	}
	at := make(map[int64]int, cap(hits))
	for i := range hits {
		at[hits[i].ID] = i
	}
	if err := r.joinThreads(hits); err != nil {
		return nil, err
	}
	for i, found := range r.vectors {
		k, ok := at[found.id]
		if !ok {
			k = len(hits)
			hits = append(hits, fusedHit{Hit: index.Hit{ID: found.id, Kind: found.kind, Thread: found.thread}})
			text.Ranks, text.Scores = append(text.Ranks, 0), append(text.Scores, math.NaN())
			vector.Ranks, vector.Scores = append(vector.Ranks, 0), append(vector.Scores, 0)
		}
		vector.Ranks[k], vector.Scores[k] = i+1, found.score
		h := &hits[k]
		h.vectorRank, h.cosine = i+1, found.cosine
		h.vectorNeighbourAdd, h.vectorThreadAdd = found.neighbourAdd, found.threadAdd
	}
	if r.p.fusion == FusionScore {
		text.Weight *= r.coverage()
		r.fillText(hits, text.Scores)
		r.fillVectors(v, hits, vector.Scores)
	}
	textParts, vectorParts := r.column(text), r.column(vector)
	for i := range hits {
		h := &hits[i]
		h.textPart, h.vectorPart = textParts[i], vectorParts[i]
		h.fused = h.textPart + h.vectorPart
		h.score = h.fused
	}
	sortFused(hits)
	return hits, nil
}

// settleFusion chooses how to fuse, now that it is known which paths ran: what
// the request says, else what the embedder does, else by score. One path alone
// needs no fusion; its ranks make the scores.
func (r *searchRun) settleFusion(v *vectorPath) {
	r.p.fusion = r.p.req.Fusion
	switch {
	case r.p.fusion != "":
	case !r.d.TextUsed || !r.d.VectorUsed:
		r.p.fusion = FusionRRF
	default:
		r.p.fusion = cmp.Or(v.fusion, FusionScore)
	}
}

// vectorWeight is what the vector path is worth.
func (r *searchRun) vectorWeight(v *vectorPath) float64 {
	switch {
	case r.p.req.VectorWeight != nil:
		return *r.p.req.VectorWeight
	case v.weight != nil:
		return *v.weight
	case r.p.fusion == FusionScore:
		return scoreVectorWeight
	}
	return rrfVectorWeight
}

func (r *searchRun) column(c rank.Column) []float64 {
	if r.p.fusion == FusionScore {
		return c.ByScore()
	}
	return c.ByRank()
}

// textScores are the scores of the text path as fusion sees them.
//
// Alone they are what they are. Beside vectors, what lifts the hits of an earlier
// round above those of a later one would leave nothing of the differences within
// a round once all is scaled to 0..1; so they are the BM25 scores, with their
// shares of neighbours and thread, each raised to the highest below it in the
// path's order. Hits by their folder only are worth no more than the worst.
func (r *searchRun) textScores() []float64 {
	scores := make([]float64, len(r.text), len(r.text)+len(r.vectors))
	low := math.Inf(1)
	for i := range r.text {
		h := &r.text[i]
		switch {
		case !r.d.VectorUsed || r.p.req.GroupBy == GroupThread:
			scores[i] = h.Score
		case r.folders[h.ID]:
			scores[i] = low
		default:
			scores[i] = h.BM25 + h.NeighbourAdd + h.ThreadAdd
			low = min(low, scores[i])
		}
	}
	if math.IsInf(low, 1) { // nothing but folders
		for i := range scores {
			scores[i] = r.text[i].Score
		}
	}
	rank.Descending(scores)
	return scores
}

// fillText gives the records that only the vector path found the text score that
// they have, but never more than the worst that the text path found. A text path
// that found all that there is says itself that they have none.
func (r *searchRun) fillText(hits []fusedHit, scores []float64) {
	if !r.d.TextUsed || fillBest == 0 {
		return
	}
	worst := 0.0
	if n := len(r.text); n > 0 {
		worst = scores[n-1]
	}
	var gaps []int
	for i := range hits {
		if hits[i].rank == 0 {
			scores[i] = 0
			gaps = append(gaps, i)
		}
	}
	if r.every || r.view == nil {
		return
	}
	gaps = gaps[:min(len(gaps), fillBest)]
	ids, kinds := asked(hits, gaps)
	found, err := r.view.Scores(r.q, r.f, ids, kinds)
	if err != nil {
		r.indexFailed() // the gaps stay
		return
	}
	for k, i := range gaps {
		scores[i] = min(found[k], worst)
		hits[i].Hit.Score = scores[i]
	}
}

// fillVectors gives the records that only the text path found the cosine that
// they have, if the vector path may look at them. It is the cosine of the form
// that the index has of it, which is right to four digits or so: reading the vectors
// themselves would cost more than the path does.
func (r *searchRun) fillVectors(v *vectorPath, hits []fusedHit, scores []float64) {
	if r.view == nil {
		return
	}
	var gaps []int
	for i := range hits {
		if h := &hits[i]; h.vectorRank == 0 && v.sees(h.ID) && slices.Contains(r.scope.kinds, h.Kind) {
			gaps = append(gaps, i)
		}
	}
	gaps = gaps[:min(len(gaps), fillBest)]
	if len(gaps) == 0 {
		return
	}
	ids, _ := asked(hits, gaps)
	f := r.f
	f.Kinds = r.scope.kinds
	found, err := r.view.Nearest(index.VectorQuery{Space: v.space.ID, Values: v.query, Limit: len(ids), Exact: true, NoThreads: true, IDs: ids}, f)
	if err != nil {
		r.indexFailed() // the gaps stay
		return
	}
	for _, n := range found.Hits {
		k, _ := slices.BinarySearch(ids, n.ID)
		i := gaps[k]
		hits[i].cosine = clampCosine(float64(n.Score))
		scores[i] = hits[i].cosine
	}
}

// asked sorts gaps, which are places in hits, by id and gives the ids and kinds of
// what stands there.
func asked(hits []fusedHit, gaps []int) ([]int64, []index.Kind) {
	slices.SortFunc(gaps, func(a, b int) int { return cmp.Compare(hits[a].ID, hits[b].ID) })
	ids, kinds := make([]int64, len(gaps)), make([]index.Kind, len(gaps))
	for k, i := range gaps {
		ids[k], kinds[k] = hits[i].ID, hits[i].Kind
	}
	return ids, kinds
}

// scale makes a path's scores ones that can be summed with another path's.
func (p *searchPlan) scale(path rank.Path) []float64 {
	if p.fusion == FusionScore {
		return rank.Scaled(path)
	}
	return rank.RRF(path)
}

// sortFused sorts hits by score, ties by ascending id.
func sortFused(hits []fusedHit) {
	slices.SortFunc(hits, func(a, b fusedHit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ID, b.ID))
	})
}

// recencyHalfLife is the age at which a record has half the recency of a new
// one, in microseconds.
const recencyHalfLife = 30 * 24 * 3600 * 1e6

// weigh adds shares of the best score for new records and for strong memories,
// and sorts anew.
func (e *engine) weigh(tx *store.ReadTx, p *searchPlan, hits []fusedHit) ([]fusedHit, error) {
	if len(hits) == 0 || p.req.RecencyWeight == 0 && p.req.StrengthWeight == 0 {
		return hits, nil
	}
	if err := p.load(tx, hits); err != nil {
		return nil, err
	}
	best, now := hits[0].score, e.clock().UnixMicro()
	for i := range hits {
		h := &hits[i]
		if h.record == nil {
			continue
		}
		h.recencyAdd = p.req.RecencyWeight * best * rank.Recency(float64(now-h.record.Head().Created)/recencyHalfLife)
		h.strengthAdd = p.req.StrengthWeight * best * rank.Saturation(strengthOf(h.record))
		h.score += h.recencyAdd + h.strengthAdd
	}
	sortFused(hits)
	return hits, nil
}
