package agent

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// AutoExpired says what AutoExpire did.
type AutoExpired struct {
	Swept        int64 `json:"swept"`        // expired points of the memory that were removed
	Consolidated int64 `json:"consolidated"` // episodes that became facts
	Evicted      int64 `json:"evicted"`      // procedures that were removed
	Trimmed      int64 `json:"trimmed"`      // earlier versions that were removed
	// Truncated says that more episodes are old enough: another call goes on.
	Truncated bool `json:"truncated"`
}

const (
	// mostConsolidated is how many episodes one call turns into facts.
	mostConsolidated = 1000
	// expireBatch is how many points one transaction moves or removes: other writers
	// wait no longer than that takes.
	expireBatch = 100
	sweptBatch  = 250
)

// AutoExpire does what the memory's policy says, now: it removes what has expired,
// and what lies in the store of memories that were replaced; turns episodes that are
// older than consolidate_after_seconds into facts, the oldest first and at most 1000;
// removes procedures whose confidence is below evict_below_confidence and that were
// used; and removes earlier versions beyond keep_versions. A fact that was an episode
// has its id if that is free, else a new one, its time as the time from which it is
// valid, and its expiry, metadata, tags, thread, vector and relations; its position if
// no fact has that; but not its earlier versions.
//
// It works in short transactions. When one fails, or ctx ends, both results are there:
// what was done until then, which stays, and the error, which tells of it too. It may
// be called by several at once: no episode becomes two facts.
func (m *AgentMemory) AutoExpire(ctx context.Context) (*AutoExpired, error) {
	const op = "agent.auto_expire"
	out := &AutoExpired{}
	leave, err := m.enterWriting(ctx, op)
	if err != nil {
		return out, err
	}
	defer leave()
	work, stop := m.link.UntilClosing(ctx)
	defer stop()
	if err := m.autoExpire(work, out); err != nil {
		code := errs.CodeOf(err)
		switch {
		case ctx.Err() == nil && work.Err() != nil:
			code = errs.Closed
		case code == "":
			code = errs.Storage
		}
		return out, &errs.Error{Code: code, Op: op, Message: fmt.Sprintf("it ended with %d swept, %d consolidated, %d evicted, %d versions removed",
			out.Swept, out.Consolidated, out.Evicted, out.Trimmed), Err: err}
	}
	return out, nil
}

func (m *AgentMemory) autoExpire(ctx context.Context, out *AutoExpired) error {
	row, err := m.stored(ctx)
	if err != nil || row.ID == 0 {
		return err
	}
	// Points that come back by a restore are not to be moved to where they are gone
	// with what it replaces.
	done, err := m.take(ctx, workPlaces)
	if err != nil {
		return err
	}
	defer done()
	for _, step := range []func(context.Context, *AutoExpired) error{m.sweep, m.consolidate, m.evict, m.trim} {
		if err := step(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// batches runs fn in transactions of their own until it has no more to do.
func (m *AgentMemory) batches(ctx context.Context, fn func(*store.WriteTx, *store.AgentMemory) (n int, more bool, err error), count *int64) error {
	for more := true; more; {
		var n int
		_, err := m.link.WriteMany(ctx, func(tx *store.WriteTx) error {
			row, err := m.row(tx)
			if err != nil {
				return err
			}
			n, more, err = fn(tx, row)
			return err
		})
		if err != nil {
			return err
		}
		*count += int64(n)
	}
	return nil
}

// sweep removes the memory's expired points, and then whatever else the background
// would remove.
func (m *AgentMemory) sweep(ctx context.Context, out *AutoExpired) error {
	for _, k := range pointKinds() {
		err := m.batches(ctx, func(tx *store.WriteTx, row *store.AgentMemory) (int, bool, error) {
			points, err := tx.ExpiredPointsIn(row.Place(k), m.link.Clock(), sweptBatch)
			return len(points), len(points) == sweptBatch, removeAll(tx, points, err)
		}, &out.Swept)
		if err != nil {
			return err
		}
	}
	_, err := m.link.Sweep(ctx)
	return err
}

func removeAll(tx *store.WriteTx, points []*store.Point, err error) error {
	for _, p := range points {
		if err == nil {
			err = tx.RemovePoint(p)
		}
	}
	return err
}

// evict removes procedures that served too badly.
func (m *AgentMemory) evict(ctx context.Context, out *AutoExpired) error {
	return m.batches(ctx, func(tx *store.WriteTx, row *store.AgentMemory) (int, bool, error) {
		policy, err := policyOf(row)
		if err != nil || policy.EvictBelowConfidence == nil {
			return 0, false, err
		}
		points, err := tx.PointsBelow(row.Place(store.KindProcedure), *policy.EvictBelowConfidence, expireBatch)
		return len(points), len(points) == expireBatch, removeAll(tx, points, err)
	}, &out.Evicted)
}

// trim removes earlier versions that the policy does not keep any more, which only
// one that has become stricter has left.
func (m *AgentMemory) trim(ctx context.Context, out *AutoExpired) error {
	for _, k := range pointKinds() {
		for after := (*uint64)(nil); ; {
			var long []int64
			var last uint64
			err := m.link.Read(ctx, func(tx *store.ReadTx) error {
				row, err := m.row(tx)
				if err != nil {
					return err
				}
				policy, err := policyOf(row)
				if err != nil {
					return err
				}
				long, last, err = tx.LongHistories(row.Place(k), policy.keepVersions(), after, expireBatch)
				return err
			})
			if err != nil {
				return err
			}
			if len(long) == 0 {
				break
			}
			err = m.batches(ctx, func(tx *store.WriteTx, row *store.AgentMemory) (n int, more bool, err error) {
				policy, err := policyOf(row)
				for _, id := range long {
					if err != nil {
						break
					}
					var trimmed int64
					trimmed, err = tx.TrimPointVersions(id, policy.keepVersions())
					n += int(trimmed)
				}
				return n, false, err
			}, &out.Trimmed)
			if err != nil {
				return err
			}
			after = &last
		}
	}
	return nil
}

// SetSemanticTTL is SetTTL of the memory's facts.
func (m *AgentMemory) SetSemanticTTL(ctx context.Context, req TTLRequest) (*loci.Receipt[Stored], error) {
	return m.Semantic().SetTTL(ctx, req)
}

// SetEpisodicTTL is SetTTL of the memory's episodes.
func (m *AgentMemory) SetEpisodicTTL(ctx context.Context, req TTLRequest) (*loci.Receipt[Stored], error) {
	return m.Episodic().SetTTL(ctx, req)
}

// SetProceduralTTL is SetTTL of the memory's procedures.
func (m *AgentMemory) SetProceduralTTL(ctx context.Context, req TTLRequest) (*loci.Receipt[Stored], error) {
	return m.Procedural().SetTTL(ctx, req)
}
