package pager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/crash"
)

var crashScope = Scope{"project", "crash"}

// TestCrashChild is what the child processes of this package's tests run; in any
// other process it does nothing.
func TestCrashChild(t *testing.T) {
	role, args := crash.Role()
	switch role {
	case "":
		t.Skip("only in a child process")
	case "work":
		childWork(t, args[0], args[1])
	case "inside":
		childInside(t, args[0], args[1], args[2])
	case "open":
		_, err := loci.Open(t.Context(), args[0], nil)
		crash.Say("%s", loci.CodeOf(err))
	case "look":
		s := must[*Snapshot](t)(scopeOf(t, openDB(t, args[0], nil), Config{Scope: crashScope}).Render(t.Context(), RenderRequest{}))
		crash.Say("%s %s %d", s.SHA, s.CoreSHA, s.Generation)
	default:
		t.Fatalf("unknown role %q", role)
	}
}

// childWork works at random and says what was acknowledged. It never ends.
func childWork(t *testing.T, dir, seed string) {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	cs := scopeOf(t, openDB(t, dir, nil), Config{Scope: crashScope, Budget: new(2000)})
	random := rand.New(rand.NewPCG(n, n))
	crash.Say("open")
	for i := 0; ; i++ {
		id := fmt.Sprintf("w%s-%d", seed, i)
		tier := []Tier{Archive, Working, Working, Core}[random.IntN(4)]
		switch _, err := cs.Write(t.Context(), WriteRequest{PageID: id, Content: "content of " + id, Tier: tier}); {
		case err == nil:
			crash.Say("page %s", id)
		case !errors.Is(err, ErrCoreOverBudget) && !errors.Is(err, ErrBudgetExceeded):
			t.Fatal(err)
		}
		if random.IntN(2) == 0 {
			s := snapshot(t, cs)
			crash.Say("published %d %s", s.Generation, s.SHA)
		}
		if err := disturb(t.Context(), cs, random, true); err != nil {
			t.Fatal(err)
		}
		if err := cs.with(t.Context(), "test", func(s *scope) error {
			// Room in core, or nothing can be pinned any more.
			if len(s.window.core) > 4 {
				id = s.window.core[0].PageID
			} else {
				id = ""
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if id != "" {
			if _, err := cs.Unpin(t.Context(), UnpinRequest{PageID: id}); err != nil && !errors.Is(err, ErrPinned) {
				t.Fatal(err)
			}
		}
	}
}

// TestKillWhileWorking kills a process at work again and again, on top of what
// the last one left: what was acknowledged is there, and no generation stands for
// other bytes than before.
func TestKillWhileWorking(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	random := rand.New(rand.NewPCG(3, 9))
	dir := t.TempDir()
	pages := map[string]bool{}
	published := map[int64]string{}
	for round := range rounds {
		child, err := crash.Start("TestCrashChild", "work", dir, fmt.Sprint(round))
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := child.First(); !ok || line != "open" {
			_, _, output := child.Wait()
			t.Fatalf("round %d: the child did not open the store: %q %s", round, line, output)
		}
		// The moment is what this test varies; nothing depends on which it is.
		time.Sleep(time.Duration(20_000+random.IntN(200_000)) * time.Microsecond)
		child.Kill()
		said, ended, output := child.Wait()
		if ended || strings.Contains(output, "FAIL") {
			t.Fatalf("round %d: the child ended by itself: %s", round, output)
		}
		for _, line := range said {
			var id, sum string
			var generation int64
			if n, _ := fmt.Sscanf(line, "page %s", &id); n == 1 {
				pages[id] = true
			} else if n, _ := fmt.Sscanf(line, "published %d %s", &generation, &sum); n == 2 {
				published[generation] = sum
			}
		}
		checkAfterKill(t, dir, pages, published)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d pages and %d publications were acknowledged in %d rounds", len(pages), len(published), rounds)
	if len(pages) < rounds || len(published) < rounds/2 {
		t.Error("too little was acknowledged to show anything")
	}
}

func checkAfterKill(t *testing.T, dir string, pages map[string]bool, published map[int64]string) {
	t.Helper()
	db, err := loci.Open(t.Context(), dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	cs := scopeOf(t, db, Config{Scope: crashScope})
	for id := range pages {
		if got, err := cs.Read(t.Context(), ReadRequest{PageID: id}); err != nil || got.Content != "content of "+id {
			t.Errorf("%s was acknowledged: %+v, %v", id, got, err)
		}
	}
	last := int64(0)
	for generation, sum := range published {
		last = max(last, generation)
		s := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Since: &generation, Publish: new(false)}))
		if !s.Changed && s.SHA != sum {
			t.Errorf("generation %d was %s, unchanged, and is %s", generation, sum, s.SHA)
		}
	}
	s := snapshot(t, cs)
	if s.Generation < last {
		t.Errorf("generation %d was acknowledged, now it is %d", last, s.Generation)
	}
	if sum, ok := published[s.Generation]; ok && sum != s.SHA {
		t.Errorf("generation %d was %s and is %s", s.Generation, sum, s.SHA)
	}
	published[s.Generation] = s.SHA
	wantCoherent(t, cs)
	checkDeep(t, cs)
}

// killer is a store that kills the process at a moment of an operation.
type killer struct {
	link.Store
	at      string       // "prepare", "stage", "commit" or "done"
	n       int          // of prepare or stage: which one
	counted atomic.Int64 // pages are prepared by several goroutines
}

func (k *killer) die(at string) {
	if at != k.at {
		return
	}
	if k.counted.Add(1) == int64(max(k.n, 1)) { // once: another may come before the process is dead
		crash.Say("killed at %s %d", at, k.n)
		crash.Suicide()
	}
}

func (k *killer) PreparePage(p *store.Page) *index.Prepared {
	k.die("prepare")
	return k.Store.PreparePage(p)
}

func (k *killer) StagePage(tx *store.WriteTx, p *store.Page, prepared *index.Prepared) error {
	k.die("stage")
	return k.Store.StagePage(tx, p, prepared)
}

func (k *killer) Write(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	revision, err := k.Store.Write(ctx, func(tx *store.WriteTx) error {
		err := fn(tx)
		k.die("commit")
		return err
	})
	k.die("done")
	return revision, err
}

var longText = strings.Repeat("A sentence of the long text. ", 40)

// childInside begins an operation and dies in the middle of it.
func childInside(t *testing.T, dir, op, moment string) {
	cs := scopeOf(t, openDB(t, dir, nil), Config{Scope: crashScope})
	k := &killer{Store: cs.reg.link, n: 1}
	if n, err := fmt.Sscanf(moment, "%s %d", &k.at, &k.n); n < 1 {
		t.Fatal(err)
	}
	made := must[*CheckpointsResult](t)(cs.Checkpoints(t.Context(), CheckpointsRequest{}))
	cs.reg.link = k
	var err error
	switch op {
	case "ingest":
		_, err = cs.Ingest(t.Context(), IngestRequest{Content: longText, PageBytes: new(64)})
	case "restore":
		_, err = cs.Restore(t.Context(), RestoreRequest{CheckpointID: made.Checkpoints[0].CheckpointID})
	case "fold":
		_, err = cs.Fold(t.Context(), FoldRequest{Keep: new(1)})
	case "recall":
		_, err = cs.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "archived"}})
	}
	crash.Say("came through: %v", err)
}

