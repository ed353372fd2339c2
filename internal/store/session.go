package store

import (
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// session is a connection with its prepared statements: what a read and a
// write transaction have in common.
type session struct {
	c        conn
	dict     *dict
	texts    *[statementCount]string
	stmts    [statementCount]stmt
	shared   *sharedRecords
	settings *settings
	// pending holds the strings that the running group of writes has added, and
	// resets says that the group changes what settings keeps; only the writer has
	// them.
	pending *pendingStrings
	resets  bool
	// begin opens the transaction of a reader that has none yet; nil when there is
	// one.
	begin func() error
}

func newSession(s *Store, c conn) *session {
	return &session{c: c, dict: s.dict, texts: &s.texts, shared: s.shared, settings: s.settings}
}

// foreignSession is a session of another file than the store's, of which nothing
// that the store keeps is true.
func foreignSession(s *Store, c conn) *session {
	return &session{c: c, dict: newDict(), texts: &s.texts, shared: newSharedRecords(), settings: &settings{}}
}

// begun opens the transaction that a reader was promised, if it has none yet.
func (s *session) begun() error {
	begin := s.begin
	if begin == nil {
		return nil
	}
	s.begin = nil
	return begin()
}

// once prepares a statement that is not kept.
func (s *session) once(sql string) (stmt, error) {
	if err := s.begun(); err != nil {
		return nil, err
	}
	return s.c.prepare(sql)
}

// stmt gives a prepared statement, ready to bind.
func (s *session) stmt(which statement) (stmt, error) {
	if err := s.begun(); err != nil {
		return nil, err
	}
	if s.pending != nil && changesSettings(which) {
		s.resets = true
	}
	if st := s.stmts[which]; st != nil {
		return st, nil
	}
	st, err := s.c.prepare(s.texts[which])
	if err != nil {
		return nil, err
	}
	s.stmts[which] = st
	return st, nil
}

// run executes a statement that takes no parameters and gives no rows.
func (s *session) run(which statement) error {
	st, err := s.stmt(which)
	if err != nil {
		return err
	}
	return st.run()
}

// resetAll ends statements that a panic or an early return left in the middle.
func (s *session) resetAll() {
	for _, st := range s.stmts {
		if st != nil {
			st.reset()
		}
	}
}

func (s *session) close() error {
	for i, st := range s.stmts {
		if st != nil {
			st.close()
			s.stmts[i] = nil
		}
	}
	return s.c.close()
}

// StringID gives a string's dictionary id; false when nothing uses it.
func (s *session) StringID(text string) (int64, bool, error) {
	if s.pending != nil {
		if id, ok := s.pending.ids[text]; ok {
			return id, true, nil
		}
	}
	if id, ok := s.dict.id(text); ok {
		return id, true, nil
	}
	st, err := s.stmt(sqlStringID)
	if err != nil {
		return 0, false, err
	}
	st.bindText(1, text)
	defer st.reset()
	found, err := st.step()
	if !found || err != nil {
		return 0, false, err
	}
	id := st.columnInt(0)
	s.dict.add(id, text)
	return id, true, nil
}

// String gives the text of a dictionary id.
func (s *session) String(id int64) (string, error) {
	if id == 0 {
		return "", nil
	}
	if s.pending != nil {
		if text, ok := s.pending.texts[id]; ok {
			return text, nil
		}
	}
	if text, ok := s.dict.text(id); ok {
		return text, nil
	}
	st, err := s.stmt(sqlStringText)
	if err != nil {
		return "", err
	}
	st.bindInt(1, id)
	defer st.reset()
	found, err := st.step()
	if err != nil {
		return "", err
	}
	if !found {
		return "", errs.New(errs.Storage, "the database is damaged: a record uses a string that is not there")
	}
	text := st.columnText(0)
	s.dict.add(id, text)
	return text, nil
}

// Revision is the store's revision in this transaction's snapshot.
func (s *session) storedRevision() (int64, error) {
	st, err := s.stmt(sqlReadRevision)
	if err != nil {
		return 0, err
	}
	defer st.reset()
	if found, err := st.step(); err != nil || !found {
		return 0, err
	}
	return st.columnInt(0), nil
}

// Memory gives a memory, or nil when there is none.
func (s *session) Memory(id int64) (*Memory, error) {
	st, err := s.stmt(sqlMemory)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, id)
	found, err := st.step()
	if !found || err != nil {
		st.reset()
		return nil, err
	}
	m := readMemory(st)
	st.reset()
	return m, s.complete(m)
}

