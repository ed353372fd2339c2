package lifecycle

import (
	"cmp"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// Practice is how a procedure has served so far. Times are UTC microseconds.
type Practice struct {
	Confidence float64 // 0..1
	Uses       int64
	Successes  int64
	LastUsed   *int64 // nil: never used
}

// Strategy says how far one use moves a procedure's confidence.
type Strategy string

// The strategies.
const (
	Fixed       Strategy = "fixed"       // always the same step
	Diminishing Strategy = "diminishing" // the more it was used, the less one use says
	Temporal    Strategy = "temporal"    // the longer ago it was used last, the less one use says
	Weighted    Strategy = "weighted"    // the mean of what others give
)

const (
	// A success moves the confidence by as much, a failure by half of that: what works one
	// time in three holds its ground.
	successStep = 0.1
	failureStep = -0.05
	// useDamping is how much each earlier use takes from a diminishing step.
	useDamping = 0.1
	// halfLifeDays is the time after which a temporal step is half as long.
	halfLifeDays = 30
)

// Strategies gives the strategies that need no weights, sorted.
func Strategies() []Strategy { return []Strategy{Diminishing, Fixed, Temporal} }

// Reinforcement is a strategy that was checked. The zero value is the fixed one.
type Reinforcement struct {
	strategy Strategy
	weights  []strategyWeight // of a weighted one, by strategy, together 1
}

type strategyWeight struct {
	strategy Strategy
	weight   float64
}

// NewReinforcement checks a strategy; "" is the fixed one. Weights belong to the
// weighted one alone, which needs them: at least one above 0, none below, all
// finite. Their size does not matter, only what they are to each other.
func NewReinforcement(s Strategy, weights map[Strategy]float64) (*Reinforcement, error) {
	switch s {
	case "":
		s = Fixed
	case Fixed, Diminishing, Temporal, Weighted:
	default:
		return nil, errs.Invalid("strategy.kind", "must be fixed, diminishing, temporal or weighted")
	}
	if s != Weighted {
		if len(weights) > 0 {
			return nil, errs.Invalid("strategy.weights", "belong to the weighted strategy only")
		}
		return &Reinforcement{strategy: s}, nil
	}
	r := &Reinforcement{strategy: s}
	most := 0.0
	for name, w := range weights {
		if !slices.Contains(Strategies(), name) {
			return nil, errs.Invalid("strategy.weights", "may weigh fixed, diminishing and temporal, nothing else")
		}
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, errs.Invalid("strategy.weights", "must be finite and not below 0, and that of %s is not", name)
		}
		if w > 0 {
			r.weights = append(r.weights, strategyWeight{name, w})
		}
		most = max(most, w)
	}
	if most == 0 {
		return nil, errs.Invalid("strategy.weights", "must have one above 0")
	}
	// In one order, so that the same weights give the same sum to the last bit.
	slices.SortFunc(r.weights, func(a, b strategyWeight) int { return cmp.Compare(a.strategy, b.strategy) })
	sum := 0.0
	for i := range r.weights {
		r.weights[i].weight /= most // the sum of great ones would be no number
		sum += r.weights[i].weight
	}
	for i := range r.weights {
		r.weights[i].weight /= sum
	}
	return r, nil
}

// Apply gives a procedure's practice after one more use at a time. Counts saturate.
func (r *Reinforcement) Apply(p Practice, success bool, now int64) Practice {
	before := p
	p.Confidence = 0
	if r.strategy == Weighted {
		for _, w := range r.weights {
			p.Confidence += w.weight * moved(w.strategy, &before, success, now)
		}
		p.Confidence = unit(p.Confidence)
	} else {
		p.Confidence = moved(r.strategy, &before, success, now)
	}
	if p.Uses < math.MaxInt64 {
		p.Uses++
		if success {
			p.Successes++
		}
	}
	p.LastUsed = &now
	return p
}

// moved is the confidence after a use by one strategy, which is kept within 0..1:
//
//	fixed        confidence + step
//	diminishing  confidence + step / (1 + 0.1 * uses before)
//	temporal     confidence + step * 2^(-days since the last use / 30), the whole
//	             step where it was never used, or last in the future
//
// where step is +0.1 for a success and -0.05 for a failure. The diminishing step
// falls as one over the number of uses, like that of a running mean with a prior of
// ten uses: 1 / (1 + n/10) = 10 / (10 + n). The temporal one is exponential
// forgetting with a half-life of 30 days.
func moved(s Strategy, p *Practice, success bool, now int64) float64 {
	step := failureStep
	if success {
		step = successStep
	}
	switch s {
	case Diminishing:
		step /= 1 + useDamping*float64(max(0, p.Uses))
	case Temporal:
		if p.LastUsed != nil {
			// The difference of two int64 need not fit one.
			days := (float64(now) - float64(*p.LastUsed)) / DayUS
			step *= math.Exp2(-max(0, days) / halfLifeDays)
		}
	}
	return unit(p.Confidence + step)
}

// unit keeps a confidence within 0..1; what is no number is 0.
func unit(c float64) float64 {
	if !(c > 0) {
		return 0
	}
	return min(c, 1)
}
