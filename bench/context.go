package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// ContextPart is a part of a run over the context store.
type ContextPart string

// The parts, in the order in which they run.
const (
	PartSnapshot ContextPart = "snapshot" // the window of 64 KiB, unchanged and changed
	PartRandom   ContextPart = "random"   // many pages, random operations, nothing unexplained
	PartSession  ContextPart = "session"  // a simulated agent, and what providers would bill
	PartRecall   ContextPart = "recall"   // recall over many pages
)

// ContextParts gives every part in order.
func ContextParts() []ContextPart {
	return []ContextPart{PartSnapshot, PartRandom, PartSession, PartRecall}
}

// The amounts of work that ContextOptions do not change.
const (
	windowBytes       = 64 << 10
	unchangedSamples  = 20_000
	changedSamples    = 300
	recallQueries     = 60 // of each kind, each asked recallRounds times
	recallRounds      = 5
	randomPages       = 10_000
	randomOperations  = 1000
	sessionSteps      = 200
	sessionStepTime   = 20 * time.Second
	sessionHostTokens = 3000
)

// ContextOptions tune RunContext. The zero value measures everything.
type ContextOptions struct {
	Pages int    // of the scope in which recall is measured, default 100,000
	Seed  uint64 // default 1
	// Dir keeps the store of recall, for the next run; empty: a temporary one. The
	// others are temporary always, and lie beside it.
	Dir   string
	Parts []ContextPart // default all
	// Out takes a line for each thing that is done; nil means silence.
	Out io.Writer
	// Progress is told how far the loading is.
	Progress func(done, total int)

	// Tests do less.
	unchanged, changed, queries, rounds, pages, operations, steps, documents int
}

// contextRun is one run under way.
type contextRun struct {
	ContextOptions
	ctx    context.Context
	corpus *Corpus
	report *ContextReport
}

// RunContext measures the context store: how long a host waits for its window,
// whether the window keeps its budget and its prefix under random operations,
// and what a simulated agent's window costs at providers with a prompt cache. A
// Dir that holds the pages of recall already, left by an earlier run over the
// same seed and size, is used as it is.
func RunContext(ctx context.Context, o ContextOptions) (*ContextReport, error) {
	o.defaults()
	if o.Pages < batchSize {
		return nil, fmt.Errorf("bench: %d pages are too few to measure; ask for at least %d", o.Pages, batchSize)
	}
	for _, p := range o.Parts {
		if !slices.Contains(ContextParts(), p) {
			return nil, fmt.Errorf("bench: no part %q; there are %v", p, ContextParts())
		}
	}
	r := &contextRun{ContextOptions: o, ctx: ctx, report: &ContextReport{Machine: thisMachine(), Seed: o.Seed}}
	if slices.Contains(o.Parts, PartSession) {
		r.report.Assumptions = SessionAssumptions()
	}
	r.say("making the word lists")
	r.corpus = NewCorpus(o.Seed, corpusSample)
	for _, step := range []struct {
		part ContextPart
		do   func() error
	}{{PartSnapshot, r.snapshots}, {PartRandom, r.random}, {PartSession, r.sessions}, {PartRecall, r.recall}} {
		if !slices.Contains(o.Parts, step.part) {
			continue
		}
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", step.part, err)
		}
	}
	return r.report, nil
}

// corpusSample is the size of the corpus that queries take their frequencies
// from.
const corpusSample = 20_000

func (o *ContextOptions) defaults() {
	set := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	set(&o.Pages, 100_000)
	set(&o.unchanged, unchangedSamples)
	set(&o.changed, changedSamples)
	set(&o.queries, recallQueries)
	set(&o.rounds, recallRounds)
	set(&o.pages, randomPages)
	set(&o.operations, randomOperations)
	set(&o.steps, sessionSteps)
	set(&o.documents, agentDocuments)
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Parts) == 0 {
		o.Parts = ContextParts()
	}
}

func (r *contextRun) say(format string, args ...any) {
	if r.Out != nil {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// withStore runs fn on a fresh store in a folder that is removed afterwards.
func (r *contextRun) withStore(clock func() time.Time, fn func(*loci.DB) error) (err error) {
	parent := ""
	if r.Dir != "" {
		parent = filepath.Dir(filepath.Clean(r.Dir))
	}
	dir, err := os.MkdirTemp(parent, "loci-bench-context-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return r.inStore(dir, clock, fn)
}

// inStore runs fn on the store in a folder.
func (r *contextRun) inStore(dir string, clock func() time.Time, fn func(*loci.DB) error) (err error) {
	db, err := loci.Open(r.ctx, dir, &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true, Clock: clock})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// pageText is a text of about n bytes in the manner of what tools and people
// write: lines of one to three sentences, a blank line now and then.
func (r *contextRun) pageText(random *random, n int) string {
	var b strings.Builder
	for b.Len() < n {
		if b.Len() > 0 {
			b.WriteByte('\n')
			if random.below(5) == 0 {
				b.WriteByte('\n')
			}
		}
		b.WriteString(r.corpus.draft(random.below(1 << 30)).text.String())
	}
	return cutText(b.String(), n)
}

// cutText cuts a text to at most n bytes at a character, without blanks at its
// end.
func cutText(text string, n int) string {
	if len(text) > n {
		for n > 0 && text[n]&0xC0 == 0x80 {
			n--
		}
		text = text[:n]
	}
	return strings.TrimSpace(text)
}

// resident gives the ids of the pages in a window's text, as it was rendered.
func residentIDs(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(line, ",")
		if rest, ok := strings.CutPrefix(line, `{"id":"`); ok {
			id, _, _ := strings.Cut(rest, `"`) // the bench's own ids need no escaping
			ids = append(ids, id)
		}
	}
	return ids
}

// write writes a page.
func write(ctx context.Context, cs *pager.Store, req pager.WriteRequest) (*pager.WriteResult, error) {
	out, err := cs.Write(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", req.PageID, err)
	}
	return out, nil
}
