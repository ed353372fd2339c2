// Package embed says what an embedding model is to Loci: a function from texts
// to vectors. The packages below it are such functions.
package embed

import (
	"context"
	"errors"
	"time"
)

// Purpose says what texts are embedded for. Many models want the two told
// apart, mostly by a prefix, which is the embedder's own affair.
type Purpose string

// The purposes.
const (
	Query   Purpose = "query"   // a question, to be compared with passages
	Passage Purpose = "passage" // a text to be found
)

// An Embedder turns texts into vectors. It must be safe for concurrent use.
//
// Embed gives one vector a text, in the order of the texts, all of the space's
// dimension, finite and not zero; they need not be of unit length. Nobody writes
// to them afterwards, so texts that are not alike never share one. It honours the
// context. Errors that say what to do wrap ErrTooLarge, ErrRateLimited or
// ErrRefused; any other stops the work at hand.
type Embedder interface {
	Embed(ctx context.Context, texts []string, purpose Purpose) ([][]float32, error)
}

// A Limiter is an Embedder that knows how much of a text its model reads.
type Limiter interface {
	// Limit gives the part of a text that the model reads, always a prefix of
	// it, and whether anything was cut off.
	Limit(text string, purpose Purpose) (kept string, cut bool)
}

// Errors of embedders and rerankers, for errors.Is.
var (
	// ErrTooLarge means that the request was too large: fewer or shorter texts
	// may pass.
	ErrTooLarge = errors.New("too large")
	// ErrRateLimited means that the same request may pass later. See RetryAfter.
	ErrRateLimited = errors.New("rate limited")
	// ErrRefused means that these texts will never be accepted as they are.
	ErrRefused = errors.New("refused")
)

// RetryAfterError is an error with the time that a service asked to be left
// alone for. It wraps ErrRateLimited.
type RetryAfterError struct {
	After time.Duration // 0: the service did not say
	Err   error
}

// Error implements error.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap gives ErrRateLimited and the cause.
func (e *RetryAfterError) Unwrap() []error { return []error{ErrRateLimited, e.Err} }
