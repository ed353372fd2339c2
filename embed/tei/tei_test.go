package tei_test

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
	"github.com/loci-memory/loci/embed/tei"
	"github.com/loci-memory/loci/internal/testkit/remotesuite"
)

func TestService(t *testing.T) {
	remotesuite.Embedder{
		Path: "embed",
		Open: func(o endpoint.Options, dimensions int) (remotesuite.Closer, error) {
			return tei.New(tei.Options{Endpoint: o, Dimensions: dimensions, MaxInputs: 4})
		},
		Texts: func(body []byte, purpose embed.Purpose) ([]string, error) {
			var got struct {
				Inputs   []string
				Truncate *bool
			}
			if err := json.Unmarshal(body, &got); err != nil {
				return nil, err
			}
			if got.Truncate == nil || *got.Truncate {
				return nil, errors.New("not what the service wants")
			}
			return got.Inputs, nil
		},
		Answer: func(rows []string) string {
			return "[" + strings.Join(rows, ",") + "]"
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
		fmt.Fprint(w, "[[1, 2]]")
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		options tei.Options
		purpose embed.Purpose
		want    string
	}{
		"plain": {
			tei.Options{}, embed.Query,
			`{"inputs": ["a"], "normalize": true, "truncate": false}`,
		},
		"prompts": {
			tei.Options{Dimensions: 2, QueryPrompt: "q", PassagePrompt: "p"}, embed.Query,
			`{"inputs": ["a"], "normalize": true, "truncate": false, "prompt_name": "q", "dimensions": 2}`,
		},
		"prefixes": {
			tei.Options{QueryPrefix: "query: ", PassagePrefix: "passage: ", PassagePrompt: "p"}, embed.Passage,
			`{"inputs": ["passage: a"], "normalize": true, "truncate": false, "prompt_name": "p"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Endpoint.URL = server.URL
			e, err := tei.New(c.options)
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
	_, err := tei.New(tei.Options{Endpoint: endpoint.Options{MaxResponse: -1}, Dimensions: -1, MaxInputs: -1, MaxBytes: -1})
	for _, says := range []string{"the URL is missing", "Dimensions is negative", "MaxInputs is negative", "MaxBytes is negative", "MaxResponse is negative"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func ExampleNew() {
	// A service on this machine stands in for the real one.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[[1, 0], [0, 1]]`)
	}))
	defer service.Close()

	e, err := tei.New(tei.Options{Endpoint: endpoint.Options{URL: service.URL}})
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
