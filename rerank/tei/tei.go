// Package tei reranks through a server of Hugging Face's
// text-embeddings-inference.
package tei

import (
	"context"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// Options say how the server is used. The model is the server's; only the
// endpoint's URL is required.
type Options struct {
	Endpoint     endpoint.Options
	MaxDocuments int // in a request; 0: 32, the server's own default
	MaxBytes     int // of documents in a request, but for a single one; 0: 1,000,000
}

// A Reranker scores through the service. It is safe for concurrent use.
type Reranker struct {
	inner *remote.Reranker
}

type request struct {
	Query      string   `json:"query"`
	Texts      []string `json:"texts"`
	RawScores  bool     `json:"raw_scores"`
	ReturnText bool     `json:"return_text"`
	Truncate   bool     `json:"truncate"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives a reranker. It asks the service nothing.
func New(o Options) (*Reranker, error) {
	client, err := remote.New("tei", "", o.Endpoint)
	err = errors.Join(remote.NotNegative("MaxDocuments", o.MaxDocuments),
		remote.NotNegative("MaxBytes", o.MaxBytes), err)
	if err != nil {
		return nil, fmt.Errorf("tei: %w", err)
	}
	return &Reranker{&remote.Reranker{
		Client:       client,
		Path:         "rerank",
		MaxDocuments: remote.Or(o.MaxDocuments, 32),
		MaxBytes:     remote.Or(o.MaxBytes, 1_000_000),
		Request: func(query string, documents []string) any {
			return request{Query: query, Texts: documents}
		},
		Decode: remote.List,
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
