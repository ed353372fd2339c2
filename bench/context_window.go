package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/pager"
	"github.com/loci-memory/loci/pager/tiktoken"
)

// WindowReport is what a host waits for when something has changed in a window
// of 64 KiB, or when nothing has.
type WindowReport struct {
	Measure   string `json:"measure"` // what the budget is counted in
	Case      string `json:"case"`    // what changed
	TextBytes int    `json:"text_bytes"`
	// Evicted is how many pages made room, over all samples.
	Evicted int `json:"evicted"`

	Change   *Latency `json:"change,omitempty"` // the operation, its sync included
	Snapshot Latency  `json:"snapshot"`         // that follows it, its sync included when bytes changed
	Both     *Latency `json:"both,omitempty"`   // one after the other
	// Commit is a transaction of the store that writes next to nothing, and
	// CommitText one that writes a text as long as the window; each was made once
	// after every sample, so that the disk was in the same mood.
	Commit     *Latency `json:"commit,omitempty"`
	CommitText *Latency `json:"commit_text,omitempty"`

	ChangeCPU     float64 `json:"change_cpu_us,omitempty"` // mean, of the whole process
	SnapshotCPU   float64 `json:"snapshot_cpu_us"`
	CommitCPU     float64 `json:"commit_cpu_us,omitempty"` // of Commit
	SnapshotAlloc float64 `json:"snapshot_alloc_bytes"`
}

// OverCommit is how much longer the snapshot's p95 is than that of a commit that
// writes next to nothing, in microseconds.
func (w *WindowReport) OverCommit() float64 {
	if w.Commit == nil {
		return w.Snapshot.P95
	}
	return w.Snapshot.P95 - w.Commit.P95
}

// wordCounter counts words. It does not say that lines add up.
type wordCounter struct{}

func (wordCounter) ID() string            { return "bench:words" }
func (wordCounter) Count(text string) int { return len(strings.FieldsFunc(text, notWord)) }

func notWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// wholeCounter hides that a counter's lines add up.
type wholeCounter struct{ pager.Counter }

func (w wholeCounter) ID() string { return w.Counter.ID() + ", whole" }

// pageBytes is the size of the pages in a window.
const pageBytes = 1000

