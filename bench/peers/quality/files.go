package quality

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/embed"
)

// embedBatch is how many texts are embedded in one call.
const embedBatch = 64

func embedAll(ctx context.Context, o *Options, texts []string, purpose embed.Purpose) ([][]float32, error) {
	var out [][]float32
	for from := 0; from < len(texts); from += embedBatch {
		part := texts[from:min(from+embedBatch, len(texts))]
		vectors, err := o.Embedder.Embed(ctx, part, purpose)
		if err != nil {
			return nil, err
		}
		for _, v := range vectors {
			if len(v) != o.Dimension {
				return nil, fmt.Errorf("the embedder gave a vector of dimension %d, not %d", len(v), o.Dimension)
			}
		}
		if len(vectors) != len(part) {
			return nil, fmt.Errorf("the embedder gave %d vectors for %d texts", len(vectors), len(part))
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// parts gives every part: all, and those of scopes.
func (t *task) parts() []*part {
	out := []*part{&t.all}
	for i := range t.scopes {
		out = append(out, &t.scopes[i])
	}
	return out
}

// write writes the files of a part's records. texts and vectors are those of
// all records; vectors may be nil.
func (p *part) write(t *task, number int, texts []string, vectors [][]float32) error {
	stem := filepath.Join(t.dir, fmt.Sprint("part-", number))
	p.records, p.vectors = stem+".jsonl", stem+".f32"
	err := writeFile(p.records, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		for i, at := range p.docs {
			r := protocol.Record{ID: i, Text: texts[at], Tags: []string{}}
			if scope := t.set.Docs[at].Scope; scope != "" {
				r.Tags = append(r.Tags, scope)
			}
			if err := e.Encode(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || vectors == nil {
		return err
	}
	own := make([][]float32, len(p.docs))
	for i, at := range p.docs {
		own[i] = vectors[at]
	}
	return writeVectors(p.vectors, own)
}

// writeVectors writes a row of little-endian float32 for each vector.
func writeVectors(path string, vectors [][]float32) error {
	return writeFile(path, func(w io.Writer) error {
		var row []byte
		for _, v := range vectors {
			row = row[:0]
			for _, x := range v {
				row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
			}
			if _, err := w.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(f)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
