package store

import (
	"context"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// The dictionary is added to and never cleaned by ordinary writes: to know that
// nobody uses a string takes a look at every table. Erasure has to, since a tag or
// the name of a namespace may be what is to be forgotten. It looks in a snapshot,
// so that writers wait for none of it, and has the writer note meanwhile which
// strings it uses. What nobody uses in the snapshot, and nobody has used since, goes.

// stringUses are the columns that hold ids of the dictionary. A test compares them
// with the schema.
var stringUses = [...]struct{ table, column string }{
	{"records", "namespace_id"}, {"records", "scope_id"}, {"records", "thread_id"},
	{"record_tags", "namespace_id"}, {"record_tags", "tag_id"},
	{"memories", "type_id"}, {"entities", "type_id"}, {"entity_names", "namespace_id"}, {"entity_names", "scope_id"},
	{"relations", "scope_id"}, {"relations", "predicate_id"}, {"relations", "predicate_key_id"}, {"participants", "scope_id"},
	{"notes", "namespace_id"}, {"notes", "scope_id"}, {"note_roots", "namespace_id"},
	{"predicate_rules", "namespace_id"}, {"predicate_equivalents", "namespace_id"},
	{"vectorization", "namespace_id"}, {"vector_ready", "namespace_id"}, {"default_spaces", "namespace_id"},
	{"context_scopes", "namespace_id"}, {"context_scopes", "scope_id"}, {"context_policies", "namespace_id"},
	{"agent_memories", "namespace_id"}, {"agent_memories", "scope_id"}, {"agent_memories", "fact_place"},
	{"agent_memories", "episode_place"}, {"agent_memories", "procedure_place"}, {"agent_places", "place"},
	{"points", "place"}, {"point_edges", "type_id"}, {"point_edges", "place"}, {"point_edges", "target_place"},
}

// unusedStrings gives the strings that no column names.
func unusedStrings() string {
	uses := make([]string, len(stringUses))
	for i, u := range stringUses {
		// DISTINCT for each keeps what has to be sorted small.
		uses[i] = "SELECT DISTINCT " + u.column + " FROM " + u.table + " WHERE " + u.column + " IS NOT NULL"
	}
	return "SELECT id FROM strings WHERE id NOT IN (" + strings.Join(uses, " UNION ") + ") ORDER BY id"
}

// UnusedStrings gives the ids of the strings of the dictionary that nothing uses, but
// for those that keep gives true for. It looks at everything.
func (s *session) UnusedStrings(keep func(text string) bool) (ids []int64, err error) {
	var all []int64
	err = s.query(unusedStrings(), nil, func(st stmt) error {
		all = append(all, st.columnInt(0))
		return nil
	})
	for _, id := range all {
		if err != nil {
			return nil, err
		}
		var text string
		if text, err = s.String(id); err == nil && !keep(text) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// sweptStrings is how many strings one operation of the writer removes.
const sweptStrings = 500

// SweepStrings removes the strings of the dictionary that nothing uses, but for those
// that keep gives true for, and gives their number. Their ids are not used again.
// Reads and writes go on meanwhile. It makes no revision. One call at a time.
func (s *Store) SweepStrings(ctx context.Context, keep func(text string) bool) (removed int64, err error) {
	if _, err := s.Write(ctx, func(tx *WriteTx) error { tx.w.used = map[int64]struct{}{}; return nil }); err != nil {
		return 0, err
	}
	defer func() {
		// Without it the writer would note what it uses for ever.
		_, end := s.Write(context.WithoutCancel(ctx), func(tx *WriteTx) error { tx.w.used = nil; return nil })
		if err == nil {
			err = end
		}
	}()
	var unused []int64
	err = s.Read(ctx, func(tx *ReadTx) (err error) {
		unused, err = tx.UnusedStrings(keep)
		return err
	})
	for len(unused) > 0 && err == nil {
		part := unused[:min(len(unused), sweptStrings)]
		unused = unused[len(part):]
		n := int64(0)
		_, err = s.WriteMany(ctx, func(tx *WriteTx) error {
			n = 0
			for _, id := range part {
				if _, used := tx.w.used[id]; used {
					continue
				}
				if _, err := tx.change("DELETE FROM strings WHERE id = $1", id); err != nil {
					return err
				}
				tx.w.gone = append(tx.w.gone, id)
				n++
			}
			tx.w.next.hints++
			return nil
		})
		if err == nil {
			removed += n
		}
	}
	return removed, err
}

// use notes that the running operation uses a string.
func (w *writer) use(id int64) {
	if w.used != nil && id != 0 {
		w.used[id] = struct{}{}
	}
}

// forget drops strings that were removed. A reader whose snapshot still has them
// reads them from there and does not bring them back.
func (d *dict) forget(ids []int64) {
	if len(ids) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone == nil {
		d.gone = roaring64.New()
	}
	for _, id := range ids {
		d.gone.Add(uint64(id))
		for _, generation := range []struct {
			ids   map[string]int64
			texts map[int64]string
		}{{d.ids, d.texts}, {d.oldIDs, d.oldTexts}} {
			if text, ok := generation.texts[id]; ok {
				delete(generation.texts, id)
				if generation.ids[text] == id {
					delete(generation.ids, text)
				}
			}
		}
	}
}
