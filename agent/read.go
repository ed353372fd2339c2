package agent

import (
	"context"
	"strconv"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

const (
	defaultPage = 50
	defaultK    = 10
)

// checkLimit gives a limit or its default.
func checkLimit(field string, limit *int, otherwise int) (int, error) {
	n := valueOr(limit, otherwise)
	if n < 1 || n > loci.MaxPage {
		return 0, errs.Invalid(field, "must be 1 to %d, not %d", loci.MaxPage, n)
	}
	return n, nil
}

// checkOffset checks how many hits are to be left out.
func checkOffset(offset int) error {
	if offset < 0 {
		return errs.Invalid("offset", "must be 0 or more, not %d", offset)
	}
	return nil
}

// livePoint reads the live point of an id; nil when there is none.
func (s *points) livePoint(tx *store.ReadTx, row *store.AgentMemory, key uint64) (*store.Point, error) {
	p, err := tx.PointByKey(row.Place(s.kind), key)
	if err != nil || p == nil || expired(p, s.m.link.Clock()) {
		return nil, err
	}
	return p, nil
}

// get reads a point and, if that is asked for, its vector.
func (s *points) get(ctx context.Context, req GetRequest) (p *store.Point, embedding []float32, err error) {
	err = s.m.read(ctx, s.name("get"), func(tx *store.ReadTx, row *store.AgentMemory) error {
		if p, err = s.livePoint(tx, row, uint64(req.ID)); err != nil || p == nil {
			return err
		}
		if req.AsOfRecordedUS != nil {
			policy, err := policyOf(row)
			if err != nil {
				return err
			}
			p, err = believed(tx, p, *req.AsOfRecordedUS, &policy)
			return err
		}
		if !req.WithEmbedding {
			return nil
		}
		space, err := tx.Space(row.Space)
		if err != nil || space == nil {
			return err
		}
		v, _, ok, err := tx.Vector(space.ID, p.ID, nil)
		if ok {
			embedding = v
		}
		return err
	})
	return p, embedding, err
}

// list reads a page of live points by ascending id, and gives the cursor of the
// next one.
func (s *points) list(ctx context.Context, req ListRequest, fn func(*store.Point)) (next string, err error) {
	op := s.name("list")
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err != nil {
		return "", errs.WithOp(op, err)
	}
	after, err := cursorKey(req.Cursor)
	if err != nil {
		return "", errs.WithOp(op, err)
	}
	err = s.m.read(ctx, op, func(tx *store.ReadTx, row *store.AgentMemory) error {
		policy, err := policyOf(row)
		if err != nil {
			return err
		}
		// One more than is wanted says whether there is a next page.
		found, err := tx.PointsAfter(row.Place(s.kind), s.m.link.Clock(), after, limit+1)
		if err != nil {
			return err
		}
		if len(found) > limit {
			found = found[:limit]
			next = keyCursor(found[limit-1].Key)
		}
		for _, p := range found {
			if req.AsOfRecordedUS != nil {
				if p, err = believed(tx, p, *req.AsOfRecordedUS, &policy); err != nil {
					return err
				}
			}
			if p != nil {
				fn(p)
			}
		}
		return nil
	})
	return next, err
}

// keyCursor and cursorKey turn the id of the last point of a page into a cursor and
// back.
func keyCursor(key uint64) string { return strconv.FormatUint(key, 10) }

func cursorKey(cursor string) (*uint64, error) {
	if cursor == "" {
		return nil, nil
	}
	key, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil || keyCursor(key) != cursor {
		return nil, errs.Invalid("cursor", "is not one that a page gave")
	}
	return &key, nil
}

// eachText calls fn with the id and text of every live point, by ascending id, as
// they are at one time.
func (s *points) eachText(ctx context.Context, fn func(id loci.PointID, text string)) error {
	return s.m.read(ctx, s.name("list_all"), func(tx *store.ReadTx, row *store.AgentMemory) error {
		now := s.m.link.Clock()
		for after := (*uint64)(nil); ; {
			n := 0
			err := tx.PointTexts(row.Place(s.kind), now, after, loci.MaxPage, func(key uint64, content string) {
				fn(loci.PointID(key), content)
				n, after = n+1, &key
			})
			if err != nil || n < loci.MaxPage {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	})
}

// Count is the number of live points.
func (s *points) Count(ctx context.Context) (*Count, error) {
	op := s.name("count")
	leave, err := s.m.enter(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	var n int64
	err = s.m.link.Pair(ctx, func(tx *store.ReadTx, view index.View) error {
		row, err := s.m.row(tx)
		if err != nil {
			return err
		}
		if view != nil {
			n, err = view.Count(index.Filter{
				Namespace: row.NamespaceID, Kinds: []index.Kind{index.Kind(s.kind)}, Scopes: []int64{row.Place(s.kind)}, Now: s.m.link.Clock(),
			})
			if err == nil {
				return nil
			}
			s.m.link.IndexFailed()
		}
		n, err = tx.CountPoints(row.Place(s.kind), s.m.link.Clock())
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Count{Count: n, Empty: n == 0}, nil
}

// IsEmpty says whether there is no live point.
func (s *points) IsEmpty(ctx context.Context) (bool, error) {
	n, err := s.Count(ctx)
	if err != nil {
		return false, err
	}
	return n.Empty, nil
}

// Dimension is the length of the memory's vectors.
func (s *points) Dimension() int { return s.m.dimension }

// Delete removes a point with its history and relations; false when there was no
// live one.
func (s *points) Delete(ctx context.Context, id loci.PointID) (*loci.Receipt[bool], error) {
	deleted := false
	revision, err := s.change(ctx, "delete", func(w *writer) error {
		p, err := w.live(uint64(id), false)
		if deleted = p != nil; err != nil || p == nil {
			return err
		}
		return w.tx.RemovePoint(p)
	})
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[bool]{Value: deleted, Revision: revision}, nil
}

// SetTTL sets how long a live point lives from now on. 0 removes it at once.
func (s *points) SetTTL(ctx context.Context, req TTLRequest) (*loci.Receipt[Stored], error) {
	return s.setExpiry(ctx, "set_ttl", req.ID, func(now int64) *int64 { return expiry(now, req.TTLSeconds) }, req.TTLSeconds == 0)
}

// ClearTTL makes a live point live for ever.
func (s *points) ClearTTL(ctx context.Context, id loci.PointID) (*loci.Receipt[Stored], error) {
	return s.setExpiry(ctx, "clear_ttl", id, func(int64) *int64 { return nil }, false)
}

func (s *points) setExpiry(ctx context.Context, call string, id loci.PointID, at func(now int64) *int64, remove bool) (*loci.Receipt[Stored], error) {
	out := Stored{ID: id}
	revision, err := s.change(ctx, call, func(w *writer) error {
		old, err := w.required("id", uint64(id))
		if err != nil {
			return err
		}
		if remove {
			return w.tx.RemovePoint(old)
		}
		out.Version = old.Version
		p := *old
		if p.Expires = at(w.now); samePtr(p.Expires, old.Expires) {
			return nil
		}
		p.Updated = max(p.Updated, s.m.link.Now().UnixMicro())
		if err := w.tx.UpdatePoint(old, &p); err != nil {
			return err
		}
		return w.restage(&p)
	})
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[Stored]{Value: out, Revision: revision}, nil
}

func samePtr[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// GetMetadata gives the metadata of a live point; false when there is none.
func (s *points) GetMetadata(ctx context.Context, id loci.PointID) (m loci.Metadata, ok bool, err error) {
	p, _, err := s.get(ctx, GetRequest{ID: id})
	if err != nil || p == nil {
		return nil, false, err
	}
	return loci.Metadata(p.Metadata), true, nil
}

// pointAs turns a stored point into what callers get of its kind.
func pointAs[T any](s *points, p *store.Point) (*T, error) {
	v, ok := s.m.link.Point(p).(*T)
	if !ok {
		return nil, errs.New(errs.Storage, "record %d is of another kind than its place", p.ID)
	}
	return v, nil
}

// found makes the answer to a GetRequest.
func found[T any](s *points, p *store.Point, embedding []float32, err error) (*Found[T], error) {
	if err != nil || p == nil {
		return &Found[T]{}, err
	}
	v, err := pointAs[T](s, p)
	if err != nil {
		return nil, err
	}
	return &Found[T]{Point: v, Embedding: embedding}, nil
}

// page makes the answer to a ListRequest.
func page[T any](ctx context.Context, s *points, req ListRequest) (*Page[T], error) {
	out := &Page[T]{Items: []T{}}
	var wrong error
	next, err := s.list(ctx, req, func(p *store.Point) {
		v, err := pointAs[T](s, p)
		if err != nil {
			wrong = err
			return
		}
		out.Items = append(out.Items, *v)
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	out.NextCursor = next
	return out, nil
}

// Page is a page of points.
type Page[T any] struct {
	Items []T `json:"items"`
	// NextCursor asks for the next page; "" after the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// believed is the version of a point that was believed at a time; nil when there was
// none that is still kept.
func believed(tx *store.ReadTx, p *store.Point, at int64, policy *Policy) (*store.Point, error) {
	if at >= p.Recorded {
		return p, nil
	}
	versions, err := keptVersions(tx, p, policy)
	if err != nil {
		return nil, err
	}
	for i := len(versions) - 1; i >= 0; i-- {
		if v := &versions[i]; v.Recorded <= at {
			return past(p, v), nil
		}
	}
	return nil, nil
}

// keptVersions are the earlier versions of a point that the policy keeps, oldest
// first.
func keptVersions(tx *store.ReadTx, p *store.Point, policy *Policy) ([]store.PointVersion, error) {
	versions, err := tx.PointVersions(p.ID)
	if err != nil {
		return nil, err
	}
	return versions[max(0, int64(len(versions))-policy.keepVersions()):], nil
}

// past is a point as it was in an earlier version.
func past(p *store.Point, v *store.PointVersion) *store.Point {
	old := *p
	old.Version, old.Recorded, old.ValidFrom, old.ValidTo = v.Version, v.Recorded, v.ValidFrom, v.ValidTo
	old.Title, old.Data, old.Metadata, old.Content = v.Title, v.Data, v.Metadata, v.Content
	return &old
}
