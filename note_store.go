package loci

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// NoteStore keeps notes: text files under a folder, the root of a namespace's
// notes, cut into chunks that are found by search.
type NoteStore struct {
	eng *engine
}

// Notes gives the note store.
func (db *DB) Notes() *NoteStore { return &NoteStore{eng: db.eng} }

// SetRoot registers the folder that a namespace's notes lie under and gives its
// path. It must exist. Notes keep their relative paths when another root is set
// later. Whoever may set a root may read every text file under it.
func (s *NoteStore) SetRoot(ctx context.Context, namespace, dir string) (*Receipt[string], error) {
	const op = "notes.set_root"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := needAdmin(ctx, "", "a root of notes"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	dir, err := checkRoot(dir)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		_, err := tx.SetNoteRoot(namespace, dir)
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[string]{Value: dir, Revision: revision}, nil
}

func checkRoot(dir string) (string, error) {
	if err := validText("root", dir); err != nil {
		return "", err
	}
	if !filepath.IsAbs(dir) {
		return "", errs.Invalid("root", "must be an absolute path")
	}
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", errs.Invalid("root", "must be a folder that exists and can be read")
	case !info.IsDir():
		return "", errs.Invalid("root", "must be a folder, not a file")
	}
	return dir, nil
}

// Root gives the folder that a namespace's notes lie under; "" when none is
// registered.
func (s *NoteStore) Root(ctx context.Context, namespace string) (string, error) {
	const op = "notes.root"
	if err := s.eng.enter(op); err != nil {
		return "", err
	}
	defer s.eng.gate.leave()
	dir := ""
	err := needAdmin(ctx, "", "a root of notes")
	if err == nil {
		err = valid.Label("namespace", namespace, MaxNamespaceBytes)
	}
	if err == nil {
		err = s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
			dir, err = tx.NoteRoot(namespace)
			return err
		})
	}
	return dir, errs.WithOp(op, err)
}

// UnsetRoot forgets a namespace's root; false when it had none. The notes stay
// readable.
func (s *NoteStore) UnsetRoot(ctx context.Context, namespace string) (*Receipt[bool], error) {
	const op = "notes.unset_root"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := needAdmin(ctx, "", "a root of notes"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	old := ""
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) (err error) {
		old, err = tx.SetNoteRoot(namespace, "")
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[bool]{Value: old != "", Revision: revision}, nil
}

// folder opens the folder of a namespace's notes.
func (s *NoteStore) folder(ctx context.Context, namespace string) (*noteFolder, error) {
	dir := ""
	err := s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
		dir, err = tx.NoteRoot(namespace)
		return err
	})
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errs.Invalid("namespace", "has no root for its notes: register one with set_root")
	}
	return openNoteFolder(dir)
}

// Get gives one note. Outside the filter it is ErrNotFound.
func (s *NoteStore) Get(ctx context.Context, id ID, f ReadFilter) (*Note, error) {
	const op = "notes.get"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	var found Note
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		n, err := coveredNote(tx, filter, id)
		if err != nil {
			return err
		}
		root, err := shownRoot(ctx, tx, n.Namespace)
		found = noteOf(n, root)
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &found, nil
}

// coveredNote gives a note that the filter covers.
func coveredNote(tx interface {
	Note(id int64) (*store.Note, error)
}, filter *readFilter, id ID) (*store.Note, error) {
	if filter, ok := filter.of(store.KindNote); ok {
		n, err := tx.Note(int64(id))
		if err != nil || n != nil && filter.covers(&n.Record) {
			return n, err
		}
	}
	return nil, &errs.Error{Code: errs.NotFound, Field: "id", Message: fmt.Sprintf("there is no note %d under this filter", id)}
}

// List gives one page of notes by ascending id.
func (s *NoteStore) List(ctx context.Context, req PageRequest) (*Page[Note], error) {
	const op = "notes.list"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	page, err := listRecords(ctx, s.eng, store.KindNote, &req, func(tx *store.ReadTx, namespace string) (func(store.Stored) Note, error) {
		root, err := shownRoot(ctx, tx, namespace)
		return func(r store.Stored) Note { return noteOf(r.(*store.Note), root) }, err
	})
	return page, errs.WithOp(op, err)
}

// GetChunk gives one chunk. Outside the filter it is ErrNotFound.
func (s *NoteStore) GetChunk(ctx context.Context, id ID, f ReadFilter) (*Chunk, error) {
	const op = "notes.get_chunk"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, ok := filter.of(store.KindChunk)
	var found *store.Chunk
	if ok {
		err = s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
			found, err = tx.Chunk(int64(id))
			return err
		})
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if found == nil || !filter.coversChunk(found) {
		return nil, &errs.Error{Code: errs.NotFound, Op: op, Field: "id",
			Message: fmt.Sprintf("there is no chunk %d under this filter", id)}
	}
	c := chunkOf(found)
	return &c, nil
}

