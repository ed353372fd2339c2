package pager

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci"
)

// The limits of the context store.
const (
	DefaultBudget = 8192
	MinBudget     = 128
	MaxBudget     = 1_000_000

	MaxContentBytes = 1 << 20  // content of one page
	MaxIngestBytes  = 64 << 20 // content of one ingest
	MaxTags         = 64       // tags of one page
	MaxLinks        = 32       // links of one page
	MaxPageIDBytes  = 128
	MaxTitleBytes   = 1024
	MaxSourceBytes  = 4096
	MaxReasonBytes  = 200 // why a page is pinned

	MaxOutlineRows         = 32
	MaxOutlineTitleBytes   = 200
	MaxOutlineSummaryBytes = 240
	MaxSummaryBytes        = 64 << 10
)

// Unit says in what a budget is counted.
type Unit string

// The units.
const (
	UnitBytes  Unit = "bytes"  // UTF-8 bytes of the rendered text
	UnitTokens Unit = "tokens" // what a Counter counts
)

// Counter counts the tokens of a text. It must give the same number for the same
// text every time and be safe for concurrent use. It is asked while the scope is
// held, so it must not use the scope itself. A number below 0 counts as 0.
type Counter interface {
	// ID names the vocabulary. It is stored with the scope: a scope counted with
	// one tokenizer is not opened with another.
	ID() string
	Count(text string) int
}

// AdditiveCounter is a Counter that may say that the count of a rendered text is
// the sum over its lines, which saves counting all of it anew for every change.
type AdditiveCounter interface {
	Counter
	Additive() bool
}

// Config says which scope is meant and how its window is measured. The first
// change stores the measure; another one later is ErrConfigMismatch.
type Config struct {
	Scope Scope
	// Budget bounds the rendered text, in bytes or in the counter's tokens:
	// 128..1,000,000. Nil takes what is stored, or DefaultBudget.
	Budget *int
	// Counter counts tokens. Nil takes what is stored, or bytes.
	Counter Counter
	// Bytes asks for bytes, where nil and no Counter would take what is stored.
	Bytes bool
	// Tokenizers finds the counter that a scope was stored with; nil knows none.
	Tokenizers func(id string) (Counter, error)
	// Reconfigure stores the given measure in the place of another one. Core must
	// fit into the new budget; working is evicted down to it.
	Reconfigure bool
	// Wait bounds how long an operation waits for its turn to write before it is
	// ErrBusy; 0 is 15 seconds.
	Wait time.Duration
}

const defaultWait = 15 * time.Second

// check looks at what needs no store.
func (c *Config) check() error {
	if c.Budget != nil && (*c.Budget < MinBudget || *c.Budget > MaxBudget) {
		return invalid("budget", "must be from %d to %d, not %d", MinBudget, MaxBudget, *c.Budget)
	}
	if c.Counter != nil && c.Bytes {
		return invalid("unit", "is bytes, and a token counter is given as well: choose one")
	}
	if c.Counter != nil {
		if id := c.Counter.ID(); id == "" || len(id) > loci.MaxLabelBytes || !utf8.ValidString(id) {
			return invalid("tokenizer", "needs an id of 1 to %d bytes of UTF-8", loci.MaxLabelBytes)
		}
	}
	if c.Wait < 0 {
		return invalid("wait", "must not be negative")
	}
	return nil
}

// measure is how a scope's window is measured.
type measure struct {
	Budget    int    `json:"budget"`
	Unit      Unit   `json:"unit"`
	Tokenizer string `json:"tokenizer,omitempty"`
}

// wanted is the measure that the config asks for, given the one that is in
// force.
func (c *Config) wanted(now measure) measure {
	if c.Budget != nil {
		now.Budget = *c.Budget
	}
	if c.Counter != nil {
		now.Unit, now.Tokenizer = UnitTokens, c.Counter.ID()
	}
	if c.Bytes {
		now.Unit, now.Tokenizer = UnitBytes, ""
	}
	return now
}

// String says it for people.
func (m measure) String() string {
	if m.Unit == UnitTokens {
		return fmt.Sprintf("%d tokens of %s", m.Budget, m.Tokenizer)
	}
	return fmt.Sprintf("%d bytes", m.Budget)
}
