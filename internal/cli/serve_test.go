package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
)

// TestToken holds that a token is shown once, works for a server that runs, and can
// be taken back.
func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	env := map[string]string{"LOCI_TOKENS": file, "LOCI_DATA": t.TempDir()}
	run := func(args ...string) outcome {
		t.Helper()
		return cmdLine{env: env, args: append([]string{"token"}, args...), deps: noStore(t)}.run(t)
	}
	var made struct{ Name, Token, File string }
	got := run("new", "laptop", "--grant", "work:public,team:rw", "--grant", "home", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &made); err != nil || got.code != 0 || made.Name != "laptop" || made.File != file || len(made.Token) < 40 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := run("new", "operator", "--admin", "--quiet"); got.code != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout, "loci_") {
		t.Errorf("%+v", got)
	}
	got = run("list")
	if got.code != 0 || !strings.Contains(got.stdout, "write work (public, team); read home") || !strings.Contains(got.stdout, "admin") ||
		strings.Contains(got.stdout, made.Token) {
		t.Errorf("%+v", got)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(raw), made.Token) {
		t.Error("the file holds the token", err)
	}
	serve := cmdLine{env: env, args: []string{"serve", "--data", t.TempDir(), "--listen", "0.0.0.0:0", "--allowed-host", "memory.example"}}
	serve.deps = func(d *Deps) {
		d.Serve = func(_ context.Context, cfg ServeConfig) error {
			token, err := cfg.Tokens.Find(made.Token)
			if err != nil || token == nil || token.Name != "laptop" || !token.Access.Writes("work", "team") || token.Access.Writes("home", "public") {
				t.Errorf("%+v, %v", token, err)
			}
			if cfg.Addr != "0.0.0.0:0" || len(cfg.Hosts) != 1 || cfg.MCP == nil || cfg.Caller == nil {
				t.Errorf("%+v", cfg)
			}
			if got := run("remove", "laptop"); got.code != 0 {
				t.Errorf("%+v", got)
			}
			if token, err := cfg.Tokens.Find(made.Token); token != nil || err != nil {
				t.Errorf("a token that was taken back: %+v, %v", token, err)
			}
			return nil
		}
	}
	if got := serve.run(t); got.code != 0 {
		t.Errorf("%+v", got)
	}
	for _, tt := range []struct {
		args []string
		code int
		part string
	}{
		{[]string{"remove", "laptop"}, op.ExitNotFound, "no token"},
		{[]string{"new", "--grant", "work"}, op.ExitUsage, "accepts 1 arg"},
		{[]string{"new", "x"}, op.ExitUsage, "may do nothing"},
		{[]string{"new", "x", "--grant", "a:b:c"}, op.ExitUsage, "NAMESPACE[:SCOPE,SCOPE][:rw]"},
		{[]string{"new", "operator", "--admin"}, op.ExitConflict, "already"},
		{[]string{"new", " ", "--admin"}, op.ExitUsage, "name"},
	} {
		if got := run(tt.args...); got.code != tt.code || !strings.Contains(got.stderr, tt.part) || got.stdout != "" {
			t.Errorf("%v: %+v", tt.args, got)
		}
	}
	if got := (cmdLine{env: map[string]string{"LOCI_DATA": t.TempDir()}, args: []string{"token", "list"}}).run(t); got.code != op.ExitUsage || !strings.Contains(got.stderr, "LOCI_TOKENS") {
		t.Errorf("%+v", got)
	}
}

// TestServeRefuses holds that a server which cannot do what it was told does not
// begin, and touches no store.
func TestServeRefuses(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open.json")
	if err := os.WriteFile(open, []byte(`{"tokens":[]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--tokens", filepath.Join(t.TempDir(), "nothing.json")}, {"--tokens", open}, {"--log", "xml"}, {"--max-running", "-1"},
		{"--allowed-origin", "app.example"}, {"--allowed-origin", "https://app.example/path"},
	} {
		c := cmdLine{args: append([]string{"serve", "--data", t.TempDir()}, args...)}
		c.deps = func(d *Deps) {
			noStore(t)(d)
			d.Serve = func(context.Context, ServeConfig) error { t.Errorf("%v began", args); return errors.New("began") }
		}
		if got := c.run(t); got.code == 0 || got.stderr == "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestSchemaOpenAPI(t *testing.T) {
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	env := map[string]string{"LOCI_DATA": t.TempDir()}
	got := cmdLine{env: env, args: []string{"schema", "--openapi"}, deps: noStore(t)}.run(t)
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || got.code != 0 || doc.OpenAPI != "3.1.0" || doc.Paths["/v1/recall"] == nil {
		t.Errorf("%d %v %.200s", got.code, err, got.stdout)
	}
	if got := (cmdLine{env: env, args: []string{"schema", "--openapi", "recall"}, deps: noStore(t)}).run(t); got.code != op.ExitUsage {
		t.Errorf("%+v", got)
	}
}
