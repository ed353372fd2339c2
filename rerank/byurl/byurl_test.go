package byurl_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/rerank/byurl"
)

func TestDescriptions(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.jina.ai?model=m":            "jina at https://api.jina.ai/v1, model m",
		"http://localhost:8000":                  "jina at http://localhost:8000/v1, model given",
		"https://api.cohere.com?model=m":         "cohere at https://api.cohere.com, model m",
		"https://api.voyageai.com/v1?model=m":    "voyage at https://api.voyageai.com/v1, model m",
		"tei+http://u:pw@x:8080?max_documents=8": "tei at http://x:8080",
		"cohere+http://x/sub?model=m":            "cohere at http://x/sub, model m",
	} {
		r, got, err := byurl.Open(address, byurl.Options{Model: "given"})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; not %q", address, got, err, want)
			continue
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestErrors(t *testing.T) {
	for address, says := range map[string]string{
		"x":                               `unknown scheme ""`,
		"openai+http://x?model=m":         `unknown service "openai"`,
		"http://x?model=m&dimensions=3":   `unknown parameter "dimensions", not one of max_documents, model`,
		"http://x?model=m&max_documents=": "max_documents is not a whole number",
		"http://u:hidden@x":               "Model is missing",
		"tei+http://x?model=m":            `unknown parameter "model"`,
	} {
		r, description, err := byurl.Open(address, byurl.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "reranker: ") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v does not say %q", address, err, says)
		}
		if r != nil || description != "" {
			t.Errorf("%s: something came with the error", address)
		}
	}
}

// TestEachService sends one request to each service by its address.
func TestEachService(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String() + " " + r.Header.Get("Authorization")
		const list = `[{"index": 0, "score": 0.5, "relevance_score": 0.5}]`
		if r.URL.Path == "/rerank" {
			fmt.Fprint(w, list)
			return
		}
		fmt.Fprintf(w, `{"results": %s, "data": %s}`, list, list)
	}))
	defer server.Close()
	for service, path := range map[string]string{"jina": "/v1/rerank", "voyage": "/v1/rerank", "cohere": "/v2/rerank", "tei": "/rerank"} {
		address := service + "+" + server.URL
		if service != "tei" {
			address += "?model=m"
		}
		r, _, err := byurl.Open(address, byurl.Options{Endpoint: endpoint.Options{APIKey: endpoint.NewKey("k"), Tries: 1}})
		if err != nil {
			t.Fatal(err)
		}
		scores, err := r.Rerank(t.Context(), "q", []string{"a"})
		if err != nil || len(scores) != 1 || scores[0] != 0.5 || asked != path+" Bearer k" {
			t.Errorf("%s: %v, %v, asked for %s", service, scores, err, asked)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func ExampleOpen() {
	r, description, err := byurl.Open("tei+http://localhost:8080", byurl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(description)
	fmt.Println(r.Close())
	// Output:
	// tei at http://localhost:8080
	// <nil>
}
