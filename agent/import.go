package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/chatlog"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// ImportFormat names how a file of conversations is written.
type ImportFormat string

// The formats of conversations.
const (
	ImportJSONL   ImportFormat = "jsonl"   // one JSON object a line: a message, or a conversation in its "messages"
	ImportChatGPT ImportFormat = "chatgpt" // conversations.json of an export of ChatGPT
	ImportClaude  ImportFormat = "claude"  // conversations.json of an export of Claude
	// ImportClaudeCode is a session file of Claude Code.
	ImportClaudeCode ImportFormat = "claude-code"
)

// ImportRequest says which conversations to bring in as episodes.
type ImportRequest struct {
	// Path names the file, which must be a regular one. ImportFrom does not look at it.
	Path string `json:"path"`
	// Format is found out where it is left out.
	Format ImportFormat `json:"format,omitempty"`
	// Thread is the conversation of JSONL lines that name none; default "default".
	Thread *string `json:"thread,omitempty"`
	// TTLSeconds is how long what is recorded lives from then on, 1 and up; nil: for
	// ever, or, of what is there already, as before.
	TTLSeconds *uint64 `json:"ttl_seconds,omitempty"`
	// CutLong cuts texts of more than 1 MiB, which otherwise are an error.
	CutLong bool `json:"cut_long,omitempty"`
	// DryRun reports what would be done and writes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Progress is told how many bytes of how many are done; 0 of how many means that
	// nobody knows. Nil for none.
	Progress func(done, total int64) `json:"-"`
}

// ImportReport says what an import did, or would do. Messages is Stored, Updated,
// Unchanged and IDTaken together.
type ImportReport struct {
	DryRun       bool         `json:"dry_run"`
	Format       ImportFormat `json:"format"`
	Threads      int64        `json:"threads"`       // conversations with a message
	EmptyThreads int64        `json:"empty_threads"` // conversations without one
	Messages     int64        `json:"messages"`      // that were read
	TextBytes    int64        `json:"text_bytes"`    // of their texts

	Stored    int64 `json:"stored"`    // messages that became new episodes
	Updated   int64 `json:"updated"`   // episodes whose messages have changed
	Unchanged int64 `json:"unchanged"` // episodes that were there as they are
	// IDTaken counts messages that were left out because an episode of another
	// conversation has the id.
	IDTaken int64 `json:"id_taken"`
	// Pending counts the stored and updated episodes whose vectors the background makes.
	Pending int64 `json:"pending"`
	// Displaced counts the new episodes that lie at the end of their thread because
	// another one has the position they have in the file.
	Displaced int64 `json:"displaced"`
	// Dated counts the new episodes of messages without a time: they have that of the
	// message before them, or that of the import.
	Dated int64 `json:"dated"`
	// Renamed counts the messages of conversations whose ids are no names of threads,
	// and were made ones.
	Renamed int64 `json:"renamed"`

	// LeftOut counts what was in the file and became no episode, by reason: empty,
	// hidden, placeholder, branch, tool_call, thinking, not_text, and recalled: nothing
	// but what a memory gave.
	LeftOut map[string]int64 `json:"left_out"`
	// Parts counts what messages had beside text, by kind: image, audio, file,
	// tool_call, tool_result, thinking, other.
	Parts       map[string]int64 `json:"parts"`
	CutTexts    int64            `json:"cut_texts"`    // with CutLong
	CutNames    int64            `json:"cut_names"`    // titles and authors of more than 512 bytes
	Replaced    int64            `json:"replaced"`     // bytes that are no character, now U+FFFD
	NULs        int64            `json:"nuls"`         // NUL characters, likewise
	UnreadTimes int64            `json:"unread_times"` // times of an export that could not be read
	RepeatedIDs int64            `json:"repeated_ids"` // messages whose id an earlier one of the thread has
}

const (
	importBatch = 500     // messages of one transaction
	importBytes = 8 << 20 // of their texts: one transaction ends when it has as many
)

