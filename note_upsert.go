package loci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/note"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
)

// noteDraft is a file to write as a note, read, cut and checked.
type noteDraft struct {
	recordDraft
	// keep leaves an existing note's evidence, metadata, thread and position as
	// they are.
	keep       bool
	path       string // relative, with forward slashes
	pathTags   []string
	chunkChars int
	now        int64

	bytes       int64
	modified    int64
	fingerprint []byte
	text        string
	redactor    *secretscan.Redactor // of the text
	pieces      []note.Chunk
	documents   []*index.Prepared // by piece; nil until needed
}

// noteFileDraft checks the input, but for the file.
func (s *NoteStore) noteFileDraft(ctx context.Context, in *NoteFileInput) (*noteDraft, error) {
	record, err := in.RecordInput.draft(AccessFrom(ctx), "")
	if err != nil {
		return nil, err
	}
	d := &noteDraft{recordDraft: record, now: s.eng.clock().UnixMicro()}
	d.namespace, d.scope = d.place()
	// Whoever brings files in reads whatever lies under the namespace's root.
	if err := mayWriteAll(ctx, d.namespace); err != nil {
		return nil, err
	}
	d.chunkChars, err = checkChunkChars(in.ChunkChars)
	return d, err
}

func checkChunkChars(n *int) (int, error) {
	if n == nil {
		return DefaultChunkChars, nil
	}
	if *n < MinChunkChars || *n > MaxChunkChars {
		return 0, errs.Invalid("chunk_chars", "must be from %d to %d, not %d", MinChunkChars, MaxChunkChars, *n)
	}
	return *n, nil
}

// at gives the draft its place, whose folders and title become tags.
func (d *noteDraft) at(rel string) (err error) {
	d.path = rel
	if d.pathTags, err = validTags("path", note.PathTags(rel)); err != nil {
		return err
	}
	d.tags, err = withPathTags(d.tags, d.pathTags)
	return err
}

func withPathTags(tags, pathTags []string) ([]string, error) {
	all := slices.Concat(tags, pathTags)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > MaxTags {
		return nil, errs.Invalid("tags", "has %d entries with those of the path, at most %d are allowed", len(all), MaxTags)
	}
	return all, nil
}

// load takes over what was read. It does not cut the text yet.
func (d *noteDraft) load(content *noteContent, modified int64) (encoding string, err error) {
	if d.text, encoding, err = note.Decode(content.data); err != nil {
		return "", err
	}
	sum := sha256.Sum256(content.data)
	if clean := d.redactor.Lines(d.text); clean != d.text {
		// The same bytes with and without their secrets are two texts.
		d.text, sum = clean, sha256.Sum256(append(sum[:], clean...))
	}
	d.bytes, d.modified, d.fingerprint = int64(len(content.data)), modified, sum[:]
	return encoding, nil
}

// cut makes the chunks.
func (d *noteDraft) cut() (err error) {
	if d.pieces != nil {
		return nil
	}
	if d.pieces, err = note.Split(d.text, d.chunkChars); err == nil {
		d.documents = make([]*index.Prepared, len(d.pieces))
	}
	return err
}

// settle takes from the note that is there what the draft does not say.
func (d *noteDraft) settle(old *store.Note) {
	if !d.keep || old == nil {
		return
	}
	d.evidence, d.metadata, d.position = old.Evidence, old.Metadata, old.Position
	d.thread = nil
	if old.Thread != "" {
		d.thread = &old.Thread
	}
}

// sameText says whether the note was cut from the same bytes in the same way.
func (d *noteDraft) sameText(old *store.Note) bool {
	return old.ChunkChars == d.chunkChars && bytes.Equal(old.Fingerprint, d.fingerprint)
}

// sameChunks says whether the note's chunks would stay as they are.
func (d *noteDraft) sameChunks(old *store.Note) bool {
	return d.sameText(old) && slices.Equal(old.Tags, d.tags)
}

