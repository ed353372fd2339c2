package store

import "github.com/loci-memory/loci/internal/errs"

// AddPoint writes a new point at a place and fills in its id and revision. Its
// version and when it was recorded are the caller's to set. The caller stages it.
func (tx *WriteTx) AddPoint(place int64, p *Point) error {
	p.ScopeID = place
	if err := tx.addRecord(&p.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddPoint)
	if err != nil {
		return err
	}
	st.bindInt(1, p.ID)
	st.bindInt(2, place)
	st.bindInt(3, orderedKey(p.Key))
	bindPoint(st, 4, p)
	return st.run()
}

// UpdatePoint replaces old, as it was read in this operation, by p, which keeps
// its record, place, key, kind and namespace; it may get another time of creation
// only by Happened. The caller stages it.
func (tx *WriteTx) UpdatePoint(old, p *Point) error {
	p.ScopeID = old.ScopeID
	if err := tx.updateRecord(&old.Record, &p.Record); err != nil {
		return err
	}
	if p.Created != old.Created {
		if err := tx.exec(sqlSetCreated, p.Created, p.ID); err != nil {
			return err
		}
	}
	st, err := tx.stmt(sqlUpdatePoint)
	if err != nil {
		return err
	}
	bindPoint(st, 1, p)
	st.bindInt(14, p.ID)
	return tx.runOnOne(st, "point", p.ID)
}

func bindPoint(st stmt, at int, p *Point) {
	st.bindInt(at, p.Version)
	st.bindInt(at+1, p.Recorded)
	bindOptional(st, at+2, p.Expires)
	bindOptional(st, at+3, p.ValidFrom)
	bindOptional(st, at+4, p.ValidTo)
	bindOptional(st, at+5, p.Happened)
	st.bindFloat(at+6, p.Confidence)
	st.bindInt(at+7, p.Uses)
	st.bindInt(at+8, p.Successes)
	bindOptional(st, at+9, p.LastUsed)
	st.bindText(at+10, p.Title)
	bindMetadata(st, at+11, p.Data)
	st.bindText(at+12, p.Content)
}

// AddPointVersion keeps an earlier version of a point and forgets those that are
// older than the latest keep.
func (tx *WriteTx) AddPointVersion(id int64, v *PointVersion, keep int64) error {
	tx.Change()
	if keep > 0 {
		if err := tx.addPointVersion(id, v); err != nil {
			return err
		}
	}
	return tx.exec(sqlTrimPointVersions, id, v.Version-keep)
}

func (tx *WriteTx) addPointVersion(id int64, v *PointVersion) error {
	tx.Change()
	st, err := tx.stmt(sqlAddPointVersion)
	if err != nil {
		return err
	}
	st.bindInt(1, id)
	st.bindInt(2, v.Version)
	st.bindInt(3, v.Recorded)
	st.bindInt(4, v.RecordedTo)
	bindOptional(st, 5, v.ValidFrom)
	bindOptional(st, 6, v.ValidTo)
	st.bindText(7, v.Title)
	bindMetadata(st, 8, v.Data)
	bindMetadata(st, 9, v.Metadata)
	st.bindText(10, v.Content)
	return st.run()
}

// RemovePoint removes a point, as it was read in this operation, with its
// versions, edges, vectors and copies, and stages that.
func (tx *WriteTx) RemovePoint(p *Point) error { return tx.Delete(&p.Record) }

// AddAgentMemory writes a new agent memory, with a place for each kind, and fills
// in what it was given.
func (tx *WriteTx) AddAgentMemory(m *AgentMemory) (err error) {
	if m.NamespaceID, err = tx.intern(m.Namespace); err != nil {
		return err
	}
	if m.ScopeID, err = tx.intern(m.Scope); err != nil {
		return err
	}
	m.ID = tx.ownID(m.ID)
	for k := KindFact; k <= KindProcedure; k++ {
		if m.Places[k-KindFact], err = tx.newPlace(m, k); err != nil {
			return err
		}
	}
	st, err := tx.stmt(sqlAddAgentMemory)
	if err != nil {
		return err
	}
	st.bindInt(1, m.ID)
	st.bindInt(2, m.NamespaceID)
	st.bindInt(3, m.ScopeID)
	st.bindInt(4, int64(m.Dimension))
	st.bindText(5, m.Space)
	for i, place := range m.Places {
		st.bindInt(6+i, place)
	}
	st.bindInt(9, m.Generation)
	st.bindInt(10, m.Snapshot)
	bindMetadata(st, 11, m.Settings)
	return st.run()
}

// newPlace makes a place and counts it in.
func (tx *WriteTx) newPlace(m *AgentMemory, k Kind) (int64, error) {
	tx.Change()
	m.Generation++
	return tx.intern(placeName{m.ID, m.Generation, k, m.Scope}.String())
}

// UpdateAgentMemory writes an agent memory's places, counters and settings.
func (tx *WriteTx) UpdateAgentMemory(m *AgentMemory) error {
	st, err := tx.stmt(sqlUpdateAgentMemory)
	if err != nil {
		return err
	}
	tx.Change()
	for i, place := range m.Places {
		st.bindInt(1+i, place)
	}
	st.bindInt(4, m.Generation)
	st.bindInt(5, m.Snapshot)
	bindMetadata(st, 6, m.Settings)
	st.bindInt(7, m.ID)
	return tx.runOnOne(st, "agent memory", m.ID)
}

// StagePlace makes a place for points of a kind that are to replace a memory's,
// and writes the memory, as it was read in this operation. Until SetPlace is called
// with it, the place is one of those that are to be emptied.
func (tx *WriteTx) StagePlace(m *AgentMemory, k Kind) (int64, error) {
	place, err := tx.newPlace(m, k)
	if err != nil {
		return 0, err
	}
	if err := tx.exec(sqlAddAgentPlace, place); err != nil {
		return 0, err
	}
	return place, tx.UpdateAgentMemory(m)
}

// SetPlace makes a staged place that of a memory's kind. The one that was is to be
// emptied. UpdateAgentMemory has to follow.
func (tx *WriteTx) SetPlace(m *AgentMemory, k Kind, place int64) error {
	found, err := tx.EmptyPlaces()
	if err != nil {
		return err
	}
	staged := false
	for _, p := range found {
		staged = staged || p == place
	}
	if !staged {
		return errs.New(errs.Storage, "place %d was not staged, or was given up", place)
	}
	if err := tx.exec(sqlRemoveAgentPlace, place); err != nil {
		return err
	}
	if err := tx.exec(sqlAddAgentPlace, m.Place(k)); err != nil {
		return err
	}
	m.Places[k-KindFact] = place
	return nil
}

// EmptyPlace removes at most limit points of a place that no memory names; false
// says that none is left, and the place is forgotten.
func (tx *WriteTx) EmptyPlace(place int64, limit int) (more bool, removed int, err error) {
	points, err := tx.PointsFrom(place, 0, limit)
	if err != nil {
		return false, 0, err
	}
	for _, p := range points {
		if err := tx.RemovePoint(p); err != nil {
			return false, 0, err
		}
	}
	if len(points) == limit {
		return true, len(points), nil
	}
	tx.Change()
	return false, len(points), tx.exec(sqlRemoveAgentPlace, place)
}

// KeepClock has the clock stored, although nothing else changes. It makes no
// revision.
func (tx *WriteTx) KeepClock() { tx.w.next.hints++ }
