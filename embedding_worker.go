package loci

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

const (
	// settleWait is how long the background waits for more of what woke it.
	settleWait = 20 * time.Millisecond
	// After a sync that failed the background waits, each time twice as long.
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
	// Between two calls of the model the background lets searches go first, but
	// waits no longer than searchWait for them.
	searchWait = 100 * time.Millisecond
	searchLook = 5 * time.Millisecond
)

// embedWorker embeds in the background what has no vector yet. It sleeps until
// it is woken: by a new embedder, a switch, a commit, an index that becomes
// usable.
type embedWorker struct {
	once sync.Once
	wake chan struct{}
	off  bool
}

// startEmbedding starts the background, or wakes it.
func (e *engine) startEmbedding() {
	w := &e.embedders.worker
	if !w.off {
		w.once.Do(func() { e.goTask(e.embedLoop) })
	}
	e.wakeEmbedding()
}

// wakeEmbedding wakes the background, should it run. It never waits.
func (e *engine) wakeEmbedding() {
	select {
	case e.embedders.worker.wake <- struct{}{}:
	default:
	}
}

// untilClosing is ctx, ended when the engine begins to close.
func (e *engine) untilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ending, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (e *engine) embedLoop() {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-e.ending.Done():
			return
		case <-e.embedders.worker.wake:
			if !sleep(e.ending, settleWait) {
				return
			}
		case <-retry.C:
		}
		retry.Stop()
		next := time.Duration(-1)
		for _, space := range e.embedders.names() {
			b := e.embedderOf(space)
			if b == nil {
				continue
			}
			if wait := time.Until(b.retryAt); wait <= 0 {
				e.embedMissing(b)
			}
			if wait := time.Until(b.retryAt); wait > 0 && (next < 0 || wait < next) {
				next = wait
			}
		}
		if next >= 0 {
			retry.Reset(next)
		}
	}
}

// embedMissing brings a space up, in the background.
func (e *engine) embedMissing(b *boundEmbedder) {
	report, err := e.syncSpace(e.ending, b, &syncPlan{batch: defaultSyncBatch, background: true})
	switch {
	case errors.Is(err, errs.Index):
		// It wakes the background when it is usable.
	case err != nil || report.Interrupted != "":
		b.failures++
		b.retryAt = time.Now().Add(min(firstBackoff<<min(b.failures-1, 20), lastBackoff))
	default:
		b.failures, b.retryAt = 0, time.Time{}
		if report.Embedded+report.Skipped > 0 {
			e.wakeEmbedding() // for what was written meanwhile
		}
	}
}

// letSearchesGo waits while searches run, for a moment.
func (e *engine) letSearchesGo(ctx context.Context) {
	for waited := time.Duration(0); e.searching.Load() > 0 && waited < searchWait; waited += searchLook {
		if !sleep(ctx, searchLook) {
			return
		}
	}
}
