package loci

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/index/embedded"
	"github.com/loci-memory/loci/internal/store"
)

// The index lives in <data>/index, one folder a generation: g000001, ... A
// rebuild writes a new generation while the old one serves, and takes up an
// unfinished one. What turned out to be damaged is set aside in a folder
// "damaged-...", of which only the last is kept.
const (
	indexFolder   = "index"
	damagedPrefix = "damaged-"
)

// RebuildProgress is a snapshot of an index rebuild.
type RebuildProgress struct {
	Active    bool  `json:"active"`
	Processed int64 `json:"processed"` // records read so far
	Total     int64 `json:"total"`     // records there were when it began
}

// rebuilds is the engine's record of index rebuilds, of which one runs at a
// time.
type rebuilds struct {
	mu   sync.Mutex
	last *rebuildRun
	// floor is the revision from which on the running rebuild needs the journal;
	// math.MaxInt64 when none runs.
	floor atomic.Int64
	// failures counts failed rebuilds since the last one that succeeded.
	failures atomic.Int64
}

type rebuildRun struct {
	processed, total atomic.Int64
	needed           bool // it began without a usable index
	done             chan struct{}
	err              error // valid when done is closed
}

func (r *rebuildRun) active() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// RebuildIndexes builds every index anew from the truth while reads and writes
// go on, and gives the counters when done. Only one rebuild runs at a time: a
// second call waits for the first. When ctx ends the call returns and the
// rebuild goes on.
func (db *DB) RebuildIndexes(ctx context.Context) (*HealthReport, error) {
	const op = "rebuild_indexes"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if err := needAdmin(ctx, "", "a rebuild"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	run := e.startRebuild(nil)
	select {
	case <-run.done:
	case <-ctx.Done():
		return nil, errs.WithOp(op, ctx.Err())
	}
	if run.err != nil {
		return nil, errs.WithOp(op, run.err)
	}
	return e.health(), nil
}

// RebuildProgress is a snapshot of the rebuild that runs, or of the last one.
func (db *DB) RebuildProgress() RebuildProgress {
	r := &db.eng.rebuilds
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return RebuildProgress{}
	}
	return RebuildProgress{Active: r.last.active(), Processed: r.last.processed.Load(), Total: r.last.total.Load()}
}

