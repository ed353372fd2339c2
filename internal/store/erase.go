package store

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// What erasure needs beside what every deletion does: what a record takes along,
// and the traces of it that stand elsewhere.

// query runs a statement that is not kept and calls fn on every row.
func (s *session) query(sql string, args []int64, fn func(stmt) error) error {
	st, err := s.once(sql)
	if err != nil {
		return err
	}
	defer st.close()
	for i, v := range args {
		st.bindInt(i+1, v)
	}
	for {
		found, err := st.step()
		if err != nil || !found {
			return err
		}
		if err := fn(st); err != nil {
			return err
		}
	}
}

// change executes a statement that is not kept and gives how many rows it changed.
func (tx *WriteTx) change(sql string, args ...int64) (int64, error) {
	st, err := tx.once(sql)
	if err != nil {
		return 0, err
	}
	defer st.close()
	for i, v := range args {
		st.bindInt(i+1, v)
	}
	if err := st.run(); err != nil {
		return 0, err
	}
	return tx.c.changes(), nil
}

// EntitiesNamed gives the entities of a namespace, by its dictionary id, that have a
// name or an alias in its normal form, whatever their scope.
func (s *session) EntitiesNamed(namespace int64, key string) (ids []int64, err error) {
	st, err := s.once("SELECT DISTINCT entity_id FROM entity_names WHERE namespace_id = $1 AND name_key = $2 ORDER BY entity_id")
	if err != nil {
		return nil, err
	}
	defer st.close()
	st.bindInt(1, namespace)
	st.bindText(2, key)
	return drainIDs(st)
}

// VectorsOf counts the vectors that a record has, in all spaces.
func (s *session) VectorsOf(id int64) (n int64, err error) {
	spaces, err := s.ids(sqlSpaceIDs)
	for _, space := range spaces {
		_, ok, err := s.VectorText(space, id)
		if err != nil {
			return n, err
		}
		if ok {
			n++
		}
	}
	return n, err
}

// PagePlace gives a page's scope and the caller's id; errs.NotFound when there is
// no such page.
func (s *session) PagePlace(id int64) (context int64, pageID string, err error) {
	return s.pagePlace(id)
}

// PagesOf gives the pages of a scope, ascending behind after, at most limit.
func (s *session) PagesOf(context, after int64, limit int) ([]int64, error) {
	return s.ids(sqlPagesAfter, context, after, int64(limit))
}

// EvidenceOf calls fn with every record that has evidence of a chunk, and the chunk.
// It reads all evidence.
func (s *session) EvidenceOf(fn func(record, chunk int64)) error {
	return s.query("SELECT record_id, chunk_id FROM evidence WHERE chunk_id IS NOT NULL ORDER BY record_id, ordinal", nil, func(st stmt) error {
		fn(st.columnInt(0), st.columnInt(1))
		return nil
	})
}

// KeepEvidence takes those pieces of evidence out of a record, as it was read in
// this operation, that keep gives false for, and gives how many they were. No index
// knows evidence, so nothing is staged.
func (tx *WriteTx) KeepEvidence(r *Record, keep func(*Evidence) bool) (int64, error) {
	left := slices.DeleteFunc(slices.Clone(r.Evidence), func(e Evidence) bool { return !keep(&e) })
	n := int64(len(r.Evidence) - len(left))
	if n == 0 {
		return 0, nil
	}
	if err := tx.allowed(r); err != nil {
		return 0, err
	}
	if err := tx.exec(sqlDeleteEvidence, r.ID); err != nil {
		return 0, err
	}
	r.Evidence = left
	if err := tx.addEvidence(r); err != nil {
		return 0, err
	}
	if err := tx.Touch(r); err != nil {
		return 0, err
	}
	_, err := tx.change("UPDATE records SET flags = $1 WHERE id = $2", r.flags(), r.ID)
	return n, err
}

// Cleaned counts the traces of pages that went.
type Cleaned struct {
	Checkpoints int64 // that named one of them, those that went included
	LogEntries  int64
}

