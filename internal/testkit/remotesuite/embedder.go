package remotesuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// A Closer is an embedder that can be closed, as the remote ones are.
type Closer interface {
	embed.Embedder
	io.Closer
	Dimension() int
}

// An Embedder is the shape of a client and of its service.
type Embedder struct {
	Path string // of the operation
	// Open makes a client that sends at most 4 texts a request and asks for
	// dimensions, if not 0.
	Open func(o endpoint.Options, dimensions int) (Closer, error)
	// Texts reads a request and complains of anything in it that would let the
	// service cut texts, or that does not suit the purpose.
	Texts func(body []byte, purpose embed.Purpose) ([]string, error)
	// Answer writes rows, each the JSON of a vector, in the order of the texts.
	Answer func(rows []string) string
}

// vectorOf is what the services of the suite make of a text.
func vectorOf(text string) []float32 { return []float32{float32(len(text)), 0.5, -1e-3} }

func rowOf(text string) string { return fmt.Sprintf("[%d, 5e-1,-0.001]", len(text)) }

// good answers as the service does on a good day.
func (e Embedder) good(purpose embed.Purpose, complain func(string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			complain(err.Error())
		}
		texts, err := e.Texts(body, purpose)
		if err != nil {
			complain(err.Error() + " in " + string(body))
		}
		if len(texts) > 4 {
			complain(fmt.Sprint(len(texts), " texts"))
		}
		rows := make([]string, len(texts))
		for i, t := range texts {
			rows[i] = rowOf(t)
		}
		fmt.Fprint(w, e.Answer(rows))
	}
}

func (e Embedder) open(t *testing.T, o endpoint.Options, dimensions int) Closer {
	t.Helper()
	c, err := e.Open(o, dimensions)
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
func (e Embedder) Run(t *testing.T) {
	for _, purpose := range []embed.Purpose{embed.Query, embed.Passage} {
		t.Run("good day "+string(purpose), func(t *testing.T) {
			leaks(t)
			var s *service
			s = serve(t, e.Path, func(w http.ResponseWriter, r *http.Request) { e.good(purpose, s.complain)(w, r) })
			c := e.open(t, s.options(), 0)
			var texts []string
			for i := range 11 {
				texts = append(texts, "<é>\u2028\""+strings.Repeat("x", i))
			}
			got, err := c.Embed(t.Context(), texts, purpose)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				if !reflect.DeepEqual(got[i], vectorOf(text)) {
					t.Errorf("text %d: %v, not %v", i, got[i], vectorOf(text))
				}
			}
			if len(got) != len(texts) || c.Dimension() != 3 {
				t.Errorf("%d vectors of dimension %d", len(got), c.Dimension())
			}
			if got, err := c.Embed(t.Context(), nil, purpose); err != nil || len(got) != 0 {
				t.Errorf("of nothing: %v, %v", got, err)
			}
		})
	}
	t.Run("many at once", func(t *testing.T) {
		leaks(t)
		var s *service
		s = serve(t, e.Path, func(w http.ResponseWriter, r *http.Request) { e.good(embed.Passage, s.complain)(w, r) })
		c := e.open(t, s.options(), 0)
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				text := strings.Repeat("y", i+1)
				got, err := c.Embed(t.Context(), []string{text}, embed.Passage)
				if err != nil || !reflect.DeepEqual(got, [][]float32{vectorOf(text)}) {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		wait.Wait()
	})
	t.Run("faults", func(t *testing.T) {
		tryFaults(t, e.Path, e.good(embed.Query, func(string) {}), func(t *testing.T, ctx context.Context, o endpoint.Options) error {
			got, err := e.open(t, o, 0).Embed(ctx, []string{"one text"}, embed.Query)
			if err == nil && !reflect.DeepEqual(got, [][]float32{vectorOf("one text")}) {
				t.Errorf("got %v", got)
			}
			return err
		})
	})
	t.Run("answers", e.answers)
	t.Run("blank", func(t *testing.T) {
		leaks(t)
		s := serve(t, e.Path, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
		_, err := e.open(t, s.options(), 0).Embed(t.Context(), []string{"a", "b", "c", "d", "e", " \t\n\u3000"}, embed.Passage)
		check(t, err, fault{is: embed.ErrRefused, says: "text 5 is blank"})
		var at *endpoint.TextError
		if !errors.As(err, &at) || at.Index != 5 {
			t.Errorf("%#v", err)
		}
		if _, err := e.open(t, s.options(), 0).Embed(t.Context(), []string{"a"}, "other"); err == nil {
			t.Error("an unknown purpose passes")
		}
	})
	t.Run("echo", func(t *testing.T) {
		leaks(t)
		s := serve(t, e.Path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			message, err := json.Marshal("cannot read " + string(body) + " with " + r.Header.Get("Authorization"))
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `{"error": %s}`, message)
		})
		_, err := e.open(t, s.options(), 0).Embed(t.Context(), []string{"my diary of last summer", "Anna"}, embed.Passage)
		check(t, err, fault{is: embed.ErrRefused, says: "cannot read"})
		for _, part := range []string{"diary", "summer", "Anna"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%v repeats %q", err, part)
			}
		}
	})
	t.Run("dump", func(t *testing.T) {
		c := e.open(t, endpoint.Options{URL: "http://user:pass-word@localhost:1/base?token=hidden", APIKey: endpoint.NewKey(secret), Tries: 1}, 0)
		_, err := c.Embed(t.Context(), []string{"a"}, embed.Query)
		for _, s := range []string{fmt.Sprintf("%v %+v %#v", c, c, c), fmt.Sprint(err)} {
			if strings.Contains(s, secret) || strings.Contains(s, "pass-word") {
				t.Errorf("%s shows a secret", s)
			}
		}
		if strings.Contains(fmt.Sprint(err), "hidden") {
			t.Errorf("%v shows the query", err)
		}
	})
}

