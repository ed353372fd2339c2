package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/chatlog"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

const (
	transcriptStep  = 1 << 20  // how much of a transcript is read at a time, from its end
	transcriptLimit = 64 << 20 // how much of it is read at most
	captureMessages = 500      // of one call
	captureBytes    = 4 << 20  // of their texts
)

// capture keeps what was said since the last time.
func (h *hooking) capture(ctx context.Context) error {
	if h.in.Session == "" {
		return errs.Invalid("session_id", "is missing: what was said belongs to a session")
	}
	switch h.flags.client {
	case "gemini":
		return h.keep(ctx, h.said("user", h.in.Prompt), h.said("assistant", h.in.Response))
	case "codex":
		return h.keep(ctx, h.said("assistant", h.in.Last))
	}
	if h.in.Transcript == "" {
		return nil // nothing was said yet
	}
	var last agent.Found[loci.Episode]
	err := h.call(ctx, "episodes.last", map[string]any{"namespace": h.namespace, "scope": h.scope, "thread": threadOf(h.in.Session)}, &last)
	if err != nil {
		return err
	}
	known := ""
	if last.Point != nil {
		var m struct {
			ID string `json:"message_id"`
		}
		if json.Unmarshal(last.Point.Metadata, &m) == nil {
			known = m.ID
		}
	}
	text, err := transcriptTail(h.in.Transcript, known)
	if err != nil || len(text) == 0 {
		return err
	}
	messages, readErr := transcriptMessages(text, h.in.Session)
	for first, size := 0, 0; first < len(messages); {
		last := first
		for size = 0; last < len(messages) && last-first < captureMessages && size < captureBytes; last++ {
			size += len(messages[last].Text)
		}
		if err := h.keep(ctx, messages[first:last]...); err != nil {
			return err
		}
		first = last
	}
	return readErr
}

// transcriptMessages are the messages of a transcript. A line that is broken, as a
// client leaves it that was killed while it wrote, stays where it is for ever: it is
// left out, and what stands behind it is read all the same. The error says so.
func transcriptMessages(text []byte, session string) ([]op.CapturedMessage, error) {
	limits := chatlog.Limits{Thread: session, MaxMessageBytes: loci.MaxTextBytes, CutLong: true}
	read := func(text []byte) (messages []op.CapturedMessage, err error) {
		_, err = chatlog.Read(bytes.NewReader(text), chatlog.ClaudeCode, limits, func(m chatlog.Message) error {
			if m.ID == "" {
				return nil // it could not be known again
			}
			c := op.CapturedMessage{ID: m.ID, Role: m.Role, Text: m.Text}
			if m.At != 0 {
				c.AtUS = &m.At
			}
			messages = append(messages, c)
			return nil
		})
		return messages, err
	}
	messages, err := read(text)
	if err == nil {
		return messages, nil
	}
	var sound []byte
	broken := 0
	for line := range bytes.Lines(text) {
		if _, err := read(line); err != nil {
			broken++
			continue
		}
		sound = append(sound, line...)
	}
	if broken == 0 {
		return messages, err // no line of it is to blame
	}
	if messages, err = read(sound); err != nil {
		return messages, err
	}
	return messages, errs.Invalid("transcript_path", "the rest is kept, but lines that are no messages were left out: %d", broken)
}

// said is a message of a client that tells what was said and writes no file that is
// known. Its id comes of the turn, or of the time.
func (h *hooking) said(role, text string) op.CapturedMessage {
	m := op.CapturedMessage{Role: role, Text: text, ID: h.in.Turn}
	if m.ID == "" {
		m.ID = h.in.Time
	}
	if m.ID == "" {
		m.ID = fmt.Sprintf("%016x", xxhash.Sum64String(text))
	}
	m.ID += " " + role
	if at, err := time.Parse(time.RFC3339Nano, h.in.Time); err == nil {
		m.AtUS = new(at.UnixMicro())
	}
	return m
}

// keepPrompt keeps a prompt, for clients that do not tell it when they stop.
func (h *hooking) keepPrompt(ctx context.Context) error {
	if h.in.Session == "" {
		return nil
	}
	return h.keep(ctx, h.said("user", h.in.Prompt))
}

// keep records messages in the thread of the session.
func (h *hooking) keep(ctx context.Context, messages ...op.CapturedMessage) error {
	var some []op.CapturedMessage
	for _, m := range messages {
		if strings.TrimSpace(m.Text) != "" {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return nil
	}
	in := map[string]any{"namespace": h.namespace, "scope": h.scope, "thread": threadOf(h.in.Session), "messages": some}
	var done json.RawMessage
	err := h.call(ctx, "episodes.capture", in, &done)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Field == "dimension" {
		// A memory that is made while there is no embedder has no vectors. It needs a
		// length for them all the same.
		in["dimension"] = wordsDimension
		err = h.call(ctx, "episodes.capture", in, &done)
	}
	return err
}

// wordsDimension is the length of the vectors of a memory that has none: that of the
// built-in model.
const wordsDimension = 384

// threadOf is a session's id as a thread.
func threadOf(session string) string {
	return strings.TrimSpace(strings.ToValidUTF8(session, ""))
}

// transcriptTail reads a transcript behind the line of the message that is known
// already, from its end, since it grows there. A message that is not found means
// that the file was begun anew, or cut, or is another one: then all of it is given,
// as much as the limit allows. A line at the end that is not finished is left for
// the next time.
func transcriptTail(path, known string) (text []byte, err error) {
	f, err := openTranscript(path)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the transcript")
	}
	var mark []byte
	if known != "" {
		quoted, err := marshal(known)
		if err != nil {
			return nil, err
		}
		mark = append([]byte(`"uuid":`), quoted...)
	}
	from := info.Size()
	for from > 0 && len(text) < transcriptLimit {
		step := min(from, max(transcriptStep, int64(len(text)))) // more each time, so that little is copied
		from -= step
		more := make([]byte, step, int(step)+len(text))
		if _, err := f.ReadAt(more, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, errs.Wrap(errs.IO, err, "the transcript")
		}
		text = append(more, text...)
		if mark == nil {
			continue
		}
		if at := bytes.LastIndex(text[:min(len(text), int(step)+len(mark))], mark); at >= 0 {
			end := bytes.IndexByte(text[at:], '\n')
			if end < 0 {
				return nil, nil
			}
			return whole(text[at+end+1:]), nil
		}
	}
	if from > 0 { // the first line is not whole
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
	}
	return whole(text), nil
}

// whole leaves out a last line that has no end yet, unless it is JSON as it is.
func whole(text []byte) []byte {
	end := bytes.LastIndexByte(text, '\n') + 1
	if last := bytes.TrimSpace(text[end:]); len(last) > 0 && json.Valid(last) {
		return text
	}
	return text[:end]
}

// openTranscript opens a transcript: a regular file of JSON lines, and nothing that
// a name on standard input could make of it. One that is not there yet is no error.
func openTranscript(path string) (*os.File, error) {
	switch {
	case strings.ContainsRune(path, 0), !filepath.IsAbs(path):
		return nil, errs.Invalid("transcript_path", "must be an absolute path")
	case !strings.HasSuffix(strings.ToLower(path), ".jsonl"):
		return nil, errs.Invalid("transcript_path", "must name a file of JSON lines, .jsonl")
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f *os.File
	if err == nil && info.Mode().IsRegular() {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, errs.New(errs.IO, "the transcript cannot be read: %s", cause(err))
	}
	if f != nil {
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
			return f, nil
		}
		f.Close() // nothing was written
	}
	return nil, errs.Invalid("transcript_path", "must name a file, not a folder or a device")
}