// UpdateIndex brings the index up to the truth, should it be behind, and gives
// the counters. Writes do this themselves, so it only has something to do when
// the index is, or was just now, unusable: then it waits for the end of the
// rebuild.
func (db *DB) UpdateIndex(ctx context.Context) (*HealthReport, error) {
	const op = "update_index"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if err := needAdmin(ctx, "", "the index"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	e.rebuilds.mu.Lock()
	run := e.rebuilds.last
	e.rebuilds.mu.Unlock()
	if e.usableIndex() == nil {
		run = e.startRebuild(nil)
	} else if run == nil || !run.needed {
		run = nil
	}
	if run == nil {
		if err := ctx.Err(); err != nil {
			return nil, errs.WithOp(op, err)
		}
		return e.health(), nil
	}
	select {
	case <-run.done:
	case <-ctx.Done():
		return nil, errs.WithOp(op, ctx.Err())
	}
	if e.usableIndex() == nil && run.err != nil {
		return nil, errs.WithOp(op, run.err)
	}
	return e.health(), nil
}

// generation is one folder of index files.
type generation struct {
	number int
	path   string
}

func (e *engine) indexDir() string { return filepath.Join(e.dir, indexFolder) }

func (e *engine) generation(number int) generation {
	return generation{number, filepath.Join(e.indexDir(), fmt.Sprintf("g%06d", number))}
}

// generations lists what there is, newest first. A file in the place of the
// index folder is set aside.
func (e *engine) generations() ([]generation, error) {
	if info, err := os.Stat(e.indexDir()); err == nil && !info.IsDir() {
		if err := os.Rename(e.indexDir(), filepath.Join(e.dir, damagedPrefix+indexFolder)); err != nil {
			return nil, errs.Wrap(errs.IO, err, "a file is in the place of the index folder")
		}
	}
	entries, err := os.ReadDir(e.indexDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the index folder cannot be read")
	}
	var gens []generation
	for _, entry := range entries {
		var n int
		if _, err := fmt.Sscanf(entry.Name(), "g%06d", &n); err != nil || n < 1 {
			continue
		}
		// A file of such a name counts too: it would be in the way of a folder.
		if g := e.generation(n); filepath.Base(g.path) == entry.Name() {
			gens = append(gens, g)
		}
	}
	slices.SortFunc(gens, func(a, b generation) int { return b.number - a.number })
	return gens, nil
}

// openGeneration opens a generation's files, or begins them.
func (e *engine) openGeneration(g generation, building bool) (*embedded.Index, error) {
	var self atomic.Pointer[embedded.Index]
	opts := embedded.Options{
		Analyze: analyzeText, Version: analyzerVersion, StoreID: e.store.Lineage(), Building: building,
		OnCheckpoint: func(revision int64) {
			// Only the index in use says what the journal is still good for.
			if ix := self.Load(); ix != nil && e.usableIndex() == index.Index(ix) {
				e.pruneJournal(revision)
			}
		},
	}
	if building {
		opts.BaseRevision = e.store.Counters().Revision
	}
	fs := embedded.FS(embedded.DirFS(g.path))
	if e.indexFS != nil {
		fs = e.indexFS(fs)
	}
	ix, err := embedded.Open(fs, opts)
	if err != nil {
		return nil, err
	}
	self.Store(ix)
	return ix, nil
}

// openIndex opens the newest whole generation and brings it up to the truth, or
// sees to a rebuild: in the background, unless the caller wants to wait for it.
// Without an index writes succeed all the same and searches are degraded.
func openIndex(ctx context.Context, e *engine, opts *Options) error {
	gens, err := e.generations()
	if err != nil {
		return err
	}
	var resume *building
	used := false
	for _, g := range gens {
		if used {
			e.removeGeneration(g)
			continue
		}
		ix, err := e.openGeneration(g, false)
		if err == nil {
			err = e.replay(ctx, ix)
			if err == nil {
				e.setIndex(ix)
				e.pruneJournal(ix.Checkpointed())
				used = true
				continue
			}
			ix.Abandon()
			if !errors.Is(err, errRebuild) {
				return err
			}
			e.removeGeneration(g) // whole, but of another time
			continue
		}
		if resume == nil {
			if b := e.resumable(g); b != nil {
				resume = b
				continue
			}
		}
		e.setAside(g)
	}
	counters := e.store.Counters()
	if !used && resume == nil && counters.JournalFloor == 0 {
		// The journal holds everything there ever was: a new store, or one that
		// never had a checkpoint.
		ix, err := e.openGeneration(e.nextGeneration(gens), false)
		if err == nil {
			if err := e.replay(ctx, ix); err != nil {
				ix.Abandon()
				return err
			}
			e.setIndex(ix)
			return nil
		}
	}
	if used && resume == nil {
		return nil
	}
	run := e.startRebuild(resume)
	if !used && opts.WaitForIndex {
		select {
		case <-run.done:
			return run.err
		case <-ctx.Done():
			return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while the index was rebuilt")
		}
	}
	return nil
}

func (e *engine) nextGeneration(gens []generation) generation {
	if len(gens) == 0 {
		return e.generation(1)
	}
	return e.generation(gens[0].number + 1)
}

// building is a generation that is not whole yet.
type building struct {
	gen generation
	ix  *embedded.Index
}

// resumable opens an unfinished generation that the journal still reaches back
// to; nil when it is no such.
func (e *engine) resumable(g generation) *building {
	ix, err := e.openGeneration(g, true)
	if err != nil {
		return nil
	}
	counters := e.store.Counters()
	if base := ix.Checkpointed(); base < counters.JournalFloor || base > counters.Revision {
		ix.Abandon()
		return nil
	}
	e.rebuilds.floor.Store(ix.Checkpointed())
	return &building{g, ix}
}

// removeGeneration deletes a generation's files. What cannot be deleted now is
// met again at the next open.
func (e *engine) removeGeneration(g generation) { _ = os.RemoveAll(g.path) }

// setAside keeps a damaged generation for whoever wants to know what happened to
// it, in the place of an earlier one.
func (e *engine) setAside(g generation) {
	entries, err := os.ReadDir(e.indexDir())
	if err == nil {
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), damagedPrefix) {
				_ = os.RemoveAll(filepath.Join(e.indexDir(), entry.Name()))
			}
		}
	}
	aside := filepath.Join(e.indexDir(), damagedPrefix+filepath.Base(g.path))
	if os.Rename(g.path, aside) != nil {
		e.removeGeneration(g)
	}
}

// abandon lets an index go whose state is in doubt.
func abandon(ix index.Index) {
	if a, ok := ix.(interface{ Abandon() }); ok {
		a.Abandon()
	}
}

// indexBroke takes an index out of use after it failed on a change or on a
// search, and has it rebuilt.
func (e *engine) indexBroke(h *indexHandle) {
	if !h.broken.CompareAndSwap(false, true) || e.background.Err() != nil {
		return
	}
	e.goTask(func() { e.startRebuild(nil) })
}

