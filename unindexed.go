package loci

import (
	"context"
	"errors"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// writeUnindexed runs an operation of the writer that may change more than an
// index can take at once. The index is out of use from its commit until the
// journal has brought it up again.
func (e *engine) writeUnindexed(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	var taken index.Index
	revision, err := e.write(ctx, func(tx *store.WriteTx) error {
		err := fn(tx)
		if err == nil && e.usableIndex() != nil {
			taken = e.setIndex(nil)
		}
		return err
	})
	if taken != nil {
		e.bringBack(taken)
	}
	return revision, err
}

// bringBack puts an index that was taken out of use back, as soon as it stands
// at the revision of the truth. When it cannot, another one is built.
func (e *engine) bringBack(ix index.Index) {
	back, needed := false, true
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = errs.New(errs.Index, "the index failed on the journal")
			}
		}()
		if err := e.follow(e.background, ix, ix.Revision()); err != nil {
			return err
		}
		var errFollow error
		err = e.store.Between(e.background, func() {
			if e.index.Load() != nil {
				needed = false // a rebuild was there first
				return
			}
			if errFollow = e.follow(e.background, ix, ix.Revision()); errFollow == nil {
				e.setIndex(ix)
				back = true
			}
		})
		return errors.Join(err, errFollow)
	}()
	if back {
		return
	}
	abandon(ix)
	if err != nil && needed && e.background.Err() == nil {
		e.startRebuild(nil)
	}
}
