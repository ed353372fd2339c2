package pager

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// wantCoherent checks that a scope's window in memory is the stored one, within
// its budget, and published as it is.
func wantCoherent(t testing.TB, cs *Store) {
	t.Helper()
	if err := cs.with(context.Background(), "test", func(s *scope) error {
		if s.stored == nil {
			return nil
		}
		var stored window
		err := s.reg.link.Read(context.Background(), func(tx *store.ReadTx) error {
			pages, err := tx.ResidentPages(s.stored.ID)
			stored = windowOf(pages)
			return err
		})
		if err != nil {
			return err
		}
		for _, lists := range [][2][]*resident{{stored.core, s.window.core}, {stored.working, s.window.working}} {
			same := slices.EqualFunc(lists[0], lists[1], func(a, b *resident) bool {
				return cmp.Equal(a.Page, b.Page, cmpopts.IgnoreUnexported(store.Record{}), cmpopts.EquateEmpty())
			})
			if !same {
				t.Errorf("%s: the window in memory is not the stored one", s.key.scope)
			}
		}
		if cost := (meter{s.counter}).cost(&s.window); cost > s.state.Budget {
			t.Errorf("%s: the window costs %d of %d", s.key.scope, cost, s.state.Budget)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// increment adds one to the number that a page holds, as agents do who share a
// page: read, write with the version that was read, and again if another was
// faster. It gives how often it had to try again.
func increment(ctx context.Context, cs *Store, pageID string) (conflicts int, err error) {
	for {
		got, err := cs.Read(ctx, ReadRequest{PageID: pageID})
		if err != nil {
			return conflicts, err
		}
		n, err := strconv.Atoi(got.Content)
		if err != nil {
			return conflicts, err
		}
		_, err = cs.Write(ctx, WriteRequest{PageID: pageID, Content: strconv.Itoa(n + 1), Tier: Core, ExpectedVersion: &got.CurrentVersion})
		if !errors.Is(err, ErrVersionConflict) {
			return conflicts, err
		}
		conflicts++
	}
}

// disturb runs a random operation on a scope; what it answers is one of the codes
// that operations on changing pages may have.
func disturb(ctx context.Context, cs *Store, random *rand.Rand, checkpoints bool) error {
	id := fmt.Sprintf("p%d", 1+random.IntN(40))
	var err error
	switch random.IntN(16) {
	case 0, 1:
		_, err = cs.Write(ctx, WriteRequest{Content: library(random, 1), Tier: Working})
	case 2:
		_, err = cs.Recall(ctx, RecallRequest{SearchRequest: SearchRequest{Query: "harbor lamp", Kinds: []loci.Kind{loci.KindPage, loci.KindMemory}}})
	case 3:
		_, err = cs.Snapshot(ctx, SnapshotRequest{Since: new(int64(random.IntN(50)))})
	case 4:
		_, err = cs.PageIn(ctx, PageInRequest{PageID: id})
	case 5:
		_, err = cs.PageOut(ctx, PageOutRequest{PageID: id})
	case 6:
		_, err = cs.Ingest(ctx, IngestRequest{Content: library(random, 3), PageBytes: new(128)})
	case 7:
		_, err = cs.Write(ctx, WriteRequest{Content: library(random, 1), Title: "step", Summary: "done", Outline: new(true)})
	case 8:
		_, err = cs.Fold(ctx, FoldRequest{Keep: new(2)})
	case 9:
		_, err = cs.Forget(ctx, ForgetRequest{PageID: id})
	case 10:
		_, err = cs.PolicyTick(ctx, PolicyTickRequest{Force: random.IntN(3) == 0})
	case 11:
		_, err = cs.Search(ctx, SearchRequest{Query: "signal"})
	case 12:
		_, err = cs.RecordUsage(ctx, RecordUsageRequest{InputTokens: 1})
	case 13:
		_, err = cs.Organize(ctx, OrganizeRequest{PageID: id, Threshold: new(0.1)})
	case 14:
		if _, err = cs.Dashboard(ctx, DashboardRequest{}); err == nil {
			_, err = cs.Status(ctx, StatusRequest{})
		}
	default:
		if !checkpoints {
			break
		}
		var made *CheckpointResult
		if made, err = cs.Checkpoint(ctx, CheckpointRequest{}); err == nil {
			_, err = cs.Restore(ctx, RestoreRequest{CheckpointID: made.Checkpoint.CheckpointID})
		}
	}
	if slices.Contains([]Code{"", ErrNotFound, ErrPinned, ErrOutlineFull, ErrBudgetExceeded, ErrCoreOverBudget, ErrLinkInvalid, ErrInvalidArgument, ErrVersionConflict}, codeOf(err)) {
		return nil
	}
	return err
}

// TestConcurrentScopes lets many goroutines work on two scopes through handles
// of their own, while a memory that both have copies of is changed and deleted.
// No update is lost.
func TestConcurrentScopes(t *testing.T) {
	const writers, rounds = 3, 12
	db := openDB(t, t.TempDir(), nil)
	scopes := []Scope{{"project", "one"}, {"project", "two"}}
	handle := func(i int) *Store { return scopeOf(t, db, Config{Scope: scopes[i]}) }
	for i := range scopes {
		put(t, handle(i), WriteRequest{PageID: "n", Content: "0", Tier: Core})
	}
	var group sync.WaitGroup
	var conflicts atomic.Int64
	for i := range scopes {
		for k := range writers {
			cs, busy := handle(i), handle(i)
			group.Go(func() {
				for range rounds {
					n, err := increment(t.Context(), cs, "n")
					conflicts.Add(int64(n))
					if err != nil {
						t.Errorf("increment: %v", err)
						return
					}
				}
			})
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				for range 3 * rounds {
					if err := disturb(t.Context(), busy, random, false); err != nil {
						t.Errorf("disturb: %v", err)
						return
					}
				}
			})
		}
	}
	readers := []*Store{handle(0), handle(1)}
	group.Go(func() {
		for range rounds {
			m, err := db.Memories().Upsert(t.Context(), loci.MemoryInput{Judgment: "the harbor lamp is lit", RecordInput: loci.RecordInput{Namespace: new("project")}})
			if err != nil {
				t.Errorf("upsert: %v", err)
				return
			}
			for _, cs := range readers {
				if _, err := cs.PageIn(t.Context(), PageInRequest{PageID: fmt.Sprintf("memory:%d", m.Value.ID)}); err != nil {
					t.Errorf("page_in: %v", err)
				}
			}
			if _, err := db.Memories().Delete(t.Context(), m.Value.ID, loci.ReadFilter{Namespace: new("project")}); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
	})
	group.Wait()
	for i := range scopes {
		cs := handle(i)
		got := must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "n"}))
		if want := writers * rounds; got.Content != strconv.Itoa(want) || got.CurrentVersion != int64(want+1) {
			t.Errorf("%v: %d increments made %s at version %d", scopes[i], want, got.Content, got.CurrentVersion)
		}
		wantCoherent(t, cs)
		if s := must[*StatusResult](t)(cs.Status(t.Context(), StatusRequest{})); s.Snapshot.Pressure.Cost > s.Snapshot.Pressure.Budget {
			t.Errorf("%+v", s.Snapshot)
		}
	}
	t.Logf("%d conflicts", conflicts.Load())
}

