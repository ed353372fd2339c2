package tokens

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

var work = loci.Access{Grants: []loci.Grant{{Namespace: "work", Scopes: []string{"public"}, Write: true}}}

func TestParseGrant(t *testing.T) {
	all := []string{loci.Every}
	for text, want := range map[string]loci.Grant{
		"work":           {Namespace: "work", Scopes: all},
		"work:rw":        {Namespace: "work", Scopes: all, Write: true},
		"work:a":         {Namespace: "work", Scopes: []string{"a"}},
		"work:a,b:rw":    {Namespace: "work", Scopes: []string{"a", "b"}, Write: true},
		"*":              {Namespace: loci.Every, Scopes: all},
		"*:*:rw":         {Namespace: loci.Every, Scopes: all, Write: true},
		"工作:公开:rw":       {Namespace: "工作", Scopes: []string{"公开"}, Write: true},
		"my project:rw":  {Namespace: "my project", Scopes: all, Write: true},
		"work:readwrite": {Namespace: "work", Scopes: []string{"readwrite"}},
	} {
		if got, err := ParseGrant(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ":rw", "work:", "work:a,", "work:a:b", "work:a:b:rw", " work", "work::rw", strings.Repeat("n", 513)} {
		if got, err := ParseGrant(text); !errors.Is(err, loci.ErrValidation) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzParseGrant(f *testing.F) {
	f.Add("work:a,b:rw")
	f.Add("*:*")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGrant(text)
		if err != nil {
			return
		}
		again := g.Namespace + ":" + strings.Join(g.Scopes, ",")
		if g.Write {
			again += ":rw"
		}
		if got, err := ParseGrant(again); err != nil || !reflect.DeepEqual(got, g) {
			t.Errorf("%q means %+v, and written out %q %+v, %v", text, g, again, got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"tokens":[]}`))
	f.Add([]byte(`{"tokens":[{"name":"a","sha256":"` + strings.Repeat("ab", 32) + `","created_at":"","access":{"grants":[{"namespace":"n","scopes":["*"]}]}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Parse(raw)
		if err != nil {
			return
		}
		// What is taken can be written and means the same again.
		path := filepath.Join(t.TempDir(), "tokens.json")
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(path); err != nil || !reflect.DeepEqual(got.Tokens, s.Tokens) {
			t.Errorf("%+v, then %+v, %v", s, got, err)
		}
	})
}

func newToken(t *testing.T, path, name string, access loci.Access) string {
	t.Helper()
	s, err := Load(path)
	if errors.Is(err, os.ErrNotExist) {
		s, err = &Set{}, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.New(name, access, time.Unix(0, 0))
	if err == nil {
		err = s.Save(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestKeeper holds that a token is found by its secret alone, that the file never
// holds one, and that a change of the file counts from the next question on.
func TestKeeper(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "tokens.json")
	first := newToken(t, path, "first", work)
	k, err := Keep(path)
	if err != nil {
		t.Fatal(err)
	}
	find := func(secret, want string) {
		t.Helper()
		got, err := k.Find(secret)
		if err != nil || (got == nil) != (want == "") || got != nil && got.Name != want {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
	}
	find(first, "first")
	for _, wrong := range []string{"", "loci_", first + "x", first[1:], strings.ToUpper(first)} {
		find(wrong, "")
	}
	second := newToken(t, path, "second", loci.Access{Admin: true})
	if first == second || len(first) < 40 {
		t.Error("tokens are alike, or short")
	}
	find(first, "first")
	find(second, "second")
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), first) || strings.Contains(string(raw), strings.TrimPrefix(second, prefix)) {
		t.Error("the file holds a token", err)
	}
	set, err := Load(path)
	if err != nil || !set.Remove("first") || set.Remove("first") {
		t.Fatal(err)
	}
	if err := set.Save(path); err != nil {
		t.Fatal(err)
	}
	find(first, "")
	find(second, "second")
	// What cannot be read lets nobody in, and comes back once it can.
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Find(second); got != nil || err == nil {
		t.Errorf("a broken file: %+v, %v", got, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Find(second); got != nil || !errors.Is(err, loci.ErrIO) {
		t.Errorf("no file: %+v, %v", got, err)
	}
	if err := set.Save(path); err != nil {
		t.Fatal(err)
	}
	find(second, "second")
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Find(second); got != nil || !errors.Is(err, loci.ErrValidation) {
		t.Errorf("a file that others read: %+v, %v", got, err)
	}
	if _, err := Keep(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

func TestFileRefused(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	one := func(name, sum, access string) string {
		return `{"name":"` + name + `","sha256":"` + sum + `","created_at":"2026-01-01T00:00:00Z","access":` + access + `}`
	}
	for name, text := range map[string]string{
		"no JSON": `tokens`, "another field": `{"tokens":[],"secret":"x"}`, "more text": `{"tokens":[]} {}`,
		"no name": `{"tokens":[` + one("", sum, "{}") + `]}`, "short hash": `{"tokens":[` + one("a", "ab", "{}") + `]}`,
		"upper case":  `{"tokens":[` + one("a", strings.ToUpper(sum), "{}") + `]}`,
		"same hash":   `{"tokens":[` + one("a", sum, "{}") + `,` + one("b", sum, "{}") + `]}`,
		"same name":   `{"tokens":[` + one("a", sum, "{}") + `,` + one("a", strings.Repeat("cd", 32), "{}") + `]}`,
		"no scopes":   `{"tokens":[` + one("a", sum, `{"grants":[{"namespace":"n","scopes":[]}]}`) + `]}`,
		"blank scope": `{"tokens":[` + one("a", sum, `{"grants":[{"namespace":"n","scopes":[" "]}]}`) + `]}`,
		"misspelt":    `{"tokens":[` + one("a", sum, `{"grant":[]}`) + `]}`,
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	var s Set
	if _, err := s.New(" ", work, time.Now()); !errors.Is(err, loci.ErrValidation) || len(s.Tokens) > 0 {
		t.Error(err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}
