package loci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeindex"
	"go.uber.org/goleak"
)

func TestOpen(t *testing.T) {
	t.Run("O1", func(t *testing.T) {
		db := openTestDB(t, filepath.Join(t.TempDir(), "a", "b"))
		h := must[*HealthReport](t)(db.Health(t.Context()))
		if h.RecordCount != 0 || h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.SchemaVersion != store.SchemaVersion {
			t.Errorf("%+v", h)
		}
		if !filepath.IsAbs(db.Directory()) {
			t.Error(db.Directory())
		}
	})
	t.Run("O2", func(t *testing.T) {
		dir := t.TempDir()
		db := openTestDB(t, filepath.Join(dir, "data"))
		if err := os.Symlink(filepath.Join(dir, "data"), filepath.Join(dir, "link")); err != nil {
			t.Skip(err)
		}
		for _, name := range []string{"data", "link", "./data/../data"} {
			_, err := Open(t.Context(), filepath.Join(dir, name), nil)
			if e := wantCode(t, err, ErrLocked); !strings.Contains(e.Error(), fmt.Sprintf("process %d", os.Getpid())) {
				t.Error(e)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		again := openTestDB(t, filepath.Join(dir, "link"))
		if again.Directory() != db.Directory() {
			t.Error(again.Directory())
		}
	})
	t.Run("O3", func(t *testing.T) {
		db := openTestDB(t, t.TempDir())
		s, ctx := db.Memories(), t.Context()
		for range 2 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		calls := map[string]func() error{
			"upsert":      func() error { _, err := s.Upsert(ctx, MemoryInput{Judgment: "m"}); return err },
			"many":        func() error { _, err := s.UpsertMany(ctx, nil); return err },
			"by judgment": func() error { _, err := s.UpsertByJudgment(ctx, MemoryInput{Judgment: "m"}); return err },
			"get":         func() error { _, err := s.Get(ctx, 1, ReadFilter{}); return err },
			"list":        func() error { _, err := s.List(ctx, PageRequest{}); return err },
			"delete":      func() error { _, err := s.Delete(ctx, 1, ReadFilter{}); return err },
			"by filter":   func() error { _, err := s.DeleteByFilter(ctx, DeleteRequest{}); return err },
			"feedback":    func() error { _, err := s.Feedback(ctx, FeedbackRequest{}); return err },
			"decay":       func() error { _, err := s.Decay(ctx, DecayRequest{}); return err },
			"health":      func() error { _, err := db.Health(ctx); return err },
			"deep health": func() error { _, err := db.DeepHealth(ctx); return err },
			"update":      func() error { _, err := db.UpdateIndex(ctx); return err },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("O4, O5", func(t *testing.T) {
		dir := t.TempDir()
		db := openTestDB(t, dir)
		var want []Memory
		for i := range 30 {
			want = append(want, addMemory(t, db, MemoryInput{Judgment: fmt.Sprint("m ", i), RecordInput: RecordInput{Tags: []string{"t"}}}))
		}
		before := stateOf(t, db)
		db.Close()
		db = openTestDB(t, dir)
		if after := stateOf(t, db); after != before {
			t.Errorf("%+v, was %+v", after, before)
		}
		if got := listMemories(t, db, ReadFilter{Tags: []string{"t"}}); len(got) != len(want) {
			t.Error(len(got))
		}
	})
	t.Run("not a folder", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), file, nil)
		wantCode(t, err, ErrIO)
		_, err = Open(t.Context(), filepath.Join(file, "below"), nil)
		wantCode(t, err, ErrIO)
		_, err = Open(t.Context(), "", nil)
		wantCode(t, err, ErrValidation)
	})
	t.Run("read-only folder", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write anywhere")
		}
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), dir, nil)
		wantCode(t, err, ErrIO)
	})
}

// TestNothingLeft checks that neither Close nor a failed Open leaves a
// goroutine or the lock behind.
func TestNothingLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	db := openTestDB(t, dir)
	addMemory(t, db, MemoryInput{Judgment: "m"})
	listMemories(t, db, ReadFilter{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	_, err := Open(t.Context(), dir, &Options{openIndex: func(context.Context, *engine, *Options) error { return boom }})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, store.DatabaseFile), []byte("this is not a database, whatever its name says"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, nil)
	wantCode(t, err, ErrValidation)
	if err := os.Remove(filepath.Join(dir, store.DatabaseFile)); err != nil {
		t.Fatal(err)
	}
	openTestDB(t, dir).Close()
}

