package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/local"
)

// frame writes the centre and the directions between two languages as float32,
// little endian.
func frame(encoder, folder, result string, out io.Writer) error {
	data, err := os.ReadFile(encoder)
	if err != nil {
		return err
	}
	e, err := local.Open(string(data), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", encoder, err)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return err
	}
	var files []map[string]vector
	for _, path := range paths {
		means, err := meansOf(e, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, means)
	}
	rows, err := frameOf(files)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	var bytes []byte
	for _, row := range rows {
		for _, x := range row {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(float32(x)))
		}
	}
	if err := os.WriteFile(result, bytes, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "a centre and %d directions of %d files\nresult %x\n", len(rows)-1, len(files), sha256.Sum256(bytes))
	return err
}

type vector []float64

// add adds a share of w to v, which may be nil.
func (v vector) add(w vector, share float64) vector {
	if v == nil {
		v = make(vector, len(w))
	}
	for i, x := range w {
		v[i] += share * x
	}
	return v
}

func (v vector) dot(w vector) (sum float64) {
	for i, x := range v {
		sum += x * w[i]
	}
	return sum
}

// mean is the mean of some vectors of one length.
func mean(vectors []vector) (m vector) {
	for _, v := range vectors {
		m = m.add(v, 1/float64(len(vectors)))
	}
	return m
}

// frameOf makes the frame of files' mean vectors by language. All files together
// must have two languages.
func frameOf(files []map[string]vector) ([]vector, error) {
	centres := make([]vector, len(files))
	languages := map[string]bool{}
	for i, f := range files {
		for language := range f {
			languages[language] = true
		}
		centres[i] = mean(inOrder(f))
	}
	names := slices.Sorted(maps.Keys(languages))
	if len(names) != 2 {
		return nil, fmt.Errorf("texts are in the languages %q, want two", names)
	}
	var within []vector
	between := map[string][]vector{}
	for _, f := range files {
		if len(f) == 2 {
			within = append(within, mean([]vector{f[names[1]]}).add(f[names[0]], -1))
			continue
		}
		for language, v := range f {
			between[language] = append(between[language], v)
		}
	}
	rows := []vector{mean(centres)}
	if len(within) > 0 {
		rows = appendDirection(rows, mean(within))
	}
	if len(between) == 2 {
		rows = appendDirection(rows, mean(between[names[1]]).add(mean(between[names[0]]), -1))
	}
	return rows, nil
}

// inOrder gives the vectors by their languages' names, so that their sum has the
// same bits each time.
func inOrder(f map[string]vector) (out []vector) {
	for _, language := range slices.Sorted(maps.Keys(f)) {
		out = append(out, f[language])
	}
	return out
}

// appendDirection adds a direction to a frame, less what lies in those before
// it, at unit length.
func appendDirection(rows []vector, v vector) []vector {
	for _, axis := range rows[1:] {
		v = v.add(axis, -v.dot(axis))
	}
	length := math.Sqrt(v.dot(v))
	return append(rows, vector(nil).add(v, 1/length))
}

// meansOf gives the mean vectors of a file's texts by language.
func meansOf(e *local.Embedder, path string) (map[string]vector, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	texts := map[string][]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var record struct {
			Judgment string
			Metadata struct{ Lang string }
		}
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, err
		}
		if record.Judgment == "" || record.Metadata.Lang == "" {
			return nil, fmt.Errorf("line %d has no judgment or no language", n)
		}
		texts[record.Metadata.Lang] = append(texts[record.Metadata.Lang], record.Judgment)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, errors.New("holds no texts")
	}
	means := map[string]vector{}
	for language, of := range texts {
		vectors, err := e.Embed(context.Background(), of, embed.Passage)
		if err != nil {
			return nil, err
		}
		wide := make([]vector, len(vectors))
		for i, v := range vectors {
			for _, x := range v {
				wide[i] = append(wide[i], float64(x))
			}
		}
		means[language] = mean(wide)
	}
	return means, nil
}
