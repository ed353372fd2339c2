// Package openai embeds through the HTTP interface that OpenAI made common:
// OpenAI itself, vLLM, LM Studio, llama.cpp, LiteLLM, Ollama's /v1. Voyage and
// Jina speak dialects of it, which Options.Service chooses.
package openai

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
)

// A Service is a dialect of the interface.
type Service string

// The dialects. They differ in their usual address and limits, in how they are
// told a text's purpose and in how they are kept from cutting texts.
const (
	OpenAI Service = "openai" // and everything compatible; knows no purpose
	Voyage Service = "voyage" // input_type query or document; truncation off
	Jina   Service = "jina"   // task retrieval.query or retrieval.passage; truncate off
)

// An Encoding is the form that vectors are asked for in. An answer is read in
// whichever form it comes.
type Encoding string

// The encodings.
const (
	Base64 Encoding = "base64" // a quarter of the bytes; the default but for Jina
	Float  Encoding = "float"  // numbers, for servers that refuse the other
)

// Options say which model embeds and how. Only Model is required.
type Options struct {
	// Endpoint says where the service is: its address up to the version, as in
	// https://api.openai.com/v1, which is the usual one of OpenAI.
	Endpoint endpoint.Options
	Service  Service // "": OpenAI
	Model    string
	// Dimensions is asked for and held the service to. 0: it is not asked for,
	// and the first answer decides. Many models know one dimension only and
	// refuse the question.
	Dimensions int
	Encoding   Encoding // "": the dialect's
	// QueryPrefix and PassagePrefix stand before each text, for models that tell
	// the purposes apart by words, such as E5's "query: ".
	QueryPrefix, PassagePrefix string
	// MaxInputs is the most texts in a request. 0: 2048, for Voyage and Jina 128.
	MaxInputs int
	// MaxBytes is the most bytes of text in a request, but for a single text. 0:
	// 300,000, for Voyage 120,000. No text has more tokens than bytes, so these
	// keep the services' limits of tokens.
	MaxBytes int
}

// An Embedder embeds through one service. It is safe for concurrent use.
type Embedder struct {
	inner *remote.Embedder
}

type dialect struct {
	url       string
	maxInputs int
	maxBytes  int
	encoding  Encoding
}

func dialectOf(s Service) (dialect, bool) {
	switch s {
	case OpenAI:
		return dialect{"https://api.openai.com/v1", 2048, 300_000, Base64}, true
	case Voyage:
		return dialect{"https://api.voyageai.com/v1", 128, 120_000, Base64}, true
	case Jina:
		return dialect{"https://api.jina.ai/v1", 128, 300_000, Float}, true
	}
	return dialect{}, false
}

// request is the body for all dialects; what one of them does not know is left
// out.
type request struct {
	Model           string   `json:"model"`
	Input           []string `json:"input"`
	EncodingFormat  Encoding `json:"encoding_format,omitempty"`
	EmbeddingType   Encoding `json:"embedding_type,omitempty"`
	Dimensions      int      `json:"dimensions,omitempty"`
	OutputDimension int      `json:"output_dimension,omitempty"`
	InputType       string   `json:"input_type,omitempty"`
	Task            string   `json:"task,omitempty"`
	Truncation      *bool    `json:"truncation,omitempty"`
	Truncate        *bool    `json:"truncate,omitempty"`
}

// New checks the options, reporting everything that is wrong with them, and
// gives an embedder. It asks the service nothing.
func New(o Options) (*Embedder, error) {
	if o.Service == "" {
		o.Service = OpenAI
	}
	d, known := dialectOf(o.Service)
	var problems []error
	if !known {
		problems = append(problems, fmt.Errorf("an unknown service %q", o.Service))
	}
	if o.Encoding == "" {
		o.Encoding = d.encoding
	} else if o.Encoding != Base64 && o.Encoding != Float {
		problems = append(problems, fmt.Errorf("an unknown encoding %q", o.Encoding))
	}
	client, err := remote.New(string(o.Service), d.url, o.Endpoint)
	problems = append(problems, remote.Required("Model", o.Model), remote.NotNegative("Dimensions", o.Dimensions),
		remote.NotNegative("MaxInputs", o.MaxInputs), remote.NotNegative("MaxBytes", o.MaxBytes), err)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	inner := &remote.Embedder{
		Client:        client,
		Path:          "embeddings",
		MaxInputs:     remote.Or(o.MaxInputs, d.maxInputs),
		MaxBytes:      remote.Or(o.MaxBytes, d.maxBytes),
		QueryPrefix:   o.QueryPrefix,
		PassagePrefix: o.PassagePrefix,
		Request:       func(texts []string, purpose embed.Purpose) any { return o.request(texts, purpose) },
		Decode:        remote.IndexedVectors,
	}
	inner.Expect(o.Dimensions)
	return &Embedder{inner}, nil
}

func (o *Options) request(texts []string, purpose embed.Purpose) request {
	r := request{Model: o.Model, Input: texts}
	never := false
	switch o.Service {
	case Voyage:
		if o.Encoding == Base64 { // its name for the other is none at all
			r.EncodingFormat = Base64
		}
		r.OutputDimension = o.Dimensions
		r.Truncation = &never
		r.InputType = "document"
		if purpose == embed.Query {
			r.InputType = "query"
		}
	case Jina:
		r.EmbeddingType = o.Encoding
		r.Dimensions = o.Dimensions
		r.Truncate = &never
		if !strings.HasPrefix(o.Model, "jina-embeddings-v2") { // which has no tasks
			r.Task = "retrieval.passage"
			if purpose == embed.Query {
				r.Task = "retrieval.query"
			}
		}
	default:
		r.EncodingFormat = o.Encoding
		r.Dimensions = o.Dimensions
	}
	return r
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
