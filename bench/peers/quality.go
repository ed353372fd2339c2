package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/quality"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/eval"
	"github.com/loci-memory/loci/models/e5small"
)

func qualityCommand() *cobra.Command {
	var o options
	var sets, paths []string
	var cache string
	c := &cobra.Command{
		Use:   "quality",
		Short: "Measure what the products find on judged sets",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runQuality(cmd.Context(), o, sets, paths, cache, repeated(cmd.Flags()), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.shared, "shared", filepath.Join("..", "..", "..", "shared", "data"), "folder of the judged sets")
	f.StringSliceVar(&sets, "sets", eval.Tasks(), "which of them")
	f.StringSliceVar(&paths, "paths", []string{protocol.KindText, protocol.KindVector, protocol.KindHybrid}, "what to search by")
	f.StringSliceVar(&o.products, "products", nil, "which take part (default: all)")
	f.StringVar(&cache, "cache", "", "folder that keeps the vectors of texts from one run to the next (default: none is kept)")
	f.StringVar(&o.out, "out", "quality.json", "file of the results")
	f.StringVar(&o.work, "work", "", "folder of the products' files (default: loci-peers/work in the user's cache)")
	f.StringVar(&o.env, "env", "", "folder of the Python environment, made if it is not there (default: loci-peers/env in the user's cache)")
	f.StringVar(&o.python, "python", "", "Python interpreter that has the peers, instead of the environment")
	f.DurationVar(&o.limit, "limit", time.Hour, "for a product to do one set")
	return c
}

// repeated gives the command that repeats a run elsewhere: without the folders of
// this machine.
func repeated(f *pflag.FlagSet) string {
	command := "go run . quality"
	for _, name := range []string{"sets", "paths", "products"} {
		flag := f.Lookup(name)
		if v, ok := flag.Value.(pflag.SliceValue); ok && flag.Changed {
			command += " --" + name + " " + strings.Join(v.GetSlice(), ",")
		}
	}
	return command
}

// makeFolders makes the folder to work in, and in it that of the run alone.
func (r *runner) makeFolders() (err error) {
	if r.work == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no folder to work in; name one with --work: %w", err)
		}
		r.work = filepath.Join(cache, "loci-peers", "work")
	}
	if r.work, err = filepath.Abs(r.work); err != nil {
		return err
	}
	if err := os.MkdirAll(r.work, 0o755); err != nil {
		return err
	}
	r.scratch, err = os.MkdirTemp(r.work, "run-")
	return err
}

// runQuality has all products answer the questions of all sets.
func runQuality(ctx context.Context, o options, sets, paths []string, cache, command string, progress io.Writer) (err error) {
	for _, p := range paths {
		if p != protocol.KindText && p != protocol.KindVector && p != protocol.KindHybrid {
			return fmt.Errorf("paths are %s, %s and %s, not %q", protocol.KindText, protocol.KindVector, protocol.KindHybrid, p)
		}
	}
	if o.limit <= 0 {
		return errors.New("the limit is positive")
	}
	r := &runner{options: o, begun: time.Now(), progress: progress}
	if err := r.makeFolders(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	if err := r.findProducts(ctx); err != nil {
		return err
	}
	model, err := local.Open(e5small.Data(), &local.Options{Threads: runtime.NumCPU(), Frame: e5small.Frame()})
	if err != nil {
		return fmt.Errorf("the built-in model: %w", err)
	}
	embedder, err := eval.NewCache(model, model.ModelID(), model.Dimension(), cache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, embedder.Close()) }()
	r.file.Machine = machine(ctx, r.python)
	r.file.Commit = commit(ctx)
	r.file.Date = time.Now().UTC().Format(time.DateOnly)
	r.file.Command = command
	var products []quality.Product
	for _, p := range r.products {
		products = append(products, quality.Product{Name: p.id, Env: quietPeers(), Command: p.command})
	}
	_, _, err = quality.Run(ctx, quality.Options{
		Products: products, Sets: r.shared, Tasks: sets, Paths: paths, Embedder: embedder, Dimension: model.Dimension(),
		Dir: r.scratch, Patience: r.limit, Log: func(s string) { r.say("%s", s) },
		Keep: func(able []result.Product, rows []result.Quality) error {
			r.file.Products, r.file.Quality = able, rows
			return r.keep()
		},
	})
	if len(r.file.Quality) > 0 {
		r.say("results are in %s", r.out)
	}
	return err
}
