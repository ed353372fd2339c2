package chatlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/loci-memory/loci/internal/errs"
)

// conversation collects what a conversation of an export has, field by field, so
// that what nobody needs is never in memory all at once.
type conversation interface {
	// field reads the value of a field, or passes over it.
	field(w *walker, name string) error
	// finish hands the messages on.
	finish(r *reader) error
	// looksRight says that the field that makes it a conversation was there.
	looksRight() bool
}

// walker goes through an export.
type walker struct {
	r     *reader
	src   *source
	dec   *json.Decoder
	fresh func() conversation
	count int   // conversations that were begun
	begin int64 // where the conversation began, as dec counts bytes
	value int64 // where the value that was asked for last began
}

// export reads arrays of conversations, objects that hold such an array as their
// "conversations", and conversations that stand by themselves; one after the other,
// as they are when parts of an export are put together.
func (r *reader) export(src *source, fresh func() conversation) error {
	w := &walker{r: r, src: src, dec: json.NewDecoder(src), fresh: fresh}
	for first := true; ; first = false {
		w.startsAt(w.dec.InputOffset())
		tok, err := w.dec.Token()
		switch {
		case err != nil && errors.Is(err, io.EOF) && !first:
			return nil
		case err != nil && errors.Is(err, io.EOF):
			err = errs.Invalid("", "the input is empty")
		case err != nil:
			err = w.broken(err)
		case tok == json.Delim('['):
			err = w.list()
		case tok == json.Delim('{'):
			err = w.object(true)
		default:
			err = errs.Invalid("", "the input must be an array of conversations, not a value of another kind")
		}
		if err != nil {
			return located(w.where(), err)
		}
	}
}

// where names the conversation that is being read.
func (w *walker) where() string {
	if w.count == 0 {
		return fmt.Sprintf("byte %d", w.src.base+w.value)
	}
	return fmt.Sprintf("conversation %d, near byte %d", w.count, w.src.base+w.value)
}

// startsAt gives a conversation that begins there all of its room.
func (w *walker) startsAt(offset int64) {
	w.begin, w.value = offset, offset
	w.src.until = w.begin + w.r.limits.MaxConversationBytes
}

// list reads the conversations of an array that has begun.
func (w *walker) list() error {
	for {
		w.startsAt(w.dec.InputOffset())
		if !w.dec.More() {
			break
		}
		if err := w.enters('{', "a conversation"); err != nil {
			w.count++
			return err
		}
		if err := w.object(false); err != nil {
			return err
		}
	}
	return w.leaves()
}

// object reads a conversation that has begun, or at the top what holds an array of
// them.
func (w *walker) object(top bool) error {
	w.count++
	w.startsAt(w.dec.InputOffset() - int64(len("{")))
	c, holder := w.fresh(), false
	for w.dec.More() {
		name, err := w.name()
		if err != nil {
			return err
		}
		if top && name == "conversations" {
			if err := w.enters('[', "conversations"); err != nil {
				return err
			}
			if !holder {
				holder = true
				w.count-- // this is none itself
			}
			if err := w.list(); err != nil {
				return err
			}
			w.startsAt(w.dec.InputOffset())
			continue
		}
		if err := c.field(w, name); err != nil {
			return err
		}
	}
	if err := w.leaves(); err != nil {
		return err
	}
	if holder && !c.looksRight() {
		return nil
	}
	return c.finish(w.r)
}

// name reads the name of a field.
func (w *walker) name() (string, error) {
	w.value = w.dec.InputOffset()
	tok, err := w.dec.Token()
	if err != nil {
		return "", w.broken(err)
	}
	name, _ := tok.(string) // within an object there is nothing else in its place
	return name, nil
}

// decode reads a value.
func (w *walker) decode(into any) error {
	w.value = w.dec.InputOffset()
	if err := w.dec.Decode(into); err != nil {
		return w.broken(err)
	}
	return w.fits()
}

// pass reads a value that nobody looks at.
func (w *walker) pass() error { return w.decode(&skipped{}) }

// enters reads the beginning of an array or an object.
func (w *walker) enters(open json.Delim, what string) error {
	w.value = w.dec.InputOffset()
	tok, err := w.dec.Token()
	if err != nil {
		return w.broken(err)
	}
	if tok == open {
		return nil
	}
	if open == '[' {
		return errs.Invalid("", "%s must be an array", what)
	}
	return errs.Invalid("", "%s must be an object", what)
}

// leaves reads the end of an array or an object.
func (w *walker) leaves() error {
	w.value = w.dec.InputOffset()
	if _, err := w.dec.Token(); err != nil {
		return w.broken(err)
	}
	return w.fits()
}

// fits refuses a conversation that was read ahead although it is too long.
func (w *walker) fits() error {
	if w.dec.InputOffset()-w.begin > w.r.limits.MaxConversationBytes {
		return w.broken(errPastLimit)
	}
	return nil
}

// broken says why the input cannot be read on.
func (w *walker) broken(err error) error {
	switch {
	case errors.Is(err, errPastLimit):
		return errs.Invalid("", "a conversation takes more than %d bytes", w.r.limits.MaxConversationBytes)
	case w.src.failed() != nil && errors.Is(err, w.src.err):
		return w.src.failed()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errs.Invalid("", "the input ends in the middle of it; it may have been cut short")
	}
	return malformed(err, false)
}

// exportTime reads a time of an export. Nobody can mend one there, so it is only
// counted if it cannot be read.
func (r *reader) exportTime(v value) int64 {
	us, ok := readTime(v)
	if !ok {
		r.report.UnreadTimes++
		return 0
	}
	return us
}

// firstText gives the first of several values that says something. Exports are
// taken as they are: what is no string or number is not there.
func firstText(values ...value) value {
	for _, v := range values {
		if v.text != "" {
			return v
		}
	}
	return value{}
}
