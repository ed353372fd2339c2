package store

import "slices"

// Event is something that happened to entities.
type Event struct {
	Record
	Name         string
	NameKey      string // the name, normalised
	Summary      string
	Participants []int64 // ascending, without repeats
	Confidence   float64
	Reason       string
	IdentityHash int64 // of namespace, scope, normalised name and participants
}

// Event gives an event, or nil when there is none.
func (s *session) Event(id int64) (*Event, error) {
	st, err := s.stmt(sqlEvent)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, id)
	found, err := st.step()
	if !found || err != nil {
		st.reset()
		return nil, err
	}
	const at = recordColumnCount
	v := &Event{
		Record: readRecord(st), IdentityHash: st.columnInt(at), Confidence: st.columnFloat(at + 1),
		Name: st.columnText(at + 2), NameKey: st.columnText(at + 3), Summary: st.columnText(at + 4),
		Reason: st.columnText(at + 5),
	}
	st.reset()
	if v.Participants, err = s.ids(sqlParticipants, id); err != nil {
		return nil, err
	}
	return v, s.completeRecord(&v.Record)
}

// EventsByHash gives the events of an identity hash, by id. Equal hashes are
// compared in full by the caller.
func (s *session) EventsByHash(hash int64) ([]*Event, error) {
	ids, err := s.ids(sqlEventIDsByHash, hash)
	if err != nil {
		return nil, err
	}
	var out []*Event
	for _, id := range ids {
		v, err := s.Event(id)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, v)
		}
	}
	return out, nil
}

// EventsOf gives the ids of all events that an entity takes part in, ascending.
func (s *session) EventsOf(entity int64) ([]int64, error) {
	return sortedIDs(func() ([]int64, error) { return s.ids(sqlEventsOf, entity) })
}

// ScanEventsOf calls fn with the events that an entity takes part in and that f
// covers, by ascending id, until fn gives false. want is a hint how many are
// needed; 0 means all.
func (s *session) ScanEventsOf(entity int64, f Filter, want int, fn func(*Event) (bool, error)) error {
	var scopes []int64
	for _, scope := range f.Scopes {
		id, ok, err := s.StringID(scope)
		if err != nil {
			return err
		}
		if ok {
			scopes = append(scopes, id)
		}
	}
	list := mergeScopes(dedupe(scopes), func(scope, after int64, limit int) ([]int64, error) {
		return s.ids(sqlEventsOfIn, entity, scope, after, int64(limit))
	})
	size := scanChunk
	if want > 0 {
		size = min(size, want)
	}
	for after := int64(0); ; {
		ids, err := list(after, size)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			v, err := s.Event(id)
			if err != nil {
				return err
			}
			if v == nil || !f.Covers(&v.Record) {
				continue
			}
			if more, err := fn(v); err != nil || !more {
				return err
			}
		}
		after = ids[len(ids)-1]
	}
}

// dedupe drops repeats and keeps the order.
func dedupe(ids []int64) []int64 {
	seen := make(map[int64]bool, len(ids))
	out := ids[:0]
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// AddEvent writes a new event of entities that exist and fills in its id and
// revision. The caller stages it.
func (tx *WriteTx) AddEvent(v *Event) error {
	v.Kind = KindEvent
	if err := tx.addRecord(&v.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddEvent)
	if err != nil {
		return err
	}
	st.bindInt(1, v.ID)
	bindEvent(st, 2, v)
	if err := st.run(); err != nil {
		return err
	}
	return tx.addParticipants(v)
}

// UpdateEvent replaces old, as it was read in this operation, by v, which keeps
// its id, namespace and creation time. The caller stages it.
func (tx *WriteTx) UpdateEvent(old, v *Event) error {
	if err := tx.updateRecord(&old.Record, &v.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdateEvent)
	if err != nil {
		return err
	}
	bindEvent(st, 1, v)
	st.bindInt(7, v.ID)
	if err := st.run(); err != nil {
		return err
	}
	if old.ScopeID == v.ScopeID && slices.Equal(old.Participants, v.Participants) {
		return nil
	}
	if st, err = tx.stmt(sqlDeleteParticipants); err != nil {
		return err
	}
	st.bindInt(1, v.ID)
	if err := st.run(); err != nil {
		return err
	}
	return tx.addParticipants(v)
}

func bindEvent(st stmt, at int, v *Event) {
	st.bindInt(at, v.IdentityHash)
	st.bindFloat(at+1, v.Confidence)
	st.bindText(at+2, v.Name)
	st.bindText(at+3, v.NameKey)
	st.bindText(at+4, v.Summary)
	st.bindText(at+5, v.Reason)
}

func (tx *WriteTx) addParticipants(v *Event) error {
	st, err := tx.stmt(sqlAddParticipant)
	if err != nil {
		return err
	}
	for _, id := range v.Participants {
		st.bindInt(1, v.ID)
		st.bindInt(2, id)
		st.bindInt(3, v.ScopeID)
		if err := st.run(); err != nil {
			return err
		}
	}
	return nil
}
