// Command peers compares Loci with other products: the same work, on the same
// data, on the same machine, in turns. See README.md.
package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/loci-memory/loci/bench/peers/lociworker"
)

// The workers' side of the products that are used from Python.
//
//go:embed python/worker.py python/requirements.txt python/adapters/*.py
var scripts embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:           "peers",
		Short:         "Compare Loci with other products, side by side in one run",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.AddCommand(prepareCommand(), runCommand(), qualityCommand(), reportCommand(), workerCommand())
	return c
}

// workerCommand is how a run starts the process that holds Loci.
func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "worker " + lociName,
		Short:  "Serve Loci behind the protocol of the comparison",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != lociName {
				return fmt.Errorf("no worker %q: others than Loci's are of Python", args[0])
			}
			return lociworker.Main(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}
