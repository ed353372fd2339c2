package setup

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ServerName is the name under which a client has the memory.
const ServerName = "loci"

// edit changes the bytes of a file; nil means that the file is not there, or goes.
type edit func(raw []byte, exists bool) ([]byte, error)

// addServer gives a client the server.
func (c *Client) addServer(s Server) edit {
	if c.form == formTOML {
		return func(raw []byte, _ bool) ([]byte, error) {
			rest, ours, err := cutTOML(raw)
			if err != nil {
				return nil, err
			}
			file, err := parseTOML(rest)
			if err != nil {
				return nil, err
			}
			table := append(slices.Clone(c.under), ServerName)
			if have, ok := serverIn(file, table); ok {
				if have.Command == s.Command && slices.Contains(have.Args, s.Args[0]) {
					return raw, nil
				}
				return nil, fmt.Errorf("there is a server named %s that setup did not write; take it out, or set the path in it to %s", ServerName, s.Command)
			}
			s := tomlServer(s)
			if ours {
				if whole, err := parseTOML(raw); err == nil {
					if have, ok := serverIn(whole, table); ok && keeps(have.Args, s.Args) {
						if have.Command == s.Command {
							return raw, nil
						}
						s.Args = have.Args
					}
				}
			}
			return addTOML(rest, table, s)
		}
	}
	return func(raw []byte, exists bool) ([]byte, error) {
		f, err := parseJSON(raw, exists)
		if err != nil {
			return nil, err
		}
		have, err := f.at(append(slices.Clone(c.under), ServerName)...)
		if err != nil {
			return nil, err
		}
		if have == nil {
			if err := f.put(c.under, ServerName, c.entry(s)); err != nil {
				return nil, err
			}
			return f.bytes(), nil
		}
		now, ok := c.serverOf(have)
		if !ok || !isLoci(now.Command) {
			return nil, fmt.Errorf("there is a server named %s that is not this program; take it out or give it another name", ServerName)
		}
		if now.Command == s.Command && keeps(now.Args, s.Args) {
			return raw, nil
		}
		if err := c.renew(f, have, now, s); err != nil {
			return nil, err
		}
		return f.bytes(), nil
	}
}

// keeps says whether the arguments that stand there do what is wanted: a person may
// have added some.
func keeps(have, want []string) bool {
	at := 0
	for _, arg := range have {
		if at < len(want) && arg == want[at] {
			at++
		}
	}
	return at == len(want)
}

