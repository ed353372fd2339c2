package store

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// Point gives a point, expired or not, or nil when there is none.
func (s *session) Point(id int64) (*Point, error) {
	return s.onePoint(sqlPoint, id)
}

// PointByKey gives the point of a place by the caller's id, expired or not, or
// nil when there is none.
func (s *session) PointByKey(place int64, key uint64) (*Point, error) {
	return s.onePoint(sqlPointByKey, place, orderedKey(key))
}

func (s *session) onePoint(which statement, args ...int64) (p *Point, err error) {
	err = s.each(which, args, func(st stmt) bool {
		p = readPoint(st)
		return false
	})
	if err != nil || p == nil {
		return nil, err
	}
	if err := s.completeRecord(&p.Record); err != nil {
		return nil, err
	}
	p.Scope = scopeOfPlace(p.Scope)
	return p, nil
}

// readPoint reads the row of pointColumns that st stands on.
func readPoint(st stmt) *Point {
	const at = recordColumnCount
	return &Point{
		Record: readRecord(st), Key: keyOfOrdered(st.columnInt(at)), Version: st.columnInt(at + 1), Recorded: st.columnInt(at + 2),
		Expires: columnOptional(st, at+3), ValidFrom: columnOptional(st, at+4), ValidTo: columnOptional(st, at+5),
		Happened: columnOptional(st, at+6), Confidence: st.columnFloat(at + 7), Uses: st.columnInt(at + 8),
		Successes: st.columnInt(at + 9), LastUsed: columnOptional(st, at+10), Title: st.columnText(at + 11),
		Data: columnJSON(st, at+12), Content: st.columnText(at + 13),
	}
}

// columnJSON is a column's JSON text; nil when it is null.
func columnJSON(st stmt, i int) []byte {
	if raw := st.columnRaw(i); len(raw) > 0 {
		return slices.Clone(raw)
	}
	return nil
}

// PointHit gives what an answer shows of a point, with its vector in a space;
// false when it is gone. vector is room for the vector.
func (s *session) PointHit(space, id int64, vector []float32) (hit PointHit, ok bool, err error) {
	err = s.each(sqlPointHit, []int64{vectorKey(space, id), id}, func(st stmt) bool {
		hit, ok = PointHit{Key: keyOfOrdered(st.columnInt(0)), Content: st.columnText(1), Vector: vector[:0]}, true
		if raw := st.columnRaw(3); len(raw)%4 == 0 {
			hit.Norm, hit.Vector = st.columnFloat(2), appendFloats(hit.Vector, raw)
		}
		return false
	})
	return hit, ok, err
}

// PointText gives what an answer shows of a point, with its metadata if that is asked
// for; false when it is gone.
func (s *session) PointText(id int64, metadata bool) (text PointText, ok bool, err error) {
	which := sqlPointText
	if metadata {
		which = sqlPointTextMetadata
	}
	err = s.each(which, []int64{id}, func(st stmt) bool {
		text, ok = PointText{Key: keyOfOrdered(st.columnInt(0)), Content: st.columnText(1)}, true
		if metadata {
			text.Metadata = columnJSON(st, 2)
		}
		return false
	})
	return text, ok, err
}

// PointsAfter gives the points of a place that are not expired at now, by
// ascending key behind after, at most limit; after nil begins with the first.
func (s *session) PointsAfter(place, now int64, after *uint64, limit int) ([]*Point, error) {
	from, ok := behind(after)
	if !ok {
		return nil, nil
	}
	return s.points(sqlPointsAfter, place, now, from, int64(limit))
}

// behind is the least stored key behind a caller's id; false: there is none.
func behind(after *uint64) (int64, bool) {
	if after == nil {
		return -1 << 63, true
	}
	return orderedKey(*after) + 1, *after != 1<<64-1
}

// points gives the points whose ids a statement gives.
func (s *session) points(which statement, args ...int64) ([]*Point, error) {
	ids, err := s.ids(which, args...)
	if err != nil {
		return nil, err
	}
	return s.pointsOf(ids)
}