// TestKillInside kills a process within an operation: until it is committed
// nothing of it is there, and from then on all of it.
func TestKillInside(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	cs := scopeOf(t, db, Config{Scope: crashScope})
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: "x", Content: "what is archived"})
	must[*CheckpointResult](t)(cs.Checkpoint(t.Context(), CheckpointRequest{}))
	then := snapshot(t, cs)
	for _, id := range []string{"a", "w1", "x"} {
		put(t, cs, WriteRequest{PageID: id, Content: "another content, archived", ExpectedVersion: new(int64(1))})
	}
	writeRow(t, cs, "5")
	must[*PageOutResult](t)(cs.PageOut(t.Context(), PageOutRequest{PageID: "w2"}))
	snapshot(t, cs)
	before := storedDump(t, cs)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ op, moment string }{
		{"ingest", "prepare 3"}, {"ingest", "stage 1"}, {"ingest", "stage 7"}, {"ingest", "commit"}, {"ingest", "done"},
		{"restore", "prepare"}, {"restore", "stage 2"}, {"restore", "commit"}, {"restore", "done"},
		{"fold", "stage"}, {"fold", "commit"}, {"fold", "done"}, {"recall", "commit"}, {"recall", "done"},
	} {
		t.Run(c.op+" "+c.moment, func(t *testing.T) {
			work := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			child, err := crash.Start("TestCrashChild", "inside", work, c.op, c.moment)
			if err != nil {
				t.Fatal(err)
			}
			said, ended, output := child.Wait()
			if ended || len(said) != 1 || !strings.HasPrefix(said[0], "killed at ") {
				t.Fatalf("the child said %q, printed %s", said, output)
			}
			cs := scopeOf(t, openDB(t, work, nil), Config{Scope: crashScope})
			after := storedDump(t, cs)
			d := cmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n"))
			switch {
			case c.moment != "done" && d != "":
				t.Errorf("half of it is there: %s", d)
			case c.moment == "done" && d == "":
				t.Error("it was committed and is not there")
			case c.moment == "done":
				checkInside(t, cs, c.op, then)
			}
			wantCoherent(t, cs)
			checkDeep(t, cs)
		})
	}
}

// checkInside checks that all of an operation is there.
func checkInside(t *testing.T, cs *Store, op string, then *Snapshot) {
	t.Helper()
	switch op {
	case "ingest":
		text := ""
		for i := 1; ; i++ {
			got, err := cs.Read(t.Context(), ReadRequest{PageID: fmt.Sprintf("p%d", i)})
			if err != nil {
				break
			}
			text += got.Content
		}
		if text != longText {
			t.Errorf("the pages are %q", text)
		}
	case "restore":
		for id, content := range map[string]string{"a": strings.Repeat("R", 100), "w1": strings.Repeat("L", 200), "x": "what is archived"} {
			if got := read(t, cs, id); got.Content != content || got.CurrentVersion != 3 {
				t.Errorf("%s is at version %d: %q", id, got.CurrentVersion, got.Content)
			}
		}
		if s := snapshot(t, cs); s.StablePrefixBytes != then.StablePrefixBytes || s.TextBytes != then.TextBytes {
			t.Errorf("restored to %+v, it was %+v", s, then)
		}
	case "fold":
		if s := snapshot(t, cs); !strings.Contains(*s.Text, "milestone 3–4") {
			t.Errorf("folded to %s", *s.Text)
		}
	case "recall":
		if s := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Publish: new(false)})); !strings.Contains(*s.Text, `"id":"x"`) {
			t.Errorf("recalled: %s", *s.Text)
		}
	}
}

// storedDump is all that is stored of the context store.
func storedDump(t testing.TB, cs *Store) string {
	t.Helper()
	var out strings.Builder
	err := dumpStored(cs.reg.link.Read, func(what string, v any) { fmt.Fprintf(&out, "%s %s\n", what, asJSON(t, v)) })
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
