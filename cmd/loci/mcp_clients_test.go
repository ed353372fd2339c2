package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// seen is what a client's script saw.
type seen struct {
	Server    string   `json:"server"`
	Tools     []string `json:"tools"`
	Recalled  []string `json:"recalled"`
	Text      string   `json:"text"`
	Wrong     bool     `json:"wrong"`
	Forgotten bool     `json:"forgotten"`
	Resources int      `json:"resources"`
	Prompts   int      `json:"prompts"`
}

func (s seen) check(t *testing.T) {
	t.Helper()
	const text = "灯塔 lamps are lit at seven."
	if s.Server != "loci" || !slices.Equal(s.Recalled, []string{text}) || !strings.Contains(s.Text, text) || !s.Wrong || !s.Forgotten ||
		s.Resources != 1 || s.Prompts != 2 {
		t.Errorf("%+v", s)
	}
	for _, name := range []string{"remember", "recall", "search", "forget", "relate", "explore", "feedback", "notes", "status", "vctx"} {
		if !slices.Contains(s.Tools, name) {
			t.Errorf("there is no tool %s among %v", name, s.Tools)
		}
	}
}

// mcpURL serves an empty store over HTTP.
func mcpURL(t *testing.T) string {
	t.Helper()
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, stop, err := mcpHandler(cli.MCPConfig{Caller: op.Local(db)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		err := stop()
		server.Close()
		if err = errors.Join(err, db.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.URL
}

// TestGoClient drives loci mcp, as a process of its own, with the official client in
// Go, in the version without sessions and in one with them.
func TestGoClient(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
		cmd := program(t, "mcp", "--embedder", "none", "--data", filepath.Join(t.TempDir(), "data"))
		var log bytes.Buffer
		cmd.Stderr = &log
		c, err := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, nil).
			Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: %v\n%s", version, err, log.String())
		}
		driveGo(t, c).check(t)
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v\n%s", version, err, log.String())
		}
		if strings.Contains(log.String(), "lamps are lit") {
			t.Errorf("the log holds what was remembered: %s", log.String())
		}
	}
}

// TestServeMCP drives /mcp of loci serve, as a process of its own, with and without
// sessions, and stops it while the client's stream is open.
func TestServeMCP(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent an interrupt here")
	}
	cmd := program(t, "serve", "--listen", "127.0.0.1:0", "--embedder", "none", "--data", filepath.Join(t.TempDir(), "data"), "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ready struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, nil).
			Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: ready.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatalf("%s: %v\n%s", version, err, log.String())
		}
		defer c.Close()
		driveGo(t, c).check(t)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if strings.Contains(log.String(), "lamps are lit") {
		t.Errorf("the log holds what was remembered: %s", log.String())
	}
}

// A process that is sent everything at once and then nothing more answers, writes
// nothing but messages, logs no text, and ends well. So does one whose client never
// said a word.
func TestMCPProcess(t *testing.T) {
	const text = "The walrus came back."
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "walrus? this is no message",
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"remember","arguments":{"text":"` + text + `"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"remember","arguments":{"text":["` + text + `"]}}}`,
	}
	for name, input := range map[string]string{"everything": strings.Join(lines, "\n"), "nothing": ""} {
		cmd := program(t, "mcp", "--embedder", "none", "--data", filepath.Join(t.TempDir(), "data"))
		var out, log bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &log
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, log.String())
		}
		n := 0
		for line := range strings.Lines(out.String()) {
			var m struct{ JSONRPC string }
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
				t.Errorf("%s: not a message: %s", name, line)
			}
			n++
		}
		if want := map[string]int{"everything": 4, "nothing": 0}[name]; n != want {
			t.Errorf("%s: %d messages, want %d: %s", name, n, want, out.String())
		}
		if strings.Contains(log.String(), "alrus") {
			t.Errorf("%s: the log holds what was said: %s", name, log.String())
		}
	}
}

func driveGo(t *testing.T, c *mcp.ClientSession) (s seen) {
	t.Helper()
	call := func(name string, args map[string]any) (string, map[string]any, bool) {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		doc, _ := res.StructuredContent.(map[string]any)
		return res.Content[0].(*mcp.TextContent).Text, doc, res.IsError
	}
	s.Server = "loci" // which not every version tells
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		s.Tools = append(s.Tools, tool.Name)
	}
	_, remembered, _ := call("remember", map[string]any{"text": "灯塔 lamps are lit at seven.", "tags": []string{"lamp"}})
	text, recalled, _ := call("recall", map[string]any{"query": "灯塔 lamps"})
	hits, _ := recalled["hits"].([]any)
	for _, h := range hits {
		s.Recalled = append(s.Recalled, h.(map[string]any)["text"].(string))
	}
	s.Text = text
	_, _, s.Wrong = call("recall", map[string]any{"query": 7})
	_, forgotten, _ := call("forget", map[string]any{"id": remembered["id"]})
	s.Forgotten, _ = forgotten["value"].(bool)
	resources, err := c.ListResources(t.Context(), nil)
	prompts, err2 := c.ListPrompts(t.Context(), nil)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	s.Resources, s.Prompts = len(resources.Resources), len(prompts.Prompts)
	return s
}

// TestTypeScriptClient runs testdata/clients/ts, with the packages that its
// package.json names in the folder that LOCI_MCP_NODE_MODULES names.
func TestTypeScriptClient(t *testing.T) {
	modules := os.Getenv("LOCI_MCP_NODE_MODULES")
	if modules == "" {
		t.Skip("LOCI_MCP_NODE_MODULES names no folder with the client's packages: npm install in a copy of testdata/clients/ts, and name its node_modules")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	// Packages are looked for beside the script.
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join("testdata", "clients", "ts", "client.mjs"))
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600), os.Symlink(modules, filepath.Join(dir, "node_modules")))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range clientTargets(t) {
		runClient(t, target, exec.CommandContext(t.Context(), node, filepath.Join(dir, "client.mjs"), target.address))
	}
}

// TestPythonClient runs testdata/clients/python with the interpreter that
// LOCI_MCP_PYTHON names, which must have what its requirements.txt lists.
func TestPythonClient(t *testing.T) {
	python := os.Getenv("LOCI_MCP_PYTHON")
	if python == "" {
		t.Skip("LOCI_MCP_PYTHON names no interpreter with the client: pip install -r testdata/clients/python/requirements.txt in a virtual environment, and name its python")
	}
	for _, mode := range []string{"auto", "legacy"} {
		for _, target := range clientTargets(t) {
			target.name += " " + mode
			runClient(t, target, exec.CommandContext(t.Context(), python, filepath.Join("testdata", "clients", "python", "client.py"), target.address, mode))
		}
	}
}

// clientTarget is a server that a script drives.
type clientTarget struct {
	name, address string
	env           []string
}

// clientTargets are a server on standard input and output, and one over HTTP.
func clientTargets(t *testing.T) []clientTarget {
	t.Helper()
	cmd := program(t, "mcp", "--quiet", "--embedder", "none", "--data", filepath.Join(t.TempDir(), "data"))
	command, err := json.Marshal(cmd.Args)
	if err != nil {
		t.Fatal(err)
	}
	return []clientTarget{{"stdio", string(command), cmd.Env}, {"http", mcpURL(t), cmd.Env}}
}

func runClient(t *testing.T, target clientTarget, cmd *exec.Cmd) {
	t.Helper()
	cmd.Env = target.env
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", target.name, err, out, errOut.String())
	}
	var s seen
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%s: %v\n%s", target.name, err, out)
	}
	s.check(t)
}
