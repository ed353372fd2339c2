package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// transferCommands are the commands that move a store as a whole.
func (a *App) transferCommands() []*cobra.Command {
	return []*cobra.Command{a.exportCommand(), a.importCommand(), a.restoreCommand()}
}

func (a *App) exportCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "export [FILE | -]",
		Short: "Write records and settings as lines of JSON",
		Long: `Writes everything that is stored to a new file, or to standard output: a header,
the settings, then a record a line, and contexts with every revision of their
pages, all of one moment. Where a namespace is set, by --namespace or otherwise,
only that one is written, unless --all is given. When another process holds the
memory, that one makes a copy for it first, in the folder for temporary files.

  loci export memories.jsonl
  loci export | gzip > memories.jsonl.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			opts := &loci.ExportOptions{}
			if set, _ := a.settings.given("namespace"); set && !all {
				opts.Namespace = new(a.settings.get("namespace").Value)
			}
			m, err := a.open(ctx, false)
			if err != nil {
				return errs.WithOp("export", err)
			}
			var report *loci.ExportReport
			if db := m.DB(); db != nil {
				report, err = a.export(ctx, db, fileOf(args), opts)
			} else {
				report, err = a.exportCopy(ctx, m, fileOf(args), opts)
			}
			if err = errors.Join(err, m.Close()); err != nil {
				return first(err)
			}
			what := "everything"
			if opts.Namespace != nil {
				what = "namespace " + *opts.Namespace
			}
			if fileOf(args) == "-" {
				a.Note("Exported %s: %s, %s, revision %d", what, countOf(report.Records), settingsOf(report.Settings)+contextsOf(report.Contexts)+agentsOf(report.AgentMemories), report.Revision)
				return nil
			}
			return a.Print(report, func(w *Painter) {
				w.Line(fmt.Sprintf("Exported %s: %s, %s, revision %d, %d bytes", clean(what), countOf(report.Records), settingsOf(report.Settings)+contextsOf(report.Contexts)+agentsOf(report.AgentMemories), report.Revision, report.Bytes))
				if report.ExpiredPoints > 0 {
					w.Line(fmt.Sprintf("%d facts, episodes and procedures stay out: they are expired", report.ExpiredPoints))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the whole store, whatever namespace is set")
	return cmd
}

// export writes to a file that does not exist yet, or to standard output. A
// file that is not complete is removed.
func (a *App) export(ctx context.Context, db *loci.DB, file string, opts *loci.ExportOptions) (*loci.ExportReport, error) {
	p := a.Progress("Export")
	defer p.Close()
	opts.Progress = p.Update
	if file == "-" {
		return db.Export(ctx, a.deps.Stdout, opts)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &loci.Error{Code: loci.ErrIO, Op: "export", Field: "file", Message: "exists and stays as it is: name a new file"}
	}
	if err != nil {
		return nil, errs.WithOp("export", errs.Wrap(errs.IO, err, "the file could not be made"))
	}
	report, err := db.Export(ctx, f, opts)
	if err == nil {
		err = errs.Wrap(errs.IO, f.Sync(), "the file could not be written out")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(file)
		return nil, errs.WithOp("export", first(err))
	}
	return report, nil
}

// exportCopy exports a memory that another process holds: that one makes a copy,
// of one moment, since what streams does not go through it.
func (a *App) exportCopy(ctx context.Context, m *memory, file string, opts *loci.ExportOptions) (report *loci.ExportReport, err error) {
	dir, err := os.MkdirTemp("", "loci-export-") // closed to other users
	if err != nil {
		return nil, errs.WithOp("export", errs.Wrap(errs.IO, err, "there is no room for a copy of the memory, which another process holds"))
	}
	defer func() {
		err = errors.Join(err, errs.WithOp("export", errs.Wrap(errs.IO, os.RemoveAll(dir), "the copy that was exported could not be removed")))
	}()
	target, err := marshal(map[string]any{"target": filepath.Join(dir, "loci.db")})
	if err != nil {
		return nil, err
	}
	backup, _ := op.Default().Lookup("backup")
	if _, err := m.run(ctx, a, backup, target); err != nil {
		return nil, errs.WithOp("export", err)
	}
	db, err := a.deps.Open(ctx, dir, &loci.Options{NoBackgroundEmbedding: true, NoBackgroundSweep: true})
	if err != nil {
		return nil, errs.WithOp("export", err)
	}
	report, err = a.export(ctx, db, file, opts)
	return report, errors.Join(err, db.Close())
}

// first is the error that came first of those joined.
func first(err error) error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			return e
		}
	}
	return err
}

func fileOf(args []string) string {
	if len(args) == 0 {
		return "-"
	}
	return args[0]
}

func settingsOf(n int64) string {
	if n == 1 {
		return "1 setting"
	}
	return fmt.Sprintf("%d settings", n)
}

// contextsOf goes on with the contexts, where there are any.
func contextsOf(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 context"
	}
	return fmt.Sprintf(", %d contexts", n)
}

// agentsOf goes on with the agent memories, likewise.
func agentsOf(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 agent memory"
	}
	return fmt.Sprintf(", %d agent memories", n)
}

func (a *App) importCommand() *cobra.Command {
	var dryRun, remap bool
	var from, users string
	cmd := &cobra.Command{
		Use:   "import [FILE | -]",
		Short: "Read what loci export wrote, or what another memory keeps",
		Long: `Reads what loci export wrote, from a file or standard input, and writes all of it
