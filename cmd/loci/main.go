// Command loci is the command line of the memory engine.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/mcpserver"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the work in good order, a second one at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, deps(os.Args[1:])))
}

// deps wires the command line to the rest of the program.
func deps(args []string) cli.Deps {
	return cli.Deps{
		Args: args, Version: version(), Serve: serve, Model: model, LintTools: mcpserver.LintTools,
		Extra: []func(*cli.App) *cobra.Command{mcpCommand, demoCommand, benchCommand, evalCommand},
	}
}

// version is what the build recorded.
func version() cli.Version {
	v := cli.Version{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		}
	}
	return v
}