// answers are well-formed and wrong.
func (e Embedder) answers(t *testing.T) {
	const good = "[1, 2, 3]"
	for _, c := range []struct {
		name       string
		rows       []string
		dimensions int
		is         error
		says       string
	}{
		{"fewer", []string{good}, 0, nil, "1 vectors for 2 texts"},
		{"more", []string{good, good, good}, 0, nil, "3 vectors for 2 texts"},
		{"null for a number", []string{good, "[1, null, 3]"}, 0, nil, "vector 1: element 1 is not a number"},
		{"null for a vector", []string{good, "null"}, 0, nil, "vector 1: it is neither"},
		{"NaN as text", []string{`["NaN", 1, 2]`, good}, 0, nil, "vector 0: element 0 is not a number"},
		{"beyond float32", []string{good, "[1, 1e39, 3]"}, 0, nil, "vector 1: number 1 is out of range"},
		{"nested", []string{"[[1], 2, 3]", good}, 0, nil, "vector 0: element 0 is not a number"},
		{"an object", []string{`{"a": 1}`, good}, 0, nil, "vector 0: it is neither"},
		{"empty", []string{good, "[ ]"}, 0, nil, "vector 1: it is empty"},
		{"two dimensions", []string{good, "[1, 2]"}, 0, nil, "vector 1 has 2 dimensions, not 3"},
		{"not the dimension asked for", []string{good, good}, 4, nil, "vector 0 has 3 dimensions, not 4"},
		{"zeros", []string{good, "[0, 0.0, -0]"}, 0, embed.ErrRefused, "text 1 has no vector"},
		{"no base64", []string{`"%%%"`, good}, 0, nil, "vector 0: it is not base64"},
		{"half a float", []string{`"AAAA"`, good}, 0, nil, "vector 0: its 3 bytes"},
		{"NaN in base64", []string{`"AADAfwAAgD8AAIA/"`, good}, 0, nil, "vector 0: number 0 is not finite"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks(t)
			s := serve(t, e.Path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, e.Answer(c.rows)) })
			_, err := e.open(t, s.options(), c.dimensions).Embed(t.Context(), []string{"first", "second"}, embed.Passage)
			check(t, err, fault{is: c.is, says: c.says})
			if n := s.requests.Load(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	t.Run("zeros in a later request", func(t *testing.T) {
		leaks(t)
		answers := [][]string{{good, good, good, good}, {good, "[0, 0, 0]"}}
		s := serve(t, e.Path, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, e.Answer(answers[0]))
			answers = answers[1:]
		})
		_, err := e.open(t, s.options(), 0).Embed(t.Context(), []string{"a", "b", "c", "d", "e", "f"}, embed.Query)
		check(t, err, fault{is: embed.ErrRefused, says: "text 5 has no vector"})
		var at *endpoint.TextError
		if !errors.As(err, &at) || at.Index != 5 {
			t.Errorf("%#v", err)
		}
	})
	t.Run("another dimension later", func(t *testing.T) {
		leaks(t)
		rows := []string{"[1, 2, 3]", "[1, 2]"}
		s := serve(t, e.Path, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, e.Answer(rows[:1]))
			rows = rows[1:]
		})
		c := e.open(t, s.options(), 0)
		if _, err := c.Embed(t.Context(), []string{"a"}, embed.Query); err != nil {
			t.Fatal(err)
		}
		_, err := c.Embed(t.Context(), []string{"a"}, embed.Query)
		check(t, err, fault{says: "has 2 dimensions, not 3"})
	})
	t.Run("base64", func(t *testing.T) {
		leaks(t)
		s := serve(t, e.Path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, e.Answer([]string{`"AACAPwAAAMAAAAA/"`})) })
		got, err := e.open(t, s.options(), 3).Embed(t.Context(), []string{"a"}, embed.Query)
		if err != nil || !reflect.DeepEqual(got, [][]float32{{1, -2, 0.5}}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
