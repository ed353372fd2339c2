package eval

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"pgregory.net/rapid"
)

// lengths embeds a text as its length.
type lengths struct{ asked int }

func (l *lengths) Embed(_ context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	l.asked += len(texts)
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{float32(len(text)), float32(len(p)), 0.5}
	}
	return out, nil
}

func TestCache(t *testing.T) {
	dir := t.TempDir()
	ask := func(inner *lengths, texts ...string) {
		t.Helper()
		c, err := NewCache(inner, "a/model 1", 3, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []embed.Purpose{embed.Query, embed.Passage} {
			got, err := c.Embed(t.Context(), texts, p)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := (&lengths{}).Embed(t.Context(), texts, p)
			if !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		if n, _ := c.Cost(); n != inner.asked {
			t.Errorf("the cost is %d texts, %d were asked for", n, inner.asked)
		}
		if kept, cut := c.Limit("abc", embed.Query); kept != "abc" || cut {
			t.Errorf("%q %v", kept, cut)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third := &lengths{}, &lengths{}, &lengths{}
	ask(first, "a", "bb", "a")
	ask(second, "bb", "ccc", "a")
	if first.asked != 6 || second.asked != 2 {
		t.Errorf("%d and %d texts were embedded", first.asked, second.asked)
	}
	// What a run left half-written is made again.
	file := filepath.Join(dir, "a_model_1.3")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw[:len(raw)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	ask(third, "a", "bb", "ccc")
	if third.asked != 1 {
		t.Errorf("%d texts were embedded again", third.asked)
	}
	if again, err := os.ReadFile(file); err != nil || len(again) != len(raw) {
		t.Errorf("%d bytes, want %d: %v", len(again), len(raw), err)
	}
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 20, 90}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8},
		{[]float64{1, 1, 2, 2}, []float64{1, 2, 3, 4}, 4 / math.Sqrt(20)},
	} {
		if got, err := Spearman(c.a, c.b); err != nil || !near(got, c.want) {
			t.Errorf("%v %v: %v %v, want %v", c.a, c.b, got, err, c.want)
		}
	}
	for _, c := range [][2][]float64{{{1}, {1}}, {{1, 2}, {1}}, {{1, 1}, {1, 2}}} {
		if _, err := Spearman(c[0], c[1]); err == nil {
			t.Errorf("%v has a correlation", c)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := []float64{}, []float64{}
		for _, x := range rapid.SliceOfN(rapid.IntRange(-9, 9), 2, 20).Draw(t, "a") {
			// The ranks of a series are those of any growing function of it.
			a, b = append(a, float64(x)), append(b, math.Exp(float64(x)/9))
		}
		got, err := Spearman(a, a)
		if err == nil && math.Abs(got-1) > 1e-9 {
			t.Fatalf("%v with itself: %v", a, got)
		}
		if !slices.Equal(ranks(a), ranks(b)) {
			t.Fatalf("ranks %v and %v", ranks(a), ranks(b))
		}
		if r := ranks(a); !near(sum(r), float64(len(a)*(len(a)+1))/2) {
			t.Fatalf("ranks %v", r)
		}
	})
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

func TestLoadPairs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "en_test.tsv")
	for text, want := range map[string]string{
		"5.0\ta\tb\n0\tc\td\n":  "",
		"5.0\ta\tb\n":           "no order",
		"x\ta\tb\n1\ta\tb\n":    "en_test.tsv:1: score",
		"1\ta\tb\n2\ta\n":       "en_test.tsv:2",
		"NaN\ta\tb\n1\ta\tb\n":  "finite",
		"1\ta\tb\n+Inf\ta\tb\n": "finite",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		pairs, err := LoadPairs(file)
		if want == "" {
			if err != nil || len(pairs) != 2 || pairs[0] != (Pair{5, "a", "b"}) {
				t.Errorf("%v %v", pairs, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
