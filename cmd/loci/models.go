package main

import (
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/embed/static"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/models/e5small"
	table "github.com/loci-memory/loci/models/static"
)

// model opens a model that ships with the program: "static" is the table, and
// "builtin" the transformer, or the table on a processor that would take a
// second for what others do in ten milliseconds.
func model(name string, threads int) (*cli.Model, error) {
	if name == "static" || !local.Accelerated() {
		e, err := static.Open(table.Data())
		if err != nil {
			return nil, errs.Wrap(errs.IO, err, "the static table cannot be read")
		}
		title := "static table " + e.ModelID()
		if name != "static" {
			title += ", since this processor is too slow for the built-in transformer"
		}
		return &cli.Model{ID: e.ModelID(), Title: title, Dimension: e.Dimension(), Embedder: e, Options: &loci.EmbedderOptions{}}, nil
	}
	e, err := local.Open(e5small.Data(), &local.Options{Threads: threads, Frame: e5small.Frame()})
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the built-in model cannot be read")
	}
	return &cli.Model{ID: e.ModelID(), Title: "built-in " + e.ModelID(), Dimension: e.Dimension(), Embedder: e, Options: &loci.EmbedderOptions{}}, nil
}