// Import brings in a file of conversations, each message as an episode: its text the
// description, its conversation the thread, its time the time. The metadata says its
// role and, where they are known, its author, title and message_id, and from what
// kind of file it came first, the source.
//
// A message is known again by its conversation and its own id, or, without one, by
// its conversation, position, role and text. So importing a file again changes
// nothing, in whatever format, and importing a newer export adds what is new:
//
//   - An episode whose message has changed gets its text, time and metadata. It keeps
//     its position, tags, relations, and what others have put into its metadata.
//   - An episode whose message is no longer in the file stays.
//   - A new message whose position is taken goes to the end of its thread, with those
//     that follow it behind it. That happens where a branch of a conversation has
//     replaced another, or where two files of the same thread differ.
//
// An episode that was deleted, or has expired, is brought in again.
//
// Vectors are left to the background. The file is read as a stream and written in
// transactions of some hundred messages. What is wrong with the file, or goes wrong on
// the way, ends the import with an error that says how many messages were done;
// importing the file again completes it.
func (s *EpisodicMemory) Import(ctx context.Context, req ImportRequest) (*loci.Receipt[ImportReport], error) {
	op := s.name(importCall)
	f, size, err := openRegular(req.Path, errs.IO)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	defer f.Close() // it was only read
	return s.importFrom(ctx, f, size, req)
}

// ImportFrom is Import from a reader.
func (s *EpisodicMemory) ImportFrom(ctx context.Context, r io.Reader, req ImportRequest) (*loci.Receipt[ImportReport], error) {
	return s.importFrom(ctx, r, 0, req)
}

const importCall = "import"

// openRegular opens a regular file to be read. It looks before it opens, since opening
// something else may wait for ever, and again once it is open. missing is the code for
// a file that is not there.
func openRegular(path string, missing errs.Code) (*os.File, int64, error) {
	switch {
	case path == "":
		return nil, 0, errs.Invalid("path", "is required")
	case strings.ContainsRune(path, 0):
		return nil, 0, errs.Invalid("path", "must not hold a zero byte")
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, 0, notRegular()
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err == nil {
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
			return f, info.Size(), nil
		}
		f.Close() // nothing was written
		if err == nil {
			return nil, 0, notRegular()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, &errs.Error{Code: missing, Field: "path", Message: "there is no such file"}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // without the path, which the caller knows
	}
	return nil, 0, &errs.Error{Code: errs.IO, Field: "path", Message: "the file cannot be read", Err: err}
}

func notRegular() error {
	return errs.Invalid("path", "must name a file, not a folder or a device")
}

func (s *EpisodicMemory) importFrom(ctx context.Context, r io.Reader, size int64, req ImportRequest) (*loci.Receipt[ImportReport], error) {
	op := s.name(importCall)
	limits := chatlog.Limits{MaxMessageBytes: loci.MaxTextBytes, CutLong: req.CutLong}
	if req.Thread != nil {
		if err := valid.Label("thread", *req.Thread, loci.MaxLabelBytes); err != nil {
			return nil, errs.WithOp(op, err)
		}
		limits.Thread = *req.Thread
	}
	if req.TTLSeconds != nil && *req.TTLSeconds == 0 {
		return nil, errs.WithOp(op, errs.Invalid("ttl_seconds", "must be at least 1: leave it out for episodes that live for ever"))
	}
	leave, err := s.m.enterWriting(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	in := &countedReader{ctx: ctx, r: r}
	format, rest, err := chatlog.Detect(in, chatlog.Format(req.Format))
	if err != nil {
		return nil, errs.WithOp(op, ended(ctx, err))
	}
	im := &importer{s: s, req: &req, source: string(format), threads: map[string]threadState{}, redactor: s.m.link.Redactor(ctx)}
	im.report.DryRun = req.DryRun
	progress := func() {
		if req.Progress != nil {
			req.Progress(in.read, size)
		}
	}
	err = s.m.read(ctx, op, func(tx *store.ReadTx, _ *store.AgentMemory) error {
		im.revision = tx.Revision()
		return nil
	})
	if err != nil {
		return nil, err
	}
	read, err := chatlog.Read(rest, format, limits, func(m chatlog.Message) error {
		if !im.take(&m) {
			return nil
		}
		err := im.flush(ctx)
		if err == nil {
			progress()
		}
		return err
	})
	if err == nil {
		err = im.flush(ctx)
	}
	if err != nil {
		return nil, errs.WithOp(op, im.interrupted(ended(ctx, err)))
	}
	progress()
	return receiptOf(im.finish(&read), im.revision, im.redactor), nil
}

// ended is the error of an import whose context ended while it read: to what parses
// the file that is a file that cannot be read.
func ended(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return errs.Wrap(errs.Canceled, cause, "the context ended first")
	}
	return err
}

// countedReader counts what is read, and reads no more once its context has ended.
type countedReader struct {
	ctx  context.Context
	r    io.Reader
	read int64
}

// Read implements io.Reader.
func (c *countedReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.read += int64(n)
	return n, err
}
