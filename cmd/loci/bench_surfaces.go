package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/httpapi"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// benchSurfacesCommand measures what the surfaces add on this machine.
func benchSurfacesCommand(a *cli.App) *cobra.Command {
	var opts bench.SurfacesOptions
	cmd := &cobra.Command{
		Use:   "surfaces",
		Short: "Measure the ways in: MCP, HTTP, attached processes",
		Long: `Measures, with the embedder in force and a generated store: an MCP server from its
start to its end; one recall through the library, an attached process and HTTP;
many HTTP clients at once; and two processes that write to one memory. The store's
vectors take minutes to make; --keep leaves it for the next run. Your own memory is
not touched.`,
		Args: cobra.NoArgs,
	}
	parts := partsFlag(cmd, "parts", bench.SurfacesParts())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runBench(a, cmd, "Embedding", func(ctx context.Context, say io.Writer, progress func(done, total int)) (_ *bench.SurfacesReport, err error) {
			opts.Parts, opts.Out, opts.Progress = parts(), say, progress
			exe, err := os.Executable()
			if err != nil {
				return nil, err
			}
			opts.Program = []string{exe}
			if f := cmd.Flag("embedder"); f.Changed {
				opts.Program = append(opts.Program, "--embedder", f.Value.String())
			}
			m, err := a.OpenModel()
			if err != nil {
				return nil, err
			}
			if m == nil {
				return nil, errors.New("this measures with an embedder; leave --embedder none out")
			}
			defer func() { err = errors.Join(err, m.Close()) }()
			opts.Bind = func(ctx context.Context, db *loci.DB) (string, error) { return m.ID, m.Bind(ctx, db) }
			opts.HTTP = serveForBench
			return bench.RunSurfaces(ctx, opts)
		})
	}
	f := cmd.Flags()
	f.IntVar(&opts.Records, "records", 0, "records of the store (default 100000)")
	f.Uint64Var(&opts.Seed, "seed", 0, "seed of the records (default 1)")
	f.StringVar(&opts.Dir, "keep", "", "make the store in this `directory` and leave it there for the next run")
	f.DurationVar(&opts.Load, "load", 0, "how long the clients call (default 1m0s)")
	f.IntVar(&opts.Starts, "starts", 0, "starts of an MCP server (default 10)")
	f.IntVar(&opts.Calls, "calls", 0, "recalls through each way in (default 600)")
	f.IntVar(&opts.Clients, "clients", 0, "clients at once (default 32)")
	f.IntVar(&opts.Writes, "writes", 0, "records that each of the two processes writes (default 10000)")
	return cmd
}

// serveForBench serves a caller as loci serve does.
func serveForBench(ctx context.Context, caller op.Caller) (url string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() {
		done <- httpapi.Serve(ctx, "127.0.0.1:0", httpapi.Config{Caller: caller}, func(url string) { ready <- url })
	}()
	stop = func() error { cancel(); return <-done }
	select {
	case url = <-ready:
		return url, stop, nil
	case err = <-done:
		cancel()
		return "", nil, err
	}
}

// surfacesChildCommand is the other process of the benchmark.
func surfacesChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "surfaces-child DIRECTORY URL SEED RECORDS CALLS",
		Short:  "Call another process's memory as told on standard input",
		Hidden: true,
		Args:   cobra.ExactArgs(5),
		RunE: func(cmd *cobra.Command, args []string) error {
			seed, err := strconv.ParseUint(args[2], 10, 64)
			records, err2 := strconv.Atoi(args[3])
			calls, err3 := strconv.Atoi(args[4])
			if err := errors.Join(err, err2, err3); err != nil {
				return err
			}
			return bench.SurfacesChild(cmd.Context(), args[0], args[1], seed, records, calls, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// surfacesWriterCommand writes to the memory in force, one record a call.
func surfacesWriterCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:    "surfaces-writer NAME N",
		Short:  "Write so many memories one by one",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			memory, err := a.Shared(cmd.Context(), nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, memory.Close()) }()
			for i := range n {
				raw, err := json.Marshal(map[string]string{"judgment": fmt.Sprintf("Writer %s wrote record %d.", args[0], i)})
				if err != nil {
					return err
				}
				// One that is not idempotent: repeated or lost, it would be counted.
				if _, err := memory.Call(cmd.Context(), "memories.upsert", raw); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
