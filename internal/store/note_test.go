package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func testNote(path string) *Note {
	return &Note{
		Record: Record{Namespace: "n", Scope: "s", Tags: []string{"a", "b"}, Metadata: []byte(`{"k":1}`), Created: 1, Updated: 2,
			Evidence: []Evidence{{Source: "x"}}},
		Path: path, Bytes: 7, ChunkChars: 220, Modified: 9, Fingerprint: []byte{1, 0, 2},
	}
}

func testChunk(n *Note, ordinal int) *Chunk {
	return &Chunk{
		Record: Record{Namespace: n.Namespace, Scope: n.Scope, Tags: []string{"a"}, Created: 1, Updated: 2},
		NoteID: n.ID, Ordinal: ordinal, Offset: int64(2*ordinal + 1), Limit: 1, Content: fmt.Sprint("piece ", ordinal, "\x00"),
	}
}

// addNote writes a note of some chunks.
func addNote(t *testing.T, s *Store, path string, chunks int) (n *Note, cs []*Chunk) {
	t.Helper()
	n = testNote(path)
	write(t, s, func(tx *WriteTx) error {
		if err := tx.AddNote(n); err != nil {
			return err
		}
		tx.Stage(&n.Record, nil)
		for i := range chunks {
			c := testChunk(n, i)
			if err := tx.AddChunk(c); err != nil {
				return err
			}
			tx.Stage(&c.Record, nil)
			c.NotePath = path
			cs = append(cs, c)
		}
		return nil
	})
	return n, cs
}

func sameNotes(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Record{})); d != "" {
		t.Error(d)
	}
}

func read(t *testing.T, s *Store, fn func(*ReadTx) error) {
	t.Helper()
	if err := s.Read(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func conformNotes(t *testing.T, s *Store, log *hookLog) {
	n, cs := addNote(t, s, "b/a.md", 4)
	other, _ := addNote(t, s, "a/a.md", 1)
	if len(log.changes) != 2 || log.changes[1].Kind != KindChunk {
		t.Errorf("%+v", log.changes)
	}
	read(t, s, func(tx *ReadTx) error {
		got, err := tx.Note(n.ID)
		sameNotes(t, n, got)
		if err != nil {
			return err
		}
		if got, err = tx.NoteByPath("n", "s", "b/a.md"); err != nil || got == nil || got.ID != n.ID {
			t.Error(got, err)
		}
		for _, place := range [][3]string{{"n", "s", "b/A.md"}, {"n", "nobody", "b/a.md"}, {"nobody", "s", "b/a.md"}, {"s", "n", "b/a.md"}} {
			if got, err = tx.NoteByPath(place[0], place[1], place[2]); err != nil || got != nil {
				t.Error(place, got, err)
			}
		}
		all, err := tx.NotesIn("n", "s")
		if err != nil || len(all) != 2 || all[0].ID != other.ID || all[1].ID != n.ID {
			t.Error(all, err)
		}
		chunks, err := tx.AllChunks(n.ID)
		sameNotes(t, cs, chunks)
		if err != nil {
			return err
		}
		if chunks, err = tx.Chunks(n.ID, 0, 2); err != nil || len(chunks) != 2 || chunks[0].Ordinal != 1 {
			t.Error(chunks, err)
		}
		r, err := tx.RecordOf(KindChunk, cs[2].ID)
		sameNotes(t, cs[2], r)
		return err
	})
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.AddNote(testNote("b/a.md")) }); !errors.Is(err, errUnique) {
		t.Error("two notes of one path:", err)
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.Delete(&n.Record) }); err == nil {
		t.Error("a note was deleted under its chunks")
	}

	// The second chunk goes, the last comes first, another is new and last.
	write(t, s, func(tx *WriteTx) error {
		if err := tx.Delete(&cs[1].Record); err != nil {
			return err
		}
		if err := tx.ParkChunks(n.ID, 0); err != nil {
			return err
		}
		for i, from := range []int{3, 0, 2} {
			c := *cs[from]
			c.Ordinal, c.Offset = i, int64(10+i)
			if from == 3 {
				c.Tags = []string{"a", "z"}
			}
			if err := tx.MoveChunk(cs[from], &c); err != nil {
				return err
			}
			tx.Stage(&c.Record, nil)
		}
		if err := tx.AddChunk(testChunk(n, 3)); err != nil {
			return err
		}
		m := *n
		m.Bytes, m.Fingerprint, m.Tags, m.Evidence = 8, []byte{3}, nil, nil
		if err := tx.UpdateNote(n, &m); err != nil {
			return err
		}
		n = &m
		return nil
	})
	revision := s.Counters().Revision
	write(t, s, func(tx *WriteTx) error { n.Modified = 77; return tx.TouchNote(n.ID, 77) })
	if s.Counters().Revision != revision {
		t.Error("a hint moved the revision")
	}
	read(t, s, func(tx *ReadTx) error {
		got, err := tx.Note(n.ID)
		if err != nil {
			return err
		}
		sameNotes(t, n, got)
		chunks, err := tx.AllChunks(n.ID)
		if err != nil {
			return err
		}
		if len(chunks) != 4 || chunks[0].ID != cs[3].ID || chunks[1].ID != cs[0].ID || chunks[2].ID != cs[2].ID ||
			chunks[1].Revision != revision || chunks[1].Offset != 11 || len(chunks[0].Tags) != 2 {
			t.Errorf("%+v", chunks)
		}
		return nil
	})
	write(t, s, func(tx *WriteTx) error {
		chunks, err := tx.AllChunks(n.ID)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			if err := tx.Delete(&c.Record); err != nil {
				return err
			}
		}
		return tx.Delete(&n.Record)
	})
	if c := s.Counters(); c.Counts[KindNote] != 1 || c.Counts[KindChunk] != 1 {
		t.Errorf("%+v", c)
	}
}

func conformRoots(t *testing.T, s *Store, _ *hookLog) {
	set := func(namespace, path string) (old string) {
		write(t, s, func(tx *WriteTx) (err error) {
			old, err = tx.SetNoteRoot(namespace, path)
			return err
		})
		return old
	}
	for i, step := range []struct {
		namespace, path, old string
		revision             int64
	}{
		{"n", "", "", 0}, {"n", "/a", "", 1}, {"n", "/a", "/a", 1}, {"n", "/b", "/a", 2}, {"m", "/b", "", 3}, {"n", "", "/b", 4}, {"n", "", "", 4},
	} {
		if old := set(step.namespace, step.path); old != step.old || s.Counters().Revision != step.revision {
			t.Error(i, old, s.Counters().Revision)
		}
	}
	read(t, s, func(tx *ReadTx) error {
		for namespace, want := range map[string]string{"n": "", "m": "/b", "nobody": ""} {
			if got, err := tx.NoteRoot(namespace); got != want || err != nil {
				t.Error(namespace, got, err)
			}
		}
		return nil
	})
}
