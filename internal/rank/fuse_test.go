package rank

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestColumn(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		column          Column
		byRank, byScore []float64
	}{
		{Column{Weight: 1}, []float64{}, []float64{}},
		{Column{2, []int{1, 2, 0}, []float64{9, 1, nan}}, []float64{2.0 / 61, 2.0 / 62, 0}, []float64{2, 0, 0}},
		// Filled, what was not found is the worst, and the worst found is above it.
		{Column{2, []int{1, 2, 0}, []float64{9, 5, 1}}, []float64{2.0 / 61, 2.0 / 62, 0}, []float64{2, 1, 0}},
		{Column{0.5, []int{1, 2}, []float64{0.3, 0.3}}, []float64{0.5 / 61, 0.5 / 62}, []float64{0.5, 0.5}},
		{Column{1, []int{0}, []float64{nan}}, []float64{0}, []float64{0}},
		{Column{1, []int{0, 0}, []float64{0, 0}}, []float64{0, 0}, []float64{0, 0}},
		{Column{1, []int{2, 1}, []float64{-0.5, 0.5}}, []float64{1.0 / 62, 1.0 / 61}, []float64{0, 1}},
	} {
		if got := c.column.ByRank(); !slices.Equal(got, c.byRank) {
			t.Errorf("%+v by rank: %v, want %v", c.column, got, c.byRank)
		}
		if got := c.column.ByScore(); !slices.Equal(got, c.byScore) {
			t.Errorf("%+v by score: %v, want %v", c.column, got, c.byScore)
		}
	}
}

func TestDescending(t *testing.T) {
	for _, c := range [][2][]float64{
		{nil, nil}, {{1}, {1}}, {{3, 2, 1}, {3, 2, 1}}, {{1, 2, 3}, {3, 3, 3}}, {{5, 1, 4, 0}, {5, 4, 4, 0}},
	} {
		got := slices.Clone(c[0])
		if Descending(got); !slices.Equal(got, c[1]) {
			t.Errorf("%v: %v, want %v", c[0], got, c[1])
		}
	}
}

func TestSmoothed(t *testing.T) {
	for _, c := range []struct{ score, best, floor, share, want float64 }{
		{0.9, 0.8, 0.7, 0.5, 0.95}, {0.9, 0.6, 0.7, 0.5, 0.9}, {0.9, 0.8, 0.7, 0, 0.9}, {0.5, 0.8, 0.7, 1, 0.6},
	} {
		got, add := Smoothed(c.score, c.best, c.floor, c.share)
		if math.Abs(got-c.want) > 1e-12 || got != c.score+add {
			t.Errorf("%+v: %v by %v", c, got, add)
		}
	}
}

// TestColumnProperties holds that a path never turns its own order round, by
// either fusion, and that both agree with what RRF and Scaled say of a path alone.
func TestColumnProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Float64Range(-5, 5), 0, 20).Draw(t, "scores")
		slices.SortFunc(scores, func(a, b float64) int { return cmp.Compare(b, a) })
		weight := rapid.Float64Range(0.1, 10).Draw(t, "weight")
		ranks := make([]int, len(scores))
		for i := range ranks {
			ranks[i] = i + 1
		}
		c := Column{weight, ranks, scores}
		if !slices.Equal(c.ByRank(), RRF(Path{weight, scores})) {
			t.Fatalf("by rank: %v", c.ByRank())
		}
		for i, s := range Scaled(Path{weight, scores}) {
			if math.Abs(c.ByScore()[i]-s) > 1e-9 {
				t.Fatalf("by score: %v, want %v", c.ByScore(), s)
			}
		}
		gaps := slices.Clone(scores)
		for i := range gaps {
			if rapid.Bool().Draw(t, "gap") {
				gaps[i], ranks[i] = math.NaN(), 0
			}
		}
		c.Scores = gaps
		if len(ranks) > 0 {
			ranks[0] = 1 // else the path adds nothing
		}
		byScore := c.ByScore()
		for i := range gaps {
			if byScore[i] < 0 || byScore[i] > weight*(1+1e-12) || math.IsNaN(gaps[i]) && byScore[i] != 0 {
				t.Fatalf("%v of %v", byScore, gaps)
			}
			for j := range i {
				if !math.IsNaN(gaps[i]) && !math.IsNaN(gaps[j]) && byScore[j] < byScore[i] {
					t.Fatalf("%v turned round: %v", gaps, byScore)
				}
			}
		}
	})
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0}, {"a", 1}, {"four", 1}, {"fours", 2}, {"海盐", 1}, {"海盐饼干", 2}, {"海盐饼干 壹", 3}, {"é", 1}, {"\xff", 1},
	} {
		if got := Tokens(c.text); got != c.want {
			t.Errorf("%q: %d, want %d", c.text, got, c.want)
		}
	}
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"海盐饼干海盐饼干海盐饼干海盐", 6, "海盐饼干海盐饼干海盐饼干"},
		{"abcdefghijklmnopqrstuvwxyz", 6, "abcdefghijklmnopqrstuvwx"},
		{"海盐饼干", 1, "海盐"},
		{"abcd", 1, "abcd"},
		{"abcde", 1, "abcd"},
		{"any", 0, ""},
		{"any", math.MaxInt, "any"},
		{"", 0, ""},
	} {
		got, cut := CutTokens(c.text, c.most)
		if got != c.want || cut != (got != c.text) {
			t.Errorf("%q to %d: %q, %v", c.text, c.most, got, cut)
		}
	}
}

// TestCutTokensProperties holds that what is kept fits, and that one character
// more would not.
func TestCutTokensProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 12).Draw(t, "most")
		kept, cut := CutTokens(s, most)
		if s[:len(kept)] != kept || Tokens(kept) > most || cut != (Tokens(s) > most) {
			t.Fatalf("%q to %d: %q, %v", s, most, kept, cut)
		}
		if rest := []rune(s[len(kept):]); cut && Tokens(kept+string(rest[0])) <= most {
			t.Fatalf("%q to %d: %q could be longer", s, most, kept)
		}
	})
}
