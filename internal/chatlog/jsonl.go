package chatlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/loci-memory/loci/internal/errs"
)

// jsonlMessage is a message as a line has it, or an element of its messages.
type jsonlMessage struct {
	ID           value   `json:"id"`
	Role         value   `json:"role"`
	Content      content `json:"content"`
	Text         content `json:"text"`
	Timestamp    value   `json:"timestamp"`
	CreatedAt    value   `json:"created_at"`
	Time         value   `json:"time"`
	Author       value   `json:"author"`
	Name         value   `json:"name"`
	Title        value   `json:"title"`
	ToolCalls    counter `json:"tool_calls"`
	FunctionCall counter `json:"function_call"`
}

// jsonlLine is a line: a message of a conversation, or all of one.
type jsonlLine struct {
	jsonlMessage
	Thread         value           `json:"thread"`
	ConversationID value           `json:"conversation_id"`
	SessionID      value           `json:"session_id"`
	Messages       *[]jsonlMessage `json:"messages"`
}

// jsonl reads a line at a time.
func (r *reader) jsonl(src *source) error {
	in := lines{src: src, max: r.limits.MaxLineBytes}
	for {
		text, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return located(fmt.Sprintf("line %d", in.line), err)
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := r.jsonlLine(text); err != nil {
			return located(fmt.Sprintf("line %d", in.line), err)
		}
	}
}

func (r *reader) jsonlLine(text []byte) error {
	if text[0] != '{' {
		return errs.Invalid("", "this must be an object")
	}
	var line jsonlLine
	if err := json.Unmarshal(text, &line); err != nil {
		return malformed(err, true)
	}
	if line.Messages == nil {
		thread, err := firstID("the id of the conversation", line.Thread, line.ConversationID, line.SessionID)
		if err != nil {
			return err
		}
		if thread.text == "" {
			thread.text = r.limits.Thread
		}
		return r.jsonlMessage(&line.jsonlMessage, thread, value{}, 0)
	}
	thread, err := firstID("the id of the conversation", line.Thread, line.ConversationID, line.SessionID, line.ID)
	if err != nil {
		return err
	}
	if thread.text == "" {
		thread.text = nameless(string(text))
	}
	at, err := line.at()
	if err != nil {
		return err
	}
	if err := r.enter(thread.text); err != nil {
		return err
	}
	for i := range *line.Messages {
		if err := r.jsonlMessage(&(*line.Messages)[i], thread, line.Title, at); err != nil {
			return located(fmt.Sprintf("message %d", i+1), err)
		}
		// What was wrong with the names of the line is counted with its first message.
		thread.damage, line.Title.damage = damage{}, damage{}
	}
	return nil
}

// jsonlMessage hands one on. title and at are those of its line, for messages that
// have none themselves.
func (r *reader) jsonlMessage(in *jsonlMessage, thread, title value, at int64) error {
	m := Message{Thread: thread.text}
	found := thread.damage
	own, err := in.at()
	if err != nil {
		return err
	}
	if m.At = own; m.At == 0 {
		m.At = at
	}
	id, err := firstID("id", in.ID)
	if err != nil {
		return err
	}
	m.ID = id.text
	found.add(id.damage)
	for _, f := range []struct {
		name string
		v    value
		into *string
	}{
		{"role", in.Role, &m.Role}, {"author", in.Author, &m.Author}, {"name", in.Name, &m.Author},
		{"title", in.Title, &m.Title}, {"title", title, &m.Title},
	} {
		if f.v.kind != absent && f.v.kind != aString {
			return errs.Invalid("", "%s must be a string", f.name)
		}
		if *f.into == "" && f.v.text != "" {
			*f.into = f.v.text
			found.add(f.v.damage)
		}
	}
	if m.Role == "" {
		if m.Author == "" {
			return errs.Invalid("", "a message needs a role")
		}
		m.Role = "user" // somebody with a name said it
	}
	c := &in.Content
	if c.kind == absent || c.kind == aNull {
		if in.Text.kind != absent {
			c = &in.Text
		}
	}
	calls := int64(in.ToolCalls) + int64(in.FunctionCall)
	switch {
	case c.kind == other:
		return errs.Invalid("", "content must be a string or an array of parts")
	case c.kind == absent && calls == 0:
		return errs.Invalid("", "a message needs content or text")
	}
	c.count(PartToolCall, calls)
	return r.message(m, c, found)
}

// at is when a message was written, 0 if it does not say.
func (in *jsonlMessage) at() (int64, error) {
	for _, f := range []struct {
		name string
		v    value
	}{{"timestamp", in.Timestamp}, {"created_at", in.CreatedAt}, {"time", in.Time}} {
		us, ok := readTime(f.v)
		if !ok {
			return 0, errs.Invalid("", "%s must be an RFC 3339 time or a number of seconds, milliseconds or microseconds, in the years 1 to 9999", f.name)
		}
		if us != 0 {
			return us, nil
		}
	}
	return 0, nil
}

// firstID gives the first of several values that is not empty. Numbers are ids as
// well.
func firstID(field string, values ...value) (value, error) {
	for _, v := range values {
		if v.kind == other {
			return value{}, errs.Invalid("", "%s must be a string or a number", field)
		}
		if v.text != "" {
			return v, nil
		}
	}
	return value{}, nil
}

// lines reads a file line by line.
type lines struct {
	src        *source
	max        int
	buf        []byte
	start, end int // what of buf was read and is not given yet
	line       int // number of the line that was given last
}

// next gives a line, with its end, until the next call. The error is io.EOF behind
// the last one.
func (l *lines) next() ([]byte, error) {
	l.line++
	for seen := 0; ; {
		if i := bytes.IndexByte(l.buf[l.start+seen:l.end], '\n'); i >= 0 {
			text := l.buf[l.start : l.start+seen+i+1]
			l.start += len(text)
			if len(text)-1 > l.max {
				return nil, l.tooLong()
			}
			return text, nil
		}
		if seen = l.end - l.start; seen > l.max {
			return nil, l.tooLong()
		}
		if err := l.src.failed(); err != nil {
			return nil, err
		}
		if l.src.err != nil {
			text := l.buf[l.start:l.end]
			if l.start = l.end; len(text) == 0 {
				return nil, io.EOF
			}
			return text, nil
		}
		l.fill()
	}
}

func (l *lines) tooLong() error {
	return errs.Invalid("", "it is longer than %d bytes", l.max)
}

// fill reads on. What it meets instead is kept by the source.
func (l *lines) fill() {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
	}
	if l.end == len(l.buf) {
		bigger := make([]byte, max(64<<10, 2*len(l.buf)))
		copy(bigger, l.buf)
		l.buf = bigger
	}
	n, _ := l.src.Read(l.buf[l.end:]) // next looks at the source's error
	l.end += n
}
