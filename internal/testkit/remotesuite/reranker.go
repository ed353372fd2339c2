package remotesuite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/rerank"
)

// A RerankCloser is a reranker that can be closed, as the remote ones are.
type RerankCloser interface {
	rerank.Reranker
	io.Closer
}

// A Reranker is the shape of a client and of its service.
type Reranker struct {
	Path string // of the operation
	// Open makes a client that sends at most 4 documents a request.
	Open func(o endpoint.Options) (RerankCloser, error)
	// Whole says that more documents are refused rather than split.
	Whole bool
	// Documents reads a request and complains of anything in it that would leave
	// documents out.
	Documents func(body []byte) (query string, documents []string, err error)
	// Answer writes results, each with the name of its score still to be put in
	// for SCORE: {"index": 0, "SCORE": 0.5}.
	Answer func(results []string) string
}

func (r Reranker) good(complain func(string)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			complain(err.Error())
		}
		query, documents, err := r.Documents(body)
		if err != nil {
			complain(err.Error() + " in " + string(body))
		}
		if len(documents) > 4 || query != "the query" {
			complain(fmt.Sprint(len(documents), " documents for ", query))
		}
		results := make([]string, len(documents))
		for i, d := range documents {
			results[i] = fmt.Sprintf(`{"index": %d, "SCORE": %d.25}`, i, len(d))
		}
		slices.Reverse(results) // the best first, in this case
		fmt.Fprint(w, r.Answer(results))
	}
}

func (r Reranker) open(t *testing.T, o endpoint.Options) RerankCloser {
	t.Helper()
	c, err := r.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Run runs the suite.
func (r Reranker) Run(t *testing.T) {
	t.Run("good day", func(t *testing.T) {
		leaks(t)
		var s *service
		s = serve(t, r.Path, func(w http.ResponseWriter, req *http.Request) { r.good(s.complain)(w, req) })
		c := r.open(t, s.options())
		documents := []string{"a", "bb", "ccc", "dddd", "eeeee", "ffffff"}
		got, err := c.Rerank(t.Context(), "the query", documents)
		if r.Whole {
			check(t, err, fault{is: embed.ErrTooLarge, says: "6 documents at once"})
			documents = documents[:4]
			got, err = c.Rerank(t.Context(), "the query", documents)
		}
		if want := []float64{1.25, 2.25, 3.25, 4.25, 5.25, 6.25}[:len(documents)]; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %v; not %v", got, err, want)
		}
		if got, err := c.Rerank(t.Context(), "the query", nil); err != nil || len(got) != 0 {
			t.Errorf("of nothing: %v, %v", got, err)
		}
	})
	t.Run("faults", func(t *testing.T) {
		tryFaults(t, r.Path, r.good(func(string) {}), func(t *testing.T, ctx context.Context, o endpoint.Options) error {
			got, err := r.open(t, o).Rerank(ctx, "the query", []string{"one", "three"})
			if err == nil && !reflect.DeepEqual(got, []float64{3.25, 5.25}) {
				t.Errorf("got %v", got)
			}
			return err
		})
	})
	for _, c := range []struct {
		name, says string
		results    []string
	}{
		{"fewer", "1 scores for 2 documents", []string{`{"index": 0, "SCORE": 1}`}},
		{"more", "3 scores for 2 documents", []string{`{"index": 0, "SCORE": 1}`, `{"index": 1, "SCORE": 1}`, `{"index": 1, "SCORE": 1}`}},
		{"twice", "two results with the index 1", []string{`{"index": 1, "SCORE": 1}`, `{"index": 1, "SCORE": 1}`}},
		{"out of range", "a result with the index 2, of 2", []string{`{"index": 2, "SCORE": 1}`, `{"index": 1, "SCORE": 1}`}},
		{"negative", "a result with the index -1, of 2", []string{`{"index": -1, "SCORE": 1}`, `{"index": 1, "SCORE": 1}`}},
		{"no index", "a result without an index", []string{`{"SCORE": 1}`, `{"index": 1, "SCORE": 1}`}},
		{"no score", "result 0 has no score", []string{`{"index": 0}`, `{"index": 1, "SCORE": 1}`}},
		{"null", "result 0 has no score", []string{`{"index": 0, "SCORE": null}`, `{"index": 1, "SCORE": 1}`}},
		{"a word", "another type", []string{`{"index": 0, "SCORE": "high"}`, `{"index": 1, "SCORE": 1}`}},
		{"beyond float64", "another type", []string{`{"index": 0, "SCORE": 1e999}`, `{"index": 1, "SCORE": 1}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks(t)
			s := serve(t, r.Path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, r.Answer(c.results)) })
			_, err := r.open(t, s.options()).Rerank(t.Context(), "the query", []string{"a", "b"})
			check(t, err, fault{says: c.says})
		})
	}
	t.Run("blank", func(t *testing.T) {
		leaks(t)
		s := serve(t, r.Path, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
		c := r.open(t, s.options())
		for index, call := range map[int]func() ([]float64, error){
			-1: func() ([]float64, error) { return c.Rerank(t.Context(), " ", []string{"a"}) },
			1:  func() ([]float64, error) { return c.Rerank(t.Context(), "q", []string{"a", ""}) },
		} {
			_, err := call()
			check(t, err, fault{is: embed.ErrRefused, says: "is blank"})
			var at *endpoint.TextError
			if !errors.As(err, &at) || at.Index != index {
				t.Errorf("%#v", err)
			}
		}
	})
	t.Run("dump", func(t *testing.T) {
		c := r.open(t, endpoint.Options{URL: "http://localhost:1", APIKey: endpoint.NewKey(secret)})
		if s := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(s, secret) {
			t.Errorf("%s shows the key", s)
		}
	})
}
