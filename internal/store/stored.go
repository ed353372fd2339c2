package store

// Stored is a record of any kind: *Memory, *Entity, *Relation, *Event, ...
type Stored interface {
	// Head is the record's header.
	Head() *Record
}

// Head implements Stored for every kind that embeds a Record.
func (r *Record) Head() *Record { return r }

// loaders read a record of each kind that is stored; nil when it is gone.
var loaders = [kindLimit]func(s *session, id int64) (Stored, error){
	KindMemory:    loader((*session).Memory),
	KindEntity:    loader((*session).Entity),
	KindRelation:  loader((*session).Relation),
	KindEvent:     loader((*session).Event),
	KindNote:      loader((*session).Note),
	KindChunk:     loader((*session).Chunk),
	KindPage:      loader((*session).Page),
	KindFact:      loader((*session).Point),
	KindEpisode:   loader((*session).Point),
	KindProcedure: loader((*session).Point),
}

// loader makes a kind's own reading function one of a Stored.
func loader[T interface {
	comparable
	Stored
}](load func(*session, int64) (T, error)) func(*session, int64) (Stored, error) {
	return func(s *session, id int64) (Stored, error) {
		r, err := load(s, id)
		var none T
		if err != nil || r == none {
			return nil, err
		}
		return r, nil
	}
}

// RecordOf gives the record of a kind with an id; nil when there is none.
func (s *session) RecordOf(kind Kind, id int64) (Stored, error) {
	if kind >= kindLimit || loaders[kind] == nil {
		return nil, nil
	}
	r, err := loaders[kind](s, id)
	if err != nil || r == nil || r.Head().Kind != kind { // points of all kinds lie in one table
		return nil, err
	}
	return r, nil
}

// Place says where a record lies, without reading the rest of it; kind 0 when
// there is no such record.
func (s *session) Place(id int64) (kind Kind, namespace, scope string, err error) {
	st, err := s.stmt(sqlRecordPlace)
	if err != nil {
		return 0, "", "", err
	}
	st.bindInt(1, id)
	found, err := st.step()
	if err != nil || !found {
		st.reset()
		return 0, "", "", err
	}
	kind = Kind(st.columnInt(0))
	namespaceID, scopeID := st.columnInt(1), st.columnInt(2)
	st.reset()
	if namespace, err = s.String(namespaceID); err != nil {
		return 0, "", "", err
	}
	scope, err = s.String(scopeID)
	return kind, namespace, scope, err
}
