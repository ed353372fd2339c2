package main

import (
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/models/e5small"
)

// model opens a model that ships with the program.
func model(name string, threads int) (*cli.Model, error) {
	if name != "builtin" {
		return nil, errs.Invalid("embedder", "must be none, builtin or an address")
	}
	e, err := local.Open(e5small.Data(), &local.Options{Threads: threads})
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the built-in model cannot be read")
	}
	return &cli.Model{
		ID: e.ModelID(), Title: "built-in " + e.ModelID(), Dimension: e.Dimension(), Embedder: e,
		Options: &loci.EmbedderOptions{},
	}, nil
}
