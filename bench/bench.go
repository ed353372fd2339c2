package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci"
)

// Phase is a part of a run.
type Phase string

// The phases, in the order in which they run.
const (
	PhaseIngest   Phase = "ingest"   // load the corpus; left out when the store holds it already
	PhaseSearch   Phase = "search"   // every class of query under every filter
	PhaseOpen     Phase = "open"     // open to first answer
	PhaseSingle   Phase = "single"   // durable writes one by one
	PhaseParallel Phase = "parallel" // durable writes from eight goroutines
	PhaseRebuild  Phase = "rebuild"  // the indexes anew from the truth
	PhaseVector   Phase = "vector"   // made-up vectors in stores of their own: loading, searching
	PhaseEmbed    Phase = "embed"    // the model alone
)

// Phases gives every phase in order.
func Phases() []Phase {
	return []Phase{PhaseIngest, PhaseSearch, PhaseOpen, PhaseSingle, PhaseParallel, PhaseRebuild, PhaseVector, PhaseEmbed}
}

// The amounts of work that Options do not change.
const (
	batchSize     = 1000
	queriesClass  = 60
	searchLimit   = 10
	minSamples    = 300 // searches of one class under one filter
	openRepeats   = 5
	singleWrites  = 500
	parallelTasks = 8
)

// Options tune Run. The zero value measures everything on 100,000 records.
type Options struct {
	Records int     // size of the corpus, default 100,000
	Seed    uint64  // default 1
	Dir     string  // data directory; empty: a temporary one, removed at the end
	Phases  []Phase // default all
	// Out takes a line for each thing that is done; nil means silence.
	Out io.Writer
	// Progress is told how far the loading is.
	Progress func(done, total int)
	// Fresh is the command line of a process that calls FirstAnswer with the
	// data directory and the query that Run appends to it, and writes the
	// result to its standard output as JSON. Without it opening is measured in
	// this process.
	Fresh []string
	// Model is the embedder to measure; nil leaves its figures out.
	Model *Model

	// Tests do less: searches of one class under one filter, single writes.
	samples, writes int
}

// run is one run under way.
type run struct {
	Options
	ctx     context.Context
	corpus  *Corpus
	queries map[Class][]string
	db      *loci.DB
	next    int // number of the next record to write
	report  *Report
}

// Run makes the measurements. A data directory that already holds the corpus,
// left by an earlier run over the same seed and size, is used as it is.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if o.Records == 0 {
		o.Records = 100_000
	}
	if o.Records < batchSize {
		return nil, fmt.Errorf("bench: %d records are too few to measure; ask for at least %d", o.Records, batchSize)
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Phases) == 0 {
		o.Phases = Phases()
	}
	if o.samples == 0 {
		o.samples, o.writes = minSamples, singleWrites
	}
	for _, p := range o.Phases {
		if !slices.Contains(Phases(), p) {
			return nil, fmt.Errorf("bench: no phase %q; there are %v", p, Phases())
		}
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "loci-bench-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	r := &run{Options: o, ctx: ctx, report: &Report{Machine: thisMachine(), Seed: o.Seed, Records: o.Records}}
	r.say("making the word lists and the queries")
	r.corpus = NewCorpus(o.Seed, o.Records)
	r.queries = r.corpus.Queries(queriesClass)
	if err := r.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, step := range []struct {
		phase Phase
		do    func() error
	}{
		{PhaseIngest, r.ingest}, {PhaseSearch, r.search}, {PhaseOpen, r.reopen},
		{PhaseSingle, r.single}, {PhaseParallel, r.parallel}, {PhaseRebuild, r.rebuild},
		{PhaseVector, r.vector}, {PhaseEmbed, r.embed},
	} {
		// Loading is not optional when there is nothing to measure on.
		wanted := slices.Contains(o.Phases, step.phase) || step.phase == PhaseIngest && r.next == 0 && needsStore(o.Phases)
		if !wanted {
			continue
		}
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", step.phase, err)
		}
	}
	return r.report, nil
}

// needsStore says whether a phase measures the store that ingest loads.
func needsStore(phases []Phase) bool {
	return slices.ContainsFunc(phases, func(p Phase) bool { return p != PhaseVector && p != PhaseEmbed })
}

