package loci

import (
	"context"
	"fmt"
	"math"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/lifecycle"
	"github.com/loci-memory/loci/internal/store"
)

const maxFinite = math.MaxFloat64

// check fills in the defaults and validates the policy.
func (p *DecayPolicy) check() (lifecycle.Policy, error) {
	d := lifecycle.DefaultPolicy()
	policy := lifecycle.Policy{
		Tier0Threshold:   valueOr(p.Tier0Threshold, d.Tier0Threshold),
		Tier1Threshold:   valueOr(p.Tier1Threshold, d.Tier1Threshold),
		UsefulScoreBoost: valueOr(p.UsefulScoreBoost, d.UsefulScoreBoost),
		StrengthBoost:    valueOr(p.StrengthBoost, d.StrengthBoost),
		Tier0CycleDays:   valueOr(p.Tier0CycleDays, d.Tier0CycleDays),
	}
	return policy, policy.Validate()
}

// DefaultDecayPolicy is the policy of requests that set nothing.
func DefaultDecayPolicy() DecayPolicy {
	d := lifecycle.DefaultPolicy()
	return DecayPolicy{
		Tier0Threshold: &d.Tier0Threshold, Tier1Threshold: &d.Tier1Threshold, UsefulScoreBoost: &d.UsefulScoreBoost,
		StrengthBoost: &d.StrengthBoost, Tier0CycleDays: &d.Tier0CycleDays,
	}
}

// Feedback strengthens what was useful and weakens what was recalled in vain.
func (s *MemoryStore) Feedback(ctx context.Context, req FeedbackRequest) (*Receipt[FeedbackReport], error) {
	const op = "memories.feedback"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	report, revision, err := s.feedback(ctx, &req)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[FeedbackReport]{Value: report, Revision: revision}, nil
}

func (s *MemoryStore) feedback(ctx context.Context, req *FeedbackRequest) (report FeedbackReport, revision int64, err error) {
	filter, err := req.Filter.checkWrite(ctx, "filter.")
	if err != nil {
		return report, 0, err
	}
	policy, err := req.Policy.check()
	if err != nil {
		return report, 0, err
	}
	if len(req.RecalledIDs) > MaxBatch {
		return report, 0, errs.Invalid("recalled_ids", "has %d entries, at most %d are allowed", len(req.RecalledIDs), MaxBatch)
	}
	now := s.eng.clock().UnixMicro()
	if req.NowUS != nil {
		if now = *req.NowUS; now < 0 {
			return report, 0, errs.Invalid("now_us", "must not be negative")
		}
	}
	recalled := uniqueIDs(req.RecalledIDs)
	useful := make(map[ID]bool, len(recalled))
	for _, id := range recalled {
		useful[id] = false
	}
	for i, id := range req.UsefulIDs {
		if _, ok := useful[id]; !ok {
			return report, 0, errs.Invalid(fmt.Sprintf("useful_ids[%d]", i), "%d is not among recalled_ids", id)
		}
		useful[id] = true
	}
	covers := filter.memories()
	revision, err = s.eng.write(ctx, func(tx *store.WriteTx) error {
		report = FeedbackReport{Recalled: len(recalled)}
		for _, id := range recalled {
			m, err := tx.Memory(int64(id))
			if err != nil {
				return err
			}
			if m == nil || !covers || !filter.covers(&m.Record) {
				return &errs.Error{Code: errs.NotFound, Field: "recalled_ids",
					Message: fmt.Sprintf("there is no memory %d under this filter", id)}
			}
			old := m.State
			if useful[id] {
				m.State = store.State(policy.Useful(lifecycle.State(old), now))
				report.Boosted++
			} else if next, penalized := policy.Useless(lifecycle.State(old)); penalized {
				m.State = store.State(next)
				report.Penalized++
			}
			if m.State != old {
				if err := tx.UpdateState(m); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return report, revision, err
}

// Decay weakens memories that have not been recalled for a while.
func (s *MemoryStore) Decay(ctx context.Context, req DecayRequest) (*Receipt[DecayReport], error) {
	const op = "memories.decay"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	report, revision, err := s.decay(ctx, &req)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[DecayReport]{Value: report, Revision: revision}, nil
}

func (s *MemoryStore) decay(ctx context.Context, req *DecayRequest) (report DecayReport, revision int64, err error) {
	report.RetirementCandidates = []ID{}
	filter, err := req.Filter.checkWrite(ctx, "filter.")
	if err != nil {
		return report, 0, err
	}
	policy, err := req.Policy.check()
	if err != nil {
		return report, 0, err
	}
	at := valueOr(req.AtUS, s.eng.clock().UnixMicro())
	if at < 0 {
		return report, 0, errs.Invalid("at_us", "must not be negative")
	}
	decays := false
	ids, revision, err := s.covered(ctx, filter, func(m *store.Memory) bool {
		next, decayed := policy.Decay(lifecycle.State(m.State), m.Created, at)
		decays = decays || decayed
		candidate := policy.RetirementCandidate(next)
		if candidate {
			report.RetirementCandidates = append(report.RetirementCandidates, ID(m.ID))
		}
		return decayed || candidate
	})
	if err != nil || !decays {
		return report, revision, err
	}
	revision, err = s.eng.write(ctx, func(tx *store.WriteTx) error {
		report = DecayReport{RetirementCandidates: []ID{}}
		return eachCovered(ctx, tx, filter, ids, func(m *store.Memory) error {
			next, decayed := policy.Decay(lifecycle.State(m.State), m.Created, at)
			if policy.RetirementCandidate(next) {
				report.RetirementCandidates = append(report.RetirementCandidates, ID(m.ID))
			}
			if !decayed {
				return nil
			}
			report.Decayed++
			m.State = store.State(next)
			return tx.UpdateState(m)
		})
	})
	return report, revision, err
}
