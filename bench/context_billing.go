package bench

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/pager"
)

// What a provider would bill is reckoned as its guide says that its cache works,
// see pager.Profile, in one of three ways. All are the best that could happen:
// no entry is dropped before its lifetime is over, and every request meets the
// machine that has the entries.
//
//   - breakpoints (Anthropic): a request may have four. It reads the longest prefix
//     that ends at a breakpoint of an earlier request and at most 20 blocks before
//     one of its own, and writes what follows, up to its own last breakpoint.
//   - exact breakpoints (OpenAI from GPT-5.6 on): the same, but the prefix must end
//     at a breakpoint of the request itself.
//   - longest prefix (all others): it reads the longest common prefix with any
//     earlier request, rounded down to 128 tokens; the rest is input at the base
//     price.
//
// Nothing shorter than the provider's minimum is written or read.

// matching is how a provider finds what it can reuse.
type matching int

const (
	byLongestPrefix matching = iota
	byBreakpoints
	byExactBreakpoints
)

func (m matching) String() string {
	return [...]string{"longest prefix in steps of 128 tokens", "breakpoints", "exact breakpoints"}[m]
}

// matchingOf tells how a profile's provider matches.
func matchingOf(p *pager.Profile) matching {
	switch {
	case p.Provider == "anthropic":
		return byBreakpoints
	case p.ID == "openai-5.6":
		return byExactBreakpoints
	}
	return byLongestPrefix
}

const (
	prefixStep     = 128 // tokens
	lookBackBlocks = 20
	maxBreakpoints = 4
)

// block is a part of a request. A cache can end at the end of one.
type block struct {
	text   []byte
	tokens int
	mark   bool // there is a breakpoint behind it
}

// request is what a host sends at one step: blocks that are compared byte by
// byte with those of earlier requests, and behind them what no request shares.
type request struct {
	blocks []block
	fresh  int // tokens behind the blocks
}

func (r *request) check() error {
	marks := 0
	for _, b := range r.blocks {
		if b.mark {
			marks++
		}
	}
	if marks > maxBreakpoints {
		return fmt.Errorf("a request has %d breakpoints, at most %d are allowed", marks, maxBreakpoints)
	}
	return nil
}

// bill is what requests were billed, in tokens of input.
type bill struct {
	input, read, write int
}

func (b *bill) total() int { return b.input + b.read + b.write }

// hitRate is the share of the tokens that was read from the cache.
func (b *bill) hitRate() float64 { return ratio(float64(b.read), float64(b.total())) }

// cost is what the tokens cost, in tokens of input at the base price.
func (b *bill) cost(p *pager.Profile) float64 {
	return float64(b.input) + p.ReadRatio*float64(b.read) + p.WriteRatio*float64(b.write)
}

func (b *bill) add(o bill) {
	b.input, b.read, b.write = b.input+o.input, b.read+o.read, b.write+o.write
}

// promptCache is a provider's cache at work for one host.
type promptCache struct {
	profile *pager.Profile
	how     matching
	count   func(text []byte) int           // tokens of a text that is part of a rendered one
	entries map[[sha256.Size]byte]time.Time // prefixes by their sum, until when they live
	sent    []sentRequest                   // for the longest prefix
}

type sentRequest struct {
	until time.Time
	text  []byte
}

func newPromptCache(p *pager.Profile, count func([]byte) int) *promptCache {
	return &promptCache{profile: p, how: matchingOf(p), count: count, entries: map[[sha256.Size]byte]time.Time{}}
}

// send bills a request at a time.
func (c *promptCache) send(r *request, now time.Time) (bill, error) {
	if err := r.check(); err != nil {
		return bill{}, err
	}
	if c.how == byLongestPrefix {
		return c.sendUnmarked(r, now), nil
	}
	return c.sendMarked(r, now), nil
}

func (c *promptCache) until(now time.Time) time.Time {
	return now.Add(time.Duration(c.profile.LifetimeSeconds) * time.Second)
}

// sendMarked bills by breakpoints.
func (c *promptCache) sendMarked(r *request, now time.Time) bill {
	sums, tokens := prefixes(r.blocks)
	least := c.profile.MinPrefixTokens
	read, last := 0, 0
	for i, b := range r.blocks {
		if !b.mark || tokens[i] < least {
			continue
		}
		last = tokens[i]
		back := lookBackBlocks
		if c.how == byExactBreakpoints {
			back = 0
		}
		for j := i; j >= max(0, i-back); j-- {
			if until, ok := c.entries[sums[j]]; ok && !until.Before(now) {
				read = max(read, tokens[j])
				break
			}
		}
	}
	for i, b := range r.blocks {
		if _, known := c.entries[sums[i]]; (b.mark || known && tokens[i] <= read) && tokens[i] >= least {
			c.entries[sums[i]] = c.until(now)
		}
	}
	whole := r.fresh
	if len(tokens) > 0 {
		whole += tokens[len(tokens)-1]
	}
	write := max(last-read, 0)
	return bill{input: whole - read - write, read: read, write: write}
}

// prefixes gives, for each block, the sum over all up to it and their tokens.
func prefixes(blocks []block) (sums [][sha256.Size]byte, tokens []int) {
	h := sha256.New()
	at := 0
	for _, b := range blocks {
		h.Write(b.text)
		at += b.tokens
		sums, tokens = append(sums, [sha256.Size]byte(h.Sum(nil))), append(tokens, at)
	}
	return sums, tokens
}

// sendUnmarked bills by the longest common prefix.
func (c *promptCache) sendUnmarked(r *request, now time.Time) bill {
	var text []byte
	whole := r.fresh
	for _, b := range r.blocks {
		text = append(text, b.text...)
		whole += b.tokens
	}
	common := 0
	kept := c.sent[:0]
	for _, s := range c.sent {
		if !s.until.Before(now) {
			kept = append(kept, s)
			common = max(common, render.Common(s.text, text))
		}
	}
	c.sent = append(kept, sentRequest{c.until(now), text})
	read := c.tokensOf(r.blocks, common)
	read -= read % prefixStep
	if read < c.profile.MinPrefixTokens {
		read = 0
	}
	return bill{input: whole - read, read: read}
}

// tokensOf gives the tokens of the first n bytes of the blocks.
func (c *promptCache) tokensOf(blocks []block, n int) int {
	tokens := 0
	for _, b := range blocks {
		if n < len(b.text) {
			return tokens + c.count(b.text[:n])
		}
		tokens, n = tokens+b.tokens, n-len(b.text)
	}
	return tokens
}
