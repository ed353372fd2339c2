package loci

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/diskspace"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/index/embedded"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// engine is what every handle of an open data directory shares: the truth, the
// index that follows it, and the lock on both.
type engine struct {
	dir    string
	redact bool // every write loses its secrets
	clock  func() time.Time
	lock   *store.Lock
	store  *store.Store

	// index is nil while no usable index is there. It is replaced only inside
	// an operation of the store's writer, so between two commits.
	index atomic.Pointer[indexHandle]
	hooks indexHooks

	gate gate

	background context.Context // ends when the engine closes
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
	pruneTo    atomic.Int64
	pruneWake  chan struct{}

	rebuilds rebuilds
	sinks    eventSinks
	models   searchModels
	indexFS  func(embedded.FS) embedded.FS // tests make files fail with it
	degraded degradations

	embedders embedders
	searching atomic.Int64 // searches at work, to which the background gives way
	// ending ends before close waits for running calls, so that long ones stop.
	ending context.Context
	stop   context.CancelFunc

	equivalents equivalentsCache
	graphs      graphIndex
	extensions  extensions
	life        lifeClock
	sweeps      sweeper
	upkeep      workTurn // of erasures and vacuums
	copying     copyGate // whoever holds copies of records that an erasure must not miss
	room        func(dir string) (free uint64, known bool)

	feed      feed
	integrity atomic.Pointer[integrityResult]
	closeErr  error
}

// indexHandle is an index in use. A broken one has failed on a change and
// takes no part any more.
type indexHandle struct {
	index.Index
	broken atomic.Bool
}

// openEngine opens the truth and the index of a data directory.
func openEngine(ctx context.Context, dir string, opts *Options) (_ *engine, err error) {
	if opts == nil {
		opts = &Options{}
	}
	e := &engine{clock: opts.Clock, pruneWake: make(chan struct{}, 1)}
	if e.clock == nil {
		e.clock = time.Now
	}
	if e.dir, err = makeDirectory(dir); err != nil {
		return nil, err
	}
	if e.lock, err = store.LockDirectory(e.dir, version(), e.clock()); err != nil {
		return nil, err
	}
	e.redact = opts.Redact
	e.background, e.cancel = context.WithCancel(context.Background())
	e.ending, e.stop = context.WithCancel(e.background)
	e.embedders.worker.wake, e.embedders.worker.off = make(chan struct{}, 1), opts.NoBackgroundEmbedding
	e.hooks.e, e.room = e, diskspace.Free
	e.indexFS = opts.indexFS
	e.rebuilds.floor.Store(math.MaxInt64)
	defer func() {
		if err != nil {
			e.shut()
		}
	}()
	storeOptions := opts.store
	storeOptions.Hooks, storeOptions.Clock = &e.hooks, e.lifeNow
	if e.store, err = store.Open(ctx, e.dir, storeOptions); err != nil {
		return nil, err
	}
	e.life.at = e.store.StoredClock()
	e.goTask(e.pruneLoop)
	e.sweeps.wake = make(chan struct{}, 1)
	e.sweeps.due.Store(math.MaxInt64)
	if going := e.store.Going(); len(going) > 0 {
		e.goTask(func() { e.removeVectors(going) })
	}
	if e.store.Counters().Records() == 0 {
		// An empty store is checked at no cost, so that health has something
		// to say from the start.
		if err := e.checkIntegrity(ctx); err != nil {
			return nil, err
		}
	}
	open := opts.openIndex
	if open == nil {
		open = openIndex
	}
	if err := open(ctx, e, opts); err != nil {
		return nil, err
	}
	if !opts.NoBackgroundSweep {
		// Not before: what is written while an index is brought up to the truth is lost
		// to it.
		e.goTask(e.sweepLoop)
	}
	return e, nil
}

// makeDirectory gives the absolute path of dir, without symbolic links, and
// makes it if need be.
func makeDirectory(dir string) (string, error) {
	if dir == "" {
		return "", errs.Invalid("directory", "must not be empty")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", errs.Wrap(errs.IO, err, "the folder's path could not be resolved")
	}
	made := missingFolders(abs)
	if err := os.MkdirAll(abs, 0o700); err != nil {
		if info, statErr := os.Stat(abs); statErr == nil && !info.IsDir() {
			return "", errs.New(errs.IO, "%s is a file: name a folder", abs)
		}
		if errors.Is(err, fs.ErrPermission) {
			return "", errs.Wrap(errs.IO, err, "the folder cannot be made: change the permissions above it or choose another")
		}
		return "", errs.Wrap(errs.IO, err, "the folder cannot be made")
	}
	for _, folder := range made {
		syncFolder(filepath.Dir(folder))
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	return abs, nil
}

// missingFolders lists those of a path's folders that do not exist.
func missingFolders(path string) (missing []string) {
	for {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, path)
		path = filepath.Dir(path)
	}
}

