package pager

import "context"

// MetricsRequest asks what changes of the published bytes cost.
type MetricsRequest struct {
	Limit *int `json:"limit,omitempty"` // 1..1000, default 50
}

// MetricsResult says what they cost.
type MetricsResult struct {
	Events []RenderEvent `json:"events"` // newest first
	Totals Totals        `json:"totals"` // of all there ever were
}

// Totals sums up the life of a scope.
type Totals struct {
	Renders          int64 `json:"renders"` // changes of the published bytes, the first one among them
	InvalidatedBytes int64 `json:"invalidated_bytes"`
	RewrittenBytes   int64 `json:"rewritten_bytes"`
	Intact           int64 `json:"intact"` // changes behind the first that left the stable prefix alone
	// IntactShare is Intact over those changes; null before there is one.
	IntactShare *float64 `json:"intact_share"`
	Evictions   int64    `json:"evictions"` // pages that were put out to make room, or by the policy
	Faults      int64    `json:"faults"`    // pages that came back shortly after their eviction
}

// totalsState is what is stored of the totals.
type totalsState struct {
	Renders     int64 `json:"renders,omitempty"`
	Invalidated int64 `json:"invalidated,omitempty"`
	Rewritten   int64 `json:"rewritten,omitempty"`
	Intact      int64 `json:"intact,omitempty"`
	Evictions   int64 `json:"evictions,omitempty"`
	Faults      int64 `json:"faults,omitempty"`
}

// published counts a change of the published bytes.
func (t *totalsState) published(e *RenderEvent) {
	t.Renders++
	t.Invalidated += int64(e.InvalidatedBytes)
	t.Rewritten += int64(e.RewrittenBytes)
	if e.PrefixIntact && !e.First {
		t.Intact++
	}
}

// moved counts movements, of which so many were evictions.
func (t *totalsState) moved(ledger []Movement, evicted int) {
	t.Evictions += int64(evicted)
	for i := range ledger {
		if ledger[i].Fault {
			t.Faults++
		}
	}
}

func (t *totalsState) totals() Totals {
	out := Totals{Renders: t.Renders, InvalidatedBytes: t.Invalidated, RewrittenBytes: t.Rewritten, Intact: t.Intact, Evictions: t.Evictions, Faults: t.Faults}
	if t.Renders > 1 {
		out.IntactShare = new(float64(t.Intact) / float64(t.Renders-1))
	}
	return out
}

// Metrics gives the newest changes of the published bytes with what they cost,
// and the totals. It changes nothing.
func (cs *Store) Metrics(ctx context.Context, req MetricsRequest) (*MetricsResult, error) {
	const op = "metrics"
	limit, err := validLimit("limit", req.Limit, 50, 1, maxEvents)
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *MetricsResult
	err = cs.with(ctx, op, func(s *scope) (err error) {
		out = &MetricsResult{Totals: s.state.Totals.totals()}
		out.Events, err = s.renderEvents(ctx, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