func (f *readFilter) coversChunk(c *store.Chunk) bool {
	return (len(f.noteIDs) == 0 || slices.Contains(f.noteIDs, ID(c.NoteID))) && f.covers(&c.Record)
}

// Chunks gives one page of a note's chunks, in their order. A note outside the
// filter is ErrNotFound.
func (s *NoteStore) Chunks(ctx context.Context, req ChunksRequest) (*Page[Chunk], error) {
	const op = "notes.chunks"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := req.Filter.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if req.After < 0 {
		return nil, errs.WithOp(op, errs.Invalid("after", "must not be negative"))
	}
	page := &Page[Chunk]{Items: []Chunk{}}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		if _, err := coveredNote(tx, filter, req.NoteID); err != nil {
			return atField("note_", err)
		}
		chunks, err := tx.Chunks(int64(req.NoteID), int(min(req.After, maxOrdinal))-1, limit+1)
		if err != nil {
			return err
		}
		if len(chunks) > limit {
			chunks = chunks[:limit]
			page.NextCursor = ID(chunks[limit-1].Ordinal + 1)
		}
		for _, c := range chunks {
			page.Items = append(page.Items, chunkOf(c))
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return page, nil
}

// maxOrdinal is beyond every chunk's place.
const maxOrdinal = 1 << 30

// Delete removes one note with its chunks; false when there is none under the
// filter. The file stays.
func (s *NoteStore) Delete(ctx context.Context, id ID, f ReadFilter) (*Receipt[bool], error) {
	const op = "notes.delete"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.checkWrite(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, ok := filter.of(store.KindNote)
	deleted := false
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) (err error) {
		if ok {
			deleted, err = deleteNote(tx, filter, int64(id))
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[bool]{Value: deleted, Revision: revision}, nil
}

// deleteNote removes a note that the filter covers, its chunks first.
func deleteNote(tx *store.WriteTx, filter *readFilter, id int64) (bool, error) {
	n, err := tx.Note(id)
	if err != nil || n == nil || !filter.covers(&n.Record) {
		return false, err
	}
	chunks, err := tx.AllChunks(id)
	if err != nil {
		return false, err
	}
	for _, c := range chunks {
		if err := tx.Delete(&c.Record); err != nil {
			return false, err
		}
	}
	return true, tx.Delete(&n.Record)
}

// DeleteByFilter removes every note the filter covers, with its chunks, and
// gives the number of notes.
func (s *NoteStore) DeleteByFilter(ctx context.Context, req DeleteRequest) (*Receipt[int64], error) {
	const op = "notes.delete_by_filter"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := req.Filter.checkWrite(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, ok := filter.of(store.KindNote)
	var ids []int64
	var revision int64
	// As with memories: found in a snapshot, looked at again by the writer.
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		revision = tx.Revision()
		if !ok {
			return nil
		}
		return tx.Scan(filter.Filter, 0, 0, func(r store.Stored) (bool, error) {
			if filter.coversMetadata(r.Head()) {
				ids = append(ids, r.Head().ID)
			}
			return true, nil
		})
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if req.DryRun || len(ids) == 0 {
		return &Receipt[int64]{Value: int64(len(ids)), Revision: revision}, nil
	}
	var n int64
	revision, err = s.eng.writeMany(ctx, func(tx *store.WriteTx) error {
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return err
			}
			deleted, err := deleteNote(tx, filter, id)
			if err != nil {
				return err
			}
			if deleted {
				n++
			}
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[int64]{Value: n, Revision: revision}, nil
}

// shownRoot is the root of a namespace's notes for those who may know of folders of
// this machine; "" for others.
func shownRoot(ctx context.Context, tx *store.ReadTx, namespace string) (string, error) {
	if !AccessFrom(ctx).IsAdmin() {
		return "", nil
	}
	return tx.NoteRoot(namespace)
}

// noteOf is a stored note as the caller gets it; root is "" when there is none.
func noteOf(n *store.Note, root string) Note {
	source := n.Path
	if root != "" {
		source = filepath.Join(root, filepath.FromSlash(n.Path))
	}
	return Note{Header: headerOf(&n.Record), Title: noteTitle(n.Path), Source: source, Path: n.Path, Bytes: n.Bytes, ChunkChars: n.ChunkChars}
}

func chunkOf(c *store.Chunk) Chunk {
	return Chunk{Header: headerOf(&c.Record), NoteID: ID(c.NoteID), Ordinal: c.Ordinal, Offset: c.Offset, Limit: c.Limit, Content: c.Content}
}
