// Package rerank says what a reranker is to Loci: a model that reads a query
// together with each document and scores how well they fit. The packages below
// it are such models.
package rerank

import "context"

// A Reranker scores documents against a query. It must be safe for concurrent
// use.
//
// Rerank gives one score a document, in the documents' order, all finite; higher
// is better, and only scores of one call are compared. It honours the context.
type Reranker interface {
	Rerank(ctx context.Context, query string, documents []string) ([]float64, error)
}