or nothing. The whole input is checked first; what is wrong is named with its
line. A store that never held anything takes over ids, times and revisions. Any
other gives new ids, keeps times, and says with --json which id became which;
settings that it has stay as they are, and a context or an agent memory that it
has is refused.

With --from it reads what another memory keeps: mcp-memory (the file of the
official memory server), mem0 (JSON of get_all), basic-memory (its folder),
p-memory (its data directory), markdown (a file or folder) or jsonl. What cannot be
carried over is listed with its reason, and the same import again changes nothing.

  loci import memories.jsonl --dry-run
  loci import --from mcp-memory ~/memory.jsonl --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from") {
				if remap {
					return usageError{errors.New("--remap is for what loci export wrote"), cmd.CommandPath()}
				}
				return a.importFrom(cmd, args, from, users, dryRun)
			}
			if cmd.Flags().Changed("users") {
				return usageError{errors.New("--users goes with --from"), cmd.CommandPath()}
			}
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			var in io.Reader = bufio.NewReader(a.deps.Stdin)
			if file := fileOf(args); file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return errs.WithOp("import", errs.Wrap(errs.IO, err, "the file could not be opened"))
				}
				defer f.Close()
				in = f
			}
			m, err := a.Open(ctx, true)
			if err != nil {
				return errs.WithOp("import", err)
			}
			db := m.DB()
			p := a.Progress("Import")
			report, err := db.Import(ctx, in, &loci.ImportOptions{DryRun: dryRun, Remap: remap, Progress: p.Update})
			p.Close()
			if err == nil {
				err = a.Print(report, func(w *Painter) { printImport(w, report) })
			}
			if err == nil && !dryRun {
				err = a.settle(ctx, db)
			}
			return first(errors.Join(err, m.Close()))
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check everything and write nothing")
	cmd.Flags().BoolVar(&remap, "remap", false, "give new ids even in a store that never held anything")
	cmd.Flags().StringVar(&from, "from", "", "what `MEMORY` it is: mcp-memory, mem0, basic-memory, p-memory, markdown, jsonl")
	cmd.Flags().StringVar(&users, "users", "", "what becomes of several users: `scopes` or tags")
	// The only error is a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"mcp-memory", "mem0", "basic-memory", "p-memory", "markdown", "jsonl"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("users", cobra.FixedCompletions([]string{"scopes", "tags"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// importFrom runs the operation, wherever the store is held. A store of p-memory
