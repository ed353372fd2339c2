package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/tokens"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// ServeConfig is what the serve command asks of a server.
type ServeConfig struct {
	Addr       string
	Caller     op.Caller
	Log        *slog.Logger
	Version    string
	Tokens     *tokens.Keeper // nil: no token is needed
	Hosts      []string       // further names in the Host header
	Origins    []string       // of pages that may ask
	MaxRunning int            // 0 is the server's default
	Timeout    time.Duration  // for one operation; 0 is the server's default
	MCP        *MCPConfig     // for models over HTTP; nil: none
	Ready      func(url string)
}

// defaultListen is where serve listens unless told otherwise.
const defaultListen = "127.0.0.1:7474"

func (a *App) serveCommand() *cobra.Command {
	var listen, tokenFile, logFormat string
	var hosts, origins []string
	var maxRunning int
	var mcp bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer HTTP",
		Long: `Answers POST /v1/OPERATION until it is stopped, GET /v1/changes as a stream of
what is written, /mcp for models, /openapi.json, /metrics, /healthz and /readyz.
When another loci process holds the data directory, it passes calls on to that one.

  curl -H 'Content-Type: application/json' -d '{"query": "tide"}' http://` + defaultListen + `/v1/recall

Without tokens only this machine is served, and every program on it may do
everything. With --tokens each request but /healthz and /readyz needs one:

  loci token new laptop --tokens tokens.json --grant work:rw
  loci serve --tokens tokens.json

Tokens and memories cross the network as they are: beyond this machine, put a
proxy with TLS before it and name the proxy's host with --allowed-host.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			log, err := a.serveLog(logFormat)
			if err != nil {
				return usageError{err, cmd.CommandPath()}
			}
			if maxRunning < 0 {
				return usageError{errors.New("--max-running must not be negative"), cmd.CommandPath()}
			}
			for _, origin := range origins {
				if scheme, rest, ok := strings.Cut(origin, "://"); !ok || scheme != "http" && scheme != "https" || rest == "" || strings.Contains(rest, "/") {
					return usageError{fmt.Errorf("--allowed-origin %s is no origin; write it as https://app.example", quote(origin)), cmd.CommandPath()}
				}
			}
			cfg := ServeConfig{
				Addr: a.settings.get("listen").Value, Log: log, Version: a.deps.Version.Version,
				Hosts: hosts, Origins: origins, MaxRunning: maxRunning, Timeout: a.Timeout(),
			}
			if a.settings.get("tokens").Value != "" {
				path, err := a.tokenFile()
				if err != nil {
					return err
				}
				if cfg.Tokens, err = tokens.Keep(path); err != nil {
					return err
				}
			}
			m, err := a.shared(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.Close()) }()
			cfg.Caller = m
			if mcp {
				cfg.MCP = &MCPConfig{Caller: m, Version: cfg.Version, Log: log, Timeout: cfg.Timeout}
				if err := a.mcpHome(cfg.MCP); err != nil {
					return err
				}
			}
			cfg.Ready = func(url string) {
				if a.JSON() {
					a.writeJSON(a.deps.Stdout, map[string]string{"url": url, "data": m.Directory()})
					return
				}
				w := a.painter(a.deps.Stdout)
				w.Line("Listening on " + w.Bold(url) + ", data in " + m.Directory())
			}
			return a.deps.Serve(ctx, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "", "`address` to listen on; one that is not of this machine alone needs --tokens (default \""+defaultListen+"\")")
	f.StringVar(&tokenFile, "tokens", "", "`file` of tokens that loci token made; it is read again when it changes")
	f.StringArrayVar(&hosts, "allowed-host", nil, "further `name` to be asked by, such as that of a proxy; repeat it for several")
	f.StringArrayVar(&origins, "allowed-origin", nil, "`origin` of web pages that may ask, such as https://app.example; repeat it for several")
	f.IntVar(&maxRunning, "max-running", 0, "how many `operations` run at once; the others wait a little (default 64)")
	f.StringVar(&logFormat, "log", "", "`form` of the log on standard error: text or json (default \"text\", with --json \"json\")")
	f.BoolVar(&mcp, "mcp", true, "serve models at /mcp")
	return cmd
}

// serveLog is the log in the form asked for.
func (a *App) serveLog(form string) (*slog.Logger, error) {
	switch form {
	case "":
		return a.Log(), nil
	case "text", "json":
	default:
		return nil, fmt.Errorf("--log is text or json, not %s", quote(form))
	}
	if a.Quiet() {
		return slog.New(slog.DiscardHandler), nil
	}
	if form == "json" {
		return slog.New(slog.NewJSONHandler(a.deps.Stderr, nil)), nil
	}
	return slog.New(slog.NewTextHandler(a.deps.Stderr, nil)), nil
}

// tokenFile is the absolute path of the file of tokens in force.
func (a *App) tokenFile() (string, error) {
	v := a.settings.get("tokens").Value
	if v == "" {
		return "", errs.Invalid("--tokens", "name the file of tokens with --tokens, LOCI_TOKENS or tokens in the configuration file")
	}
	path, err := filepath.Abs(v)
	return path, errs.Wrap(errs.IO, err, "the file of tokens")
}

func (a *App) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and remove the tokens of a server",
		Long: `A token says who asks a server and what of the memory is his. The file keeps
only hashes: a token is shown once, when it is made. A server that runs reads the
file again when it changes.`,
	}
	var file string
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "`file` of tokens")
	cmd.AddCommand(a.tokenNew(), a.tokenList(), a.tokenRemove())
	return cmd
}

func (a *App) tokenNew() *cobra.Command {
	var grants []string
	var admin bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token and show it, this once",
		Long: `Makes a token of 256 random bits and adds its hash to the file, which is made if
need be. The name is for people and logs. A grant is NAMESPACE[:SCOPE,SCOPE][:rw]: without scopes it is for all of
them, without rw for reading; "*" is every namespace.

  loci token new laptop --tokens tokens.json --grant work:rw --grant notes
  loci token new operator --tokens tokens.json --grant '*:rw' --admin`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			access := loci.Access{Admin: admin}
			for _, text := range grants {
				g, err := tokens.ParseGrant(text)
				if err != nil {
					return errs.Wrap(errs.Validation, err, "--grant %s", quote(text))
				}
				access.Grants = append(access.Grants, g)
			}
			if len(grants) == 0 && !admin {
				return usageError{errors.New("a token without --grant and --admin may do nothing"), cmd.CommandPath()}
			}
			path, set, err := a.tokenSet(true)
			if err != nil {
				return err
			}
			token, err := set.New(name, access, time.Now())
			if err == nil {
				err = set.Save(path)
			}
			if err != nil {
				return err
			}
			return a.Print(map[string]any{"name": name, "token": token, "file": path}, func(w *Painter) {
				w.Line(token)
				if !a.Quiet() {
					fmt.Fprintf(a.deps.Stderr, "Keep it now: %s holds its hash only. Send it as Authorization: Bearer TOKEN.\n", path)
				}
			})
		},
	}
	cmd.Flags().StringArrayVar(&grants, "grant", nil, "what it may reach; repeat it for several")
	cmd.Flags().BoolVar(&admin, "admin", false, "also what concerns the store as a whole")
	return cmd
}

// tokenSet reads the file of tokens; one that is not there is empty if it may be
// made.
func (a *App) tokenSet(create bool) (string, *tokens.Set, error) {
	path, err := a.tokenFile()
	if err != nil {
		return "", nil, err
	}
	set, err := tokens.Load(path)
	if create && errors.Is(err, fs.ErrNotExist) {
		return path, &tokens.Set{}, nil
	}
	return path, set, err
}

func (a *App) tokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show the tokens by name, and what each may reach",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, set, err := a.tokenSet(false)
			if err != nil {
				return err
			}
			type shown struct {
				Name      string      `json:"name"`
				CreatedAt string      `json:"created_at"`
				Access    loci.Access `json:"access"`
			}
			list, rows := []shown{}, [][]string{}
			for _, t := range set.Tokens {
				list = append(list, shown{t.Name, t.CreatedAt, t.Access})
				rows = append(rows, []string{t.Name, t.CreatedAt, reach(t.Access)})
			}
			return a.Print(map[string]any{"file": path, "tokens": list}, func(w *Painter) {
				w.Table([]string{"NAME", "MADE", "MAY REACH"}, rows)
			})
		},
	}
}

// reach says in words what an access allows.
func reach(access loci.Access) string {
	var parts []string
	if access.Admin {
		parts = append(parts, "admin")
	}
	for _, g := range access.Grants {
		text := "read "
		if g.Write {
			text = "write "
		}
		text += g.Namespace
		if len(g.Scopes) != 1 || g.Scopes[0] != loci.Every {
			text += " (" + strings.Join(g.Scopes, ", ") + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

func (a *App) tokenRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a token back",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, set, err := a.tokenSet(false)
			if err != nil {
				return err
			}
			if !set.Remove(args[0]) {
				return errs.New(errs.NotFound, "there is no token %s in %s", quote(args[0]), path)
			}
			if err := set.Save(path); err != nil {
				return err
			}
			return a.Print(map[string]any{"name": args[0], "removed": true, "file": path}, func(w *Painter) {
				w.Line("Removed " + args[0] + ". A server that runs refuses it from now on.")
			})
		},
	}
}
