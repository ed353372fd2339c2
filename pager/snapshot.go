package pager

import (
	"context"

	"github.com/loci-memory/loci/internal/render"
)

// RenderRequest asks for the window's text.
type RenderRequest struct {
	// Publish makes the text the one that later changes are compared with, as
	// snapshot and prefix do: set it when the text goes to a model.
	Publish bool `json:"publish,omitempty"`
}

// Render gives the window's text and checks its budget anew. It publishes only
// when asked, so that people can look without moving the generation.
func (cs *Store) Render(ctx context.Context, req RenderRequest) (*Snapshot, error) {
	return cs.look(ctx, opRender, req.Publish, nil, nil)
}

const opRender = "render"

// SnapshotRequest asks what has changed in the window.
type SnapshotRequest struct {
	// Since is the generation that the caller has; nil for none.
	Since *int64 `json:"since,omitempty"`
	// Publish, when false, leaves the generation as it is. Default true.
	Publish *bool `json:"publish,omitempty"`
}

// Snapshot is what a host calls at every step: when nothing has changed since
// the generation that it has, the answer is short and made without rendering.
// Otherwise the text is published and given.
func (cs *Store) Snapshot(ctx context.Context, req SnapshotRequest) (*Snapshot, error) {
	return cs.look(ctx, "snapshot", req.Publish == nil || *req.Publish, req.Since, nil)
}

// look gives the window, with its text unless the caller has it. also, if not nil,
// looks at more of the scope as it is then.
func (cs *Store) look(ctx context.Context, op string, publish bool, since *int64, also func(context.Context, *scope) error) (out *Snapshot, err error) {
	quick := false
	err = cs.with(ctx, op, func(s *scope) error {
		if publish && (s.state.Published.SHA == "" || s.publishedEpoch != s.state.Epoch) {
			return nil
		}
		if (publish || op == opRender) && !s.fits() {
			return nil
		}
		policy, err := s.policy(ctx)
		if err != nil {
			return err
		}
		quick = true
		out = s.snapshot(policy, since)
		if also != nil {
			return also(ctx, s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if quick {
		return out, nil
	}
	err = cs.mutate(ctx, op, func(c *change) error {
		c.publish, c.refit = publish, true
		return nil
	}, func(c *change) error {
		out = c.scope.snapshot(c.policy, since)
		if also != nil {
			return also(context.WithoutCancel(ctx), c.scope) // the text is published
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// snapshot says what is in the window, as it stands. Without since, or when it
// is not the generation of these bytes, the text is given.
func (s *scope) snapshot(policy Policy, since *int64) *Snapshot {
	p := s.state.Published
	out := &Snapshot{Generation: s.state.Generation, Epoch: s.state.Epoch, Pressure: s.pressure(policy)}
	if p.SHA != "" && s.publishedEpoch == s.state.Epoch {
		out.SHA, out.CoreSHA, out.StablePrefixBytes, out.TextBytes = p.SHA, p.CoreSHA, p.Stable, p.Size
		out.Changed = since == nil || *since != s.state.Generation
	} else {
		text, stable := s.render()
		out.SHA, out.CoreSHA = render.Sum(text), render.Sum(text[:stable])
		out.StablePrefixBytes, out.TextBytes = stable, len(text)
		out.Changed = since == nil || *since != s.state.Generation || out.SHA != p.SHA
	}
	if out.Changed {
		text, _ := s.render()
		whole := string(text)
		out.Text = &whole
	}
	return out
}

// pressure says how full the window is.
func (s *scope) pressure(policy Policy) Pressure {
	cost, budget := s.cost(), s.state.Budget
	p := Pressure{Level: "low", Cost: cost, Budget: budget, Unit: s.state.Unit, Used: float64(cost) / float64(budget)}
	switch pct := 100 * cost; {
	case pct >= policy.HardPct*budget:
		p.Level = "hard"
	case pct >= policy.ThresholdPct*budget:
		p.Level = "high"
	case pct >= advisoryPct*budget:
		p.Level = "advisory"
	}
	return p
}

// cost is what the window costs as it stands.
func (s *scope) cost() int {
	if s.full == nil || s.full.epoch != s.state.Epoch || s.full.measure != s.state.measure {
		s.full = &fullness{s.state.Epoch, s.state.measure, meter{s.counter}.cost(&s.window)}
	}
	return s.full.cost
}

// fits says whether the window keeps its budget. It does after every operation; an
// import that gives copies other ids may make it a little larger.
func (s *scope) fits() bool { return s.cost() <= s.state.Budget }

// advisoryPct is the share of the budget from which a host does well to think of
// folding or compacting.
const advisoryPct = 70

// fullness remembers what a window costs.
type fullness struct {
	epoch   int64
	measure measure
	cost    int
}

// PrefixRequest asks for the text in two parts.
type PrefixRequest struct {
	// Publish, when false, leaves the generation as it is. Default true.
	Publish *bool `json:"publish,omitempty"`
}

// PrefixResult is the window's text in two parts, so that a host can send two
// blocks with a cache breakpoint between them.
type PrefixResult struct {
	Snapshot
	Prefix string       `json:"prefix"` // stable as long as core is
	Tail   string       `json:"tail"`
	Last   *RenderEvent `json:"last,omitempty"` // the last change of the published bytes
}

// Prefix gives the byte-stable prefix, the tail behind it, and what the last
// change cost. The two together are the text.
func (cs *Store) Prefix(ctx context.Context, req PrefixRequest) (*PrefixResult, error) {
	out := &PrefixResult{}
	snap, err := cs.look(ctx, "prefix", req.Publish == nil || *req.Publish, nil, func(ctx context.Context, s *scope) error {
		events, err := s.renderEvents(ctx, 1)
		if len(events) > 0 {
			out.Last = &events[0]
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Snapshot = *snap
	text := *snap.Text
	out.Prefix, out.Tail, out.Text = text[:snap.StablePrefixBytes], text[snap.StablePrefixBytes:], nil
	return out, nil
}
