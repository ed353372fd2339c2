package rank

import (
	"math"
	"slices"
)

// Column is what one path says of candidates that several paths have found
// together: a place in Ranks and in Scores for each.
type Column struct {
	Weight float64
	Ranks  []int // the path's own rank from 1; 0 for what it did not find
	// Scores are the path's scores, and for what it did not find those that it
	// would have given; NaN where that is not known.
	Scores []float64
}

// ByRank gives what the path adds to each candidate by reciprocal rank fusion:
// what RRF gives, and nothing to what the path did not find.
func (c Column) ByRank() []float64 {
	out := make([]float64, len(c.Ranks))
	for i, r := range c.Ranks {
		if r > 0 {
			out[i] = c.Weight / float64(rrfConstant+r)
		}
	}
	return out
}

// ByScore gives what the path adds to each candidate by score fusion: its score
// scaled to 0..1 over the scores that are known, times weight, and nothing where
// it is not known. With every gap filled the lowest candidate is the worst of
// all; with none filled it is the worst that the path found, which then counts no
// more than what it did not find. A path that found none of them adds nothing.
func (c Column) ByScore() []float64 {
	out := make([]float64, len(c.Scores))
	if !slices.ContainsFunc(c.Ranks, func(r int) bool { return r > 0 }) {
		return out
	}
	low, top := math.Inf(1), math.Inf(-1)
	for _, s := range c.Scores {
		if !math.IsNaN(s) {
			low, top = min(low, s), max(top, s)
		}
	}
	for i, s := range c.Scores {
		switch {
		case math.IsNaN(s):
		case top > low:
			out[i] = c.Weight * ((s - low) / (top - low))
		default:
			out[i] = c.Weight
		}
	}
	return out
}

// Descending raises each score to the highest of those behind it, in place. What
// is left falls or stays from each to the next, at the least change, so that an
// order that was made by more than the scores holds for them too.
func Descending(scores []float64) {
	top := math.Inf(-1)
	for i, s := range slices.Backward(scores) {
		top = max(top, s)
		scores[i] = top
	}
}

// Smoothed gives what the vectors' scores become when each record has a share of
// its better neighbour: score + share * (best - floor), for a best above the
// floor. Cosines of unrelated texts lie around a constant far from 0, which would
// otherwise reward having a neighbour at all; so only what lies above the floor,
// the lowest of the candidates, counts.
func Smoothed(score, best, floor, share float64) (smoothed, add float64) {
	add = share * max(best-floor, 0)
	return score + add, add
}
