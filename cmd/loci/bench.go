package main

import (
	"errors"
	"os"
	"strings"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/spf13/cobra"
)

// benchCommand measures the engine on this machine.
func benchCommand(a *cli.App) *cobra.Command {
	var opts bench.Options
	var phases []string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the engine on a generated corpus",
		Long: `Loads a generated corpus, the same for the same seed, and measures loading,
searching, opening, single writes and the rebuild of the index; searching by
made-up vectors, with the embedder in force for the questions and without it;
and that embedder alone. Your own memories are not touched.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			for _, name := range phases {
				opts.Phases = append(opts.Phases, bench.Phase(name))
			}
			if !a.Quiet() && !a.JSON() {
				opts.Out = a.Stderr()
			}
			p := a.Progress("Loading")
			defer p.Close()
			opts.Progress = func(done, total int) {
				p.Update(int64(done), int64(total))
				if done == total {
					p.Close()
				}
			}
			m, err := a.OpenModel()
			if err != nil {
				return err
			}
			if m != nil {
				opts.Model = &bench.Model{Name: m.Title, Embedder: m.Embedder}
				defer func() { err = errors.Join(err, m.Close()) }()
			}
			if exe, err := os.Executable(); err == nil {
				opts.Fresh = []string{exe, "bench", "first-answer", "--"}
			}
			report, err := bench.Run(ctx, opts)
			if err != nil {
				return err
			}
			if a.JSON() {
				return report.WriteJSON(a.Stdout())
			}
			return report.WriteText(a.Stdout())
		},
	}
	var names []string
	for _, p := range bench.Phases() {
		names = append(names, string(p))
	}
	f := cmd.Flags()
	f.IntVar(&opts.Records, "records", 0, "size of the corpus (default 100000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the corpus (default 1)")
	f.StringVar(&opts.Dir, "keep", "", "make the store in this `directory` and leave it there for the next run")
	f.StringSliceVar(&phases, "phases", nil, "what to measure, separated by commas: "+strings.Join(names, ", ")+" (default all)")

	cmd.AddCommand(benchContextCommand(a), benchAgentCommand(a), benchSurfacesCommand(a), surfacesChildCommand(), surfacesWriterCommand(a), &cobra.Command{
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
	var parts []string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Measure agent memory on generated facts",
		Long: `Measures facts with made-up vectors of 384 numbers: what storing them costs, how
fast exact queries are with and without filters, how long a snapshot and a restore
take, and what a sweep of many expired facts does to those who read. A million
facts take some five gigabytes of disk, which are given back. Your own memory is
not touched.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			for _, name := range parts {
				opts.Parts = append(opts.Parts, bench.AgentPart(name))
			}
			if !a.Quiet() && !a.JSON() {
				opts.Out = a.Stderr()
			}
			p := a.Progress("Storing")
			defer p.Close()
			opts.Progress = func(done, total int) { p.Update(int64(done), int64(total)) }
			report, err := bench.RunAgent(ctx, opts)
			if err != nil {
				return err
			}
			p.Close()
			if a.JSON() {
				return report.WriteJSON(a.Stdout())
			}
			return report.WriteText(a.Stdout())
		},
	}
	var names []string
	for _, p := range bench.AgentParts() {
		names = append(names, string(p))
	}
	f := cmd.Flags()
	f.IntVar(&opts.Facts, "facts", 0, "facts of all parts but expiry (default 100000)")
	f.IntVar(&opts.Many, "many", 0, "facts of the part expiry (default 1000000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the facts (default 1)")
	f.StringVar(&opts.Dir, "work", "", "make the stores in this `directory` (default the system's folder for temporary files)")
	f.StringSliceVar(&parts, "parts", nil, "what to measure, separated by commas: "+strings.Join(names, ", ")+" (default all)")
	return cmd
}

// benchContextCommand measures the context store on this machine.
func benchContextCommand(a *cli.App) *cobra.Command {
	var opts bench.ContextOptions
	var parts []string
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Measure the context store on generated pages",
		Long: `Measures how long a host waits for its window, unchanged and changed; whether
the window keeps its budget and its prefix under random operations; how long a
recall over many pages takes; and, as an estimate, what providers with a prompt
cache would bill for the window of a simulated agent, beside a host that fills
the same budget by relevance. Your own pages are not touched.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			for _, name := range parts {
				opts.Parts = append(opts.Parts, bench.ContextPart(name))
			}
			if !a.Quiet() && !a.JSON() {
				opts.Out = a.Stderr()
			}
			p := a.Progress("Loading")
			defer p.Close()
			opts.Progress = func(done, total int) {
				p.Update(int64(done), int64(total))
				if done == total {
					p.Close()
				}
			}
			report, err := bench.RunContext(ctx, opts)
			if err != nil {
				return err
			}
			if a.JSON() {
				return report.WriteJSON(a.Stdout())
			}
			return report.WriteText(a.Stdout())
		},
	}
	var names []string
	for _, p := range bench.ContextParts() {
		names = append(names, string(p))
	}
	f := cmd.Flags()
	f.IntVar(&opts.Pages, "pages", 0, "pages of the scope in which recall is measured (default 100000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the pages (default 1)")
	f.StringVar(&opts.Dir, "keep", "", "make the store of recall in this `directory` and leave it there for the next run")
	f.StringSliceVar(&parts, "parts", nil, "what to measure, separated by commas: "+strings.Join(names, ", ")+" (default all)")
	return cmd
}
