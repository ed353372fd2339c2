package loci

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Get gives one memory. Outside the filter it is ErrNotFound.
func (s *MemoryStore) Get(ctx context.Context, id ID, f ReadFilter) (*Memory, error) {
	const op = "memories.get"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	var found *store.Memory
	if filter.memories() {
		err = s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
			found, err = tx.Memory(int64(id))
			return err
		})
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if found == nil || !filter.covers(&found.Record) {
		return nil, &errs.Error{Code: errs.NotFound, Op: op, Field: "id",
			Message: fmt.Sprintf("there is no memory %d under this filter", id)}
	}
	m := memoryOf(found)
	return &m, nil
}

// List gives one page of memories by ascending id.
func (s *MemoryStore) List(ctx context.Context, req PageRequest) (*Page[Memory], error) {
	const op = "memories.list"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	page, err := listRecords(ctx, s.eng, store.KindMemory, &req, asIs(func(r store.Stored) Memory { return memoryOf(r.(*store.Memory)) }))
	return page, errs.WithOp(op, err)
}

// Delete removes one memory; false when there is none under the filter.
func (s *MemoryStore) Delete(ctx context.Context, id ID, f ReadFilter) (*Receipt[bool], error) {
	const op = "memories.delete"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.checkWrite(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	covers := filter.memories()
	deleted := false
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		if !covers {
			return nil
		}
		m, err := tx.Memory(int64(id))
		if err != nil || m == nil || !filter.covers(&m.Record) {
			return err
		}
		deleted = true
		return tx.Delete(&m.Record)
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[bool]{Value: deleted, Revision: revision}, nil
}

// DeleteByFilter removes every memory the filter covers and gives their
// number.
func (s *MemoryStore) DeleteByFilter(ctx context.Context, req DeleteRequest) (*Receipt[int64], error) {
	const op = "memories.delete_by_filter"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := req.Filter.checkWrite(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	ids, revision, err := s.covered(ctx, filter, func(*store.Memory) bool { return true })
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if req.DryRun || len(ids) == 0 {
		return &Receipt[int64]{Value: int64(len(ids)), Revision: revision}, nil
	}
	var n int64
	revision, err = s.eng.writeMany(ctx, func(tx *store.WriteTx) error {
		return eachCovered(ctx, tx, filter, ids, func(m *store.Memory) error {
			n++
			return tx.Delete(&m.Record)
		})
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[int64]{Value: n, Revision: revision}, nil
}

// covered gives the ids of the memories that the filter covers and keep wants,
// and the revision of the snapshot that they were read in. An operation over
// many records finds them in a snapshot first, so that other writers need not
// wait for the reading; the writer then looks at each again.
func (s *MemoryStore) covered(ctx context.Context, filter *readFilter, keep func(*store.Memory) bool) (ids []int64, revision int64, err error) {
	covers := filter.memories()
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		revision = tx.Revision()
		if !covers {
			return nil
		}
		return tx.ScanMemories(filter.Filter, 0, 0, func(m *store.Memory) (bool, error) {
			if filter.coversMetadata(&m.Record) && keep(m) {
				ids = append(ids, m.ID)
			}
			return true, nil
		})
	})
	return ids, revision, err
}

// eachCovered calls fn with those of the memories that the filter still
// covers.
func eachCovered(ctx context.Context, tx *store.WriteTx, filter *readFilter, ids []int64, fn func(*store.Memory) error) error {
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := tx.Memory(id)
		if err != nil {
			return err
		}
		if m == nil || !filter.covers(&m.Record) {
			continue
		}
		if err := fn(m); err != nil {
			return err
		}
	}
	return nil
}

// uniqueIDs drops repeats and keeps the order.
func uniqueIDs(ids []ID) []ID {
	seen := make(map[ID]bool, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool {
		if seen[id] {
			return true
		}
		seen[id] = true
		return false
	})
}
