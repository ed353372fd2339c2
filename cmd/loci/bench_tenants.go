package main

import (
	"context"
	"io"
	"os"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/spf13/cobra"
)

// benchTenantsCommand measures many small tenants in one store on this machine.
func benchTenantsCommand(a *cli.App) *cobra.Command {
	var opts bench.TenantsOptions
	cmd := &cobra.Command{
		Use:   "tenants",
		Short: "Measure many small tenants in one store",
		Long: `Measures what a store costs that has a namespace for each of many tenants with a
hundred records each: loading, opening, memory, open files, and one tenant's searches,
lists, settings and writes; beside stores of as many records in one namespace, where a
tenant is a tag. A million records take some gigabytes of disk, which are given back.
Your own memory is not touched.`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runBench(a, cmd, "Loading", func(ctx context.Context, say io.Writer, progress func(done, total int)) (*bench.TenantsReport, error) {
			opts.Out, opts.Progress = say, progress
			exe, err := os.Executable()
			if err != nil {
				return nil, err
			}
			opts.Fresh = []string{exe, "bench", "tenants-child", "--"}
			return bench.RunTenants(ctx, opts)
		})
	}
	f := cmd.Flags()
	f.IntSliceVar(&opts.Tenants, "tenants", nil, "how many there are in the stores to compare (default 100,1000,10000)")
	f.IntVar(&opts.Each, "each", 0, "records of a tenant (default 100)")
	f.IntVar(&opts.Calls, "calls", 0, "calls of each kind (default 300)")
	f.IntVar(&opts.Dimension, "dimension", 0, "numbers of a made-up vector (default 32)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the records (default 1)")
	f.StringVar(&opts.Dir, "work", "", "make the stores in this `directory` (default the system's folder for temporary files)")
	return cmd
}

// tenantsChildCommand is the fresh process of the benchmark.
func tenantsChildCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "tenants-child ASK",
		Short:  "Open a store of tenants, search once and tell what that took",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := bench.TenantsChild(cmd.Context(), []byte(args[0]))
			if err != nil {
				return err
			}
			return a.WriteJSON(found)
		},
	}
}
