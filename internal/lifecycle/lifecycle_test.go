package lifecycle

import (
	"errors"
	"math"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"pgregory.net/rapid"
)

func TestValidate(t *testing.T) {
	if err := DefaultPolicy().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Policy){
		"tier0":       func(p *Policy) { p.Tier0Threshold = 0 },
		"tier0 nan":   func(p *Policy) { p.Tier0Threshold = math.NaN() },
		"tier1":       func(p *Policy) { p.Tier1Threshold = p.Tier0Threshold },
		"tier1 inf":   func(p *Policy) { p.Tier1Threshold = math.Inf(1) },
		"score boost": func(p *Policy) { p.UsefulScoreBoost = -1 },
		"boost":       func(p *Policy) { p.StrengthBoost = 0.99 },
		"cycle":       func(p *Policy) { p.Tier0CycleDays = 0 },
	} {
		p := DefaultPolicy()
		spoil(&p)
		var e *errs.Error
		if err := p.Validate(); !errors.As(err, &e) || e.Code != errs.Validation || e.Field == "" {
			t.Error(name, err)
		}
	}
}

// TestDecay checks what must hold for any memory at any time: decaying in two
// steps is decaying in one, the same time changes nothing twice, strength never
// grows and never falls below 0.
func TestDecay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		p.Tier0CycleDays = rapid.Int64Range(1, 10).Draw(t, "cycle")
		at := rapid.Int64Range(0, 1000*DayUS)
		optional := func(label string) *int64 {
			if rapid.Bool().Draw(t, "has "+label) {
				return new(at.Draw(t, label))
			}
			return nil
		}
		s := State{
			Pinned: rapid.IntRange(0, 5).Draw(t, "pinned") == 0, Strength: float64(rapid.IntRange(0, 500).Draw(t, "strength")),
			UsefulScore: rapid.SampledFrom([]float64{0, 2.9, 3, 11}).Draw(t, "score"), LastRecalled: optional("recalled"), LastDecay: optional("decay"),
		}
		created, first := at.Draw(t, "created"), at.Draw(t, "first")
		second := first + at.Draw(t, "later")
		a, _ := p.Decay(s, created, first)
		again, changed := p.Decay(a, created, first)
		if changed || again != a {
			t.Fatal("decayed twice at the same time")
		}
		two, _ := p.Decay(a, created, second)
		one, lost := p.Decay(s, created, second)
		if two.Strength != one.Strength {
			t.Fatalf("in two steps %v, in one %v", two.Strength, one.Strength)
		}
		if one.Strength < 0 || one.Strength > s.Strength || lost != (one != s) || lost && (s.Pinned || p.Tier(s) != 0) {
			t.Fatalf("%+v became %+v", s, one)
		}
	})
}

func TestExtremes(t *testing.T) {
	p := DefaultPolicy()
	p.StrengthBoost, p.UsefulScoreBoost = math.MaxFloat64, math.MaxFloat64
	s := State{Strength: math.MaxFloat64, UsefulScore: math.MaxFloat64, UsefulCount: math.MaxInt64}
	if s = p.Useful(s, 1); s.Strength != math.MaxFloat64 || s.UsefulScore != math.MaxFloat64 || s.UsefulCount != math.MaxInt64 {
		t.Errorf("%+v", s)
	}
	p = DefaultPolicy()
	got, lost := p.Decay(State{Strength: math.MaxFloat64}, math.MinInt64, math.MaxInt64)
	// Within one cycle of the end of time, and not wrapped around it.
	if cycle := int64(3 * 24 * 3600 * 1e6); !lost || *got.LastDecay <= math.MaxInt64-cycle || got.Strength < 0 {
		t.Errorf("%+v", got)
	}
	p.Tier0CycleDays = math.MaxInt64
	if _, lost := p.Decay(State{Strength: 1}, 0, math.MaxInt64); lost {
		t.Error("a cycle longer than time has passed")
	}
}
