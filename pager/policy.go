package pager

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Policy says when working pages are put out of the window before it is full,
// and which. It belongs to a namespace.
type Policy struct {
	Mode         string `json:"mode"`          // "manual", "turns", "threshold" or "either"
	EveryN       int    `json:"every_n"`       // turns between two runs, 1..100
	ThresholdPct int    `json:"threshold_pct"` // of the budget, from which it runs, 10..100
	TargetPct    int    `json:"target_pct"`    // of the budget, down to which it evicts, 5..95, below the threshold
	Strategy     string `json:"strategy"`      // which go first: "value" or "lru"
	KeepRecent   int    `json:"keep_recent"`   // working pages touched last that stay, 0..20
	// Provider names the profile by which the prompt cache is judged warm; while it
	// is, runs and folds wait. "" for none.
	Provider string `json:"provider,omitempty"`
	// HardPct is the share of the budget from which nothing waits any more, 10..100,
	// not below the threshold.
	HardPct int `json:"hard_pct"`
}

// The modes and strategies of a policy.
const (
	modeManual    = "manual"
	modeTurns     = "turns"
	modeThreshold = "threshold"
	modeEither    = "either"

	strategyValue = "value"
	strategyLRU   = "lru"
)

// defaultPolicy is the policy of a namespace that has set none.
func defaultPolicy() Policy {
	return Policy{Mode: modeManual, EveryN: 10, ThresholdPct: 80, TargetPct: 60, Strategy: strategyValue, KeepRecent: 3, HardPct: 95}
}

// check validates a policy as a whole.
func (p *Policy) check() error {
	if !slices.Contains([]string{modeManual, modeTurns, modeThreshold, modeEither}, p.Mode) {
		return invalid("mode", "must be manual, turns, threshold or either")
	}
	for _, f := range []struct {
		field              string
		value, least, most int
	}{
		{"every_n", p.EveryN, 1, 100}, {"threshold_pct", p.ThresholdPct, 10, 100}, {"target_pct", p.TargetPct, 5, 95},
		{"keep_recent", p.KeepRecent, 0, 20}, {"hard_pct", p.HardPct, 10, 100},
	} {
		if f.value < f.least || f.value > f.most {
			return invalid(f.field, "must be from %d to %d, not %d", f.least, f.most, f.value)
		}
	}
	switch {
	case p.TargetPct >= p.ThresholdPct:
		return invalid("target_pct", "must be below threshold_pct, and %d is not below %d", p.TargetPct, p.ThresholdPct)
	case p.HardPct < p.ThresholdPct:
		return invalid("hard_pct", "must not be below threshold_pct, and %d is below %d", p.HardPct, p.ThresholdPct)
	case p.Strategy != strategyValue && p.Strategy != strategyLRU:
		return invalid("strategy", "must be value or lru")
	}
	if p.Provider != "" {
		if _, known := profileOf(p.Provider); !known {
			return invalid("provider", "is not known: name one of %s, or give an empty one for none", strings.Join(profileNames(), ", "))
		}
	}
	return nil
}

// policy gives the namespace's policy.
func (s *scope) policy(ctx context.Context) (Policy, error) {
	r := s.reg
	r.mu.Lock()
	p, ok := r.policies[s.key.namespace]
	r.mu.Unlock()
	if ok {
		return p, nil
	}
	changes := r.changes.Load() // before reading, so that a later change is seen
	err := r.link.Read(ctx, func(tx *store.ReadTx) error {
		raw, err := tx.Policy(s.key.namespace)
		if err != nil {
			return err
		}
		p, err = decodePolicy(raw)
		return err
	})
	if err != nil {
		return p, err
	}
	r.keepPolicy(s.key.namespace, p, changes)
	return p, nil
}

// decodePolicy reads a stored policy; what it does not say is as by default.
func decodePolicy(raw []byte) (Policy, error) {
	p := defaultPolicy()
	if raw == nil {
		return p, nil
	}
	return p, errs.Wrap(errs.Storage, json.Unmarshal(raw, &p), "the database is damaged: a replacement policy cannot be read")
}

// keptPolicies is how many namespaces' policies are kept in memory.
const keptPolicies = 1000

