package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op/local"
	"github.com/spf13/cobra"
)

// runMCP runs loci mcp with a server that only looks at what it is given.
func runMCP(t *testing.T, env map[string]string, serve func(MCPConfig) error, args ...string) (int, string) {
	t.Helper()
	var errOut bytes.Buffer
	code := Run(t.Context(), Deps{
		Args: append([]string{"--data", t.TempDir(), "--embedder", "none", "mcp"}, args...), Stderr: &errOut, Stdout: io.Discard,
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		HomeDir:   func() (string, error) { return t.TempDir(), nil },
		Version:   Version{Version: "v9"},
		Extra: []func(*App) *cobra.Command{func(a *App) *cobra.Command {
			return a.MCPCommand(func(_ context.Context, cfg MCPConfig, _ io.Reader, _ io.Writer) error { return serve(cfg) })
		}},
	})
	return code, errOut.String()
}

func TestMCPSettings(t *testing.T) {
	for _, c := range []struct {
		name           string
		args           []string
		env            map[string]string
		namespace      string
		scope, context string
	}{
		{"a namespace", []string{"--namespace", "ship"}, nil, "ship", "public", ""},
		{"a namespace of the environment", nil, map[string]string{"LOCI_NAMESPACE": "ship", "LOCI_SCOPE": "mine"}, "ship", "mine", ""},
		{"a context", []string{"--scope", "ship", "--scope", "watch 1"}, nil, "ship", "", "ship watch 1"},
		{"a context in JSON", []string{"--scope", `["ship","watch 1"]`}, map[string]string{"LOCI_SCOPE": "mine"}, "ship", "", "ship watch 1"},
		{"a context and its namespace", []string{"--scope", "ship", "--namespace", "ship"}, nil, "ship", "", "ship"},
	} {
		var got MCPConfig
		code, errOut := runMCP(t, c.env, func(cfg MCPConfig) error { got = cfg; return nil }, c.args...)
		join := func(list []string) string { return string(bytes.Join(bytesOf(list), []byte(" "))) }
		if code != 0 || got.Namespace != c.namespace || join(got.Scopes) != c.scope || join(got.Context) != c.context || got.Version != "v9" {
			t.Errorf("%s: exit %d %s %+v", c.name, code, errOut, got)
		}
	}
	var got MCPConfig
	if code, errOut := runMCP(t, nil, func(cfg MCPConfig) error { got = cfg; return nil },
		"--tools", "all", "--budget", "500", "--any-namespace", "--no-redact", "--timeout", "3s"); code != 0 || !got.AllTools || got.Budget != 500 || !got.AnyNamespace || !got.NoRedact || got.Timeout.Seconds() != 3 {
		t.Errorf("exit %d %s %+v", code, errOut, got)
	}
	for _, bad := range [][]string{{"--tools", "many"}, {"--scope", "[1]"}, {"word"}, {"--budget", "x"}} {
		if code, errOut := runMCP(t, nil, func(MCPConfig) error { t.Errorf("%v: served", bad); return nil }, bad...); code != 2 {
			t.Errorf("%v: exit %d: %s", bad, code, errOut)
		}
	}
}

func bytesOf(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

// A server that never called has opened nothing, and one that called has the store.
func TestMCPOpensLate(t *testing.T) {
	code, errOut := runMCP(t, nil, func(cfg MCPConfig) error {
		late := cfg.Caller.(*lateMemory)
		if late.now != nil {
			t.Error("something was opened before the first answer")
		}
		cfg.Answered()
		if late.now == nil {
			t.Error("nothing is being opened after the first answer")
		}
		_, err := cfg.Caller.Call(t.Context(), "health", []byte(`{}`))
		return err
	})
	if code != 0 {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

func TestLateMemory(t *testing.T) {
	broken := errs.New(errs.Locked, "another process holds it")
	tries := 0
	m := newLateMemory(t.Context(), func(ctx context.Context) (*local.Memory, error) {
		if tries++; tries < 3 {
			return nil, broken
		}
		return local.Open(ctx, t.TempDir(), nil)
	})
	for range 2 {
		_, err := m.Call(t.Context(), "health", nil)
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Op != "health" || !errors.Is(err, errs.Locked) {
			t.Errorf("%v", err)
		}
	}
	if _, err := m.Call(t.Context(), "health", nil); err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	if _, err := m.Call(t.Context(), "health", nil); err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.Call(t.Context(), "health", nil); !errors.Is(err, errs.Closed) {
		t.Errorf("after Close: %v", err)
	}

	// A call does not wait longer than its context, and Close ends a try that runs.
	began := make(chan struct{})
	m = newLateMemory(t.Context(), func(ctx context.Context) (*local.Memory, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := m.Call(ctx, "health", nil); !errors.Is(err, errs.Canceled) {
		t.Errorf("%v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := newLateMemory(t.Context(), nil).Close(); err != nil {
		t.Error(err)
	}
}

// TestMCPModels holds that the first search of a server has its vectors, and that a
// command that is attached to one without an embedder says whose matter that is.
func TestMCPModels(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	s.run(0, "remember", "The tide table is updated weekly.")
	serve := func(embedder string, do func(MCPConfig) error) {
		t.Helper()
		deps := Deps{
			Args: []string{"--data", s.dir, "--embedder", embedder, "mcp"}, Stderr: io.Discard, Stdout: io.Discard,
			LookupEnv: func(string) (string, bool) { return "", false },
			HomeDir:   func() (string, error) { return t.TempDir(), nil },
			Extra: []func(*App) *cobra.Command{func(a *App) *cobra.Command {
				return a.MCPCommand(func(_ context.Context, cfg MCPConfig, _ io.Reader, _ io.Writer) error { return do(cfg) })
			}},
		}
		s.deps(&deps)
		if code := Run(t.Context(), deps); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	var first string
	for range 3 { // a machine may be too busy to bind a model in time
		serve("builtin", func(cfg MCPConfig) error {
			out, err := cfg.Caller.Call(t.Context(), "recall", []byte(`{"query":"船"}`))
			first = string(out)
			return err
		})
		if strings.Contains(first, "tide") {
			break
		}
	}
	if !strings.Contains(first, "tide") || !strings.Contains(first, `"degraded":[]`) {
		t.Errorf("the first search gave %s", first)
	}
	serve("none", func(cfg MCPConfig) error {
		if _, err := cfg.Caller.Call(t.Context(), "health", nil); err != nil {
			return err
		}
		contains(t, s.run(2, "embeddings", "sync").stderr, "the process that holds the memory has none for this")
		return nil
	})
}
