package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/static"
	"github.com/loci-memory/loci/internal/modelfile"
)

func matrix(t *rapid.T, n int, entry *rapid.Generator[float64]) [][]float64 {
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n)
		for j := range i + 1 {
			x := entry.Draw(t, "entry")
			a[i][j], a[j][i] = x, x
		}
	}
	return a
}

// The matrix times a vector is the vector times its value, vectors are of
// length 1 and at right angles, and values fall.
func TestEigen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		a := matrix(t, n, rapid.OneOf(rapid.Float64Range(-9, 9), rapid.SampledFrom([]float64{0, 0, 1, 1e6})))
		var size float64
		work := make([][]float64, n)
		for i := range a {
			work[i] = append([]float64(nil), a[i]...)
			for _, x := range a[i] {
				size = max(size, math.Abs(x))
			}
		}
		values, vectors := eigen(work)
		for k, v := range vectors {
			if k > 0 && values[k] > values[k-1] {
				t.Fatalf("values %v do not fall", values)
			}
			for i := range a {
				var sum float64
				for j := range a {
					sum += a[i][j] * v[j]
				}
				if math.Abs(sum-values[k]*v[i]) > 1e-9*(size+1) {
					t.Fatalf("vector %d: %v, want %v", k, sum, values[k]*v[i])
				}
			}
			for l := range k + 1 {
				var dot, want float64
				for j := range v {
					dot += v[j] * vectors[l][j]
				}
				if l == k {
					want = 1
				}
				if math.Abs(dot-want) > 1e-9 {
					t.Fatalf("vectors %d and %d: %v", k, l, dot)
				}
			}
		}
	})
}

// Whitened vectors have mean 0, and their directions variance 1 and nothing in
// common.
func TestWhiten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n, width, count = 5, 3, 40
		vectors := make([][]float32, count)
		for i := range vectors {
			vectors[i] = rapid.SliceOfN(rapid.Float32Range(-1, 1), n, n).Draw(t, "vector")
			vectors[i][i%n] += float32(i%7) - 3 // so that every direction varies
		}
		out := whiten(vectors, width)
		for a := range width {
			var mean float64
			for _, v := range out {
				mean += float64(v[a]) / count
			}
			if math.Abs(mean) > 1e-4 {
				t.Fatalf("direction %d has the mean %v", a, mean)
			}
			for b := range width {
				var product, want float64
				for _, v := range out {
					product += float64(v[a]) * float64(v[b]) / count
				}
				if a == b {
					want = 1
				}
				if math.Abs(product-want) > 1e-3 {
					t.Fatalf("directions %d and %d: %v, want %v", a, b, product, want)
				}
			}
		}
	})
}

func TestDistil(t *testing.T) {
	encoder, _, _, err := pack(newTiny().bytes())
	if err != nil {
		t.Fatal(err)
	}
	r := recipe{latin: 5, han: 5, other: 1, width: 32, smooth: 1e-4}
	packed, kept, all, err := distil(string(encoder), r)
	if err != nil {
		t.Fatal(err)
	}
	// The specials, a comma (the face is one too many), the, and knowledge; é,
	// kana, Hangul and Greek are left out.
	if kept != 7 || all != 12 {
		t.Errorf("kept %d of %d", kept, all)
	}
	e, err := static.Open(string(packed))
	if err != nil {
		t.Fatal(err)
	}
	if e.Dimension() != 32 || e.ModelID() != "e5-small-cut-static-1" {
		t.Errorf("%s of %d", e.ModelID(), e.Dimension())
	}
	if _, err := e.Embed(context.Background(), []string{"the 知识,"}, embed.Passage); err != nil {
		t.Error(err)
	}
	if _, err := e.Embed(context.Background(), []string{"한 α é 😀"}, embed.Passage); !errors.Is(err, embed.ErrRefused) {
		t.Error(err)
	}
	again, _, _, err := distil(string(encoder), r)
	if err != nil || !bytes.Equal(again, packed) {
		t.Errorf("the second time gives other bytes: %v", err)
	}
	r.width = 64
	if _, _, _, err := distil(string(encoder), r); err == nil || !strings.Contains(err.Error(), "64") {
		t.Error(err)
	}
	encoder[len(encoder)-1] ^= 1
	if _, _, _, err := distil(string(encoder), r); !errors.Is(err, modelfile.ErrFormat) {
		t.Error(err)
	}
}