func (r *run) say(format string, args ...any) {
	if r.Out != nil {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// open opens the store and finds out how many records it holds.
func (r *run) open() error {
	db, err := loci.Open(r.ctx, r.Dir, &loci.Options{WaitForIndex: true})
	if err != nil {
		return err
	}
	health, err := db.Health(r.ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if health.RecordCount > 0 && health.RecordCount < int64(r.Records) {
		return errors.Join(fmt.Errorf("bench: the data directory holds %d records, not the %d asked for", health.RecordCount, r.Records), db.Close())
	}
	r.db, r.next = db, int(health.RecordCount)
	return nil
}

func (r *run) close() error {
	if r.db == nil {
		return nil
	}
	err := r.db.Close()
	r.db = nil
	return err
}

// ingest loads the corpus in batches. Making the records is not measured.
func (r *run) ingest() error {
	if r.next > 0 {
		r.say("the data directory holds %d records already", r.next)
		return nil
	}
	r.say("loading %d records in batches of %d", r.Records, batchSize)
	var m meter
	var took []time.Duration
	batch := make([]loci.MemoryInput, 0, batchSize)
	for r.next < r.Records {
		batch = batch[:0]
		for in := range r.corpus.Records(r.next, min(r.next+batchSize, r.Records)) {
			batch = append(batch, in)
			r.report.Bytes += int64(len(in.Judgment))
		}
		begin := time.Now()
		if err := m.measure(func() error {
			_, err := r.db.Memories().UpsertMany(r.ctx, batch)
			return err
		}); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
		r.next += len(batch)
		if r.Progress != nil {
			r.Progress(r.next, r.Records)
		}
	}
	r.report.Ingest = m.throughput(r.Records)
	latency := newLatency(took)
	r.report.Ingest.Latency = &latency
	return r.measureDisk()
}

// measureDisk closes the store, since only then all is on disk, and opens it
// again.
func (r *run) measureDisk() error {
	if err := r.close(); err != nil {
		return err
	}
	d := &DiskReport{Parts: map[string]int64{}}
	err := filepath.WalkDir(r.Dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(r.Dir, name)
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		d.Parts[first] += info.Size()
		d.Bytes += info.Size()
		return nil
	})
	if err != nil {
		return err
	}
	d.PerRecord = ratio(float64(d.Bytes), float64(r.next))
	r.report.Disk = d
	return r.open()
}

// filters are those under which every class is measured.
func filters() []struct{ name, tag string } {
	return []struct{ name, tag string }{
		{"none", ""},
		{"10 %", fmt.Sprintf(tagTen, 3)},
		{"1 %", fmt.Sprintf(tagHundred, 7)},
		{"0.1 %", fmt.Sprintf(tagThousand, 123)},
	}
}

func (r *run) search() error {
	for _, class := range Classes() {
		r.say("searching: %s", class)
		for _, f := range filters() {
			s, err := r.searchClass(class, f.name, f.tag)
			if err != nil {
				return err
			}
			r.report.Search = append(r.report.Search, s)
		}
	}
	return nil
}

func (r *run) searchClass(class Class, filter, tag string) (SearchReport, error) {
	requests := make([]loci.SearchRequest, 0, queriesClass)
	for _, q := range r.queries[class] {
		req := loci.SearchRequest{Query: q, Limit: new(searchLimit)}
		if tag != "" {
			req.Filter.Tags = []string{tag}
		}
		requests = append(requests, req)
	}
	out := SearchReport{Class: class, Filter: filter}
	hits := 0
	for _, req := range requests { // a first round that is not measured
		result, err := r.db.Search(r.ctx, req)
		if err != nil {
			return out, err
		}
		if len(result.Diagnostics.Degraded) > 0 {
			return out, fmt.Errorf("a search was degraded: %v", result.Diagnostics.Degraded)
		}
		hits += len(result.Hits)
	}
	took := make([]time.Duration, 0, r.samples+queriesClass)
	var m meter
	err := m.measure(func() error {
		for len(took) < r.samples {
			for _, req := range requests {
				begin := time.Now()
				if _, err := r.db.Search(r.ctx, req); err != nil {
					return err
				}
				took = append(took, time.Since(begin))
			}
		}
		return nil
	})
	n := float64(len(took))
	out.Latency = newLatency(took)
	out.CPUMicros = ratio(microseconds(m.cpu), n)
	out.AllocBytes = ratio(float64(m.allocated), n)
	out.Hits = ratio(float64(hits), float64(len(requests)))
	return out, err
}

// reopen measures opening several times and keeps the median of each figure.
func (r *run) reopen() error {
	if err := r.close(); err != nil {
		return err
	}
	r.say("opening %d times", openRepeats)
	query := r.queries[OneMid][0]
	var all []OpenReport
	for range openRepeats {
		var o OpenReport
		var err error
		if len(r.Fresh) > 0 {
			o, err = r.fresh(query)
		} else {
			o, err = FirstAnswer(r.ctx, r.Dir, query)
		}
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	result := all[0]
	result.OpenMS = median(all, func(o OpenReport) float64 { return o.OpenMS })
	result.FirstAnswerMS = median(all, func(o OpenReport) float64 { return o.FirstAnswerMS })
	result.ProcessMS = median(all, func(o OpenReport) float64 { return o.ProcessMS })
	r.report.Open = &result
	return r.open()
}

// fresh measures one opening in a process of its own.
func (r *run) fresh(query string) (OpenReport, error) {
	var o OpenReport
	argv := slices.Concat(r.Fresh, []string{r.Dir, query})
	cmd := exec.CommandContext(r.ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	out, err := cmd.Output()
	took := time.Since(begin)
	if err != nil {
		return o, fmt.Errorf("a fresh process: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(out, &o); err != nil {
		return o, fmt.Errorf("a fresh process wrote no result: %w", err)
	}
	o.Fresh, o.ProcessMS = true, microseconds(took)/1000
	return o, nil
}

// FirstAnswer opens a data directory, searches once and closes it: what a
// process that was just started has to do before its user sees something.
func FirstAnswer(ctx context.Context, dir, query string) (o OpenReport, err error) {
	begin := time.Now()
	db, err := loci.Open(ctx, dir, nil)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	o.OpenMS = microseconds(time.Since(begin)) / 1000
	o.AfterOpen = residentMemory()
	result, err := db.Search(ctx, loci.SearchRequest{Query: query, Limit: new(searchLimit)})
	if err != nil {
		return o, err
	}
	if len(result.Diagnostics.Degraded) > 0 {
		return o, fmt.Errorf("the first search was degraded: %v", result.Diagnostics.Degraded)
	}
	o.FirstAnswerMS = microseconds(time.Since(begin)) / 1000
	o.AfterSearch = residentMemory()
	return o, nil
}

// single writes records one by one, each of them durable before the next.
func (r *run) single() error {
	r.say("writing %d records one by one", r.writes)
	inputs := slices.Collect(r.corpus.Records(r.next, r.next+r.writes))
	r.next += len(inputs)
	took := make([]time.Duration, 0, len(inputs))
	var m meter
	err := m.measure(func() error {
		for _, in := range inputs {
			begin := time.Now()
			if _, err := r.db.Memories().Upsert(r.ctx, in); err != nil {
				return err
			}
			took = append(took, time.Since(begin))
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.report.Single = m.throughput(len(inputs))
	latency := newLatency(took)
	r.report.Single.Latency = &latency
	return nil
}

// parallel writes records from several goroutines at once, which lets commits
// share a sync.
func (r *run) parallel() error {
	total := parallelTasks * r.writes
	r.say("writing %d records from %d goroutines", total, parallelTasks)
	inputs := slices.Collect(r.corpus.Records(r.next, r.next+total))
	r.next += total
	took := make([]time.Duration, total)
	var failed atomic.Pointer[error]
	var m meter
	err := m.measure(func() error {
		var next atomic.Int64
		var group sync.WaitGroup
		for range parallelTasks {
			group.Go(func() {
				for failed.Load() == nil {
					i := int(next.Add(1)) - 1
					if i >= total {
						return
					}
					begin := time.Now()
					if _, err := r.db.Memories().Upsert(r.ctx, inputs[i]); err != nil {
						failed.Store(&err)
					}
					took[i] = time.Since(begin)
				}
			})
		}
		group.Wait()
		if e := failed.Load(); e != nil {
			return *e
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.report.Parallel = m.throughput(total)
	latency := newLatency(took)
	r.report.Parallel.Latency = &latency
	return nil
}

func (r *run) rebuild() error {
	r.say("rebuilding the indexes")
	var m meter
	if err := m.measure(func() error {
		_, err := r.db.RebuildIndexes(r.ctx)
		return err
	}); err != nil {
		return err
	}
	r.report.Rebuild = m.throughput(r.next)
	return nil
}

func median[T any](all []T, value func(T) float64) float64 {
	values := make([]float64, 0, len(all))
	for _, o := range all {
		values = append(values, value(o))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }
