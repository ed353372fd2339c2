package op

import (
	"context"

	"github.com/loci-memory/loci"
)

// RootWrite names the folder that a namespace's notes lie under.
type RootWrite struct {
	Root      string  `json:"root"`                // absolute path of a folder on the machine that holds the store
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// RootQuery asks for the folder of a namespace's notes.
type RootQuery struct {
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// RootAnswer is the folder of a namespace's notes.
type RootAnswer struct {
	Root string `json:"root"` // empty when none is registered
}

// SyncNotes asks to bring the notes of a namespace up to its folder.
type SyncNotes struct {
	Namespace *string `json:"namespace,omitempty"` // default "default"
	loci.SyncOptions
}

// CutText is a text to cut into chunks.
type CutText struct {
	Content string `json:"content"`          // the text, at most 16 MiB
	Target  *int   `json:"target,omitempty"` // characters in a chunk at most, 16..100000, default 220
}

// CutTextResult are the chunks of a text.
type CutTextResult struct {
	Chunks []loci.TextChunk `json:"chunks"`
}

// whosePaths is what callers must know who name files to a store elsewhere.
const (
	whosePaths    = " Paths are those of the machine that holds the store."
	absolutePaths = " Paths are absolute, and those of the machine that holds the store."
)

func noteOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "notes.set_root",
			Summary:     "Register the folder that a namespace's notes lie under",
			Description: "The folder must exist. Notes keep their relative paths when another is set later." + absolutePaths + " Whoever may call this can have every text file under any folder read into the store: it belongs to those who administer it.",
			Positional:  []string{"root"},
			LocalPaths:  []string{"root"},
			Idempotent:  true,
			Admin:       true,
			Covers:      []string{"NoteStore.SetRoot"},
		}, func(ctx context.Context, db *loci.DB, in RootWrite) (*loci.Receipt[string], error) {
			return db.Notes().SetRoot(ctx, namespaceOr(in.Namespace), in.Root)
		}),
		Define(Spec{
			Name:     "notes.root",
			Summary:  "Show the folder that a namespace's notes lie under",
			ReadOnly: true, Idempotent: true,
			Admin:  true,
			Covers: []string{"NoteStore.Root"},
		}, func(ctx context.Context, db *loci.DB, in RootQuery) (*RootAnswer, error) {
			root, err := db.Notes().Root(ctx, namespaceOr(in.Namespace))
			return &RootAnswer{Root: root}, err
		}),
		Define(Spec{
			Name:        "notes.unset_root",
			Summary:     "Forget the folder of a namespace's notes",
			Description: "The notes stay readable. The value is false when there was none.",
			Idempotent:  true, Destructive: true,
			Admin:  true,
			Covers: []string{"NoteStore.UnsetRoot"},
		}, func(ctx context.Context, db *loci.DB, in RootQuery) (*loci.Receipt[bool], error) {
			return db.Notes().UnsetRoot(ctx, namespaceOr(in.Namespace))
		}),
		Define(Spec{
			Name:        "notes.upsert_file",
			Summary:     "Bring one file in as a note, or bring its note up to the file",
			Description: "The file must be UTF-8 text of at most 16 MiB under the namespace's root, symbolic links resolved. Its folders and its name become tags of every chunk. Chunks whose text did not change keep their id, and a file of which nothing changed makes no revision." + whosePaths,
			Positional:  []string{"path"},
			Idempotent:  true,
			Texts:       []string{"evidence[].quote"},
			Covers:      []string{"NoteStore.UpsertFile"},
		}, func(ctx context.Context, db *loci.DB, in loci.NoteFileInput) (*loci.Receipt[loci.Note], error) {
			return db.Notes().UpsertFile(ctx, in)
		}),
		Define(Spec{
			Name:        "notes.sync_dir",
			Summary:     "Bring a namespace's notes up to the folder that is its root",
			Description: "New files come in, changed ones are read anew, and notes whose file is gone go too. A file that cannot be taken is reported and the rest goes on; files in UTF-16 or GBK are converted. More than half of 20 or more notes going is refused unless allow_mass_delete is true.",
			Idempotent:  true, Destructive: true, LongRunning: true,
			Covers: []string{"NoteStore.SyncDir"},
		}, func(ctx context.Context, db *loci.DB, in SyncNotes) (*loci.Receipt[loci.SyncReport], error) {
			in.Progress = ProgressFrom(ctx)
			return db.Notes().SyncDir(ctx, namespaceOr(in.Namespace), in.SyncOptions)
		}),
		Define(Spec{
			Name:       "notes.get",
			Summary:    "Read one note by id",
			Positional: []string{"id"},
			ReadOnly:   true, Idempotent: true,
			Covers: []string{"NoteStore.Get"},
		}, func(ctx context.Context, db *loci.DB, in OneRecord) (*loci.Note, error) {
			return db.Notes().Get(ctx, in.ID, in.Filter)
		}),
		Define(Spec{
			Name:        "notes.list",
			Summary:     "List notes by ascending id, page by page",
			Description: "The answer's next_cursor, given as after, asks for the next page; without one this was the last.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"NoteStore.List"},
		}, func(ctx context.Context, db *loci.DB, in loci.PageRequest) (*loci.Page[loci.Note], error) {
			return db.Notes().List(ctx, in)
		}),
		Define(Spec{
			Name:       "notes.get_chunk",
			Summary:    "Read one chunk by id",
			Positional: []string{"id"},
			ReadOnly:   true, Idempotent: true,
			Covers: []string{"NoteStore.GetChunk"},
		}, func(ctx context.Context, db *loci.DB, in OneRecord) (*loci.Chunk, error) {
			return db.Notes().GetChunk(ctx, in.ID, in.Filter)
		}),
		Define(Spec{
			Name:        "notes.chunks",
			Summary:     "Read a note's chunks in their order, page by page",
			Description: "The answer's next_cursor, given as after, asks for the next page; without one this was the last.",
			Positional:  []string{"note_id"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"NoteStore.Chunks"},
		}, func(ctx context.Context, db *loci.DB, in loci.ChunksRequest) (*loci.Page[loci.Chunk], error) {
			return db.Notes().Chunks(ctx, in)
		}),
		Define(Spec{
			Name:        "notes.delete",
			Summary:     "Delete one note with its chunks",
			Description: "The file stays where it is. The value is false when there was no such note under the filter.",
			Positional:  []string{"id"},
			Idempotent:  true, Destructive: true,
			Covers: []string{"NoteStore.Delete"},
		}, func(ctx context.Context, db *loci.DB, in OneRecord) (*loci.Receipt[bool], error) {
			return db.Notes().Delete(ctx, in.ID, in.Filter)
		}),
		Define(Spec{
			Name:        "notes.delete_by_filter",
			Summary:     "Delete every note that a filter covers, with its chunks",
			Description: "The filter must name its namespace and its scopes, or all must be true, which takes the defaults. With dry_run nothing is deleted. The value is the number of notes.",
			Idempotent:  true, Destructive: true,
			Covers: []string{"NoteStore.DeleteByFilter"},
		}, func(ctx context.Context, db *loci.DB, in DeleteMany) (*loci.Receipt[int64], error) {
			return db.Notes().DeleteByFilter(ctx, loci.DeleteRequest{Filter: in.Filter, DryRun: in.DryRun})
		}),
		Define(Spec{
			Name:        "chunk_text",
			Summary:     "Cut a text the way notes are cut",
			Description: "Paragraph by paragraph, short ones not merged. Nothing is stored.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"ChunkText"},
		}, func(_ context.Context, _ *loci.DB, in CutText) (*CutTextResult, error) {
			target := loci.DefaultChunkChars
			if in.Target != nil {
				target = *in.Target
			}
			chunks, err := loci.ChunkText(in.Content, target)
			return &CutTextResult{Chunks: chunks}, err
		}),
	}
}
