package store

import (
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// Entity is a node of the knowledge graph.
type Entity struct {
	Record
	Type       string
	Name       string
	NameKey    string   // the name, normalised
	Aliases    []string // normalised and sorted, without control characters
	Attributes []byte   // JSON
	Summary    string

	typeID int64
}

// aliasSeparator stands between aliases in an entity's row.
const aliasSeparator = "\n"

// Entity gives an entity, or nil when there is none.
func (s *session) Entity(id int64) (*Entity, error) {
	st, err := s.stmt(sqlEntity)
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
	e := &Entity{
		Record: readRecord(st), typeID: st.columnInt(at), Name: st.columnText(at + 1), NameKey: st.columnText(at + 2),
		Attributes: slices.Clone(st.columnRaw(at + 4)), Summary: st.columnText(at + 5),
	}
	if aliases := st.columnText(at + 3); aliases != "" {
		e.Aliases = strings.Split(aliases, aliasSeparator)
	}
	st.reset()
	if e.Type, err = s.String(e.typeID); err != nil {
		return nil, err
	}
	return e, s.completeRecord(&e.Record)
}

// EntityName gives an entity's name; "" when there is no such entity.
func (s *session) EntityName(id int64) (string, error) {
	st, err := s.stmt(sqlEntityName)
	if err != nil {
		return "", err
	}
	st.bindInt(1, id)
	defer st.reset()
	if found, err := st.step(); err != nil || !found {
		return "", err
	}
	return st.columnText(0), nil
}

// EntitiesByName gives the ids of the entities of a scope whose normalised name
// is key, ascending.
func (s *session) EntitiesByName(namespace, scope, key string) ([]int64, error) {
	return s.named(sqlEntitiesByName, namespace, scope, key)
}

// EntitiesByAlias gives the ids of the entities of a scope that have key among
// their aliases and another name, ascending.
func (s *session) EntitiesByAlias(namespace, scope, key string) ([]int64, error) {
	return s.named(sqlEntitiesByAlias, namespace, scope, key)
}

func (s *session) named(which statement, namespace, scope, key string) ([]int64, error) {
	namespaceID, ok, err := s.StringID(namespace)
	if err != nil || !ok {
		return nil, err
	}
	scopeID, ok, err := s.StringID(scope)
	if err != nil || !ok {
		return nil, err
	}
	st, err := s.stmt(which)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, namespaceID)
	st.bindText(2, key)
	st.bindInt(3, scopeID)
	return drainIDs(st)
}

// drainIDs gives what is left of a statement's first column and resets it.
func drainIDs(st stmt) (out []int64, err error) {
	defer st.reset()
	for {
		found, err := st.step()
		if err != nil || !found {
			return out, err
		}
		out = append(out, st.columnInt(0))
	}
}

// AddEntity writes a new entity and fills in its id and revision. The caller
// stages it.
func (tx *WriteTx) AddEntity(e *Entity) (err error) {
	e.Kind = KindEntity
	if e.typeID, err = tx.intern(e.Type); err != nil {
		return err
	}
	if err := tx.addRecord(&e.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddEntity)
	if err != nil {
		return err
	}
	st.bindInt(1, e.ID)
	bindEntity(st, 2, e)
	if err := st.run(); err != nil {
		return err
	}
	return tx.names(sqlAddName, e)
}

// UpdateEntity replaces old, as it was read in this operation, by e, which
// keeps its id, namespace and creation time. The caller stages it.
func (tx *WriteTx) UpdateEntity(old, e *Entity) (err error) {
	if e.typeID, err = tx.intern(e.Type); err != nil {
		return err
	}
	if err := tx.updateRecord(&old.Record, &e.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdateEntity)
	if err != nil {
		return err
	}
	bindEntity(st, 1, e)
	st.bindInt(7, e.ID)
	if err := st.run(); err != nil {
		return err
	}
	if old.ScopeID == e.ScopeID && old.NameKey == e.NameKey && slices.Equal(old.Aliases, e.Aliases) {
		return nil
	}
	if err := tx.names(sqlDeleteName, old); err != nil {
		return err
	}
	return tx.names(sqlAddName, e)
}

func bindEntity(st stmt, at int, e *Entity) {
	st.bindInt(at, e.typeID)
	st.bindText(at+1, e.Name)
	st.bindText(at+2, e.NameKey)
	st.bindText(at+3, strings.Join(e.Aliases, aliasSeparator))
	st.bindText(at+4, string(e.Attributes))
	st.bindText(at+5, e.Summary)
}

// names adds or deletes the names that an entity is found by. An alias that is
// its name as well is not one of them.
func (tx *WriteTx) names(which statement, e *Entity) error {
	st, err := tx.stmt(which)
	if err != nil {
		return err
	}
	run := func(key string, alias int64) error {
		st.bindInt(1, e.NamespaceID)
		st.bindText(2, key)
		st.bindInt(3, e.ScopeID)
		st.bindInt(4, alias)
		st.bindInt(5, e.ID)
		return st.run()
	}
	if err := run(e.NameKey, 0); err != nil {
		return err
	}
	for _, alias := range e.Aliases {
		if alias == e.NameKey {
			continue
		}
		if err := run(alias, 1); err != nil {
			return err
		}
	}
	return nil
}

// forgetEntity checks that nothing stands on an entity and takes its names
// away, which no foreign key does.
func (tx *WriteTx) forgetEntity(id int64) error {
	e, err := tx.Entity(id)
	if err != nil || e == nil {
		return err
	}
	kind, by, err := tx.ReferenceTo(id)
	if err != nil {
		return err
	}
	switch kind {
	case KindRelation:
		return errs.New(errs.Conflict, "entity %d stands in relation %d: delete what stands on it first", id, by)
	case KindEvent:
		return errs.New(errs.Conflict, "entity %d takes part in event %d: delete what stands on it first", id, by)
	}
	return tx.names(sqlDeleteName, e)
}

// ReferenceTo gives a relation or an event that stands on an entity, whatever
// its scope; kind 0 when there is none.
func (s *session) ReferenceTo(id int64) (kind Kind, by int64, err error) {
	for _, look := range []struct {
		kind  Kind
		which statement
	}{{KindRelation, sqlAnyRelationOf}, {KindEvent, sqlAnyEventOf}} {
		ids, err := s.ids(look.which, id)
		if err != nil {
			return 0, 0, err
		}
		if len(ids) > 0 {
			return look.kind, ids[0], nil
		}
	}
	return 0, 0, nil
}
