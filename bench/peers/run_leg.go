package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/bench/peers/data"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
)

// What the stores of a part of the run hold. An engine of one kind meets the others
// on even terms: they hold what it does and no more.
const (
	holdsTexts   = "texts"
	holdsVectors = "vectors"
	holdsBoth    = "both"
)

// The extra records of a set, by what they are for: offsets from its count.
const (
	singleRound  = 40 // records a round
	visibleRound = 20
	changeRound  = 20

	singleAt  = 0
	visibleAt = 1000
	mixedAt   = 2000
)

// A leg is a part of the run in which all stores hold the same. All products that
// can are alive at once, and take turns.
type leg struct {
	*runner
	holds  string
	label  string // Data of rows that depend on what is held
	set    *data.Set
	corpus *bench.Corpus
	dir    string
	all    []*contender
}

// A contender is a product's process in a leg.
type contender struct {
	*product
	dir    string
	w      *worker.Worker
	gone   string            // why it takes no part any more
	effort map[string]chosen // by filter
	slow   map[string]bool   // by task, class and filter: one query takes long
	opened protocol.Open     // how it was opened
}

func (l *leg) texts() bool   { return l.holds != holdsVectors }
func (l *leg) vectors() bool { return l.holds != holdsTexts }

// measureSize does the legs of one size.
func (r *runner) measureSize(ctx context.Context, n int) error {
	var set *data.Set
	for _, holds := range []string{holdsTexts, holdsVectors, holdsBoth} {
		if !slices.Contains(r.holds, holds) || !r.legIsWanted(holds, n) {
			continue
		}
		if set == nil {
			var err error
			set, err = data.Corpus(ctx, r.data, r.seed, n, func(m string) { r.say("%s", m) })
			if err != nil {
				return err
			}
		}
		l := &leg{runner: r, holds: holds, set: set, corpus: bench.NewCorpus(r.seed, n)}
		switch holds {
		case holdsTexts:
			l.label = result.DataTexts
		case holdsVectors:
			l.label = result.DataVectors
		}
		if err := l.run(ctx); err != nil {
			return err
		}
		if err := r.keep(); err != nil {
			return err
		}
	}
	return nil
}

// legIsWanted says if any task is wanted that a leg does.
func (r *runner) legIsWanted(holds string, n int) bool {
	search := map[string]string{holdsTexts: doText, holdsVectors: doVector, holdsBoth: doHybrid}[holds]
	for _, t := range []string{doBatch, doSingle, doVisible, doUpdate, doDelete, doOpen, doMemory, doDisk, doMixed, search} {
		if r.wants(t, n) {
			return true
		}
	}
	return false
}

// run does all tasks of a leg. It fails only when the run cannot go on; what a
// product cannot do or does wrong is in the rows.
func (l *leg) run(ctx context.Context) (err error) {
	l.say("%s records, stores of %s", count(l.set.Count), l.holds)
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	steps := []struct {
		task string
		do   func(context.Context)
	}{
		{doText, l.searchTexts}, {doVector, l.searchVectors}, {doHybrid, l.searchHybrid},
	}
	l.load(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	n := l.set.Count
	for _, s := range steps {
		if l.wants(s.task, n) {
			s.do(ctx)
		}
	}
	if l.set.Name != "" {
		return ctx.Err() // real vectors are for searching alone
	}
	if l.wants(doOpen, n) || l.wants(doMemory, n) || l.wants(doDisk, n) {
		l.reopen(ctx)
	}
	l.writes(ctx)
	return ctx.Err()
}

// begin starts the worker of each product that can hold what the leg is about.
func (l *leg) begin(ctx context.Context) error {
	l.dir = filepath.Join(l.scratch, fmt.Sprintf("%s-%d-%s", l.holds, l.set.Count, l.set.Name))
	for _, p := range l.products {
		if p.gone == "" && (l.texts() && !p.hello.Text || l.vectors() && !p.hello.Vector) {
			continue
		}
		c := &contender{
			product: p, gone: p.gone, dir: filepath.Join(l.dir, p.id),
			effort: map[string]chosen{}, slow: map[string]bool{},
			opened: protocol.Open{
				Analysis: analysis(p.hello), Texts: l.texts(), Vectors: l.vectors(),
				Capacity: l.set.Count + l.set.Extra,
			},
		}
		c.opened.Dir = c.dir
		if l.vectors() {
			c.opened.Dimension = l.set.Dimension
		}
		if p.gone != "" {
			continue // its product's entry says why
		}
		l.all = append(l.all, c)
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			return err
		}
		if _, err := l.open(ctx, c); err != nil {
			l.drop(c, err)
		}
	}
	return nil
}

