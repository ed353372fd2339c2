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
	"log/slog"
	"time"

	"github.com/loci-memory/loci"
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
	// NoAttach is for a program that needs the store itself: a directory that
	// another process holds is loci.ErrLocked, after Wait.
	NoAttach bool
	// NoServe lets no other process attach to this one.
	NoServe bool
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
