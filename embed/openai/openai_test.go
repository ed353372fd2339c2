package openai_test

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
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/openai"
	"github.com/loci-memory/loci/internal/testkit/remotesuite"
)

// reversed writes the answer with the last vector first, as a service may.
func reversed(rows []string) string {
	var data []string
	for i := len(rows) - 1; i >= 0; i-- {
		data = append(data, fmt.Sprintf(`{"object": "embedding", "index": %d, "embedding": %s}`, i, rows[i]))
	}
	return `{"object": "list", "data": [` + strings.Join(data, ",") + `], "model": "m", "usage": {"total_tokens": 3}}`
}

func TestService(t *testing.T) {
	type request struct {
		Model      string
		Input      []string
		InputType  *string `json:"input_type"`
		Task       *string
		Truncate   *bool
		Truncation *bool
	}
	text := func(s string) *string { return &s }
	for service, purposes := range map[openai.Service]map[embed.Purpose]request{
		openai.OpenAI: {embed.Query: {}, embed.Passage: {}},
		openai.Voyage: {
			embed.Query:   {InputType: text("query"), Truncation: new(bool)},
			embed.Passage: {InputType: text("document"), Truncation: new(bool)},
		},
		openai.Jina: {
			embed.Query:   {Task: text("retrieval.query"), Truncate: new(bool)},
			embed.Passage: {Task: text("retrieval.passage"), Truncate: new(bool)},
		},
	} {
		t.Run(string(service), remotesuite.Embedder{
			Path: "embeddings",
			Open: func(o endpoint.Options, dimensions int) (remotesuite.Closer, error) {
				return openai.New(openai.Options{Endpoint: o, Service: service, Model: "m", Dimensions: dimensions, MaxInputs: 4})
			},
			Texts: func(body []byte, purpose embed.Purpose) ([]string, error) {
				var got request
				if err := json.Unmarshal(body, &got); err != nil {
					return nil, err
				}
				want := purposes[purpose]
				want.Model, want.Input = "m", got.Input
				if !reflect.DeepEqual(got, want) {
					return nil, errors.New("not what the service wants")
				}
				return got.Input, nil
			},
			Answer: reversed,
		}.Run)
	}
}

func TestIndexes(t *testing.T) {
	for name, c := range map[string]struct{ data, says string }{
		"twice":        {`{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}`, "two results with the index 0"},
		"out of range": {`{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}`, "a result with the index 2, of 2"},
		"negative":     {`{"index": -1, "embedding": [1]}, {"index": 1, "embedding": [1]}`, "a result with the index -1, of 2"},
		"missing":      {`{"index": 0, "embedding": [1]}, {"embedding": [1]}`, "a result without an index"},
		"null":         {`{"index": null, "embedding": [1]}, {"index": 1, "embedding": [1]}`, "a result without an index"},
		"half":         {`{"index": 0.5, "embedding": [1]}, {"index": 1, "embedding": [1]}`, "another type"},
		"no vector":    {`{"index": 0, "embedding": [1]}, {"index": 1}`, "vector 1: it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"data": [%s]}`, c.data)
			}))
			defer server.Close()
			e, err := openai.New(openai.Options{Endpoint: endpoint.Options{URL: server.URL}, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Embed(t.Context(), []string{"a", "b"}, embed.Passage)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}

// TestRequests looks at whole requests of each dialect.
func TestRequests(t *testing.T) {
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body = nil
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, reversed([]string{"[1, 2]"}))
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		options openai.Options
		want    string
	}{
		"openai": {openai.Options{Model: "m"}, `{"model": "m", "input": ["a"], "encoding_format": "base64"}`},
		"compatible": {
			openai.Options{Model: "e5", Encoding: openai.Float, Dimensions: 2, QueryPrefix: "query: ", PassagePrefix: "passage: "},
			`{"model": "e5", "input": ["query: a"], "encoding_format": "float", "dimensions": 2}`,
		},
		"voyage": {
			openai.Options{Model: "voyage-3", Service: openai.Voyage, Dimensions: 2},
			`{"model": "voyage-3", "input": ["a"], "encoding_format": "base64", "output_dimension": 2, "input_type": "query", "truncation": false}`,
		},
		"voyage in numbers": {
			openai.Options{Model: "voyage-3", Service: openai.Voyage, Encoding: openai.Float},
			`{"model": "voyage-3", "input": ["a"], "input_type": "query", "truncation": false}`,
		},
		"jina": {
			openai.Options{Model: "jina-embeddings-v3", Service: openai.Jina, Dimensions: 2},
			`{"model": "jina-embeddings-v3", "input": ["a"], "embedding_type": "float", "dimensions": 2, "task": "retrieval.query", "truncate": false}`,
		},
		"jina of old": {
			openai.Options{Model: "jina-embeddings-v2-base-en", Service: openai.Jina},
			`{"model": "jina-embeddings-v2-base-en", "input": ["a"], "embedding_type": "float", "truncate": false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Endpoint.URL = server.URL
			e, err := openai.New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Embed(t.Context(), []string{"a"}, embed.Query); err != nil {
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
	_, err := openai.New(openai.Options{
		Endpoint: endpoint.Options{URL: "ftp://user:hidden@x", APIKey: endpoint.NewKey("two words"), Tries: -1},
		Service:  "other", Encoding: "int8", Dimensions: -1, MaxInputs: -1, MaxBytes: -1,
	})
	for _, says := range []string{
		`unknown service "other"`, `unknown encoding "int8"`, "Model is missing", "Dimensions is negative", "MaxInputs is negative",
		"MaxBytes is negative", "Tries is negative", `scheme is "ftp"`, "API key holds a space",
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "two words")) {
		t.Errorf("%v shows a secret", err)
	}
}

func ExampleNew() {
	// A service on this machine stands in for https://api.openai.com/v1.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}`)
	}))
	defer service.Close()

	key, err := endpoint.KeyFromEnv("OPENAI_API_KEY", func(string) (string, bool) { return "sk-example", true }) // os.LookupEnv
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := openai.New(openai.Options{
		Endpoint: endpoint.Options{URL: service.URL, APIKey: key},
		Model:    "text-embedding-3-small",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	vectors, err := e.Embed(context.Background(), []string{"the first text", "the second"}, embed.Passage)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(vectors, e.Dimension(), key)
	fmt.Println(e.Close())
	// Output:
	// [[1 0] [0 1]] 2 [redacted]
	// <nil>
}
