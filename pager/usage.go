package pager

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// usageState is what is stored about a scope's billed calls besides the calls
// themselves.
type usageState struct {
	LastAtUS  int64   `json:"last_at_us,omitempty"` // of the last billed call that was not simulated
	Provider  tallies `json:"provider,omitzero"`
	Simulated tallies `json:"simulated,omitzero"`
}

// tallies are sums over calls. They stop at the greatest number there is.
type tallies struct {
	Calls      int64 `json:"calls,omitempty"`
	Input      int64 `json:"input,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output,omitempty"`
}

func (t *tallies) add(c *tokenCounts) {
	t.Calls++
	t.Input = capped(t.Input, c.Input)
	t.CacheRead = capped(t.CacheRead, c.CacheRead)
	t.CacheWrite = capped(t.CacheWrite, c.CacheWrite)
	t.Output = capped(t.Output, c.Output)
}

// capped adds numbers that are not negative.
func capped(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// tokenCounts are the counters of one call. The three of the input are disjoint.
type tokenCounts struct {
	Input, CacheRead, CacheWrite, Output int64
}

// RecordUsageRequest records what a call of a model was billed: either the four
// counters, or the provider's own usage object.
type RecordUsageRequest struct {
	InputTokens      int64 `json:"input_tokens,omitempty"`       // that were neither read from the cache nor written to it
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`  // read from the prompt cache
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"` // written to the prompt cache
	OutputTokens     int64 `json:"output_tokens,omitempty"`
	// Provider says how to read Usage: "anthropic", "openai", "deepseek", "gemini" or
	// "dsh", or the id of a profile.
	Provider string `json:"provider,omitempty"`
	// Usage is the usage object of the provider's answer as it came.
	Usage json.RawMessage `json:"usage,omitempty"`
	Turn  *int64          `json:"turn,omitempty"` // of the conversation, from 0
	Step  *int64          `json:"step,omitempty"` // of the turn, from 0
	// Source says who counted: "provider", the default, another name of at most 64
	// bytes, or "simulated" for what nobody billed, which is totalled apart.
	Source string `json:"source,omitempty"`
}

// RecordUsageResult says what was recorded.
type RecordUsageResult struct {
	// Duplicate says that this source, turn and step had been recorded before:
	// nothing was counted, and Record is the one from then. Calls with neither turn
	// nor step always count.
	Duplicate bool        `json:"duplicate"`
	Record    UsageRecord `json:"record"`
	Totals    UsageTotals `json:"totals"`
}

// UsageRecord is a billed call.
type UsageRecord struct {
	AtUS             int64    `json:"at_us"`
	Source           string   `json:"source"`
	Turn             *int64   `json:"turn,omitempty"`
	Step             *int64   `json:"step,omitempty"`
	InputTokens      int64    `json:"input_tokens"`
	CacheReadTokens  int64    `json:"cache_read_tokens"`
	CacheWriteTokens int64    `json:"cache_write_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	BilledInput      int64    `json:"billed_input"` // the three of the input together
	HitRate          *float64 `json:"hit_rate"`     // read from the cache over billed input; null without any
	Simulated        bool     `json:"simulated,omitempty"`
}

// UsageTotals are the sums over all calls of a scope.
type UsageTotals struct {
	Provider  UsageSum `json:"provider"`  // billed
	Simulated UsageSum `json:"simulated"` // by nobody
}

// UsageSum sums up calls.
type UsageSum struct {
	Calls       int64    `json:"calls"`
	Input       int64    `json:"input"`
	CacheRead   int64    `json:"cache_read"`
	CacheWrite  int64    `json:"cache_write"`
	Output      int64    `json:"output"`
	BilledInput int64    `json:"billed_input"` // input + cache_read + cache_write
	HitRate     *float64 `json:"hit_rate"`     // cache_read over billed_input; null before anything is billed
}

// UsageCost is what the input cost as against a provider without a prompt cache.
type UsageCost struct {
	Profile   string  `json:"profile"`
	Ratio     float64 `json:"ratio"` // (input + cache_read * read + cache_write * write) / billed input, at the profile's prices
	Saved     float64 `json:"saved"` // 1 - ratio; below 0 where caching cost more than it saved
	AsOf      string  `json:"as_of"` // date of the prices
	Simulated bool    `json:"simulated,omitempty"`
}

// SourceSimulated is the source of usage that nobody billed.
const SourceSimulated = "simulated"

const (
	sourceProvider = "provider"
	maxSourceName  = 64
)

func (t *tallies) sum() UsageSum {
	billed := capped(capped(t.Input, t.CacheRead), t.CacheWrite)
	return UsageSum{Calls: t.Calls, Input: t.Input, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite, Output: t.Output,
		BilledInput: billed, HitRate: share(t.CacheRead, billed)}
}

// share is part over whole, nil when there is no whole.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(rounded(float64(part) / float64(whole)))
}

// rounded leaves six places, so that ratios read as they were meant.
func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func (u *usageState) totals() UsageTotals { return UsageTotals{u.Provider.sum(), u.Simulated.sum()} }

// cost is what a sum cost by a profile; nil before anything is billed.
func (s *UsageSum) cost(p *Profile, simulated bool) *UsageCost {
	in, read, write := float64(s.Input), float64(s.CacheRead), float64(s.CacheWrite)
	billed := in + read + write
	if billed == 0 {
		return nil
	}
	ratio := (in + read*p.ReadRatio + write*p.WriteRatio) / billed
	return &UsageCost{Profile: p.ID, Ratio: rounded(ratio), Saved: rounded(1 - ratio), AsOf: p.AsOf, Simulated: simulated}
}

// costs is cost by every profile.
func costs(s *UsageSum, simulated bool) []UsageCost {
	out := []UsageCost{}
	for _, p := range profiles() {
		if c := s.cost(&p, simulated); c != nil {
			out = append(out, *c)
		}
	}
	return out
}

// counts checks the request and gives its counters.
func (r *RecordUsageRequest) counts() (c tokenCounts, err error) {
	c = tokenCounts{r.InputTokens, r.CacheReadTokens, r.CacheWriteTokens, r.OutputTokens}
	switch {
	case r.Provider == "" && r.Usage != nil:
		return c, invalid("provider", "must say whose usage object it is: %s", strings.Join(adapterNames(), ", "))
	case r.Provider != "" && r.Usage == nil:
		return c, invalid("usage", "must be the provider's usage object; leave provider out to give the counters themselves")
	case r.Usage != nil && c != tokenCounts{}:
		return c, invalid("usage", "and the counters are given: choose one")
	case r.Usage != nil:
		if c, err = adapt(r.Provider, r.Usage); err != nil {
			return c, err
		}
	}
	for _, f := range []struct {
		field string
		value int64
	}{{"input_tokens", c.Input}, {"cache_read_tokens", c.CacheRead}, {"cache_write_tokens", c.CacheWrite}, {"output_tokens", c.Output}} {
		if f.value < 0 || f.value > maxExactInt {
			return c, invalid(f.field, "must be from 0 to %d", int64(maxExactInt))
		}
	}
	if c == (tokenCounts{}) {
		return c, invalid("input_tokens", "and all the others are 0: a call that was billed nothing is none")
	}
	return c, nil
}

// check looks at the rest of the request.
func (r *RecordUsageRequest) check() (source string, err error) {
	for _, f := range []struct {
		field string
		value *int64
	}{{"turn", r.Turn}, {"step", r.Step}} {
		if f.value != nil && *f.value < 0 {
			return "", invalid(f.field, "must not be negative")
		}
	}
	switch source = r.Source; {
	case source == "":
		return sourceProvider, nil
	case len(source) > maxSourceName || !utf8.ValidString(source) || strings.TrimSpace(source) != source || strings.ContainsFunc(source, unicode.IsControl):
		return "", invalid("source", "must be a name of at most %d bytes, without blanks around it", maxSourceName)
	}
	return source, nil
}

// key is what a record is known by, "" when it always counts. Turn and step hold
// no bar, so the last two divide.
func (r *RecordUsageRequest) key(source string) string {
	if r.Turn == nil && r.Step == nil {
		return ""
	}
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	return source + "|" + number(r.Turn) + "|" + number(r.Step)
}

// RecordUsage records what a call of a model was billed. It touches neither the
// window nor its epoch: measuring must not cost what is measured.
func (cs *Store) RecordUsage(ctx context.Context, req RecordUsageRequest) (*RecordUsageResult, error) {
	const op = "record_usage"
	source, err := req.check()
	if err != nil {
		return nil, withOp(op, err)
	}
	counts, err := req.counts()
	if err != nil {
		return nil, withOp(op, err)
	}
	key := req.key(source)
	var out *RecordUsageResult
	err = cs.mutate(ctx, op, func(c *change) error {
		out = &RecordUsageResult{}
		known, err := c.scope.usageByKey(ctx, key)
		if err != nil {
			return err
		}
		if known != nil {
			out.Duplicate, out.Record = true, *known
			return nil
		}
		u := &c.state.Usage
		out.Record = UsageRecord{
			AtUS: c.now, Source: source, Turn: req.Turn, Step: req.Step, InputTokens: counts.Input, CacheReadTokens: counts.CacheRead,
			CacheWriteTokens: counts.CacheWrite, OutputTokens: counts.Output, BilledInput: counts.Input + counts.CacheRead + counts.CacheWrite,
			Simulated: source == SourceSimulated,
		}
		out.Record.HitRate = share(counts.CacheRead, out.Record.BilledInput)
		if out.Record.Simulated {
			u.Simulated.add(&counts)
		} else {
			u.Provider.add(&counts)
			u.LastAtUS = c.now
		}
		return c.appendLog(store.LogUsage, key, &out.Record)
	}, func(c *change) error {
		out.Totals = c.scope.state.Usage.totals()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// usageByKey gives the record with a key, nil when there is none.
func (s *scope) usageByKey(ctx context.Context, key string) (found *UsageRecord, err error) {
	if key == "" || s.stored == nil {
		return nil, nil
	}
	err = s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		found = nil
		e, err := tx.LogByKey(s.stored.ID, store.LogUsage, key)
		if err != nil || e == nil {
			return err
		}
		found = &UsageRecord{}
		return errs.Wrap(errs.Storage, json.Unmarshal(e.Body, found), "the database is damaged: a record of usage cannot be read")
	})
	return found, err
}

// usageRecords gives the newest records, newest first.
func (s *scope) usageRecords(ctx context.Context, limit int) ([]UsageRecord, error) {
	return logTail[UsageRecord](ctx, s, store.LogUsage, limit)
}

// UsageRequest asks what was billed.
type UsageRequest struct {
	Limit *int `json:"limit,omitempty"` // records: 1..1000, default 200
	// Provider is the id of the profile to reckon the cost by. Default: the
	// policy's.
	Provider string `json:"provider,omitempty"`
}

// UsageResult says what was billed.
type UsageResult struct {
	Records []UsageRecord `json:"records"` // newest first
	Totals  UsageTotals   `json:"totals"`
	// Cost is that of what was billed, where there is a profile to reckon by.
	Cost *UsageCost `json:"cost,omitempty"`
	// SimulatedCost is that of what was simulated.
	SimulatedCost *UsageCost `json:"simulated_cost,omitempty"`
}

// Usage gives the newest records of what was billed, the totals with the share
// that came from the prompt cache, and what the input cost as against a provider
// without one. It changes nothing.
func (cs *Store) Usage(ctx context.Context, req UsageRequest) (*UsageResult, error) {
	const op = "usage"
	limit, err := validLimit("limit", req.Limit, 200, 1, maxEvents)
	if err == nil && req.Provider != "" {
		if _, known := profileOf(req.Provider); !known {
			err = invalid("provider", "is not known: name one of %s", strings.Join(profileNames(), ", "))
		}
	}
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *UsageResult
	err = cs.with(ctx, op, func(s *scope) error {
		policy, err := s.policy(ctx)
		if err != nil {
			return err
		}
		out = &UsageResult{Totals: s.state.Usage.totals()}
		id := req.Provider
		if id == "" {
			id = policy.Provider
		}
		if p, known := profileOf(id); known {
			out.Cost, out.SimulatedCost = out.Totals.Provider.cost(&p, false), out.Totals.Simulated.cost(&p, true)
		}
		out.Records, err = s.usageRecords(ctx, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
