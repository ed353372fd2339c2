package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Status is what a client's files say of the memory.
type Status struct {
	Client    string   `json:"client"`
	Title     string   `json:"title"`
	Project   bool     `json:"project"`             // of the repository's files, not the user's
	Installed bool     `json:"installed"`           // its folder is there
	File      string   `json:"file"`                // where its servers stand
	Problem   string   `json:"problem,omitempty"`   // a file that cannot be read
	Command   string   `json:"command,omitempty"`   // of the server; empty when it is not set up
	Args      []string `json:"args,omitempty"`      // likewise
	HookFile  string   `json:"hook_file,omitempty"` // where its hooks stand; empty when it has none
	Hooks     []string `json:"hooks,omitempty"`     // those that are set up, as loci hook calls them
	HookPaths []string `json:"-"`                   // the programs that they start
	Missing   []string `json:"missing,omitempty"`   // those that are not, where some are
}

// Look reads a client's files; ok is false when it has none of that kind.
func (c *Client) Look(e *Env, project bool) (s Status, ok bool) {
	s = Status{Client: c.Name, Title: c.Title, Project: project}
	if project && e.Project == "" {
		return s, false
	}
	if s.File, s.HookFile = c.Files(e, project); !filepath.IsAbs(s.File) {
		return s, false
	}
	s.Installed = c.installed(e, &s)
	if err := c.lookServer(&s); err != nil {
		s.Problem = s.File + ": " + err.Error()
		return s, true
	}
	if s.HookFile == "" {
		return s, true
	}
	if err := c.lookHooks(&s); err != nil {
		s.Problem = s.HookFile + ": " + err.Error()
	}
	return s, true
}

// installed says whether the client has been here: its folder is there, which is
// not the home folder or that of the repository.
func (c *Client) installed(e *Env, s *Status) bool {
	for _, file := range []string{s.File, s.HookFile} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err == nil {
			return true
		}
		dir := filepath.Dir(file)
		if dir == e.Home || dir == e.Project || dir == e.Config {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

func (c *Client) lookServer(s *Status) error {
	mode := os.FileMode(0)
	_, raw, exists, err := read(s.File, &mode)
	if err != nil || !exists {
		return err
	}
	if c.form == formTOML {
		file, err := parseTOML(raw)
		if err != nil {
			return err
		}
		if have, ok := serverIn(file, append(slices.Clone(c.under), ServerName)); ok {
			s.Command, s.Args = have.Command, have.Args
		}
		return nil
	}
	f, err := parseJSON(raw, exists)
	if err != nil {
		return err
	}
	v, err := f.at(append(slices.Clone(c.under), ServerName)...)
	if err != nil || v == nil {
		return err
	}
	if have, ok := c.serverOf(v); ok {
		s.Command, s.Args = have.Command, have.Args
	}
	return nil
}

func (c *Client) lookHooks(s *Status) error {
	mode := os.FileMode(0)
	_, raw, exists, err := read(s.HookFile, &mode)
	if err != nil || !exists {
		return err
	}
	f, err := parseJSON(raw, exists)
	if err != nil {
		return err
	}
	for _, h := range c.hooks {
		v, err := f.at("hooks", h.event)
		if err != nil {
			return err
		}
		found := false
		if v != nil {
			list, _, _ := items(v)
			for i := range list {
				for _, line := range linesOf(list[i].value) {
					if c.ourHook(line) {
						found = true
						head, _, _ := strings.Cut(line, hookWord)
						s.HookPaths = append(s.HookPaths, strings.Trim(head, `"'`))
					}
				}
			}
		}
		if found {
			s.Hooks = append(s.Hooks, h.name)
		} else {
			s.Missing = append(s.Missing, h.name)
		}
	}
	if len(s.Hooks) == 0 {
		s.Missing = nil
	}
	return nil
}

// Snippet is what a person would paste into the client's file of servers.
func (c *Client) Snippet(s Server) (string, error) {
	if c.form == formTOML {
		out, err := addTOML(nil, append(slices.Clone(c.under), ServerName), tomlServer(s))
		return string(out), err
	}
	f, err := parseJSON(nil, false)
	if err != nil {
		return "", err
	}
	if err := f.put(c.under, ServerName, c.entry(s)); err != nil {
		return "", err
	}
	return string(f.bytes()), nil
}
