package pager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

var errInjected = errors.New("the disk failed")

// faulty is a store of which one access fails: a read before it begins, a write
// once all of it is done and before it is committed.
type faulty struct {
	link.Store
	left   int // accesses before the one that fails
	failed bool
	wrote  bool // something was committed
}

func (f *faulty) hit() bool {
	f.left--
	f.failed = f.failed || f.left == -1
	return f.left == -1
}

func (f *faulty) Read(ctx context.Context, fn func(*store.ReadTx) error) error {
	if f.hit() {
		return errInjected
	}
	return f.Store.Read(ctx, fn)
}

func (f *faulty) Write(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	fails := f.hit()
	revision, err := f.Store.Write(ctx, func(tx *store.WriteTx) error {
		if err := fn(tx); err != nil || !fails {
			return err
		}
		return errInjected
	})
	f.wrote = f.wrote || err == nil
	return revision, err
}

func (f *faulty) CopyOf(ctx context.Context, namespace string, kind store.Kind, id int64) (*link.Copy, error) {
	if f.hit() {
		return nil, errInjected
	}
	return f.Store.CopyOf(ctx, namespace, kind, id)
}

func (f *faulty) Similar(ctx context.Context, p *store.Page, limit int) ([]link.Scored, bool, error) {
	if f.hit() {
		return nil, false, errInjected
	}
	return f.Store.Similar(ctx, p, limit)
}

// TestEveryFault lets every access to the truth fail in turn, in every operation
// that changes something, until it comes through. As long as nothing was
// committed all is as it was, on disk and in memory; where only the answer could
// not be made, the error says so.
func TestEveryFault(t *testing.T) {
	ctx := t.Context()
	for _, loaded := range []bool{true, false} {
		w := newWorld(t, t.TempDir(), Config{Scope: Scope{"project", "faulty"}, Budget: new(1400)})
		cs := w.cs
		writeBase(t, cs)
		for _, n := range []string{"5", "6", "7"} {
			writeRow(t, cs, n)
		}
		put(t, cs, WriteRequest{PageID: "x", Content: "an archived page about harbors", Links: []string{"a", "w1"}})
		put(t, cs, WriteRequest{PageID: "y", Content: "another archived page about harbors"})
		memory := must[*loci.Receipt[loci.Memory]](t)(w.db.Memories().Upsert(ctx, loci.MemoryInput{Judgment: "harbors are wide", RecordInput: loci.RecordInput{Namespace: new("project")}})).Value
		id := copyID(store.KindMemory, int64(memory.ID))
		made := must[*CheckpointResult](t)(cs.Checkpoint(ctx, CheckpointRequest{})).Checkpoint
		faults := 0
		for _, o := range []struct {
			name string
			call func() error
		}{
			{"snapshot", func() error { _, err := cs.Snapshot(ctx, SnapshotRequest{}); return err }},
			{"write", func() error {
				_, err := cs.Write(ctx, WriteRequest{PageID: "new", Content: strings.Repeat("n", 300), Tier: Working, Links: []string{"a", "x"}})
				return err
			}},
			{"rewrite", func() error {
				_, err := cs.Write(ctx, WriteRequest{PageID: "x", Content: "x anew about harbors", ExpectedVersion: new(int64(1)), Links: []string{"b"}})
				return err
			}},
			{"page_in", func() error { _, err := cs.PageIn(ctx, PageInRequest{PageID: id}); return err }},
			{"page_in core", func() error { _, err := cs.PageIn(ctx, PageInRequest{PageID: "x", Tier: Core}); return err }},
			{"unpin", func() error { _, err := cs.Unpin(ctx, UnpinRequest{PageID: "x"}); return err }},
			{"page_out", func() error { _, err := cs.PageOut(ctx, PageOutRequest{PageID: "x"}); return err }},
			{"recall", func() error {
				_, err := cs.Recall(ctx, RecallRequest{SearchRequest: SearchRequest{Query: "harbors", Kinds: []loci.Kind{loci.KindPage, loci.KindMemory}}})
				return err
			}},
			{"organize", func() error {
				_, err := cs.Organize(ctx, OrganizeRequest{PageID: "x", Threshold: new(0.1)})
				return err
			}},
			{"compact", func() error {
				_, err := cs.Compact(ctx, CompactRequest{PageID: "a", Summary: "RR", ExpectedVersion: new(int64(1))})
				return err
			}},
			{"ingest", func() error { _, err := cs.Ingest(ctx, IngestRequest{Content: longText}); return err }},
			{"fold", func() error { _, err := cs.Fold(ctx, FoldRequest{Keep: new(2)}); return err }},
			{"checkpoint", func() error { _, err := cs.Checkpoint(ctx, CheckpointRequest{}); return err }},
			{"policy_tick", func() error { _, err := cs.PolicyTick(ctx, PolicyTickRequest{Force: true}); return err }},
			{"set_policy", func() error { _, err := cs.SetPolicy(ctx, SetPolicyRequest{EveryN: new(3)}); return err }},
			{"record_usage", func() error { _, err := cs.RecordUsage(ctx, RecordUsageRequest{InputTokens: 1}); return err }},
			{"restore", func() error { _, err := cs.Restore(ctx, RestoreRequest{CheckpointID: made.CheckpointID}); return err }},
			{"forget", func() error { _, err := cs.Forget(ctx, ForgetRequest{PageID: "x"}); return err }},
			{"reconfigure", func() error {
				_, err := Open(ctx, w.db, Config{Scope: w.scope, Budget: new(1400), Counter: lineTokens{}, Reconfigure: true})
				return err
			}},
		} {
			real := cs.reg.link
			for n := 0; ; n++ {
				before := w.dump()
				if !loaded {
					w.inside(func(s *scope) { s.loaded = false })
				}
				f := &faulty{Store: real, left: n}
				cs.reg.link = f
				err := o.call()
				cs.reg.link = real
				if !f.failed {
					if err != nil {
						t.Fatalf("%s: %v", o.name, err)
					}
					break
				}
				faults++
				switch {
				case f.wrote:
					// Swallowed it must not be; and the caller has to know.
					if err == nil || !strings.Contains(err.Error(), "is stored") {
						t.Errorf("%s, fault %d after the commit: %v", o.name, n, err)
					}
				case !errors.Is(err, errInjected):
					t.Errorf("%s, fault %d: %v", o.name, n, err)
				default:
					if d := cmp.Diff(strings.Split(before, "\n"), strings.Split(w.dump(), "\n")); d != "" {
						t.Errorf("%s, fault %d, changed something: %s", o.name, n, d)
					}
				}
				if f.wrote {
					break // it has happened
				}
			}
			wantCoherent(t, scopeOf(t, w.db, Config{Scope: w.scope}))
		}
		if faults < 30 {
			t.Errorf("%d faults only", faults)
		}
		w.cs = scopeOf(t, w.db, Config{Scope: w.scope})
		w.close()
	}
}

// TestCanceledAfterCommit ends the context at the moment of the commit: what was
// written is answered as written.
func TestCanceledAfterCommit(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	ctx, cancel := context.WithCancel(t.Context())
	real := cs.reg.link
	cs.reg.link = &canceling{real, cancel}
	res, err := cs.Write(ctx, WriteRequest{PageID: "new", Content: "text", Links: []string{"a"}})
	cs.reg.link = real
	if err != nil || !slices.Equal(res.Page.Links, []string{"a"}) {
		t.Errorf("%+v, %v", res, err)
	}
}

type canceling struct {
	link.Store
	cancel func()
}

func (c *canceling) Write(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	revision, err := c.Store.Write(ctx, fn)
	c.cancel()
	return revision, err
}
