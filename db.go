// Package loci is a memory for AI agents: one engine, one data directory. It
// stores memories with a lifecycle and finds them again by text, in Chinese
// and English, offline and without set-up.
//
//	db, err := loci.Open(ctx, dir, nil)
//	...
//	receipt, err := db.Memories().Upsert(ctx, loci.MemoryInput{Judgment: "The tide table is updated weekly."})
//	result, err := db.Search(ctx, loci.SearchRequest{Query: "tide table"})
//
// A DB is safe for concurrent use. Optional scalars are pointers; write them
// as new(20) or new("work").
package loci

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index/embedded"
	"github.com/loci-memory/loci/internal/store"
)

// Options tune Open. The zero value works.
type Options struct {
	// Clock gives the current time; nil is time.Now. Tests replace it.
	Clock func() time.Time
	// WaitForIndex makes Open return only when the index is usable, even if it
	// has to be rebuilt first. By default Open returns at once, searches are
	// degraded, and the rebuild runs in the background.
	WaitForIndex bool
	// NoBackgroundEmbedding leaves records without vectors until Sync is called.
	// By default the background embeds them while an embedder is bound.
	NoBackgroundEmbedding bool
	// NoBackgroundSweep leaves expired points of agent memories in the file, where
	// nobody sees them, until AutoExpire is called, and points that a whole memory
	// was replaced by others of likewise. By default the background removes them.
	NoBackgroundSweep bool
	// Redact takes what looks like a secret out of every write, as WithRedaction
	// does for those of one context. By default texts are stored as they come.
	Redact bool
	// Progress is told how many bytes of how many Restore has copied; nil for
	// none.
	Progress func(done, total int64)

	// Tests reach below the surface with these.
	store     store.Options
	openIndex func(context.Context, *engine, *Options) error
	indexFS   func(embedded.FS) embedded.FS
}

// DB is an open data directory. All handles and stores taken from it share one
// engine: after Close every call fails with ErrClosed.
type DB struct {
	eng *engine
}

// Open opens the data directory, making it and its parents if need be, and
// takes its lock. opts may be nil.
func Open(ctx context.Context, dir string, opts *Options) (*DB, error) {
	e, err := openEngine(ctx, dir, opts)
	if err != nil {
		return nil, errs.WithOp("open", err)
	}
	return &DB{eng: e}, nil
}

// Directory is the absolute path of the data directory.
func (db *DB) Directory() string { return db.eng.dir }

// Close waits for running operations, writes the index out and releases the
// lock. Closing twice is fine.
func (db *DB) Close() error { return errs.WithOp("close", db.eng.close()) }

// Memories gives the memory store.
func (db *DB) Memories() *MemoryStore { return &MemoryStore{eng: db.eng} }

// version is the version of the module in the running program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		const path = "github.com/loci-memory/loci"
		if info.Main.Path == path {
			return info.Main.Version
		}
		for _, dep := range info.Deps {
			if dep.Path == path {
				return dep.Version
			}
		}
	}
	return "unknown"
}
