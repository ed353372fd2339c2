// Package link is how packages of this module that keep records of their own
// reach an open store: below its public interface and above the truth.
package link

import (
	"context"
	"time"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
)

// Store is an open store.
type Store interface {
	// Enter counts a call in, so that closing waits for it; after close it is
	// errs.Closed. leave must be called once the call is over.
	Enter(op string) (leave func(), err error)
	// MayRead refuses with errs.Forbidden what the access on ctx does not allow to be
	// read; MayWrite is that for writing. field goes before the names of the fields at
	// fault, namespace and scope.
	MayRead(ctx context.Context, field, namespace, scope string) error
	MayWrite(ctx context.Context, field, namespace, scope string) error
	// MayReadAll and MayWriteAll are that for what belongs to a namespace as a whole.
	MayReadAll(ctx context.Context, namespace string) error
	MayWriteAll(ctx context.Context, namespace string) error
	// UntilClosing is ctx, ended when the store begins to close: what takes long does
	// not keep it from that. stop must be called in the end.
	UntilClosing(ctx context.Context) (work context.Context, stop context.CancelFunc)
	// Now is the store's clock.
	Now() time.Time
	// Read runs fn with a snapshot of the truth.
	Read(ctx context.Context, fn func(*store.ReadTx) error) error
	// Write runs fn as one operation of the writer, see store.Store.Write.
	Write(ctx context.Context, fn func(*store.WriteTx) error) (revision int64, err error)
	// WriteMany is Write for an operation that deletes very many records, see
	// store.Store.WriteMany.
	WriteMany(ctx context.Context, fn func(*store.WriteTx) error) (revision int64, err error)
	// Pair runs fn with a snapshot of the truth and the index's view of the same
	// revision; the view is nil while no index is usable. What is kept in memory is
	// used first, and fn may be called again after it has begun, see store.ReadKept.
	Pair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error
	// IndexFailed takes the index out of use after a view of it failed, which means
	// damaged files, and has it rebuilt.
	IndexFailed()
	// Directory is the data directory.
	Directory() string
	// Announce puts into the lock file where this process serves others; nil takes
	// it out again.
	Announce(e *store.Endpoint) error
	// Redactor takes secrets out of the texts of a write; nil, which leaves them in,
	// where neither the store nor the context asks for it.
	Redactor(ctx context.Context) *secretscan.Redactor
	// Clock is the time that expiry is judged by, in UTC microseconds. It never goes
	// back.
	Clock() int64
	// Point is a stored point as callers get it: a *loci.Fact, a *loci.Episode or a
	// *loci.Procedure.
	Point(p *store.Point) any
	// PreparePoint analyses a point for the index, before the transaction that writes
	// it. attributes are those of its metadata.
	PreparePoint(p *store.Point, attributes []index.Attribute) *index.Prepared
	// StagePoint hands a point that was written in tx to the index. Vectors that were
	// made of another text go; the caller's stay.
	StagePoint(tx *store.WriteTx, p *store.Point, prepared *index.Prepared) error
	// EmbedPoints has the texts of points turned into vectors of unit length by the
	// model of a space. fingerprints are those of the texts; a vector is nil where there
	// is nothing to embed. It is errs.Validation when the space has no model.
	EmbedPoints(ctx context.Context, space string, points []*index.Prepared) (vectors [][]float32, fingerprints []uint64, err error)
	// HasEmbedder says whether a model is bound to a space.
	HasEmbedder(space string) bool
	// MakesVectors says whether points of a namespace get vectors in a space: a model
	// is bound to it, and the namespace's switches let it.
	MakesVectors(tx SwitchReader, space, namespace string) (bool, error)
	// SearchSpace is the space that searches of a namespace use; nil for none.
	SearchSpace(ctx context.Context, namespace string) (*store.Space, error)
	// SearchPoints gives the current points that answer a text best, best first, at
	// most as many as the query's window, and why it had to do with less. Fewer than
	// the window are all there are.
	SearchPoints(ctx context.Context, q PointQuery) (found []FoundPoint, degraded []string, err error)
	// Sweep removes what is expired, and what lies in places that are given up, now
	// and not in its own time, whoever asks. It gives the number of expired points.
	Sweep(ctx context.Context) (int64, error)
	// SweepSoon has the background do that.
	SweepSoon()
	// Backlog is the number of records that the index holds in memory alone.
	Backlog() int64
	// FlushIndex has the index write those to its files, now and not in its own time.
	FlushIndex() error
	// Copying counts in a call that holds copies of records outside the truth and writes
	// them, such as a snapshot or what is restored from one, so that an erasure misses
	// none of them. It waits while one runs; leave must be called.
	Copying(ctx context.Context) (leave func(), err error)
	// Staging says that a place is being filled, so that nobody empties it, or that
	// it no longer is.
	Staging(place int64, on bool)
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
	// record of that kind and id in the namespace that the access on ctx allows to be
	// read. The scope is the record's.
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

// SwitchReader is what a namespace's switches of vectors are read from: a snapshot,
// or the writer's transaction.
type SwitchReader interface {
	StringID(text string) (int64, bool, error)
	VectorSwitches(namespace int64) (store.VectorSwitches, error)
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

// PointQuery asks for points of one kind by words and, where an embedder turns the
// text into one, by vectors.
type PointQuery struct {
	Namespace, Scope string
	Kind             store.Kind
	Text             string
	Space            string // that of the vectors; "" leaves it to the namespace
	Where            []index.Condition
	Tags             []string
	Thread           string // "" for any
	ValidAt          *int64 // when what they say must hold; nil: now
	// Window is how many candidates each way of searching gives, 1 and up. Scores
	// depend on it.
	Window   int
	NoRerank bool
}

// FoundPoint is a point with the score of a search.
type FoundPoint struct {
	Point *store.Point
	Score float64
}
