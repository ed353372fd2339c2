package lociworker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

// lineFile reads a file of records. It stays where it is between requests, so that
// one that goes on where the last one ended has nothing to skip.
type lineFile struct {
	path string
	file *os.File
	in   *bufio.Reader
	at   int // the line that comes next
}

// seek goes to a line of a file.
func (l *lineFile) seek(path string, line int) error {
	if l.file == nil || path != l.path || line < l.at {
		if err := l.close(); err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		*l = lineFile{path: path, file: file, in: bufio.NewReaderSize(file, 1<<16)}
	}
	for l.at < line {
		if _, err := l.line(); err != nil {
			return err
		}
	}
	return nil
}

// line reads the next line.
func (l *lineFile) line() ([]byte, error) {
	b, err := l.in.ReadBytes('\n')
	if err != nil && (len(b) == 0 || !errors.Is(err, io.EOF)) {
		return nil, fmt.Errorf("line %d of %s: %w", l.at, l.path, err)
	}
	l.at++
	return b, nil
}

// read reads the next n records.
func (l *lineFile) read(n int) ([]protocol.Record, error) {
	out := make([]protocol.Record, n)
	for i := range out {
		b, err := l.line()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, &out[i]); err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", l.at-1, l.path, err)
		}
		if out[i].ID != l.at-1 {
			return nil, fmt.Errorf("line %d of %s is record %d", l.at-1, l.path, out[i].ID)
		}
	}
	return out, nil
}

func (l *lineFile) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	*l = lineFile{}
	return err
}

// rows are the vectors of a file; nil: there are none.
type rows struct {
	file      *os.File
	dimension int
}

func openRows(path string, dimension int) (*rows, error) {
	if path == "" {
		return nil, nil
	}
	if dimension < 1 {
		return nil, fmt.Errorf("the vectors of %s have no dimension", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &rows{file, dimension}, nil
}

// read reads n rows.
func (r *rows) read(from, n int) ([][]float32, error) {
	size := 4 * r.dimension
	raw := make([]byte, n*size)
	if _, err := r.file.ReadAt(raw, int64(from)*int64(size)); err != nil {
		return nil, fmt.Errorf("rows %d to %d of %s: %w", from, from+n, r.file.Name(), err)
	}
	flat := make([]float32, n*r.dimension)
	for i := range flat {
		flat[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	out := make([][]float32, n)
	for i := range out {
		out[i] = flat[i*r.dimension : (i+1)*r.dimension : (i+1)*r.dimension]
	}
	return out, nil
}

func (r *rows) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}
