package cohere_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/cohere"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/testkit/remotesuite"
)

func TestService(t *testing.T) {
	remotesuite.Embedder{
		Path: "v2/embed",
		Open: func(o endpoint.Options, dimensions int) (remotesuite.Closer, error) {
			return cohere.New(cohere.Options{Endpoint: o, Model: "m", Dimensions: dimensions, MaxInputs: 4})
		},
		Texts: func(body []byte, purpose embed.Purpose) ([]string, error) {
			var got struct {
				Texts     []string
				InputType string `json:"input_type"`
				Truncate  string
			}
			if err := json.Unmarshal(body, &got); err != nil {
				return nil, err
			}
			if input := map[embed.Purpose]string{embed.Query: "search_query", embed.Passage: "search_document"}[purpose]; got.Truncate != "NONE" || got.InputType != input {
				return nil, errors.New("not what the service wants")
			}
			return got.Texts, nil
		},
		Answer: func(rows []string) string {
			return `{"id": "1", "embeddings": {"float": [` + strings.Join(rows, ",") + `]}, "texts": []}`
		},
	}.Run(t)
}

// TestRequests looks at whole requests.
func TestRequests(t *testing.T) {
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body = nil
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `{"embeddings": {"float": [[1, 2]]}}`)
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		options cohere.Options
		purpose embed.Purpose
		want    string
	}{
		"passage": {
			cohere.Options{Model: "m"}, embed.Passage,
			`{"model": "m", "texts": ["a"], "input_type": "search_document", "embedding_types": ["float"], "truncate": "NONE"}`,
		},
		"query": {
			cohere.Options{Model: "m", Dimensions: 2}, embed.Query,
			`{"model": "m", "texts": ["a"], "input_type": "search_query", "embedding_types": ["float"], "truncate": "NONE", "output_dimension": 2}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Endpoint.URL = server.URL
			e, err := cohere.New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Embed(t.Context(), []string{"a"}, c.purpose); err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(body, want) {
				t.Errorf("%v, not %v", body, want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	_, err := cohere.New(cohere.Options{Endpoint: endpoint.Options{MaxResponse: -1}, Dimensions: -1, MaxInputs: -1, MaxBytes: -1})
	for _, says := range []string{"Model is missing", "Dimensions is negative", "MaxInputs is negative", "MaxBytes is negative", "MaxResponse is negative"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func ExampleNew() {
	// A service on this machine stands in for the real one.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"embeddings": {"float": [[1, 0], [0, 1]]}}`)
	}))
	defer service.Close()

	e, err := cohere.New(cohere.Options{Endpoint: endpoint.Options{URL: service.URL}, Model: "embed-v4.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	vectors, err := e.Embed(context.Background(), []string{"the first text", "the second"}, embed.Passage)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(vectors, e.Dimension())
	fmt.Println(e.Close())
	// Output:
	// [[1 0] [0 1]] 2
	// <nil>
}
