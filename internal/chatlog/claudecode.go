package chatlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// sessionLine is a line of a session file of Claude Code: a message, or one of many
// things that the program notes for itself.
type sessionLine struct {
	Type      value `json:"type"`
	UUID      value `json:"uuid"`
	Session   value `json:"sessionId"`
	Timestamp value `json:"timestamp"`
	Sidechain truth `json:"isSidechain"`
	Meta      truth `json:"isMeta"`
	Summary   truth `json:"isCompactSummary"`
	Message   struct {
		Role    value   `json:"role"`
		Content content `json:"content"`
	} `json:"message"`
}

// claudeCode reads a session file of Claude Code, a line at a time.
func (r *reader) claudeCode(src *source) error {
	in := lines{src: src, max: r.limits.MaxLineBytes}
	for {
		text, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if text = bytes.TrimSpace(text); len(text) > 0 {
				err = r.sessionLine(text)
			}
		}
		if err != nil {
			return located(fmt.Sprintf("line %d", in.line), err)
		}
	}
}

func (r *reader) sessionLine(text []byte) error {
	if text[0] != '{' {
		return errs.Invalid("", "this must be an object")
	}
	var line sessionLine
	if err := json.Unmarshal(text, &line); err != nil {
		return malformed(err, true)
	}
	if line.Type.text != "user" && line.Type.text != "assistant" {
		return nil // no message: a snapshot of files, progress, a title
	}
	thread := firstText(line.Session, value{text: r.limits.Thread})
	if err := r.enter(thread.text); err != nil {
		return err
	}
	c := &line.Message.Content
	switch {
	case bool(line.Meta), bool(line.Summary), commandOutput(c.text()):
		r.leaveOut(Hidden)
		return nil
	case bool(line.Sidechain): // what the agent asked another one, and the answers
		r.leaveOut(ToolCall)
		return nil
	case c.kind == other:
		return errs.Invalid("", "content must be a string or an array of parts")
	}
	found := thread.damage
	found.add(line.UUID.damage)
	return r.message(Message{
		Thread: thread.text, ID: line.UUID.text, At: r.exportTime(line.Timestamp),
		Role: firstText(line.Message.Role, line.Type).text,
	}, c, found)
}

// commandOutput says whether a text is what the program wrote for the user: a
// command of its own, and what came of it.
func commandOutput(text string) bool {
	text = strings.TrimSpace(text)
	for _, tag := range []string{"<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return false
}
