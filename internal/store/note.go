package store

import (
	"math"
	"slices"
)

// Note is a note record: a file, whose text stands in chunks.
type Note struct {
	Record
	Path        string // relative to the namespace's root, with forward slashes
	Bytes       int64
	ChunkChars  int
	Modified    int64  // when the file had last changed when it was read, 0: not known
	Fingerprint []byte // of the file's content
}

// Chunk is a chunk record.
type Chunk struct {
	Record
	NoteID  int64
	Ordinal int
	Offset  int64 // first line, from 1
	Limit   int64 // number of lines
	Content string

	NotePath string // the note's path; not the chunk's to write
}

// Note gives a note, or nil when there is none.
func (s *session) Note(id int64) (*Note, error) {
	st, err := s.stmt(sqlNote)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, id)
	found, err := st.step()
	if !found || err != nil {
		st.reset()
		return nil, err
	}
	n := &Note{
		Record: readRecord(st), Path: st.columnText(12), Bytes: st.columnInt(13), ChunkChars: int(st.columnInt(14)),
		Modified: st.columnInt(15), Fingerprint: slices.Clone(st.columnRaw(16)),
	}
	st.reset()
	return n, s.completeRecord(&n.Record)
}

// NoteByPath gives the note of a path in a namespace and scope, or nil.
func (s *session) NoteByPath(namespace, scope, path string) (*Note, error) {
	namespaceID, scopeID, ok, err := s.place(namespace, scope)
	if err != nil || !ok {
		return nil, err
	}
	st, err := s.stmt(sqlNoteByPath)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, namespaceID)
	st.bindInt(2, scopeID)
	st.bindText(3, path)
	found, err := st.step()
	if !found || err != nil {
		st.reset()
		return nil, err
	}
	id := st.columnInt(0)
	st.reset()
	return s.Note(id)
}

