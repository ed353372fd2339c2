package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/setup"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// setupFlags are the flags of loci setup.
type setupFlags struct {
	project, user, dryRun, remove, show, noHooks bool
}

func (a *App) setupCommand() *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "setup [CLIENT...]",
		Short: "Write the memory into the configuration of Claude Code, Codex, Cursor and others",
		Long: `Gives a client the memory as an MCP server, and as hooks where it has those: then
what is remembered comes up by itself, and conversations are kept. Without a client
it lists those that are on this machine and what is set up.

The file's other contents stay as they are, comments included. A copy is kept beside
it, and the difference is shown. Doing it twice is doing it once; --remove takes out
what it wrote.

  loci setup claude
  loci setup cursor vscode --dry-run
  loci setup claude --remove

Clients: ` + wrap(strings.Join(clientNames(), ", "), helpWidth-9) + `.`,
		ValidArgs: clientNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.setup(cmd, args, &f) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.project, "project", false, "in the files of the repository, for it alone")
	fs.BoolVar(&f.user, "user", false, "in the files of the user, for every project (the default)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "show the difference and write nothing")
	fs.BoolVar(&f.remove, "remove", false, "take out what setup wrote")
	fs.BoolVar(&f.show, "print", false, "print what to paste, and look at no file")
	fs.BoolVar(&f.noHooks, "no-hooks", false, "the server alone")
	cmd.MarkFlagsMutuallyExclusive("project", "user")
	cmd.MarkFlagsMutuallyExclusive("print", "remove")
	cmd.MarkFlagsMutuallyExclusive("print", "dry-run")
	return cmd
}

func clientNames() []string {
	var names []string
	for _, c := range setup.Clients() {
		names = append(names, c.Name)
	}
	return names
}

// setupEnv is what setup has to know of the machine.
func (a *App) setupEnv() setup.Env {
	e := setup.Env{OS: runtime.GOOS}
	if home, err := a.deps.HomeDir(); err == nil {
		e.Home = home
	}
	if dir, err := a.baseDir("XDG_CONFIG_HOME", "APPDATA", ".config"); err == nil {
		e.Config = dir
	}
	for name, into := range map[string]*string{"CODEX_HOME": &e.Codex, "CLAUDE_CONFIG_DIR": &e.Claude} {
		if v, ok := a.deps.LookupEnv(name); ok && filepath.IsAbs(v) {
			*into = v
		}
	}
	if dir, err := a.deps.WorkDir(); err == nil {
		if p, ok := a.projectOf(dir); ok {
			e.Project = p.Root
		}
	}
	return e
}

// program is this program's path, as clients are to start it.
func (a *App) program() (string, error) {
	path, err := a.deps.Executable()
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", errs.Wrap(errs.IO, err, "this program does not know where it lies")
	}
	return path, nil
}

// passing says what is wrong with a program that will not be there for long.
func passing(path string) string {
	slashed := filepath.ToSlash(path)
	temp := filepath.ToSlash(filepath.Clean(os.TempDir())) + "/"
	switch {
	case strings.Contains(slashed, "/go-build"):
		return "it was made by go run and goes when that ends"
	case strings.HasPrefix(slashed, temp):
		return "it lies in the folder for temporary files"
	}
	return ""
}

// setupRequest is what is asked of every client.
func (a *App) setupRequest(f *setupFlags) (*setup.Request, error) {
	program, err := a.program()
	if err != nil {
		return nil, err
	}
	r := &setup.Request{
		Env: a.setupEnv(), Project: f.project, NoHooks: f.noHooks, Remove: f.remove,
		Server: setup.Server{Command: program, Args: []string{"mcp"}},
	}
	if data := a.settings.get("data"); data.Source != sourceDefault {
		r.Flags = append(r.Flags, "--data", data.Value)
	}
	if _, typed := a.settings.given("namespace"); typed {
		r.Flags = append(r.Flags, "--namespace", a.settings.get("namespace").Value)
	}
	r.Server.Args = append(r.Server.Args, r.Flags...)
	return r, nil
}

// setupDone is what became of one client.
type setupDone struct {
	Client  string         `json:"client"`
	Title   string         `json:"title"`
	Changed bool           `json:"changed"`
	Changes []setup.Change `json:"changes"`
	Note    string         `json:"note,omitempty"`
}

func (a *App) setup(cmd *cobra.Command, names []string, f *setupFlags) error {
	if len(names) == 0 {
		if f.remove || f.show || f.dryRun {
			return usageError{errors.New("name a client: " + strings.Join(clientNames(), ", ")), cmd.CommandPath()}
		}
		return a.setupList()
	}
	var clients []setup.Client
	for _, name := range names {
		c, ok := setup.Lookup(name)
		if !ok {
			msg := "setup knows no client " + quote(name)
			if near := op.Closest(name, clientNames()); near != "" {
				msg += "; did you mean " + near + "?"
			} else {
				msg += "; it knows " + strings.Join(clientNames(), ", ")
			}
			return usageError{errors.New(msg), cmd.CommandPath()}
		}
		if !slices.ContainsFunc(clients, func(have setup.Client) bool { return have.Name == name }) {
			clients = append(clients, c)
		}
	}
	r, err := a.setupRequest(f)
	if err != nil {
		return err
	}
	if why := passing(r.Server.Command); why != "" && !f.remove {
		a.Note("The program is %s: %s. Install it where it stays, and set it up from there.", r.Server.Command, why)
	}
	if f.show {
		return a.setupPrint(clients, r)
	}
	done, err := a.setupAll(clients, r, f.dryRun)
	if err != nil {
		return err
	}
	return a.Print(map[string]any{"dry_run": f.dryRun, "removed": f.remove, "clients": done}, func(w *Painter) { showSetup(w, done, f) })
}

