package store

import (
	"context"
	"errors"
	"sync"

	"github.com/loci-memory/loci/internal/errs"
)

// readerPool lends out connections that only read. They are opened when first
// needed; the last one given back is the next one lent, since its cache is
// warm.
type readerPool struct {
	s     *Store
	slots chan struct{}

	mu   sync.Mutex
	free []*session
}

func newReaderPool(s *Store, n int) *readerPool {
	return &readerPool{s: s, slots: make(chan struct{}, n)}
}

func (p *readerPool) acquire(ctx context.Context) (*session, error) {
	select {
	case p.slots <- struct{}{}:
	default:
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended first")
		}
	}
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		se := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return se, nil
	}
	p.mu.Unlock()
	c, err := p.s.open(openReader)
	if err != nil {
		<-p.slots
		return nil, err
	}
	return newSession(p.s, c), nil
}

// release takes a session back, or closes it when it may be broken.
func (p *readerPool) release(se *session, broken bool) {
	if broken {
		se.close()
	} else {
		p.mu.Lock()
		p.free = append(p.free, se)
		p.mu.Unlock()
	}
	<-p.slots
}

func (p *readerPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, se := range p.free {
		err = errors.Join(err, se.close())
	}
	p.free = nil
	return err
}

// ReadTx is a snapshot of the store. It belongs to the goroutine that runs the
// function it was given to.
type ReadTx struct {
	*session
	ctx      context.Context
	revision int64
}

// Revision is the store's revision in this snapshot.
func (tx *ReadTx) Revision() int64 { return tx.revision }

// Context is the context that the snapshot was asked for with.
func (tx *ReadTx) Context() context.Context { return tx.ctx }

// ErrMoved says that the snapshot that a reader was promised is over.
var ErrMoved = errors.New("the store has moved on")

func (p *readerPool) readKept(ctx context.Context, fn func(*ReadTx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	se, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	broken := true
	defer func() { p.release(se, broken) }()
	// No commit that anybody has seen may be missing.
	tx := &ReadTx{session: se, ctx: ctx, revision: max(p.s.Counters().Revision, p.s.seen.Load())}
	begun, failed := false, false
	se.begin = func() error {
		if err := se.run(sqlBeginRead); err != nil {
			failed = true
			return err
		}
		begun = true
		se.c.interruptOn(ctx)
		revision, err := se.storedRevision()
		if err == nil && revision != tx.revision {
			err = ErrMoved
		}
		return err
	}
	func() {
		defer recovered(&err)
		err = fn(tx)
	}()
	se.begin = nil
	if !begun {
		broken = failed
		return err
	}
	return p.end(ctx, se, err, &broken)
}

func (p *readerPool) read(ctx context.Context, fn func(*ReadTx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	se, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	broken := true
	defer func() { p.release(se, broken) }()
	if err := se.run(sqlBeginRead); err != nil {
		return err
	}
	se.c.interruptOn(ctx)
	func() {
		defer recovered(&err)
		tx := &ReadTx{session: se, ctx: ctx}
		if tx.revision, err = se.storedRevision(); err == nil {
			p.s.saw(tx.revision)
			err = fn(tx)
		}
	}()
	return p.end(ctx, se, err, &broken)
}

// saw notes a revision that a reader has seen.
func (s *Store) saw(revision int64) {
	for {
		seen := s.seen.Load()
		if seen >= revision || s.seen.CompareAndSwap(seen, revision) {
			return
		}
	}
}

// end closes a reader's transaction. err is what came of it so far; broken says
// afterwards whether the connection is of use any more.
func (p *readerPool) end(ctx context.Context, se *session, err error, broken *bool) error {
	se.c.interruptOn(context.Background())
	if err != nil {
		se.resetAll()
	}
	end := se.run(sqlCommit)
	*broken = end != nil
	if err == nil {
		err = end
	}
	if err != nil && ctx.Err() != nil && errs.CodeOf(err) == errs.Canceled {
		return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended first")
	}
	return err
}
