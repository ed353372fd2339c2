// Package session is a demonstration of the context store: an agent's session of
// forty steps that is made up and the same each time, told step by step with what
// each change did to the prefix that a provider's cache could reuse. It uses
// nothing but the public interface.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// The session takes place on a clock of its own, so that it is the same each
// time.
var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// Budget bounds the window of the session, in bytes.
const Budget = 4096

// profile is the provider's cache that the calls are reckoned by.
const profile = "anthropic-5m"

// bytesPerToken turns bytes into tokens for the simulated calls.
const bytesPerToken = 4

// Scope is the scope of the session.
func Scope() pager.Scope { return pager.Scope{"demo", "tide-table"} }

// Options tune Run.
type Options struct {
	// Out takes the walk-through; nil takes nothing.
	Out io.Writer
	// Color marks headings and prefixes that broke with terminal colours.
	Color bool
	// Dir is the data directory to make and keep. Empty means a temporary one that
	// is removed at the end.
	Dir string
}

// Run plays the session in a store of its own and gives what a dashboard shows
// of it.
func Run(ctx context.Context, o Options) (_ *pager.Dashboard, err error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "loci-session-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	p := &player{ctx: ctx, at: begin, generation: -1, out: &screen{w: o.Out, color: o.Color}}
	db, err := loci.Open(ctx, dir, &loci.Options{Clock: func() time.Time { return p.at }, WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	health, err := db.Health(ctx)
	if err != nil {
		return nil, err
	}
	if health.RecordCount > 0 {
		return nil, fmt.Errorf("session: the data directory already holds %d records; name an empty one", health.RecordCount)
	}
	if p.cs, err = pager.Open(ctx, db, pager.Config{Scope: Scope(), Budget: new(Budget), Bytes: true}); err != nil {
		return nil, err
	}
	p.price()
	p.play()
	p.summary()
	if p.err != nil {
		return nil, p.err
	}
	m, err := p.cs.Dashboard(ctx, pager.DashboardRequest{Events: new(1000)})
	if err != nil {
		return nil, err
	}
	if o.Dir != "" {
		p.out.para("The store is kept. Its data directory is " + db.Directory() + ".")
	}
	return m, p.out.err
}

// player plays the session. The first error stays, and nothing happens behind it.
type player struct {
	ctx context.Context
	cs  *pager.Store
	out *screen
	at  time.Time // of the session's clock
	err error

	turn, step, steps int64
	generation        int64 // that the model has seen, -1 before any
	called            time.Time
	lifetime          time.Duration // of what a call leaves in the provider's cache
	kinds             []*kind
}

// kind sums up what one kind of change did.
type kind struct {
	name                             string
	changes, intact, lost, rewritten int
}

// price looks up the profile that calls are reckoned by.
func (p *player) price() {
	for _, known := range pager.Profiles() {
		if known.ID == profile {
			p.lifetime = time.Duration(known.LifetimeSeconds) * time.Second
			return
		}
	}
	p.err = fmt.Errorf("session: there is no profile %s", profile)
}

// wait lets time pass.
func (p *player) wait(d time.Duration) { p.at = p.at.Add(d) }

// says begins a turn with what the user says: the policy counts it and may put
// pages out.
func (p *player) says(text string) {
	if p.err != nil {
		return
	}
	p.turn++
	p.step = 0
	p.wait(40 * time.Second)
	p.out.turn(p.turn, text)
	tick, err := p.cs.PolicyTick(p.ctx, pager.PolicyTickRequest{TurnID: &p.turn})
	if err != nil {
		p.err = err
		return
	}
	if tick.Triggered {
		p.does(kindPolicy, "the policy runs, by "+tick.Reason, func() error {
			p.out.note("from %s bytes to %s, target %s", count(tick.Before), count(tick.After), count(tick.Target))
			p.putOut(tick.Evicted)
			return nil
		})
	}
}

// does is one step of the agent: something changes, the model is called with the
// window as it is then, and the call is reckoned.
func (p *player) does(kind, what string, act func() error) {
	if p.err != nil {
		return
	}
	p.wait(12 * time.Second)
	p.steps++
	if p.err = act(); p.err != nil {
		p.err = fmt.Errorf("session: step %d, %s: %w", p.steps, what, p.err)
		return
	}
	p.call(kind, what)
	p.step++
}

// call calls the model: it is not there, and what a provider would have billed
// is worked out from what was reused of the text.
func (p *player) call(kind, what string) {
	var since *int64
	if p.generation >= 0 {
		since = &p.generation
	}
	snap, err := p.cs.Snapshot(p.ctx, pager.SnapshotRequest{Since: since})
	if err != nil {
		p.err = err
		return
	}
	reused := snap.TextBytes
	if snap.Generation != p.generation {
		// The metrics know what the newest publication cost, a recall's as well.
		metrics, err := p.cs.Metrics(p.ctx, pager.MetricsRequest{Limit: new(1)})
		if err != nil {
			p.err = err
			return
		}
		e := metrics.Events[0]
		reused = e.CommonBytes
		p.count(kind, &e)
		p.out.change(p.steps, what, &e)
	} else {
		p.out.same(p.steps, what, snap.TextBytes)
	}
	p.generation = snap.Generation
	if p.at.Sub(p.called) >= p.lifetime {
		reused = 0 // the cache is cold
	}
	p.called = p.at
	p.record(reused, snap.TextBytes)
}

// record reckons a call. What is new at the end of the prompt, the user's words
// and the last answers, is never cached.
func (p *player) record(reused, size int) {
	turn, step := p.turn, p.step
	_, err := p.cs.RecordUsage(p.ctx, pager.RecordUsageRequest{
		Source: pager.SourceSimulated, Turn: &turn, Step: &step,
		InputTokens: 45, CacheReadTokens: int64(reused / bytesPerToken), CacheWriteTokens: int64((size - reused) / bytesPerToken), OutputTokens: 120,
	})
	p.err = errors.Join(p.err, err)
}

// count adds a change to its kind.
func (p *player) count(name string, e *pager.RenderEvent) {
	var k *kind
	for _, known := range p.kinds {
		if known.name == name {
			k = known
		}
	}
	if k == nil {
		k = &kind{name: name}
		p.kinds = append(p.kinds, k)
	}
	k.changes++
	k.lost += e.InvalidatedBytes
	k.rewritten += written(e)
	if e.PrefixIntact {
		k.intact++
	}
}

// written is what a change wrote anew: all of the first text, which the metrics
// hold against nothing.
func written(e *pager.RenderEvent) int {
	if e.First {
		return e.TextBytes
	}
	return e.RewrittenBytes
}

// putOut says which pages went into the archive.
func (p *player) putOut(pages []pager.Reference) {
	for _, page := range pages {
		p.out.note("put out: %s %s", page.PageID, page.Title)
	}
}

// summary says what each kind of change did, and what the calls cost.
func (p *player) summary() {
	if p.err != nil {
		return
	}
	p.out.title("What each kind of change did to the prefix")
	p.out.kinds(p.kinds)
	metrics, err := p.cs.Metrics(p.ctx, pager.MetricsRequest{Limit: new(1)})
	if err != nil {
		p.err = err
		return
	}
	usage, err := p.cs.Usage(p.ctx, pager.UsageRequest{Limit: new(1), Provider: profile})
	if err != nil {
		p.err = err
		return
	}
	t := metrics.Totals
	p.out.title("In all")
	p.out.line("  %d changes of the published bytes, %d evictions, %d faults", t.Renders, t.Evictions, t.Faults)
	p.out.line("  %s bytes invalidated, %s rewritten", count(int(t.InvalidatedBytes)), count(int(t.RewrittenBytes)))
	if sum := usage.Totals.Simulated; sum.HitRate != nil && usage.SimulatedCost != nil {
		p.out.line("  simulated accounting, billed by nobody: %d calls, hit rate %.1f %%", sum.Calls, 100**sum.HitRate)
		p.out.line("  by the prices of %s of %s the input would cost %.1f %%", profile, usage.SimulatedCost.AsOf, 100*usage.SimulatedCost.Ratio)
		p.out.line("  of what it would without a cache")
	}
	p.out.line("")
}
