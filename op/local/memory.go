package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/op"
)

const (
	// takeoverWait is how long a memory that was attached looks for the next
	// holder at least: the last one may have calls to finish and an index to
	// write out.
	takeoverWait = 20 * time.Second
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
	// maxMoves is how often a call is handed on before it is given up.
	maxMoves = 100
)

// Memory is a data directory in use by this process, which holds it or is
// attached to the process that does. It is an op.Caller and safe for use by
// several goroutines.
type Memory struct {
	dir      string
	o        Options
	dialOnly bool
	base     context.Context // ends with Close
	cancel   context.CancelFunc
	work     sync.WaitGroup // searches for a place, and watchers of connections

	mu     sync.Mutex
	place  *place
	search *search // under way; nil for none
	closed bool
	once   sync.Once
	err    error
}

// place is where operations run: here, or at the holder.
type place struct {
	client *client // nil here

	db      *loci.DB
	caller  op.Caller
	server  *Server // nil when nobody else is served
	release func() error
}

// search looks for a place.
type search struct {
	done  chan struct{}
	place *place
	err   error
}

// Open opens the data directory dir, or attaches to the process that holds it.
// opts may be nil. The error is loci.ErrLocked when the directory is held by a
// process that does not serve it, or one of another version.
func Open(ctx context.Context, dir string, opts *Options) (*Memory, error) {
	return open(ctx, dir, opts, false)
}

// Dial attaches to the process that serves the data directory dir and never opens
// it, nor does it take over. The error is loci.ErrNotFound when nobody serves it.
// opts may be nil.
func Dial(ctx context.Context, dir string, opts *Options) (*Memory, error) {
	return open(ctx, dir, opts, true)
}

func open(ctx context.Context, dir string, opts *Options, dialOnly bool) (*Memory, error) {
	if dir == "" {
		return nil, errs.WithOp("open", errs.Invalid("directory", "must not be empty"))
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, errs.WithOp("open", errs.Wrap(errs.IO, err, "the folder's path could not be resolved"))
	}
	m := &Memory{dir: abs, o: opts.orDefault(), dialOnly: dialOnly}
	m.base, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, m.cancel)
	p, err := m.find(m.o.Wait)
	if err == nil {
		m.mu.Lock()
		m.take(p)
		m.mu.Unlock()
	}
	if !stop() && err == nil {
		err = errs.Wrap(errs.Canceled, ctx.Err(), "stopped while the memory was opened")
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Call runs an operation, here or in the process that holds the store. When that
// process ends meanwhile, the call is repeated where it was surely not begun or is
// idempotent; otherwise the error, loci.ErrCanceled, says that it may or may not
// have been done. It implements op.Caller.
func (m *Memory) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	o, ok := op.Default().Lookup(name)
	if !ok {
		return nil, op.Default().Unknown(name)
	}
	repeats := 0
	for range maxMoves {
		p, err := m.settle(ctx, m.patience())
		if err != nil {
			return nil, errs.WithOp(name, err)
		}
		if p.client == nil {
			return p.caller.Call(ctx, name, raw)
		}
		out, fate, err := p.client.call(ctx, name, raw)
		switch fate {
		case answered:
			return out, err
		case unknown:
			// A call that brings down whoever runs it must not go round.
			if repeats++; repeats > 1 || !o.Idempotent && !o.ReadOnly {
				return nil, unsure(name)
			}
		}
		m.leave(p)
	}
	return nil, errs.WithOp(name, errs.New(errs.Locked, "the memory changed hands %d times before this could be done: try again", maxMoves))
}

// patience is how long to look for the next holder.
func (m *Memory) patience() time.Duration {
	if m.dialOnly {
		return m.o.Wait
	}
	return max(m.o.Wait, takeoverWait)
}

// Holds says whether this process holds the store now. Of an attached memory that
// changes when it takes over.
func (m *Memory) Holds() bool { return m.DB() != nil }

// DB is the store itself while this process holds it, nil while it is attached.
// It belongs to the memory: do not close it.
func (m *Memory) DB() *loci.DB {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.place == nil {
		return nil
	}
	return m.place.db
}

// Directory is the absolute path of the data directory.
func (m *Memory) Directory() string {
	if db := m.DB(); db != nil {
		return db.Directory()
	}
	return m.dir
}

// Close lets go of the memory. A holder first answers the calls of attached
// processes that run, see Server.Close, and closes the store. Closing twice is
// fine.
func (m *Memory) Close() error {
	m.once.Do(func() { m.err = m.close() })
	return m.err
}

func (m *Memory) close() error {
	m.mu.Lock()
	m.closed = true
	p := m.place
	m.mu.Unlock()
	var err error
	served := p != nil && p.server != nil
	if served {
		err = p.server.Close() // while what it needs is still there
	}
	m.cancel()
	m.work.Wait() // from here on nothing sets a place
	m.mu.Lock()
	p, m.place = m.place, nil
	m.mu.Unlock()
	if p == nil || p.client != nil {
		return err
	}
	if p.server != nil && !served {
		err = p.server.Close()
	}
	return errors.Join(err, p.release(), p.db.Close())
}

