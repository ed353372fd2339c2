package loci

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// listRecords gives one page of the records of a kind by ascending id. public
// makes the function that turns a stored record into the caller's, with what
// that needs of the snapshot.
func listRecords[T any](ctx context.Context, e *engine, kind store.Kind, req *PageRequest,
	public func(tx *store.ReadTx, namespace string) (func(store.Stored) T, error)) (*Page[T], error) {
	filter, err := req.Filter.check(ctx, "filter.")
	if err != nil {
		return nil, err
	}
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err != nil {
		return nil, err
	}
	if req.After < 0 {
		return nil, errs.Invalid("after", "must not be negative")
	}
	page := &Page[T]{Items: []T{}}
	filter, some := filter.of(kind)
	if !some {
		return page, nil
	}
	var last ID
	err = e.read(ctx, func(tx *store.ReadTx) error {
		convert, err := public(tx, filter.Namespace)
		if err != nil {
			return err
		}
		return tx.Scan(filter.Filter, int64(req.After), limit+1, func(r store.Stored) (bool, error) {
			if !filter.coversMetadata(r.Head()) {
				return true, ctx.Err()
			}
			if len(page.Items) == limit {
				page.NextCursor = last
				return false, nil
			}
			page.Items, last = append(page.Items, convert(r)), ID(r.Head().ID)
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// asIs is for kinds whose records need nothing of the snapshot.
func asIs[T any](convert func(store.Stored) T) func(*store.ReadTx, string) (func(store.Stored) T, error) {
	return func(*store.ReadTx, string) (func(store.Stored) T, error) { return convert, nil }
}
