// Package ollama embeds through a server of Ollama and its own interface, which
// can be kept from cutting texts.
package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// Options say which model embeds and how. Only Model is required.
type Options struct {
	Endpoint endpoint.Options // usually at http://localhost:11434
	Model    string           // as "ollama list" names it
	// Dimensions is asked for and held the server to. 0: the first answer
	// decides.
	Dimensions int
	// QueryPrefix and PassagePrefix stand before each text: what the model was
	// trained with, such as "search_query: " and "search_document: ".
	QueryPrefix, PassagePrefix string
	KeepAlive                  string // how long the model stays loaded, as "10m"; "": the server's choice
	MaxInputs                  int    // texts in a request at most; 0: 128
	MaxBytes                   int    // bytes of text in a request at most, but for a single text; 0: 1,000,000
}

// An Embedder embeds through one server. It is safe for concurrent use.
type Embedder struct {
	inner *remote.Embedder
}

type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Truncate   bool     `json:"truncate"`
	Dimensions int      `json:"dimensions,omitempty"`
	KeepAlive  string   `json:"keep_alive,omitempty"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives an embedder. It asks the server nothing.
func New(o Options) (*Embedder, error) {
	client, err := remote.New("ollama", "http://localhost:11434", o.Endpoint)
	err = errors.Join(remote.Required("Model", o.Model), remote.NotNegative("Dimensions", o.Dimensions),
		remote.NotNegative("MaxInputs", o.MaxInputs), remote.NotNegative("MaxBytes", o.MaxBytes), err)
	if err != nil {
		return nil, fmt.Errorf("ollama: %w", err)
	}
	inner := &remote.Embedder{
		Client:        client,
		Path:          "api/embed",
		MaxInputs:     remote.Or(o.MaxInputs, 128),
		MaxBytes:      remote.Or(o.MaxBytes, 1_000_000),
		QueryPrefix:   o.QueryPrefix,
		PassagePrefix: o.PassagePrefix,
		Request: func(texts []string, _ embed.Purpose) any {
			return request{Model: o.Model, Input: texts, Dimensions: o.Dimensions, KeepAlive: o.KeepAlive}
		},
		Decode: decode,
	}
	inner.Expect(o.Dimensions)
	return &Embedder{inner}, nil
}

func decode(answer []byte, n int) ([][]float32, error) {
	var body struct {
		Embeddings []json.RawMessage `json:"embeddings"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, remote.Unreadable(err)
	}
	return remote.Vectors(body.Embeddings, n)
}

// Embed implements embed.Embedder. Texts beyond the limits go in several
// requests, one after the other; an error of one of them is the error of all.
// A blank text refuses the call with an *endpoint.TextError before anything is
// sent.
func (e *Embedder) Embed(ctx context.Context, texts []string, purpose embed.Purpose) ([][]float32, error) {
	return e.inner.Embed(ctx, texts, purpose)
}

// Dimension is the number of components of each vector, 0 before it is known.
func (e *Embedder) Dimension() int { return e.inner.Dimension() }

// Close ends idle connections. The embedder can be used afterwards.
func (e *Embedder) Close() error { return e.inner.Close() }
