package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/internal/vec"
)

// Names of the real sets of vectors.
const (
	GloVe = "GloVe" // of words, 100 dimensions
	MNIST = "MNIST" // images of digits, 784 dimensions
)

// RealNames gives the names that Real knows.
func RealNames() []string { return []string{GloVe, MNIST} }

// Real gives a set of real vectors, scaled to length 1, from the folder ann below
// shared, made in a folder below dir if it is not there; nil if shared has none of
// that name. Its records have no text worth searching and there are no filters.
func Real(ctx context.Context, dir, shared, name string) (*Set, error) {
	var rows, queries [][]float32
	var err error
	switch name {
	case GloVe:
		folder := filepath.Join(shared, "ann", "glove")
		rows, err = fvecs(filepath.Join(folder, "base.fvecs"))
		if err == nil {
			queries, err = fvecs(filepath.Join(folder, "query.fvecs"))
		}
	case MNIST:
		folder := filepath.Join(shared, "ann", "mnist")
		rows, err = images(filepath.Join(folder, "base-images-idx3-ubyte.gz"))
		if err == nil {
			queries, err = images(filepath.Join(folder, "query-images-idx3-ubyte.gz"))
		}
	default:
		err = fmt.Errorf("data: no set %q", name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(queries) == 0 {
		return nil, fmt.Errorf("data: %s: no vectors", name)
	}
	s := &Set{Form: form, Name: name, Count: len(rows), Dimension: len(rows[0]), Asks: len(queries), Filters: Filters()[:1]}
	return s.ensure(filepath.Join(dir, "real-"+name), func() error {
		err := writeFile(s.Records, func(w *bufio.Writer) error {
			e := json.NewEncoder(w)
			for id := range rows {
				text := fmt.Sprintf("vector %d", id)
				if err := e.Encode(protocol.Record{ID: id, Text: text, Words: text, Tags: []string{"all"}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := writeUnit(s.Vectors, rows); err != nil {
			return err
		}
		if err := writeUnit(s.Asked, queries); err != nil {
			return err
		}
		return s.findTruth(ctx)
	})
}

func writeUnit(name string, rows [][]float32) error {
	return writeFile(name, func(w *bufio.Writer) error {
		for i, row := range rows {
			if len(row) != len(rows[0]) {
				return fmt.Errorf("vector %d has %d dimensions, not %d", i, len(row), len(rows[0]))
			}
			if _, ok := vec.Normalize(row, row); !ok {
				return fmt.Errorf("vector %d has no direction", i)
			}
			if _, err := w.Write(appendFloats(nil, row)); err != nil {
				return err
			}
		}
		return nil
	})
}

// fvecs reads a file of vectors, each after its dimension.
func fvecs(name string) ([][]float32, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out [][]float32
	for len(content) >= 4 {
		n := 4 * int(binary.LittleEndian.Uint32(content))
		if content = content[4:]; n <= 0 || n > len(content) {
			return nil, fmt.Errorf("%s: %w", name, io.ErrUnexpectedEOF)
		}
		out = append(out, floats(nil, content[:n]))
		content = content[n:]
	}
	return out, nil
}

// images reads a gzipped file of images of bytes in the IDX form.
func images(name string) ([][]float32, error) {
	packed, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	const header, magic = 16, 0x803
	if len(content) < header || binary.BigEndian.Uint32(content) != magic {
		return nil, fmt.Errorf("%s: not a file of images", name)
	}
	count := int(binary.BigEndian.Uint32(content[4:]))
	size := int(binary.BigEndian.Uint32(content[8:])) * int(binary.BigEndian.Uint32(content[12:]))
	if content = content[header:]; size == 0 || len(content) != count*size {
		return nil, fmt.Errorf("%s: %w", name, io.ErrUnexpectedEOF)
	}
	out := make([][]float32, count)
	for i := range out {
		out[i] = make([]float32, size)
		for j, b := range content[i*size : (i+1)*size] {
			out[i][j] = float32(b)
		}
	}
	return out, nil
}
