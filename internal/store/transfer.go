package store

import (
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// What export and import need beside what every operation does.

// NextID is the id that the next new record would get.
func (tx *ReadTx) NextID() (int64, error) {
	return queryInt(tx.c, "SELECT next_id FROM meta WHERE one = 1")
}

// CountRecords counts the records by kind: all of them, or those of one
// namespace, which costs a look at each.
func (s *session) CountRecords(namespace string) (counts map[Kind]int64, err error) {
	counts = map[Kind]int64{}
	sql, id := "SELECT kind, n FROM counts WHERE n > 0 AND $1 = 0", int64(0)
	if namespace != "" {
		var ok bool
		if id, ok, err = s.StringID(namespace); err != nil || !ok {
			return counts, err
		}
		sql = "SELECT kind, count(*) FROM records WHERE namespace_id = $1 GROUP BY kind"
	}
	st, err := s.once(sql)
	if err != nil {
		return nil, err
	}
	defer st.close()
	st.bindInt(1, id)
	for {
		found, err := st.step()
		if err != nil || !found {
			return counts, err
		}
		counts[Kind(st.columnInt(0))] = st.columnInt(1)
	}
}

// ScanNamespace is ScanRecords for the records of one namespace.
func (s *session) ScanNamespace(namespace, after int64, limit int) ([]Stored, int64, error) {
	// The sign keeps the database from sorting an index's rows for every call:
	// it walks on by id.
	st, err := s.once("SELECT id, kind FROM records WHERE id > $1 AND +namespace_id = $2 ORDER BY id LIMIT $3")
	if err != nil {
		return nil, 0, err
	}
	defer st.close()
	st.bindInt(1, after)
	st.bindInt(2, namespace)
	st.bindInt(3, int64(limit))
	return s.loadRecords(st, after)
}

// settled gives the namespaces that stand in a table of settings, sorted.
func (s *session) settled(table string) ([]string, error) {
	st, err := s.once("SELECT DISTINCT namespace_id FROM " + table)
	if err != nil {
		return nil, err
	}
	ids, err := drainIDs(st)
	st.close()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		name, err := s.String(id)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// SettledNamespaces gives the namespaces that have predicate rules of their
// own, equivalents, or a root of notes, each list sorted.
func (s *session) SettledNamespaces() (rules, equivalents, roots []string, err error) {
	if rules, err = s.settled("predicate_rules"); err != nil {
		return nil, nil, nil, err
	}
	rules = slices.DeleteFunc(rules, func(name string) bool { return name == "" })
	if equivalents, err = s.settled("predicate_equivalents"); err != nil {
		return nil, nil, nil, err
	}
	roots, err = s.settled("note_roots")
	return rules, equivalents, roots, err
}

// VectorNamespaces gives the namespaces that have switches of their own, and
// those that have a default space, each list sorted.
func (s *session) VectorNamespaces() (switched, defaults []string, err error) {
	if switched, err = s.settled("vectorization"); err != nil {
		return nil, nil, err
	}
	defaults, err = s.settled("default_spaces")
	return switched, defaults, err
}

// PolicyNamespaces gives the namespaces that have a replacement policy, sorted.
func (s *session) PolicyNamespaces() ([]string, error) { return s.settled("context_policies") }

// ContextCounts says how much the context store holds besides the current
// revisions of its pages.
type ContextCounts struct {
	Scopes      int64
	Revisions   int64 // before the current ones
	Log         int64 // entries
	Checkpoints int64
}

// CountContexts counts what the context store holds: all of it, or that of one
// namespace. It looks at everything.
func (s *session) CountContexts(namespace string) (n ContextCounts, err error) {
	id := int64(0)
	if namespace != "" {
		var ok bool
		if id, ok, err = s.StringID(namespace); err != nil || !ok {
			return n, err
		}
	}
	const of = " JOIN context_scopes c ON c.id = x.context_id WHERE c.namespace_id = $1 OR $1 = 0"
	for _, count := range []struct {
		into *int64
		sql  string
	}{
		{&n.Scopes, "SELECT count(*) FROM context_scopes c WHERE c.namespace_id = $1 OR $1 = 0"},
		{&n.Revisions, "SELECT count(*) FROM pages x JOIN page_versions v ON v.page_record = x.id AND v.version <> x.version" + of},
		{&n.Log, "SELECT count(*) FROM context_log x" + of},
		{&n.Checkpoints, "SELECT count(*) FROM context_checkpoints x" + of},
	} {
		st, err := s.once(count.sql)
		if err != nil {
			return n, err
		}
		st.bindInt(1, id)
		found, err := st.step()
		if err == nil && found {
			*count.into = st.columnInt(0)
		}
		st.close()
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ScanLog gives up to limit entries of a scope's log behind a number, ascending.
func (s *session) ScanLog(context int64, typ LogType, after int64, limit int) (out []LogEntry, err error) {
	st, err := s.once(`SELECT number, created_at, entry_key, body FROM context_log
		WHERE context_id = $1 AND type = $2 AND number > $3 ORDER BY number LIMIT $4`)
	if err != nil {
		return nil, err
	}
	defer st.close()
	st.bindInt(1, context)
	st.bindInt(2, int64(typ))
	st.bindInt(3, after)
	st.bindInt(4, int64(limit))
	for {
		found, err := st.step()
		if err != nil || !found {
			return out, err
		}
		out = append(out, readLog(st))
	}
}

// Unused says whether the store never held anything.
func (tx *WriteTx) Unused() bool { return tx.w.next.revision == 0 && tx.w.next.nextID == 1 }

// NextID is the id that the next new record gets.
func (tx *WriteTx) NextID() int64 { return tx.w.next.nextID }

// Adopt makes new records of this operation keep the ids and revisions they
// bring, and the operation make revision. The store must be unused.
func (tx *WriteTx) Adopt(revision int64) error {
	if !tx.Unused() {
		return errs.New(errs.Conflict, "only a store that never held anything takes over ids")
	}
	tx.adopting, tx.changed = true, true
	tx.w.next.revision = revision
	return nil
}

// ReserveIDs makes ids below next never come up again.
func (tx *WriteTx) ReserveIDs(next int64) { tx.w.next.nextID = max(tx.w.next.nextID, next) }

// InAnyOrder runs fn, in which a record may be written before those that it
// refers to. That these come too is the caller's to see to: nothing checks it
// afterwards.
func (tx *WriteTx) InAnyOrder(fn func() error) error {
	if err := tx.c.exec(tx.w.s.dialect.deferReferences); err != nil {
		return err
	}
	err := fn()
	if end := tx.c.exec(tx.w.s.dialect.settleReferences); err == nil {
		err = end
	}
	return err
}

// Add writes a new record of any kind and stages it for nobody: its index must
// be brought up by the journal. A point brings the place that it lies in.
func (tx *WriteTx) Add(r Stored) (err error) {
	switch r := r.(type) {
	case *Memory:
		err = tx.AddMemory(r)
	case *Entity:
		err = tx.AddEntity(r)
	case *Relation:
		err = tx.AddRelation(r)
	case *Event:
		err = tx.AddEvent(r)
	case *Note:
		err = tx.AddNote(r)
	case *Chunk:
		err = tx.AddChunk(r)
	case *Page:
		err = tx.AddPage(r)
	case *Point:
		err = tx.AddPoint(r.ScopeID, r)
	default:
		return errs.New(errs.Validation, "records of kind %d cannot be written", r.Head().Kind)
	}
	if err == nil {
		tx.Stage(r.Head(), nil)
	}
	return err
}
