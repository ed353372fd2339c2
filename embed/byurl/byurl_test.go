package byurl_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/byurl"
	"github.com/loci-memory/loci/embed/endpoint"
)

func TestDescriptions(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1?model=m":                    "openai at https://api.openai.com/v1, model m",
		"https://api.openai.com":                               "openai at https://api.openai.com/v1, model given",
		"http://localhost:8000/":                               "openai at http://localhost:8000/v1, model given",
		"http://localhost:8000/other?model=a%2Fb":              "openai at http://localhost:8000/other, model a/b",
		"openai+http://localhost:11434/?model=m":               "openai at http://localhost:11434/v1, model m",
		"http://localhost:11434?model=m":                       "ollama at http://localhost:11434, model m",
		"http://localhost:11434/v1?model=m":                    "openai at http://localhost:11434/v1, model m",
		"ollama+https://ollama.example/sub?model=m":            "ollama at https://ollama.example/sub, model m",
		"tei+http://localhost:8080?query_prompt=q":             "tei at http://localhost:8080",
		"https://api.voyageai.com?model=m&dimensions=256":      "voyage at https://api.voyageai.com/v1, model m",
		"https://api.jina.ai/v1?model=m":                       "jina at https://api.jina.ai/v1, model m",
		"https://api.cohere.com?model=m&max_inputs=10":         "cohere at https://api.cohere.com, model m",
		"jina+https://proxy.example/v1":                        "jina at https://proxy.example/v1, model given",
		"https://me:pass-word@x.example?model=m":               "openai at https://x.example/v1, model m",
		" http://x.example/v1?query_prefix=query:+&model=m \n": "openai at http://x.example/v1, model m",
	} {
		e, got, err := byurl.Open(address, byurl.Options{Model: "given"})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; not %q", address, got, err, want)
			continue
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestErrors(t *testing.T) {
	for address, says := range map[string]string{
		"":                                     `unknown scheme ""`,
		"localhost:11434":                      `unknown scheme "localhost"`,
		"ftp://x":                              `unknown scheme "ftp"`,
		"ollama://x":                           `unknown scheme "ollama"`,
		"ollama+ftp://x":                       `unknown scheme "ollama+ftp"`,
		"bedrock+https://x?model=m":            `unknown service "bedrock"`,
		"+http://x?model=m":                    "cannot be read",
		"http://?model=m":                      "names no host",
		"http://x/#frag":                       "fragment",
		"http://x?model=m&api_key=hidden":      `unknown parameter "api_key", not one of model, dimensions`,
		"http://x?model=m&b=1&a=1":             "unknown parameter \"a\", not one of model, dimensions, max_inputs, query_prefix, passage_prefix\nan unknown parameter \"b\"",
		"http://x?model=m&model=n":             "model is given 2 times",
		"http://x?model=m&dimensions=hidden":   "dimensions is not a whole number from 1 on",
		"http://x?model=m&dimensions=0":        "dimensions is not a whole number from 1 on",
		"http://x?model=m&max_inputs=-1":       "max_inputs is not a whole number from 1 on",
		"http://x?model=%zz":                   "cannot be read",
		"http://x":                             "Model is missing",
		"tei+http://x?model=m":                 `unknown parameter "model"`,
		"cohere+http://x?model=m&query_prefix": `unknown parameter "query_prefix"`,
		"http://me:hidden@x:port":              "cannot be read",
		"ollama+http://me:hidden@x":            "Model is missing",
	} {
		e, description, err := byurl.Open(address, byurl.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "embedder: ") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v does not say %q", address, err, says)
		}
		if e != nil || description != "" {
			t.Errorf("%s: something came with the error", address)
		}
	}
}

// TestEachService sends one request to each service by its address.
func TestEachService(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String() + " " + r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/v1/embeddings":
			fmt.Fprint(w, `{"data": [{"index": 0, "embedding": [1, 2]}]}`)
		case "/api/embed":
			fmt.Fprint(w, `{"embeddings": [[1, 2]]}`)
		case "/embed":
			fmt.Fprint(w, `[[1, 2]]`)
		case "/v2/embed":
			fmt.Fprint(w, `{"embeddings": {"float": [[1, 2]]}}`)
		}
	}))
	defer server.Close()
	for service, path := range map[string]string{
		"openai": "/v1/embeddings", "voyage": "/v1/embeddings", "jina": "/v1/embeddings", "ollama": "/api/embed", "tei": "/embed", "cohere": "/v2/embed",
	} {
		address := service + "+" + server.URL + "?dimensions=2"
		if service != "tei" {
			address += "&model=" + url.QueryEscape("m")
		}
		e, _, err := byurl.Open(address, byurl.Options{Endpoint: endpoint.Options{URL: "not used", APIKey: endpoint.NewKey("k"), Tries: 1}})
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
		if err != nil || len(vectors) != 1 || e.Dimension() != 2 || asked != path+" Bearer k" {
			t.Errorf("%s: %v, %v, asked for %s", service, vectors, err, asked)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzOpen: no address makes it panic, and no description or error shows the
// password of one that can be read.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"https://u:p4ssw0rd@api.openai.com/v1?model=m", "ollama+http://x:11434", "a+b+http://x?%", "http://[::1]:80?model=m&x=y", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, address string) {
		e, description, err := byurl.Open(address, byurl.Options{Model: "m"})
		if (err == nil) != (e != nil) || (err == nil) != (description != "") {
			t.Fatalf("%v, %q, %v", e, description, err)
		}
		if strings.Contains(description+fmt.Sprint(err), "p4ssw0rd") && strings.Contains(address, "u:p4ssw0rd@") && strings.Count(address, "p4ssw0rd") == 1 {
			t.Fatalf("%q, %v", description, err)
		}
	})
}

func ExampleOpen() {
	e, description, err := byurl.Open("http://localhost:11434?model=all-minilm", byurl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(description)
	fmt.Println(e.Close())

	_, _, err = byurl.Open("ldap://localhost", byurl.Options{})
	fmt.Println(err)
	// Output:
	// ollama at http://localhost:11434, model all-minilm
	// <nil>
	// embedder: an unknown scheme "ldap": an address starts with http://, https:// or a service and a plus, as ollama+http://
}
