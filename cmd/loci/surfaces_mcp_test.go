package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/mcpserver"
	"github.com/loci-memory/loci/op"
)

// mcpLines is a client of the MCP server that reads and writes the lines itself: a
// client library would not keep the numbers as they were written.
type mcpLines struct {
	to   io.Writer
	from *bufio.Reader
	last int
}

// dialMCP starts a server on pipes, and introduces a client to it.
func dialMCP(t *testing.T, cfg mcpserver.Config) *mcpLines {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- mcpserver.ServeStdio(t.Context(), cfg, in, out) }()
	t.Cleanup(func() {
		if err := errors.Join(to.Close(), <-done, from.Close()); err != nil {
			t.Error(err)
		}
	})
	c := &mcpLines{to: to, from: bufio.NewReader(from)}
	c.call(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	if _, err := io.WriteString(to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// call gives the result of a call.
func (c *mcpLines) call(t *testing.T, method, params string) json.RawMessage {
	t.Helper()
	c.last++
	if _, err := fmt.Fprintf(c.to, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.last, method, params); err != nil {
		t.Fatal(err)
	}
	line, err := c.from.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID     int             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil || answer.ID != c.last || answer.Error != nil {
		t.Fatalf("%s %s: %v %s", method, params, err, line)
	}
	return answer.Result
}

// ask calls a sample's operation as a tool.
func (c *mcpLines) ask(t *testing.T, s sample) answer {
	t.Helper()
	raw := c.call(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, strings.ReplaceAll(s.op, ".", "_"), strings.ReplaceAll(s.input, "\n", " ")))
	var res struct {
		Content    []struct{ Text string } `json:"content"`
		Structured json.RawMessage         `json:"structuredContent"`
		IsError    bool                    `json:"isError"`
	}
	if err := json.Unmarshal(raw, &res); err != nil || len(res.Content) != 1 || res.Content[0].Text == "" {
		t.Fatalf("%s: %v %s", s.op, err, raw)
	}
	if !res.IsError {
		return answer{Result: decode(t, res.Structured)}
	}
	var e struct {
		Error op.Failure `json:"error"`
	}
	if err := json.Unmarshal(res.Structured, &e); err != nil {
		t.Errorf("%s: %v %s", s.op, err, raw)
	}
	return answer{Failure: e.Error}
}
