package store

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// WriteTx is an operation's view of the store while the writer runs it. It
// sees what earlier operations of the same commit did, and is valid only
// inside the function it was given to.
type WriteTx struct {
	*session
	w       *writer
	changed bool
	journal int // where this operation's changes begin in the group's
	// firstNew is the least id of a record made in this operation.
	firstNew int64
	// adopting is set while new records keep the id and revision they bring.
	adopting bool
	// may says where the operation may write; nil: everywhere.
	may func(namespace, scope string) error
	// left are the scopes that records have left in this operation, by record, for
	// the journal. It is made when the first one does.
	left map[int64]int64
}

func (tx *WriteTx) begin() {
	tx.changed, tx.journal, tx.adopting, tx.may = false, len(tx.w.changes), false, nil
	tx.left = nil
	tx.firstNew = tx.w.next.nextID
}

func (tx *WriteTx) call(fn func(*WriteTx) error) (err error) {
	defer recovered(&err)
	return fn(tx)
}

// Restrict makes the operation fail with may's error once it adds, changes or
// deletes a record of a namespace and scope for which may has one. What goes along
// with a deleted record, such as pages that are copies of it, is not asked about.
func (tx *WriteTx) Restrict(may func(namespace, scope string) error) { tx.may = may }

func (tx *WriteTx) allowed(r *Record) error {
	if tx.may == nil {
		return nil
	}
	return tx.may(r.Namespace, r.Scope)
}

// Current is the revision that the store has now: the one that earlier
// operations made, or this one's own once it changed something.
func (tx *WriteTx) Current() int64 { return tx.w.next.revision }

// Change marks the operation as one that changes something and gives the
// revision that it makes, always the same one.
func (tx *WriteTx) Change() int64 {
	if !tx.changed {
		tx.changed = true
		tx.w.next.revision++
	}
	return tx.w.next.revision
}

// Stage hands a record's new state to the index and notes it in the journal;
// doc nil means that the record is gone.
func (tx *WriteTx) Stage(r *Record, doc any) {
	tx.Change()
	tx.w.changes = append(tx.w.changes, Change{ID: r.ID, Namespace: r.NamespaceID, Kind: r.Kind, Doc: doc})
}

// leaves notes that a record leaves its scope, by going to another or by being
// deleted. The caller stages the record.
func (tx *WriteTx) leaves(r *Record) {
	if tx.left == nil {
		tx.left = map[int64]int64{}
	}
	if _, ok := tx.left[r.ID]; !ok { // in between, nobody could see it
		tx.left[r.ID] = r.ScopeID
	}
}

// intern gives a string's dictionary id and adds it if need be; "" is 0.
func (tx *WriteTx) intern(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	id, ok, err := tx.StringID(text)
	if ok || err != nil {
		tx.w.use(id)
		return id, err
	}
	st, err := tx.stmt(sqlAddString)
	if err != nil {
		return 0, err
	}
	id = tx.w.next.nextString
	tx.w.next.nextString++
	st.bindInt(1, id)
	st.bindText(2, text)
	if err := st.run(); err != nil {
		return 0, err
	}
	tx.pending.add(id, text)
	return id, nil
}