// Memories gives the memories with these ids, in this order, those that exist.
func (s *session) Memories(ids []int64) ([]*Memory, error) {
	out := make([]*Memory, 0, len(ids))
	for _, id := range ids {
		m, err := s.Memory(id)
		if err != nil {
			return nil, err
		}
		if m != nil {
			out = append(out, m)
		}
	}
	return out, nil
}

// epochSize is the number of ids that share a part of the judgment index.
const epochSize = 1 << 16

func epochOf(id int64) int64 { return id / epochSize }

// memoriesByHash gives the memories whose judgment has this hash, by id. No
// memory has an id of limit or above.
func (s *session) memoriesByHash(hash, limit int64) ([]*Memory, error) {
	var out []*Memory
	for epoch := int64(0); epoch <= epochOf(limit); epoch++ {
		ids, err := s.ids(sqlMemoryIDsByHash, epoch, hash)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			continue
		}
		found, err := s.Memories(ids)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// readRecord reads the header of the row of recordColumns that st stands on.
func readRecord(st stmt) Record {
	r := Record{
		ID: st.columnInt(0), Kind: Kind(st.columnInt(1)), NamespaceID: st.columnInt(2), ScopeID: st.columnInt(3),
		ThreadID: st.columnInt(4), Position: columnOptional(st, 5),
		Created: st.columnInt(6), Updated: st.columnInt(7), Revision: st.columnInt(8),
		hasEvidence: st.columnInt(9)&flagEvidence != 0,
		TagIDs:      decodeIDs(st.columnRaw(10)),
	}
	if raw := st.columnRaw(11); len(raw) > 0 {
		r.Metadata = slices.Clone(raw)
	}
	return r
}

// recordColumnCount is the number of columns of recordColumns.
const recordColumnCount = 12

// readMemory reads the row of memoryColumns that st stands on.
func readMemory(st stmt) *Memory {
	m := &Memory{Record: readRecord(st)}
	m.typeID = st.columnInt(12)
	m.JudgmentHash = st.columnInt(13)
	m.State = State{
		Pinned: st.columnInt(14) != 0, Strength: st.columnFloat(15), UsefulCount: st.columnInt(16),
		UsefulScore: st.columnFloat(17), LastRecalled: columnOptional(st, 18), LastDecay: columnOptional(st, 19),
	}
	m.Judgment, m.Reasoning = st.columnText(20), st.columnText(21)
	return m
}

func columnOptional(st stmt, i int) *int64 {
	if st.columnNull(i) {
		return nil
	}
	v := st.columnInt(i)
	return &v
}

// complete fills in what stands outside of the record's row.
func (s *session) complete(m *Memory) (err error) {
	if m.Type, err = s.String(m.typeID); err != nil {
		return err
	}
	return s.completeRecord(&m.Record)
}

func (s *session) completeRecord(r *Record) (err error) {
	if r.Namespace, err = s.String(r.NamespaceID); err != nil {
		return err
	}
	if r.Scope, err = s.String(r.ScopeID); err != nil {
		return err
	}
	if r.Thread, err = s.String(r.ThreadID); err != nil {
		return err
	}
	if len(r.TagIDs) > 0 {
		r.Tags = make([]string, len(r.TagIDs))
		for i, id := range r.TagIDs {
			if r.Tags[i], err = s.String(id); err != nil {
				return err
			}
		}
	}
	if r.hasEvidence {
		r.Evidence, err = s.evidence(r.ID)
	}
	return err
}

func (s *session) evidence(id int64) ([]Evidence, error) {
	st, err := s.stmt(sqlEvidence)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, id)
	defer st.reset()
	var out []Evidence
	for {
		found, err := st.step()
		if err != nil || !found {
			return out, err
		}
		e := Evidence{
			Source: st.columnText(0), SourceRevision: st.columnText(1), ChunkID: columnOptional(st, 2),
			Offset: columnOptional(st, 3), Limit: columnOptional(st, 4), Quote: st.columnText(5),
		}
		if raw := st.columnRaw(6); len(raw) > 0 {
			e.Metadata = slices.Clone(raw)
		}
		out = append(out, e)
	}
}

