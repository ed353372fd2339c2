package lociworker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

// mixed has readers ask, each from another question on, while a writer writes.
func (w *worker) mixed(ctx context.Context, a protocol.Mixed) (any, error) {
	if a.Readers > 0 && len(a.Read.Queries) == 0 {
		return nil, errors.New("the readers have nothing to ask")
	}
	questions, err := w.questions(a.Read)
	if err != nil {
		return nil, err
	}
	// What is written is read beforehand, as much as could be needed.
	var writes []batch
	if err := w.batches(a.Write, 1, func(b batch) error {
		writes = append(writes, b)
		return nil
	}); err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	read := make([][]float64, a.Readers)
	var written []float64
	failed := make([]error, a.Readers+1)
	cpu, err := processorTime()
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(time.Duration(a.Seconds * float64(time.Second)))
	for n := range a.Readers {
		all.Go(func() {
			for i := n; failed[n] == nil && time.Now().Before(end); i++ {
				begin := time.Now()
				if _, failed[n] = w.store.ask(ctx, questions[i%len(questions)]); failed[n] == nil {
					read[n] = append(read[n], time.Since(begin).Seconds())
				}
			}
		})
	}
	all.Go(func() {
		for _, b := range writes {
			if !time.Now().Before(end) {
				return
			}
			begin := time.Now()
			own, err := w.store.insert(ctx, b)
			if err == nil {
				written = append(written, time.Since(begin).Seconds())
				err = w.store.name(b.records, own)
			}
			if err != nil {
				failed[a.Readers] = fmt.Errorf("write of record %d: %w", b.records[0].ID, err)
				return
			}
		}
	})
	all.Wait()
	after, err := processorTime()
	if err := errors.Join(append(failed, err)...); err != nil {
		return nil, err
	}
	cost := protocol.Cost{Wall: a.Seconds, CPU: (after - cpu).Seconds()}
	out := protocol.MixedCost{Reads: cost, Writes: cost}
	for _, times := range read {
		out.Reads.Times = append(out.Reads.Times, times...)
	}
	out.Writes.Times = written
	return out, nil
}
