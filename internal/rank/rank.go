// Package rank makes one order out of the orders that the search paths give. It
// is pure.
package rank

import "math"

// rrfConstant damps the difference between the first ranks.
const rrfConstant = 60

// Path is one search path's answer: its hits' scores, best first, and what the
// path is worth.
type Path struct {
	Weight float64
	Scores []float64
}

// RRF gives each hit weight / (60 + rank), rank from 1: reciprocal rank fusion
// (Cormack, Clarke and Buettcher, SIGIR 2009).
func RRF(p Path) []float64 {
	out := make([]float64, len(p.Scores))
	for i := range out {
		out[i] = p.Weight / float64(rrfConstant+i+1)
	}
	return out
}

// Scaled gives each hit its score scaled to 0..1 over the path, times weight. A
// path whose scores are all equal gives each hit the whole weight.
func Scaled(p Path) []float64 {
	out := make([]float64, len(p.Scores))
	if len(out) == 0 {
		return out
	}
	top, low := math.Inf(-1), math.Inf(1)
	for _, s := range p.Scores {
		top, low = max(top, s), min(low, s)
	}
	for i, s := range p.Scores {
		if top > low {
			out[i] = p.Weight * (s - low) / (top - low)
		} else {
			out[i] = p.Weight
		}
	}
	return out
}

// Recency is 1 for a new record and halves with every half-life of its age. A
// record from the future counts as new.
func Recency(halfLives float64) float64 { return math.Exp2(-max(halfLives, 0)) }

// Saturation maps a strength from 0 on to 0..1: s / (1 + s).
func Saturation(s float64) float64 {
	if s <= 0 {
		return 0
	}
	return s / (1 + s)
}