// has namespaces and scopes of its own, which only a flag overrides.
func (a *App) importFrom(cmd *cobra.Command, args []string, from, users string, dryRun bool) error {
	if len(args) == 0 || args[0] == "-" {
		return usageError{errors.New("--from needs the path of a file or a folder"), cmd.CommandPath()}
	}
	path, err := filepath.Abs(args[0])
	if err != nil {
		return errs.WithOp("import", errs.Wrap(errs.IO, err, "the path could not be resolved"))
	}
	d, err := a.domain()
	if err != nil {
		return err
	}
	if from == "p-memory" {
		d = d.typed()
	}
	if len(d.scopes) > 1 {
		return usageError{errors.New("a record has one scope; give --scope once"), cmd.CommandPath()}
	}
	in := op.ImportFrom{From: op.ImportSource(from), Path: path, Namespace: d.namespace, Users: op.ImportUsers(users), DryRun: dryRun}
	if len(d.scopes) == 1 {
		in.Scope = &d.scopes[0]
	}
	raw, err := marshal(in)
	if err != nil {
		return err
	}
	return a.Call(cmd.Context(), "import_from", raw)
}

// renderImportedFrom shows what an import did, and all that it left out.
func renderImportedFrom(w *Painter, r op.ImportedFrom) {
	what := "Imported "
	if r.DryRun {
		what = "Would import "
	}
	w.Line(what + clean(string(r.From)) + " from " + clean(r.File))
	var rows [][]string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		t, row := r.Kinds[kind], []string{clean(kind)}
		for _, n := range []int64{t.Found, t.Created, t.Merged, t.Replaced, t.Unchanged, t.LeftOut} {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		w.Line("There was nothing in it")
		return
	}
	w.Table([]string{"KIND", "FOUND", "CREATED", "MERGED", "REPLACED", "UNCHANGED", "LEFT OUT"}, rows)
	for _, l := range r.LeftOut {
		text := "Left out: " + clean(l.Where) + ", " + clean(l.Kind)
		if l.Field != "" {
			text += ", " + clean(l.Field)
		}
		w.Line(text + ": " + clean(l.Reason))
	}
	if r.Unlisted > 0 {
		w.Line(fmt.Sprintf("and %d more left out", r.Unlisted))
	}
	if len(r.Users) > 1 {
		w.Line(fmt.Sprintf("The memories are of %d users", len(r.Users)))
	}
	for _, remark := range r.Remarks {
		w.Line(clean(remark))
	}
}

func printImport(w *Painter, r *loci.ImportReport) {
	did := "Imported "
	if r.DryRun {
		did = "Would import "
	}
	var kinds []string
	for kind, n := range r.Counts {
		kinds = append(kinds, fmt.Sprintf("%s %d", clean(kind), n))
	}
	slices.Sort(kinds)
	text := did + countOf(r.Records)
	if len(kinds) > 0 {
		text += " (" + strings.Join(kinds, ", ") + ")"
	}
	w.Line(text + ", " + settingsOf(r.Settings) + contextsOf(r.Contexts) + agentsOf(r.AgentMemories))
	if r.SettingsKept > 0 {
		w.Line(fmt.Sprintf("%s of the store stay as they are", settingsOf(r.SettingsKept)))
	}
	if r.RevisionsSkipped > 0 {
		w.Line(fmt.Sprintf("%d earlier revisions of copies of records stay out: they are of the other store", r.RevisionsSkipped))
	}
	switch {
	case r.Records == 0:
	case r.Kept:
		w.Line("Ids, times and revisions are those of the file")
	default:
		w.Line("The records have new ids; --json lists them")
	}
}

func (a *App) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore SNAPSHOT DIRECTORY",
		Short: "Make a data directory of a backup",
		Long: `Makes a new data directory of a file that loci backup wrote, after checking all
of it, and builds its index. The directory must not exist. The snapshot is only
read.

  loci backup memories.backup
  loci restore memories.backup ~/restored
  loci --data ~/restored recall "tide table"`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			p := a.Progress("Restore")
			db, err := loci.Restore(ctx, args[0], args[1], &loci.Options{Progress: p.Update})
			p.Close()
			if err != nil {
				return err
			}
			h, err := db.Health(ctx)
			dir := db.Directory()
			if err = errors.Join(err, db.Close()); err != nil {
				return first(err)
			}
			return a.Print(map[string]any{"directory": dir, "revision": h.Revision, "records": h.RecordCount}, func(w *Painter) {
				w.Line(fmt.Sprintf("Restored %s, revision %d, to %s", countOf(h.RecordCount), h.Revision, clean(dir)))
				w.Line("Use it with: loci --data " + clean(dir))
			})
		},
	}
}
