// Package cohere embeds through Cohere's interface, version 2.
package cohere

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// Options say which model embeds and how. Only Model is required; the service
// itself wants a key.
type Options struct {
	Endpoint endpoint.Options // usually at https://api.cohere.com
	Model    string
	// Dimensions is asked for and held the service to. 0: the first answer
	// decides. Only models from version 4 know several.
	Dimensions int
	MaxInputs  int // texts in a request at most; 0: 96
	MaxBytes   int // bytes of text in a request at most, but for a single text; 0: 1,000,000
}

// An Embedder embeds through the service. It is safe for concurrent use.
type Embedder struct {
	inner *remote.Embedder
}

type request struct {
	Model           string   `json:"model"`
	Texts           []string `json:"texts"`
	InputType       string   `json:"input_type"`
	EmbeddingTypes  []string `json:"embedding_types"`
	Truncate        string   `json:"truncate"`
	OutputDimension int      `json:"output_dimension,omitempty"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives an embedder. It asks the service nothing.
func New(o Options) (*Embedder, error) {
	client, err := remote.New("cohere", "https://api.cohere.com", o.Endpoint)
	err = errors.Join(remote.Required("Model", o.Model), remote.NotNegative("Dimensions", o.Dimensions),
		remote.NotNegative("MaxInputs", o.MaxInputs), remote.NotNegative("MaxBytes", o.MaxBytes), err)
	if err != nil {
		return nil, fmt.Errorf("cohere: %w", err)
	}
	inner := &remote.Embedder{
		Client:    client,
		Path:      "v2/embed",
		MaxInputs: remote.Or(o.MaxInputs, 96),
		MaxBytes:  remote.Or(o.MaxBytes, 1_000_000),
		Request: func(texts []string, purpose embed.Purpose) any {
			r := request{
				Model: o.Model, Texts: texts, InputType: "search_document", EmbeddingTypes: []string{"float"},
				Truncate: "NONE", OutputDimension: o.Dimensions,
			}
			if purpose == embed.Query {
				r.InputType = "search_query"
			}
			return r
		},
		Decode: decode,
	}
	inner.Expect(o.Dimensions)
	return &Embedder{inner}, nil
}

func decode(answer []byte, n int) ([][]float32, error) {
	var body struct {
		Embeddings struct {
			Float []json.RawMessage `json:"float"`
		} `json:"embeddings"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, remote.Unreadable(err)
	}
	return remote.Vectors(body.Embeddings.Float, n)
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
