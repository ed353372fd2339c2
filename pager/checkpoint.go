package pager

import (
	"context"
	"slices"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

const (
	// MaxCheckpointLabelBytes bounds the label of a checkpoint.
	MaxCheckpointLabelBytes = 200
	defaultCheckpoints      = 100
	maxCheckpoints          = 1000
)

// CheckpointRequest remembers where every page stands.
type CheckpointRequest struct {
	Label string `json:"label,omitempty"` // for people, at most 200 bytes
}

// CheckpointInfo describes a checkpoint.
type CheckpointInfo struct {
	CheckpointID loci.ID `json:"checkpoint_id"`
	Label        string  `json:"label,omitempty"`
	CreatedAtUS  int64   `json:"created_at_us"`
	Pages        int     `json:"pages"` // in all tiers
	Core         int     `json:"core"`
	Working      int     `json:"working"`
	Archive      int     `json:"archive"`
}

// CheckpointResult names the checkpoint that was made.
type CheckpointResult struct {
	Checkpoint CheckpointInfo `json:"checkpoint"`
	// Redacted is what was taken out of the request, see loci.WithRedaction.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// Checkpoint remembers the version, the tier and the place of every page of the
// scope, for Restore. Nothing of the window changes. All checkpoints are kept;
// each takes some six bytes a page.
func (cs *Store) Checkpoint(ctx context.Context, req CheckpointRequest) (*CheckpointResult, error) {
	const op = "checkpoint"
	redactor := cs.reg.link.Redactor(ctx)
	req.Label = redactor.Text(req.Label)
	if err := validText("label", req.Label, MaxCheckpointLabelBytes); err != nil {
		return nil, withOp(op, err)
	}
	var made *store.Checkpoint
	err := cs.mutate(ctx, op, func(c *change) error {
		made = &store.Checkpoint{Label: req.Label, At: c.now}
		if err := c.scope.places(ctx, func(p store.CheckpointPage) { made.Pages = append(made.Pages, p) }); err != nil {
			return err
		}
		c.then(func(tx *store.WriteTx) error {
			made.Context = c.scope.stored.ID
			return tx.AddCheckpoint(made)
		})
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return &CheckpointResult{Checkpoint: infoOf(made), Redacted: redactedBy(redactor)}, nil
}

// places calls fn with every page of the scope as it is stored, by ascending
// record.
func (s *scope) places(ctx context.Context, fn func(store.CheckpointPage)) error {
	if s.stored == nil {
		return nil
	}
	return s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		err := tx.PagePlaces(s.stored.ID, func(p store.CheckpointPage) bool {
			fn(p)
			return ctx.Err() == nil
		})
		if err == nil {
			err = ctx.Err()
		}
		return err
	})
}

// infoOf describes a checkpoint whose pages are there.
func infoOf(c *store.Checkpoint) CheckpointInfo {
	info := CheckpointInfo{CheckpointID: loci.ID(c.ID), Label: c.Label, CreatedAtUS: c.At, Pages: len(c.Pages)}
	for i := range c.Pages {
		switch c.Pages[i].Tier {
		case store.TierCore:
			info.Core++
		case store.TierWorking:
			info.Working++
		default:
			info.Archive++
		}
	}
	return info
}

// CheckpointsRequest lists the scope's checkpoints.
type CheckpointsRequest struct {
	Limit *int    `json:"limit,omitempty"` // 1..1000, default 100
	After loci.ID `json:"after,omitempty"` // next_cursor of the answer before, for those behind it
}

// CheckpointsResult are checkpoints, newest first.
type CheckpointsResult struct {
	Checkpoints []CheckpointInfo `json:"checkpoints"`
	Total       int              `json:"total"`                 // of the scope
	NextCursor  loci.ID          `json:"next_cursor,omitempty"` // there are more behind it
}

// Checkpoints lists the scope's checkpoints, newest first.
func (cs *Store) Checkpoints(ctx context.Context, req CheckpointsRequest) (*CheckpointsResult, error) {
	const op = "checkpoints"
	limit, err := validLimit("limit", req.Limit, defaultCheckpoints, 1, maxCheckpoints)
	if err == nil && req.After < 0 {
		err = invalid("after", "must be the next_cursor of an answer before")
	}
	if err != nil {
		return nil, withOp(op, err)
	}
	out := &CheckpointsResult{Checkpoints: []CheckpointInfo{}}
	err = cs.with(ctx, op, func(s *scope) error {
		if s.stored == nil {
			return nil
		}
		return s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
			all, err := tx.Checkpoints(s.stored.ID)
			if err != nil {
				return err
			}
			out.Total = len(all)
			for i, c := range slices.Backward(all) {
				if req.After != 0 && c.ID >= int64(req.After) {
					continue
				}
				whole, err := tx.Checkpoint(s.stored.ID, c.ID)
				if err != nil {
					return err
				}
				if whole == nil {
					return errs.New(errs.Storage, "checkpoint %d vanished while it was read", c.ID)
				}
				out.Checkpoints = append(out.Checkpoints, infoOf(whole))
				if len(out.Checkpoints) == limit {
					if i > 0 {
						out.NextCursor = loci.ID(c.ID)
					}
					break
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
