package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestStringUses compares the columns that the sweep of the dictionary looks at with
// the schema: a column that it does not know of would lose its strings.
func TestStringUses(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	// Columns that hold other ids.
	others := []string{"id", "record_id", "chunk_id", "subject_id", "object_id", "event_id", "entity_id", "note_id", "space_id",
		"context_id", "page_id", "origin_id", "next_id"}
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		var missing []string
		err := tx.each(`SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`, func(st stmt) error {
			table, column := st.columnText(0), st.columnText(1)
			holds := strings.HasSuffix(column, "_id") && !slices.Contains(others, column) || column == "place" || strings.HasSuffix(column, "_place")
			known := slices.ContainsFunc(stringUses[:], func(u struct{ table, column string }) bool { return u.table == table && u.column == column })
			if holds != known {
				missing = append(missing, fmt.Sprintf("%s.%s: listed %v", table, column, known))
			}
			return nil
		})
		if len(missing) > 0 {
			err = errors.Join(err, errors.New(strings.Join(missing, ", ")))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSweepStrings holds that a sweep removes what nobody uses, keeps what is used
// while it runs, and never gives an id twice.
func TestSweepStrings(t *testing.T) {
	s, _ := agentStore(t, t.TempDir(), Options{}) // with one of everything
	all := func() (out map[string]int64) {
		out = map[string]int64{}
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			return tx.each("SELECT text, id FROM strings", func(st stmt) error { out[st.columnText(0)] = st.columnInt(1); return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	memory := func(tag string) *Memory {
		return &Memory{Record: Record{Namespace: "n", Scope: "s", Created: 1, Updated: 1, Tags: []string{tag}}, Type: tag + " type", Judgment: "j"}
	}
	kept, gone, late := memory("kept"), memory("gone"), memory("late")
	writes(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.AddMemory(kept), tx.AddMemory(gone), tx.AddMemory(late))
	})
	before := all()
	if n, err := s.SweepStrings(t.Context(), func(string) bool { return false }); n != 0 || err != nil {
		t.Fatalf("%d removed, %v: everything was used", n, err)
	}
	writes(t, s, func(tx *WriteTx) error { return errors.Join(tx.Delete(&gone.Record), tx.Delete(&late.Record)) })

	// A string that is used again behind the sweep's snapshot stays. keep runs in
	// between. A reader holds a snapshot that still has the others.
	var again *Memory
	old := func(tx *ReadTx) error { // as it was before the sweep
		for _, text := range []string{"gone", "gone type"} {
			id, ok, err := tx.StringID(text)
			if err != nil || !ok || id != before[text] {
				return fmt.Errorf("%s is %d, %v, %w", text, id, ok, err)
			}
			if got, err := tx.String(id); got != text || err != nil {
				return fmt.Errorf("%d is %q, %w", id, got, err)
			}
		}
		return nil
	}
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		if _, err := tx.Memory(kept.ID); err != nil { // the snapshot begins
			return err
		}
		n, err := s.SweepStrings(t.Context(), func(text string) bool {
			if again == nil {
				again = memory("late")
				writes(t, s, func(tx *WriteTx) error { return tx.AddMemory(again) })
			}
			return text == "gone type"
		})
		if n != 1 || err != nil {
			return fmt.Errorf("%d removed, %w", n, err)
		}
		return old(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	after := all()
	if _, there := after["gone"]; there || after["late"] != before["late"] || after["gone type"] != before["gone type"] {
		t.Errorf("%v", after)
	}
	delete(before, "gone")
	for text, id := range before {
		if after[text] != id {
			t.Errorf("%q was %d, is %d", text, id, after[text])
		}
	}
	// Who uses the word again gets another id, whatever the old reader brought up.
	back := memory("gone")
	writes(t, s, func(tx *WriteTx) error { return tx.AddMemory(back) })
	if now := all()["gone"]; now <= before["kept"] || now != back.TagIDs[0] {
		t.Errorf("it has the id %d, the record %d", now, back.TagIDs[0])
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check.Integrity != "ok" {
		t.Errorf("%+v, %v", check, err)
	}
	// A sweep that fails leaves no trace of itself with the writer.
	writes(t, s, func(tx *WriteTx) error {
		if tx.w.used != nil || len(tx.w.gone) > 0 {
			t.Error("the writer still notes what it uses")
		}
		return nil
	})
}

// TestRemoveAgentMemory holds that a memory goes with its places, those that are to be
// emptied too, and nothing else does.
func TestRemoveAgentMemory(t *testing.T) {
	s, m := agentStore(t, t.TempDir(), Options{})
	writes(t, s, func(tx *WriteTx) error {
		now, err := tx.AgentMemory(m.Namespace, m.Scope)
		if err != nil {
			return err
		}
		return tx.RemoveAgentMemory(now)
	})
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		memories, err := tx.AgentMemories()
		if err != nil || len(memories) != 1 || memories[0].Namespace != "o" {
			return fmt.Errorf("%v, %w", memories, err)
		}
		for _, table := range []string{"agent_places", "point_edges", "point_versions"} {
			if n, err := queryInt(tx.c, "SELECT count(*) FROM "+table); err != nil || n != 0 {
				return fmt.Errorf("%d rows of %s, %w", n, table, err)
			}
		}
		if n, err := queryInt(tx.c, "SELECT count(*) FROM points"); err != nil || n != 1 {
			return fmt.Errorf("%d points, %w", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.SweepStrings(t.Context(), func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check.Integrity != "ok" {
		t.Errorf("%+v, %v", check, err)
	}
}