// keepPolicy keeps a namespace's policy in memory, unless something has changed
// since it was read.
func (r *registry) keepPolicy(namespace string, p Policy, changes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes.Load() != changes {
		return
	}
	if len(r.policies) >= keptPolicies {
		clear(r.policies)
	}
	r.policies[namespace] = p
}

// policyState is what is stored about a scope's replacement policy at work.
type policyState struct {
	LastTurnID *int64     `json:"last_turn_id,omitempty"`
	Turns      int64      `json:"turns,omitempty"`        // counted by policy_tick
	TurnsAtRun int64      `json:"turns_at_run,omitempty"` // when it last ran
	Runs       int64      `json:"runs,omitempty"`
	Last       *PolicyRun `json:"last,omitempty"`
}

// Replacement is a scope's replacement policy and how it is at work.
type Replacement struct {
	Policy Policy      `json:"policy"` // of the namespace
	State  PolicyState `json:"state"`  // of the scope
}

// PolicyState says how the policy is at work in a scope.
type PolicyState struct {
	Turns      int64      `json:"turns"`          // counted by policy_tick
	TurnsSince int64      `json:"turns_since"`    // the last run
	Runs       int64      `json:"runs"`           // there were
	LastTurnID *int64     `json:"last_turn_id"`   // the greatest that policy_tick was given; null for none
	Last       *PolicyRun `json:"last,omitempty"` // the last run
}

// PolicyRun is a run of the policy.
type PolicyRun struct {
	AtUS    int64  `json:"at_us"`
	Turn    int64  `json:"turn"`    // as counted by policy_tick
	Reason  string `json:"reason"`  // "turns", "threshold" or "force"
	Before  int    `json:"before"`  // what the window cost
	After   int    `json:"after"`   // what it cost afterwards
	Target  int    `json:"target"`  // what it was to cost at most
	Reached bool   `json:"reached"` // the target; false when all that may go went, and it was not enough
	Evicted int    `json:"evicted"` // pages
}

// public is the state as callers get it. They may change what they get.
func (p *policyState) public() PolicyState {
	out := PolicyState{Turns: p.Turns, TurnsSince: p.Turns - p.TurnsAtRun, Runs: p.Runs}
	if p.LastTurnID != nil {
		out.LastTurnID = new(*p.LastTurnID)
	}
	if p.Last != nil {
		out.Last = new(*p.Last)
	}
	return out
}

// ReplacementPolicyRequest asks for the policy. It takes nothing.
type ReplacementPolicyRequest struct{}

