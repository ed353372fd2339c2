package vec

import (
	"cmp"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// best is what TopK should keep: everything sorted, and cut.
func best(hits []Hit, k int) []Hit {
	hits = slices.DeleteFunc(append([]Hit{}, hits...), func(h Hit) bool { return h.Score != h.Score })
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
	})
	return hits[:min(max(k, 0), len(hits))]
}

func drawScores(t *rapid.T) []float32 {
	few := rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, 2, -1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))})
	return rapid.SliceOfN(rapid.OneOf(few, rapid.Float32()), 0, 60).Draw(t, "scores")
}

func TestTopK(t *testing.T) {
	var top TopK // used again and again
	rapid.Check(t, func(t *rapid.T) {
		scores := drawScores(t)
		rows := rapid.Permutation(seq(len(scores))).Draw(t, "rows")
		k := rapid.IntRange(-1, 20).Draw(t, "k")
		top.Reset(k)
		var pushed []Hit
		for i, score := range scores {
			pushed = append(pushed, Hit{rows[i], score})
			top.Push(rows[i], score)
			want := best(pushed, k)
			if top.Len() != len(want) {
				t.Fatalf("%d held, want %d", top.Len(), len(want))
			}
			threshold := float32(math.Inf(-1))
			if k <= 0 {
				threshold = float32(math.Inf(1))
			} else if len(want) == k {
				threshold = want[k-1].Score
			}
			if top.Threshold() != threshold {
				t.Fatalf("threshold %v, want %v", top.Threshold(), threshold)
			}
			if i%7 == 0 {
				top.Sorted(nil) // must not disturb what follows
			}
		}
		if diff := gocmp.Diff(best(pushed, k), top.Sorted([]Hit{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTopKBulk wants of the bulk methods what Push does one by one.
func TestTopKBulk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scales := drawScores(t)
		n := len(scales)
		sums := rapid.SliceOfN(rapid.Int32Range(-3, 3), n, n).Draw(t, "sums")
		rows := rapid.Permutation(seq(n)).Draw(t, "rows")
		qscale := rapid.SampledFrom([]float32{1, 0.3, 0}).Draw(t, "qscale")
		k := rapid.IntRange(0, 20).Draw(t, "k")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		var ints, named, plain TopK
		for _, top := range []*TopK{&ints, &named, &plain} {
			top.Reset(k)
		}
		ints.PushInt8(sums[:cut], scales[:cut], qscale, 100)
		ints.PushInt8(sums[cut:], scales[cut:], qscale, 100+uint32(cut))
		named.PushInt8Rows(sums[:cut], scales[:cut], qscale, rows)
		named.PushInt8Rows(sums[cut:], scales[cut:], qscale, rows[cut:])
		plain.PushFloat32(scales[:cut], 7)
		plain.PushFloat32(scales[cut:], 7+uint32(cut))
		var wantInts, wantNamed, wantPlain []Hit
		for i := range scales {
			score := float32(sums[i]) * scales[i] * qscale
			wantInts = append(wantInts, Hit{100 + uint32(i), score})
			wantNamed = append(wantNamed, Hit{rows[i], score})
			wantPlain = append(wantPlain, Hit{7 + uint32(i), scales[i]})
		}
		for _, c := range []struct {
			top  *TopK
			want []Hit
		}{{&ints, wantInts}, {&named, wantNamed}, {&plain, wantPlain}} {
			if diff := gocmp.Diff(best(c.want, k), c.top.Sorted([]Hit{})); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestTopKZeroValue(t *testing.T) {
	var top TopK
	top.Push(1, 2)
	top.PushFloat32([]float32{1, float32(math.Inf(1))}, 0)
	if top.Len() != 0 || len(top.Sorted(nil)) != 0 {
		t.Error("the zero value keeps something")
	}
}

func seq(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}
