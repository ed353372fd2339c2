package store

import (
	"math"

	"github.com/loci-memory/loci/internal/errs"
)

// vectorCache is what the writer remembers of spaces and marks, so that a write
// that concerns none of them reads nothing. It holds what the running
// transaction sees, and is forgotten whenever something is rolled back.
type vectorCache struct {
	known  bool
	spaces []int64                // also those that are going
	marks  map[ReadyMark]struct{} // ready in any space
}

// A ReadyMark names a tier of a namespace in which nothing is missing.
type ReadyMark struct {
	Namespace int64
	Tier      Tier
}

func (w *writer) vectors(s *session) (*vectorCache, error) {
	c := &w.cache
	if c.known {
		return c, nil
	}
	spaces, err := s.ids(sqlSpaceIDs)
	if err != nil {
		return nil, err
	}
	marks := map[ReadyMark]struct{}{}
	err = s.each(sqlReadyAll, nil, func(st stmt) bool {
		marks[ReadyMark{st.columnInt(0), Tier(st.columnInt(1))}] = struct{}{}
		return true
	})
	if err != nil {
		return nil, err
	}
	*c = vectorCache{known: true, spaces: spaces, marks: marks}
	return c, nil
}

// AddSpace adds a space, whose name must be free, and fills in its number.
func (tx *WriteTx) AddSpace(sp *Space) error {
	if tx.w.next.nextSpace > maxSpaceID {
		return errs.New(errs.Conflict, "the store has had %d spaces, there is no room for another", int64(maxSpaceID))
	}
	st, err := tx.stmt(sqlAddSpace)
	if err != nil {
		return err
	}
	tx.Change()
	sp.ID = tx.w.next.nextSpace
	tx.w.next.nextSpace++
	tx.w.cache.known = false
	st.bindInt(1, sp.ID)
	st.bindText(2, sp.Name)
	st.bindText(3, sp.Model)
	st.bindInt(4, int64(sp.Dimension))
	st.bindInt(5, int64(sp.TextVersion))
	st.bindInt(6, int64(sp.Encoding))
	return st.run()
}

// SetProbe sets what a space's model made of a fixed text.
func (tx *WriteTx) SetProbe(space int64, probe []float32) error {
	st, err := tx.stmt(sqlSetProbe)
	if err != nil {
		return err
	}
	tx.Change()
	st.bindBlob(1, encodeFloats(probe))
	st.bindInt(2, space)
	return st.run()
}

// DropSpace deletes a space, its marks, and what names it as a default, and
// stages that. Its vectors count for nothing from now on; RemoveVectors removes
// them.
func (tx *WriteTx) DropSpace(space int64) error {
	for _, which := range []statement{sqlDropSpace, sqlClearReadySpace, sqlClearDefaultSpaces} {
		if err := tx.exec(which, space); err != nil {
			return err
		}
	}
	tx.Change()
	tx.w.cache.known = false
	tx.w.changes = append(tx.w.changes, Change{Vector: &VectorChange{Space: space, Dropped: true}})
	return nil
}

// RemoveVectors removes at most limit vectors of a space that was dropped. False
// means that none is left, and nothing of the space either. It makes no
// revision.
func (tx *WriteTx) RemoveVectors(space int64, limit int) (more bool, err error) {
	from, to := vectorKey(space, 0), vectorKey(space, maxVectorID)+1
	bound, err := tx.ids(sqlVectorBound, from, to, int64(limit))
	if err != nil {
		return false, err
	}
	if len(bound) > 0 {
		to, more = bound[0], true
	}
	if err := tx.exec(sqlDeleteVectors, from, to); err != nil {
		return false, err
	}
	if !more {
		tx.w.cache.known = false
		err = tx.exec(sqlForgetSpace, space)
	}
	tx.w.next.hints++
	return more, err
}

// PutVector writes a record's vector in a space, in the place of an earlier one,
// and stages it. fingerprint is that of the text it was made of. The vector must
// be of the space's dimension, finite and not zero, else it is
// errs.InvalidVector.
func (tx *WriteTx) PutVector(sp *Space, r *Record, fingerprint uint64, v []float32) error {
	if len(v) != sp.Dimension {
		return errs.New(errs.InvalidVector, "a vector has %d numbers, the space has %d dimensions", len(v), sp.Dimension)
	}
	norm := normOf(v)
	if !(norm > 0) || math.IsInf(norm, 0) {
		return errs.New(errs.InvalidVector, "a vector is not finite, or zero")
	}
	if r.ID > maxVectorID {
		return errs.New(errs.Validation, "record %d has an id too high for a vector", r.ID)
	}
	st, err := tx.stmt(sqlPutVector)
	if err != nil {
		return err
	}
	st.bindInt(1, vectorKey(sp.ID, r.ID))
	st.bindInt(2, int64(fingerprint))
	st.bindFloat(3, norm)
	st.bindBlob(4, encodeFloats(v))
	if err := st.run(); err != nil {
		return err
	}
	tx.stageVector(r, &VectorChange{
		Space: sp.ID, Encoding: sp.Encoding, Scope: r.ScopeID, Values: scaled(make([]float32, len(v)), v, norm),
	})
	return nil
}

