package chatlog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
)

// maxName is how long ids, roles, titles and authors may be, in bytes.
const maxName = 512

// reader hands messages on and counts.
type reader struct {
	limits Limits
	fn     func(Message) error
	report Report
	// threads holds the next position of each conversation. The names are hashed, so
	// that long ones take no more room than short ones.
	threads map[[16]byte]int64
	last    lastThread
	keys    map[uint64]struct{} // of the messages with an ID
	repeats map[uint64]int64    // how often a key came again, by the key of Repeat 0
}

// lastThread saves hashing the same name for each message of a conversation.
type lastThread struct {
	name string
	sum  [16]byte
}

func sum128(parts ...string) (out [16]byte) {
	var buf []byte
	for _, p := range parts {
		buf = appendField(buf, p)
	}
	sum := sha256.Sum256(buf)
	copy(out[:], sum[:])
	return out
}

// nameless is the thread of a conversation without an id, made of what it has.
func nameless(parts ...string) string {
	sum := sum128(parts...)
	return "unnamed-" + hex.EncodeToString(sum[:])
}

// enter says that a conversation is there, even if no message of it is handed on.
func (r *reader) enter(thread string) error {
	if r.last.name != thread || r.last.name == "" {
		r.last = lastThread{thread, sum128(thread)}
	}
	if _, ok := r.threads[r.last.sum]; ok {
		return nil
	}
	if len(r.threads) >= r.limits.MaxThreads {
		return errs.Invalid("", "the input has more than %d conversations", r.limits.MaxThreads)
	}
	r.threads[r.last.sum] = 0
	return nil
}

// leaveOut counts a message that is not handed on.
func (r *reader) leaveOut(why Reason) { r.report.LeftOut[why]++ }

// count counts what was replaced.
func (r *reader) count(d damage) {
	r.report.Replaced += d.replaced
	r.report.NULs += d.nuls
}

// message hands one on, or counts why not. The names of m are taken as they are
// in the input, its position and text are set here. found is what was replaced in
// the names.
func (r *reader) message(m Message, c *content, found damage) error {
	for _, name := range []struct{ field, text string }{
		{"the id of the conversation", m.Thread}, {"the id", m.ID}, {"the role", m.Role},
	} {
		if len(name.text) > maxName {
			return errs.Invalid("", "%s is longer than %d bytes", name.field, maxName)
		}
	}
	if err := r.enter(m.Thread); err != nil {
		return err
	}
	r.count(found)
	for p, n := range c.parts {
		r.report.Parts[p] += n
	}
	if c.blank() {
		r.leaveOut(c.why(m.Role))
		return nil
	}
	if r.report.Messages >= r.limits.MaxMessages {
		return errs.Invalid("", "the input has more than %d messages; divide it", r.limits.MaxMessages)
	}
	m.Text = mark.Strip(c.text())
	r.count(c.damage)
	if strings.TrimSpace(m.Text) == "" {
		r.leaveOut(Recalled)
		return nil
	}
	if len(m.Text) > r.limits.MaxMessageBytes {
		if !r.limits.CutLong {
			return errs.Invalid("", "the text has %d bytes, more than %d", len(m.Text), r.limits.MaxMessageBytes)
		}
		m.Text = cut(m.Text, r.limits.MaxMessageBytes)
		r.report.CutTexts++
		if strings.TrimSpace(m.Text) == "" {
			r.leaveOut(Empty)
			return nil
		}
	}
	for _, name := range []*string{&m.Title, &m.Author} {
		if len(*name) > maxName {
			*name = cut(*name, maxName)
			r.report.CutNames++
		}
	}
	next := r.threads[r.last.sum]
	m.Position = next
	r.tellApart(&m)
	if err := r.fn(m); err != nil {
		return handedBack{err}
	}
	if next == 0 {
		r.report.Threads++
	}
	r.threads[r.last.sum] = next + 1
	r.report.Messages++
	r.report.TextBytes += int64(len(m.Text))
	return nil
}

// tellApart gives a message with an ID a key that no earlier one of this reading
// has.
func (r *reader) tellApart(m *Message) {
	if m.ID == "" {
		return
	}
	first := Key(m.Thread, m)
	key := first
	for {
		if _, ok := r.keys[key]; !ok {
			break
		}
		r.repeats[first]++
		m.Repeat = r.repeats[first]
		key = Key(m.Thread, m)
	}
	r.keys[key] = struct{}{}
	if m.Repeat > 0 {
		r.report.RepeatedIDs++
	}
}

// handedBack carries an error of the caller's function past what says where it
// happened.
type handedBack struct{ err error }

func (e handedBack) Error() string { return e.err.Error() }
func (e handedBack) Unwrap() error { return e.err }

// located says where an error of the input is. What the caller's function
// returned goes through as it is.
func located(where string, err error) error {
	if err == nil {
		return nil
	}
	if back, ok := errors.AsType[handedBack](err); ok {
		return back.err
	}
	if e, ok := errors.AsType[*errs.Error](err); ok {
		at := *e
		at.Message = where + ": " + e.Message
		return &at
	}
	return errs.Wrap(errs.Validation, err, "%s", where)
}

// malformed says what is wrong with a JSON value, which may be a line, without
// repeating it.
func malformed(err error, line bool) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		switch {
		case !line: // the offset is not that of the input
			return errs.Invalid("", "this is not JSON")
		case e.Error() == "unexpected end of JSON input": // nothing else tells it
			return errs.Invalid("", "the JSON ends in the middle; the input may have been cut short, or an object takes several lines")
		}
		return errs.Invalid("", "byte %d of it does not belong into JSON", e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "an object"
		if k := e.Type.Kind(); k == reflect.Slice {
			what = "an array"
		}
		if e.Field == "" {
			return errs.Invalid("", "this must be %s", what)
		}
		return errs.Invalid("", "%s must be %s", lowered(e.Field), what)
	}
	return errs.Invalid("", "this cannot be read as JSON")
}

// lowered is a field's path without the names of Go that encoding/json puts into
// it for structs inside of structs.
func lowered(path string) string {
	var names []string
	for _, name := range strings.Split(path, ".") {
		if name != "" && name == strings.ToLower(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}
