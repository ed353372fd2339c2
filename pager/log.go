package pager

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// logTail reads the newest entries of a scope's log, newest first.
func logTail[T any](ctx context.Context, s *scope, typ store.LogType, limit int) ([]T, error) {
	out := []T{}
	if s.stored == nil {
		return out, nil
	}
	err := s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		entries, err := tx.LogTail(s.stored.ID, typ, limit)
		if err != nil {
			return err
		}
		for i := range entries {
			var v T
			if err := json.Unmarshal(entries[i].Body, &v); err != nil {
				return errs.Wrap(errs.Storage, err, "the database is damaged: an entry of a scope's log cannot be read")
			}
			out = append(out, v)
		}
		return nil
	})
	return out, err
}

// renderEvents gives the newest changes of the published bytes, newest first.
func (s *scope) renderEvents(ctx context.Context, limit int) ([]RenderEvent, error) {
	return logTail[RenderEvent](ctx, s, store.LogRender, limit)
}

// movements gives the newest entries of the paging ledger, newest first.
func (s *scope) movements(ctx context.Context, limit int) ([]Movement, error) {
	return logTail[Movement](ctx, s, store.LogResidency, limit)
}
