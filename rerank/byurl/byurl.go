// Package byurl opens the reranker that an address names, as a user writes it
// on a command line or in a file of settings.
package byurl

import (
	"errors"
	"fmt"
	"io"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/remote"
	"github.com/loci-memory/loci/rerank"
	"github.com/loci-memory/loci/rerank/cohere"
	"github.com/loci-memory/loci/rerank/jina"
	"github.com/loci-memory/loci/rerank/tei"
	"github.com/loci-memory/loci/rerank/voyage"
)

// Options are what an address does not say.
type Options struct {
	Endpoint endpoint.Options // its URL is not used
	Model    string           // for an address without model=
}

// A Reranker is what Open gives. Close ends idle connections.
type Reranker interface {
	rerank.Reranker
	io.Closer
}

// Open makes the reranker that an address names, with a line that says which
// it is and holds no secret. It asks the service nothing. The address is
//
//	[SERVICE+]http[s]://HOST[:PORT][/PATH][?PARAMETER=VALUE&...]
//
// with one of the services jina, cohere, voyage and tei. An address that names
// none has the interface of Jina, the most common one, unless the host is that
// of Cohere or Voyage. For Jina and Voyage no path means /v1. The parameters are
//
//	model          the model's name (not for tei, whose server has one)
//	max_documents  documents in a request
func Open(address string, o Options) (r Reranker, description string, err error) {
	r, description, err = open(address, o)
	if err != nil {
		return nil, "", fmt.Errorf("reranker: %w", err)
	}
	return r, description, nil
}

func open(address string, o Options) (Reranker, string, error) {
	a, err := remote.ParseAddress(address)
	if err != nil {
		return nil, "", err
	}
	service := a.Service
	if service == "" {
		service = guess(a)
	}
	known := []string{"max_documents", "model"}
	switch service {
	case "jina", "voyage":
		a.Default("/v1")
	case "cohere":
	case "tei":
		known = known[:1]
	default:
		return nil, "", fmt.Errorf("an unknown service %q, not jina, cohere, voyage or tei", service)
	}
	model := a.Text("model", o.Model)
	documents, errDocuments := a.Number("max_documents", 0)
	if err := errors.Join(a.Known(known...), errDocuments); err != nil {
		return nil, "", err
	}
	o.Endpoint.URL = a.URL()

	var r Reranker
	switch service {
	case "cohere":
		r, err = cohere.New(cohere.Options{Endpoint: o.Endpoint, Model: model, MaxDocuments: documents})
	case "voyage":
		r, err = voyage.New(voyage.Options{Endpoint: o.Endpoint, Model: model, MaxDocuments: documents})
	case "tei":
		model = ""
		r, err = tei.New(tei.Options{Endpoint: o.Endpoint, MaxDocuments: documents})
	default:
		r, err = jina.New(jina.Options{Endpoint: o.Endpoint, Model: model, MaxDocuments: documents})
	}
	if err != nil {
		return nil, "", err
	}
	description := service + " at " + a.Shown()
	if model != "" {
		description += ", model " + model
	}
	return r, description, nil
}

// guess names the service of an address that does not.
func guess(a *remote.Address) string {
	switch a.Host {
	case "api.cohere.com":
		return "cohere"
	case "api.voyageai.com":
		return "voyage"
	}
	return "jina"
}
