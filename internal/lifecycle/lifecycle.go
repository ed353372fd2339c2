// Package lifecycle computes how a memory's state moves when it is recalled
// and when time passes. It is arithmetic only: no clock, no storage.
package lifecycle

import (
	"math"

	"github.com/loci-memory/loci/internal/errs"
)

// DayUS is a day in microseconds.
const DayUS = 24 * 60 * 60 * 1_000_000

// Policy tunes feedback and decay.
type Policy struct {
	Tier0Threshold   float64 // useful scores below are tier 0
	Tier1Threshold   float64 // useful scores below, and not in tier 0, are tier 1
	UsefulScoreBoost float64
	StrengthBoost    float64
	Tier0CycleDays   int64 // a memory in tier 0 loses 1 strength per cycle
}

// DefaultPolicy is the policy of whoever names none.
func DefaultPolicy() Policy {
	return Policy{Tier0Threshold: 3, Tier1Threshold: 10, UsefulScoreBoost: 2.5, StrengthBoost: 1, Tier0CycleDays: 3}
}

// Validate reports the first number that makes no sense.
func (p Policy) Validate() error {
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"policy.tier0_threshold", p.Tier0Threshold}, {"policy.tier1_threshold", p.Tier1Threshold},
		{"policy.useful_score_boost", p.UsefulScoreBoost}, {"policy.strength_boost", p.StrengthBoost},
	} {
		if !(f.v > 0) || math.IsInf(f.v, 0) {
			return errs.Invalid(f.name, "must be finite and above 0, not %v", f.v)
		}
	}
	switch {
	case p.Tier1Threshold <= p.Tier0Threshold:
		return errs.Invalid("policy.tier1_threshold", "must be above tier0_threshold %v, not %v", p.Tier0Threshold, p.Tier1Threshold)
	case p.StrengthBoost < 1:
		return errs.Invalid("policy.strength_boost", "must be at least 1, not %v", p.StrengthBoost)
	case p.Tier0CycleDays < 1:
		return errs.Invalid("policy.tier0_cycle_days", "must be at least 1, not %d", p.Tier0CycleDays)
	}
	return nil
}

// State is a memory's lifecycle state. Times are UTC microseconds.
type State struct {
	Pinned       bool
	Strength     float64
	UsefulCount  int64
	UsefulScore  float64
	LastRecalled *int64
	LastDecay    *int64
}

// Tier is 0, 1 or 2, by how useful a memory has proved.
func (p Policy) Tier(s State) int {
	switch {
	case s.UsefulScore < p.Tier0Threshold:
		return 0
	case s.UsefulScore < p.Tier1Threshold:
		return 1
	}
	return 2
}

// Useful is the state after a recall that helped. Sums stay finite.
func (p Policy) Useful(s State, now int64) State {
	s.Strength = min(s.Strength+p.StrengthBoost, math.MaxFloat64)
	s.UsefulScore = min(s.UsefulScore+p.UsefulScoreBoost, math.MaxFloat64)
	if s.UsefulCount < math.MaxInt64 {
		s.UsefulCount++
	}
	s.LastRecalled = &now
	return s
}

// Useless is the state after a recall that did not help, and whether it counts
// against the memory: only tier 1 is penalised, and nothing that is pinned.
func (p Policy) Useless(s State) (State, bool) {
	if s.Pinned || p.Tier(s) != 1 {
		return s, false
	}
	s.Strength = max(0, s.Strength-1)
	return s, true
}

// Decay is the state at a later time of a memory made at created, and whether
// it lost anything. It counts whole cycles only, so decaying twice at the same
// time changes nothing the second time.
func (p Policy) Decay(s State, created, at int64) (State, bool) {
	if s.Pinned || p.Tier(s) != 0 || s.Strength <= 0 {
		return s, false
	}
	reference := created
	if s.LastRecalled != nil {
		reference = max(reference, *s.LastRecalled)
	}
	if s.LastDecay != nil {
		reference = max(reference, *s.LastDecay)
	}
	if at <= reference || p.Tier0CycleDays > math.MaxInt64/DayUS {
		return s, false
	}
	// The difference of two int64 always fits a uint64.
	cycle := uint64(p.Tier0CycleDays) * DayUS
	steps := (uint64(at) - uint64(reference)) / cycle
	if steps == 0 {
		return s, false
	}
	s.Strength = max(0, s.Strength-float64(steps))
	last := int64(uint64(reference) + steps*cycle)
	s.LastDecay = &last
	return s, true
}

// RetirementCandidate says whether a memory has faded without ever proving
// itself.
func (p Policy) RetirementCandidate(s State) bool {
	return !s.Pinned && s.Strength == 0 && p.Tier(s) < 2
}
