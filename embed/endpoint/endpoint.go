// Package endpoint says how the service of a remote model is reached: where it
// is, with which key, how patiently. Clients of embedders and of rerankers take
// the same options and give the same errors.
package endpoint

import (
	"net/http"
	"time"
)

// Options say how a service is reached. The zero value asks the client's usual
// address without a key.
type Options struct {
	// URL is the service's base address, http or https; the client adds the path
	// of the operation. "": the client's usual address. A user and password in it
	// become basic authentication when there is no APIKey. It is shown in errors
	// without them and without its query.
	URL string
	// APIKey goes into each request as a bearer token. The zero key sends none.
	APIKey Key
	// Client sends the requests; nil makes one that belongs to the embedder or
	// reranker and whose idle connections Close ends. Redirects are never
	// followed, whatever the client says of them: neither the key nor the texts
	// go to an address that nobody configured.
	Client *http.Client
	// Timeout bounds one try, from the connection to the last byte of the
	// answer. 0: 60 s.
	Timeout time.Duration
	// Tries is how often a request is sent at most. 0: 4; 1: never again.
	Tries int
	// Backoff is about how long the second try waits; each further one waits
	// twice as long, and between half and all of it by chance. 0: 500 ms.
	Backoff time.Duration
	// MaxWait is the longest wait between two tries. A service that asks for
	// more of it is not asked again. 0: 30 s.
	MaxWait time.Duration
	// MaxResponse is how many bytes of an answer are read, uncompressed, before
	// it is given up. 0: 128 MiB.
	MaxResponse int64
}
