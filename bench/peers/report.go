package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loci-memory/loci/bench/peers/report"
)

// reportCommand makes the page of the comparison from files of results.
func reportCommand() *cobra.Command {
	var docs string
	c := &cobra.Command{
		Use:   "report [FILE.json ...]",
		Short: "Make the tables and plots of the comparison from files of results",
		RunE:  func(_ *cobra.Command, files []string) error { return report.Write(files, docs) },
	}
	c.Flags().StringVar(&docs, "docs", filepath.Join("..", "..", "docs"), "folder of the documents")
	return c
}
