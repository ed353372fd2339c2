package loci

import (
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/note"
)

// Bounds of a note's chunks, in characters, and of its file, in bytes.
const (
	DefaultChunkChars = 220
	MinChunkChars     = 16
	MaxChunkChars     = 100000
	MaxNoteBytes      = 16 << 20
)

// Note is a file that was split into chunks. Its text is kept in them.
type Note struct {
	Header
	Title      string `json:"title"`       // file name without extension
	Source     string `json:"source"`      // absolute path under the present root; the path itself when there is no root
	Path       string `json:"path"`        // relative to the root, with forward slashes
	Bytes      int64  `json:"bytes"`       // size of the file when it was read
	ChunkChars int    `json:"chunk_chars"` // target length of a chunk
}

// Chunk is a run of lines of a note, as they stand in the file.
type Chunk struct {
	Header
	NoteID  ID     `json:"note_id"`
	Ordinal int    `json:"ordinal"` // place in the note, from 0
	Offset  int64  `json:"offset"`  // first line, from 1
	Limit   int64  `json:"limit"`   // number of lines
	Content string `json:"content"`
}

// NoteFileInput names a file to bring in.
type NoteFileInput struct {
	RecordInput
	Path       string `json:"path"`                  // absolute, or relative to the root
	ChunkChars *int   `json:"chunk_chars,omitempty"` // default DefaultChunkChars
}

// ChunksRequest asks for one page of a note's chunks, in their order.
type ChunksRequest struct {
	NoteID ID         `json:"note_id"`
	Filter ReadFilter `json:"filter,omitzero"`
	Limit  *int       `json:"limit,omitempty"` // 1..10000, default 50
	After  ID         `json:"after,omitempty"` // the previous page's next_cursor
}

// SyncOptions tune SyncDir. The zero value works.
type SyncOptions struct {
	Scope           *string                 `json:"scope,omitempty"`             // of the notes, default PublicScope
	Tags            []string                `json:"tags,omitempty"`              // of every note, beside its path; nil keeps those that notes have
	ChunkChars      *int                    `json:"chunk_chars,omitempty"`       // default DefaultChunkChars
	Extensions      []string                `json:"extensions,omitempty"`        // of files to bring in, default .md, .markdown, .txt
	DryRun          bool                    `json:"dry_run,omitempty"`           // only say what would be done
	AllowMassDelete bool                    `json:"allow_mass_delete,omitempty"` // let more than half of the notes go
	Progress        func(done, total int64) `json:"-"`                           // told how many of the files are dealt with, one call at a time
}

// SyncReport says what SyncDir did, or would do.
type SyncReport struct {
	Files     int           `json:"files"` // found in the folder
	Added     int           `json:"added"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Deleted   int           `json:"deleted"`   // notes whose file is gone
	Skipped   int           `json:"skipped"`   // files that could not be taken
	Converted int           `json:"converted"` // files that were not UTF-8
	Problems  []SyncProblem `json:"problems"`
}

// SyncProblem is what is wrong with one file.
type SyncProblem struct {
	Path    string `json:"path"` // relative to the root
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Skipped bool   `json:"skipped"` // the file was left out; the note it may have stays as it was
}

// TextChunk is a piece of a text, as ChunkText cuts it.
type TextChunk struct {
	Ordinal int    `json:"ordinal"` // place in the text, from 0
	Offset  int64  `json:"offset"`  // first line, from 1
	Limit   int64  `json:"limit"`   // number of lines
	Content string `json:"content"`
}

// ChunkText cuts a text the way notes are cut: paragraph by paragraph, each at
// most target characters (MinChunkChars to MaxChunkChars), short ones not
// merged. A heading keeps the lines directly under it; fenced code and tables
// stay whole up to 16 KiB. No text is lost, and blank text has no chunks.
func ChunkText(content string, target int) ([]TextChunk, error) {
	const op = "chunk_text"
	if len(content) > MaxNoteBytes {
		return nil, errs.WithOp(op, errs.Invalid("content", "has %d bytes, at most %d are allowed", len(content), MaxNoteBytes))
	}
	pieces, err := note.Split(content, target)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	out := make([]TextChunk, len(pieces))
	for i, p := range pieces {
		out[i] = TextChunk{Ordinal: p.Ordinal, Offset: int64(p.Offset), Limit: int64(p.Limit), Content: p.Content}
	}
	return out, nil
}
