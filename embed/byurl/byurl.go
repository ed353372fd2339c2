// Package byurl opens the embedder that an address names, as a user writes it
// on a command line or in a file of settings.
package byurl

import (
	"errors"
	"fmt"
	"io"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/cohere"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/ollama"
	"github.com/loci-memory/loci/embed/openai"
	"github.com/loci-memory/loci/embed/tei"
	"github.com/loci-memory/loci/internal/remote"
)

// Options are what an address does not say.
type Options struct {
	Endpoint   endpoint.Options // its URL is not used
	Model      string           // for an address without model=
	Dimensions int              // for an address without dimensions=
}

// An Embedder is what Open gives. Close ends idle connections.
type Embedder interface {
	embed.Embedder
	io.Closer
	// Dimension is the number of components of each vector, 0 before it is
	// known.
	Dimension() int
}

// Open makes the embedder that an address names, with a line that says which
// it is and holds no secret. It asks the service nothing. The address is
//
//	[SERVICE+]http[s]://HOST[:PORT][/PATH][?PARAMETER=VALUE&...]
//
// with one of the services openai, voyage, jina, ollama, tei and cohere. An
// address that names none is OpenAI-compatible, unless the host is that of
// Voyage, Jina or Cohere, or the port is Ollama's 11434 and there is no path.
// For the first three no path means /v1. The parameters are
//
//	model           the model's name (not for tei, whose server has one)
//	dimensions      of the vectors; asked for and insisted on
//	max_inputs      texts in a request
//	query_prefix    what stands before each query; not for cohere
//	passage_prefix  what stands before each passage; not for cohere
//	query_prompt    a prompt of the model, for queries; tei only
//	passage_prompt  the same for passages
func Open(address string, o Options) (e Embedder, description string, err error) {
	e, description, err = open(address, o)
	if err != nil {
		return nil, "", fmt.Errorf("embedder: %w", err)
	}
	return e, description, nil
}

func open(address string, o Options) (Embedder, string, error) {
	a, err := remote.ParseAddress(address)
	if err != nil {
		return nil, "", err
	}
	service := a.Service
	if service == "" {
		service = guess(a)
	}
	known := []string{"model", "dimensions", "max_inputs", "query_prefix", "passage_prefix"}
	switch service {
	case "openai", "voyage", "jina":
		a.Default("/v1")
	case "ollama":
	case "tei":
		known = append(known[1:], "query_prompt", "passage_prompt")
	case "cohere":
		known = known[:3]
	default:
		return nil, "", fmt.Errorf("an unknown service %q, not openai, voyage, jina, ollama, tei or cohere", service)
	}
	model := a.Text("model", o.Model)
	dimensions, errDimensions := a.Number("dimensions", o.Dimensions)
	inputs, errInputs := a.Number("max_inputs", 0)
	if err := errors.Join(a.Known(known...), errDimensions, errInputs); err != nil {
		return nil, "", err
	}
	query, passage := a.Text("query_prefix", ""), a.Text("passage_prefix", "")
	o.Endpoint.URL = a.URL()

	var e Embedder
	switch service {
	case "ollama":
		e, err = ollama.New(ollama.Options{
			Endpoint: o.Endpoint, Model: model, Dimensions: dimensions, MaxInputs: inputs, QueryPrefix: query, PassagePrefix: passage,
		})
	case "tei":
		model = ""
		e, err = tei.New(tei.Options{
			Endpoint: o.Endpoint, Dimensions: dimensions, MaxInputs: inputs, QueryPrefix: query, PassagePrefix: passage,
			QueryPrompt: a.Text("query_prompt", ""), PassagePrompt: a.Text("passage_prompt", ""),
		})
	case "cohere":
		e, err = cohere.New(cohere.Options{Endpoint: o.Endpoint, Model: model, Dimensions: dimensions, MaxInputs: inputs})
	default:
		e, err = openai.New(openai.Options{
			Endpoint: o.Endpoint, Service: openai.Service(service), Model: model, Dimensions: dimensions, MaxInputs: inputs,
			QueryPrefix: query, PassagePrefix: passage,
		})
	}
	if err != nil {
		return nil, "", err
	}
	description := service + " at " + a.Shown()
	if model != "" {
		description += ", model " + model
	}
	return e, description, nil
}

// guess names the service of an address that does not.
func guess(a *remote.Address) string {
	switch {
	case a.Host == "api.voyageai.com":
		return "voyage"
	case a.Host == "api.jina.ai":
		return "jina"
	case a.Host == "api.cohere.com":
		return "cohere"
	case a.Port == "11434" && a.Bare():
		return "ollama"
	}
	return "openai"
}
