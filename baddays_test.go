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
	"syscall"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/index/embedded"
	"go.uber.org/goleak"
)

// faultStory opens a store whose index files may fail at any time, and does a bit
// of everything. Whatever fails below, writes succeed, and a search finds
// everything or says that it cannot.
func faultStory(t *testing.T, dir string, before func(op, name string) error) (n int) {
	t.Helper()
	opts := &Options{Clock: newTestClock().Now, indexFS: hookIndexFS(before)}
	db, err := Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	check := func() {
		t.Helper()
		res := search(t, db, SearchRequest{Query: "walrus", Limit: new(1), WithTotal: true})
		if slices.Equal(res.Diagnostics.Degraded, []Degrade{DegradeTextIndexUnavailable}) {
			return
		}
		if *res.Total != int64(n) || len(res.Hits) != 1 || len(res.Diagnostics.Degraded) != 0 {
			t.Errorf("%d hits of %d, want 1 of %d; degraded %v", len(res.Hits), *res.Total, n, res.Diagnostics.Degraded)
		}
	}
	write := func(more int) {
		t.Helper()
		ins := make([]MemoryInput, more)
		for i := range ins {
			ins[i].Judgment = fmt.Sprint("walrus ", i)
		}
		ids := rememberAll(t, db, ins...)
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[0], ReadFilter{}))
		n += more - 1
		check()
	}
	flush := func() {
		if ix := db.eng.usableIndex(); ix != nil {
			_ = ix.Flush() // may fail: that is the point
		}
	}
	write(20)
	flush()
	write(5)
	_, _ = db.RebuildIndexes(t.Context()) // likewise
	check()
	write(70)
	flush()
	must[*Receipt[int64]](t)(db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: ReadFilter{Tags: []string{"tide"}}}))
	flush()
	check()
	write(70)
	_ = db.Close() // likewise: it says when the index could not be written
	return n
}

// TestEveryIndexFault fails each operation on the index's files in turn, once or
// from then on. When the file system is well again everything is found, by the
// same scores as from an index built anew. Every fifth operation with -short.
func TestEveryIndexFault(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	base := t.TempDir()
	db := openReal(t, base)
	library(t, db, 60)
	settle(t, db)
	library(t, db, 5)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	reqs := []SearchRequest{{Query: "walrus", Limit: new(20)}, {Query: "harbor tide"}, {Query: "塔 lamp", Filter: scoped("public", "private"), ThreadWeight: 0.5}}
	run := func(t *testing.T, failAt int64, goesOn bool) (total int64) {
		dir := copyDir(t, base)
		defer os.RemoveAll(dir)
		var ops atomic.Int64
		n := faultStory(t, dir, func(string, string) error {
			if at := ops.Add(1); at == failAt || goesOn && at > failAt {
				return errInjected
			}
			return nil
		})
		db := must[*DB](t)(Open(t.Context(), dir, &Options{Clock: newTestClock().Now, WaitForIndex: true}))
		got := answersOf(t, db, reqs)
		if got[0].total != int64(n) {
			t.Errorf("%d are found, want %d", got[0].total, n)
		}
		rebuild(t, db)
		wantAnswers(t, db, reqs, got)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		return ops.Load()
	}
	total := run(t, math.MaxInt64, false)
	if total < 50 {
		t.Errorf("only %d file operations: the story does not exercise files", total)
	}
	step := int64(1)
	if testing.Short() {
		step = 5
	}
	t.Run("operation", func(t *testing.T) { // ends when all below have
		for failAt := int64(1); failAt <= total; failAt += step {
			t.Run(fmt.Sprint(failAt), func(t *testing.T) {
				t.Parallel()
				run(t, failAt, false)
			})
			if failAt%7 == 1 {
				t.Run(fmt.Sprint("from ", failAt), func(t *testing.T) {
					t.Parallel()
					run(t, failAt, true)
				})
			}
		}
	})
}

