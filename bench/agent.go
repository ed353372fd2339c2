package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// AgentPart is a part of a run over agent memory.
type AgentPart string

// The parts, in the order in which they run.
const (
	PartStore     AgentPart = "store"     // facts stored singly and in batches
	PartQuery     AgentPart = "query"     // exact queries, with and without filters
	PartSnapshots AgentPart = "snapshots" // the whole memory written and read back
	PartExpiry    AgentPart = "expiry"    // a great many facts, many of which expire
)

// AgentParts gives every part in order.
func AgentParts() []AgentPart { return []AgentPart{PartStore, PartQuery, PartSnapshots, PartExpiry} }

// The amounts of work that AgentOptions do not change.
const (
	singleFacts  = 500
	queryRounds  = 400
	checkedTimes = 5  // queries whose answer is compared with a plain scan
	idleRounds   = 60 // queries of each kind before a sweep
	expiringPart = 10 // one fact in so many expires
)

// AgentOptions tune RunAgent. The zero value measures everything.
type AgentOptions struct {
	Facts int    // of the parts store, query and snapshots, default 100,000
	Many  int    // of the part expiry, default 1,000,000
	Seed  uint64 // default 1
	Parts []AgentPart
	// Dir is where the stores are made, which are removed afterwards; empty: the
	// system's folder for temporary files.
	Dir string
	// Out takes a line for each thing that is done; nil means silence.
	Out io.Writer
	// Progress is told how far the loading is.
	Progress func(done, total int)

	// Tests do less.
	singles, rounds, idle int
}

// agentRun is one run under way.
type agentRun struct {
	AgentOptions
	ctx    context.Context
	corpus *Corpus
	made   *clustered
	report *AgentReport
}

// RunAgent measures agent memory on generated facts with made-up vectors of 384
// numbers: what storing costs, how fast exact queries are, how long a snapshot and a
// restore take, and what a sweep of many expired facts does to those who read.
func RunAgent(ctx context.Context, o AgentOptions) (*AgentReport, error) {
	o.defaults()
	if o.Facts < 2*batchSize || o.Many < batchSize {
		return nil, fmt.Errorf("bench: %d and %d facts are too few to measure; ask for at least %d and %d", o.Facts, o.Many, 2*batchSize, batchSize)
	}
	for _, p := range o.Parts {
		if !slices.Contains(AgentParts(), p) {
			return nil, fmt.Errorf("bench: no part %q; there are %v", p, AgentParts())
		}
	}
	r := &agentRun{AgentOptions: o, ctx: ctx, report: &AgentReport{Machine: thisMachine(), Seed: o.Seed}, made: newClustered(o.Seed)}
	r.say("making the word lists")
	r.corpus = NewCorpus(o.Seed, corpusSample)
	if slices.ContainsFunc(o.Parts, func(p AgentPart) bool { return p != PartExpiry }) {
		if err := r.onStore(nil, r.facts); err != nil {
			return nil, err
		}
	}
	if slices.Contains(o.Parts, PartExpiry) {
		if err := r.expiry(); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", PartExpiry, err)
		}
	}
	return r.report, nil
}

func (o *AgentOptions) defaults() {
	set := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	set(&o.Facts, 100_000)
	set(&o.Many, 1_000_000)
	set(&o.singles, singleFacts)
	set(&o.rounds, queryRounds)
	set(&o.idle, idleRounds)
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Parts) == 0 {
		o.Parts = AgentParts()
	}
}

func (r *agentRun) say(format string, args ...any) {
	if r.Out != nil {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// onStore runs f on a store of its own, which is removed afterwards.
func (r *agentRun) onStore(opts *loci.Options, f func(dir string, db *loci.DB) error) (err error) {
	dir, err := os.MkdirTemp(r.Dir, "loci-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := loci.Open(r.ctx, dir, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(dir, db)
}

// facts runs the parts that share a store.
func (r *agentRun) facts(_ string, db *loci.DB) error {
	memory, err := agent.Open(r.ctx, db, agent.Config{Dimension: vectorDimension})
	if err != nil {
		return err
	}
	small := r.Facts / 10
	if _, err := r.load(memory, 0, small, nil); err != nil {
		return err
	}
	wants := func(p AgentPart) bool { return slices.Contains(r.Parts, p) }
	if wants(PartStore) {
		if err := r.store(db, memory); err != nil {
			return fmt.Errorf("bench: %s: %w", PartStore, err)
		}
	}
	if wants(PartQuery) {
		if err := r.queries(db, memory, small); err != nil {
			return fmt.Errorf("bench: %s: %w", PartQuery, err)
		}
	}
	m, err := r.load(memory, small, r.Facts, nil)
	if err != nil {
		return err
	}
	r.report.Batches = m.throughput(r.Facts - small)
	if wants(PartQuery) {
		if err := r.queries(db, memory, r.Facts); err != nil {
			return fmt.Errorf("bench: %s: %w", PartQuery, err)
		}
	}
	if wants(PartSnapshots) {
		if err := r.snapshots(db, memory); err != nil {
			return fmt.Errorf("bench: %s: %w", PartSnapshots, err)
		}
	}
	return nil
}

// fact makes fact i with its vector. ttl gives how long it lives; nil: for ever.
func (r *agentRun) fact(i int, ttl func(i int) *uint64) agent.FactInput {
	in := agent.FactInput{Content: r.corpus.Record(i).Judgment}
	in.ID, in.Embedding = loci.PointID(i), r.made.vector(in.Content)
	x := newRandom(r.Seed, uint64(i)|1<<42)
	in.Metadata = fmt.Appendf(nil, `{"ten":%d,"hundred":%d,"thousand":%d,"source":"generated"}`, x.below(10), x.below(100), x.below(1000))
	if ttl != nil {
		in.TTLSeconds = ttl(i)
	}
	return in
}

// load stores facts from a number up to another, in batches, and says what storing
// them cost.
func (r *agentRun) load(memory *agent.AgentMemory, from, to int, ttl func(i int) *uint64) (m meter, err error) {
	r.say("storing facts %d to %d", from, to)
	for i := from; i < to; i += batchSize {
		batch := make([]agent.FactInput, 0, batchSize)
		for j := i; j < min(i+batchSize, to); j++ {
			batch = append(batch, r.fact(j, ttl))
		}
		if err := m.measure(func() error { return memory.Semantic().StoreBatch(r.ctx, batch) }); err != nil {
			return m, err
		}
		if r.Progress != nil {
			r.Progress(min(i+batchSize, to)-from, to-from)
		}
	}
	return m, nil
}

// store measures facts that are stored one after the other, each beside a bare
// commit of the same store.
func (r *agentRun) store(db *loci.DB, memory *agent.AgentMemory) error {
	r.say("storing facts singly")
	var single, bare []time.Duration
	for i := range r.singles {
		in := r.fact(r.Facts+i, nil)
		begin := time.Now()
		if _, err := memory.Semantic().Put(r.ctx, in); err != nil {
			return err
		}
		single = append(single, time.Since(begin))
		commit, err := bareCommit(r.ctx, db, 2)
		if err != nil {
			return err
		}
		bare = append(bare, commit)
	}
	for i := range r.singles {
		if _, err := memory.Semantic().Delete(r.ctx, loci.PointID(r.Facts+i)); err != nil {
			return err
		}
	}
	s, b := newLatency(single), newLatency(bare)
	r.report.Single, r.report.Commit = &s, &b
	return nil
}