func (r *contextRun) snapshots() error {
	o200k, err := tiktoken.New("o200k_base")
	if err != nil {
		return err
	}
	for i, m := range []struct {
		name    string
		counter pager.Counter
	}{{"bytes", nil}, {"o200k_base by line", o200k}, {"words of the whole text", wordCounter{}}, {"o200k_base of the whole text", wholeCounter{o200k}}} {
		r.say("a window of %d KiB, counted in %s", windowBytes>>10, m.name)
		err := r.withStore(nil, func(db *loci.DB) error {
			w := &windowBench{contextRun: r, db: db, name: m.name, counter: m.counter, random: newRandom(r.Seed, 1<<45+uint64(i))}
			return w.run()
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// windowBench measures one window.
type windowBench struct {
	*contextRun
	db      *loci.DB
	cs      *pager.Store
	name    string
	counter pager.Counter
	random  *random
	core    []string // page ids
	working []string
	archive []string
	version map[string]int64
	since   *int64
	text    int // its bytes
}

func (w *windowBench) run() error {
	if err := w.fill(); err != nil {
		return err
	}
	if err := w.unchanged(); err != nil {
		return err
	}
	for _, c := range []struct {
		name   string
		change func(i int) (evicted int, err error)
	}{
		{"a working page in the middle", func(i int) (int, error) { return w.rewrite(w.working[len(w.working)/2], pager.Working, i) }},
		{"a core page in the middle", func(i int) (int, error) { return w.rewrite(w.core[len(w.core)/2], pager.Core, i) }},
		{"an admission that evicts", w.admit},
	} {
		if err := w.changed(c.name, c.change); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// fill makes a window of nearly windowBytes, a quarter of it core, and a budget
// that it fills.
func (w *windowBench) fill() error {
	cfg := pager.Config{Scope: pager.Scope{"bench", "window"}, Budget: new(pager.MaxBudget), Counter: w.counter}
	cs, err := pager.Open(w.ctx, w.db, cfg)
	if err != nil {
		return err
	}
	w.version = map[string]int64{}
	tierOf := func(i int) (pager.Tier, *[]string) {
		switch {
		case i < windowBytes/4/pageBytes:
			return pager.Core, &w.core
		case i < windowBytes/pageBytes:
			return pager.Working, &w.working
		}
		return pager.Archive, &w.archive
	}
	for i := range windowBytes/pageBytes + 200 {
		tier, list := tierOf(i)
		id := fmt.Sprintf("page-%03d", i)
		if _, err := write(w.ctx, cs, w.page(id, tier)); err != nil {
			return err
		}
		w.version[id] = 1
		*list = append(*list, id)
	}
	s, err := cs.Snapshot(w.ctx, pager.SnapshotRequest{})
	if err != nil {
		return err
	}
	// Half a page of room: a page changes without eviction, one more takes one.
	cfg.Budget, cfg.Reconfigure = new(s.Pressure.Cost+s.Pressure.Cost/(2*windowBytes/pageBytes)), true
	if w.cs, err = pager.Open(w.ctx, w.db, cfg); err != nil {
		return err
	}
	return w.look()
}

// page is a page of about the usual size.
func (w *windowBench) page(id string, tier pager.Tier) pager.WriteRequest {
	return pager.WriteRequest{PageID: id, Tier: tier, Title: "page " + id, Tags: []string{"bench"},
		Content: w.pageText(w.random, pageBytes-100)}
}

// look takes the window as it is now.
func (w *windowBench) look() error {
	s, err := w.cs.Snapshot(w.ctx, pager.SnapshotRequest{Since: w.since})
	if err != nil {
		return err
	}
	w.since, w.text = &s.Generation, s.TextBytes
	return nil
}

// unchanged measures the snapshot of a host that has the window.
func (w *windowBench) unchanged() error {
	took := make([]time.Duration, 0, w.ContextOptions.unchanged)
	req := pager.SnapshotRequest{Since: w.since}
	var m meter
	err := m.measure(func() error {
		for range w.ContextOptions.unchanged {
			begin := time.Now()
			s, err := w.cs.Snapshot(w.ctx, req)
			if err != nil {
				return err
			}
			took = append(took, time.Since(begin))
			if s.Changed {
				return fmt.Errorf("the window changed by itself")
			}
		}
		return nil
	})
	n := float64(len(took))
	w.report.Windows = append(w.report.Windows, WindowReport{Measure: w.name, Case: "nothing", TextBytes: w.text, Snapshot: newLatency(took),
		SnapshotCPU: ratio(microseconds(m.cpu), n), SnapshotAlloc: ratio(float64(m.allocated), n)})
	return err
}

// rewrite gives a page other content of the same size.
func (w *windowBench) rewrite(id string, tier pager.Tier, _ int) (evicted int, err error) {
	req := w.page(id, tier)
	req.ExpectedVersion = new(w.version[id])
	out, err := write(w.ctx, w.cs, req)
	if err != nil {
		return 0, err
	}
	w.version[id] = out.Page.Version
	return len(out.Evicted), nil
}

// admit pages in a page of the archive, which puts others there.
func (w *windowBench) admit(i int) (evicted int, err error) {
	out, err := w.cs.PageIn(w.ctx, pager.PageInRequest{PageID: w.archive[i%len(w.archive)]})
	if err != nil {
		return 0, err
	}
	return len(out.Evicted), nil
}

// changed measures a change and the snapshot behind it.
func (w *windowBench) changed(name string, change func(i int) (int, error)) error {
	var changes, snapshots, commits meter
	var changing, looking, both, bare, bareText []time.Duration
	out := WindowReport{Measure: w.name, Case: name}
	bytes := 0
	for i := range w.ContextOptions.changed + warmUp {
		var before, middle, after time.Time
		err := changes.measure(func() (err error) {
			before = time.Now()
			evicted, err := change(i)
			middle = time.Now()
			out.Evicted += evicted
			return err
		})
		if err != nil {
			return err
		}
		var again time.Time
		if err := snapshots.measure(func() error {
			again = time.Now()
			err := w.look()
			after = time.Now()
			return err
		}); err != nil {
			return err
		}
		var small time.Duration
		if err := commits.measure(func() (err error) {
			small, err = w.commit(2)
			return err
		}); err != nil {
			return err
		}
		large, err := w.commit(w.text)
		if err != nil {
			return err
		}
		bytes += w.text
		if i < warmUp {
			changes, snapshots, commits, bytes = meter{}, meter{}, meter{}, 0
			out.Evicted = 0
			continue
		}
		changing, looking = append(changing, middle.Sub(before)), append(looking, after.Sub(again))
		both = append(both, middle.Sub(before)+after.Sub(again))
		bare, bareText = append(bare, small), append(bareText, large)
	}
	n := float64(len(looking))
	latency := func(samples []time.Duration) *Latency { return new(newLatency(samples)) }
	out.TextBytes = bytes / len(looking)
	out.Change, out.Snapshot, out.Both = latency(changing), newLatency(looking), latency(both)
	out.Commit, out.CommitText = latency(bare), latency(bareText)
	out.ChangeCPU, out.SnapshotCPU = ratio(microseconds(changes.cpu), n), ratio(microseconds(snapshots.cpu), n)
	out.CommitCPU, out.SnapshotAlloc = ratio(microseconds(commits.cpu), n), ratio(float64(snapshots.allocated), n)
	w.report.Windows = append(w.report.Windows, out)
	return nil
}

// warmUp is how many samples are made before they count.
const warmUp = 10

// commit makes a transaction of the store that writes n bytes, or a few more,
// and nothing else.
func (w *windowBench) commit(n int) (time.Duration, error) { return bareCommit(w.ctx, w.db, n) }

// bareCommit makes a transaction that writes n bytes, or a few more, and nothing
// else.
func bareCommit(ctx context.Context, db *loci.DB, n int) (time.Duration, error) {
	// The policy of a namespace that nobody uses is the simplest row there is.
	row := []byte(fmt.Sprintf(`{"at":%d,"text":"%s"}`, time.Now().UnixNano(), strings.Repeat("x", n)))
	begin := time.Now()
	_, err := db.Link().Write(ctx, func(tx *store.WriteTx) error { return tx.SetPolicy("bench-commit", row) })
	return time.Since(begin), err
}
