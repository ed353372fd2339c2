package setup

import (
	"path/filepath"
	"slices"
)

// Env is what setup has to know of the machine and its user. The package reads no
// environment by itself.
type Env struct {
	OS      string // as runtime.GOOS has it
	Home    string // the user's home folder; "" is an error wherever it is needed
	Config  string // the user's configuration folder: XDG_CONFIG_HOME, APPDATA or what stands for it
	Codex   string // CODEX_HOME; "" for the default
	Claude  string // CLAUDE_CONFIG_DIR; "" for the default
	Project string // the root of the repository; "" outside of one
}

// Server is the command that a client is to start.
type Server struct {
	Command string   // the program's absolute path
	Args    []string // such as "mcp"
}

// form is how a client writes a server down.
type form int

const (
	formPlain    form = iota // {"command": ..., "args": [...]}
	formTyped                // with "type": "stdio"
	formZed                  // with "source": "custom"
	formOpenCode             // {"type": "local", "command": [...], "enabled": true}
	formTOML                 // a table of TOML
)

// Client is a program that setup knows.
type Client struct {
	Name  string // as it is typed
	Title string
	form  form
	under []string // where servers stand in the file
	// user and project give the files; "" where there is none.
	user, project           func(*Env) string
	userHooks, projectHooks func(*Env) string
	hooks                   []hook
	millis                  bool   // its hooks count time in milliseconds
	Note                    string // what a person has to do besides
}

// hook is an event of a client that setup listens to.
type hook struct {
	event   string // as the client calls it
	name    string // as loci hook calls it
	seconds int
}

// The lengths of time that clients give a hook, in seconds. A hook ends by itself
// long before.
const (
	quickHook = 10
	slowHook  = 30
)

func inHome(parts ...string) func(*Env) string {
	return func(e *Env) string { return filepath.Join(append([]string{e.Home}, parts...)...) }
}

func inProject(parts ...string) func(*Env) string {
	return func(e *Env) string { return filepath.Join(append([]string{e.Project}, parts...)...) }
}

// inApp is a file of a program that keeps its settings where its system wants them.
func inApp(parts ...string) func(*Env) string {
	return func(e *Env) string {
		if e.OS == "darwin" {
			return filepath.Join(append([]string{e.Home, "Library", "Application Support"}, parts...)...)
		}
		return filepath.Join(append([]string{e.Config}, parts...)...)
	}
}

func none(*Env) string { return "" }

// Clients are the programs that setup knows, in the order of their names.
func Clients() []Client {
	claudeHooks := []hook{
		{"SessionStart", "session-start", quickHook}, {"UserPromptSubmit", "prompt", quickHook},
		{"Stop", "stop", slowHook}, {"PreCompact", "pre-compact", slowHook}, {"SessionEnd", "session-end", slowHook},
	}
	claude := func(plain, file string) func(*Env) string {
		return func(e *Env) string {
			if e.Claude != "" {
				return filepath.Join(e.Claude, file)
			}
			return filepath.Join(e.Home, filepath.FromSlash(plain))
		}
	}
	codex := func(file string) func(*Env) string {
		return func(e *Env) string {
			if e.Codex != "" {
				return filepath.Join(e.Codex, file)
			}
			return filepath.Join(e.Home, ".codex", file)
		}
	}
	zed := func(e *Env) string {
		if e.OS == "windows" {
			return filepath.Join(e.Config, "Zed", "settings.json")
		}
		if e.OS == "darwin" {
			return filepath.Join(e.Home, ".config", "zed", "settings.json")
		}
		return filepath.Join(e.Config, "zed", "settings.json")
	}
	opencode := func(e *Env) string {
		if e.OS == "linux" {
			return filepath.Join(e.Config, "opencode", "opencode.json")
		}
		return filepath.Join(e.Home, ".config", "opencode", "opencode.json")
	}
	return []Client{
		{
			Name: "claude", Title: "Claude Code", form: formTyped, under: []string{"mcpServers"},
			user: claude(".claude.json", ".claude.json"), project: inProject(".mcp.json"),
			userHooks: claude(".claude/settings.json", "settings.json"), projectHooks: inProject(".claude", "settings.local.json"),
			hooks: claudeHooks,
		},
		{
			Name: "claude-desktop", Title: "Claude Desktop", under: []string{"mcpServers"},
			user: inApp("Claude", "claude_desktop_config.json"), project: none,
			Note: "Quit Claude Desktop and start it again.",
		},
		{
			Name: "codex", Title: "Codex", form: formTOML, under: []string{"mcp_servers"},
			user: codex("config.toml"), project: inProject(".codex", "config.toml"),
			userHooks: codex("hooks.json"), projectHooks: inProject(".codex", "hooks.json"),
			hooks: []hook{{"SessionStart", "session-start", quickHook}, {"UserPromptSubmit", "prompt", quickHook}, {"Stop", "stop", slowHook}},
			Note:  "Codex asks once whether it may run new hooks; versions before they were on by default need codex_hooks = true under [features].",
		},
		{
			Name: "cursor", Title: "Cursor", under: []string{"mcpServers"},
			user: inHome(".cursor", "mcp.json"), project: inProject(".cursor", "mcp.json"),
		},
		{
			Name: "gemini", Title: "Gemini CLI", under: []string{"mcpServers"},
			user: inHome(".gemini", "settings.json"), project: inProject(".gemini", "settings.json"),
			userHooks: inHome(".gemini", "settings.json"), projectHooks: inProject(".gemini", "settings.json"),
			hooks: []hook{
				{"SessionStart", "session-start", quickHook}, {"BeforeAgent", "prompt", quickHook}, {"AfterAgent", "stop", slowHook},
			},
			millis: true,
		},
		{
			Name: "opencode", Title: "opencode", form: formOpenCode, under: []string{"mcp"},
			user: opencode, project: inProject("opencode.json"),
		},
		{
			Name: "vscode", Title: "Visual Studio Code", form: formTyped, under: []string{"servers"},
			user: inApp("Code", "User", "mcp.json"), project: inProject(".vscode", "mcp.json"),
		},
		{
			Name: "windsurf", Title: "Windsurf", under: []string{"mcpServers"},
			user: inHome(".codeium", "windsurf", "mcp_config.json"), project: none,
		},
		{
			Name: "zed", Title: "Zed", form: formZed, under: []string{"context_servers"},
			user: zed, project: inProject(".zed", "settings.json"),
		},
	}
}

// Lookup finds a client by its name.
func Lookup(name string) (Client, bool) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// HasHooks says whether the client has events that setup listens to.
func (c *Client) HasHooks() bool { return len(c.hooks) > 0 }

// Files gives the file of servers and that of hooks, "" for none of them. The two
// may be the same.
func (c *Client) Files(e *Env, project bool) (servers, hooks string) {
	if project {
		servers = c.project(e)
		if c.projectHooks != nil {
			hooks = c.projectHooks(e)
		}
		return servers, hooks
	}
	if c.userHooks != nil {
		hooks = c.userHooks(e)
	}
	return c.user(e), hooks
}

// entry is a server as the client has it in JSON: the keys in an order.
func (c *Client) entry(s Server) any {
	type plain struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	switch c.form {
	case formTyped:
		return struct {
			Type string `json:"type"`
			plain
		}{"stdio", plain(s)}
	case formZed:
		return struct {
			Source string `json:"source"`
			plain
		}{"custom", plain(s)}
	case formOpenCode:
		return struct {
			Type    string   `json:"type"`
			Command []string `json:"command"`
			Enabled bool     `json:"enabled"`
		}{"local", append([]string{s.Command}, s.Args...), true}
	}
	return plain(s)
}
