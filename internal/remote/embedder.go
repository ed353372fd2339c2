package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// An Embedder is an embed.Embedder over a service. Its fields are set before
// the first call and not changed afterwards.
type Embedder struct {
	*Client
	Path      string // of the operation, below the base address
	MaxInputs int    // texts in a request
	MaxBytes  int    // bytes of text in a request; a single longer text is sent all the same
	// QueryPrefix and PassagePrefix stand before each text of that purpose.
	QueryPrefix, PassagePrefix string
	// Request gives the body for texts; Decode reads the answer to n of them.
	Request func(texts []string, purpose embed.Purpose) any
	Decode  func(answer []byte, n int) ([][]float32, error)

	dimension atomic.Int64
}

// Expect sets the vectors' dimension. 0: that of the first answer.
func (e *Embedder) Expect(dimension int) { e.dimension.Store(int64(dimension)) }

// Dimension is the number of components of each vector, 0 before it is known.
func (e *Embedder) Dimension() int { return int(e.dimension.Load()) }

// Embed implements embed.Embedder. A blank text refuses the whole call before
// anything is sent, with an *endpoint.TextError that names it.
func (e *Embedder) Embed(ctx context.Context, texts []string, purpose embed.Purpose) ([][]float32, error) {
	prefix := e.PassagePrefix
	switch purpose {
	case embed.Query:
		prefix = e.QueryPrefix
	case embed.Passage:
	default:
		return nil, fmt.Errorf("%s: an unknown purpose %q", e.service, purpose)
	}
	if err := e.refuseBlank(texts, 0); err != nil {
		return nil, err
	}
	out := make([][]float32, 0, len(texts))
	for from, to := range spans(texts, e.MaxInputs, e.MaxBytes) {
		vectors, err := e.part(ctx, texts[from:to], prefix, purpose)
		if err != nil {
			return nil, shift(err, from)
		}
		out = append(out, vectors...)
	}
	return out, nil
}

func (e *Embedder) part(ctx context.Context, texts []string, prefix string, purpose embed.Purpose) ([][]float32, error) {
	sent := texts
	if prefix != "" {
		sent = make([]string, len(texts))
		for i, t := range texts {
			sent[i] = prefix + t
		}
	}
	answer, err := e.Post(ctx, e.Path, e.Request(sent, purpose), texts)
	if err != nil {
		return nil, err
	}
	vectors, err := e.Decode(answer, len(texts))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.service, err)
	}
	for i, v := range vectors {
		e.dimension.CompareAndSwap(0, int64(len(v)))
		if d := e.Dimension(); len(v) != d {
			return nil, fmt.Errorf("%s: vector %d has %d dimensions, not %d", e.service, i, len(v), d)
		}
		if zero(v) {
			return nil, &located{e.service, &endpoint.TextError{Index: i, Reason: "has no vector: all its components are 0"}}
		}
	}
	return vectors, nil
}

func zero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// refuseBlank complains of the first text that holds nothing but white space,
// which some services answer with an error for all and some with nonsense.
func (c *Client) refuseBlank(texts []string, first int) error {
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			return &located{c.service, &endpoint.TextError{Index: first + i, Reason: "is blank"}}
		}
	}
	return nil
}

// located is a complaint about a text with the service that it is not for.
type located struct {
	service string
	text    *endpoint.TextError
}

func (e *located) Error() string { return e.service + ": " + e.text.Error() }
func (e *located) Unwrap() error { return e.text }

// shift moves the position in a complaint about a text of a part that starts
// at from.
func shift(err error, from int) error {
	var at *located
	if from > 0 && errors.As(err, &at) {
		return &located{at.service, &endpoint.TextError{Index: at.text.Index + from, Reason: at.text.Reason}}
	}
	return err
}

// spans cuts texts into parts [from, to) of at most maxInputs texts and, but
// for single texts, maxBytes bytes.
func spans(texts []string, maxInputs, maxBytes int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		from, size := 0, 0
		for i, t := range texts {
			if i > from && (i-from >= maxInputs || size+len(t) > maxBytes) {
				if !yield(from, i) {
					return
				}
				from, size = i, 0
			}
			size += len(t)
		}
		if from < len(texts) {
			yield(from, len(texts))
		}
	}
}
