package loci

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Delete removes one entity, relation or event; false when there is none under
// the filter. An entity that a relation or an event refers to is ErrConflict.
func (s *GraphStore) Delete(ctx context.Context, kind Kind, id ID, f ReadFilter) (*Receipt[bool], error) {
	const op = "graph.delete"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	number, err := graphKind(kind)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, err := f.checkWrite(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, some := filter.of(number)
	deleted := false
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		if !some {
			return nil
		}
		r, err := tx.RecordOf(number, int64(id))
		if err != nil || r == nil || !filter.covers(r.Head()) {
			return err
		}
		deleted = true
		return deleteGraphRecord(tx, AccessFrom(ctx), r.Head())
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[bool]{Value: deleted, Revision: revision}, nil
}

// deletionOrder is the order in which the graph's kinds go: what refers before
// what is referred to.
var deletionOrder = []store.Kind{store.KindRelation, store.KindEvent, store.KindEntity}

// DeleteByFilter removes every relation, event and entity that the filter covers
// and gives their number. When an entity among them is referred to by a relation
// or an event that stays it is ErrConflict and nothing is deleted; a dry run says
// so too.
func (s *GraphStore) DeleteByFilter(ctx context.Context, req DeleteRequest) (*Receipt[int64], error) {
	const op = "graph.delete_by_filter"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := req.Filter.checkWrite(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	// As with memories, the reading is done in a snapshot, for other writers not
	// to wait for it.
	var found [][]int64
	var n, revision int64
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		revision = tx.Revision()
		for _, kind := range deletionOrder {
			ids, err := coveredIDs(tx, filter, kind)
			if err != nil {
				return err
			}
			found, n = append(found, ids), n+int64(len(ids))
		}
		if req.DryRun {
			return staysBehind(tx, AccessFrom(ctx), found[2], append(slices.Clone(found[0]), found[1]...))
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if req.DryRun || n == 0 {
		return &Receipt[int64]{Value: n, Revision: revision}, nil
	}
	n = 0
	revision, err = s.eng.writeMany(ctx, func(tx *store.WriteTx) error {
		for i, kind := range deletionOrder {
			narrowed, _ := filter.of(kind)
			for _, id := range found[i] {
				if err := ctx.Err(); err != nil {
					return err
				}
				r, err := tx.RecordOf(kind, id)
				if err != nil {
					return err
				}
				if r == nil || !narrowed.covers(r.Head()) {
					continue
				}
				if err := deleteGraphRecord(tx, AccessFrom(ctx), r.Head()); err != nil {
					return err
				}
				n++
			}
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[int64]{Value: n, Revision: revision}, nil
}

// deleteGraphRecord deletes a record. The conflict with what stands on an entity
// does not name what the caller may not read.
func deleteGraphRecord(tx *store.WriteTx, access *Access, r *store.Record) error {
	err := tx.Delete(r)
	if access == nil || errs.CodeOf(err) != errs.Conflict || r.Kind != store.KindEntity {
		return err
	}
	_, by, refErr := tx.ReferenceTo(r.ID)
	if refErr != nil {
		return refErr
	}
	if ok, placeErr := readable(tx, access, by); placeErr != nil || ok {
		return cmp.Or(placeErr, err)
	}
	return errs.New(errs.Conflict, "entity %d stands in %s: it stays as long as that does", r.ID, unseenReference)
}

// coveredIDs gives the ids of the records of a kind that the filter covers.
func coveredIDs(tx *store.ReadTx, filter *readFilter, kind store.Kind) (ids []int64, err error) {
	filter, some := filter.of(kind)
	if !some {
		return nil, nil
	}
	err = tx.Scan(filter.Filter, 0, 0, func(r store.Stored) (bool, error) {
		if filter.coversMetadata(r.Head()) {
			ids = append(ids, r.Head().ID)
		}
		return true, nil
	})
	return ids, err
}

// staysBehind is the conflict of deleting entities while one of them is referred
// to by something that does not go; nil when there is none.
func staysBehind(tx *store.ReadTx, access *Access, entities, going []int64) error {
	goes := make(map[int64]bool, len(going))
	for _, id := range going {
		goes[id] = true
	}
	for _, entity := range entities {
		for _, look := range []func(int64) ([]int64, error){tx.RelationsOf, tx.EventsOf} {
			ids, err := look(entity)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if goes[id] {
					continue
				}
				what := fmt.Sprintf("record %d", id)
				if ok, err := readable(tx, access, id); err != nil {
					return err
				} else if !ok {
					what = unseenReference
				}
				return &errs.Error{Code: errs.Conflict,
					Message: fmt.Sprintf("entity %d is referred to by %s, which the filter does not cover", entity, what)}
			}
		}
	}
	return nil
}