// renew brings a server that is there up to date and keeps what a person added.
func (c *Client) renew(f *jsonFile, have *hujson.Value, now, s Server) error {
	args := s.Args
	if keeps(now.Args, s.Args) {
		args = now.Args
	}
	command := any(s.Command)
	if c.form == formOpenCode {
		command = append([]string{s.Command}, args...)
	}
	for _, field := range []struct {
		name  string
		value any
	}{{"command", command}, {"args", args}} {
		if field.name == "args" && c.form == formOpenCode {
			continue
		}
		v, err := f.at(append(slices.Clone(c.under), ServerName, field.name)...)
		switch {
		case err != nil:
			return err
		case v == nil:
			err = f.put(append(slices.Clone(c.under), ServerName), field.name, field.value)
		case !same(v, field.value):
			err = f.replace(v, field.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// serverOf reads a server out of a client's file.
func (c *Client) serverOf(v *hujson.Value) (Server, bool) {
	raw, err := standard(v)
	m, ok := raw.(map[string]any)
	if err != nil || !ok {
		return Server{}, false
	}
	words := func(v any) []string {
		var out []string
		list, _ := v.([]any)
		for _, w := range list {
			text, _ := w.(string)
			out = append(out, text)
		}
		return out
	}
	if c.form == formOpenCode {
		all := words(m["command"])
		if len(all) == 0 {
			return Server{}, false
		}
		return Server{all[0], all[1:]}, true
	}
	command, ok := m["command"].(string)
	return Server{command, words(m["args"])}, ok
}

// isLoci says whether a command is this program, wherever it lies.
func isLoci(command string) bool {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	return strings.TrimSuffix(name, ".exe") == ServerName
}

// removeServer takes it out again.
func (c *Client) removeServer() edit {
	if c.form == formTOML {
		return func(raw []byte, exists bool) ([]byte, error) {
			if _, err := parseTOML(raw); err != nil {
				return nil, err
			}
			rest, ours, err := cutTOML(raw)
			if err != nil || !ours {
				return raw, err
			}
			if _, err := parseTOML(rest); err != nil {
				return nil, errors.New("without the block that setup wrote it is no TOML")
			}
			if len(rest) == 0 && exists {
				return nil, nil
			}
			return rest, nil
		}
	}
	return c.jsonRemoval(func(f *jsonFile) error {
		_, err := f.take(c.under, func(name string, v *hujson.Value) bool {
			s, ok := c.serverOf(v)
			return name == ServerName && ok && isLoci(s.Command)
		})
		return err
	})
}

func (c *Client) jsonRemoval(take func(*jsonFile) error) edit {
	return func(raw []byte, exists bool) ([]byte, error) {
		if !exists || len(bytes.TrimSpace(raw)) == 0 {
			return raw, nil
		}
		f, err := parseJSON(raw, exists)
		if err != nil {
			return nil, err
		}
		before := f.src
		if err := take(f); err != nil {
			return nil, err
		}
		if bytes.Equal(before, f.src) {
			return raw, nil
		}
		return f.bytes(), nil
	}
}

// hookEntry is a hook as clients have it.
type hookEntry struct {
	Hooks []hookCommand `json:"hooks"`
}

type hookCommand struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// Shell quotes a word for the shell that a client runs hooks with.
func Shell(os, word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+@:,=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	if os == "windows" {
		return `"` + word + `"` // a path holds no quotation mark there
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// hookLine is the command line of a hook.
func (c *Client) hookLine(os string, s Server, h hook, flags []string) string {
	words := append([]string{s.Command, "hook", h.name, "--client", c.Name}, flags...)
	for i, w := range words {
		words[i] = Shell(os, w)
	}
	return strings.Join(words, " ")
}

// renewed is the command line of a hook that is there, brought up to date: what a
// person added stays, as it does at the server, so that both keep to one memory.
func renewed(have, want string) string {
	_, now, _ := strings.Cut(have, hookWord)
	head, tail, _ := strings.Cut(want, hookWord)
	if keeps(strings.Fields(now), strings.Fields(tail)) {
		tail = now
	}
	return head + hookWord + tail
}

// hookWord parts the program of a hook from its arguments.
const hookWord = " hook "

// ourHook says whether a command line is a hook that setup wrote.
func (c *Client) ourHook(line string) bool {
	head, tail, ok := strings.Cut(line, hookWord)
	if !ok || !strings.Contains(" "+tail+" ", " --client "+c.Name+" ") {
		return false
	}
	return isLoci(strings.Trim(head, `"'`))
}

// linesOf are the command lines of a group of hooks.
func linesOf(v *hujson.Value) []string {
	raw, err := standard(v)
	m, _ := raw.(map[string]any)
	if err != nil || m == nil {
		return nil
	}
	var out []string
	list, _ := m["hooks"].([]any)
	for _, one := range list {
		h, _ := one.(map[string]any)
		line, _ := h["command"].(string)
		out = append(out, line)
	}
	return out
}

// isOurs says whether a group holds nothing but a hook of setup's.
func (c *Client) isOurs(v *hujson.Value) bool {
	lines := linesOf(v)
	return len(lines) == 1 && c.ourHook(lines[0])
}

// addHooks gives a client its hooks.
func (c *Client) addHooks(os string, s Server, flags []string) edit {
	return func(raw []byte, exists bool) ([]byte, error) {
		f, err := parseJSON(raw, exists)
		if err != nil {
			return nil, err
		}
		before := f.src
		for _, h := range c.hooks {
			timeout := h.seconds
			if c.millis {
				timeout *= 1000
			}
			want := hookEntry{[]hookCommand{{"command", c.hookLine(os, s, h, flags), timeout}}}
			v, err := f.at("hooks", h.event)
			if err != nil {
				return nil, err
			}
			var have *hujson.Value
			if v != nil {
				list, _, _ := items(v)
				for i := range list {
					if c.isOurs(list[i].value) {
						have = list[i].value
						break
					}
				}
			}
			line := &want.Hooks[0].Command
			if have != nil {
				*line = renewed(linesOf(have)[0], *line)
			}
			switch {
			case have == nil:
				err = f.put([]string{"hooks", h.event}, "", want)
			case linesOf(have)[0] != *line:
				err = f.replace(have, want)
			}
			if err != nil {
				return nil, err
			}
		}
		if bytes.Equal(before, f.src) {
			return raw, nil
		}
		return f.bytes(), nil
	}
}

// removeHooks takes them out again.
func (c *Client) removeHooks() edit {
	return c.jsonRemoval(func(f *jsonFile) error {
		for _, h := range slices.Backward(c.hooks) { // what came last goes first
			if _, err := f.take([]string{"hooks", h.event}, func(_ string, v *hujson.Value) bool { return c.isOurs(v) }); err != nil {
				return err
			}
		}
		return nil
	})
}
