// Package cohere reranks through Cohere's interface, version 2.
package cohere

import (
	"context"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// Options say which model reranks and how. Only Model is required; the service
// itself wants a key.
type Options struct {
	Endpoint endpoint.Options // usually at https://api.cohere.com
	Model    string
	// MaxTokensPerDocument is where the service cuts each document; it has no
	// way to be told not to. 0: the service's choice, 4096 when this was written.
	MaxTokensPerDocument int
	MaxDocuments         int // in a request; 0: 1000
	MaxBytes             int // of documents in a request, but for a single one; 0: 2,000,000
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
	MaxTokensPerDoc int      `json:"max_tokens_per_doc,omitempty"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives a reranker. It asks the service nothing.
func New(o Options) (*Reranker, error) {
	client, err := remote.New("cohere", "https://api.cohere.com", o.Endpoint)
	err = errors.Join(remote.Required("Model", o.Model), remote.NotNegative("MaxDocuments", o.MaxDocuments),
		remote.NotNegative("MaxBytes", o.MaxBytes), remote.NotNegative("MaxTokensPerDocument", o.MaxTokensPerDocument), err)
	if err != nil {
		return nil, fmt.Errorf("cohere: %w", err)
	}
	return &Reranker{&remote.Reranker{
		Client:       client,
		Path:         "v2/rerank",
		MaxDocuments: remote.Or(o.MaxDocuments, 1000),
		MaxBytes:     remote.Or(o.MaxBytes, 2_000_000),
		Request: func(query string, documents []string) any {
			return request{
				Model: o.Model, Query: query, Documents: documents, TopN: len(documents),
				MaxTokensPerDoc: o.MaxTokensPerDocument,
			}
		},
		Decode: remote.Results,
	}}, nil
}

// Rerank implements rerank.Reranker. Documents beyond the limits go in several
// requests. A blank query or document refuses the call with an
// *endpoint.TextError before anything is sent.
func (r *Reranker) Rerank(ctx context.Context, query string, documents []string) ([]float64, error) {
	return r.inner.Rerank(ctx, query, documents)
}

// Close ends idle connections. The reranker can be used afterwards.
func (r *Reranker) Close() error { return r.inner.Close() }
