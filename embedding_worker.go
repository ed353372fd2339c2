package loci

import (
	"context"
	"errors"
	"maps"
	"slices"
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
	// sliceTime is how long the background is at a space while there is other work.
	sliceTime  = 2 * time.Second
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

// embedMissing brings a space up, in the background, in the namespaces that it has
// to look at. What it cannot finish it has to look at again.
func (e *engine) embedMissing(b *boundEmbedder) {
	each, namespaces := b.takeDue()
	if !each && len(namespaces) == 0 {
		return
	}
	plan := &syncPlan{batch: defaultSyncBatch, background: true}
	if !each {
		plan.among = namespaces
	}
	report, err := e.syncSpace(e.ending, b, plan)
	if err == nil && report.Interrupted == "" && !plan.unsettled {
		b.failures, b.retryAt = 0, time.Time{}
		return
	}
	b.makeDue(each, namespaces)
	switch {
	case errors.Is(err, errTurn), errors.Is(err, errs.Index) && e.usableIndex() == nil:
		// A usable index wakes the background, and so does the end of that turn.
		return
	case errors.Is(err, errSlice):
		e.wakeEmbedding() // it comes again after the other work
		return
	case err == nil && report.Interrupted == "", errors.Is(err, errs.Index):
		// So many wrote meanwhile: nothing has failed.
		b.failures = 1
	default:
		b.failures++
	}
	b.retryAt = time.Now().Add(min(firstBackoff<<min(b.failures-1, 20), lastBackoff))
	if rest := time.Unix(0, b.rest.Load()); rest.After(b.retryAt) {
		b.retryAt = rest
	}
}

// otherWork says whether the background has to look at anything besides what it is
// at. It is for the background's goroutine.
func (e *engine) otherWork() bool {
	for _, space := range e.embedders.names() {
		b := e.embedderOf(space)
		if b == nil || time.Now().Before(b.retryAt) {
			continue
		}
		b.mu.Lock()
		some := b.dueEach || len(b.due) > 0
		b.mu.Unlock()
		if some {
			return true
		}
	}
	return false
}

// takeDue gives the namespaces that the background has to look at, and whether it
// is all of them, and says that it does.
func (b *boundEmbedder) takeDue() (each bool, namespaces []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	each, namespaces = b.dueEach, slices.Sorted(maps.Keys(b.due))
	b.dueEach, b.due = false, map[int64]struct{}{}
	return each, namespaces
}

// makeDue has the background look at namespaces, or at all of them.
func (b *boundEmbedder) makeDue(each bool, namespaces []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dueEach = b.dueEach || each
	for _, n := range namespaces {
		b.due[n] = struct{}{}
	}
}

// lookEverywhere wakes the background after a change that it cannot be told the
// namespaces of.
func (e *engine) lookEverywhere() {
	e.embedders.mu.RLock()
	for _, b := range e.embedders.bound {
		b.makeDue(true, nil)
	}
	e.embedders.mu.RUnlock()
	e.wakeEmbedding()
}

// letSearchesGo waits while searches run, for a moment.
func (e *engine) letSearchesGo(ctx context.Context) {
	for waited := time.Duration(0); e.searching.Load() > 0 && waited < searchWait; waited += searchLook {
		if !sleep(ctx, searchLook) {
			return
		}
	}
}