// ReplacementPolicy gives the namespace's policy, the default one if none was
// set, and how it is at work in this scope. It changes nothing.
func (cs *Store) ReplacementPolicy(ctx context.Context, _ ReplacementPolicyRequest) (*Replacement, error) {
	var out *Replacement
	err := cs.with(ctx, "replacement_policy", func(s *scope) error {
		policy, err := s.policy(ctx)
		out = &Replacement{policy, s.state.Policy.public()}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// SetPolicyRequest changes what it names of a policy and leaves the rest.
type SetPolicyRequest struct {
	Mode         *string `json:"mode,omitempty"`          // "manual", "turns", "threshold" or "either"
	EveryN       *int    `json:"every_n,omitempty"`       // turns between two runs, 1..100
	ThresholdPct *int    `json:"threshold_pct,omitempty"` // of the budget, from which it runs, 10..100
	TargetPct    *int    `json:"target_pct,omitempty"`    // of the budget, down to which it evicts, 5..95, below the threshold
	Strategy     *string `json:"strategy,omitempty"`      // which go first: "value" or "lru"
	KeepRecent   *int    `json:"keep_recent,omitempty"`   // working pages touched last that stay, 0..20
	Provider     *string `json:"provider,omitempty"`      // profile by which the prompt cache is judged warm; "" for none
	// HardPct is the share of the budget from which nothing waits any more, 10..100.
	// Left out, it rises with a threshold that is set above it.
	HardPct *int `json:"hard_pct,omitempty"`
}

// SetPolicyResult is the policy in force.
type SetPolicyResult struct {
	Policy  Policy `json:"policy"`
	Changed bool   `json:"changed"` // false: it was like this already
}

// apply merges the request into a policy.
func (r *SetPolicyRequest) apply(p *Policy) {
	set(&p.Mode, r.Mode)
	set(&p.EveryN, r.EveryN)
	set(&p.ThresholdPct, r.ThresholdPct)
	set(&p.TargetPct, r.TargetPct)
	set(&p.Strategy, r.Strategy)
	set(&p.KeepRecent, r.KeepRecent)
	set(&p.Provider, r.Provider)
	if r.HardPct == nil && r.ThresholdPct != nil {
		p.HardPct = max(p.HardPct, *r.ThresholdPct)
	}
	set(&p.HardPct, r.HardPct)
}

// set sets a value if there is another.
func set[T any](value, to *T) {
	if to != nil {
		*value = *to
	}
}

// SetPolicy merges a patch into the namespace's policy, which must be valid as a
// whole afterwards. All scopes of the namespace go by it from then on.
func (cs *Store) SetPolicy(ctx context.Context, req SetPolicyRequest) (*SetPolicyResult, error) {
	var out *SetPolicyResult
	// Nothing is stored for the scope, which need not have been used.
	err := cs.with(ctx, "set_policy", func(s *scope) error {
		if err := s.reg.link.MayWriteAll(ctx, s.key.namespace); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, cs.wait)
		defer cancel()
		_, err := s.reg.link.Write(waiting, func(tx *store.WriteTx) error {
			out = nil
			raw, err := tx.Policy(s.key.namespace)
			if err != nil {
				return err
			}
			p, err := decodePolicy(raw)
			if err != nil {
				return err
			}
			was := p
			req.apply(&p)
			if err := p.check(); err != nil {
				return err
			}
			out = &SetPolicyResult{p, p != was}
			if !out.Changed {
				return nil
			}
			if raw, err = json.Marshal(p); err != nil {
				return err
			}
			return tx.SetPolicy(s.key.namespace, raw)
		})
		if err != nil {
			return busyWriting(ctx, cs.wait, err)
		}
		if out.Changed {
			s.reg.Changed() // forgets what is known of policies, in every scope
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PolicyTickRequest tells the policy of a new turn of the conversation.
type PolicyTickRequest struct {
	// TurnID numbers the user's message, so that telling of it twice counts once: a
	// number that is not above the last one counts no turn, and then nothing runs
	// but by Force. Left out, every call counts one, unless it is forced.
	TurnID *int64 `json:"turn_id,omitempty"`
	// Force runs the policy whatever its mode and however warm the provider's cache
	// is. The user's alone.
	Force bool `json:"force,omitempty"`
}

// PolicyTickResult says what the policy did.
type PolicyTickResult struct {
	Triggered bool `json:"triggered"`
	Counted   bool `json:"counted"` // the turn was a new one
	// Deferred says that it would have run and waits: the provider's cache is warm.
	Deferred bool `json:"deferred,omitempty"`
	// Reason is, when triggered, "turns", "threshold" or "force", and when
	// deferred, for how long the cache is warm.
	Reason  string      `json:"reason,omitempty"`
	Evicted []Reference `json:"evicted"`
	Before  int         `json:"before"` // what the window cost
	After   int         `json:"after"`  // what it costs now
	Target  int         `json:"target"` // what it is to cost at most after a run
	Turns   int64       `json:"turns"`  // counted so far
	Runs    int64       `json:"runs"`   // so far
	// Reached says, when triggered, whether the target was reached; false when all
	// that may go went, and it was not enough.
	Reached *bool `json:"reached,omitempty"`
	AtUS    int64 `json:"at_us"`
}

// PolicyTick counts a turn of the conversation and runs the namespace's policy
// when it is time: with turns, EveryN turns after the last run; with threshold,
// from ThresholdPct of the budget; with either, at both. A run evicts working
// pages, in the order of the strategy, until the window costs at most TargetPct
// of the budget; the KeepRecent ones that were touched last stay.
func (cs *Store) PolicyTick(ctx context.Context, req PolicyTickRequest) (*PolicyTickResult, error) {
	const op = "policy_tick"
	if req.TurnID != nil && *req.TurnID < 0 {
		return nil, withOp(op, invalid("turn_id", "must not be negative"))
	}
	var out *PolicyTickResult
	err := cs.mutate(ctx, op, func(c *change) error {
		out = c.tickPolicy(&req)
		return nil
	}, func(c *change) error {
		out.Evicted = append(out.Evicted, c.evicted...)
		return c.scope.completeAll(ctx, out.Evicted)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// tickPolicy counts the turn and runs the policy if it is time.
func (c *change) tickPolicy(req *PolicyTickRequest) *PolicyTickResult {
	st, p := &c.state.Policy, &c.policy
	out := &PolicyTickResult{Evicted: []Reference{}, AtUS: c.now, Before: c.meter.cost(&c.window)}
	fresh := req.TurnID != nil && (st.LastTurnID == nil || *req.TurnID > *st.LastTurnID)
	if out.Counted = fresh || req.TurnID == nil && !req.Force; out.Counted {
		c.state.Ticked = true
		c.state.Turn++
		st.Turns++
		if fresh {
			st.LastTurnID = new(*req.TurnID)
		}
	}
	out.After, out.Turns = out.Before, st.Turns
	out.Target = p.TargetPct * c.state.Budget / 100
	reason := c.due(out, req.Force)
	switch {
	case reason == "":
	case !req.Force && c.deferred(out):
	default:
		c.runPolicy(out, reason)
	}
	out.Runs = st.Runs
	return out
}

// due says why the policy is to run now; "" when it is not.
func (c *change) due(tick *PolicyTickResult, force bool) string {
	st, p := &c.state.Policy, &c.policy
	switch {
	case force:
		return "force"
	case !tick.Counted:
		return ""
	case (p.Mode == modeTurns || p.Mode == modeEither) && st.Turns-st.TurnsAtRun >= int64(p.EveryN):
		return modeTurns
	case (p.Mode == modeThreshold || p.Mode == modeEither) && 100*tick.Before >= p.ThresholdPct*c.state.Budget:
		return modeThreshold
	}
	return ""
}

// deferred lets a run wait while the provider's cache is warm.
func (c *change) deferred(tick *PolicyTickResult) bool {
	tick.Deferred, tick.Reason = c.waits()
	return tick.Deferred
}

// runPolicy evicts down to the target.
func (c *change) runPolicy(tick *PolicyTickResult, reason string) {
	st := &c.state.Policy
	reached := c.evictDown(tick.Target, "policy: "+reason, c.recent(c.policy.KeepRecent))
	tick.Triggered, tick.Reason, tick.Reached, tick.After = true, reason, &reached, c.meter.cost(&c.window)
	st.Runs++
	st.TurnsAtRun = st.Turns
	st.Last = &PolicyRun{AtUS: c.now, Turn: st.Turns, Reason: reason, Before: tick.Before, After: tick.After, Target: tick.Target,
		Reached: reached, Evicted: len(c.evicted)}
}

// recent says of a page whether it is among the working pages that were touched
// last; of those touched at the same time, the ones admitted later.
func (c *change) recent(n int) func(*resident) bool {
	type place struct {
		id              string
		tick, admission int64
	}
	var order []place
	for _, r := range c.window.working {
		tick := r.Touched
		if !c.edited[r.Page] { // else what waits stands in it already
			_, tick, _ = c.scope.statistics(r.ID, r.Hits, r.Touched, r.TouchedAt)
		}
		order = append(order, place{r.PageID, tick, r.Admission})
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.tick, a.tick), cmp.Compare(b.admission, a.admission))
	})
	kept := map[string]bool{}
	for _, p := range order[:min(n, len(order))] {
		kept[p.id] = true
	}
	return func(r *resident) bool { return kept[r.PageID] }
}

// evictDown is evictTo for as far as it goes: when limit cannot be reached, all
// that may go is evicted, and it is false.
func (c *change) evictDown(limit int, reason string, keep func(*resident) bool) (reached bool) {
	if c.evictTo(limit, reason, keep) {
		return true
	}
	var all []*resident
	for _, r := range c.window.working {
		if !c.touched[r.PageID] && !keep(r) {
			all = append(all, r)
		}
	}
	c.evict(c.evictionOrder(all), reason)
	return false
}
