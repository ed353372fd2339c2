package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares got with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is old; run go test ./internal/mcpserver -update and look at the difference.\n%s", path, got)
	}
}

// store opens a store of its own.
func store(t *testing.T) *loci.DB {
	t.Helper()
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true, NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// client connects the library's client to a server of cfg, in memory.
func client(t *testing.T, cfg Config) *mcp.ClientSession {
	t.Helper()
	if cfg.Caller == nil {
		cfg.Caller = op.Local(store(t))
	}
	s, err := newServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	ss, err := s.mcp.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = ss.Close()
	})
	return c
}

// said is a tool's answer.
type said struct {
	text    string
	doc     document
	isError bool
}

// ask calls a tool with arguments in JSON. An error of the protocol fails the test.
func ask(t *testing.T, c *mcp.ClientSession, tool, arguments string) said {
	t.Helper()
	res, err := c.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	return saidOf(t, res)
}

func saidOf(t *testing.T, res *mcp.CallToolResult) said {
	t.Helper()
	var text []string
	for _, c := range res.Content {
		text = append(text, c.(*mcp.TextContent).Text)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return said{strings.Join(text, "\n"), doc, res.IsError}
}

// must is ask for what has to succeed.
func must(t *testing.T, c *mcp.ClientSession, tool, arguments string) said {
	t.Helper()
	a := ask(t, c, tool, arguments)
	if a.isError {
		t.Fatalf("%s %s: %s", tool, arguments, a.text)
	}
	return a
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}
