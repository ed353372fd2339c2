package store

import (
	"errors"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// Relation is a directed edge between two entities.
type Relation struct {
	Record
	Subject      int64
	Predicate    string
	PredicateKey string // the predicate, normalised: what makes two predicates the same
	Object       int64
	Confidence   float64
	Reason       string

	// Set by the store, as the record's dictionary ids are.
	PredicateID    int64
	PredicateKeyID int64
}

// Relation gives a relation, or nil when there is none.
func (s *session) Relation(id int64) (*Relation, error) {
	st, err := s.stmt(sqlRelation)
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
	r := &Relation{
		Record: readRecord(st), Subject: st.columnInt(at), PredicateID: st.columnInt(at + 1),
		PredicateKeyID: st.columnInt(at + 2), Object: st.columnInt(at + 3), Confidence: st.columnFloat(at + 4),
		Reason: st.columnText(at + 5),
	}
	st.reset()
	if r.Predicate, err = s.String(r.PredicateID); err != nil {
		return nil, err
	}
	if r.PredicateKey, err = s.String(r.PredicateKeyID); err != nil {
		return nil, err
	}
	return r, s.completeRecord(&r.Record)
}

// RelationByTriple gives the relation of a scope with these ends and this
// normalised predicate, or nil.
func (s *session) RelationByTriple(scope string, subject int64, predicateKey string, object int64) (*Relation, error) {
	scopeID, ok, err := s.StringID(scope)
	if err != nil || !ok {
		return nil, err
	}
	key, ok, err := s.StringID(predicateKey)
	if err != nil || !ok {
		return nil, err
	}
	ids, err := s.ids(sqlRelationByTriple, subject, scopeID, key, object)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return s.Relation(ids[0])
}

// RelationsOf gives the ids of all relations that an entity stands in,
// ascending.
func (s *session) RelationsOf(entity int64) ([]int64, error) {
	return sortedIDs(
		func() ([]int64, error) { return s.ids(sqlRelationsOfSubject, entity) },
		func() ([]int64, error) { return s.ids(sqlRelationsOfObject, entity) })
}

// RelationsOfIn gives those of RelationsOf that lie in one of the scopes.
func (s *session) RelationsOfIn(entity int64, scopes []string) ([]int64, error) {
	var looks []func() ([]int64, error)
	for _, scope := range scopes {
		id, ok, err := s.StringID(scope)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		looks = append(looks,
			func() ([]int64, error) { return s.ids(sqlRelationsOfSubjectIn, entity, id) },
			func() ([]int64, error) { return s.ids(sqlRelationsOfObjectIn, entity, id) })
	}
	return sortedIDs(looks...)
}

// sortedIDs unites lists of ids.
func sortedIDs(looks ...func() ([]int64, error)) (out []int64, err error) {
	for _, look := range looks {
		ids, err := look()
		if err != nil {
			return nil, err
		}
		out = append(out, ids...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// CountRelations counts the relations that an entity stands in and that lie in
// one of the scopes.
func (s *session) CountRelations(entity int64, scopes []string) (n int64, err error) {
	counted := make(map[int64]bool, len(scopes))
	for _, scope := range scopes {
		id, ok, err := s.StringID(scope)
		if err != nil {
			return 0, err
		}
		if !ok || counted[id] {
			continue
		}
		counted[id] = true
		for _, which := range []statement{sqlCountRelationsOfSubject, sqlCountRelationsOfObject} {
			counts, err := s.ids(which, entity, id)
			if err != nil {
				return 0, err
			}
			for _, c := range counts {
				n += c
			}
		}
	}
	return n, nil
}

// AddRelation writes a new relation between two entities that exist and fills
// in its id and revision. The caller stages it. When the scope has one of the
// same ends and predicate it is errs.Conflict.
func (tx *WriteTx) AddRelation(r *Relation) (err error) {
	r.Kind = KindRelation
	if err := tx.internPredicate(r); err != nil {
		return err
	}
	if err := tx.addRecord(&r.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddRelation)
	if err != nil {
		return err
	}
	st.bindInt(1, r.ID)
	bindRelation(st, 2, r)
	st.bindInt(10, r.Created)
	return tx.explainTriple(r, st.run())
}

// UpdateRelation replaces old, as it was read in this operation, by r, which
// keeps its id, namespace and creation time. The caller stages it.
func (tx *WriteTx) UpdateRelation(old, r *Relation) (err error) {
	if err := tx.internPredicate(r); err != nil {
		return err
	}
	if err := tx.updateRecord(&old.Record, &r.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdateRelation)
	if err != nil {
		return err
	}
	bindRelation(st, 1, r)
	st.bindInt(9, r.ID)
	return tx.explainTriple(r, st.run())
}

func (tx *WriteTx) internPredicate(r *Relation) (err error) {
	if r.PredicateID, err = tx.intern(r.Predicate); err != nil {
		return err
	}
	r.PredicateKeyID, err = tx.intern(r.PredicateKey)
	return err
}

func bindRelation(st stmt, at int, r *Relation) {
	st.bindInt(at, r.ScopeID)
	st.bindInt(at+1, r.Subject)
	st.bindInt(at+2, r.PredicateID)
	st.bindInt(at+3, r.PredicateKeyID)
	st.bindInt(at+4, r.Object)
	st.bindFloat(at+5, r.Confidence)
	st.bindText(at+6, r.Reason)
	st.bindBlob(at+7, encodeIDs(r.TagIDs))
}

// explainTriple names the relation that is what r wants to be.
func (tx *WriteTx) explainTriple(r *Relation, err error) error {
	if !errors.Is(err, errUnique) {
		return err
	}
	held, e := tx.ids(sqlRelationByTriple, r.Subject, r.ScopeID, r.PredicateKeyID, r.Object)
	if e != nil || len(held) == 0 {
		return err
	}
	return errs.New(errs.Conflict, "relation %d of this scope has the same ends and predicate: update that one, or delete one of the two", held[0])
}
