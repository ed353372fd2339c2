package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/client"
	"github.com/loci-memory/loci/internal/httpapi"
	"github.com/loci-memory/loci/op"
)

// recorder keeps the last answer as it came over the wire.
type recorder struct{ raw []byte }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if r.raw, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(r.raw))
	return resp, nil
}

// clientMethod finds the client's method of an operation, by the rule that names
// them.
func clientMethod(c *client.Client, name string) reflect.Value {
	camel := func(words string) (out string) {
		for _, w := range strings.Split(words, "_") {
			if w == "ttl" {
				w = "TTL"
			}
			out += strings.ToUpper(w[:1]) + w[1:]
		}
		return out
	}
	on := reflect.ValueOf(c)
	group, rest, found := strings.Cut(name, ".")
	if !found {
		return on.MethodByName(camel(name))
	}
	if on = on.Elem().FieldByName(camel(group)); !on.IsValid() {
		return reflect.Value{}
	}
	return on.MethodByName(camel(rest))
}

// TestClientLosesNothing runs the samples through the types of package client:
// what they are asked with and what they answer must come through whole.
func TestClientLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("what runs in one goroutine needs no race detector")
	}
	wire, typed := &recorder{}, 0
	f := onStore(t, "client", func(t *testing.T, db *loci.DB) func(*testing.T, sample) answer {
		server := httptest.NewServer(httpapi.Handler(httpapi.Config{Caller: op.Local(db)}))
		t.Cleanup(server.Close)
		c := client.New(server.URL, client.WithHTTPClient(&http.Client{Transport: wire}))
		return func(t *testing.T, s sample) answer {
			a, ok := askClient(t, c, wire, s)
			if ok {
				typed++
			}
			return a
		}
	})
	for i, s := range allSamples() {
		t.Run(fmt.Sprintf("%d %s", i, s.op), func(t *testing.T) {
			a := f.call(t, s)
			if a.Failure.Code != s.code {
				t.Fatalf("%s %s: %+v, want the code %q", s.op, s.input, a.Failure, s.code)
			}
		})
	}
	if n := len(allSamples()); typed < n*9/10 {
		t.Errorf("of %d samples only %d could be written in the client's types", n, typed)
	}
}

// askClient asks with the client's types where the input fits them; what does not,
// on purpose, is asked as it stands.
func askClient(t *testing.T, c *client.Client, wire *recorder, s sample) (a answer, typed bool) {
	t.Helper()
	method := clientMethod(c, s.op)
	if !method.IsValid() {
		t.Fatalf("package client has no method for %s: run go generate ./client", s.op)
	}
	if strings.HasPrefix(s.op, "context.") {
		// One name for a list of one is short on a command line; the client has lists.
		s.input = regexp.MustCompile(`"scope":("[^"]*")`).ReplaceAllString(s.input, `"scope":[$1]`)
	}
	in := reflect.New(method.Type().In(1))
	dec := json.NewDecoder(strings.NewReader(s.input))
	dec.DisallowUnknownFields()
	var err error
	fits := dec.Decode(in.Interface()) == nil
	if fits && s.code == loci.ErrValidation {
		// What is wrong may be that something is missing, which the client cannot leave
		// out.
		again, err := json.Marshal(in.Interface())
		if err != nil {
			t.Fatal(err)
		}
		given, written := exact(t, []byte(s.input)), exact(t, again)
		fits = differs("", given, written) == "" && len(given.(map[string]any)) == len(written.(map[string]any))
	}
	if fits {
		typed = true
		sameJSON(t, s.op+": the input", []byte(s.input), in.Interface())
		out := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), in.Elem()})
		if err, _ = out[1].Interface().(error); err == nil {
			sameJSON(t, s.op+": the answer", wire.raw, out[0].Interface())
		}
	} else {
		if s.code != loci.ErrValidation {
			t.Errorf("%s: the client has no words for %s", s.op, s.input)
		}
		_, err = c.Call(t.Context(), s.op, json.RawMessage(s.input))
	}
	if err == nil {
		return answer{Result: decode(t, wire.raw)}, typed
	}
	var failed *client.Error
	if !errors.As(err, &failed) || !errors.Is(err, failed.Code) || failed.Status == 0 {
		t.Fatalf("%s: %v", s.op, err)
	}
	return answer{Failure: op.Failure{Code: loci.Code(failed.Code), Operation: failed.Operation, Field: failed.Field, Message: failed.Message}}, typed
}

// sameJSON compares JSON with what a value of it becomes.
func sameJSON(t *testing.T, what string, raw []byte, value any) {
	t.Helper()
	if difference := lost(t, raw, value); difference != "" {
		t.Errorf("%s differs at %s", what, difference)
	}
}

// lost says where JSON and what a value of it becomes are not the same.
func lost(t *testing.T, raw []byte, value any) string {
	t.Helper()
	var again bytes.Buffer
	enc := json.NewEncoder(&again)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		t.Fatal(err)
	}
	if path := differs("", exact(t, raw), exact(t, again.Bytes())); path != "" {
		return fmt.Sprintf("%s:\n%s\n%s", path, raw, again.Bytes())
	}
	return ""
}

func exact(t *testing.T, raw []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

// differs says where two values are not the same. A number and a decimal string
// of it are, since ids may be written either way; so is what is left out and what
// stands for nothing.
func differs(path string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path
		}
		for name, v := range x {
			w, there := y[name]
			if !there && !empty(v) {
				return path + "." + name
			}
			if there {
				if at := differs(path+"."+name, v, w); at != "" {
					return at
				}
			}
		}
		for name, w := range y {
			if _, there := x[name]; !there && !empty(w) {
				return path + "." + name
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return path
		}
		for i := range x {
			if at := differs(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]); at != "" {
				return at
			}
		}
		return ""
	case json.Number:
		if y, ok := b.(string); ok && y == x.String() {
			return ""
		}
	case string:
		if y, ok := b.([]any); ok && len(y) == 1 && y[0] == a { // one for a list of one
			return ""
		}
	}
	if !reflect.DeepEqual(a, b) {
		return path
	}
	return ""
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case json.Number:
		return x == "0"
	case map[string]any:
		for _, w := range x {
			if !empty(w) {
				return false
			}
		}
		return true
	}
	return false
}
