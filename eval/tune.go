package eval

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Fold is one part of the queries that was held out.
type Fold[P any] struct {
	Name    string
	Queries int
	Chosen  P       // best on all other folds
	Value   float64 // the mean over this fold's queries with Chosen
}

// A Tuning is the outcome of leave-one-out tuning.
type Tuning[P any] struct {
	Folds []Fold[P] // by ascending name
	// HeldOut is the mean over all queries, each rated with the parameters that
	// were chosen without its fold: what may be reported.
	HeldOut float64
	// Best is best on all queries together, and BestValue its mean: what may be
	// shipped, but not reported, having seen every answer.
	Best      P
	BestValue float64
}

// LeaveOneOut chooses among params by the mean over the queries of all folds
// but one, and rates the choice on the fold left out, for each fold in turn.
// foldOf names each query's fold (the conversation, say, of Set.Judged);
// rate gives each query's value under p, in the same order, higher being
// better, and is called once for each p. Of equally good params the first is
// chosen.
func LeaveOneOut[P any](params []P, foldOf []string, rate func(p P) ([]float64, error)) (Tuning[P], error) {
	var t Tuning[P]
	if len(params) == 0 {
		return t, errors.New("eval: no parameters to choose from")
	}
	counts := map[string]int{}
	for _, f := range foldOf {
		counts[f]++
	}
	if len(counts) < 2 {
		return t, fmt.Errorf("eval: leaving one out needs two folds or more, not %d", len(counts))
	}
	sums := make([]map[string]float64, len(params)) // by fold
	totals := make([]float64, len(params))
	for i, p := range params {
		values, err := rate(p)
		if err != nil {
			return t, fmt.Errorf("eval: rating %v: %w", p, err)
		}
		if len(values) != len(foldOf) {
			return t, fmt.Errorf("eval: rating %v gave %d values for %d queries", p, len(values), len(foldOf))
		}
		sums[i] = map[string]float64{}
		for q, v := range values {
			sums[i][foldOf[q]] += v
		}
		for _, f := range slices.Sorted(maps.Keys(counts)) {
			totals[i] += sums[i][f]
		}
	}
	best := 0
	for _, f := range slices.Sorted(maps.Keys(counts)) {
		pick := 0
		for i := range params {
			if totals[i]-sums[i][f] > totals[pick]-sums[pick][f] {
				pick = i
			}
		}
		t.Folds = append(t.Folds, Fold[P]{f, counts[f], params[pick], sums[pick][f] / float64(counts[f])})
		t.HeldOut += sums[pick][f]
	}
	for i := range params {
		if totals[i] > totals[best] {
			best = i
		}
	}
	t.HeldOut /= float64(len(foldOf))
	t.Best, t.BestValue = params[best], totals[best]/float64(len(foldOf))
	return t, nil
}
