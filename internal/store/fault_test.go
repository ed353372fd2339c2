package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

// history writes batches until one fails and notes which were acknowledged.
type history struct {
	acknowledged [][]int64 // ids of each batch
	failed       error
}

func (h *history) run(s *Store, batches, size int) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range batches {
		batch := make([]*Memory, size)
		for i := range batch {
			batch[i] = testMemory(rng, i)
		}
		_, err := s.Write(context.Background(), func(tx *WriteTx) error {
			for _, m := range batch {
				if err := tx.AddMemory(m); err != nil {
					return err
				}
				tx.Stage(&m.Record, nil)
			}
			return nil
		})
		if err != nil {
			h.failed = err
			continue
		}
		var ids []int64
		for _, m := range batch {
			ids = append(ids, m.ID)
		}
		h.acknowledged = append(h.acknowledged, ids)
	}
}

// verify reopens without faults and checks that every acknowledged batch is
// there and every other one is there as a whole or not at all.
func (h *history) verify(t *testing.T, dir string, size int) {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal("does not open again: ", err)
	}
	defer s.Close()
	check, err := s.DeepCheck(t.Context())
	if err != nil || check != (Check{Integrity: "ok"}) {
		t.Fatalf("%+v, %v", check, err)
	}
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		for _, ids := range h.acknowledged {
			got, err := tx.Memories(ids)
			if err != nil {
				return err
			}
			if len(got) != len(ids) {
				return fmt.Errorf("%d of an acknowledged batch of %d are there", len(got), len(ids))
			}
		}
		all, _, err := tx.ScanRecords(0, 1<<20)
		if err != nil {
			return err
		}
		perRevision := map[int64]int{}
		for _, m := range all {
			perRevision[m.Head().Revision]++
		}
		for revision, n := range perRevision {
			if n != size {
				return fmt.Errorf("%d of a batch of %d are there at revision %d", n, size, revision)
			}
		}
		if n := s.Counters().Records(); n != int64(len(all)) {
			return fmt.Errorf("%d records, counted %d", len(all), n)
		}
		entries, _, err := tx.Journal(AfterRevision(0), 1<<20)
		if err != nil {
			return err
		}
		if len(entries) != len(all) {
			return fmt.Errorf("%d journal entries for %d records", len(entries), len(all))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryFailure lets operation N of the file system fail, for every N until
// none does: what then happens is an error with a code or a success, and
// nothing that was acknowledged is lost.
func TestEveryFailure(t *testing.T) {
	const batches, size = 4, 30
	for _, c := range []struct {
		name   string
		ops    faultvfs.Op
		err    error
		goesOn bool
		torn   bool
		step   int64
	}{
		{"once", faultvfs.Any, faultvfs.ErrIO, false, false, 1},
		{"from then on", faultvfs.Any, faultvfs.ErrIO, true, false, 1},
		{"torn writes", faultvfs.Write, faultvfs.ErrIO, true, true, 1},
		{"disk full", faultvfs.Write | faultvfs.Truncate, faultvfs.ErrDiskFull, true, false, 1},
		{"disk full once", faultvfs.Write, faultvfs.ErrDiskFull, false, false, 1},
		{"syncs", faultvfs.Sync, faultvfs.ErrIO, false, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step := c.step
			if testing.Short() {
				step = 7
			}
			fs := faultvfs.Register("fault-" + c.name)
			defer fs.Close()
			fs.TearWrites(c.torn)
			tried := 0
			for n := int64(1); ; n += step {
				dir := t.TempDir()
				var h history
				began := time.Now()
				fs.FailAt(n, c.ops, c.err, c.goesOn)
				s, err := Open(t.Context(), dir, Options{VFS: fs.Name(), CheckpointPages: 8})
				if err == nil {
					h.run(s, batches, size)
					if err := s.Close(); err != nil && errs.CodeOf(err) == "" {
						t.Errorf("close: no code on %v", err)
					}
				}
				for _, err := range []error{err, h.failed} {
					if err != nil && errs.CodeOf(err) == "" {
						t.Errorf("no code on %v", err)
					}
				}
				failed := fs.Failed()
				fs.FailAt(0, 0, nil, false)
				h.verify(t, dir, size)
				tried++
				if d := time.Since(began); d > time.Second {
					t.Logf("operation %d: %v", n, d)
				}
				if !failed {
					if len(h.acknowledged) != batches {
						t.Errorf("%d batches without a failure: %v", len(h.acknowledged), h.failed)
					}
					break
				}
			}
			t.Logf("%d places to fail", tried)
		})
	}
}

// TestGroupFails checks that a commit that fails takes every operation that
// shares it along, and that the next one is fine.
func TestGroupFails(t *testing.T) {
	fs := faultvfs.Register("group-fails")
	defer fs.Close()
	var log hookLog
	s, err := Open(t.Context(), t.TempDir(), Options{VFS: fs.Name(), Hooks: &log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	inside, hold := make(chan struct{}), make(chan struct{})
	const n = 5
	errsOf := make(chan error, n)
	go func() {
		_, err := s.Write(context.Background(), func(tx *WriteTx) error {
			close(inside)
			<-hold
			m := testMemory(rng, 0)
			m.Tags = []string{"only in the group that fails"}
			if err := tx.AddMemory(m); err != nil {
				return err
			}
			tx.Stage(&m.Record, nil)
			return nil
		})
		errsOf <- err
	}()
	<-inside
	for range n - 1 {
		go func() {
			_, err := s.Write(context.Background(), func(tx *WriteTx) error { tx.Change(); return nil })
			errsOf <- err
		}()
	}
	waitFor(t, func() bool { return len(s.writer.queue) == n-1 })
	fs.FailAt(1, faultvfs.Sync, faultvfs.ErrIO, false)
	close(hold)
	for range n {
		if err := <-errsOf; !errors.Is(err, errs.IO) {
			t.Error(err)
		}
	}
	if c := s.Counters(); c.Revision != 0 || c.Records() != 0 {
		t.Errorf("%+v", c)
	}
	if log.discards != 1 || log.publishes != 0 {
		t.Errorf("%+v", log)
	}
	addBatch(t, s, []*Memory{testMemory(rng, 1)})
	if c := s.Counters(); c.Revision != 1 || c.Records() != 1 {
		t.Errorf("%+v", c)
	}
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		if _, ok, err := tx.StringID("only in the group that fails"); ok || err != nil {
			t.Error("a string of the failed group is there", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// waitFor waits until another goroutine has come so far.
func waitFor(t *testing.T, there func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !there(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

type hookLog struct {
	stages, publishes, discards int
	revision                    int64
	changes                     []Change
}

func (h *hookLog) Stage(revision int64, changes []Change) {
	h.stages++
	h.revision = revision
	h.changes = append([]Change(nil), changes...)
}
func (h *hookLog) Publish() { h.publishes++ }
func (h *hookLog) Discard() { h.discards++ }
