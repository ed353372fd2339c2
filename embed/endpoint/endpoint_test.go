package endpoint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

const secret = "sk-0123456789"

func TestKeyNeverShows(t *testing.T) {
	key := endpoint.NewKey(" " + secret + "\n")
	if key.Reveal() != secret || key.IsZero() {
		t.Fatal("the key is not what it was made of")
	}
	// A field that printers cannot call methods on.
	type holder struct{ key endpoint.Key }
	o := endpoint.Options{URL: "http://x", APIKey: key}
	var out strings.Builder
	for _, x := range []any{key, &key, holder{key}, &holder{key}, o, []endpoint.Key{key}, map[string]endpoint.Key{"a": key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", x)
		}
	}
	for _, x := range []any{key, holder{key}, map[string]any{"k": key}} {
		data, err := json.Marshal(x)
		if err != nil {
			t.Error(err)
		}
		out.Write(data)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "key", key, "o", holder{key})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "key", key, "o", holder{key})
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%d", []byte(secret)), `115, 107, 45`} {
		if strings.Contains(out.String(), form) {
			t.Errorf("%s shows in %s", form, out.String())
		}
	}
	if key.GoString() != "[redacted]" || !strings.Contains(out.String(), "[redacted]") {
		t.Error("nothing was printed")
	}
}

func TestZeroKey(t *testing.T) {
	for _, key := range []endpoint.Key{{}, endpoint.NewKey(""), endpoint.NewKey(" \n")} {
		data, err := json.Marshal(key)
		if !key.IsZero() || key.Reveal() != "" || fmt.Sprint(key) != "" || string(data) != `""` || err != nil || !key.Valid() {
			t.Errorf("%v %s %v", key, data, err)
		}
	}
}

func TestKeyFromEnv(t *testing.T) {
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"GOOD": " " + secret + "\n", "BLANK": " ", "TWO": secret + "\n" + secret}[name]
		return value, ok
	}
	for name, says := range map[string]string{"GOOD": "", "NONE": "NONE is not set", "BLANK": "BLANK is empty", "TWO": "TWO holds more than one line"} {
		key, err := endpoint.KeyFromEnv(name, lookup)
		checkKey(t, key, err, says)
	}
}

func TestKeyFromFile(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ content, says string }{
		"good":   {secret + "\r\n", ""},
		"empty":  {"\n\n", "empty is empty"},
		"two":    {secret + "\nand more", "two holds more than one line"},
		"binary": {"\x00\x01", "binary holds more than one line or bytes"},
		"long":   {strings.Repeat("a", 20<<10), "long is longer than any key"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := endpoint.KeyFromFile(path)
		checkKey(t, key, err, c.says)
	}
	key, err := endpoint.KeyFromFile(filepath.Join(dir, "missing"))
	checkKey(t, key, err, "missing")
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	key, err = endpoint.KeyFromFile(dir)
	checkKey(t, key, err, dir)
}

func checkKey(t *testing.T, key endpoint.Key, err error, says string) {
	t.Helper()
	if says == "" {
		if err != nil || key.Reveal() != secret {
			t.Errorf("%q, %v", key.Reveal(), err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) || !key.IsZero() {
		t.Errorf("%v, not %q", err, says)
	}
}

func TestErrors(t *testing.T) {
	for want, err := range map[string]error{
		"openai at http://x: 413 Request Entity Too Large":      &endpoint.Error{Service: "openai at http://x", Status: 413, Kind: embed.ErrTooLarge},
		"openai at http://x: 401 Unauthorized: no such account": &endpoint.Error{Service: "openai at http://x", Status: 401, Message: "no such account"},
		"text 3 is blank":    &endpoint.TextError{Index: 3, Reason: "is blank"},
		"the query is blank": &endpoint.TextError{Index: -1, Reason: "is blank"},
	} {
		if err.Error() != want {
			t.Errorf("%q, not %q", err, want)
		}
	}
	if !errors.Is(&endpoint.TextError{}, embed.ErrRefused) || !errors.Is(&endpoint.Error{Kind: embed.ErrTooLarge}, embed.ErrTooLarge) {
		t.Error("the kind is not wrapped")
	}
}

func ExampleKeyFromEnv() {
	lookup := func(string) (string, bool) { return "", false } // os.LookupEnv in a program
	_, err := endpoint.KeyFromEnv("OPENAI_API_KEY", lookup)
	fmt.Println(err)
	// Output: no API key: the environment variable OPENAI_API_KEY is not set
}
