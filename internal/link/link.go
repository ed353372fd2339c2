// Package link is how packages of this module that keep records of their own
// reach an open store: below its public interface and above the truth.
package link

import (
	"context"
	"time"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// Store is an open store.
type Store interface {
	// Enter counts a call in, so that closing waits for it; after close it is
	// errs.Closed. leave must be called once the call is over.
	Enter(op string) (leave func(), err error)
	// Now is the store's clock.
	Now() time.Time
	// Read runs fn with a snapshot of the truth.
	Read(ctx context.Context, fn func(*store.ReadTx) error) error
	// Write runs fn as one operation of the writer, see store.Store.Write.
	Write(ctx context.Context, fn func(*store.WriteTx) error) (revision int64, err error)
	// PreparePage analyses a page for the index, before the transaction that
	// writes it.
	PreparePage(p *store.Page) *index.Prepared
	// StagePage hands a page that was written in tx to the index.
	StagePage(tx *store.WriteTx, p *store.Page, prepared *index.Prepared) error
	// Similar gives pages of p's scope by the cosine of their vectors with p's,
	// best first, at most limit, p itself left out. ok is false when p has no
	// vector to compare.
	Similar(ctx context.Context, p *store.Page, limit int) (found []Scored, ok bool, err error)
	// CopyOf gives the text of a record as a page shows it, or nil when there is no
	// record of that kind and id in the namespace. The scope is the record's.
	CopyOf(ctx context.Context, namespace string, kind store.Kind, id int64) (*Copy, error)
	// Extension gives what was made for a key, making it at the first call. It
	// lives as long as the store.
	Extension(key string, make func() Extension) Extension
}

// Extension is what a package keeps for the life of an open store.
type Extension interface {
	// Changed is called after commits that changed its records from outside. It
	// runs on the writer's goroutine and must neither wait nor write.
	Changed()
	// Close is called once no call is running any more, while writing still works.
	Close() error
}

// Scored is a record with a score.
type Scored struct {
	ID    int64
	Score float64
}

// Copy is a record as a page shows it.
type Copy struct {
	Kind     store.Kind
	ID       int64
	Scope    string
	Revision int64
	Title    string
	Content  string
	Tags     []string
	Source   string // where it came from, for people: of a chunk "path:first-last", its lines
	Created  int64  // UTC microseconds
	Updated  int64
}
