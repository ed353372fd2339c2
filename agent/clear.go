package agent

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Clear removes all points, with their history and relations, and gives the number of
// those that were live. The dimension stays, and ids may be used again. However many
// points there are, others see all of them or none, and wait for none of it: the
// background removes them. It waits while a restore of the memory runs.
func (s *points) Clear(ctx context.Context) (*loci.Receipt[int64], error) {
	op := s.name("clear")
	leave, err := s.m.enterWriting(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	work, stop := s.m.link.UntilClosing(ctx)
	defer stop()
	out, err := s.clear(work, op)
	return out, errs.WithOp(op, closing(ctx, work, err))
}

func (s *points) clear(ctx context.Context, op string) (*loci.Receipt[int64], error) {
	done, err := s.m.take(ctx, workPlaces)
	if err != nil {
		return nil, err
	}
	defer done()
	out := &loci.Receipt[int64]{}
	some := false
	err = s.m.read(ctx, op, func(tx *store.ReadTx, row *store.AgentMemory) error {
		stored, err := tx.PointsFrom(row.Place(s.kind), 0, 1)
		some, out.Revision = len(stored) > 0, tx.Revision()
		return err
	})
	if err != nil || !some {
		return out, err
	}
	out.Revision, err = s.m.write(ctx, op, func(tx *store.WriteTx, row *store.AgentMemory) error {
		old := row.Place(s.kind)
		n, err := tx.CountPoints(old, s.m.link.Clock())
		if err != nil {
			return err
		}
		out.Value = n
		place, err := tx.StagePlace(row, s.kind)
		if err != nil {
			return err
		}
		if err := tx.SetPlace(row, s.kind, place); err != nil {
			return err
		}
		for _, k := range pointKinds() {
			if k == s.kind {
				continue
			}
			// They would hold the ids of relations to new points.
			if _, err := tx.DropEdges(row.Place(k), old); err != nil {
				return err
			}
		}
		return tx.UpdateAgentMemory(row)
	})
	if err != nil {
		return nil, err
	}
	s.m.link.SweepSoon()
	return out, nil
}
