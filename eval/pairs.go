package eval

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Pair is two sentences and how near people found them to each other.
type Pair struct {
	Score float64 // higher is nearer; only the order counts
	A, B  string
}

// LoadPairs reads a file of lines of score, sentence and sentence, separated by
// tabs.
func LoadPairs(file string) (pairs []Pair, err error) {
	err = eachLine(file, func(line []byte) error {
		f, err := columns(line, 3)
		if err != nil {
			return err
		}
		score, err := strconv.ParseFloat(f[0], 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("score %q, want a finite number", f[0])
		}
		pairs = append(pairs, Pair{score, f[1], f[2]})
		return nil
	})
	if err == nil && len(pairs) < 2 {
		err = fmt.Errorf("eval: %s: %d pairs have no order", file, len(pairs))
	}
	return pairs, err
}

// Spearman is the rank correlation of two series: the correlation of their
// ranks, equal values sharing the mean of theirs. It is from -1 to 1.
func Spearman(a, b []float64) (float64, error) {
	if len(a) != len(b) || len(a) < 2 {
		return 0, fmt.Errorf("eval: series of %d and %d values have no rank correlation", len(a), len(b))
	}
	ra, rb := ranks(a), ranks(b)
	mean := float64(len(a)+1) / 2
	var ab, aa, bb float64
	for i := range ra {
		x, y := ra[i]-mean, rb[i]-mean
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0, errors.New("eval: a series of equal values has no rank correlation")
	}
	return ab / math.Sqrt(aa*bb), nil
}

// ranks gives each value its place from 1 in ascending order.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case values[i] < values[j]:
			return -1
		case values[i] > values[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return out
}