// CleanContext takes out of a scope what it says of pages that are not there any
// more: their places in checkpoints, of which those that have no other page go, and
// their names in the log and in what is kept for the next publication. Numbers and
// times of the log stay. The scope's version grows when there was anything: whoever
// holds it reads it again.
func (tx *WriteTx) CleanContext(context int64) (out Cleaned, err error) {
	there, names := map[int64]bool{}, map[string]bool{}
	err = tx.query("SELECT id, page_id FROM pages WHERE context_id = $1", []int64{context}, func(st stmt) error {
		there[st.columnInt(0)], names[st.columnText(1)] = true, true
		return nil
	})
	if err != nil {
		return out, err
	}
	if out.Checkpoints, err = tx.cleanCheckpoints(context, there); err != nil {
		return out, err
	}
	if out.LogEntries, err = tx.cleanLog(context, names); err != nil {
		return out, err
	}
	c, err := tx.ContextByID(context)
	if err != nil || c == nil {
		return out, err
	}
	state, changed, err := withoutPages(c.State, "pending", names)
	if err != nil {
		return out, err
	}
	if changed {
		c.State = state
	}
	if !changed && out == (Cleaned{}) {
		return out, nil
	}
	c.Version++
	return out, tx.UpdateContext(c)
}

func (tx *WriteTx) cleanCheckpoints(context int64, there map[int64]bool) (n int64, err error) {
	list, err := tx.Checkpoints(context)
	if err != nil {
		return 0, err
	}
	for _, head := range list {
		c, err := tx.Checkpoint(context, head.ID)
		if err != nil || c == nil {
			return n, err
		}
		left := slices.DeleteFunc(slices.Clone(c.Pages), func(p CheckpointPage) bool { return !there[p.ID] })
		if len(left) == len(c.Pages) {
			continue
		}
		n++
		if len(left) == 0 {
			if err := tx.RemoveCheckpoint(context, c.ID); err != nil {
				return n, err
			}
			continue
		}
		pages, err := encodeCheckpoint(left)
		if err != nil {
			return n, err
		}
		if err := tx.rewrite("UPDATE context_checkpoints SET pages = $1 WHERE id = $2", pages, c.ID); err != nil {
			return n, err
		}
	}
	return n, nil
}

// rewrite runs a statement that sets a blob in one row.
func (tx *WriteTx) rewrite(sql string, value []byte, keys ...int64) error {
	st, err := tx.once(sql)
	if err != nil {
		return err
	}
	defer st.close()
	st.bindBlob(1, value)
	for i, key := range keys {
		st.bindInt(i+2, key)
	}
	tx.Change()
	return st.run()
}

// cleanLog rewrites the entries that name pages which are gone.
func (tx *WriteTx) cleanLog(context int64, names map[string]bool) (n int64, err error) {
	type entry struct {
		typ, number int64
		body        []byte
	}
	var changed []entry
	sql := "SELECT type, number, body FROM context_log WHERE context_id = $1 AND type IN ($2, $3)"
	err = tx.query(sql, []int64{context, int64(LogRender), int64(LogResidency)}, func(st stmt) error {
		e := entry{st.columnInt(0), st.columnInt(1), nil}
		var is bool
		var err error
		if LogType(e.typ) == LogRender {
			e.body, is, err = withoutPages(st.columnRaw(2), "operations", names)
		} else {
			e.body, is, err = withoutPage(st.columnRaw(2), names)
		}
		if is {
			changed = append(changed, e)
		}
		return err
	})
	for _, e := range changed {
		if err != nil {
			return n, err
		}
		var st stmt
		if st, err = tx.once("UPDATE context_log SET body = $1 WHERE context_id = $2 AND type = $3 AND number = $4"); err != nil {
			return n, err
		}
		st.bindText(1, string(e.body))
		st.bindInt(2, context)
		st.bindInt(3, e.typ)
		st.bindInt(4, e.number)
		tx.Change()
		err = st.run()
		st.close()
		n++
	}
	return n, err
}

// pageFields are those of an entry of a scope's log that a caller wrote.
const (
	pageField   = "page_id"
	reasonField = "reason"
)