// analysis is the form in which a product gets texts.
func analysis(h protocol.Hello) string {
	if h.OwnAnalysis {
		return "own"
	}
	return "words"
}

// open starts a contender's process and has it open its store.
func (l *leg) open(ctx context.Context, c *contender) (protocol.Cost, error) {
	var err error
	if c.w, err = l.start(ctx, c.product); err != nil {
		return protocol.Cost{}, err
	}
	return call[protocol.Cost](ctx, l.runner, c, protocol.OpOpen, c.opened)
}

// call asks a contender for an operation within the limit.
func call[T any](ctx context.Context, r *runner, c *contender, op string, args any) (T, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	return worker.Call[T](ctx, c.w, op, args)
}

// drop takes a contender out of the leg.
func (l *leg) drop(c *contender, err error) {
	c.gone = reason(err)
	l.say("%s: out: %v", c.hello.Name, err)
	if c.w != nil {
		c.w.Kill()
	}
	// What it left is of no more use, and others need the room.
	if err := os.RemoveAll(c.dir); err != nil {
		l.say("%s: %v", c.hello.Name, err)
	}
}

// end stops all processes and removes what they stored.
func (l *leg) end() error {
	for _, c := range l.all {
		if c.gone == "" {
			c.w.Kill()
		}
	}
	return os.RemoveAll(l.dir)
}

// loadBatch is how many records are written in one call.
const loadBatch = 1000

// slices of a load: products take turns after each, and none goes on over the limit.
const loadParts = 10

// load loads all stores. A product that would take longer than the limit is out.
func (l *leg) load(ctx context.Context) {
	n := l.set.Count
	part := (max(n/loadParts, loadBatch) + loadBatch - 1) / loadBatch * loadBatch
	spent := map[*contender]*tally{}
	for _, c := range l.all {
		spent[c] = &tally{}
	}
	round := 0
	for from := 0; from < n; from += part {
		to := min(from+part, n)
		for _, c := range turn(l.all, round) {
			if c.gone != "" || ctx.Err() != nil {
				continue
			}
			l.step(ctx, c, spent[c], protocol.OpLoad, l.records(from, to, loadBatch))
			// At the pace so far; most get slower as they fill.
			whole := time.Duration(spent[c].wall * float64(n) / float64(to) * float64(time.Second))
			if c.gone == "" && whole > l.limit {
				l.drop(c, fmt.Errorf("loading %s records would take %s at the pace of the first %s, more than the %s that each has",
					count(n), whole.Round(time.Second), count(to), l.limit))
			}
		}
		round++
		if round == loadParts/2 || to == n {
			l.say("loaded: %s of %s records", count(to), count(n))
		}
	}
	for _, c := range l.all {
		row := l.row(result.TaskBatch, c)
		if c.gone == "" {
			t := spent[c]
			row.Samples, row.Rate, row.Seconds, row.CPUSecs = n, float64(n)/t.wall, t.wall, t.cpu
			row.CPU = t.cpu / float64(n) * micro
		}
		l.add(row)
	}
	for _, c := range l.all {
		var t tally
		if c.gone == "" {
			l.step(ctx, c, &t, protocol.OpFinish, nil)
		}
		row := l.row(result.TaskFinish, c)
		if c.gone == "" {
			row.Seconds, row.CPUSecs = t.wall, t.cpu
			if len(t.times) == 0 || t.wall == 0 {
				row.Missing = "there is nothing to do after loading"
			}
			l.say("%s: loaded in %.1f s of processor time, finished in %.1f", c.hello.Name, spent[c].cpu, t.cpu)
		}
		l.add(row)
	}
}

// step has a contender do one request, and drops it if it cannot.
func (l *leg) step(ctx context.Context, c *contender, t *tally, op string, args any) {
	cost, err := call[protocol.Cost](ctx, l.runner, c, op, args)
	if err != nil {
		l.drop(c, err)
		return
	}
	t.add(cost)
}

// records names records of the leg's set.
func (l *leg) records(from, to, batch int) protocol.Load {
	out := protocol.Load{Records: l.set.Records, From: from, To: to, Batch: batch}
	if l.vectors() {
		out.Vectors = l.set.Vectors
	}
	return out
}

// row begins a row of a contender, with the reason why there is no figure if it is
// out.
func (l *leg) row(task string, c *contender) result.Row {
	data := l.label
	if l.set.Name != "" {
		data = l.set.Name
	}
	return result.Row{Task: task, Data: data, Records: l.set.Count, Product: c.hello.Name, Missing: c.gone}
}

func (l *leg) add(row result.Row) { l.file.Rows = append(l.file.Rows, row) }

// folderBytes sums the sizes of the files below a folder.
func folderBytes(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// count writes a number with commas.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
