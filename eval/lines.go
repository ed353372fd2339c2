package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLine bounds a line of a set or run file, in bytes.
const MaxLine = 16 << 20

// eachLine calls f with every line of a file; the bytes are valid during the
// call only. Errors, f's included, say file and line.
func eachLine(file string, f func(line []byte) error) (err error) {
	h, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return lines(h, file, f)
}

func lines(r io.Reader, name string, f func(line []byte) error) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for n := 1; ; n++ {
		line, err := readLine(b, buf[:0])
		buf = line
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("eval: %s:%d: %w", name, n, err)
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		switch {
		case n == 1 && bytes.HasPrefix(line, []byte("\uFEFF")):
			return fmt.Errorf("eval: %s:%d: begins with a byte order mark", name, n)
		case len(bytes.TrimSpace(line)) == 0:
			return fmt.Errorf("eval: %s:%d: blank line", name, n)
		case !utf8.Valid(line):
			return fmt.Errorf("eval: %s:%d: not UTF-8", name, n)
		}
		if e := f(line); e != nil {
			return fmt.Errorf("eval: %s:%d: %w", name, n, e)
		}
		if err == io.EOF {
			return nil
		}
	}
}

// readLine appends the next line without its end to dst. It reads no more than
// a line's limit, whatever the file holds.
func readLine(b *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		piece, err := b.ReadSlice('\n')
		if len(dst)+len(piece) > MaxLine {
			return dst, fmt.Errorf("longer than %d bytes", MaxLine)
		}
		dst = append(dst, piece...)
		switch err {
		case nil:
			return dst[:len(dst)-1], nil
		case bufio.ErrBufferFull:
		default:
			return dst, err
		}
	}
}

// unmarshal reads one JSON object and nothing after it.
func unmarshal(line []byte, v any) error {
	if t := bytes.TrimLeft(line, " \t"); t[0] != '{' {
		return errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("bad JSON: %w", err)
	}
	return nil
}

// columns splits a line at its tabs into n columns, none of them empty.
func columns(line []byte, n int) ([]string, error) {
	f := strings.Split(string(line), "\t")
	if len(f) != n {
		return nil, fmt.Errorf("%d columns, want %d separated by tabs", len(f), n)
	}
	for i, s := range f {
		if strings.TrimSpace(s) == "" {
			return nil, fmt.Errorf("column %d is empty", i+1)
		}
	}
	return f, nil
}

// checkID refuses ids that a run file could not hold.
func checkID(id string) error {
	if strings.TrimSpace(id) == "" {
		return errors.New("no id")
	}
	if strings.IndexFunc(id, unicode.IsControl) >= 0 {
		return fmt.Errorf("id %q holds a control character", id)
	}
	return nil
}
