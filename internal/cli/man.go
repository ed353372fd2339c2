package cli

import (
	"os"
	"path/filepath"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the manual pages, which packages bring along.
func (a *App) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages",
		Long: `Writes one manual page a command into a folder, which is made if need be.

  loci man ~/.local/share/man/man1 && man loci-recall`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := args[0]
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return errs.Wrap(errs.IO, err, "the folder of the manual pages")
			}
			v := a.deps.Version
			header := &doc.GenManHeader{Section: "1", Source: "loci " + orUnknown(v.Version), Manual: "Loci", Date: &time.Time{}}
			if built, err := time.Parse(time.RFC3339, v.Time); err == nil {
				header.Date = &built
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the date of writing would make each one differ
			if err := doc.GenManTree(root, header, folder); err != nil {
				return errs.Wrap(errs.IO, err, "the manual pages")
			}
			pages, err := filepath.Glob(filepath.Join(folder, "loci*.1"))
			if err != nil {
				return errs.Wrap(errs.IO, err, "the manual pages")
			}
			return a.Print(map[string]any{"folder": folder, "pages": len(pages)}, func(w *Painter) {
				w.Line("Wrote manual pages to " + folder)
			})
		},
	}
}
