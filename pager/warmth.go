package pager

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/render"
)

// waits says whether a rewrite of the window that is not urgent had better wait,
// and why: the policy names a provider, whose cache still holds what the last
// billed call sent, and there is room up to the hard threshold.
func (c *change) waits() (wait bool, reason string) {
	left := warmFor(c.policy.Provider, c.state.Usage.LastAtUS, c.now)
	if left <= 0 || 100*c.meter.cost(&c.window) >= c.policy.HardPct*c.state.Budget {
		return false, ""
	}
	seconds := int64(math.Ceil(left.Seconds()))
	return true, fmt.Sprintf("the prompt cache of %s is warm for %d more seconds", c.policy.Provider, seconds)
}

// warmFor is how long the cache of a profile still holds what a call sent at
// last, in UTC microseconds: 0 once it is cold, when there was no call, and for
// a profile that is not known. When the clock went backwards, the call counts
// as one of this moment.
func warmFor(provider string, last, now int64) time.Duration {
	p, known := profileOf(provider)
	if !known || last == 0 {
		return 0
	}
	age := max(now-last, 0)
	if age >= p.lifetime().Microseconds() {
		return 0
	}
	return p.lifetime() - time.Duration(age)*time.Microsecond
}

// payBack is after how many steps a rewrite has paid for itself that leaves
// saved tokens (or bytes) out of behind ones, those from the first change to the
// end of the text: N = ((I-S)*w - I*r)/(S*r), where w and r are what writing to
// the cache and reading from it cost. What is left is written once at w, where
// all of it would have been read at r, and from then on S*r is saved a step.
func payBack(behind, saved, read, write float64) float64 {
	return max(0, ((behind-saved)*write-behind*read)/(saved*read))
}

// FoldEstimate is what folding the outline with the usual keep would do to the
// prefix and its price.
type FoldEstimate struct {
	Rows        int `json:"rows"`         // of the outline
	Folded      int `json:"folded"`       // that would go into one milestone
	BehindBytes int `json:"behind_bytes"` // from the first byte that would differ to the end: invalidated
	SavedBytes  int `json:"saved_bytes"`  // that the text becomes shorter
	// PaysBackAfter is the number of model calls after which the smaller text has
	// made up for the rewrite, at the prices of Provider, which is the policy's; 0
	// while its cache is cold: then there is nothing to lose.
	PaysBackAfter int64  `json:"pays_back_after"`
	Provider      string `json:"provider"`
	Warm          bool   `json:"warm"` // the provider's cache holds the text
}

// foldKeep is how many rows a fold keeps unless told otherwise.
const foldKeep = 12

// foldEstimate estimates a fold of the window as it stands, nil where there is
// nothing to fold or gain, or no provider to reckon with.
func (s *scope) foldEstimate(policy *Policy, now int64) *FoldEstimate {
	profile, known := profileOf(policy.Provider)
	rows := outlineRows(s.window.core)
	n := len(rows) - foldKeep
	if !known || n < 2 {
		return nil
	}
	m := milestone(rows[:n], "")
	m.PageID, m.Version, m.Outline, m.RowVersion, m.Seq = fmt.Sprintf("p%d", s.state.NextPage), 1, true, 1, rows[0].Seq
	line := newResident(m).line
	e := &FoldEstimate{Rows: len(rows), Folded: n, SavedBytes: -len(line) - 2, Provider: profile.ID}
	for _, r := range rows[:n] {
		e.SavedBytes += len(r.line) + 2 // a comma and a line's end
	}
	if e.SavedBytes <= 0 {
		return nil
	}
	text, _ := s.render()
	kept := render.EmptyStable
	for i, r := range s.window.core {
		if r == rows[0] {
			if i > 0 {
				kept++ // the comma
			}
			kept += render.Common(r.line, line)
			break
		}
		kept += renderedBytes(r, i)
	}
	e.BehindBytes = len(text) - kept
	if e.Warm = warmFor(profile.ID, s.state.Usage.LastAtUS, now) > 0; e.Warm {
		steps := payBack(float64(e.BehindBytes), float64(e.SavedBytes), profile.ReadRatio, profile.WriteRatio)
		e.PaysBackAfter = int64(math.Ceil(steps - 1e-9))
	}
	return e
}

// renderedBytes is what the item at a place of its list takes of the text: its
// line, the line's end, and the comma before all but the first.
func renderedBytes(r *resident, place int) int {
	n := len(r.line) + 1
	if place > 0 {
		n++
	}
	return n
}

// cutAt cuts a text to at most limit bytes at a character.
func cutAt(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
