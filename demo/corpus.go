package demo

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"path"

	"github.com/loci-memory/loci"
)

//go:embed corpus/*.jsonl corpus/README.md corpus/licenses/*.txt
var corpusFS embed.FS

//go:embed questions.jsonl
var questionsFile []byte

// Record is one line of the corpus. Its ID is the corpus's own; the store
// allocates another one, so ID also goes into the metadata, as "corpus_id".
type Record struct {
	ID         string          `json:"id"`
	Namespace  string          `json:"namespace"`
	Scope      string          `json:"scope"`
	Tags       []string        `json:"tags"`
	MemoryType string          `json:"memory_type"`
	Judgment   string          `json:"judgment"`
	Reasoning  string          `json:"reasoning"`
	Thread     string          `json:"thread"`
	Position   int64           `json:"position"`
	Metadata   json.RawMessage `json:"metadata"`
}

// Question is a question to the corpus and the records that answer it.
type Question struct {
	Query  string   `json:"query"`
	Tags   []string `json:"tags"`   // filter: all of them
	Thread string   `json:"thread"` // filter: only this thread
	Want   []string `json:"want"`   // corpus ids, one of which should be found
	About  string   `json:"about"`  // what the question shows
}

// Records streams the corpus, file by file in alphabetic order, line by line.
// It stops after the first error.
func Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		names, err := fs.Glob(corpusFS, "corpus/*.jsonl")
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, name := range names {
			data, err := corpusFS.ReadFile(name)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for r, err := range lines[Record](path.Base(name), data) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// Questions gives the questions that Run asks.
func Questions() ([]Question, error) {
	var out []Question
	for q, err := range lines[Question]("questions.jsonl", questionsFile) {
		if err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}

// lines decodes a file of one JSON object a line and refuses unknown fields,
// so that a misspelt one is noticed.
func lines[T any](name string, data []byte) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		scanner := bufio.NewScanner(bytes.NewReader(data))
		scanner.Buffer(nil, 1<<20)
		for n := 1; scanner.Scan(); n++ {
			var v T
			d := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
			d.DisallowUnknownFields()
			if err := d.Decode(&v); err != nil {
				yield(v, fmt.Errorf("%s:%d: %w", name, n, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			var zero T
			yield(zero, fmt.Errorf("%s: %w", name, err))
		}
	}
}

// input makes the memory that stands for a record. Creation times rise with
// the record's place in the corpus, so that loading it twice gives the same
// store.
func (r Record) input(createdUS int64) (loci.MemoryInput, error) {
	meta, err := withID(r.Metadata, r.ID)
	if err != nil {
		return loci.MemoryInput{}, fmt.Errorf("record %s: %w", r.ID, err)
	}
	in := loci.MemoryInput{
		RecordInput: loci.RecordInput{
			Tags:        r.Tags,
			Metadata:    meta,
			CreatedAtUS: new(createdUS),
			UpdatedAtUS: new(createdUS),
		},
		Judgment:  r.Judgment,
		Reasoning: r.Reasoning,
	}
	if r.Namespace != "" {
		in.Namespace = new(r.Namespace)
	}
	if r.Scope != "" {
		in.Scope = new(r.Scope)
	}
	if r.MemoryType != "" {
		in.MemoryType = new(r.MemoryType)
	}
	if r.Thread != "" {
		in.Thread, in.Position = new(r.Thread), new(r.Position)
	}
	return in, nil
}

// withID puts the corpus id in front of the metadata's own keys.
func withID(meta json.RawMessage, id string) (loci.Metadata, error) {
	head, err := json.Marshal(map[string]string{"corpus_id": id})
	if err != nil {
		return nil, err
	}
	body := bytes.TrimSpace(meta)
	if len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' {
		return nil, fmt.Errorf("metadata is not an object")
	}
	if rest := bytes.TrimSpace(body[1:]); rest[0] != '}' {
		head = append(head[:len(head)-1], ',')
		head = append(head, rest...)
	}
	return loci.Metadata(head), nil
}
