package loci

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
	Source     string `json:"source"`      // absolute path under the present root
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