// startRebuild begins a rebuild, or joins the one that runs.
func (e *engine) startRebuild(resume *building) *rebuildRun {
	r := &e.rebuilds
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.last.active() {
		return r.last
	}
	run := &rebuildRun{done: make(chan struct{}), needed: e.usableIndex() == nil}
	run.total.Store(e.store.Counters().Records())
	r.last = run
	e.goTask(func() {
		began := time.Now()
		run.err = e.rebuild(e.background, run, resume)
		r.floor.Store(math.MaxInt64)
		e.logRebuild(time.Since(began), run)
		close(run.done)
		// It may have broken between its first use and now, when a new rebuild
		// would still have joined this one.
		if h := e.index.Load(); run.err == nil && h != nil && h.broken.Load() && e.background.Err() == nil {
			e.startRebuild(nil)
		}
		e.retryRebuild(run)
	})
	return run
}

// Waits before another attempt at a rebuild that failed: each twice the last.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// retryRebuild tries again, after a while, when a rebuild failed and there is no
// index without it: the disk may have been full.
func (e *engine) retryRebuild(run *rebuildRun) {
	r := &e.rebuilds
	if run.err == nil {
		r.failures.Store(0)
		return
	}
	if e.usableIndex() != nil || e.background.Err() != nil {
		return
	}
	wait := min(firstRetry<<min(r.failures.Add(1)-1, 10), lastRetry)
	e.goTask(func() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-e.background.Done():
		case <-timer.C:
			e.startRebuild(nil)
		}
	})
}

// rebuildBatch is how many records are read from the truth at a time, at most.
const rebuildBatch = 1000

func (e *engine) rebuild(ctx context.Context, run *rebuildRun, b *building) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Index, "the rebuild failed: %v", r)
		}
	}()
	// The graph index is in memory only: it is built when it is asked for.
	e.graphs.drop()
	if b == nil {
		if b, err = e.beginGeneration(); err != nil {
			return err
		}
	}
	ix := b.ix
	inUse := false
	defer func() {
		if err != nil && !inUse {
			// What was checkpointed so far is taken up at the next open.
			ix.Abandon()
		}
	}()
	cursor := ix.Cursor()
	base := ix.Revision()
	for {
		var docs []*index.Document
		var vectors []index.Change
		next := cursor
		err := e.read(ctx, func(tx *store.ReadTx) (err error) {
			most, err := batchOf(tx, rebuildBatch)
			if err != nil {
				return err
			}
			var batch []store.Stored
			if batch, next, err = tx.ScanRecords(cursor, most); err != nil {
				return err
			}
			for _, r := range batch {
				d, err := documentOf(tx, r)
				if err != nil {
					return err
				}
				if d != nil {
					docs = append(docs, d)
				}
			}
			vectors, err = vectorsOf(tx, docs)
			return err
		})
		if err != nil {
			return err
		}
		if next == cursor {
			break
		}
		changes := make([]index.Change, len(docs))
		parallel(len(docs), func(i int) {
			d := docs[i]
			changes[i] = index.Change{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind, Doc: ix.Prepare(d)}
		})
		cursor = next
		ix.SetCursor(cursor)
		ix.Stage(base, append(changes, vectors...))
		ix.Publish()
		run.processed.Add(int64(len(docs)))
	}
	if err := e.follow(ctx, ix, base); err != nil {
		return err
	}
	var old index.Index
	var errFollow error
	err = e.store.Between(ctx, func() {
		if errFollow = e.follow(ctx, ix, ix.Revision()); errFollow == nil {
			old = e.setIndex(ix)
			inUse = true
		}
	})
	if err = errors.Join(err, errFollow); err != nil {
		return err
	}
	if old != nil {
		abandon(old)
	}
	ix.SetComplete()
	if err := ix.Flush(); err != nil {
		// It serves all the same; the next open resumes from what is on disk.
		return errs.Wrap(errs.IO, err, "the rebuilt index cannot be written")
	}
	gens, err := e.generations()
	if err != nil {
		return err
	}
	for _, g := range gens {
		if g.number < b.gen.number {
			e.removeGeneration(g)
		}
	}
	e.pruneJournal(ix.Checkpointed())
	return nil
}

// beginGeneration starts a new generation at the present revision, from which
// on the journal is kept.
func (e *engine) beginGeneration() (*building, error) {
	gens, err := e.generations()
	if err != nil {
		return nil, err
	}
	g := e.nextGeneration(gens)
	e.rebuilds.floor.Store(e.store.Counters().Revision)
	ix, err := e.openGeneration(g, true)
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "a new index cannot be begun")
	}
	return &building{g, ix}, nil
}
