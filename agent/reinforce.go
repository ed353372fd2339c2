package agent

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/lifecycle"
)

// StrategyKind is a way to learn from a use.
type StrategyKind string

// The strategies. A success moves the confidence up by 0.1, a failure moves it down
// by 0.05; what these say is by which part of that.
const (
	// StrategyFixed takes all of it.
	StrategyFixed StrategyKind = "fixed"
	// StrategyDiminishing divides it by 1 + a tenth of the uses before: a procedure that
	// was used often is known well.
	StrategyDiminishing StrategyKind = "diminishing"
	// StrategyTemporal halves it for every 30 days since the last use: what has not been
	// used for long may have changed.
	StrategyTemporal StrategyKind = "temporal"
	// StrategyWeighted is the mean of what others give.
	StrategyWeighted StrategyKind = "weighted"
)

// Strategy says how far a use moves a procedure's confidence. The zero value is the
// fixed one.
type Strategy struct {
	Kind StrategyKind `json:"kind,omitempty"` // default fixed
	// Weights are those of the other strategies in a weighted one, which needs one above
	// 0: finite and not below 0. Only what they are to each other matters.
	Weights map[StrategyKind]float64 `json:"weights,omitempty"`
}

// ReinforceRequest says how a procedure has served once.
type ReinforceRequest struct {
	ID      loci.PointID `json:"id"`
	Success bool         `json:"success"`
	// Strategy says how far that moves the confidence.
	Strategy Strategy `json:"strategy,omitzero"`
	// ExpectedRevision refuses it unless the procedure is at this revision.
	ExpectedRevision *int64 `json:"expected_revision,omitempty"`
}

// Reinforced is how a procedure has served by now.
type Reinforced struct {
	ID         loci.PointID `json:"id"`
	Confidence float64      `json:"confidence"` // 0..1
	Uses       int64        `json:"uses"`
	Successes  int64        `json:"successes"`
	LastUsedUS int64        `json:"last_used_us"` // UTC microseconds
}

// Reinforce counts a use of a live procedure and moves its confidence by the fixed
// strategy: 0.1 up after a success, 0.05 down after a failure, within 0..1.
func (s *ProceduralMemory) Reinforce(ctx context.Context, id loci.PointID, success bool) (*loci.Receipt[Reinforced], error) {
	return s.reinforce(ctx, "reinforce", &ReinforceRequest{ID: id, Success: success})
}

// ReinforceWith is Reinforce by a strategy. It is one transaction: of uses that are
// counted at the same time none is lost. It adds no version to the history and
// changes nothing else.
func (s *ProceduralMemory) ReinforceWith(ctx context.Context, req ReinforceRequest) (*loci.Receipt[Reinforced], error) {
	return s.reinforce(ctx, "reinforce_with", &req)
}

func (s *ProceduralMemory) reinforce(ctx context.Context, call string, req *ReinforceRequest) (*loci.Receipt[Reinforced], error) {
	weights := make(map[lifecycle.Strategy]float64, len(req.Strategy.Weights))
	for kind, w := range req.Strategy.Weights {
		weights[lifecycle.Strategy(kind)] = w
	}
	strategy, err := lifecycle.NewReinforcement(lifecycle.Strategy(req.Strategy.Kind), weights)
	if err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	var out Reinforced
	revision, err := s.change(ctx, call, func(w *writer) error {
		old, err := w.required("id", uint64(req.ID))
		if err != nil {
			return err
		}
		if req.ExpectedRevision != nil {
			if err := expect(*req.ExpectedRevision, old); err != nil {
				return err
			}
		}
		after := strategy.Apply(lifecycle.Practice{
			Confidence: old.Confidence, Uses: old.Uses, Successes: old.Successes, LastUsed: old.LastUsed,
		}, req.Success, w.now)
		p := *old
		p.Confidence, p.Uses, p.Successes, p.LastUsed = after.Confidence, after.Uses, after.Successes, after.LastUsed
		p.Updated = max(p.Updated, s.m.link.Now().UnixMicro())
		out = Reinforced{ID: req.ID, Confidence: p.Confidence, Uses: p.Uses, Successes: p.Successes, LastUsedUS: w.now}
		return w.tx.UpdatePoint(old, &p) // the index holds none of it, so nothing is staged
	})
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[Reinforced]{Value: out, Revision: revision}, nil
}
