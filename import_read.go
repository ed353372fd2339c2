package loci

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// seekable gives r as something that can be read twice.
func (e *engine) seekable(ctx context.Context, r io.Reader) (in io.ReadSeeker, done func(), err error) {
	done = func() {}
	if s, ok := r.(io.ReadSeeker); ok {
		// A pipe is a file too, and says only here that it cannot.
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			return &fromHere{s, at}, done, nil
		}
	}
	f, err := os.CreateTemp(e.dir, "import-*"+spoolSuffix)
	if err != nil {
		return nil, nil, errs.Wrap(errs.IO, err, "the input could not be kept in the data directory")
	}
	os.Remove(f.Name()) // where an open file can go it is gone already, however this ends
	done = func() {
		f.Close()
		os.Remove(f.Name())
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := r.Read(buf)
		if _, werr := f.Write(buf[:n]); werr != nil {
			done()
			return nil, nil, errs.Wrap(errs.IO, werr, "the input could not be kept in the data directory")
		}
		if errors.Is(err, io.EOF) {
			return f, done, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			done()
			return nil, nil, errs.Wrap(errs.IO, err, "the input could not be read")
		}
	}
}

// spoolSuffix ends the names of inputs that are kept for a second reading.
const spoolSuffix = ".spool"

// fromHere is a seeker whose beginning is where it stood.
type fromHere struct {
	io.ReadSeeker
	at int64
}

// Seek implements io.Seeker as far as it is used: back to the beginning.
func (f *fromHere) Seek(int64, int) (int64, error) { return f.ReadSeeker.Seek(f.at, io.SeekStart) }

// problems collects what is wrong with a file, by line.
type problems struct {
	code Code
	list []string
}

// maxProblems is how many problems are looked for.
const maxProblems = 20

func (p *problems) add(line int, err error) {
	if p.code == "" || p.code == errs.Conflict {
		p.code = CodeOf(err)
	}
	text := err.Error()
	if e, ok := errors.AsType[*errs.Error](err); ok {
		text = e.Message
		if e.Field != "" {
			text = e.Field + ": " + text
		}
	}
	p.list = append(p.list, fmt.Sprintf("line %d: %s", line, text))
}

func (p *problems) full() bool { return len(p.list) >= maxProblems }

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	text := strings.Join(p.list, "; ")
	if p.full() {
		text += "; and perhaps more"
	}
	return &errs.Error{Code: p.code, Message: text}
}

// numbered is a decoded line with its number, or what is wrong with it.
type numbered struct {
	importLine
	line int
	err  error
}

// lines reads the input from its beginning, decodes ahead on another goroutine,
// and calls fn with each line. An error of fn ends it.
func (im *importer) lines(ctx context.Context, fn func(numbered) error) error {
	if _, err := im.in.Seek(0, io.SeekStart); err != nil {
		return errs.Wrap(errs.IO, err, "the input could not be read again")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const batchLines, batchBytes = 64, 1 << 20
	batches := make(chan []numbered, 2)
	var failed error // set before batches is closed
	go func() {
		defer close(batches)
		defer func() {
			if p := recover(); p != nil {
				failed = errs.New(errs.Storage, "a line could not be decoded: a mistake of the program")
			}
		}()
		var batch []numbered
		size := 0
		send := func() bool {
			select {
			case batches <- batch:
				batch, size = nil, 0
				return true
			case <-ctx.Done():
				return false
			}
		}
		for lines := (lineReader{r: bufio.NewReaderSize(im.in, 1<<16)}); ; {
			text, err := lines.next()
			if errors.Is(err, io.EOF) {
				send()
				return
			}
			if err != nil && CodeOf(err) == "" {
				failed = errs.Wrap(errs.IO, err, "the input could not be read")
				return
			}
			n := numbered{line: lines.line, err: err}
			if err == nil {
				n.importLine, n.err = parseLine(text, im.now)
			}
			batch, size = append(batch, n), size+len(text)
			if (len(batch) == batchLines || size >= batchBytes) && !send() {
				return
			}
		}
	}()
	// Whoever stops early waits until nobody reads the input any more.
	defer func() {
		cancel()
		for range batches {
			continue
		}
	}()
	for batch := range batches {
		for _, n := range batch {
			if err := fn(n); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return errs.Wrap(errs.Canceled, err, "the context ended first")
		}
	}
	if failed == nil && ctx.Err() != nil {
		return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended first")
	}
	return failed
}

// lineReader reads lines that are not blank.
type lineReader struct {
	r    *bufio.Reader
	line int // number of the line that was read last
}

// next gives a line, valid as long as the caller likes. A line that is too long
// is read to its end and refused.
func (l *lineReader) next() ([]byte, error) {
	for {
		var text []byte
		tooLong := false
		for {
			part, err := l.r.ReadSlice('\n')
			if len(text)+len(part) > maxLineBytes {
				text, tooLong = nil, true
			} else if !tooLong {
				text = append(text, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0 && !tooLong) {
				return nil, err
			}
			break
		}
		l.line++
		if tooLong {
			return nil, errs.Invalid("", "is longer than %d bytes", maxLineBytes)
		}
		if len(strings.TrimSpace(string(text[:min(len(text), 64)]))) > 0 || len(text) > 64 {
			return text, nil
		}
	}
}