// TestCloseWhileWorking closes a store in the middle of work: everybody is told
// that it is closed and nothing else, and what was acknowledged is there.
func TestCloseWhileWorking(t *testing.T) {
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	acknowledged := make([]int, 3)
	var total atomic.Int64
	enough := make(chan struct{})
	for k := range acknowledged {
		cs := scopeOf(t, db, Config{Scope: Scope{"project", "shared"}})
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(k)))
			for i := 0; ; i++ {
				_, err := cs.Write(context.Background(), WriteRequest{PageID: fmt.Sprintf("w%d-%d", k, i), Content: library(random, 1), Tier: Working})
				if err == nil {
					acknowledged[k]++
					err = disturb(context.Background(), cs, random, true)
				}
				if err != nil {
					if !errors.Is(err, loci.ErrClosed) {
						t.Errorf("not closed: %v", err)
					}
					return
				}
				if total.Add(1) == 30 {
					close(enough)
				}
			}
		})
	}
	<-enough
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	cs := scopeOf(t, openDB(t, dir, nil), Config{Scope: Scope{"project", "shared"}})
	for k, n := range acknowledged {
		for i := range n {
			if _, err := cs.Read(t.Context(), ReadRequest{PageID: fmt.Sprintf("w%d-%d", k, i)}); err != nil {
				t.Errorf("write %d of %d: %v", i, k, err)
			}
		}
	}
	wantCoherent(t, cs)
	checkDeep(t, cs)
}

