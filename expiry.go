package loci

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/store"
)

const (
	// sweepBatch is how many points one transaction removes: other writers wait no
	// longer than that takes.
	sweepBatch = 250
	// longestNap bounds how long the sweeper sleeps, since a clock may be set.
	longestNap = time.Minute
)

// lifeClock is the clock that expiry is judged by. It never goes back: what has
// expired stays so, whatever happens to the system's clock. While that stands
// behind, this one goes on with the time that passes.
type lifeClock struct {
	mu   sync.Mutex
	read time.Time     // the system's, when it was read last
	at   int64         // what this one showed then, in UTC microseconds
	rest time.Duration // below a microsecond
}

func (c *lifeClock) now(system func() time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := system()
	if passed := t.Sub(c.read); !c.read.IsZero() && passed > 0 {
		passed += c.rest
		c.rest = passed % time.Microsecond
		c.at += passed.Microseconds()
	}
	c.read = t
	c.at = max(c.at, t.UnixMicro())
	return c.at
}

// lifeNow is the time that expiry is judged by, in UTC microseconds.
func (e *engine) lifeNow() int64 { return e.life.now(e.clock) }

// sweeper removes what has expired, and points of places that are given up.
type sweeper struct {
	wake chan struct{}
	due  atomic.Int64 // when it means to look next, by the life clock
	turn sync.Mutex   // one sweep at a time
	// failure is what the last sweep failed of; nil: of nothing.
	failure atomic.Pointer[string]

	mu      sync.Mutex
	staging []int64 // places that are being filled
}

// stagePlace marks a place as being filled, so that it is not emptied, or takes
// that back.
func (w *sweeper) stagePlace(place int64, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on {
		w.staging = append(w.staging, place)
	} else if i := slices.Index(w.staging, place); i >= 0 {
		w.staging = slices.Delete(w.staging, i, i+1)
	}
}

func (w *sweeper) staged(place int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.staging, place)
}

// soon has the sweeper look now.
func (w *sweeper) soon() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// expires tells the sweeper when something that was just written expires.
func (w *sweeper) expires(at int64) {
	if at < w.due.Load() {
		w.soon()
	}
}

// sweepLoop sweeps in the background, woken when the next point expires.
func (e *engine) sweepLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.background.Done():
			return
		case <-e.sweeps.wake:
		case <-timer.C:
		}
		nap := longestNap
		if _, err := e.sweep(e.background); err == nil {
			nap = e.untilDue()
		}
		// After an error the points are invisible all the same, and it is tried again.
		timer.Reset(nap)
	}
}

// untilDue is how long the sweeper may sleep.
func (e *engine) untilDue() time.Duration {
	e.sweeps.due.Store(math.MaxInt64)
	at, some := int64(0), false
	err := e.read(e.background, func(tx *store.ReadTx) (err error) {
		at, some, err = tx.NextExpiry()
		return err
	})
	switch {
	case err != nil:
		return longestNap
	case !some:
		return math.MaxInt64 // until it is woken
	}
	e.sweeps.due.Store(at)
	left := at - e.lifeNow()
	if left > longestNap.Microseconds() {
		return longestNap
	}
	return max(0, time.Duration(left)*time.Microsecond)
}

// sweep removes every expired point and every point of a place that is given up,
// and gives the number of expired ones.
func (e *engine) sweep(ctx context.Context) (removed int64, err error) {
	e.sweeps.turn.Lock()
	defer e.sweeps.turn.Unlock()
	if removed, err = e.removeExpired(ctx); err == nil {
		err = e.emptyPlaces(ctx)
	}
	switch {
	case err == nil:
		e.sweeps.failure.Store(nil)
	case ctx.Err() == nil:
		e.sweeps.failure.Store(new(err.Error()))
	}
	return removed, err
}

// removeExpired removes every expired point, some of them at a time.
func (e *engine) removeExpired(ctx context.Context) (removed int64, err error) {
	for more := true; more; {
		if more, err = e.someExpired(ctx); err != nil || !more {
			return removed, err
		}
		n := 0
		_, err = e.writeMany(ctx, func(tx *store.WriteTx) error {
			points, err := tx.ExpiredPoints(e.lifeNow(), sweepBatch)
			if err != nil {
				return err
			}
			for _, p := range points {
				if err := tx.RemovePoint(p); err != nil {
					return err
				}
			}
			n = len(points)
			return nil
		})
		if err != nil {
			return removed, err
		}
		removed += int64(n)
		more = n == sweepBatch
	}
	return removed, nil
}

// someExpired says whether there is anything to remove, without the writer.
func (e *engine) someExpired(ctx context.Context) (some bool, err error) {
	err = e.read(ctx, func(tx *store.ReadTx) error {
		at, any, err := tx.NextExpiry()
		some = any && at <= e.lifeNow()
		return err
	})
	return some, err
}

// emptyPlaces removes the points of places that no memory names.
func (e *engine) emptyPlaces(ctx context.Context) error {
	var places []int64
	err := e.read(ctx, func(tx *store.ReadTx) (err error) {
		places, err = tx.EmptyPlaces()
		return err
	})
	for _, place := range places {
		if err != nil {
			return err
		}
		for more := true; more && err == nil && !e.sweeps.staged(place); {
			_, err = e.writeMany(ctx, func(tx *store.WriteTx) (err error) {
				more, _, err = tx.EmptyPlace(place, sweepBatch)
				return err
			})
		}
	}
	return err
}

// keepClock stores the life clock where there is an agent memory, which goes by it.
func (e *engine) keepClock(ctx context.Context) error {
	if e.store == nil {
		return nil
	}
	var memories []*store.AgentMemory
	err := e.read(ctx, func(tx *store.ReadTx) (err error) {
		memories, err = tx.AgentMemories()
		return err
	})
	if err != nil || len(memories) == 0 {
		return err
	}
	_, err = e.write(ctx, func(tx *store.WriteTx) error {
		tx.KeepClock()
		return nil
	})
	return err
}