// scanChunk is the number of ids that a scan looks up at once.
const scanChunk = 256

// ScanMemories is Scan for memories.
func (s *session) ScanMemories(f Filter, after int64, want int, fn func(*Memory) (bool, error)) error {
	f.Kind = KindMemory
	return s.Scan(f, after, want, func(r Stored) (bool, error) { return fn(r.(*Memory)) })
}

// Scan calls fn with the records that f covers, by ascending id from behind
// after, until fn gives false. want is a hint how many are needed; 0 means all.
// fn may use the transaction.
func (s *session) Scan(f Filter, after int64, want int, fn func(Stored) (bool, error)) error {
	list, err := s.list(f)
	if list == nil || err != nil {
		return err
	}
	size := scanChunk
	if want > 0 {
		size = min(size, want)
	}
	for {
		ids, err := list(after, size)
		if err != nil {
			return err
		}
		for _, id := range ids {
			r, err := s.RecordOf(f.Kind, id)
			if err != nil {
				return err
			}
			if r == nil || !f.Covers(r.Head()) {
				continue
			}
			if more, err := fn(r); err != nil || !more {
				return err
			}
		}
		if len(ids) < size {
			return nil
		}
		after, size = ids[len(ids)-1], scanChunk
	}
}

// lister gives the next ids behind after, ascending, at most limit. Fewer than
// limit means that there are no more.
type lister func(after int64, limit int) ([]int64, error)

// list chooses how to walk what f covers; nil means that it covers nothing.
// The ids may include some that f does not cover.
func (s *session) list(f Filter) (lister, error) {
	namespace, ok, err := s.StringID(f.Namespace)
	if err != nil || !ok {
		return nil, err
	}
	scopes, err := s.scopesOf(f, namespace)
	if err != nil || len(scopes) == 0 {
		return nil, err
	}
	var tag int64
	for i, text := range f.Tags {
		id, ok, err := s.StringID(text)
		if err != nil || !ok {
			return nil, err
		}
		if i == 0 {
			tag = id
		}
	}
	var thread int64
	if f.Thread != "" {
		if thread, ok, err = s.StringID(f.Thread); err != nil || !ok {
			return nil, err
		}
	}
	perScope := func(scope int64, after int64, limit int) ([]int64, error) {
		switch {
		case thread != 0:
			return s.ids(sqlListThread, namespace, scope, int64(f.Kind), thread, after, int64(limit))
		case f.From != nil || f.To != nil:
			from, to := int64(-1<<63), int64(1<<63-1)
			if f.From != nil {
				from = *f.From
			}
			if f.To != nil {
				to = *f.To
			}
			return s.ids(sqlListScopeTime, namespace, int64(f.Kind), scope, after, from, to, int64(limit))
		}
		return s.ids(sqlListScope, namespace, int64(f.Kind), scope, after, int64(limit))
	}
	if tag != 0 && thread == 0 && !f.Kind.IsPoint() { // points of a place that is given up have tags too
		return func(after int64, limit int) ([]int64, error) {
			return s.ids(sqlListTag, namespace, tag, after, int64(limit))
		}, nil
	}
	if len(scopes) == 1 {
		return func(after int64, limit int) ([]int64, error) { return perScope(scopes[0], after, limit) }, nil
	}
	return mergeScopes(scopes, perScope), nil
}