// pointsOf gives the points of those ids that there are.
func (s *session) pointsOf(ids []int64) ([]*Point, error) {
	out := make([]*Point, 0, len(ids))
	for _, id := range ids {
		p, err := s.Point(id)
		if err != nil {
			return nil, err
		}
		if p != nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// PointTexts calls fn with the ids and contents of the points of a place that are
// not expired at now, by ascending key behind after, at most limit.
func (s *session) PointTexts(place, now int64, after *uint64, limit int, fn func(key uint64, content string)) error {
	from, ok := behind(after)
	if !ok {
		return nil
	}
	return s.each(sqlPointTexts, []int64{place, now, from, int64(limit)}, func(st stmt) bool {
		fn(keyOfOrdered(st.columnInt(0)), st.columnText(1))
		return true
	})
}

// CountPoints is the number of points of a place that are not expired at now.
func (s *session) CountPoints(place, now int64) (int64, error) {
	found, err := s.ids(sqlCountPoints, place, now)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// FreePointKey gives a key that no point of a place has that is not expired at now:
// the one above the greatest of those, or, where that is the last there is, the
// lowest that is free.
func (s *session) FreePointKey(place, now int64) (uint64, error) {
	greatest, err := s.ids(sqlGreatestPoint, place, now)
	if err != nil {
		return 0, err
	}
	if len(greatest) == 0 {
		return 0, nil
	}
	if key := keyOfOrdered(greatest[0]); key != 1<<64-1 {
		return key + 1, nil
	}
	for free := uint64(0); ; {
		keys, err := s.ids(sqlPointKeysFrom, place, orderedKey(free), scanChunk)
		if err != nil {
			return 0, err
		}
		for _, k := range keys {
			if keyOfOrdered(k) != free {
				return free, nil
			}
			free++
		}
		if len(keys) < scanChunk {
			return 0, errs.New(errs.Conflict, "every id is taken")
		}
	}
}

// RecentPoints gives the points of a place that are not expired at now and
// happened at a time or later, the latest first, ties by descending key.
func (s *session) RecentPoints(place, now, from int64, limit int) ([]*Point, error) {
	return s.points(sqlPointsRecent, place, now, from, int64(limit))
}

// PointsBetween gives the points of a place that are not expired at now and
// happened from a time on and before another, the earliest first, ties by key,
// behind the point of a time and key if after is not nil.
func (s *session) PointsBetween(place, now, from, to int64, after *PointTime, limit int) ([]*Point, error) {
	at, key := from, int64(math.MinInt64)
	if after != nil && after.At >= from {
		if at, key = after.At, orderedKey(after.Key); key < math.MaxInt64 {
			key++
		} else if at < math.MaxInt64 {
			at, key = at+1, math.MinInt64
		} else {
			return nil, nil
		}
	}
	// The first bound is what the index is entered with.
	return s.points(sqlPointsBetween, place, now, at, to, at, key, int64(limit))
}

// PointTime is a place in the order of time.
type PointTime struct {
	At  int64
	Key uint64
}

// PointInThread gives the point of a kind that holds a position of a thread in a
// place, expired or not; nil when it is free.
func (s *session) PointInThread(namespace, place int64, k Kind, thread string, position int64) (*Point, error) {
	id, ok, err := s.StringID(thread)
	if err != nil || !ok {
		return nil, err
	}
	held, err := s.points(sqlThreadHolder, namespace, place, int64(k), id, position)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	return held[0], nil
}

// LastInThread is the last position of a thread that a point of a kind holds in a
// place, expired or not; false when none holds any.
func (s *session) LastInThread(namespace, place int64, k Kind, thread string) (position int64, ok bool, err error) {
	id, ok, err := s.StringID(thread)
	if err != nil || !ok {
		return 0, false, err
	}
	found, err := s.ids(sqlThreadLast, namespace, place, int64(k), id)
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return found[0], true, nil
}

// ExpiredPoints gives points of any place that are expired at now, those that are
// so for longest first.
func (s *session) ExpiredPoints(now int64, limit int) ([]*Point, error) {
	return s.points(sqlExpiredPoints, now, int64(limit))
}

// NextExpiry is when the next point expires, or did; false when none will.
func (s *session) NextExpiry() (at int64, ok bool, err error) {
	found, err := s.ids(sqlNextExpiry)
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return found[0], true, nil
}

// PointsFrom gives points of a place, expired or not, by ascending key from a key
// on.
func (s *session) PointsFrom(place int64, from uint64, limit int) ([]*Point, error) {
	return s.points(sqlPointsFrom, place, orderedKey(from), int64(limit))
}

// PointsBelow gives points of a place whose confidence is below a floor and that
// were used.
func (s *session) PointsBelow(place int64, floor float64, limit int) ([]*Point, error) {
	st, err := s.stmt(sqlPointsBelow)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, place)
	st.bindFloat(2, floor)
	st.bindInt(3, int64(limit))
	ids, err := drainIDs(st)
	if err != nil {
		return nil, err
	}
	return s.pointsOf(ids)
}

// PointVersions gives the earlier versions of a point, oldest first.
func (s *session) PointVersions(id int64) (out []PointVersion, err error) {
	err = s.each(sqlPointVersions, []int64{id}, func(st stmt) bool {
		out = append(out, readPointVersion(st))
		return true
	})
	return out, err
}

// readPointVersion reads the row of a version that st stands on.
func readPointVersion(st stmt) PointVersion {
	return PointVersion{
		Version: st.columnInt(0), Recorded: st.columnInt(1), RecordedTo: st.columnInt(2), ValidFrom: columnOptional(st, 3),
		ValidTo: columnOptional(st, 4), Title: st.columnText(5), Data: columnJSON(st, 6), Metadata: columnJSON(st, 7),
		Content: st.columnText(8),
	}
}

// AgentMemory gives the agent memory of a scope; nil when there is none.
func (s *session) AgentMemory(namespace, scope string) (*AgentMemory, error) {
	namespaceID, scopeID, ok, err := s.place(namespace, scope)
	if err != nil || !ok {
		return nil, err
	}
	found, err := s.agentMemories(sqlAgentMemory, namespaceID, scopeID)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// AgentMemories gives all agent memories, in the order in which they were made.
func (s *session) AgentMemories() ([]*AgentMemory, error) { return s.agentMemories(sqlAgentMemories) }

func (s *session) agentMemories(which statement, args ...int64) (out []*AgentMemory, err error) {
	err = s.each(which, args, func(st stmt) bool {
		out = append(out, &AgentMemory{
			ID: st.columnInt(0), NamespaceID: st.columnInt(1), ScopeID: st.columnInt(2), Dimension: int(st.columnInt(3)),
			Space: st.columnText(4), Places: [3]int64{st.columnInt(5), st.columnInt(6), st.columnInt(7)},
			Generation: st.columnInt(8), Snapshot: st.columnInt(9), Settings: columnJSON(st, 10),
		})
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, m := range out {
		if m.Namespace, err = s.String(m.NamespaceID); err != nil {
			return nil, err
		}
		if m.Scope, err = s.String(m.ScopeID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Places gives where the points of a scope lie now, by kind; false when the scope
// has no agent memory. Scope and namespace are ids of the dictionary.
func (s *session) Places(namespace, scope int64) (places [3]int64, ok bool, err error) {
	err = s.each(sqlAgentMemory, []int64{namespace, scope}, func(st stmt) bool {
		places, ok = [3]int64{st.columnInt(5), st.columnInt(6), st.columnInt(7)}, true
		return false
	})
	return places, ok, err
}

// EmptyPlaces gives the places that no agent memory names.
func (s *session) EmptyPlaces() ([]int64, error) { return s.ids(sqlAgentPlaces) }