// NotesIn gives every note of a namespace and scope, by path.
func (s *session) NotesIn(namespace, scope string) ([]*Note, error) {
	namespaceID, scopeID, ok, err := s.place(namespace, scope)
	if err != nil || !ok {
		return nil, err
	}
	ids, err := s.ids(sqlNotesIn, namespaceID, scopeID)
	if err != nil {
		return nil, err
	}
	out := make([]*Note, 0, len(ids))
	for _, id := range ids {
		n, err := s.Note(id)
		if err != nil {
			return nil, err
		}
		if n != nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// place gives the dictionary ids of a namespace and a scope; false when one of
// them was never used.
func (s *session) place(namespace, scope string) (namespaceID, scopeID int64, ok bool, err error) {
	if namespaceID, ok, err = s.StringID(namespace); err != nil || !ok {
		return 0, 0, false, err
	}
	scopeID, ok, err = s.StringID(scope)
	return namespaceID, scopeID, ok, err
}

func readChunk(st stmt) *Chunk {
	return &Chunk{
		Record: readRecord(st), NoteID: st.columnInt(12), Ordinal: int(st.columnInt(13)), Offset: st.columnInt(14),
		Limit: st.columnInt(15), Content: st.columnText(16), NotePath: st.columnText(17),
	}
}

// Chunk gives a chunk, or nil when there is none.
func (s *session) Chunk(id int64) (*Chunk, error) {
	st, err := s.stmt(sqlChunk)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, id)
	found, err := st.step()
	if !found || err != nil {
		st.reset()
		return nil, err
	}
	c := readChunk(st)
	st.reset()
	return c, s.completeRecord(&c.Record)
}

// Chunks gives a note's chunks behind an ordinal, in their order, at most
// limit.
func (s *session) Chunks(noteID int64, after, limit int) ([]*Chunk, error) {
	st, err := s.stmt(sqlChunksOf)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, noteID)
	st.bindInt(2, int64(after))
	st.bindInt(3, int64(limit))
	var out []*Chunk
	for {
		found, err := st.step()
		if err != nil {
			st.reset()
			return nil, err
		}
		if !found {
			break
		}
		out = append(out, readChunk(st))
	}
	st.reset()
	for _, c := range out {
		if err := s.completeRecord(&c.Record); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AllChunks gives all of a note's chunks, in their order.
func (s *session) AllChunks(noteID int64) ([]*Chunk, error) {
	return s.Chunks(noteID, -1, math.MaxInt32)
}

// NoteRoot gives the folder that a namespace's notes lie under; "" when none is
// registered.
func (s *session) NoteRoot(namespace string) (string, error) {
	id, ok, err := s.StringID(namespace)
	if err != nil || !ok {
		return "", err
	}
	st, err := s.stmt(sqlNoteRoot)
	if err != nil {
		return "", err
	}
	st.bindInt(1, id)
	defer st.reset()
	found, err := st.step()
	if err != nil || !found {
		return "", err
	}
	return st.columnText(0), nil
}

// SetNoteRoot registers the folder that a namespace's notes lie under, or
// none. It gives the folder that was.
func (tx *WriteTx) SetNoteRoot(namespace, path string) (old string, err error) {
	if old, err = tx.NoteRoot(namespace); err != nil || old == path {
		return old, err
	}
	tx.Change()
	id, err := tx.intern(namespace)
	if err != nil {
		return "", err
	}
	if path == "" {
		st, err := tx.stmt(sqlDeleteNoteRoot)
		if err != nil {
			return "", err
		}
		st.bindInt(1, id)
		return old, st.run()
	}
	st, err := tx.stmt(sqlSetNoteRoot)
	if err != nil {
		return "", err
	}
	st.bindInt(1, id)
	st.bindText(2, path)
	return old, st.run()
}

// AddNote writes a new note and fills in its id and revision. The caller
// stages it.
func (tx *WriteTx) AddNote(n *Note) error {
	n.Kind = KindNote
	if err := tx.addRecord(&n.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddNote)
	if err != nil {
		return err
	}
	st.bindInt(1, n.ID)
	st.bindInt(2, n.NamespaceID)
	st.bindInt(3, n.ScopeID)
	st.bindText(4, n.Path)
	st.bindInt(5, n.Bytes)
	st.bindInt(6, int64(n.ChunkChars))
	st.bindInt(7, n.Modified)
	st.bindBlob(8, n.Fingerprint)
	return st.run()
}

// UpdateNote replaces old, as it was read in this operation, by n, which keeps
// its id, namespace, scope, path and creation time. The caller stages it.
func (tx *WriteTx) UpdateNote(old, n *Note) error {
	if err := tx.updateRecord(&old.Record, &n.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdateNote)
	if err != nil {
		return err
	}
	st.bindInt(1, n.Bytes)
	st.bindInt(2, int64(n.ChunkChars))
	st.bindInt(3, n.Modified)
	st.bindBlob(4, n.Fingerprint)
	st.bindInt(5, n.ID)
	return st.run()
}

// TouchNote remembers when a file had last changed. It is a hint and no part of
// the note, so no revision is made.
func (tx *WriteTx) TouchNote(id, modified int64) error {
	st, err := tx.stmt(sqlTouchNote)
	if err != nil {
		return err
	}
	tx.w.next.hints++
	st.bindInt(1, modified)
	st.bindInt(2, id)
	return st.run()
}

// AddChunk writes a new chunk and fills in its id and revision. The caller
// stages it.
func (tx *WriteTx) AddChunk(c *Chunk) error {
	c.Kind = KindChunk
	if err := tx.addRecord(&c.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddChunk)
	if err != nil {
		return err
	}
	st.bindInt(1, c.ID)
	st.bindInt(2, c.NoteID)
	st.bindInt(3, int64(c.Ordinal))
	st.bindInt(4, c.Offset)
	st.bindInt(5, c.Limit)
	st.bindText(6, c.Content)
	return st.run()
}

// ParkChunks moves a note's chunks from an ordinal on out of the way, so that
// each can be given any ordinal. MoveChunk or PlaceChunk must follow for all of
// them that stay.
func (tx *WriteTx) ParkChunks(noteID int64, from int) error {
	st, err := tx.stmt(sqlParkChunks)
	if err != nil {
		return err
	}
	st.bindInt(1, noteID)
	st.bindInt(2, int64(from))
	return st.run()
}

// MoveChunk replaces old, as it was read in this operation, by c, which keeps
// its id, note and content. The caller stages it.
func (tx *WriteTx) MoveChunk(old, c *Chunk) error {
	if slices.Equal(old.Tags, c.Tags) {
		if err := tx.Touch(&c.Record); err != nil {
			return err
		}
	} else if err := tx.updateRecord(&old.Record, &c.Record); err != nil {
		return err
	}
	return tx.PlaceChunk(c)
}

// PlaceChunk puts a chunk that did not change back to where it was before
// ParkChunks.
func (tx *WriteTx) PlaceChunk(c *Chunk) error {
	st, err := tx.stmt(sqlMoveChunk)
	if err != nil {
		return err
	}
	st.bindInt(1, int64(c.Ordinal))
	st.bindInt(2, c.Offset)
	st.bindInt(3, c.Limit)
	st.bindInt(4, c.ID)
	return st.run()
}