// holdTurn takes a scope's turn until the test gives it back.
func holdTurn(t *testing.T, cs *Store) (giveBack func()) {
	t.Helper()
	held, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- cs.take(context.Background(), "hold", cs.reg.link.MayRead, func(*scope) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	return func() {
		close(free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWaitForTurn(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project"}})
	put(t, cs, WriteRequest{PageID: "a", Content: "text", Tier: Working})
	hasty := scopeOf(t, db, Config{Scope: Scope{"project"}, Wait: time.Millisecond})
	giveBack := holdTurn(t, cs)
	canceled, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := cs.Write(canceled, WriteRequest{PageID: "b", Content: "text"})
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, loci.ErrCanceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled while waiting: %v", err)
	}
	for op, call := range map[string]func() error{
		"write":    func() error { _, err := hasty.Write(t.Context(), WriteRequest{Content: "text"}); return err },
		"snapshot": func() error { _, err := hasty.Snapshot(t.Context(), SnapshotRequest{}); return err },
		"recall": func() error {
			_, err := hasty.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "text"}})
			return err
		},
	} {
		if err := call(); !errors.Is(err, ErrBusy) {
			t.Errorf("%s while another holds the scope: %v", op, err)
		}
	}
	// Another scope is free.
	other := scopeOf(t, db, Config{Scope: Scope{"project", "other"}})
	put(t, other, WriteRequest{Content: "text"})
	giveBack()
	if _, err := cs.Read(t.Context(), ReadRequest{PageID: "b"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a write that was called off: %v", err)
	}
	put(t, cs, WriteRequest{Content: "text"})
}

// TestManyScopes works on more scopes than are kept in memory: what is dropped
// keeps its statistics.
func TestManyScopes(t *testing.T) {
	const n = keptScopes + 30
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	scope := func(db *loci.DB, i int) *Store {
		return scopeOf(t, db, Config{Scope: Scope{"project", strconv.Itoa(i)}})
	}
	var group sync.WaitGroup
	for k := range 4 { // so that commits come in groups
		group.Go(func() {
			for i := k; i < n; i += 4 {
				cs, err := Open(t.Context(), db, Config{Scope: Scope{"project", strconv.Itoa(i)}})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := cs.Write(t.Context(), WriteRequest{PageID: "a", Content: "text", Tier: Working}); err != nil {
					t.Error(err)
				}
				for range 3 {
					if _, err := cs.Read(t.Context(), ReadRequest{PageID: "a"}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	reg := registryOf(db)
	if kept := len(reg.scopes); kept > keptScopes {
		t.Errorf("%d scopes are in memory", kept)
	}
	for i := range n {
		cs := scope(db, i)
		got := must[*ReadResult](t)(cs.Read(t.Context(), ReadRequest{PageID: "a"}))
		if got.Page.Hits != 3 {
			t.Fatalf("scope %d: %d hits were kept of 3", i, got.Page.Hits)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, dir, nil)
	for i := range n {
		got := must[*ReadResult](t)(scope(db, i).Read(t.Context(), ReadRequest{PageID: "a"}))
		if got.Page.Hits != 4 {
			t.Fatalf("reopened, scope %d: %d hits were kept of 4", i, got.Page.Hits)
		}
	}
}

// TestScopesHeldInMemory holds that large scopes which nobody works on do not pile
// up in memory, and that one that was dropped comes back as it was.
func TestScopesHeldInMemory(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	reg := registryOf(db)
	content := strings.Repeat("x", 900_000)
	var first *Snapshot
	for i := range 24 {
		cs := scopeOf(t, db, Config{Scope: Scope{"project", fmt.Sprint("session-", i)}, Budget: new(MaxBudget)})
		must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "a", Content: content, Tier: Working}))
		if s := snapshot(t, cs); i == 0 {
			first = s
		}
	}
	reg.mu.Lock()
	kept, held, sum := len(reg.scopes), reg.held, 0
	for _, s := range reg.scopes {
		sum += s.held
	}
	_, there := reg.scopes[scopeKey{"project", `["project","session-0"]`}]
	reg.mu.Unlock()
	if held > keptBytes || held != sum || kept >= 24 || kept < 10 || there {
		t.Errorf("%d scopes are kept, with %d bytes, counted as %d; the first one: %v", kept, sum, held, there)
	}
	again := snapshot(t, scopeOf(t, db, Config{Scope: Scope{"project", "session-0"}}))
	if again.SHA != first.SHA || again.Generation != first.Generation {
		t.Error("a scope that was dropped came back as another one")
	}
}
