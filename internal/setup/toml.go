package setup

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"
)

// The lines around what setup writes into a TOML file. The second form of the first
// one says that the line before had no end, and gets that lack back.
const (
	tomlBegin   = "# loci: begin. loci setup writes this block and takes it out again"
	tomlBeginNL = tomlBegin + "; the line before it had no end"
	tomlEnd     = "# loci: end"
)

// parseTOML decodes a file.
func parseTOML(raw []byte) (map[string]any, error) {
	out := map[string]any{}
	if err := toml.Unmarshal(raw, &out); err != nil {
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := e.Position()
			return nil, fmt.Errorf("line %d, column %d: %s", line, column, strings.TrimPrefix(e.Error(), "toml: "))
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
	}
	return out, nil
}

// cutTOML takes setup's block out; found is false when there is none.
func cutTOML(raw []byte) (rest []byte, found bool, err error) {
	begin := -1
	for at := 0; at >= 0 && at < len(raw); {
		if bytes.HasPrefix(raw[at:], []byte(tomlBegin)) {
			begin = at
			break
		}
		next := bytes.IndexByte(raw[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	if begin < 0 {
		return raw, false, nil
	}
	end := bytes.Index(raw[begin:], []byte("\n"+tomlEnd))
	if end < 0 {
		return nil, false, errors.New("the block that setup wrote has lost its end line: " + tomlEnd)
	}
	end += begin + 1 + len(tomlEnd)
	head := raw[:begin]
	lacked := bytes.HasPrefix(raw[begin:], []byte(tomlBeginNL))
	for _, nl := range []string{"\r\n", "\n"} {
		if rest := raw[end:]; bytes.HasPrefix(rest, []byte(nl)) {
			end += len(nl)
			break
		}
	}
	cut := 1 // the empty line before it
	if lacked {
		cut = 2
	}
	for range cut {
		head = bytes.TrimSuffix(head, []byte("\n"))
		head = bytes.TrimSuffix(head, []byte("\r"))
	}
	if !lacked && len(head) > 0 && !bytes.HasSuffix(head, []byte("\n")) {
		head = raw[:begin] // someone took the empty line away
	}
	return append(bytes.Clone(head), raw[end:]...), true, nil
}

// addTOML puts setup's block at the end of a file that has none: a table of a
// server. The file is decoded before and after, and nothing but the server may
// differ.
func addTOML(raw []byte, table []string, server tomlServer) ([]byte, error) {
	before, err := parseTOML(raw)
	if err != nil {
		return nil, err
	}
	nl := "\n"
	if bytes.Contains(raw, []byte("\r\n")) {
		nl = "\r\n"
	}
	var b strings.Builder
	b.Write(raw)
	begin := tomlBegin
	switch {
	case len(raw) == 0:
	case bytes.HasSuffix(raw, []byte("\n")):
		b.WriteString(nl)
	default:
		b.WriteString(nl + nl)
		begin = tomlBeginNL
	}
	args := make([]string, len(server.Args))
	for i, a := range server.Args {
		args[i] = tomlString(a)
	}
	b.WriteString(begin + nl + "[" + strings.Join(table, ".") + "]" + nl +
		"command = " + tomlString(server.Command) + nl + "args = [" + strings.Join(args, ", ") + "]" + nl + tomlEnd + nl)
	out := []byte(b.String())
	after, err := parseTOML(out)
	if err != nil {
		return nil, fmt.Errorf("a table cannot be put behind what is there: %w", err)
	}
	want := map[string]any{"command": server.Command, "args": anys(server.Args)}
	if !reflect.DeepEqual(without(after, table, want), without(before, table, nil)) {
		return nil, errors.New("a table cannot be put behind what is there without changing it")
	}
	return out, nil
}

// tomlServer is a server as Codex has it.
type tomlServer struct {
	Command string
	Args    []string
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// without is a decoded file without a table, if that is what is wanted of it, and
// without what only holds that.
func without(file map[string]any, table []string, want map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range file {
		if name != table[0] {
			out[name] = v
			continue
		}
		m, ok := v.(map[string]any)
		switch {
		case !ok:
			out[name] = v
		case len(table) == 1:
			if !reflect.DeepEqual(m, want) {
				out[name] = v
			}
		default:
			if rest := without(m, table[1:], want); len(rest) > 0 {
				out[name] = rest
			}
		}
	}
	return out
}

// serverIn finds a server in a decoded file.
func serverIn(file map[string]any, table []string) (tomlServer, bool) {
	for i, name := range table {
		m, ok := file[name].(map[string]any)
		if !ok {
			_, there := file[name]
			return tomlServer{}, there && i == len(table)-1
		}
		file = m
	}
	s := tomlServer{}
	s.Command, _ = file["command"].(string)
	list, _ := file["args"].([]any)
	for _, v := range list {
		text, _ := v.(string)
		s.Args = append(s.Args, text)
	}
	return s, true
}

// tomlString is a basic string. Everything but plain characters is escaped.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