// settle gives the place where operations run, and looks for one if there is
// none; of those who need it at the same time one does that for all.
func (m *Memory) settle(ctx context.Context, wait time.Duration) (*place, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, errs.New(errs.Closed, "the memory is closed")
	}
	if m.place != nil {
		defer m.mu.Unlock()
		return m.place, nil
	}
	s := m.look(wait)
	m.mu.Unlock()
	select {
	case <-s.done:
		return s.place, s.err
	case <-ctx.Done():
		return nil, errs.Wrap(errs.Canceled, ctx.Err(), "stopped while the memory changed hands")
	}
}

// look begins to look for a place, unless somebody does. The caller has mu.
func (m *Memory) look(wait time.Duration) *search {
	if m.search != nil {
		return m.search
	}
	s := &search{done: make(chan struct{})}
	m.search = s
	m.work.Go(func() {
		p, err := m.find(wait)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.search = nil
		s.place, s.err = p, err
		if err == nil {
			m.take(p)
		}
		close(s.done)
	})
	return s
}

// take goes to a place. The caller has mu.
func (m *Memory) take(p *place) {
	m.place = p
	if p.client != nil {
		m.work.Go(func() { m.watch(p) })
	}
}

// watch looks for the next place as soon as the holder goes, so that somebody
// holds the memory and the background's work goes on.
func (m *Memory) watch(p *place) {
	select {
	case <-p.client.gone:
		m.leave(p)
		if !m.dialOnly {
			m.mu.Lock()
			if !m.closed && m.place == nil {
				m.look(m.patience())
			}
			m.mu.Unlock()
		}
	case <-m.base.Done():
	}
	select {
	case <-p.client.ended: // calls that ran when it went have their answers
	case <-m.base.Done():
	}
	if err := p.client.close(); err != nil {
		m.o.Log.Warn("the connection to the holder was not closed well", "error", err)
	}
}

// leave gives up a place that has gone.
func (m *Memory) leave(p *place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.place == p {
		m.place = nil
	}
}

// find takes the lock or attaches to whoever has it, for as long as wait.
func (m *Memory) find(wait time.Duration) (*place, error) {
	deadline := time.Now().Add(wait)
	pause := firstPause
	for {
		p, err := m.try()
		if err == nil || !errors.Is(err, errAgain) || time.Now().Add(pause).After(deadline) {
			return p, blunt(err)
		}
		select {
		case <-m.base.Done():
			return nil, errs.Wrap(errs.Canceled, m.base.Err(), "stopped while another process held the data directory")
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// errAgain marks an error that may pass.
var errAgain = errors.New("try again")

type passing struct{ error }

// Is marks the error as one that may pass.
func (passing) Is(target error) bool { return target == errAgain }

// Unwrap gives the error itself.
func (p passing) Unwrap() error { return p.error }

func blunt(err error) error {
	if p, ok := errors.AsType[passing](err); ok {
		return p.error
	}
	return err
}

// try takes the lock, or attaches to whoever has it.
func (m *Memory) try() (*place, error) {
	var locked error
	if !m.dialOnly {
		db, err := m.o.OpenStore(m.base, m.dir, m.o.Store)
		if err == nil {
			return m.hold(db)
		}
		if !errors.Is(err, loci.ErrLocked) {
			return nil, err
		}
		if locked = err; m.o.NoAttach {
			return nil, passing{locked}
		}
	}
	dir := m.dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	info, ok := store.Holder(dir)
	if !ok || info.Endpoint == nil {
		if m.dialOnly {
			return nil, passing{errs.New(errs.NotFound, "nobody serves %s", dir)}
		}
		return nil, passing{locked} // it is opening, closing, or serves nobody
	}
	c, err := reach(m.base, dir, info)
	if err != nil && m.dialOnly {
		// What the lock file says may be left over from a process that has ended.
		err = unserved(err)
	}
	if err != nil {
		return nil, err
	}
	return &place{client: c}, nil
}

func inUse(dir string, pid int) string {
	return fmt.Sprintf("%s is in use by process %d, which cannot be reached: end it or choose another folder", dir, pid)
}

// unserved makes of a holder that cannot be reached one that is not there. One
// whose version is another, or that has no room, is there.
func unserved(err error) error {
	if _, ok := errors.AsType[passing](err); !ok {
		return err
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Err == nil {
		return err
	}
	return passing{&errs.Error{Code: errs.NotFound, Err: e.Err, Message: "nobody serves this data directory"}}
}

// hold makes this process the one that serves the store.
func (m *Memory) hold(db *loci.DB) (*place, error) {
	caller, release, err := m.o.Hold(m.base, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p := &place{db: db, caller: caller, release: release}
	if m.o.NoServe {
		return p, nil
	}
	if p.server, err = serve(db, caller, m.o); err != nil {
		// The memory works for this process, and the lock file tells the others.
		m.o.Log.Warn("other processes cannot attach to this memory", "error", err)
	}
	return p, nil
}