// withoutPage empties the name of a page that is gone, and the reason that a caller
// gave for moving it, in a JSON object; false when it names none.
func withoutPage(raw []byte, names map[string]bool) ([]byte, bool, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, false, errLog(err)
	}
	var page string
	if fields[pageField] == nil || json.Unmarshal(fields[pageField], &page) != nil || page == "" || names[page] {
		return nil, false, nil
	}
	for _, field := range []string{pageField, reasonField} {
		if fields[field] != nil {
			fields[field] = json.RawMessage(`""`)
		}
	}
	out, err := json.Marshal(fields)
	return out, true, err
}

// withoutPages is withoutPage for the objects of a list in an object.
func withoutPages(raw []byte, list string, names map[string]bool) ([]byte, bool, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, false, errLog(err)
	}
	var items []json.RawMessage
	if fields[list] == nil {
		return nil, false, nil
	}
	if err := json.Unmarshal(fields[list], &items); err != nil {
		return nil, false, errLog(err)
	}
	some := false
	for i, item := range items {
		cleaned, changed, err := withoutPage(item, names)
		if err != nil {
			return nil, false, err
		}
		if changed {
			items[i], some = cleaned, true
		}
	}
	if !some {
		return nil, false, nil
	}
	var err error
	if fields[list], err = json.Marshal(items); err != nil {
		return nil, false, err
	}
	out, err := json.Marshal(fields)
	return out, true, err
}

func errLog(err error) error {
	return errs.Wrap(errs.Storage, err, "the database is damaged: what is kept about a context scope cannot be read")
}

// CountLog counts the entries of a scope's logs, of all types.
func (s *session) CountLog(context int64) (n int64, err error) {
	err = s.query("SELECT count(*) FROM context_log WHERE context_id = $1", []int64{context}, func(st stmt) error {
		n = st.columnInt(0)
		return nil
	})
	return n, err
}

// JournalRows counts the rows of the journal.
func (s *session) JournalRows() (n int64, err error) {
	err = s.query("SELECT count(*) FROM index_updates", nil, func(st stmt) error {
		n = st.columnInt(0)
		return nil
	})
	return n, err
}

// RemoveAgentMemory removes an agent memory, as it was read in this operation, with
// whatever points still lie in its places, those that are given up included. Callers
// that have many points remove them first, some at a time.
func (tx *WriteTx) RemoveAgentMemory(m *AgentMemory) error {
	places := slices.Clone(m.Places[:])
	given, err := tx.EmptyPlaces()
	if err != nil {
		return err
	}
	for _, place := range given {
		name, err := tx.String(place)
		if err != nil {
			return err
		}
		if n, ok := placeOf(name); ok && n.memory == m.ID {
			places = append(places, place)
		}
	}
	for _, place := range places {
		for more := true; more; {
			if more, _, err = tx.EmptyPlace(place, 1000); err != nil {
				return err
			}
		}
	}
	tx.Change()
	_, err = tx.change("DELETE FROM agent_memories WHERE id = $1", m.ID)
	return err
}

// settingTables hold what is set of namespaces.
var settingTables = [...]string{"predicate_rules", "predicate_equivalents", "vectorization", "vector_ready", "default_spaces",
	"note_roots", "context_policies"}

// CountSettings counts what is set of a namespace. Marks of readiness are none of it.
func (s *session) CountSettings(namespace int64) (n int64, err error) {
	for _, table := range settingTables {
		if table == "vector_ready" {
			continue
		}
		err = s.query("SELECT count(*) FROM "+table+" WHERE namespace_id = $1", []int64{namespace}, func(st stmt) error {
			n += st.columnInt(0)
			return nil
		})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ClearSettings removes all that is set of a namespace: rules and equivalents of
// predicates, switches of vectors, the default space, the root of its notes, and the
// policy of its contexts. 0 is no namespace: what is set of the whole store stays.
func (tx *WriteTx) ClearSettings(namespace int64) (n int64, err error) {
	if namespace == 0 {
		return 0, nil
	}
	if n, err = tx.CountSettings(namespace); err != nil {
		return 0, err
	}
	tx.Change()
	tx.w.cache.known, tx.resets = false, true
	for _, table := range settingTables {
		if _, err := tx.change("DELETE FROM "+table+" WHERE namespace_id = $1", namespace); err != nil {
			return 0, err
		}
	}
	return n, nil
}
