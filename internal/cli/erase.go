package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// eraseCommand shows on a terminal what would go, and asks, before it does.
func (a *App) eraseCommand(o *op.Operation, name string) *cobra.Command {
	cmd := a.operationCommand(o, name)
	cmd.Long += `

On a terminal what would go is shown first, and has to be agreed to; elsewhere --yes
says so. With --subject or --ids the namespace and scope in force are taken where
none is named.

  loci erase --subject "Ada" --dry-run
  loci erase --subject "Ada" --erase-mentions
  loci erase --namespace project --every-scope --yes`
	var yes bool
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.SuggestFor = []string{"forget", "delete", "wipe"}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flags := cmd.Flags()
		if flags.Changed("subject") || flags.Changed("ids") {
			// These say what goes; only a filter alone must be said in full.
			if err := flags.Set("all", "true"); err != nil {
				return err
			}
		}
		dry := flags.Lookup("dry-run")
		if yes || dry.Value.String() == "true" {
			return run(cmd, args)
		}
		if !a.stdinIsTerminal() || slices.Contains(args, "-") || flags.Lookup("input").Value.String() == "-" {
			return usageError{errors.New("nobody can be asked here, and what is erased does not come back: add --yes, or --dry-run to see what would go"), cmd.CommandPath()}
		}
		if err := flags.Set("dry-run", "true"); err != nil {
			return err
		}
		if err := run(cmd, args); err != nil {
			return err
		}
		if agreed, err := a.ask(cmd.Context(), "Erase this?"); err != nil || !agreed {
			return err
		}
		if err := flags.Set("dry-run", "false"); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// ask asks a person; anything but yes is no.
func (a *App) ask(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.deps.Stderr, "%s [y/N] ", question)
	line, err := bufio.NewReader(a.deps.Stdin).ReadString('\n')
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	if err != nil && answer == "" {
		fmt.Fprintln(a.deps.Stderr)
		return false, nil // the end of the input is no yes
	}
	if answer == "y" || answer == "yes" {
		return true, nil
	}
	return false, errs.WithOp("erase", &errs.Error{Code: errs.Canceled, Message: "nothing was erased"})
}

// renderErased shows the receipt of an erasure.
func renderErased(w *Painter, r loci.EraseReport) {
	did := "Erased "
	if r.DryRun {
		did = "Would erase "
	}
	w.Line(did + w.Bold(countOf(r.Total)) + kindCounts(r.Records))
	for _, c := range []struct {
		n         int64
		one, many string
	}{
		{r.PageRevisions, "revision of a page", "revisions of pages"}, {r.PointVersions, "earlier version", "earlier versions"},
		{r.PointRelations, "relation between points", "relations between points"}, {r.Vectors, "vector", "vectors"},
		{r.Evidence, "piece of evidence in other records", "pieces of evidence in other records"},
		{r.Contexts, "context", "contexts"}, {r.AgentMemories, "agent memory", "agent memories"},
		{r.PublishedTexts, "published text", "published texts"}, {r.Checkpoints, "checkpoint touched", "checkpoints touched"},
		{r.LogEntries, "log entry", "log entries"}, {r.Settings, "setting", "settings"},
		{r.SnapshotsRewritten, "snapshot rewritten", "snapshots rewritten"}, {r.SnapshotsRemoved, "snapshot removed", "snapshots removed"},
		{r.JournalRows, "row of the journal", "rows of the journal"}, {r.Strings, "word of the dictionary", "words of the dictionary"},
	} {
		if c.n > 0 {
			w.Line("  " + plural(int(c.n), c.one, c.many))
		}
	}
	var left int64
	for _, n := range r.Mentioned {
		left += n
	}
	if left > 0 {
		w.Line(fmt.Sprintf("%s that stay mention it%s: %s", countOf(left), kindCounts(r.Mentioned), idList(r.MentionedIDs, left)))
	}
	renderNotReached(w, r.NotReached)
}

// renderVacuumed shows what a vacuum did.
func renderVacuumed(w *Painter, r loci.VacuumReport) {
	w.Line(fmt.Sprintf("Written anew: %d bytes before, %d after", r.Before.Total, r.After.Total))
	w.Table([]string{"FILES", "BEFORE", "AFTER"}, [][]string{
		{"database", fmt.Sprint(r.Before.Database), fmt.Sprint(r.After.Database)},
		{"index", fmt.Sprint(r.Before.Index), fmt.Sprint(r.After.Index)},
		{"snapshots", fmt.Sprint(r.Before.Snapshots), fmt.Sprint(r.After.Snapshots)},
		{"other", fmt.Sprint(r.Before.Other), fmt.Sprint(r.After.Other)},
	})
	if r.Removed > 0 {
		w.Line(plural(r.Removed, "file or folder that was left behind is gone", "files and folders that were left behind are gone"))
	}
	renderNotReached(w, r.NotReached)
}

func renderNotReached(w *Painter, places []loci.NotReached) {
	if len(places) == 0 {
		return
	}
	w.Line("Not reached:")
	for _, p := range places {
		text := p.Says
		if p.File != "" {
			text += " " + p.File
		}
		w.Line("  " + clean(text))
	}
}

// kindCounts lists counts by kind in brackets, or nothing.
func kindCounts(counts map[loci.Kind]int64) string {
	var parts []string
	for kind, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", clean(string(kind)), n))
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return " (" + strings.Join(parts, ", ") + ")"
}

// idList lists the first ids of how many there are.
func idList(ids []loci.ID, of int64) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = idText(id)
	}
	text := strings.Join(parts, ", ")
	if int64(len(ids)) < of {
		text += ", ..."
	}
	return text
}
