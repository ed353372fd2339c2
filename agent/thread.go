package agent

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// ThreadRequest names a thread.
type ThreadRequest struct {
	Thread string `json:"thread"`
}

// Last gives the episode that holds the last position of a thread, which is where
// whoever brings in a conversation goes on. Its point is nil when nothing live does.
func (s *EpisodicMemory) Last(ctx context.Context, req ThreadRequest) (*Found[loci.Episode], error) {
	const call = "last"
	if err := valid.Label("thread", req.Thread, loci.MaxLabelBytes); err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	var p *store.Point
	err := s.m.read(ctx, s.name(call), func(tx *store.ReadTx, row *store.AgentMemory) error {
		place := row.Place(s.kind)
		position, ok, err := tx.LastInThread(row.NamespaceID, place, s.kind, req.Thread)
		if err != nil || !ok {
			return err
		}
		held, err := tx.PointInThread(row.NamespaceID, place, s.kind, req.Thread, position)
		if err == nil && held != nil && !expired(held, s.m.link.Clock()) {
			p = held
		}
		return err
	})
	return found[loci.Episode](&s.points, p, nil, err)
}