// scopesOf are the ids of those of a filter's scopes that there are; for points,
// those of their places.
func (s *session) scopesOf(f Filter, namespace int64) (scopes []int64, err error) {
	for _, scope := range f.Scopes {
		id, ok, err := s.StringID(scope)
		if err != nil {
			return nil, err
		}
		if ok && f.Kind.IsPoint() {
			var places [3]int64
			if places, ok, err = s.Places(namespace, id); err != nil {
				return nil, err
			}
			id = places[f.Kind-KindFact]
		}
		if ok && !slices.Contains(scopes, id) {
			scopes = append(scopes, id)
		}
	}
	return scopes, nil
}

// mergeScopes walks several scopes in one ascending order. Each scope's ids are
// read ahead and kept until the merge has passed them.
func mergeScopes(scopes []int64, next func(scope, after int64, limit int) ([]int64, error)) lister {
	type queue struct {
		ids  []int64
		last int64
		done bool
	}
	queues := make([]queue, len(scopes))
	started := false
	return func(after int64, limit int) ([]int64, error) {
		var out []int64
		for len(out) < limit {
			best := -1
			for i := range queues {
				q := &queues[i]
				if !started {
					q.last = after
				}
				if len(q.ids) == 0 && !q.done {
					ids, err := next(scopes[i], q.last, limit)
					if err != nil {
						return nil, err
					}
					q.ids, q.done = ids, len(ids) < limit
					if len(ids) > 0 {
						q.last = ids[len(ids)-1]
					}
				}
				if len(q.ids) > 0 && (best < 0 || q.ids[0] < queues[best].ids[0]) {
					best = i
				}
			}
			started = true
			if best < 0 {
				break
			}
			out = append(out, queues[best].ids[0])
			queues[best].ids = queues[best].ids[1:]
		}
		return out, nil
	}
}

// ids runs a statement that takes integers and gives ids.
func (s *session) ids(which statement, args ...int64) ([]int64, error) {
	st, err := s.stmt(which)
	if err != nil {
		return nil, err
	}
	for i, v := range args {
		st.bindInt(i+1, v)
	}
	defer st.reset()
	var out []int64
	for {
		found, err := st.step()
		if err != nil || !found {
			return out, err
		}
		out = append(out, st.columnInt(0))
	}
}

// ScanRecords reads on behind an id, at most limit records, and gives what it
// found with the id to go on behind, which is the same one at the end. It
// serves the rebuild of an index.
func (s *session) ScanRecords(after int64, limit int) ([]Stored, int64, error) {
	st, err := s.stmt(sqlListAll)
	if err != nil {
		return nil, 0, err
	}
	st.bindInt(1, after)
	st.bindInt(2, int64(limit))
	return s.loadRecords(st, after)
}

// loadRecords reads the records whose ids and kinds a statement gives.
func (s *session) loadRecords(st stmt, after int64) ([]Stored, int64, error) {
	type key struct {
		id   int64
		kind Kind
	}
	var keys []key
	for {
		found, err := st.step()
		if err != nil {
			st.reset()
			return nil, 0, err
		}
		if !found {
			break
		}
		keys = append(keys, key{st.columnInt(0), Kind(st.columnInt(1))})
	}
	st.reset()
	out := make([]Stored, 0, len(keys))
	for _, k := range keys {
		after = k.id
		r, err := s.RecordOf(k.kind, k.id)
		if err != nil {
			return nil, 0, err
		}
		if r != nil {
			out = append(out, r)
		}
	}
	return out, after, nil
}
