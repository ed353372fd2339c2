package lifecycle

import (
	"errors"
	"math"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"pgregory.net/rapid"
)

func reinforcement(t rapid.TB, s Strategy, weights map[Strategy]float64) *Reinforcement {
	t.Helper()
	r, err := NewReinforcement(s, weights)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReinforcement(t *testing.T) { // P3, P4, P5, P6
	const now = int64(1_000_000_000_000_000)
	ago := func(days float64) *int64 { return new(now - int64(days*DayUS)) }
	mean := map[Strategy]float64{Fixed: 1, Diminishing: 3}
	for _, c := range []struct {
		name     string
		strategy Strategy
		weights  map[Strategy]float64
		before   Practice
		success  bool
		want     float64
	}{
		{"no name is fixed", "", nil, Practice{Confidence: 0.5}, true, 0.6},
		{"fixed, success", Fixed, nil, Practice{Confidence: 0.5, Uses: 90}, true, 0.6},
		{"fixed, failure", Fixed, nil, Practice{Confidence: 0.6}, false, 0.55},
		{"fixed, at the top", Fixed, nil, Practice{Confidence: 0.95}, true, 1},
		{"fixed, at the bottom", Fixed, nil, Practice{Confidence: 0.02}, false, 0},
		{"diminishing, unused", Diminishing, nil, Practice{Confidence: 0.5}, true, 0.6},
		{"diminishing, used", Diminishing, nil, Practice{Confidence: 0.5, Uses: 10}, true, 0.55},
		{"diminishing, failure", Diminishing, nil, Practice{Confidence: 0.5, Uses: 10}, false, 0.475},
		{"temporal, unused", Temporal, nil, Practice{Confidence: 0.5}, true, 0.6},
		{"temporal, now", Temporal, nil, Practice{Confidence: 0.5, LastUsed: ago(0)}, true, 0.6},
		{"temporal, a half-life", Temporal, nil, Practice{Confidence: 0.5, LastUsed: ago(30)}, true, 0.55},
		{"temporal, failure", Temporal, nil, Practice{Confidence: 0.5, LastUsed: ago(30)}, false, 0.475},
		{"temporal, two half-lives", Temporal, nil, Practice{Confidence: 0.5, LastUsed: ago(60)}, true, 0.525},
		{"temporal, half a half-life", Temporal, nil, Practice{Confidence: 0.5, LastUsed: ago(15)}, true, 0.5 + 0.1/math.Sqrt2},
		{"temporal, the future", Temporal, nil, Practice{Confidence: 0.5, LastUsed: ago(-30)}, true, 0.6},
		{"temporal, the beginning of time", Temporal, nil, Practice{Confidence: 0.5, LastUsed: new(int64(math.MinInt64))}, true, 0.5},
		{"weighted", Weighted, mean, Practice{Confidence: 0.5, Uses: 10}, true, 0.5625},
		{"weighted, each kept within bounds", Weighted, mean, Practice{Confidence: 0.95, Uses: 10}, true, 0.25 + 0.75},
		{"weighted, at the bottom", Weighted, mean, Practice{Confidence: 0.04, Uses: 10}, false, 0.75 * 0.015},
		{"weighted, great", Weighted, map[Strategy]float64{Fixed: math.MaxFloat64, Diminishing: math.MaxFloat64}, Practice{Confidence: 0.5, Uses: 10}, true, 0.575},
		{"weighted, tiny", Weighted, map[Strategy]float64{Fixed: 5e-324, Temporal: 5e-324}, Practice{Confidence: 0.5, LastUsed: ago(30)}, true, 0.575},
		{"weighted, one of 0", Weighted, map[Strategy]float64{Fixed: 0, Temporal: 2}, Practice{Confidence: 0.5, LastUsed: ago(30)}, true, 0.55},
	} {
		got := reinforcement(t, c.strategy, c.weights).Apply(c.before, c.success, now)
		successes := c.before.Successes
		if c.success {
			successes++
		}
		if math.Abs(got.Confidence-c.want) > 1e-12 || got.Uses != c.before.Uses+1 || got.Successes != successes || *got.LastUsed != now {
			t.Errorf("%s: %+v, want a confidence of %v", c.name, got, c.want)
		}
	}
}

func TestReinforcementRefused(t *testing.T) { // P6
	for name, c := range map[string]struct {
		strategy Strategy
		weights  map[Strategy]float64
	}{
		"unknown":         {"fixd", nil},
		"no weights":      {Weighted, nil},
		"all zero":        {Weighted, map[Strategy]float64{Fixed: 0, Temporal: 0}},
		"negative":        {Weighted, map[Strategy]float64{Fixed: 1, Temporal: -1}},
		"no number":       {Weighted, map[Strategy]float64{Fixed: math.NaN()}},
		"infinite":        {Weighted, map[Strategy]float64{Fixed: math.Inf(1)}},
		"weighted inside": {Weighted, map[Strategy]float64{Fixed: 1, Weighted: 1}},
		"unknown inside":  {Weighted, map[Strategy]float64{Fixed: 1, "": 1}},
		"useless weights": {Fixed, map[Strategy]float64{Fixed: 1}},
	} {
		var e *errs.Error
		if _, err := NewReinforcement(c.strategy, c.weights); !errors.As(err, &e) || e.Code != errs.Validation || e.Field == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReinforcementHolds checks what must hold for any practice: the confidence stays
// within 0..1, a success never lowers it and a failure never raises it, no strategy
// goes further than the fixed one, and a mean lies between what it is the mean of.
func TestReinforcementHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Practice{Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"), Uses: rapid.Int64Range(0, math.MaxInt64).Draw(t, "uses")}
		p.Successes = rapid.Int64Range(0, p.Uses).Draw(t, "successes")
		if rapid.Bool().Draw(t, "used") {
			p.LastUsed = new(rapid.Int64().Draw(t, "last used"))
		}
		now, success := rapid.Int64().Draw(t, "now"), rapid.Bool().Draw(t, "success")
		fixed := reinforcement(t, Fixed, nil).Apply(p, success, now).Confidence
		low, high := 1.0, 0.0
		weights := map[Strategy]float64{}
		for _, s := range Strategies() {
			got := reinforcement(t, s, nil).Apply(p, success, now)
			low, high = min(low, got.Confidence), max(high, got.Confidence)
			weights[s] = rapid.Float64Range(0.001, 1000).Draw(t, string(s))
			if got.Successes > got.Uses || got.Uses < p.Uses || got.LastUsed == nil || *got.LastUsed != now {
				t.Fatalf("%s: %+v", s, got)
			}
			if !(got.Confidence >= 0 && got.Confidence <= 1) ||
				success && (got.Confidence < p.Confidence || got.Confidence > fixed) ||
				!success && (got.Confidence > p.Confidence || got.Confidence < fixed) {
				t.Fatalf("%s: %v became %v, by the fixed strategy %v", s, p.Confidence, got.Confidence, fixed)
			}
		}
		mean := reinforcement(t, Weighted, weights)
		got := mean.Apply(p, success, now).Confidence
		if got < low-1e-12 || got > high+1e-12 {
			t.Fatalf("a mean of %v, not between %v and %v", got, low, high)
		}
		if again := mean.Apply(p, success, now).Confidence; again != got {
			t.Fatalf("once %v, once %v", got, again)
		}
	})
}

func TestReinforcementSaturates(t *testing.T) {
	r := reinforcement(t, Fixed, nil)
	got := r.Apply(Practice{Confidence: 0.5, Uses: math.MaxInt64, Successes: 7}, true, 1)
	if got.Uses != math.MaxInt64 || got.Successes != 7 {
		t.Errorf("%+v", got)
	}
	for _, broken := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -3} {
		if got := r.Apply(Practice{Confidence: broken}, true, 1); !(got.Confidence >= 0 && got.Confidence <= 1) {
			t.Errorf("%v became %v", broken, got.Confidence)
		}
	}
}
