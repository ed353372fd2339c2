package loci_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

const faultDay = int64(86_400_000_000)

// faultBox is an agent memory on a file system that fails when it is told to.
type faultBox struct {
	t   *testing.T
	vfs *faultvfs.FS
	now int64
	db  *loci.DB
	m   *agent.AgentMemory
}

func newFaultBox(t *testing.T, name string) *faultBox {
	b := &faultBox{t: t, vfs: faultvfs.Register(name), now: 1_000_000_000_000_000}
	t.Cleanup(b.vfs.Close)
	return b
}

func (b *faultBox) open(dir string) {
	b.t.Helper()
	opts := &loci.Options{
		Clock: func() time.Time { return time.UnixMicro(b.now) }, WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true,
	}
	var err error
	if b.db, err = loci.Open(b.t.Context(), dir, loci.OnVFS(opts, b.vfs.Name())); err != nil {
		b.t.Fatal(err)
	}
	if b.m, err = agent.Open(b.t.Context(), b.db, agent.Config{Dimension: 4}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *faultBox) close() {
	b.t.Helper()
	if err := b.db.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// check fails unless the store is sound.
func (b *faultBox) check(n int64) {
	b.t.Helper()
	h, err := b.db.DeepHealth(b.t.Context())
	if err != nil || h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
		b.t.Fatalf("operation %d: %+v %v", n, h, err)
	}
}

// contents are the contents of all facts, in one string.
func (b *faultBox) contents() string {
	b.t.Helper()
	all, err := b.m.Semantic().ListAll(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var s strings.Builder
	for _, f := range all {
		fmt.Fprintln(&s, f.ID, f.Content)
	}
	return s.String()
}

// failEach copies a store again and again, and does something to each copy while
// operation n of its files fails, for every n, or every so many, until none does. Then
// it opens the copy anew and checks it.
func (b *faultBox) failEach(start string, step int64, err error, do func() error, check func(n int64, err error)) {
	b.t.Helper()
	tried := 0
	for n := int64(1); ; n += step {
		dir := b.t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(start)); err != nil {
			b.t.Fatal(err)
		}
		b.open(dir)
		b.vfs.FailAt(n, faultvfs.Write|faultvfs.Sync|faultvfs.Truncate, err, false)
		got := do()
		failed := b.vfs.Failed()
		b.vfs.FailAt(0, 0, nil, false)
		// What it failed with is told; only the index may have to be built anew.
		var e *loci.Error
		if got != nil && (!errors.As(got, &e) || e.Op == "") {
			b.t.Fatalf("operation %d: %v", n, got)
		}
		_ = b.db.Close() // as good as it can after a failure
		b.open(dir)
		b.check(n)
		check(n, got)
		b.check(n)
		b.close()
		if err := os.RemoveAll(dir); err != nil {
			b.t.Fatal(err)
		}
		if tried++; !failed {
			if got != nil {
				b.t.Fatalf("operation %d did not fail: %v", n, got)
			}
			break
		}
	}
	b.t.Logf("%d runs", tried)
	if tried < 5 {
		b.t.Error("too few failures to show anything")
	}
}

// TestAgentRestoreFailures holds that a restore during which the disk fails leaves all
// of the old or all of the new. // N7, Z8
func TestAgentRestoreFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to do")
	}
	b := newFaultBox(t, "agent-restore")
	start := t.TempDir()
	b.open(start)
	ctx := t.Context()
	var states [2]string
	for i, n := range []int{1200, 20} {
		if _, err := b.m.Semantic().Clear(ctx); err != nil {
			t.Fatal(err)
		}
		var batch []agent.FactInput
		for id := range n {
			batch = append(batch, agent.FactInput{
				PointInput: agent.PointInput{ID: loci.PointID(id), Embedding: []float32{1, 0, 0, 0}}, Content: fmt.Sprint("state ", i),
			})
		}
		if err := b.m.Semantic().StoreBatch(ctx, batch); err != nil {
			t.Fatal(err)
		}
		if _, err := b.m.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
		states[i] = b.contents()
	}
	b.close()
	b.failEach(start, 5, faultvfs.ErrDiskFull, func() error {
		_, err := b.m.RestoreVersion(ctx, agent.RestoreRequest{Version: 1})
		return err
	}, func(n int64, err error) {
		got := b.contents()
		if err == nil && got != states[0] || got != states[0] && got != states[1] {
			t.Fatalf("operation %d: %v, and %d bytes of contents", n, err, len(got))
		}
		if _, err := b.m.RestoreVersion(ctx, agent.RestoreRequest{Version: 1}); err != nil || b.contents() != states[0] {
			t.Fatalf("operation %d: restored again: %v", n, err)
		}
		if _, err := b.m.AutoExpire(ctx); err != nil {
			t.Fatal(err)
		}
		h, err := b.db.Health(ctx)
		if err != nil || h.Counts["fact"] != 1200 {
			t.Fatalf("operation %d: %v %v", n, h.Counts, err)
		}
	})
}

// TestAgentExpireFailures holds that what AutoExpire did before the disk failed is
// told, and that another call does the rest, and nothing twice. // A9
func TestAgentExpireFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to do")
	}
	b := newFaultBox(t, "agent-expire")
	start := t.TempDir()
	b.open(start)
	ctx := t.Context()
	const n = 250
	var batch []agent.EpisodeInput
	for id := range loci.PointID(n) {
		batch = append(batch, agent.EpisodeInput{
			PointInput: agent.PointInput{ID: id, Embedding: []float32{1, 0, 0, 0}}, Description: fmt.Sprint("episode ", id), AtUS: new(b.now - faultDay),
		})
	}
	if _, err := b.m.Episodic().RecordBatch(ctx, agent.EpisodeBatch{Episodes: batch}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.m.SetPolicy(ctx, agent.Policy{ConsolidateAfterSeconds: new(int64(60))}); err != nil {
		t.Fatal(err)
	}
	b.close()
	var told *agent.AutoExpired
	between := 0
	b.failEach(start, 3, faultvfs.ErrIO, func() (err error) {
		told, err = b.m.AutoExpire(ctx)
		return err
	}, func(op int64, err error) {
		h, errHealth := b.db.Health(ctx)
		if errHealth != nil {
			t.Fatal(errHealth)
		}
		facts, episodes := h.Counts["fact"], h.Counts["episode"]
		// A commit may have reached the disk and still have failed.
		if facts+episodes != n || facts < told.Consolidated || facts > told.Consolidated+100 || err == nil && facts != n {
			t.Fatalf("operation %d: %d facts and %d episodes, told %+v, %v", op, facts, episodes, told, err)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%d consolidated", told.Consolidated)) {
			t.Fatalf("operation %d: the error tells not what was done: %v", op, err)
		}
		if facts > 0 && episodes > 0 {
			between++
		}
		rest, err := b.m.AutoExpire(ctx)
		if err != nil || rest.Consolidated != episodes {
			t.Fatalf("operation %d: then %+v, %v", op, rest, err)
		}
		if all, err := b.m.Semantic().ListAll(ctx); err != nil || len(all) != n {
			t.Fatalf("operation %d: %d facts, %v", op, len(all), err)
		}
	})
	if between == 0 {
		t.Error("it never failed between two transactions")
	}
}
