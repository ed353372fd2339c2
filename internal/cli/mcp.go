package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
	"github.com/spf13/cobra"
)

// MCPConfig is what the mcp command asks of a server.
type MCPConfig struct {
	Caller       op.Caller
	Version      string
	Log          *slog.Logger
	Namespace    string
	Scopes       []string // of records
	Context      []string // the scope of the context window; empty is the namespace
	AnyNamespace bool
	AllTools     bool
	Budget       int // tokens of an answer; 0 is the server's default
	NoRedact     bool
	Timeout      time.Duration // for one call; 0 is the server's default
	Answered     func()        // called when the client has its first answer
}

// The values of --tools.
const (
	toolsFew = "few"
	toolsAll = "all"
)

// MCPCommand makes the command that serves models on standard input and output.
func (a *App) MCPCommand(serve func(ctx context.Context, cfg MCPConfig, in io.Reader, out io.Writer) error) *cobra.Command {
	var tools string
	var cfg MCPConfig
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve a model's client over standard input and output (MCP)",
		Long: `Speaks the Model Context Protocol with one client, which starts it and ends it by
closing standard input. Clients are set up by hand like this:

  claude mcp add loci -- loci mcp
  {"mcpServers": {"loci": {"command": "loci", "args": ["mcp"]}}}

The tools work in the namespace in force; what lies in another one is as if it
were not there, unless --any-namespace lets the model name one. --scope says
whose context window vctx manages, as for loci context: a namespace, with a
session below it if you like. LOCI_SCOPE is the scope of records.

What looks like a secret is taken out of what is written. --tools all shows every
operation as a tool of its own, administration included: for programs, and for
models that you trust with everything.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch tools {
			case toolsFew, toolsAll:
				cfg.AllTools = tools == toolsAll
			default:
				return usageError{fmt.Errorf("--tools is %s or %s, not %s", toolsFew, toolsAll, quote(tools)), cmd.CommandPath()}
			}
			if err := a.mcpHome(&cfg); err != nil {
				return err
			}
			memory := newLateMemory(cmd.Context(), func(ctx context.Context) (*local.Memory, error) {
				m, err := a.shared(ctx, nil)
				if err != nil && ctx.Err() == nil { // the model is told in short; this is for who looks into the client's log
					a.Log().Error("the memory cannot be opened", "err", err)
				}
				return m, err
			})
			defer func() { err = errors.Join(err, memory.Close()) }()
			cfg.Caller, cfg.Version, cfg.Log, cfg.Timeout, cfg.Answered = memory, a.deps.Version.Version, a.Log(), a.Timeout(), memory.prepare
			return serve(cmd.Context(), cfg, a.deps.Stdin, a.deps.Stdout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&tools, "tools", toolsFew, "which `tools`: few, for a model to choose from, or all, one for each operation")
	f.IntVar(&cfg.Budget, "budget", 0, "about how many `tokens` an answer may have (default 2000)")
	f.BoolVar(&cfg.AnyNamespace, "any-namespace", false, "let the model name the namespace it works in")
	f.BoolVar(&cfg.NoRedact, "no-redact", false, "store what looks like a secret as it is")
	return cmd
}

// mcpHome finds the namespace, the scope of records and that of the context. A
// --scope on the command line is the context's, as it is for loci context.
func (a *App) mcpHome(cfg *MCPConfig) error {
	_, typed := a.settings.given("namespace")
	cfg.Namespace = a.settings.get("namespace").Value
	if _, flag := a.settings.given("scope"); !flag {
		cfg.Scopes = []string{a.settings.get("scope").Value}
		return nil
	}
	scope, err := contextScope(a.flags.scopes)
	if err != nil {
		return err
	}
	if len(scope) > 0 && !typed {
		cfg.Namespace = scope[0]
	}
	cfg.Context = scope
	return nil
}

// lateMemory is a memory that is opened in the background, once the client has its
// first answer, which it wants before anything is loaded. A call waits until it is open. When that
// failed, the next call tries again.
type lateMemory struct {
	ctx    context.Context
	cancel context.CancelFunc
	open   func(context.Context) (*local.Memory, error)

	mu     sync.Mutex
	now    *opening
	closed bool
}

// opening is one try to open the memory.
type opening struct {
	done   chan struct{}
	memory *local.Memory
	err    error
}

func (o *opening) failed() bool {
	select {
	case <-o.done:
		return o.err != nil
	default:
		return false
	}
}

func newLateMemory(ctx context.Context, open func(context.Context) (*local.Memory, error)) *lateMemory {
	m := &lateMemory{open: open}
	m.ctx, m.cancel = context.WithCancel(ctx)
	return m
}

// prepare begins to open, so that the first call need not wait for all of it.
func (m *lateMemory) prepare() {
	// The error is that the server is ending.
	_, _ = m.current()
}

// begin begins to open. The caller holds mu.
func (m *lateMemory) begin() {
	o := &opening{done: make(chan struct{})}
	m.now = o
	go func() {
		defer close(o.done)
		o.memory, o.err = m.open(m.ctx)
	}()
}

// Call implements op.Caller.
func (m *lateMemory) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	o, err := m.current()
	if err != nil {
		return nil, errs.WithOp(name, err)
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		return nil, errs.WithOp(name, errs.Wrap(errs.Canceled, ctx.Err(), "stopped while the memory was being opened"))
	}
	if o.err != nil {
		return nil, errs.WithOp(name, o.err)
	}
	return o.memory.Call(ctx, name, raw)
}

// current is the try that counts: the one that runs or has succeeded, or a new one.
func (m *lateMemory) current() (*opening, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errs.New(errs.Closed, "the server is ending")
	}
	if m.now == nil || m.now.failed() {
		m.begin()
	}
	return m.now, nil
}

// Close ends a try that runs, and the memory if it is open.
func (m *lateMemory) Close() error {
	m.mu.Lock()
	m.closed = true
	o := m.now
	m.mu.Unlock()
	m.cancel()
	if o == nil {
		return nil
	}
	<-o.done
	if o.memory == nil {
		return nil // whoever called was told why
	}
	return o.memory.Close()
}
