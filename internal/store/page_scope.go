package store

import (
	"errors"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// ContextOf gives what is kept about a scope of a namespace, by its canonical
// form; nil when there is nothing.
func (s *session) ContextOf(namespace, scope string) (*ContextScope, error) {
	namespaceID, scopeID, ok, err := s.place(namespace, scope)
	if err != nil || !ok {
		return nil, err
	}
	return s.oneContext(sqlContext, namespaceID, scopeID)
}

// ContextByID gives what is kept about a scope; nil when there is no such scope.
func (s *session) ContextByID(id int64) (*ContextScope, error) {
	return s.oneContext(sqlContextByID, id)
}

func (s *session) oneContext(which statement, args ...int64) (*ContextScope, error) {
	found, err := s.contexts(which, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Contexts gives the scopes of a namespace, or all of them with "", by id.
func (s *session) Contexts(namespace string) ([]*ContextScope, error) {
	id := int64(0)
	if namespace != "" {
		var ok bool
		var err error
		if id, ok, err = s.StringID(namespace); err != nil || !ok {
			return nil, err
		}
	}
	return s.contexts(sqlContexts, id)
}

func (s *session) contexts(which statement, args ...int64) (out []*ContextScope, err error) {
	err = s.each(which, args, func(st stmt) bool {
		out = append(out, &ContextScope{
			ID: st.columnInt(0), NamespaceID: st.columnInt(1), ScopeID: st.columnInt(2), Version: st.columnInt(3),
			State: slices.Clone(st.columnRaw(4)),
		})
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, c := range out {
		if c.Namespace, err = s.String(c.NamespaceID); err != nil {
			return nil, err
		}
		if c.Scope, err = s.String(c.ScopeID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PublishedText is the text that a scope published last, up to the first page
// that was removed for good since; false when it never published any.
func (s *session) PublishedText(context int64) (text []byte, ok bool, err error) {
	err = s.each(sqlPublished, []int64{context}, func(st stmt) bool {
		text, ok = slices.Clone(st.columnRaw(0)), true
		return false
	})
	return text, ok, err
}

// Policy gives a namespace's replacement policy, as it was set; nil for none.
func (s *session) Policy(namespace string) (policy []byte, err error) {
	id, ok, err := s.StringID(namespace)
	if err != nil || !ok {
		return nil, err
	}
	err = s.each(sqlPolicy, []int64{id}, func(st stmt) bool {
		policy = slices.Clone(st.columnRaw(0))
		return false
	})
	return policy, err
}

// LogTail gives the latest entries of a scope's log, newest first, at most
// limit.
func (s *session) LogTail(context int64, typ LogType, limit int) (out []LogEntry, err error) {
	err = s.each(sqlLogTail, []int64{context, int64(typ), int64(max(limit, 0))}, func(st stmt) bool {
		out = append(out, readLog(st))
		return true
	})
	return out, err
}

// LogByKey gives the entry of a scope's log with a key; nil when there is none.
func (s *session) LogByKey(context int64, typ LogType, key string) (*LogEntry, error) {
	st, err := s.stmt(sqlLogByKey)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, context)
	st.bindInt(2, int64(typ))
	st.bindText(3, key)
	defer st.reset()
	if found, err := st.step(); err != nil || !found {
		return nil, err
	}
	return new(readLog(st)), nil
}

func readLog(st stmt) LogEntry {
	return LogEntry{Number: st.columnInt(0), At: st.columnInt(1), Key: st.columnText(2), Body: slices.Clone(st.columnRaw(3))}
}

// Checkpoints gives the checkpoints of a scope without their pages, by id.
func (s *session) Checkpoints(context int64) (out []Checkpoint, err error) {
	err = s.each(sqlCheckpoints, []int64{context}, func(st stmt) bool {
		out = append(out, Checkpoint{ID: st.columnInt(0), Context: context, Label: st.columnText(1), At: st.columnInt(2)})
		return true
	})
	return out, err
}

// Checkpoint gives a checkpoint of a scope; nil when the scope has none of this
// id.
func (s *session) Checkpoint(context, id int64) (c *Checkpoint, err error) {
	var damage error
	err = s.each(sqlCheckpoint, []int64{id, context}, func(st stmt) bool {
		c = &Checkpoint{ID: st.columnInt(0), Context: context, Label: st.columnText(1), At: st.columnInt(2)}
		c.Pages, damage = decodeCheckpoint(st.columnRaw(3))
		return false
	})
	if err = errors.Join(err, damage); err != nil {
		return nil, err
	}
	return c, nil
}

// NewID takes one of the ids that records share with scopes and checkpoints.
func (tx *WriteTx) NewID() int64 {
	tx.Change()
	id := tx.w.next.nextID
	tx.w.next.nextID++
	return id
}

// ownID is NewID, or the id that something brings while ids are kept.
func (tx *WriteTx) ownID(brought int64) int64 {
	if !tx.adopting || brought == 0 {
		return tx.NewID()
	}
	tx.w.next.nextID = max(tx.w.next.nextID, brought+1)
	return brought
}

// AddContext adds a scope, of which there must be nothing yet, and fills in its
// ids.
func (tx *WriteTx) AddContext(c *ContextScope) (err error) {
	if c.NamespaceID, err = tx.intern(c.Namespace); err != nil {
		return err
	}
	if c.ScopeID, err = tx.intern(c.Scope); err != nil {
		return err
	}
	tx.Change()
	c.ID = tx.ownID(c.ID)
	st, err := tx.stmt(sqlAddContext)
	if err != nil {
		return err
	}
	st.bindInt(1, c.ID)
	st.bindInt(2, c.NamespaceID)
	st.bindInt(3, c.ScopeID)
	st.bindInt(4, c.Version)
	st.bindText(5, string(c.State))
	return st.run()
}

// UpdateContext writes a scope's version and state as they stand in c.
func (tx *WriteTx) UpdateContext(c *ContextScope) error {
	st, err := tx.stmt(sqlUpdateContext)
	if err != nil {
		return err
	}
	st.bindInt(1, c.Version)
	st.bindText(2, string(c.State))
	st.bindInt(3, c.ID)
	return tx.runOnOne(st, "scope", c.ID)
}

// runOnOne runs a statement that changes one row, of what and id.
func (tx *WriteTx) runOnOne(st stmt, what string, id int64) error {
	tx.Change()
	if err := st.run(); err != nil {
		return err
	}
	if tx.c.changes() == 0 {
		return errs.New(errs.NotFound, "%s %d is not there", what, id)
	}
	return nil
}

// PutPublished writes the text that a scope published last, in the place of an
// earlier one.
func (tx *WriteTx) PutPublished(context int64, text []byte) error {
	st, err := tx.stmt(sqlPutPublished)
	if err != nil {
		return err
	}
	tx.Change()
	if text == nil {
		text = []byte{} // nil would be NULL
	}
	st.bindInt(1, context)
	st.bindBlob(2, text)
	return st.run()
}

// SetPolicy sets a namespace's replacement policy; nil sets none.
func (tx *WriteTx) SetPolicy(namespace string, policy []byte) error {
	id, err := tx.intern(namespace)
	if err != nil {
		return err
	}
	tx.Change()
	if policy == nil {
		return tx.exec(sqlClearPolicy, id)
	}
	st, err := tx.stmt(sqlSetPolicy)
	if err != nil {
		return err
	}
	st.bindInt(1, id)
	st.bindText(2, string(policy))
	return st.run()
}

// AppendLog adds an entry to a scope's log and fills in its number. One with a
// key that the log has is errs.Conflict.
func (tx *WriteTx) AppendLog(context int64, typ LogType, e *LogEntry) error {
	last, err := tx.ids(sqlLogLast, context, int64(typ))
	if err != nil {
		return err
	}
	e.Number = 1
	if len(last) > 0 {
		e.Number = last[0] + 1
	}
	return tx.AddLog(context, typ, e)
}

// AddLog adds an entry under the number that it brings, for logs that are taken
// over. One with a number or a key that the log has is errs.Conflict.
func (tx *WriteTx) AddLog(context int64, typ LogType, e *LogEntry) error {
	st, err := tx.stmt(sqlAddLog)
	if err != nil {
		return err
	}
	tx.Change()
	st.bindInt(1, context)
	st.bindInt(2, int64(typ))
	st.bindInt(3, e.Number)
	st.bindInt(4, e.At)
	if e.Key == "" {
		st.bindNull(5)
	} else {
		st.bindText(5, e.Key)
	}
	st.bindText(6, string(e.Body))
	err = st.run()
	if errors.Is(err, errUnique) {
		return &errs.Error{Code: errs.Conflict, Field: "key", Message: "the log has an entry with this key: look for it first"}
	}
	return err
}

// TrimLog removes all but the latest entries of a scope's log. keep is at least
// 1: numbers go on behind the latest one.
func (tx *WriteTx) TrimLog(context int64, typ LogType, keep int64) error {
	if keep < 1 {
		return errs.Invalid("keep", "is %d: keep at least one entry", keep)
	}
	last, err := tx.ids(sqlLogLast, context, int64(typ))
	if err != nil || len(last) == 0 || last[0] <= keep {
		return err
	}
	if err := tx.exec(sqlTrimLog, context, int64(typ), last[0]-keep); err != nil {
		return err
	}
	if tx.c.changes() > 0 {
		tx.Change()
	}
	return nil
}

// AddCheckpoint adds a checkpoint and fills in its id. Its pages ascend by id
// and hold no number below 0.
func (tx *WriteTx) AddCheckpoint(c *Checkpoint) error {
	pages, err := encodeCheckpoint(c.Pages)
	if err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddCheckpoint)
	if err != nil {
		return err
	}
	tx.Change()
	c.ID = tx.ownID(c.ID)
	st.bindInt(1, c.ID)
	st.bindInt(2, c.Context)
	st.bindText(3, c.Label)
	st.bindInt(4, c.At)
	st.bindBlob(5, pages)
	return st.run()
}

// RemoveCheckpoint removes a checkpoint of a scope; errs.NotFound when the scope
// has none of this id.
func (tx *WriteTx) RemoveCheckpoint(context, id int64) error {
	st, err := tx.stmt(sqlRemoveCheckpoint)
	if err != nil {
		return err
	}
	st.bindInt(1, id)
	st.bindInt(2, context)
	return tx.runOnOne(st, "checkpoint", id)
}

// RemoveContext removes a scope with all that is in it, and stages its pages as
// gone. Copies of its pages elsewhere go with them. A namespace's policy stays.
func (tx *WriteTx) RemoveContext(id int64) error {
	pages, err := tx.ids(sqlPagesAfter, id, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	for _, page := range pages {
		r, err := tx.recordHead(page)
		if err != nil {
			return err
		}
		if r == nil {
			continue // it was a copy of one before it
		}
		if err := tx.removePageRecord(r, false); err != nil {
			return err
		}
	}
	for _, which := range []statement{sqlClearPublished, sqlClearLog, sqlClearCheckpoints} {
		if err := tx.exec(which, id); err != nil {
			return err
		}
	}
	st, err := tx.stmt(sqlRemoveContext)
	if err != nil {
		return err
	}
	st.bindInt(1, id)
	return tx.runOnOne(st, "scope", id)
}