// DropVector removes a record's vector from a space and stages that.
func (tx *WriteTx) DropVector(space int64, r *Record) error {
	if err := tx.exec(sqlDeleteVector, vectorKey(space, r.ID)); err != nil {
		return err
	}
	tx.stageVector(r, &VectorChange{Space: space, Scope: r.ScopeID})
	return nil
}

func (tx *WriteTx) stageVector(r *Record, c *VectorChange) {
	tx.Change()
	tx.w.changes = append(tx.w.changes, Change{ID: r.ID, Namespace: r.NamespaceID, Kind: r.Kind, Vector: c})
}

// TextOfCaller stands for the fingerprint of a vector that was not made of a text:
// the caller gave it, and it stays until he gives another.
const TextOfCaller = 0

// StageText is Stage for a record whose text may have vectors: those that were
// made of another text go. fingerprint is asked for only when there are any, and
// gives that of the text as it is now.
func (tx *WriteTx) StageText(r *Record, doc any, fingerprint func() uint64) error {
	tx.Stage(r, doc)
	cache, err := tx.w.vectors(tx.session)
	if err != nil || len(cache.spaces) == 0 || r.ID >= tx.firstNew {
		return err
	}
	var now *uint64
	for _, space := range cache.spaces {
		made, ok, err := tx.VectorText(space, r.ID)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if now == nil {
			now = new(fingerprint())
		}
		if made != *now && made != TextOfCaller {
			if err := tx.DropVector(space, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetVectors removes the vectors of a record that goes. Whoever takes the
// change of the record knows that they go with it.
func (tx *WriteTx) forgetVectors(r *Record) error {
	if TierOf(r.Kind) == TierMaster {
		return nil
	}
	cache, err := tx.w.vectors(tx.session)
	if err != nil {
		return err
	}
	for _, space := range cache.spaces {
		if err := tx.exec(sqlDeleteVector, vectorKey(space, r.ID)); err != nil {
			return err
		}
	}
	return nil
}

// unready takes back that nothing is missing in the tiers of the records that
// the operation wrote.
func (tx *WriteTx) unready() error {
	changes := tx.w.changes[tx.journal:]
	if len(changes) == 0 {
		return nil
	}
	cache, err := tx.w.vectors(tx.session)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if len(cache.marks) == 0 {
			return nil
		}
		mark := ReadyMark{c.Namespace, TierOf(c.Kind)}
		if _, marked := cache.marks[mark]; c.Vector != nil || !marked {
			continue
		}
		delete(cache.marks, mark)
		if err := tx.exec(sqlClearReady, mark.Namespace, int64(mark.Tier)); err != nil {
			return err
		}
	}
	return nil
}

// SetVectorSwitch switches a tier of a namespace, or all of them, and takes back
// every mark of the namespace.
func (tx *WriteTx) SetVectorSwitch(namespace string, t Tier, enabled bool) error {
	id, err := tx.intern(namespace)
	if err != nil {
		return err
	}
	tx.Change()
	tx.w.cache.known = false
	if err := tx.exec(sqlSetSwitch, id, int64(t), boolInt(enabled)); err != nil {
		return err
	}
	return tx.exec(sqlClearReadyNamespace, id)
}

// SetVectorReady marks a tier of a namespace: nothing is missing in a space.
func (tx *WriteTx) SetVectorReady(namespace int64, t Tier, space int64) error {
	tx.Change()
	tx.w.use(namespace)
	// Marks come and go with every few writes: to read all of them again each time
	// would make writes slow where there are many namespaces.
	if c := &tx.w.cache; c.known {
		c.marks[ReadyMark{namespace, t}] = struct{}{}
	}
	return tx.exec(sqlSetReady, namespace, int64(t), space)
}

// SetDefaultSpace sets the space that a namespace's searches use; 0 sets none.
func (tx *WriteTx) SetDefaultSpace(namespace string, space int64) error {
	id, err := tx.intern(namespace)
	if err != nil {
		return err
	}
	tx.Change()
	if space == 0 {
		return tx.exec(sqlClearDefaultSpace, id)
	}
	return tx.exec(sqlSetDefaultSpace, id, space)
}

// exec runs a statement that takes integers and gives no rows.
func (tx *WriteTx) exec(which statement, args ...int64) error {
	st, err := tx.stmt(which)
	if err != nil {
		return err
	}
	for i, v := range args {
		st.bindInt(i+1, v)
	}
	return st.run()
}

// SpaceThere says whether a space that was read earlier is still there.
func (tx *WriteTx) SpaceThere(sp *Space) (bool, error) {
	now, err := tx.Space(sp.Name)
	return now != nil && now.ID == sp.ID, err
}
