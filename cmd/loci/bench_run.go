package main

import (
	"context"
	"io"
	"strings"

	"github.com/loci-memory/loci/internal/cli"
	"github.com/spf13/cobra"
)

// benchReport is what a benchmark found.
type benchReport interface {
	WriteJSON(w io.Writer) error
	WriteText(w io.Writer) error
}

// runBench runs a benchmark within the time-out in force and prints its report.
// It is told where to say what it does, nil for nowhere, and whom to tell how far
// it is.
func runBench[R benchReport](a *cli.App, cmd *cobra.Command, label string,
	run func(ctx context.Context, say io.Writer, progress func(done, total int)) (R, error)) error {
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	var say io.Writer
	if !a.Quiet() && !a.JSON() {
		say = a.Stderr()
	}
	p := a.Progress(label)
	defer p.Close()
	report, err := run(ctx, say, func(done, total int) {
		p.Update(int64(done), int64(total))
		if done == total {
			p.Close() // what is measured next is not loading
		}
	})
	if err != nil {
		return err
	}
	p.Close()
	if a.JSON() {
		return report.WriteJSON(a.Stdout())
	}
	return report.WriteText(a.Stdout())
}

// partsFlag adds the flag that chooses what to measure. What it gives is to be
// asked for once the flags are read.
func partsFlag[P ~string](cmd *cobra.Command, name string, all []P) (chosen func() []P) {
	var names, given []string
	for _, p := range all {
		names = append(names, string(p))
	}
	cmd.Flags().StringSliceVar(&given, name, nil, "what to measure, separated by commas: "+strings.Join(names, ", ")+" (default all)")
	return func() (parts []P) {
		for _, p := range given {
			parts = append(parts, P(p))
		}
		return parts
	}
}