func TestHealth(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	addMemory(t, db, MemoryInput{Judgment: "m"})
	h := must[*HealthReport](t)(db.Health(t.Context())) // H1
	if h.Counts["memory"] != 1 || len(h.Counts) != 1 || h.RecordCount != 1 || h.Integrity != "ok" || h.PendingIndexUpdates != 0 ||
		h.IndexedRevision != h.Revision || !h.IndexUsable || h.IndexedDocuments != 1 {
		t.Errorf("%+v", h)
	}
	h = must[*HealthReport](t)(db.DeepHealth(t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.IntegrityAtUS != newTestClock().Now().UnixMicro() {
		t.Errorf("%+v", h)
	}
}

// TestReadersDoNotWait is O6 for reads of the truth: readers see their own
// scope's one record, always, while a writer writes.
func TestReadersDoNotWait(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	for i := range 8 {
		addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{Scope: new(fmt.Sprint("scope-", i))}})
	}
	stop := make(chan struct{})
	var writer, readers sync.WaitGroup
	writes := 0
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: "other", RecordInput: RecordInput{Scope: new("noise")}}); err != nil {
				t.Error(err)
				return
			}
			writes++
		}
	})
	for g := range 24 {
		readers.Go(func() {
			scope := fmt.Sprint("scope-", g%8)
			filter := scoped(scope)
			for range 40 {
				page, err := db.Memories().List(t.Context(), PageRequest{Filter: filter})
				if err != nil || len(page.Items) != 1 || page.Items[0].Scope != scope {
					t.Error(page, err)
					return
				}
				err = db.eng.readPair(t.Context(), func(tx *store.ReadTx, view index.View) error {
					if view.Revision() != tx.Revision() {
						t.Error("a view of another revision")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
	if writes == 0 {
		t.Error("the writer wrote nothing")
	}
}

// TestIndexFailure checks that a write outlives its index.
func TestIndexFailure(t *testing.T) {
	var ix *fakeindex.Index
	db, err := Open(t.Context(), t.TempDir(), withFakeIndex(&Options{}, &ix))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ix.FailStage = true
	addMemory(t, db, MemoryInput{Judgment: "m"})
	if h := must[*HealthReport](t)(db.Health(t.Context())); h.RecordCount != 1 {
		t.Errorf("%+v", h)
	}
	if db.eng.usableIndex() == index.Index(ix) {
		t.Error("a broken index is still in use")
	}
	addMemory(t, db, MemoryInput{Judgment: "m"})
	h := must[*HealthReport](t)(db.UpdateIndex(t.Context())) // waits for the rebuild
	if !h.IndexUsable || h.IndexedDocuments != 2 || h.PendingIndexUpdates != 0 {
		t.Errorf("%+v", h)
	}
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	var ix *fakeindex.Index
	open := func() *DB {
		db, err := Open(t.Context(), dir, withFakeIndex(&Options{}, &ix))
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	ins := make([]MemoryInput, 2500)
	for i := range ins {
		ins[i] = MemoryInput{Judgment: fmt.Sprint("m ", i), RecordInput: RecordInput{Metadata: Metadata(`{"a":1}`), Tags: []string{"t"}, Thread: new("th"), Position: new(int64(i))}}
	}
	many := must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), ins)).Value
	for _, m := range many[:10] {
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), m.ID, ReadFilter{}))
	}
	feedback(t, db, FeedbackRequest{RecalledIDs: []ID{many[20].ID}, UsefulIDs: []ID{many[20].ID}})
	want, revision := ix.Documents(), stateOf(t, db).revision
	db.Close()
	db = open()
	got := ix.Documents()
	if len(got) != len(want) || ix.Revision() != revision {
		t.Fatalf("%d documents at %d, want %d at %d", len(got), ix.Revision(), len(want), revision)
	}
	for id, d := range want {
		if fmt.Sprint(*got[id]) != fmt.Sprint(*d) {
			t.Fatalf("%+v, want %+v", *got[id], *d)
		}
	}
	if err := db.eng.store.PruneJournal(t.Context(), revision-1); err != nil {
		t.Fatal(err)
	}
	if floor := db.eng.store.Counters().JournalFloor; floor != revision-1 {
		t.Error(floor)
	}
	if err := db.eng.replay(t.Context(), fakeindex.New(0)); !errors.Is(err, errRebuild) {
		t.Error(err)
	}
	if err := db.eng.replay(t.Context(), fakeindex.New(revision+1)); !errors.Is(err, errRebuild) {
		t.Error(err)
	}
	if err := db.eng.replay(t.Context(), fakeindex.New(revision-1)); err != nil {
		t.Error(err)
	}
	db.Close()
}

func TestCloseWaits(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	inside, release := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		if err := db.eng.enter("test"); err != nil {
			done <- err
			return
		}
		defer db.eng.gate.leave()
		_, err := db.eng.write(context.Background(), func(*store.WriteTx) error {
			close(inside)
			<-release
			return nil
		})
		done <- err
	}()
	<-inside
	closed := make(chan struct{})
	go func() { db.Close(); close(closed) }()
	select {
	case <-closed:
		t.Error("Close did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-closed
}
