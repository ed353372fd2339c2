package cohere_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/testkit/remotesuite"
	"github.com/loci-memory/loci/rerank/cohere"
)

func TestService(t *testing.T) {
	remotesuite.Reranker{
		Path: "v2/rerank",
		Open: func(o endpoint.Options) (remotesuite.RerankCloser, error) {
			return cohere.New(cohere.Options{Endpoint: o, Model: "m", MaxDocuments: 4})
		},
		Documents: func(body []byte) (string, []string, error) {
			var got struct {
				Query     string
				Model     string
				Documents []string
				TopN      int `json:"top_n"`
			}
			if err := json.Unmarshal(body, &got); err != nil {
				return "", nil, err
			}
			if got.Model != "m" || got.TopN != len(got.Documents) {
				return "", nil, errors.New("not what the service wants")
			}
			return got.Query, got.Documents, nil
		},
		Answer: func(results []string) string {
			return `{"results": [` + strings.ReplaceAll(strings.Join(results, ","), "SCORE", "relevance_score") + `]}`
		},
	}.Run(t)
}

func TestOptions(t *testing.T) {
	_, err := cohere.New(cohere.Options{Endpoint: endpoint.Options{Backoff: -1}, MaxDocuments: -1, MaxBytes: -1})
	for _, says := range []string{"Model is missing", "MaxDocuments is negative", "MaxBytes is negative", "Backoff is negative"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func ExampleNew() {
	// A service on this machine stands in for the real one.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}`)
	}))
	defer service.Close()

	r, err := cohere.New(cohere.Options{Endpoint: endpoint.Options{URL: service.URL}, Model: "rerank-v3.5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	scores, err := r.Rerank(context.Background(), "who waters the plants?", []string{"Lunch is at noon.", "Mei waters them."})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scores)
	fmt.Println(r.Close())
	// Output:
	// [0.1 0.9]
	// <nil>
}
