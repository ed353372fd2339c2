package main

import (
	"context"
	"io"
	"net/http"

	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/mcpserver"
	"github.com/spf13/cobra"
)

// mcpCommand serves models on standard input and output.
func mcpCommand(a *cli.App) *cobra.Command { return a.MCPCommand(serveMCP) }

func serveMCP(ctx context.Context, cfg cli.MCPConfig, in io.Reader, out io.Writer) error {
	return mcpserver.ServeStdio(ctx, mcpConfig(cfg), in, out)
}

func mcpConfig(cfg cli.MCPConfig) mcpserver.Config {
	return mcpserver.Config{
		Caller: cfg.Caller, Version: cfg.Version, Log: cfg.Log, Namespace: cfg.Namespace, Scopes: cfg.Scopes, Context: cfg.Context,
		AnyNamespace: cfg.AnyNamespace, AllTools: cfg.AllTools, Budget: cfg.Budget, NoRedact: cfg.NoRedact, Timeout: cfg.Timeout,
		Answered: cfg.Answered,
	}
}

// mcpHandler answers models over HTTP, below a handler that knows who asks. There a
// tool may name its namespace: the caller's access says which ones there are for
// it.
func mcpHandler(cfg cli.MCPConfig) (handler http.Handler, stop func() error, err error) {
	c := mcpConfig(cfg)
	c.AnyNamespace = true
	h, err := mcpserver.NewHTTP(c)
	if err != nil {
		return nil, nil, err
	}
	return h, h.Close, nil
}
