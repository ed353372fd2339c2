package main

import (
	"cmp"
	"math"
	"slices"
)

// eigen gives the eigenvalues of a symmetric matrix, largest first, and an
// eigenvector of length 1 for each, by Jacobi's rotations. Of the two
// directions a vector may have it gives the one whose largest entry is
// positive. The matrix is overwritten.
func eigen(a [][]float64) (values []float64, vectors [][]float64) {
	n := len(a)
	v := make([][]float64, n)
	for i := range v {
		v[i] = make([]float64, n)
		v[i][i] = 1
	}
	for range 100 {
		var off, all float64
		for i := range a {
			for j := range a[i] {
				all += a[i][j] * a[i][j]
				if i != j {
					off += a[i][j] * a[i][j]
				}
			}
		}
		if off <= 1e-26*all {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(a, v, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(a[j][j], a[i][i]) })
	for _, i := range order {
		values = append(values, a[i][i])
		largest := slices.MaxFunc(v[i], func(x, y float64) int { return cmp.Compare(math.Abs(x), math.Abs(y)) })
		if largest < 0 {
			for j := range v[i] {
				v[i][j] = -v[i][j]
			}
		}
		vectors = append(vectors, v[i])
	}
	return values, vectors
}

// rotate makes a[p][q] zero. The rows of v are turned along.
func rotate(a, v [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range a {
		a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
	}
	turn(a[p], a[q], c, s)
	turn(v[p], v[q], c, s)
}

func turn(x, y []float64, c, s float64) {
	for k := range x {
		x[k], y[k] = c*x[k]-s*y[k], s*x[k]+c*y[k]
	}
}
