package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/eval"
)

// weights are the shares of a hit's neighbours and of its thread, the weight of
// the graph's path, and those of the vectors' path, 0 and "" for the embedder's.
type weights struct {
	neighbour, thread, graph float64
	vector                   float64
	fusion                   loci.Fusion
}

// String says what was chosen.
func (w weights) String() string {
	text := fmt.Sprintf("%.2f and %.2f", w.neighbour, w.thread)
	if w.vector > 0 {
		text += fmt.Sprintf(", vectors %.2f by %s", w.vector, w.fusion)
	}
	return text
}

// tuned reports weights chosen without the questions that they are rated on.
type tuned struct {
	Measure string  `json:"measure"`
	HeldOut float64 `json:"held_out"` // mean over all questions
	Folds   []fold  `json:"folds"`
	Best    fold    `json:"best"` // on all questions: to ship, and not to report
}

type fold struct {
	Name            string      `json:"name"`
	NeighbourWeight float64     `json:"neighbour_weight"`
	ThreadWeight    float64     `json:"thread_weight"`
	VectorWeight    float64     `json:"vector_weight,omitempty"`
	Fusion          loci.Fusion `json:"fusion,omitempty"`
	Value           float64     `json:"value"`
	weights         weights
}

func newFold(name string, w weights, value float64) fold {
	return fold{Name: name, NeighbourWeight: w.neighbour, ThreadWeight: w.thread, VectorWeight: w.vector, Fusion: w.fusion, Value: value, weights: w}
}

// tuneGrid are the weights to choose from: of the vectors where there are some,
// else of neighbours and threads.
func tuneGrid(given weights, vectors bool) (grid []weights) {
	if !vectors {
		for _, n := range []float64{0, 0.25, 0.5, 0.75, 1} {
			for _, t := range []float64{0, 0.25, 0.5, 0.75, 1} {
				w := given
				w.neighbour, w.thread = n, t
				grid = append(grid, w)
			}
		}
		return grid
	}
	fusions := []loci.Fusion{loci.FusionScore, loci.FusionRRF}
	if given.fusion != "" {
		fusions = []loci.Fusion{given.fusion}
	}
	for _, f := range fusions {
		for _, v := range []float64{0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.4, 2, 3} {
			w := given
			w.vector, w.fusion = v, f
			grid = append(grid, w)
		}
	}
	return grid
}

// tuneMeasure is what a task's weights are chosen by.
func tuneMeasure(task string) (string, eval.Measure) {
	if _, variant, _ := strings.Cut(task, ":"); strings.HasPrefix(task, "locomo") || strings.Contains(variant, "-") {
		return "R@10", eval.RecallAt(10)
	}
	return "nDCG@10", eval.NDCGAt(10)
}

// tuneWeights chooses weights on the questions of all conversations but one, or
// on every other question, and rates them on those left out.
func tuneWeights(ctx context.Context, set *eval.Set, depth int, given weights, vectors bool, search func(weights) eval.SearchFunc) (*tuned, error) {
	judged := set.Judged()
	folds := make([]string, len(judged))
	for i, q := range judged {
		if folds[i] = q.Scope; q.Scope == "" {
			folds[i] = fmt.Sprintf("half %d", i%2+1)
		}
	}
	name, measure := tuneMeasure(set.Task)
	t, err := eval.LeaveOneOut(tuneGrid(given, vectors), folds, func(w weights) ([]float64, error) {
		run, err := eval.Search(ctx, set, depth, search(w))
		if err != nil {
			return nil, err
		}
		return eval.PerQuery(set, run, measure), nil
	})
	if err != nil {
		return nil, err
	}
	out := &tuned{Measure: name, HeldOut: t.HeldOut, Best: newFold("all", t.Best, t.BestValue)}
	for _, f := range t.Folds {
		out.Folds = append(out.Folds, newFold(f.Name, f.Chosen, f.Value))
	}
	return out, nil
}
