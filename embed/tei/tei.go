// Package tei embeds through a server of Hugging Face's text-embeddings-inference.
package tei

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// Options say how the server embeds. The model is the server's; only the
// endpoint's URL is required.
type Options struct {
	Endpoint endpoint.Options
	// Dimensions is asked for and held the server to. 0: the first answer
	// decides.
	Dimensions int
	// QueryPrompt and PassagePrompt name prompts of the model's configuration.
	QueryPrompt, PassagePrompt string
	// QueryPrefix and PassagePrefix stand before each text, for models without
	// such prompts.
	QueryPrefix, PassagePrefix string
	MaxInputs                  int // texts in a request at most; 0: 32, the server's own default
	MaxBytes                   int // bytes of text in a request at most, but for a single text; 0: 1,000,000
}

// An Embedder embeds through one server. It is safe for concurrent use.
type Embedder struct {
	inner *remote.Embedder
}

type request struct {
	Inputs     []string `json:"inputs"`
	Normalize  bool     `json:"normalize"`
	Truncate   bool     `json:"truncate"`
	PromptName string   `json:"prompt_name,omitempty"`
	Dimensions int      `json:"dimensions,omitempty"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives an embedder. It asks the server nothing.
func New(o Options) (*Embedder, error) {
	client, err := remote.New("tei", "", o.Endpoint)
	err = errors.Join(remote.NotNegative("Dimensions", o.Dimensions),
		remote.NotNegative("MaxInputs", o.MaxInputs), remote.NotNegative("MaxBytes", o.MaxBytes), err)
	if err != nil {
		return nil, fmt.Errorf("tei: %w", err)
	}
	inner := &remote.Embedder{
		Client:        client,
		Path:          "embed",
		MaxInputs:     remote.Or(o.MaxInputs, 32),
		MaxBytes:      remote.Or(o.MaxBytes, 1_000_000),
		QueryPrefix:   o.QueryPrefix,
		PassagePrefix: o.PassagePrefix,
		Request: func(texts []string, purpose embed.Purpose) any {
			prompt := o.PassagePrompt
			if purpose == embed.Query {
				prompt = o.QueryPrompt
			}
			return request{Inputs: texts, Normalize: true, PromptName: prompt, Dimensions: o.Dimensions}
		},
		Decode: decode,
	}
	inner.Expect(o.Dimensions)
	return &Embedder{inner}, nil
}

func decode(answer []byte, n int) ([][]float32, error) {
	var rows []json.RawMessage
	if err := json.Unmarshal(answer, &rows); err != nil {
		return nil, remote.Unreadable(err)
	}
	return remote.Vectors(rows, n)
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
