package bench

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// factFilters narrow queries to about so many of the facts.
var factFilters = [...]struct{ name, filter string }{
	{"none", ""}, {"10 %", `{"ten":%d}`}, {"1 %", `{"hundred":%d}`}, {"0.1 %", `{"thousand":%d}`},
}

// question makes the vector of query i: a text that is no fact's.
func (r *agentRun) question(i int) []float32 { return r.made.vector(fmt.Sprintf("question %d", i)) }

// queries measures exact queries for the ten nearest of n facts.
func (r *agentRun) queries(_ *loci.DB, memory *agent.AgentMemory, n int) error {
	facts := memory.Semantic()
	for _, f := range factFilters {
		r.say("querying %d facts, filter %s", n, f.name)
		x := newRandom(r.Seed, uint64(n))
		ask := func(i int) ([]agent.Hit, error) {
			var filter loci.Metadata
			if f.filter != "" {
				filter = fmt.Appendf(nil, f.filter, x.below(10))
			}
			return facts.QueryFiltered(r.ctx, r.question(i), 10, filter, 0)
		}
		for i := range r.rounds / 4 { // warm
			if _, err := ask(i); err != nil {
				return err
			}
		}
		var samples []time.Duration
		var m meter
		questions := make([][]float32, r.rounds)
		for i := range questions {
			questions[i] = r.question(i)
		}
		for i := range r.rounds {
			var filter loci.Metadata
			if f.filter != "" {
				filter = fmt.Appendf(nil, f.filter, x.below(10))
			}
			begin := time.Now()
			err := m.measure(func() error {
				_, err := facts.QueryFiltered(r.ctx, questions[i], 10, filter, 0)
				return err
			})
			if err != nil {
				return err
			}
			samples = append(samples, time.Since(begin))
		}
		wrong := 0
		for i := range checkedTimes {
			right, err := r.check(facts, questions[i], f.filter, x.below(10))
			if err != nil {
				return err
			}
			if !right {
				wrong++
			}
		}
		r.report.Queries = append(r.report.Queries, FactQueryReport{
			Facts: n, Filter: f.name, Latency: newLatency(samples), CPUMicros: microseconds(m.cpu) / float64(r.rounds), Wrong: wrong, Checked: checkedTimes,
			AllocBytes: float64(m.allocated) / float64(r.rounds),
		})
	}
	return nil
}

// check compares an answer with a plain scan over all facts.
func (r *agentRun) check(facts *agent.SemanticMemory, question []float32, filter string, value int) (bool, error) {
	var metadata loci.Metadata
	if filter != "" {
		metadata = fmt.Appendf(nil, filter, value)
	}
	hits, err := facts.QueryFiltered(r.ctx, question, 10, metadata, 0)
	if err != nil {
		return false, err
	}
	type scored struct {
		id    loci.PointID
		score float64
	}
	var all []scored
	for cursor := ""; ; {
		page, err := facts.List(r.ctx, agent.ListRequest{Limit: new(loci.MaxPage), Cursor: cursor})
		if err != nil {
			return false, err
		}
		for _, fact := range page.Items {
			if metadata != nil && !holds(fact.Metadata, metadata) {
				continue
			}
			all = append(all, scored{fact.ID, cosine(question, r.made.vector(fact.Content))})
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
	for i, h := range hits {
		if h.ID != all[i].id || math.Abs(h.Score-all[i].score) > 1e-9 {
			return false, nil
		}
	}
	return len(hits) == min(10, len(all)), nil
}

// holds says whether metadata holds the one pair of a filter.
func holds(metadata, filter loci.Metadata) bool {
	for _, key := range []string{"ten", "hundred", "thousand"} {
		if want := filter.Get(key); want != nil {
			return string(metadata.Get(key)) == string(want)
		}
	}
	return false
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// snapshots measures a snapshot of the whole memory and a restore of it.
func (r *agentRun) snapshots(_ *loci.DB, memory *agent.AgentMemory) error {
	r.say("taking a snapshot, restoring it")
	out := &SnapshotsReport{Facts: r.Facts}
	step := func(seconds, peak *float64, f func() error) error {
		top := watchHeap()
		begin := time.Now()
		err := f()
		*seconds = time.Since(begin).Seconds()
		*peak = top()
		return err
	}
	err := step(&out.SnapshotSeconds, &out.SnapshotMB, func() error {
		_, err := memory.Snapshot(r.ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = step(&out.RestoreSeconds, &out.RestoreMB, func() error {
		_, err := memory.RestoreLatest(r.ctx)
		return err
	})
	r.report.Snapshots = out
	return err
}

// watchHeap watches what the live heap holds until the function it gives is called,
// which gives the most it was above the beginning, in MiB. Garbage does not count: how
// much of it there may be is the process's setting.
func watchHeap() (top func() float64) {
	live := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	idle, quit := live(), make(chan struct{})
	most := idle
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, live())
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	})
	return func() float64 {
		runtime.GC() // what is held at the end counts too
		close(quit)
		watching.Wait()
		return float64(max(most, live())-idle) / (1 << 20)
	}
}
