package eval

import (
	"maps"
	"math"
	"slices"
)

// A Measure rates one query's ranking: relevant says how relevant each
// document is (all above 0), ranked the ids found, best first, without repeats.
// The result is from 0 to 1, higher is better.
type Measure func(relevant map[string]int, ranked []string) float64

// RecallAt is the share of the relevant documents among the first k.
func RecallAt(k int) Measure {
	return func(relevant map[string]int, ranked []string) float64 {
		return float64(found(relevant, ranked, k)) / float64(len(relevant))
	}
}

// HitAt is 1 if any relevant document is among the first k.
func HitAt(k int) Measure {
	return func(relevant map[string]int, ranked []string) float64 {
		return truth(found(relevant, ranked, k) > 0)
	}
}

// AllAt is 1 if all relevant documents are among the first k.
func AllAt(k int) Measure {
	return func(relevant map[string]int, ranked []string) float64 {
		return truth(found(relevant, ranked, k) == len(relevant))
	}
}

// MRRAt is 1 divided by the rank, from 1, of the first relevant document among
// the first k; 0 if there is none. Its mean is the mean reciprocal rank.
func MRRAt(k int) Measure {
	return func(relevant map[string]int, ranked []string) float64 {
		for i, id := range ranked[:min(k, len(ranked))] {
			if relevant[id] > 0 {
				return 1 / float64(i+1)
			}
		}
		return 0
	}
}

// NDCGAt is the discounted cumulative gain of the first k divided by that of
// the best order: the sum of relevance / log2(rank + 1), ranks from 1. The gain
// is linear in the relevance, as in trec_eval and BEIR.
func NDCGAt(k int) Measure {
	return func(relevant map[string]int, ranked []string) float64 {
		got := 0.0
		for i, id := range ranked[:min(k, len(ranked))] {
			got += float64(relevant[id]) * discount(i)
		}
		if got == 0 {
			return 0
		}
		return got / idealDCG(relevant, k)
	}
}

func idealDCG(relevant map[string]int, k int) float64 {
	rels := slices.Sorted(maps.Values(relevant))
	slices.Reverse(rels)
	sum := 0.0
	for i, rel := range rels[:min(k, len(rels))] {
		sum += float64(rel) * discount(i)
	}
	return sum
}

// discount is what rank i, from 0, is worth.
func discount(i int) float64 { return 1 / math.Log2(float64(i+2)) }

func found(relevant map[string]int, ranked []string, k int) int {
	n := 0
	for _, id := range ranked[:min(k, len(ranked))] {
		if relevant[id] > 0 {
			n++
		}
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
