package store

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// A WholePoint is a point with its vector.
type WholePoint struct {
	*Point
	Vector     []float32 // nil: none. It is valid until fn returns
	VectorText uint64    // fingerprint of the text it was made of, TextOfCaller for none
}

// WholePoints calls fn with every point of a place that is not expired at now, by
// ascending key, and its vector in a space. An error of fn ends it. It holds one
// point at a time.
func (s *session) WholePoints(place, now, space int64, fn func(*WholePoint) error) error {
	var w WholePoint
	var room []float32
	return s.eachUntil(sqlWholePoints, []int64{vectorKey(space, 0), place, now}, func(st stmt) error {
		const at = recordColumnCount + 14
		w.Point, w.Vector, w.VectorText = readPoint(st), nil, 0
		if err := s.completeRecord(&w.Record); err != nil {
			return err
		}
		w.Scope = scopeOfPlace(w.Scope)
		if !st.columnNull(at) {
			raw := st.columnRaw(at + 1)
			if len(raw) == 0 || len(raw)%4 != 0 {
				return errs.New(errs.Storage, "the database is damaged: the vector of record %d cannot be read", w.ID)
			}
			room = appendFloats(room[:0], raw)
			w.Vector, w.VectorText = room, uint64(st.columnInt(at))
		}
		return fn(&w)
	})
}

// WholeVersions calls fn with the latest keep earlier versions of every point of a
// place that is not expired at now, by ascending key and version, likewise.
func (s *session) WholeVersions(place, now, keep int64, fn func(key uint64, v *PointVersion) error) error {
	return s.eachUntil(sqlWholeVersions, []int64{place, now, keep}, func(st stmt) error {
		v := readPointVersion(st)
		return fn(keyOfOrdered(st.columnInt(9)), &v)
	})
}

// A WholeEdge is an edge with what callers know its ends by.
type WholeEdge struct {
	From       uint64
	Type       string
	ToPlace    int64
	To         uint64
	Key        uint64
	Created    int64
	Properties []byte
}

// WholeEdges calls fn with every edge from a point of a place to a point of one of
// others, neither of them expired at now. They come by the key of the source, then
// by type, place in the order of others, and key of the target. It holds the edges
// of one source at a time.
func (s *session) WholeEdges(place, now int64, others [3]int64, fn func(*WholeEdge) error) error {
	var group []WholeEdge
	give := func() error {
		slices.SortFunc(group, func(a, b WholeEdge) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(slices.Index(others[:], a.ToPlace), slices.Index(others[:], b.ToPlace)),
				cmp.Compare(a.To, b.To))
		})
		for i := range group {
			if err := fn(&group[i]); err != nil {
				return err
			}
		}
		clear(group)
		group = group[:0]
		return nil
	}
	err := s.eachUntil(sqlWholeEdges, []int64{place, now, others[0], others[1], others[2]}, func(st stmt) (err error) {
		e := WholeEdge{
			From: keyOfOrdered(st.columnInt(0)), ToPlace: st.columnInt(2), To: keyOfOrdered(st.columnInt(3)),
			Key: keyOfOrdered(st.columnInt(4)), Created: st.columnInt(5), Properties: columnJSON(st, 6),
		}
		if e.Type, err = s.String(st.columnInt(1)); err != nil {
			return err
		}
		if len(group) > 0 && group[0].From != e.From {
			if err := give(); err != nil {
				return err
			}
		}
		group = append(group, e)
		return nil
	})
	if err != nil {
		return err
	}
	return give()
}

// eachUntil is each for a function that may fail.
func (s *session) eachUntil(which statement, args []int64, fn func(stmt) error) (err error) {
	failed := s.each(which, args, func(st stmt) bool {
		err = fn(st)
		return err == nil
	})
	return cmp.Or(failed, err)
}

// A PointRef is what a relation needs to know of a point.
type PointRef struct {
	ID      int64
	Version int64
	Expires *int64
}

// PointRef looks up the point of a place by the caller's id; false when there is
// none.
func (s *session) PointRef(place int64, key uint64) (ref PointRef, ok bool, err error) {
	err = s.each(sqlPointRef, []int64{place, orderedKey(key)}, func(st stmt) bool {
		ref, ok = PointRef{st.columnInt(0), st.columnInt(1), columnOptional(st, 2)}, true
		return false
	})
	return ref, ok, err
}

// ExpiredPointsIn is ExpiredPoints for those of one place.
func (s *session) ExpiredPointsIn(place, now int64, limit int) ([]*Point, error) {
	return s.points(sqlExpiredIn, place, now, int64(limit))
}

// LongHistories gives points of a place by ascending key behind after, at most limit,
// that have more than keep earlier versions, and the key to go on behind.
func (s *session) LongHistories(place, keep int64, after *uint64, limit int) (ids []int64, last uint64, err error) {
	from, ok := behind(after)
	if !ok {
		return nil, 0, nil
	}
	err = s.each(sqlLongHistories, []int64{place, from, keep, int64(limit)}, func(st stmt) bool {
		ids, last = append(ids, st.columnInt(0)), keyOfOrdered(st.columnInt(1))
		return true
	})
	return ids, last, err
}

// TrimPointVersions forgets the earlier versions of a point that are older than the
// latest keep, and gives their number.
func (tx *WriteTx) TrimPointVersions(id, keep int64) (int64, error) {
	p, err := tx.Point(id)
	if err != nil || p == nil {
		return 0, err
	}
	tx.Change()
	err = tx.exec(sqlTrimPointVersions, id, p.Version-1-keep)
	return tx.c.changes(), err
}

// PutPointVersions writes earlier versions of a point that was written in this
// operation or another, all of them below its own.
func (tx *WriteTx) PutPointVersions(id int64, versions []PointVersion) error {
	for i := range versions {
		if err := tx.addPointVersion(id, &versions[i]); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceEdges has the edges that lead from the points of a place to those of the
// place old lead to the points of the same ids in the place that replaces it; where
// that has none, they go. So do those to a point that is expired at now, since what
// has expired holds nothing. One that has a twin among the edges that were staged for
// AdoptEdges gives way to it. It gives the number of those that went without one.
func (tx *WriteTx) ReplaceEdges(from, old, place, now int64) (dropped int64, err error) {
	if err := tx.exec(sqlDropEdgeTwins, from, old, place); err != nil {
		return 0, err
	}
	if err := tx.exec(sqlRepointEdges, place, from, old, now); err != nil {
		return 0, err
	}
	return tx.DropEdges(from, old)
}

// AdoptEdges moves edges to the place of their source, from, that were written to the
// place of their target, staged: while that is no memory's, nobody sees them, and
// they take no key from an edge that they are to replace.
func (tx *WriteTx) AdoptEdges(from, staged int64) error {
	tx.Change()
	return tx.exec(sqlAdoptEdges, from, staged)
}

// DropEdges removes the edges from points of a place to those of another, and gives
// their number.
func (tx *WriteTx) DropEdges(from, to int64) (int64, error) {
	tx.Change()
	err := tx.exec(sqlDropEdgesTo, from, to)
	return tx.c.changes(), err
}
