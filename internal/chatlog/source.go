package chatlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// errPastLimit is what a source gives instead of bytes behind its limit.
const errPastLimit = pastLimit("no more bytes are allowed")

type pastLimit string

func (e pastLimit) Error() string { return string(e) }

// source is a reader that keeps its error, and gives no bytes behind a limit.
type source struct {
	r     io.Reader
	base  int64 // bytes that were dropped at the beginning: a byte order mark
	given int64
	until int64 // how many bytes may be given; 0 for any number
	err   error // that reading ended with; io.EOF at the end
}

// emptyReads is how often a reader may give neither bytes nor an error.
const emptyReads = 100

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.until > 0 {
		if s.given >= s.until {
			return 0, errPastLimit
		}
		p = p[:min(int64(len(p)), s.until-s.given)]
	}
	for range emptyReads {
		if s.err != nil {
			return 0, s.err
		}
		var n int
		n, s.err = s.r.Read(p)
		if n > 0 || len(p) == 0 {
			s.given += int64(n)
			return n, nil
		}
	}
	if s.err == nil {
		s.err = io.ErrNoProgress
	}
	return 0, s.err
}

// failed is the error of a reader that did not come to its end, or nil.
func (s *source) failed() error {
	if s.err == nil || errors.Is(s.err, io.EOF) {
		return nil
	}
	return errs.Wrap(errs.IO, s.err, "the input could not be read")
}

// headBytes is how much of the beginning the format is told from.
const headBytes = 256 << 10

// head reads the beginning, without a byte order mark. Whoever calls it puts it
// back.
func (s *source) head() ([]byte, error) {
	head := make([]byte, 0, 4<<10)
	for s.err == nil && len(head) < headBytes {
		head = slices.Grow(head, 1)
		n, _ := s.Read(head[len(head):min(cap(head), headBytes)])
		head = head[:len(head)+n]
	}
	if err := s.failed(); err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		head, s.base = head[3:], 3
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, errs.Invalid("", "the input is UTF-16; conversations are JSON in UTF-8")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return nil, errs.Invalid("", "the input is a zip archive; unpack it and give the conversations.json in it")
	}
	s.given, s.err = 0, nil
	return head, nil
}

// begin reads the beginning, and from that the format if it is not said. Whoever calls
// it puts the beginning back.
func (s *source) begin(format *Format) (head []byte, err error) {
	switch *format {
	case "", JSONL, ChatGPT, Claude, ClaudeCode:
	default:
		return nil, errs.Invalid("format", "must be jsonl, chatgpt, claude or claude-code")
	}
	if head, err = s.head(); err == nil && *format == "" {
		*format, err = detect(head)
	}
	return head, err
}

// detect tells the format from the first names of the input that only one has.
// Without any input there are no lines, which is fine in JSONL.
func detect(head []byte) (Format, error) {
	if len(bytes.TrimSpace(head)) == 0 {
		return JSONL, nil
	}
	dec := json.NewDecoder(bytes.NewReader(head))
	// Where the beginning is broken or too short, no format is found.
	var format Format
	switch first, err := dec.Token(); {
	case err != nil:
	case first == json.Delim('{'):
		format = detectNames(dec, false)
	case first == json.Delim('['):
		format = detectList(dec, ChatGPT)
	}
	if format == "" {
		return "", errs.Invalid("format", "cannot be told from the beginning of the input; say jsonl, chatgpt, claude or claude-code")
	}
	return format, nil
}

// detectList looks at the first element of an array that has begun.
func detectList(dec *json.Decoder, empty Format) Format {
	if !dec.More() {
		if end, err := dec.Token(); err != nil || end != json.Delim(']') {
			return ""
		}
		return empty
	}
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return ""
	}
	return detectNames(dec, true)
}

// detectNames looks at the names of an object that has begun.
func detectNames(dec *json.Decoder, listed bool) Format {
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return ""
		}
		switch name {
		case "mapping":
			return ChatGPT
		case "chat_messages":
			return Claude
		}
		if !listed {
			switch name {
			case "parentUuid", "isSidechain":
				return ClaudeCode
			case "role", "content", "text", "messages":
				return JSONL
			case "conversations":
				if first, err := dec.Token(); err != nil || first != json.Delim('[') {
					return ""
				}
				return detectList(dec, Claude)
			}
		}
		if err := dec.Decode(&skipped{}); err != nil {
			return ""
		}
	}
	return ""
}
