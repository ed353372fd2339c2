package tei_test

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
	"github.com/loci-memory/loci/rerank/tei"
)

func TestService(t *testing.T) {
	remotesuite.Reranker{
		Path: "rerank",
		Open: func(o endpoint.Options) (remotesuite.RerankCloser, error) {
			return tei.New(tei.Options{Endpoint: o, MaxDocuments: 4})
		},
		Documents: func(body []byte) (string, []string, error) {
			var got struct {
				Query    string
				Texts    []string
				Truncate *bool
			}
			if err := json.Unmarshal(body, &got); err != nil {
				return "", nil, err
			}
			if got.Truncate == nil || *got.Truncate {
				return "", nil, errors.New("not what the service wants")
			}
			return got.Query, got.Texts, nil
		},
		Answer: func(results []string) string {
			return "[" + strings.ReplaceAll(strings.Join(results, ","), "SCORE", "score") + "]"
		},
	}.Run(t)
}

func TestOptions(t *testing.T) {
	_, err := tei.New(tei.Options{Endpoint: endpoint.Options{Backoff: -1}, MaxDocuments: -1, MaxBytes: -1})
	for _, says := range []string{"the URL is missing", "MaxDocuments is negative", "MaxBytes is negative", "Backoff is negative"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func ExampleNew() {
	// A service on this machine stands in for the real one.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1}]`)
	}))
	defer service.Close()

	r, err := tei.New(tei.Options{Endpoint: endpoint.Options{URL: service.URL}})
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
