// Package agentpolicy says what the policy of an agent memory may be: its shape as
// it is stored, and the ranges of its numbers.
package agentpolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/loci-memory/loci/internal/errs"
)

// The ranges of what is kept.
const (
	MaxVersions  = 1000
	MaxSnapshots = 1000
)

// Policy is what a memory does by itself, as it is stored: nil stands for the
// default.
type Policy struct {
	ConsolidateAfterSeconds *int64   `json:"consolidate_after_seconds,omitempty"` // 1 and up
	EvictBelowConfidence    *float64 `json:"evict_below_confidence,omitempty"`    // 0..1
	KeepVersions            *int     `json:"keep_versions,omitempty"`             // 0..MaxVersions
	MaxSnapshots            *int     `json:"max_snapshots,omitempty"`             // 1..MaxSnapshots
}

// Check is errs.Validation for a policy that cannot be kept.
func (p *Policy) Check() error {
	if v := p.ConsolidateAfterSeconds; v != nil && *v < 1 {
		return errs.Invalid("consolidate_after_seconds", "must be at least 1, not %d; leave it out to keep episodes as they are", *v)
	}
	if v := p.EvictBelowConfidence; v != nil && !(*v >= 0 && *v <= 1) {
		return errs.Invalid("evict_below_confidence", "must be from 0 to 1")
	}
	if v := p.KeepVersions; v != nil && (*v < 0 || *v > MaxVersions) {
		return errs.Invalid("keep_versions", "must be 0 to %d, not %d", MaxVersions, *v)
	}
	if v := p.MaxSnapshots; v != nil && (*v < 1 || *v > MaxSnapshots) {
		return errs.Invalid("max_snapshots", "must be 1 to %d, not %d", MaxSnapshots, *v)
	}
	return nil
}

// Parse reads a stored policy and checks it. What is no policy, or has a name that
// is not known, is errs.Validation.
func Parse(stored []byte) (*Policy, error) {
	var p *Policy
	dec := json.NewDecoder(bytes.NewReader(stored))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil || p == nil {
		return nil, errs.Invalid("policy", "is not an object that a policy could be")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errs.Invalid("policy", "has something behind its end")
	}
	return p, p.Check()
}