// same says whether writing the draft would change nothing.
func (d *noteDraft) same(old *store.Note) bool {
	return d.sameChunks(old) && bytes.Equal(old.Metadata, d.metadata) &&
		old.Thread == valueOr(d.thread, "") && samePtr(old.Position, d.position) &&
		slices.EqualFunc(old.Evidence, d.evidence, sameEvidence)
}

// UpsertFile brings a file in as a note, or brings the note of that path up to
// the file. The namespace needs a root, and the file must lie under it after
// symbolic links are resolved. Chunks whose text did not change keep their id;
// a file of which nothing changed makes no revision.
//
// An id in the input must be that of the note of this path.
func (s *NoteStore) UpsertFile(ctx context.Context, in NoteFileInput) (*Receipt[Note], error) {
	const op = "notes.upsert_file"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	receipt, err := s.upsertFile(ctx, &in)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return receipt, nil
}

func (s *NoteStore) upsertFile(ctx context.Context, in *NoteFileInput) (*Receipt[Note], error) {
	redactor := s.eng.redactor(ctx)
	in.RecordInput = in.RecordInput.redacted(redactor)
	d, err := s.noteFileDraft(ctx, in)
	if err != nil {
		return nil, err
	}
	d.redactor = redactor
	folder, err := s.folder(ctx, d.namespace)
	if err != nil {
		return nil, err
	}
	defer folder.close()
	rel, err := folder.resolve(in.Path)
	if err != nil {
		return nil, err
	}
	if err := d.at(rel); err != nil {
		return nil, err
	}
	content, err := folder.read(rel)
	if err != nil {
		return nil, err
	}
	encoding, err := d.load(content, trusted(content.modified, s.eng.clock()))
	if err != nil {
		return nil, err
	}
	if encoding != note.UTF8 {
		return nil, errs.Invalid("path", "names a file in %s: save it as UTF-8, or bring its folder in with sync_dir, which converts it", encoding)
	}
	// What can be done before the writer is, so that others need not wait.
	var pieces []int
	err = s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
		pieces, err = d.unanalysed(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	parallel(len(pieces), func(i int) { s.document(d, pieces[i]) })
	var written *store.Note
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) (err error) {
		written, _, err = s.apply(tx, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	root := folder.dir
	if !AccessFrom(ctx).IsAdmin() {
		root = ""
	}
	return &Receipt[Note]{Value: noteOf(written, root), Revision: revision, Redacted: redactedBy(redactor)}, nil
}

// noteReader is what reading and writing transactions have in common.
type noteReader interface {
	NoteByPath(namespace, scope, path string) (*store.Note, error)
	AllChunks(noteID int64) ([]*store.Chunk, error)
}

// unanalysed gives the pieces whose documents the writer will need, as far as
// can be seen before it runs. What is missing then it makes itself.
func (d *noteDraft) unanalysed(tx noteReader) (pieces []int, err error) {
	old, err := tx.NoteByPath(d.namespace, d.scope, d.path)
	if err != nil {
		return nil, err
	}
	d.settle(old)
	if old != nil && d.sameChunks(old) {
		return nil, nil
	}
	if err := d.cut(); err != nil {
		return nil, err
	}
	var chunks []*store.Chunk
	if old != nil {
		if chunks, err = tx.AllChunks(old.ID); err != nil {
			return nil, err
		}
	}
	for i, step := range d.plan(chunks).steps {
		if step.indexed {
			pieces = append(pieces, i)
		}
	}
	return pieces, nil
}

// document gives the index document of a piece, analysed once.
func (s *NoteStore) document(d *noteDraft, i int) *index.Prepared {
	if d.documents[i] == nil {
		d.documents[i] = s.eng.prepare(chunkText(d.pieces[i].Content, i, d.tags, d.pathTags, d.path))
	}
	return d.documents[i]
}

// chunkStep says what becomes of one piece.
type chunkStep struct {
	kept    *store.Chunk // nil: a new chunk
	changed bool         // the kept one is written
	indexed bool         // and what the index knows of it changes
}

// chunkPlan brings a note's chunks to the pieces of a draft.
type chunkPlan struct {
	steps  []chunkStep    // by piece
	gone   []*store.Chunk // that no piece takes over
	parked int            // ordinals from here on change hands; -1: none
}

// plan lets each piece take over the first chunk of the same text that no other
// took.
func (d *noteDraft) plan(chunks []*store.Chunk) chunkPlan {
	p := chunkPlan{steps: make([]chunkStep, len(d.pieces)), parked: -1}
	byText := make(map[string][]*store.Chunk, len(chunks))
	for _, c := range chunks {
		byText[c.Content] = append(byText[c.Content], c)
	}
	taken := make(map[int64]bool, len(chunks))
	for i, piece := range d.pieces {
		step := &p.steps[i]
		step.indexed = true
		same := byText[piece.Content]
		if len(same) == 0 {
			continue
		}
		c := same[0]
		byText[piece.Content] = same[1:]
		taken[c.ID] = true
		step.kept = c
		step.indexed = c.Ordinal != i || !slices.Equal(c.Tags, d.tags)
		step.changed = step.indexed || c.Offset != int64(piece.Offset) || c.Limit != int64(piece.Limit)
		if c.Ordinal != i && (p.parked < 0 || min(c.Ordinal, i) < p.parked) {
			p.parked = min(c.Ordinal, i)
		}
	}
	for _, c := range chunks {
		if !taken[c.ID] {
			p.gone = append(p.gone, c)
		}
	}
	return p
}

// noteOutcome is what writing a draft did.
type noteOutcome int

const (
	noteUnchanged noteOutcome = iota
	noteChanged
	noteAdded
)

// apply writes a draft.
func (s *NoteStore) apply(tx *store.WriteTx, d *noteDraft) (*store.Note, noteOutcome, error) {
	old, err := tx.NoteByPath(d.namespace, d.scope, d.path)
	if err != nil {
		return nil, 0, err
	}
	d.settle(old)
	if d.id != 0 && (old == nil || old.ID != int64(d.id)) {
		return nil, 0, &errs.Error{Code: errs.NotFound, Field: "id",
			Message: fmt.Sprintf("note %d is not the one of this path; leave the id out, the path says which note it is", d.id)}
	}
	if old == nil {
		n, err := s.create(tx, d)
		return n, noteAdded, err
	}
	n := &store.Note{Record: d.replacement(), Path: d.path, Bytes: d.bytes, ChunkChars: d.chunkChars, Modified: d.modified,
		Fingerprint: d.fingerprint}
	if err := d.over("", &old.Record, &n.Record, d.now); err != nil {
		return nil, 0, err
	}
	if d.same(old) {
		if d.modified != 0 && d.modified != old.Modified {
			err = tx.TouchNote(old.ID, d.modified)
		}
		return old, noteUnchanged, err
	}
	if err := tx.UpdateNote(old, n); err != nil {
		return nil, 0, err
	}
	tx.Stage(&n.Record, nil) // the index knows chunks only
	if d.sameChunks(old) {
		return n, noteChanged, nil
	}
	return n, noteChanged, s.rechunk(tx, d, n)
}

func (s *NoteStore) create(tx *store.WriteTx, d *noteDraft) (*store.Note, error) {
	header, err := d.fresh("", d.now)
	if err != nil {
		return nil, err
	}
	n := &store.Note{Record: header, Path: d.path, Bytes: d.bytes, ChunkChars: d.chunkChars, Modified: d.modified,
		Fingerprint: d.fingerprint}
	if err := d.cut(); err != nil {
		return nil, err
	}
	if err := tx.AddNote(n); err != nil {
		return nil, err
	}
	tx.Stage(&n.Record, nil)
	for i := range d.pieces {
		if err := s.addChunk(tx, d, n, i, n.Created); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// rechunk brings the chunks of a note up to the draft.
func (s *NoteStore) rechunk(tx *store.WriteTx, d *noteDraft, n *store.Note) error {
	if err := d.cut(); err != nil {
		return err
	}
	chunks, err := tx.AllChunks(n.ID)
	if err != nil {
		return err
	}
	plan := d.plan(chunks)
	for _, c := range plan.gone {
		if err := tx.Delete(&c.Record); err != nil {
			return err
		}
	}
	if plan.parked >= 0 {
		if err := tx.ParkChunks(n.ID, plan.parked); err != nil {
			return err
		}
	}
	for i, step := range plan.steps {
		switch {
		case step.kept == nil:
			err = s.addChunk(tx, d, n, i, n.Updated)
		case step.changed:
			c := *step.kept
			c.Tags, c.Ordinal = d.tags, i
			c.Offset, c.Limit = int64(d.pieces[i].Offset), int64(d.pieces[i].Limit)
			if err = tx.MoveChunk(step.kept, &c); err == nil && step.indexed {
				err = s.stageChunk(tx, d, &c)
			}
		case plan.parked >= 0 && i >= plan.parked:
			err = tx.PlaceChunk(step.kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *NoteStore) addChunk(tx *store.WriteTx, d *noteDraft, n *store.Note, i int, created int64) error {
	piece := &d.pieces[i]
	c := &store.Chunk{
		Record: store.Record{Namespace: n.Namespace, Scope: n.Scope, Tags: d.tags, Created: created, Updated: max(created, n.Updated)},
		NoteID: n.ID, Ordinal: i, Offset: int64(piece.Offset), Limit: int64(piece.Limit), Content: piece.Content, NotePath: n.Path,
	}
	if err := tx.AddChunk(c); err != nil {
		return err
	}
	return s.stageChunk(tx, d, c)
}

func (s *NoteStore) stageChunk(tx *store.WriteTx, d *noteDraft, c *store.Chunk) error {
	document := s.document(d, c.Ordinal)
	settleChunk(document.Document, c)
	return s.eng.stage(tx, &c.Record, document)
}

// chunkDocument is what the index learns of a stored chunk.
func chunkDocument(c *store.Chunk) *index.Document {
	pathTags, _ := validTags("path", note.PathTags(c.NotePath)) // it was valid when it was written
	d := chunkText(c.Content, c.Ordinal, c.Tags, pathTags, c.NotePath)
	settleChunk(d, c)
	return d
}

// chunkText is the searchable part of a chunk's document. The path's own words
// are no tags here: every chunk has them, so they would find all of a folder.
// They stand in the note's first chunk, as its name and its folders.
func chunkText(content string, ordinal int, tags, pathTags []string, notePath string) *index.Document {
	d := &index.Document{Kind: index.Kind(store.KindChunk), Text: []string{plainText(content)}}
	for _, tag := range tags {
		if _, ok := slices.BinarySearch(pathTags, tag); !ok {
			d.Tag = append(d.Tag, tag)
		}
	}
	if ordinal == 0 {
		d.Name = []string{noteTitle(notePath)}
		if folders := path.Dir(notePath); folders != "." {
			d.Path = []string{folders}
		}
	}
	return d
}

// plainText is note.PlainText, or the text as it stands should the reader of
// Markdown fail on it: a file must not bring the process down.
func plainText(content string) (text string) {
	defer func() {
		if recover() != nil {
			text = content
		}
	}()
	return note.PlainText(content)
}

// settleChunk fills in what only the store knows. A chunk stands in its note.
func settleChunk(d *index.Document, c *store.Chunk) {
	settleDocument(&index.Prepared{Document: d}, &c.Record)
	d.Thread, d.Position, d.HasPosition = c.NoteID, int64(c.Ordinal), true
}

func noteTitle(notePath string) string { return note.Title(path.Base(notePath)) }