// setupAll plans everything before it writes anything.
func (a *App) setupAll(clients []setup.Client, r *setup.Request, dry bool) ([]setupDone, error) {
	done := []setupDone{}
	for i := range clients {
		c := &clients[i]
		changes, err := c.Plan(r)
		if err != nil {
			return nil, errs.New(errs.Validation, "%s: %s", c.Title, err)
		}
		d := setupDone{Client: c.Name, Title: c.Title, Changes: changes}
		for _, ch := range changes {
			d.Changed = d.Changed || ch.Changed
		}
		if d.Changed && !r.Remove && (c.HasHooks() && !r.NoHooks || !c.HasHooks()) {
			d.Note = c.Note
		}
		done = append(done, d)
	}
	if dry {
		return done, nil
	}
	for i := range done {
		for j := range done[i].Changes {
			if err := done[i].Changes[j].Apply(time.Now()); err != nil {
				return nil, errs.Wrap(errs.IO, err, "%s", done[i].Title)
			}
		}
	}
	return done, nil
}

func showSetup(w *Painter, done []setupDone, f *setupFlags) {
	for _, d := range done {
		switch {
		case !d.Changed && f.remove:
			w.Line(w.Bold(d.Title) + ": there is nothing of setup's to take out")
			continue
		case !d.Changed:
			w.Line(w.Bold(d.Title) + ": nothing to do, it is set up")
			continue
		case f.dryRun:
			w.Line(w.Bold(d.Title) + ": this would be done")
		case f.remove:
			w.Line(w.Bold(d.Title) + ": taken out")
		default:
			w.Line(w.Bold(d.Title) + ": set up")
		}
		for _, ch := range d.Changes {
			if !ch.Changed {
				continue
			}
			for _, line := range strings.Split(strings.TrimRight(ch.Diff, "\n"), "\n") {
				line = clean(line)
				switch {
				case strings.HasPrefix(line, "+"):
					line = w.Green(line)
				case strings.HasPrefix(line, "-"):
					line = w.Red(line)
				}
				w.Line("  " + line)
			}
			if ch.Backup != "" {
				w.Line("  " + w.Dim("kept as it was: "+ch.Backup))
			}
		}
		if d.Note != "" {
			w.Line("  " + d.Note)
		}
	}
}

// setupPrint shows what to paste where.
func (a *App) setupPrint(clients []setup.Client, r *setup.Request) error {
	type snippet struct {
		Client string `json:"client"`
		File   string `json:"file"`
		Text   string `json:"text"`
	}
	list := []snippet{}
	for i := range clients {
		c := &clients[i]
		text, err := c.Snippet(r.Server)
		if err != nil {
			return errs.Wrap(errs.Storage, err, "%s", c.Title)
		}
		file, _ := c.Files(&r.Env, r.Project)
		list = append(list, snippet{c.Name, file, text})
	}
	return a.Print(map[string]any{"clients": list}, func(w *Painter) {
		for _, s := range list {
			if len(list) > 1 || s.File != "" {
				a.Note("%s", s.File)
			}
			for _, line := range strings.Split(strings.TrimRight(s.Text, "\n"), "\n") {
				w.Line(line)
			}
		}
	})
}

// setupList shows the clients of this machine.
func (a *App) setupList() error {
	e := a.setupEnv()
	list := []setup.Status{}
	for _, c := range setup.Clients() {
		for _, project := range []bool{false, true} {
			if s, ok := c.Look(&e, project); ok && (!project || s.Command != "" || len(s.Hooks) > 0 || s.Problem != "") {
				list = append(list, s)
			}
		}
	}
	if len(list) == 0 {
		return errs.New(errs.IO, "there is no home directory, so the files of the clients cannot be found")
	}
	program, err := a.program()
	if err != nil {
		return err
	}
	return a.Print(map[string]any{"clients": list}, func(w *Painter) {
		rows := [][]string{}
		for _, s := range list {
			state := "not found"
			switch {
			case s.Problem != "":
				state = "cannot be read: " + s.Problem
			case s.Command != "":
				state = "set up"
				if level, text := wrongProgram(s, program); level == levelWarning {
					state += ", but " + text + ": loci setup " + s.Client
				}
			case s.Installed:
				state = "found, not set up: loci setup " + s.Client
			}
			hooks := ""
			switch {
			case s.HookFile == "":
				hooks = "has none"
			case len(s.Hooks) > 0:
				hooks = strings.Join(s.Hooks, ", ")
			case s.Command != "":
				hooks = "none"
			}
			name := s.Client
			if s.Project {
				name += " (this repository)"
			}
			rows = append(rows, []string{name, state, hooks, s.File})
		}
		w.Table([]string{"CLIENT", "STATE", "HOOKS", "FILE"}, rows)
	})
}

// setupHint names a client in a command line.
func setupHint(s setup.Status) string {
	line := "loci setup " + s.Client
	if s.Project {
		line += " --project"
	}
	return fmt.Sprintf("Set it up again with: %s", line)
}
