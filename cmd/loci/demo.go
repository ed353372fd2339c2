package main

import (
	"bytes"
	"errors"

	"github.com/loci-memory/loci/demo"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/spf13/cobra"
)

// demoCommand shows the product at work on the corpus inside the binary.
func demoCommand(a *cli.App) *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Load a small real corpus, search it and show what comes back",
		Long: `Loads texts in English and Chinese that ship with the program into a store of
their own, asks questions and shows the answers. Your own memories are not
touched, and the store is removed at the end unless --keep names a directory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			m, err := a.OpenModel()
			if err != nil {
				return err
			}
			var model *demo.Model
			if m != nil {
				defer func() { err = errors.Join(err, m.Close()) }()
				size, err := m.Size(ctx)
				if err != nil {
					return err
				}
				model = &demo.Model{Name: m.ID, Dimension: size, Embedder: m.Embedder}
			}
			p := a.Progress("Loading")
			defer p.Close()
			opts := demo.Options{
				Out: a.Stdout(), Color: a.Color(), Dir: keep, Model: model,
				Progress: func(done, total int) {
					p.Update(int64(done), int64(total))
					if done == total {
						p.Close()
					}
				},
			}
			if !a.JSON() {
				return demo.Run(ctx, opts)
			}
			var report bytes.Buffer
			opts.Out, opts.Color = &report, false
			if err = demo.Run(ctx, opts); err != nil {
				return err
			}
			return a.Print(map[string]string{"report": report.String()}, nil)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "make the store in this `directory` and leave it there")
	return cmd
}
