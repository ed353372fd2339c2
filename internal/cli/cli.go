// Package cli is the command line. Its commands are derived from the operation
// table; it alone, with package main, reads the environment.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
	"github.com/spf13/cobra"
)

// Deps is what a command line needs from outside. The zero value of each field
// is the real thing, except for Serve, without which there is no serve command,
// and Model.
type Deps struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	LookupEnv      func(string) (string, bool)
	HomeDir        func() (string, error)
	// WorkDir is the working folder, whose repository names the namespace where
	// nobody else does.
	WorkDir func() (string, error)
	Version Version
	// Executable is this program's own path.
	Executable func() (string, error)
	// LintTools says what in the tools that models are offered some client would
	// refuse; nil when the program has no tools for models.
	LintTools func() error
	// Open opens a data directory; nil is loci.Open.
	Open func(ctx context.Context, dir string, opts *loci.Options) (*loci.DB, error)
	// Model opens a model that ships with the program, "builtin" or "static", to
	// run on so many threads; nil means that there are none.
	Model func(name string, threads int) (*Model, error)
	// Serve answers HTTP until ctx ends.
	Serve func(ctx context.Context, cfg ServeConfig) error
	// Extra makes further commands. A command reaches settings, store and
	// output through the App; its RunE runs after the settings are known, so it
	// must not have a PersistentPreRun of its own.
	Extra []func(*App) *cobra.Command
}

// Version says what was built.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Time     string `json:"time,omitempty"`     // of that revision, RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// App is one run of the command line.
type App struct {
	deps     Deps
	root     *cobra.Command
	flags    rootFlags
	settings settings
	running  bool // a command's own code has begun
}

// Run runs a command line and gives the exit code.
func Run(ctx context.Context, deps Deps) (code int) {
	a := newApp(deps)
	defer func() {
		// Go's own exit code for a panic would read as a wrong command line.
		if p := recover(); p != nil {
			a.printError(fmt.Errorf("this is a mistake in loci: %v\n%s", p, debug.Stack()))
			code = op.ExitFailed
		}
	}()
	err := a.root.ExecuteContext(ctx)
	if err != nil {
		a.printError(err)
	}
	return a.exitCode(err)
}

// New makes the command tree without running it, for generated documentation.
func New(deps Deps) *cobra.Command { return newApp(deps).root }

func newApp(deps Deps) *App {
	if deps.Stdin == nil {
		deps.Stdin = os.Stdin
	}
	if deps.Stdout == nil {
		deps.Stdout = os.Stdout
	}
	if deps.Stderr == nil {
		deps.Stderr = os.Stderr
	}
	if deps.LookupEnv == nil {
		deps.LookupEnv = os.LookupEnv
	}
	if deps.HomeDir == nil {
		deps.HomeDir = os.UserHomeDir
	}
	if deps.Executable == nil {
		deps.Executable = os.Executable
	}
	if deps.WorkDir == nil {
		deps.WorkDir = os.Getwd
	}
	if deps.Open == nil {
		deps.Open = loci.Open
	}
	a := &App{deps: deps}
	a.root = a.rootCommand()
	return a
}

func (a *App) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "loci",
		Short: "A memory for AI agents",
		Long: `Loci keeps what an agent learns and finds it again, in Chinese and English,
offline and without set-up.

  loci remember "The tide table is updated weekly."
  loci recall "tide table"`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	args := a.deps.Args
	if args == nil {
		args = []string{} // nil would make cobra look at the process's own
	}
	root.SetArgs(args)
	root.SetIn(a.deps.Stdin)
	root.SetOut(a.deps.Stdout)
	root.SetErr(a.deps.Stderr)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := a.loadSettings(cmd)
		if needsNoSettings(cmd) {
			return nil
		}
		return err
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{err, cmd.CommandPath()}
	})
	a.addRootFlags(root)

	root.AddGroup(
		&cobra.Group{ID: groupEveryday, Title: "Everyday commands:"},
		&cobra.Group{ID: groupStore, Title: "Operations:"},
		&cobra.Group{ID: groupTools, Title: "Tools:"},
	)
	a.addOperations(root)
	a.addWatch(root)
	a.addSwitches(root)
	for _, cmd := range append([]*cobra.Command{
		a.callCommand(), a.schemaCommand(), a.doctorCommand(), a.configCommand(), a.whereCommand(), a.setupCommand(), a.hookCommand(), a.versionCommand(), a.manCommand(),
	}, a.transferCommands()...) {
		cmd.GroupID = groupTools
		root.AddCommand(cmd)
	}
	if a.deps.Serve != nil {
		for _, cmd := range []*cobra.Command{a.serveCommand(), a.tokenCommand()} {
			cmd.GroupID = groupTools
			root.AddCommand(cmd)
		}
	}
	for _, extra := range a.deps.Extra {
		cmd := extra(a)
		if cmd.GroupID == "" {
			cmd.GroupID = groupTools
		}
		root.AddCommand(cmd)
	}
	root.SetHelpCommandGroupID(groupTools)
	root.SetCompletionCommandGroupID(groupTools)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	a.finish(root)
	return root
}