// TestIndexDiskFull goes on without the room for an index file, and writes it all
// out when there is room again.
func TestIndexDiskFull(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var full atomic.Bool
	fs := hookIndexFS(func(op, _ string) error {
		if full.Load() && slices.Contains([]string{"mkdir", "create", "write", "sync", "rename"}, op) {
			return syscall.ENOSPC
		}
		return nil
	})
	dir := t.TempDir()
	db := must[*DB](t)(Open(t.Context(), dir, &Options{Clock: newTestClock().Now, indexFS: fs}))
	library(t, db, 300)
	settle(t, db)
	full.Store(true)
	library(t, db, 300)
	if err := db.eng.index.Load().Flush(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("flush on a full disk: %v", err)
	}
	want := answersOf(t, db, libraryQueries())
	r := &recorder{}
	listen(t, db, r.sink)
	if _, err := db.RebuildIndexes(t.Context()); err == nil {
		t.Error("a rebuild on a full disk says nothing")
	} else if wantCode(t, err, ErrIO); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if events := r.settled(t, db); len(events) != 1 || !slices.Equal(events[0].Degraded, []Degrade{DegradeTextIndexUnavailable}) {
		t.Errorf("%+v", events)
	}
	wantAnswers(t, db, libraryQueries(), want)
	err := db.Close()
	if wantCode(t, err, ErrIndex); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	// Still full: what the files lack comes from the journal.
	db = must[*DB](t)(Open(t.Context(), dir, &Options{Clock: newTestClock().Now, indexFS: fs}))
	wantHits(t, db, SearchRequest{Query: "walrus"})
	library(t, db, 10)
	full.Store(false)
	must[*HealthReport](t)(db.UpdateIndex(t.Context()))
	settle(t, db)
	want = answersOf(t, db, libraryQueries())
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" || h.RecordCount != 610 || h.IndexedDocuments != 610 {
		t.Errorf("%+v", h)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openReal(t, dir)
	wantAnswers(t, db, libraryQueries(), want)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTwoOpens is O2 with the real index: the one who is turned away touches
// nothing of the other's files.
func TestTwoOpens(t *testing.T) {
	dir := t.TempDir()
	db := openReal(t, dir)
	ids := remember(t, db, "潮水")
	settle(t, db)
	files := indexFiles(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	names := []string{dir, dir + "/."}
	if os.Symlink(dir, link) == nil {
		names = append(names, link)
	}
	for _, name := range names {
		for _, wait := range []bool{false, true} {
			_, err := Open(t.Context(), name, &Options{WaitForIndex: wait})
			wantCode(t, err, ErrLocked)
		}
	}
	if got := indexFiles(t, dir); !slices.Equal(got, files) {
		t.Errorf("%v, were %v", got, files)
	}
	ids = append(ids, remember(t, db, "潮水 again")...)
	wantHits(t, db, SearchRequest{Query: "潮水"}, ids...)
	var won, locked atomic.Int64
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	start := make(chan struct{})
	var winner *DB
	for range 8 {
		group.Go(func() {
			<-start
			switch db, err := Open(context.Background(), dir, nil); {
			case err == nil:
				won.Add(1)
				winner = db
			case errors.Is(err, ErrLocked):
				locked.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	close(start)
	group.Wait()
	if won.Load() != 1 || locked.Load() != 7 {
		t.Fatalf("%d opened it, %d were turned away", won.Load(), locked.Load())
	}
	wantHits(t, winner, SearchRequest{Query: "潮水"}, ids...)
	if err := winner.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadOnlyFolder opens what may not be written.
func TestReadOnlyFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere")
	}
	dir, _ := closedLibrary(t, 20)
	for _, name := range []string{dir, filepath.Join(dir, indexFolder), filepath.Join(dir, indexFolder, "g000001")} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if err := os.Chmod(name, 0o500); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(name, 0o700)
			db, err := Open(t.Context(), dir, nil)
			if err != nil {
				// As a file that cannot be made, or as a database that cannot be written.
				if code := CodeOf(err); code != ErrIO && code != ErrStorage || !strings.Contains(err.Error(), "permission") {
					t.Errorf("%v", err)
				}
				return
			}
			// The truth can be written, so writes succeed and searches find.
			ids := remember(t, db, "walrus")
			if got := hitIDs(search(t, db, SearchRequest{Query: "walrus"})); !slices.Contains(got, ids[0]) {
				t.Errorf("found %v, want %v among them", got, ids)
			}
			_ = db.Close()
		})
	}
}

// waitingView holds a search up in the index until it is released.
type waitingIndex struct {
	*embedded.Index
	inside, release chan struct{}
}

type waitingView struct {
	index.View
	ix *waitingIndex
}

func (ix *waitingIndex) View(revision int64) (index.View, bool) {
	v, ok := ix.Index.View(revision)
	return &waitingView{v, ix}, ok
}

func (v *waitingView) Search(q index.Query, f index.Filter, o index.Options) (index.Result, error) {
	v.ix.inside <- struct{}{}
	<-v.ix.release
	return v.View.Search(q, f, o)
}

// TestSearchCanceled ends the context before a search and during one.
func TestSearchCanceled(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ix := &waitingIndex{inside: make(chan struct{}), release: make(chan struct{})}
	opts := &Options{openIndex: func(ctx context.Context, e *engine, opts *Options) error {
		if err := openIndex(ctx, e, opts); err != nil {
			return err
		}
		ix.Index = e.index.Load().Index.(*embedded.Index)
		e.setIndex(ix)
		return nil
	}}
	db := openWith(t, t.TempDir(), opts)
	ids := remember(t, db, "潮水")
	r := &recorder{}
	listen(t, db, r.sink)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := db.Search(ctx, SearchRequest{Query: "潮水"})
	wantCode(t, err, ErrCanceled)

	ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := db.Search(ctx, SearchRequest{Query: "潮水"}); done <- err }()
	<-ix.inside
	cancel()
	ix.release <- struct{}{}
	wantCode(t, <-done, ErrCanceled)

	// Close waits for the search that runs, and turns the next one away.
	go func() {
		res, err := db.Search(t.Context(), SearchRequest{Query: "潮水"})
		if err == nil && !slices.Equal(hitIDs(res), ids) {
			err = fmt.Errorf("found %v", hitIDs(res))
		}
		done <- err
	}()
	<-ix.inside
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	for db.eng.enter("test") == nil { // until Close has shut the gate
		db.eng.gate.leave()
	}
	_, err = db.Search(t.Context(), SearchRequest{Query: "潮水"})
	wantCode(t, err, ErrClosed)
	select {
	case <-closed:
		t.Error("Close did not wait for the search")
	default:
	}
	ix.release <- struct{}{}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if len(r.events) != 1 {
		t.Errorf("%d events, want that of the search that answered", len(r.events))
	}
}

// TestSearchWhileWriting is O6: many searches, each in its own scope, beside a
// writer and an index that is written out and rebuilt. Each finds exactly its
// own record, at every moment.
func TestSearchWhileWriting(t *testing.T) {
	db := openReal(t, t.TempDir())
	const scopes = 8
	want := make([]ID, scopes)
	for i := range want {
		want[i] = rememberAll(t, db, in(fmt.Sprint("scope-", i), "the harbor lamp 灯塔"))[0]
	}
	var stop atomic.Bool
	var writers, readers sync.WaitGroup
	var writes, rounds atomic.Int64
	writers.Go(func() {
		defer stop.Store(true)
		for i := 0; !stop.Load(); i++ {
			noise := []MemoryInput{in("noise", "harbor harbor 灯塔"), inNamespace("other", "harbor"), in(fmt.Sprint("scope-", i%scopes), "nothing to do with it")}
			r, err := db.Memories().UpsertMany(context.Background(), noise)
			if err == nil && i%2 == 0 {
				_, err = db.Memories().Delete(context.Background(), r.Value[0].ID, scoped("noise"))
			}
			if err == nil && i%3 == 0 {
				// The own record is written anew, under the same id.
				m := in(fmt.Sprint("scope-", i%scopes), "the harbor lamp 灯塔")
				m.ID = want[i%scopes]
				_, err = db.Memories().Upsert(context.Background(), m)
			}
			if err != nil {
				t.Error(err)
				return
			}
			writes.Add(1)
		}
	})
	writers.Go(func() {
		defer stop.Store(true)
		for ; !stop.Load(); rounds.Add(1) {
			var err error
			if rounds.Load()%4 == 3 {
				_, err = db.RebuildIndexes(context.Background())
			} else {
				err = db.eng.usableIndex().Flush()
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for g := range 24 {
		readers.Go(func() {
			scope := fmt.Sprint("scope-", g%scopes)
			// 40 times, and on until the others have come to something.
			for i := 0; i < 40 || !stop.Load() && (writes.Load() < 40 || rounds.Load() < 8); i++ {
				query := []string{"harbor", "灯塔", "lamp missing", "塔"}[i%4]
				res, err := db.Search(context.Background(), SearchRequest{Query: query, Filter: scoped(scope), WithTotal: true})
				if err != nil {
					t.Error(err)
					return
				}
				if len(res.Hits) != 1 || hitIDs(res)[0] != want[g%scopes] || *res.Total != 1 || res.Revision != res.IndexedRevision || len(res.Diagnostics.Degraded) != 0 {
					t.Errorf("%q in %s: %v of %d at %d and %d, %v", query, scope, hitIDs(res), *res.Total, res.Revision, res.IndexedRevision, res.Diagnostics.Degraded)
					return
				}
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writers.Wait()
	t.Logf("%d rounds of writes, %d of index work", writes.Load(), rounds.Load())
	if h := must[*HealthReport](t)(db.Health(t.Context())); h.PendingIndexUpdates != 0 || h.IndexedDocuments != h.RecordCount {
		t.Errorf("%+v", h)
	}
}