// internRecord fills in a record's dictionary ids.
func (tx *WriteTx) internRecord(r *Record) (err error) {
	if r.NamespaceID, err = tx.intern(r.Namespace); err != nil {
		return err
	}
	// A point lies in a place, which is none of the scopes that callers name.
	if !r.Kind.IsPoint() {
		if r.ScopeID, err = tx.intern(r.Scope); err != nil {
			return err
		}
	}
	if r.ThreadID, err = tx.intern(r.Thread); err != nil {
		return err
	}
	r.TagIDs = nil
	if len(r.Tags) > 0 {
		r.TagIDs = make([]int64, len(r.Tags))
		for i, tag := range r.Tags {
			if r.TagIDs[i], err = tx.intern(tag); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddMemory writes a new memory and fills in its id and revision. The caller
// stages it.
func (tx *WriteTx) AddMemory(m *Memory) (err error) {
	m.Kind = KindMemory
	if m.typeID, err = tx.intern(m.Type); err != nil {
		return err
	}
	if err := tx.addRecord(&m.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddMemory)
	if err != nil {
		return err
	}
	st.bindInt(1, m.ID)
	st.bindInt(2, m.typeID)
	st.bindInt(3, epochOf(m.ID))
	st.bindInt(4, m.JudgmentHash)
	bindState(st, 5, &m.State)
	st.bindText(11, m.Judgment)
	st.bindText(12, m.Reasoning)
	return st.run()
}

// MemoriesByHash gives the memories whose judgment has this hash, by id.
func (tx *WriteTx) MemoriesByHash(hash int64) ([]*Memory, error) {
	return tx.memoriesByHash(hash, tx.w.next.nextID)
}

// UpdateMemory replaces old, as it was read in this operation, by m, which
// keeps its id, namespace and creation time. The caller stages it.
func (tx *WriteTx) UpdateMemory(old, m *Memory) (err error) {
	if m.typeID, err = tx.intern(m.Type); err != nil {
		return err
	}
	if err := tx.updateRecord(&old.Record, &m.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdateMemory)
	if err != nil {
		return err
	}
	st.bindInt(1, m.typeID)
	st.bindInt(2, m.JudgmentHash)
	bindState(st, 3, &m.State)
	st.bindText(9, m.Judgment)
	st.bindText(10, m.Reasoning)
	st.bindInt(11, m.ID)
	return st.run()
}

// UpdateState replaces a memory's lifecycle state. An index holds none of it,
// so nothing is staged.
func (tx *WriteTx) UpdateState(m *Memory) error {
	if err := tx.allowed(&m.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdateState)
	if err != nil {
		return err
	}
	bindState(st, 1, &m.State)
	st.bindInt(7, m.ID)
	if err := st.run(); err != nil {
		return err
	}
	return tx.Touch(&m.Record)
}

// Touch gives a record the operation's revision, for what changed about it
// stands elsewhere. The caller stages it.
func (tx *WriteTx) Touch(r *Record) error {
	r.Revision = tx.Change()
	tx.w.touched = append(tx.w.touched, r.ID)
	st, err := tx.stmt(sqlTouchRecord)
	if err != nil {
		return err
	}
	st.bindInt(1, r.Revision)
	st.bindInt(2, r.ID)
	return st.run()
}

// Delete removes a record, as it was read in this operation, with all that
// hangs on it, the pages that are copies of it too, and stages that. An entity
// that a relation or an event stands on is errs.Conflict. A page goes as with
// RemovePage.
func (tx *WriteTx) Delete(r *Record) error {
	if err := tx.allowed(r); err != nil {
		return err
	}
	if r.Kind == KindPage {
		return tx.removePage(r, true)
	}
	if r.Kind == KindEntity {
		if err := tx.forgetEntity(r.ID); err != nil {
			return err
		}
	}
	if err := tx.removeCopies(r.ID); err != nil {
		return err
	}
	return tx.removeRecord(r)
}

// removeRecord removes a record and what cascades from it, and stages that.
func (tx *WriteTx) removeRecord(r *Record) error {
	if err := tx.tags(sqlDeleteTag, r.NamespaceID, r.ID, r.TagIDs); err != nil {
		return err
	}
	if err := tx.forgetVectors(r); err != nil {
		return err
	}
	tx.w.touched = append(tx.w.touched, r.ID)
	st, err := tx.stmt(sqlDeleteRecord)
	if err != nil {
		return err
	}
	st.bindInt(1, r.ID)
	if err := st.run(); err != nil {
		return err
	}
	tx.w.next.counts[r.Kind]--
	tx.leaves(r)
	tx.Stage(r, nil)
	return nil
}

func bindState(st stmt, at int, s *State) {
	var pinned int64
	if s.Pinned {
		pinned = 1
	}
	st.bindInt(at, pinned)
	st.bindFloat(at+1, s.Strength)
	st.bindInt(at+2, s.UsefulCount)
	st.bindFloat(at+3, s.UsefulScore)
	bindOptional(st, at+4, s.LastRecalled)
	bindOptional(st, at+5, s.LastDecay)
}

func bindOptional(st stmt, at int, v *int64) {
	if v == nil {
		st.bindNull(at)
		return
	}
	st.bindInt(at, *v)
}

func bindID(st stmt, at int, id int64) {
	if id == 0 {
		st.bindNull(at)
		return
	}
	st.bindInt(at, id)
}

func bindMetadata(st stmt, at int, v []byte) {
	if len(v) == 0 {
		st.bindNull(at)
		return
	}
	st.bindText(at, string(v))
}

func (tx *WriteTx) addRecord(r *Record) error {
	if err := tx.allowed(r); err != nil {
		return err
	}
	if err := tx.internRecord(r); err != nil {
		return err
	}
	revision := tx.Change()
	if tx.adopting {
		tx.w.next.nextID = max(tx.w.next.nextID, r.ID+1)
	} else {
		r.Revision = revision
		r.ID = tx.w.next.nextID
		tx.w.next.nextID++
	}
	tx.w.touched = append(tx.w.touched, r.ID)
	st, err := tx.stmt(sqlAddRecord)
	if err != nil {
		return err
	}
	st.bindInt(1, r.ID)
	st.bindInt(2, int64(r.Kind))
	st.bindInt(3, r.NamespaceID)
	st.bindInt(4, r.ScopeID)
	bindID(st, 5, r.ThreadID)
	bindOptional(st, 6, r.Position)
	st.bindInt(7, r.Created)
	st.bindInt(8, r.Updated)
	st.bindInt(9, r.Revision)
	st.bindInt(10, r.flags())
	st.bindBlob(11, encodeIDs(r.TagIDs))
	bindMetadata(st, 12, r.Metadata)
	if err := st.run(); err != nil {
		return tx.explainPosition(r, err)
	}
	if err := tx.tags(sqlAddTag, r.NamespaceID, r.ID, r.TagIDs); err != nil {
		return err
	}
	tx.w.next.counts[r.Kind]++
	return tx.addEvidence(r)
}

func (tx *WriteTx) updateRecord(old, r *Record) error {
	for _, at := range []*Record{old, r} {
		if err := tx.allowed(at); err != nil {
			return err
		}
	}
	if err := tx.internRecord(r); err != nil {
		return err
	}
	if old.ScopeID != r.ScopeID {
		tx.leaves(old)
	}
	r.Revision = tx.Change()
	tx.w.touched = append(tx.w.touched, old.ID)
	st, err := tx.stmt(sqlUpdateRecord)
	if err != nil {
		return err
	}
	st.bindInt(1, r.ScopeID)
	bindID(st, 2, r.ThreadID)
	bindOptional(st, 3, r.Position)
	st.bindInt(4, r.Updated)
	st.bindInt(5, r.Revision)
	st.bindInt(6, r.flags())
	st.bindBlob(7, encodeIDs(r.TagIDs))
	bindMetadata(st, 8, r.Metadata)
	st.bindInt(9, r.ID)
	if err := st.run(); err != nil {
		return tx.explainPosition(r, err)
	}
	if !slices.Equal(old.TagIDs, r.TagIDs) {
		if err := tx.tags(sqlDeleteTag, r.NamespaceID, r.ID, old.TagIDs); err != nil {
			return err
		}
		if err := tx.tags(sqlAddTag, r.NamespaceID, r.ID, r.TagIDs); err != nil {
			return err
		}
	}
	if old.hasEvidence {
		if st, err = tx.stmt(sqlDeleteEvidence); err != nil {
			return err
		}
		st.bindInt(1, r.ID)
		if err := st.run(); err != nil {
			return err
		}
	}
	return tx.addEvidence(r)
}

// explainPosition names the record that holds the position that r wants.
func (tx *WriteTx) explainPosition(r *Record, err error) error {
	if !errors.Is(err, errUnique) || r.ThreadID == 0 || r.Position == nil {
		return err
	}
	held, e := tx.ids(sqlThreadHolder, r.NamespaceID, r.ScopeID, int64(r.Kind), r.ThreadID, *r.Position)
	if e != nil || len(held) == 0 {
		return err
	}
	return &errs.Error{Code: errs.Conflict, Field: "position",
		Message: "position " + itoa(*r.Position) + " of the thread is taken by record " + itoa(held[0]) + ": choose another position"}
}

func (tx *WriteTx) tags(which statement, namespace, record int64, tags []int64) error {
	if len(tags) == 0 {
		return nil
	}
	st, err := tx.stmt(which)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		st.bindInt(1, namespace)
		st.bindInt(2, tag)
		st.bindInt(3, record)
		if err := st.run(); err != nil {
			return err
		}
	}
	return nil
}

func (tx *WriteTx) addEvidence(r *Record) error {
	r.hasEvidence = len(r.Evidence) > 0
	if !r.hasEvidence {
		return nil
	}
	st, err := tx.stmt(sqlAddEvidence)
	if err != nil {
		return err
	}
	for i := range r.Evidence {
		e := &r.Evidence[i]
		st.bindInt(1, r.ID)
		st.bindInt(2, int64(i))
		st.bindText(3, e.Source)
		st.bindText(4, e.SourceRevision)
		bindOptional(st, 5, e.ChunkID)
		bindOptional(st, 6, e.Offset)
		bindOptional(st, 7, e.Limit)
		st.bindText(8, e.Quote)
		bindMetadata(st, 9, e.Metadata)
		if err := st.run(); err != nil {
			return err
		}
	}
	return nil
}

// JournalPart is the number of changes in one row of the journal, but for the last
// row of a revision.
const JournalPart = 1000

// writeJournal notes the operation's changes, some per row: a row for each
// would cost as much as a record's own.
func (tx *WriteTx) writeJournal() error {
	changes := tx.w.changes[tx.journal:]
	for part := 0; len(changes) > 0; part++ {
		n := min(len(changes), JournalPart)
		buf := make([]byte, 0, 6*n)
		for _, c := range changes[:n] {
			buf = binary.AppendUvarint(buf, uint64(c.ID))
			buf = binary.AppendUvarint(buf, uint64(c.Namespace))
			if c.Vector == nil {
				if scope, ok := tx.left[c.ID]; ok {
					buf = append(buf, byte(c.Kind)|journalLeft)
					buf = binary.AppendUvarint(buf, uint64(scope))
				} else {
					buf = append(buf, byte(c.Kind))
				}
				continue
			}
			buf = append(buf, byte(c.Kind)|journalVector)
			buf = binary.AppendUvarint(buf, uint64(c.Vector.Space))
		}
		st, err := tx.stmt(sqlAddJournal)
		if err != nil {
			return err
		}
		st.bindInt(1, tx.w.next.revision)
		st.bindInt(2, int64(part))
		st.bindBlob(3, buf)
		if err := st.run(); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}
