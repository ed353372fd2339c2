// Package local lets several processes of one machine use one data directory.
// The process that holds the directory's lock serves the operation table on a
// local socket; the others attach to it and see no difference. When the holder
// goes, one of the attached takes its place.
//
// A program opens a memory with Open and does not care which of the two it got.
// A program that works with a *loci.DB of its own lets others attach with one
// line:
//
//	server, err := local.Serve(db, nil)
package local

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

// Options tune Open, Serve and Dial. The zero value works.
type Options struct {
	// Store are the options that the store is opened with by the process that
	// comes to hold it; nil is the zero value.
	Store *loci.Options
	// OpenStore opens the store; nil is loci.Open.
	OpenStore func(ctx context.Context, dir string, opts *loci.Options) (*loci.DB, error)
	// Wait is how long to try while the directory is held by a process that does
	// not serve it, or not yet; 0 is one try. The error is then loci.ErrLocked.
	Wait time.Duration
	// NoAttach keeps to the store itself: a directory that another process holds
	// is loci.ErrLocked, after Wait.
	NoAttach bool
	// Hold is called when this process has come to hold the store, at Open or
	// when it takes over. It may bind models. The caller that it gives runs all
	// operations, also those of attached processes (see Attached); release is
	// called before the store is closed. ctx ends when the memory is closed. nil
	// runs the operations as op.Local does.
	Hold func(ctx context.Context, db *loci.DB) (caller op.Caller, release func() error, err error)
	// RuntimeDir is a folder that belongs to this user alone, for the socket when
	// it cannot lie in the data directory: $XDG_RUNTIME_DIR where there is one.
	// Empty is a folder of our own in the system's temporary one.
	RuntimeDir string
	// Log is told what goes wrong with nobody to tell; nil is silent. It never
	// holds text of records.
	Log *slog.Logger
}

func (o *Options) orDefault() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.OpenStore == nil {
		c.OpenStore = loci.Open
	}
	if c.Hold == nil {
		c.Hold = func(_ context.Context, db *loci.DB) (op.Caller, func() error, error) {
			return op.Local(db), func() error { return nil }, nil
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

type attachedKey struct{}

// Attached says whether a call came from an attached process. It is of use to
// the caller that Options.Hold gives.
func Attached(ctx context.Context) bool {
	on, _ := ctx.Value(attachedKey{}).(bool)
	return on
}

// Memory is a data directory in use by this process, which holds it or is
// attached to the process that does. It is an op.Caller and safe for use by
// several goroutines.
type Memory struct {
	db      *loci.DB
	caller  op.Caller
	release func() error
	once    sync.Once
	err     error
}

// Open opens the data directory dir, or attaches to the process that holds it.
// opts may be nil. The error is loci.ErrLocked when the directory is held by a
// process that does not serve, or whose version is another.
func Open(ctx context.Context, dir string, opts *Options) (*Memory, error) {
	o := opts.orDefault()
	deadline := time.Now().Add(o.Wait)
	pause := 10 * time.Millisecond
	for {
		db, err := o.OpenStore(ctx, dir, o.Store)
		if err == nil {
			caller, release, err := o.Hold(context.WithoutCancel(ctx), db)
			if err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return &Memory{db: db, caller: caller, release: release}, nil
		}
		if !errors.Is(err, loci.ErrLocked) || time.Now().Add(pause).After(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errs.Wrap(errs.Canceled, ctx.Err(), "stopped while another process held the data directory")
		case <-time.After(pause):
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// Call runs an operation, here or in the process that holds the store. It
// implements op.Caller.
func (m *Memory) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	return m.caller.Call(ctx, name, raw)
}

// Holds says whether this process holds the store now. Of an attached memory
// that changes when it takes over.
func (m *Memory) Holds() bool { return m.db != nil }

// DB is the store itself while this process holds it, nil while it is attached.
// It belongs to the memory: do not close it.
func (m *Memory) DB() *loci.DB { return m.db }

// Close lets go of the memory. A holder first answers the calls of attached
// processes that are running. Closing twice is fine.
func (m *Memory) Close() error {
	m.once.Do(func() { m.err = errors.Join(m.release(), m.db.Close()) })
	return m.err
}

// Dial attaches to the process that holds the data directory dir, and never
// opens it. The error is loci.ErrNotFound when nobody serves it. opts may be nil.
func Dial(ctx context.Context, dir string, opts *Options) (*Memory, error) {
	return nil, errs.New(errs.NotFound, "nobody serves %s", dir)
}

// Server serves an open store to other processes of this user.
type Server struct{}

// Serve lets other processes attach to db, which this process holds, until the
// server is closed; close it before db. opts may be nil.
func Serve(db *loci.DB, opts *Options) (*Server, error) { return &Server{}, nil }

// Close ends serving: it takes no more calls and waits for those that run.
func (s *Server) Close() error { return nil }