// syncFolder makes new entries of a folder durable. Where that cannot be done
// the system does it in its own time.
func syncFolder(path string) {
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// close waits for running calls and gives everything back. It may be called
// again.
func (e *engine) close() error {
	e.stop()
	if e.gate.close() {
		e.closeErr = e.shut()
	}
	e.gate.waitClosed()
	return e.closeErr
}

// shut gives back whatever is there, also after an Open that failed half-way.
func (e *engine) shut() error {
	defer e.gate.markClosed()
	e.cancel()
	e.tasks.Wait()
	var errIndex, errStore, errExtensions error
	e.extensions.each(func(x link.Extension) { errExtensions = errors.Join(errExtensions, x.Close()) })
	e.sinks.close()
	if h := e.index.Swap(nil); h != nil && h.broken.Load() {
		abandon(h.Index)
	} else if h != nil {
		errIndex = errs.Wrap(errs.Index, h.Close(), "the index could not be written out")
	}
	if e.store != nil {
		errStore = errors.Join(e.keepClock(context.Background()), e.store.Close())
	}
	return errors.Join(errExtensions, errIndex, errStore, errs.Wrap(errs.IO, e.lock.Release(), "the lock could not be released"))
}

// goTask runs fn on a goroutine that close waits for; fn ends when
// e.background does.
func (e *engine) goTask(fn func()) {
	e.tasks.Go(fn)
}

// enter counts a call in; the caller must call e.gate.leave. After close it
// gives ErrClosed.
func (e *engine) enter(op string) error {
	if !e.gate.enter() {
		return &errs.Error{Code: errs.Closed, Op: op, Message: "the store is closed"}
	}
	return nil
}

// write runs one operation of the store's writer.
func (e *engine) write(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	return e.store.Write(ctx, restricted(ctx, fn))
}

// writeMany is write for an operation that deletes very many records.
func (e *engine) writeMany(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	return e.store.WriteMany(ctx, restricted(ctx, fn))
}

// read runs fn with a snapshot of the truth.
func (e *engine) read(ctx context.Context, fn func(*store.ReadTx) error) error {
	return e.store.Read(ctx, fn)
}

// pairAttempts bounds how often a reader starts anew because the index moved
// on between its two snapshots.
const pairAttempts = 20

// errAgain makes readPair start anew.
var errAgain = errors.New("again")

// readPair runs fn with a snapshot of the truth and the index's view of the
// same revision, before the background goes on. The view is nil when there is no
// usable index.
func (e *engine) readPair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error {
	e.searching.Add(1)
	defer e.searching.Add(-1)
	return e.pairBy(ctx, e.store.Read, fn)
}

// readKeptPair is readPair for functions that may find all they need in memory, and
// that may be called again after they have begun, see store.ReadKept.
func (e *engine) readKeptPair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error {
	e.searching.Add(1)
	defer e.searching.Add(-1)
	return e.pairBy(ctx, e.store.ReadKept, fn)
}

// pair is readPair for the background.
func (e *engine) pair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error {
	return e.pairBy(ctx, e.store.Read, fn)
}

// pairBy is readPair whose first attempt reads in the given way.
func (e *engine) pairBy(ctx context.Context, read func(context.Context, func(*store.ReadTx) error) error, fn func(*store.ReadTx, index.View) error) error {
	for range pairAttempts {
		err := read(ctx, func(tx *store.ReadTx) error {
			ix := e.usableIndex()
			if ix == nil {
				return fn(tx, nil)
			}
			view, ok := ix.View(tx.Revision())
			if !ok {
				return errAgain
			}
			defer view.Close()
			return fn(tx, view)
		})
		if !errors.Is(err, errAgain) && !errors.Is(err, store.ErrMoved) {
			return err
		}
		read = e.store.Read
		runtime.Gosched()
	}
	return errs.New(errs.Index, "the index does not keep up with the writes: retry")
}

// usableIndex gives the index that is in use, or nil.
func (e *engine) usableIndex() index.Index {
	if h := e.index.Load(); h != nil && !h.broken.Load() {
		return h.Index
	}
	return nil
}

// setIndex puts ix into use, or none when it is nil, and gives the one that
// was. It must be called before the first write or inside an operation of the
// store's writer, when ix stands at the store's current revision.
func (e *engine) setIndex(ix index.Index) index.Index {
	var h *indexHandle
	if ix != nil {
		h = &indexHandle{Index: ix}
	}
	old := e.index.Swap(h)
	if ix != nil {
		e.lookEverywhere()
	}
	if old == nil {
		return nil
	}
	return old.Index
}

// prepare analyses a document for the index in use. It is safe in any
// goroutine; without an index the document waits to be analysed.
func (e *engine) prepare(d *index.Document) (p *index.Prepared) {
	ix := e.usableIndex()
	if ix == nil {
		return &index.Prepared{Document: d}
	}
	defer func() {
		if recover() != nil {
			p = &index.Prepared{Document: d}
		}
	}()
	return ix.Prepare(d)
}

// indexHooks carry the writer's changes to the indexes.
type indexHooks struct {
	e      *engine
	staged *indexHandle
	buffer []index.Change
	// written are the records of the running commit, for the embedders, dropped
	// the spaces that it deletes.
	written []writtenRecord
	dropped []int64
	expires int64 // the earliest of the running commit; 0: none
	outside bool  // records of an extension were changed from outside
}

// writtenRecord is a record that was written or deleted.
type writtenRecord struct{ id, namespace int64 }

// guard runs a step of the index. A failure makes the index unusable and never
// reaches the write.
func (h *indexHooks) guard(handle *indexHandle, step func()) {
	if handle == nil || handle.broken.Load() {
		return
	}
	defer func() {
		if recover() != nil {
			h.staged = nil
			h.e.indexBroke(handle)
		}
	}()
	step()
}

// keptChanges is the room for changes that is kept for the next commit.
const keptChanges = 1 << 16

// Stage implements store.Hooks.
func (h *indexHooks) Stage(revision int64, changes []store.Change) {
	h.e.graphs.stage(revision, changes)
	h.staged = h.e.index.Load()
	if h.dropped = h.dropped[:0]; cap(h.written) > keptChanges {
		h.written = nil
	}
	// An embedder may be bound between here and Publish, so that is no time to
	// ask whether there is any.
	h.written = h.written[:0]
	h.outside, h.expires = false, 0
	for i := range changes {
		h.outside = h.outside || changes[i].Outside
		if p, ok := changes[i].Doc.(*index.Prepared); ok && p != nil {
			if at := p.Document.Life.Expires; at != 0 && (h.expires == 0 || at < h.expires) {
				h.expires = at
			}
		}
		if changes[i].Vector == nil {
			h.written = append(h.written, writtenRecord{changes[i].ID, changes[i].Namespace})
		}
	}
	h.guard(h.staged, func() {
		h.buffer = h.buffer[:0]
		for _, c := range changes {
			if c.Vector != nil && c.Vector.Dropped {
				h.dropped = append(h.dropped, c.Vector.Space)
				continue
			}
			change := index.Change{ID: c.ID, Namespace: c.Namespace, Kind: index.Kind(c.Kind)}
			if p, ok := c.Doc.(*index.Prepared); ok && p != nil {
				if p.Analysed == nil {
					p = h.staged.Prepare(p.Document)
				}
				change.Doc = p
			}
			if v := c.Vector; v != nil {
				change.Vector = &index.VectorChange{Space: v.Space, Encoding: index.Encoding(v.Encoding), Scope: v.Scope, Values: v.Values}
			}
			h.buffer = append(h.buffer, change)
		}
		h.staged.Stage(revision, h.buffer)
		clear(h.buffer)
	})
}

// Publish implements store.Hooks.
func (h *indexHooks) Publish() {
	h.e.embedders.retake(h.written)
	h.e.feed.publish()
	h.e.graphs.publish()
	if h.expires != 0 {
		h.e.sweeps.expires(h.expires)
	}
	if h.outside {
		h.e.extensions.each(link.Extension.Changed)
	}
	h.guard(h.staged, func() {
		h.staged.Publish()
		for _, space := range h.dropped {
			h.staged.DropSpace(space)
		}
	})
	h.staged = nil
	if len(h.written) > 0 && h.e.embedders.count.Load() > 0 {
		h.e.embedders.makeDue(h.written)
		h.e.wakeEmbedding()
	}
}

// Discard implements store.Hooks.
func (h *indexHooks) Discard() {
	h.e.graphs.discard()
	h.guard(h.staged, func() { h.staged.Discard() })
	h.staged = nil
}

// replayBatch is how many changes are brought to the index at a time, at most.
const replayBatch = 1000

// errRebuild says that an index cannot be brought up to the truth by the
// journal.
var errRebuild = errors.New("the index has to be rebuilt")

// replay brings an index that is not in use yet from its checkpoint up to the
// truth. It gives errRebuild when the journal does not reach back that far, or
// when the index knows revisions that the truth does not.
func (e *engine) replay(ctx context.Context, ix index.Index) error {
	counters := e.store.Counters()
	from := ix.Checkpointed()
	if from < counters.JournalFloor || from > counters.Revision {
		return errRebuild
	}
	return e.follow(ctx, ix, from)
}

// follow brings an index that is not in use yet from a revision up to the
// truth.
func (e *engine) follow(ctx context.Context, ix index.Index, from int64) error {
	cursor, done := store.AfterRevision(from), false
	for !done {
		err := e.read(ctx, func(tx *store.ReadTx) error {
			batch, err := batchOf(tx, replayBatch)
			if err != nil {
				return err
			}
			entries, next, err := tx.Journal(cursor, batch)
			if err != nil {
				return err
			}
			cursor, done = next, len(entries) < batch
			changes, err := e.changesOf(tx, ix, entries)
			if err != nil {
				return err
			}
			vectors, dropped, err := vectorChangesOf(tx, entries)
			if err != nil {
				return err
			}
			changes = append(changes, vectors...)
			// A batch may end inside a revision: what it claims must be whole.
			revision := max(from, cursor.Revision-1)
			if done {
				revision = tx.Revision()
			}
			if revision > ix.Revision() || len(changes) > 0 {
				ix.Stage(revision, changes)
				ix.Publish()
			}
			for _, space := range dropped {
				ix.DropSpace(space)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// changesOf gives the present state of every record that the entries name, but
// for vectors.
func (e *engine) changesOf(tx *store.ReadTx, ix index.Index, entries []store.JournalEntry) ([]index.Change, error) {
	seen := make(map[int64]bool, len(entries))
	var changes []index.Change
	var docs []*index.Document // of the changes, nil for those that are gone
	for _, entry := range entries {
		if entry.Space != 0 || seen[entry.ID] {
			continue
		}
		seen[entry.ID] = true
		change := index.Change{ID: entry.ID, Namespace: entry.Namespace, Kind: index.Kind(entry.Kind)}
		r, err := tx.RecordOf(entry.Kind, entry.ID)
		if err != nil {
			return nil, err
		}
		d, err := documentOf(tx, r)
		if err != nil {
			return nil, err
		}
		changes, docs = append(changes, change), append(docs, d)
	}
	var failed atomic.Pointer[any]
	parallel(len(docs), func(i int) {
		defer func() {
			if p := recover(); p != nil {
				failed.Store(&p) // for the goroutine that can deal with it
			}
		}()
		if docs[i] != nil {
			changes[i].Doc = ix.Prepare(docs[i])
		}
	})
	if p := failed.Load(); p != nil {
		panic(*p)
	}
	return changes, nil
}

// pruneJournal has the journal deleted up to a revision that the index has on
// disk. It returns at once.
func (e *engine) pruneJournal(upTo int64) {
	e.pruneTo.Store(upTo)
	select {
	case e.pruneWake <- struct{}{}:
	default:
	}
}

func (e *engine) pruneLoop() {
	for {
		select {
		case <-e.background.Done():
			return
		case <-e.pruneWake:
			// When it fails the rows stay until the next checkpoint.
			_ = e.store.PruneJournal(e.background, min(e.pruneTo.Load(), e.rebuilds.floor.Load()))
		}
	}
}

// gate counts running calls, so that close can wait for them.
type gate struct {
	mu      sync.Mutex
	n       int
	closing bool
	idle    chan struct{} // closed when the last call has left after close began
	closed  chan struct{}
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return false
	}
	g.n++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.closing {
		close(g.idle)
	}
}

// close turns new calls away and waits for the running ones; true for the
// first caller only.
func (g *gate) close() bool {
	g.mu.Lock()
	if g.closing {
		g.mu.Unlock()
		return false
	}
	g.closing = true
	g.idle, g.closed = make(chan struct{}), make(chan struct{})
	if g.n == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	<-g.idle
	return true
}

func (g *gate) markClosed() {
	if g.closed != nil {
		close(g.closed)
	}
}

func (g *gate) waitClosed() { <-g.closed }
