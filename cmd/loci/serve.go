package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/httpapi"
)

// serve puts the surfaces that speak HTTP behind one server and its checks.
func serve(ctx context.Context, cfg cli.ServeConfig) (err error) {
	c := httpapi.Config{
		Caller: cfg.Caller, Log: cfg.Log, Version: cfg.Version, Tokens: cfg.Tokens, Hosts: cfg.Hosts, Origins: cfg.Origins,
		MaxRunning: cfg.MaxRunning, Timeout: cfg.Timeout,
	}
	if cfg.MCP != nil {
		handler, stop, failed := mcpHandler(*cfg.MCP)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
		// A model's stream is open all the time, and would hold up the end.
		defer context.AfterFunc(ctx, func() {
			if err := stop(); err != nil {
				cfg.Log.Warn("the sessions of models did not end", "error", err)
			}
		})()
		c.Mounts = map[string]http.Handler{"/mcp": handler}
	}
	return httpapi.Serve(ctx, cfg.Addr, c, cfg.Ready)
}
