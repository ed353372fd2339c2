package loci

import (
	"context"
	"sync"

	"github.com/loci-memory/loci/internal/errs"
)

// workTurn is something that one call at a time does. The zero value is free.
type workTurn struct {
	once sync.Once
	held chan struct{}
}

// take waits for the turn; done gives it on.
func (t *workTurn) take(ctx context.Context) (done func(), err error) {
	t.once.Do(func() { t.held = make(chan struct{}, 1) })
	select {
	case t.held <- struct{}{}:
		return func() { <-t.held }, nil
	case <-ctx.Done():
		return nil, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while another erasure or vacuum ran")
	}
}

// copyGate counts the calls that hold copies of records outside the truth, such as
// a file that is being written, so that who erases can wait for them and keep new
// ones away. The zero value is open.
type copyGate struct {
	mu     sync.Mutex
	inside int
	closed bool
	moved  chan struct{} // closed and replaced when inside or closed changes
}

// wait runs fn with the gate's state until it gives true.
func (g *copyGate) wait(ctx context.Context, fn func() bool) error {
	for {
		g.mu.Lock()
		ok := fn()
		if g.moved == nil {
			g.moved = make(chan struct{})
		}
		moved := g.moved
		g.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while waiting for another call that copies or erases")
		}
	}
}

// tell wakes whoever waits. mu is held.
func (g *copyGate) tell() {
	if g.moved != nil {
		close(g.moved)
		g.moved = nil
	}
}

// enter counts a call in; it waits while somebody erases. leave must be called.
func (g *copyGate) enter(ctx context.Context) (leave func(), err error) {
	err = g.wait(ctx, func() bool {
		if g.closed {
			return false
		}
		g.inside++
		return true
	})
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inside--
		g.tell()
	}, err
}

// all keeps new calls away and waits for those that are inside. Only one at a time
// may hold it, which the caller sees to; open must be called.
func (g *copyGate) all(ctx context.Context) (open func(), err error) {
	open = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = false
		g.tell()
	}
	if err = g.wait(ctx, func() bool { g.closed = true; return g.inside == 0 }); err != nil {
		open()
		return nil, err
	}
	return open, nil
}
