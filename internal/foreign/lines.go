package foreign

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
)

// eachLine gives the lines of r that are not blank, numbered from 1. What cannot
// be read as a line is listed.
func eachLine(p *Plan, r io.Reader, at func(line int) string, f func(line int, text []byte) error) error {
	in := bufio.NewReaderSize(io.LimitReader(r, MaxFileBytes+1), 1<<16)
	total := 0
	for n := 1; ; n++ {
		text, long, err := readLine(in)
		total += len(text)
		if err != nil && !errors.Is(err, io.EOF) {
			return errs.Wrap(errs.IO, err, "the file could not be read")
		}
		if total > MaxFileBytes {
			return errs.Invalid("path", "has more than %d bytes: import it in parts", MaxFileBytes)
		}
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		text = bytes.TrimSpace(text)
		switch {
		case long:
			p.Leave(at(n), "line", "", "has more than %d bytes", maxLineBytes)
		case len(text) == 0:
		case !utf8.Valid(text):
			p.Leave(at(n), "line", "", "is not valid UTF-8")
		default:
			if err := f(n, text); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine reads up to the next line feed. Of a line that is too long it keeps
// the beginning.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(piece) <= maxLineBytes {
			line = append(line, piece...)
		} else {
			long = true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// syntax says what is wrong with a piece of JSON, in words that name no Go type.
func syntax(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := ""
		if e.Field != "" {
			where = "the field " + e.Field + " "
		}
		return where + "has another form than is expected: " + e.Value
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "is not JSON: " + e.Error()
	}
	return "is not JSON: " + err.Error()
}
