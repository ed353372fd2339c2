package pager

import (
	"context"
	"encoding/json"

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
	KeepRecent   int    `json:"keep_recent"`   // pages touched last that stay, 0..20
	// Provider names the profile by which the prompt cache is judged warm; while it
	// is, runs and folds wait. "" for none.
	Provider string `json:"provider,omitempty"`
	// HardPct is the share of the budget from which nothing waits any more, 10..100.
	HardPct int `json:"hard_pct"`
}

// defaultPolicy is the policy of a namespace that has set none.
func defaultPolicy() Policy {
	return Policy{Mode: "manual", EveryN: 10, ThresholdPct: 80, TargetPct: 60, Strategy: "value", KeepRecent: 3, HardPct: 95}
}

// policyState is what is stored about a scope's replacement policy at work.
type policyState struct {
	LastTurnID *int64 `json:"last_turn_id,omitempty"`
	Turns      int64  `json:"turns,omitempty"`        // counted by policy_tick
	TurnsAtRun int64  `json:"turns_at_run,omitempty"` // when it last ran
	Runs       int64  `json:"runs,omitempty"`
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
	p = defaultPolicy()
	err := r.link.Read(ctx, func(tx *store.ReadTx) error {
		raw, err := tx.Policy(s.key.namespace)
		if err != nil || raw == nil {
			return err
		}
		return errs.Wrap(errs.Storage, json.Unmarshal(raw, &p), "the database is damaged: a replacement policy cannot be read")
	})
	if err != nil {
		return p, err
	}
	r.keepPolicy(s.key.namespace, p)
	return p, nil
}

// keptPolicies is how many namespaces' policies are kept in memory.
const keptPolicies = 1000

// keepPolicy keeps a namespace's policy in memory.
func (r *registry) keepPolicy(namespace string, p Policy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.policies) >= keptPolicies {
		clear(r.policies)
	}
	r.policies[namespace] = p
}
