package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/spf13/cobra"
)

// benchCommand measures the engine on this machine.
func benchCommand(a *cli.App) *cobra.Command {
	var opts bench.Options
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the engine on a generated corpus",
		Long: `Loads a generated corpus, the same for the same seed, and measures loading,
searching, opening, single writes and the rebuild of the index; searching by
made-up vectors, with the embedder in force for the questions and without it;
and that embedder alone. Your own memories are not touched.`,
		Args: cobra.NoArgs,
	}
	phases := partsFlag(cmd, "phases", bench.Phases())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runBench(a, cmd, "Loading", func(ctx context.Context, say io.Writer, progress func(done, total int)) (_ *bench.Report, err error) {
			opts.Phases, opts.Out, opts.Progress = phases(), say, progress
			m, err := a.OpenModel()
			if err != nil {
				return nil, err
			}
			if m != nil {
				opts.Model = &bench.Model{Name: m.Title, Embedder: m.Embedder}
				defer func() { err = errors.Join(err, m.Close()) }()
			}
			if exe, err := os.Executable(); err == nil {
				opts.Fresh = []string{exe, "bench", "first-answer", "--"}
			}
			return bench.Run(ctx, opts)
		})
	}
	f := cmd.Flags()
	f.IntVar(&opts.Records, "records", 0, "size of the corpus (default 100000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the corpus (default 1)")
	f.StringVar(&opts.Dir, "keep", "", "make the store in this `directory` and leave it there for the next run")

	cmd.AddCommand(benchContextCommand(a), benchAgentCommand(a), benchSurfacesCommand(a), surfacesChildCommand(), surfacesWriterCommand(a), benchTenantsCommand(a), tenantsChildCommand(a), &cobra.Command{
		Use:    "first-answer DIRECTORY QUERY",
		Short:  "Open a store, search once and tell how long it took",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := bench.FirstAnswer(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return a.WriteJSON(report)
		},
	})
	return cmd
}

// benchAgentCommand measures agent memory on this machine.
func benchAgentCommand(a *cli.App) *cobra.Command {
	var opts bench.AgentOptions
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Measure agent memory on generated facts",
		Long: `Measures facts with made-up vectors of 384 numbers: what storing them costs, how
fast exact queries are with and without filters, how long a snapshot and a restore
take, and what a sweep of many expired facts does to those who read. A million
facts take some five gigabytes of disk, which are given back. Your own memory is
not touched.`,
		Args: cobra.NoArgs,
	}
	parts := partsFlag(cmd, "parts", bench.AgentParts())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runBench(a, cmd, "Storing", func(ctx context.Context, say io.Writer, progress func(done, total int)) (*bench.AgentReport, error) {
			opts.Parts, opts.Out, opts.Progress = parts(), say, progress
			return bench.RunAgent(ctx, opts)
		})
	}
	f := cmd.Flags()
	f.IntVar(&opts.Facts, "facts", 0, "facts of all parts but expiry (default 100000)")
	f.IntVar(&opts.Many, "many", 0, "facts of the part expiry (default 1000000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the facts (default 1)")
	f.StringVar(&opts.Dir, "work", "", "make the stores in this `directory` (default the system's folder for temporary files)")
	return cmd
}

// benchContextCommand measures the context store on this machine.
func benchContextCommand(a *cli.App) *cobra.Command {
	var opts bench.ContextOptions
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Measure the context store on generated pages",
		Long: `Measures how long a host waits for its window, unchanged and changed; whether
the window keeps its budget and its prefix under random operations; how long a
recall over many pages takes; and, as an estimate, what providers with a prompt
cache would bill for the window of a simulated agent, beside a host that fills
the same budget by relevance. Your own pages are not touched.`,
		Args: cobra.NoArgs,
	}
	parts := partsFlag(cmd, "parts", bench.ContextParts())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runBench(a, cmd, "Loading", func(ctx context.Context, say io.Writer, progress func(done, total int)) (*bench.ContextReport, error) {
			opts.Parts, opts.Out, opts.Progress = parts(), say, progress
			return bench.RunContext(ctx, opts)
		})
	}
	f := cmd.Flags()
	f.IntVar(&opts.Pages, "pages", 0, "pages of the scope in which recall is measured (default 100000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the pages (default 1)")
	f.StringVar(&opts.Dir, "keep", "", "make the store of recall in this `directory` and leave it there for the next run")
	return cmd
}