// needsNoSettings names the commands that a broken configuration must not stop.
func needsNoSettings(cmd *cobra.Command) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		switch cmd.Name() {
		case "help", "completion", "version", "hook", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return true
		}
	}
	return false
}

// finish prepares every command: a bare group shows its help and refuses what
// it does not know, and a leaf notes that its own code has begun, which tells a
// wrong command line from a failure.
func (a *App) finish(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.finish(sub)
	}
	if !cmd.Runnable() && cmd.HasSubCommands() {
		cmd.DisableFlagsInUseLine = true
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			msg := "there is no command " + quote(args[0]) + " here"
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			if near := op.Closest(args[0], names); near != "" {
				msg += "; did you mean " + near + "?"
			}
			return usageError{errors.New(msg), cmd.CommandPath()}
		}
		return
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.running = true
			return run(cmd, args)
		}
	}
}

// Stdin is the standard input.
func (a *App) Stdin() io.Reader { return a.deps.Stdin }

// Stdout is where results go, and with --json nothing but one JSON document.
func (a *App) Stdout() io.Writer { return a.deps.Stdout }

// Stderr is where notes and progress go.
func (a *App) Stderr() io.Writer { return a.deps.Stderr }

// JSON says whether results are for programs.
func (a *App) JSON() bool { return a.settings.json() }

// Quiet says whether notes and progress are unwanted.
func (a *App) Quiet() bool { return a.settings.quiet() }

// Color says whether text on standard output should be coloured.
func (a *App) Color() bool { return a.painter(a.deps.Stdout).color }

// Timeout is how long one operation may take; 0 is for ever.
func (a *App) Timeout() time.Duration { return a.settings.duration("timeout") }

// Log is a logger to standard error, silent with --quiet.
func (a *App) Log() *slog.Logger {
	if a.Quiet() {
		return slog.New(slog.DiscardHandler)
	}
	if a.JSON() {
		return slog.New(slog.NewJSONHandler(a.deps.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(a.deps.Stderr, nil))
}

// Open opens the store itself, for a command that needs more than its operations.
// When another process holds it, it waits as long as the settings allow, since
// most commands hold it for an instant only, and then says which one to end.
// Without waitForIndex a store whose index is unusable opens at once and searches
// are degraded. No vectors are made in the background, which would only hold up
// the program's end. Other processes can attach meanwhile, unless that is turned
// off; DB is the store, never nil.
func (a *App) Open(ctx context.Context, waitForIndex bool) (*local.Memory, error) {
	o := a.localOptions(&loci.Options{WaitForIndex: waitForIndex, NoBackgroundEmbedding: true})
	o.NoAttach = true
	m, err := a.openAs(ctx, o)
	if err != nil {
		return nil, err
	}
	return m.Memory, nil
}

// Call runs one operation, with the models that it needs, on the memory, which
// this process holds meanwhile or another one does, and shows the result. What
// was written gets its vectors after the result is shown.
func (a *App) Call(ctx context.Context, name string, raw []byte) (err error) {
	o, ok := op.Default().Lookup(name)
	if !ok {
		return op.Default().Unknown(name)
	}
	if err := o.Check(raw); err != nil {
		return err // before a store is made for nothing
	}
	ctx, cancel, err := a.limit(ctx, o)
	if err != nil {
		return err
	}
	defer cancel()
	m, err := a.open(ctx, true)
	if err != nil {
		return errs.WithOp(name, err)
	}
	defer func() { err = first(errors.Join(err, m.Close())) }()
	out, err := m.run(ctx, a, o, raw)
	if err != nil {
		return err
	}
	if err := a.printResult(o.Name, out); err != nil {
		return err
	}
	if name == "notes.sync_dir" {
		if err := a.noteNotes(ctx, m, raw); err != nil {
			return err
		}
	}
	return m.settle(ctx, a, writesText(name) || agentPending(o, out))
}

// WithTimeout puts the --timeout in force on ctx.
func (a *App) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if d := a.Timeout(); d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}

// The groups of commands in the root's help.
const (
	groupEveryday = "everyday"
	groupStore    = "store"
	groupTools    = "tools"
)
