// Package jina reranks through the interface of Jina, which many servers speak:
// vLLM, llama.cpp, Infinity, LiteLLM, Xinference.
package jina

import (
	"context"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// Options say which model reranks and how. Only Model is required; Jina itself
// wants a key.
type Options struct {
	// Endpoint says where the service is: its address up to the version, usually
	// https://api.jina.ai/v1.
	Endpoint     endpoint.Options
	Model        string
	MaxDocuments int // in a request; 0: 1000
	MaxBytes     int // of documents in a request, but for a single one; 0: 2,000,000
}

// A Reranker scores through the service. It is safe for concurrent use.
type Reranker struct {
	inner *remote.Reranker
}

type request struct {
	Model           string   `json:"model"`
	Query           string   `json:"query"`
	Documents       []string `json:"documents"`
	TopN            int      `json:"top_n"`
	ReturnDocuments bool     `json:"return_documents"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives a reranker. It asks the service nothing.
func New(o Options) (*Reranker, error) {
	client, err := remote.New("jina", "https://api.jina.ai/v1", o.Endpoint)
	err = errors.Join(remote.Required("Model", o.Model), remote.NotNegative("MaxDocuments", o.MaxDocuments),
		remote.NotNegative("MaxBytes", o.MaxBytes), err)
	if err != nil {
		return nil, fmt.Errorf("jina: %w", err)
	}
	return &Reranker{&remote.Reranker{
		Client:       client,
		Path:         "rerank",
		MaxDocuments: remote.Or(o.MaxDocuments, 1000),
		MaxBytes:     remote.Or(o.MaxBytes, 2_000_000),
		// The third generation of its models reads the documents side by side.
		Whole: true,
		Request: func(query string, documents []string) any {
			return request{Model: o.Model, Query: query, Documents: documents, TopN: len(documents)}
		},
		Decode: remote.Results,
	}}, nil
}

// Rerank implements rerank.Reranker. More documents than one request takes are
// an error that wraps embed.ErrTooLarge. A blank query or document refuses the
// call with an *endpoint.TextError before anything is sent.
func (r *Reranker) Rerank(ctx context.Context, query string, documents []string) ([]float64, error) {
	return r.inner.Rerank(ctx, query, documents)
}

// Close ends idle connections. The reranker can be used afterwards.
func (r *Reranker) Close() error { return r.inner.Close() }
