package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/local"
)

// centre writes the mean vector of a folder's texts as float32, little endian.
func centre(encoder, folder, result string, out io.Writer) error {
	data, err := os.ReadFile(encoder)
	if err != nil {
		return err
	}
	e, err := local.Open(string(data), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", encoder, err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no .jsonl files", folder)
	}
	sum := make([]float64, e.Dimension())
	texts := 0
	for _, file := range files {
		mean, n, err := meanOf(e, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for i, x := range mean {
			sum[i] += x / float64(len(files))
		}
		texts += n
	}
	var bytes []byte
	for _, x := range sum {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(float32(x)))
	}
	if err := os.WriteFile(result, bytes, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d texts of %d files\nresult %x\n", texts, len(files), sha256.Sum256(bytes))
	return err
}

// meanOf is the mean vector of a file's texts, and how many there are.
func meanOf(e *local.Embedder, file string) ([]float64, int, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var texts []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var record struct{ Judgment string }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, 0, err
		}
		if record.Judgment == "" {
			return nil, 0, fmt.Errorf("line %d has no judgment", len(texts)+1)
		}
		texts = append(texts, record.Judgment)
	}
	if err := lines.Err(); err != nil {
		return nil, 0, err
	}
	if len(texts) == 0 {
		return nil, 0, fmt.Errorf("no lines")
	}
	vectors, err := e.Embed(context.Background(), texts, embed.Passage)
	if err != nil {
		return nil, 0, err
	}
	mean := make([]float64, e.Dimension())
	for _, v := range vectors {
		for i, x := range v {
			mean[i] += float64(x) / float64(len(vectors))
		}
	}
	return mean, len(texts), nil
}
