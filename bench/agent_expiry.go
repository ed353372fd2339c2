package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// expiry measures a great many facts, one in ten of which expires at once: how soon
// the store opens, and what readers notice of the sweep.
func (r *agentRun) expiry() (err error) {
	dir, err := os.MkdirTemp(r.Dir, "loci-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var ahead atomic.Int64 // of the system's clock
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	open := func() (*loci.DB, *agent.AgentMemory, error) {
		db, err := loci.Open(r.ctx, dir, &loci.Options{Clock: clock, NoBackgroundSweep: true}) // what it swept would not be counted
		if err != nil {
			return nil, nil, err
		}
		memory, err := agent.Open(r.ctx, db, agent.Config{Dimension: vectorDimension})
		return db, memory, err
	}
	db, memory, err := open()
	if err != nil {
		return err
	}
	const month = 30 * 24 * time.Hour
	// Every fact expires some day, those of the sweep in a month.
	_, err = r.load(memory, 0, r.Many, func(i int) *uint64 {
		days := uint64(60 + i%1000)
		if i%expiringPart == 0 {
			return new(uint64(month.Seconds()))
		}
		return new(days * 86400)
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	r.say("opening")
	begin := time.Now()
	if db, memory, err = open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out := &ExpiryReport{Facts: r.Many, Expired: (r.Many + expiringPart - 1) / expiringPart, OpenSeconds: time.Since(begin).Seconds()}
	r.report.Expiry = out
	facts := memory.Semantic()
	reads := []struct {
		name string
		do   func(i int) error
	}{
		{"get", func(i int) error {
			_, err := facts.Get(r.ctx, agent.GetRequest{ID: loci.PointID(1 + newRandom(r.Seed, uint64(i)).below(r.Many-1))})
			return err
		}},
		{"filter of 0.1 %", func(i int) error {
			_, err := facts.QueryFiltered(r.ctx, r.question(i), 10, fmt.Appendf(nil, `{"thousand":%d}`, i%1000), 0)
			return err
		}},
		{"query, approximate", func(i int) error {
			_, err := facts.QueryHits(r.ctx, agent.QueryRequest{Embedding: r.question(i), Approximate: true})
			return err
		}},
		{"query, exact", func(i int) error {
			_, err := facts.Query(r.ctx, r.question(i), 10)
			return err
		}},
	}
	idle := make([]Latency, len(reads))
	for k, read := range reads {
		r.say("reading while nothing else goes on: %s", read.name)
		var samples []time.Duration
		for i := range 2 * r.idle {
			begin := time.Now()
			if err := read.do(i); err != nil {
				return err
			}
			if i >= r.idle { // the first half warms
				samples = append(samples, time.Since(begin))
			}
		}
		idle[k] = newLatency(samples)
	}
	r.say("sweeping %d expired facts", out.Expired)
	ahead.Store(int64(month + time.Hour))
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	busy := make([][]time.Duration, len(reads))
	var readers sync.WaitGroup
	var failed error
	readers.Go(func() {
		for i := 0; ctx.Err() == nil && failed == nil; i++ {
			for k, read := range reads {
				begin := time.Now()
				if failed = read.do(i); failed != nil {
					return
				}
				took := time.Since(begin)
				busy[k] = append(busy[k], took)
				time.Sleep(took) // a client does something with its answer, too
			}
		}
	})
	var m meter
	err = m.measure(func() error {
		done, err := memory.AutoExpire(r.ctx)
		if done != nil {
			out.Swept = done.Swept
		}
		return err
	})
	cancel()
	readers.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	out.SweepSeconds, out.SweepCPU = m.wall.Seconds(), m.cpu.Seconds()
	for k, read := range reads {
		out.Reads = append(out.Reads, ExpiryReadReport{Read: read.name, Idle: idle[k], Sweeping: newLatency(busy[k])})
	}
	return nil
}
