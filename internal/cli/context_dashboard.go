package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/demo/session"
	"github.com/loci-memory/loci/internal/contextpage"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/pager"
	"github.com/spf13/cobra"
)

// pageFlags are where a page goes that is drawn.
type pageFlags struct {
	out   string
	force bool
}

func (f *pageFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.out, "out", "", "draw the page into this `file`; - is standard output")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the file if there is one")
}

// dashboardCommand shows a context to a person: in a few lines, or as a page
// in a file.
func (a *App) dashboardCommand(o *op.Operation, name string) *cobra.Command {
	schema := o.InputSchema()
	cmd := &cobra.Command{
		Use:   name + " [JSON | -]",
		Short: "Show a context: what is in the window, what changed, and what it cost",
		Long: `Shows what is in an agent's context window, what changed in it, and what that
cost a prompt cache. With --out it draws a page into a file, complete in itself,
which any browser shows without a network. With --json it gives the model that
the page is made of. Nothing is published.

  loci context dashboard --scope project --out dashboard.html
  loci context dashboard --scope project --events 500 --json

The file holds the titles of pages, so only you may read it. One that exists
stays as it is unless --force is given.`,
	}
	in := newInputFlags(cmd, o, schema)
	var page pageFlags
	page.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if page.out == "-" && a.JSON() {
			return usageError{errors.New("--out - and --json both want standard output"), cmd.CommandPath()}
		}
		raw, err := a.operationInput(cmd, o, in, args)
		if err != nil {
			return err
		}
		out, err := a.answer(cmd.Context(), o, raw)
		if err != nil {
			return err
		}
		var m pager.Dashboard
		if err := json.Unmarshal(out, &m); err != nil {
			return err
		}
		if page.out != "" {
			if err := a.drawPage(o.Name, &m, &page); err != nil {
				return err
			}
		}
		switch {
		case a.JSON():
			return a.writeJSON(a.deps.Stdout, out)
		case page.out == "-":
			return nil
		case page.out != "":
			return a.Print(nil, func(w *Painter) { w.Line("Drawn into " + clean(page.out)) })
		}
		return a.Print(nil, func(w *Painter) { renderDashboard(w, &m) })
	}
	return cmd
}

// answer runs an operation and gives its answer.
func (a *App) answer(ctx context.Context, o *op.Operation, raw json.RawMessage) (out json.RawMessage, err error) {
	if err := o.Check(raw); err != nil {
		return nil, err // before a store is made for nothing
	}
	ctx, cancel, err := a.limit(ctx, o)
	if err != nil {
		return nil, err
	}
	defer cancel()
	m, err := a.open(ctx, false)
	if err != nil {
		return nil, errs.WithOp(o.Name, err)
	}
	defer func() { err = first(errors.Join(err, m.Close())) }()
	return m.run(ctx, a, o, raw)
}

// drawPage draws a page into a file, or onto standard output.
func (a *App) drawPage(name string, m *pager.Dashboard, f *pageFlags) error {
	var page bytes.Buffer
	if err := contextpage.Render(&page, m); err != nil {
		return err
	}
	if f.out == "-" {
		_, err := a.deps.Stdout.Write(page.Bytes())
		return err
	}
	return errs.WithOp(name, writeWhole(f.out, page.Bytes(), f.force))
}

// writeWhole makes a file that only its owner may read, whole or not at all.
// One that exists stays as it is unless it is to be replaced.
func writeWhole(file string, content []byte, replace bool) (err error) {
	if !replace {
		// An empty file holds the name until the whole one takes its place.
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return &loci.Error{Code: loci.ErrIO, Field: "out", Message: "exists and stays as it is: name a new file, or give --force"}
		}
		if err != nil {
			return errs.Wrap(errs.IO, err, "the file could not be made")
		}
		if err := f.Close(); err != nil {
			return errs.Wrap(errs.IO, err, "the file could not be made")
		}
		defer func() {
			if err != nil {
				err = first(errors.Join(err, os.Remove(file)))
			}
		}()
		return putWhole(file, content)
	}
	return putWhole(file, content)
}

// putWhole puts a file in the place of another.
func putWhole(file string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".loci-*") // of mode 0600
	if err != nil {
		return errs.Wrap(errs.IO, err, "the file could not be made")
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = first(errors.Join(err, f.Close())); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errs.Wrap(errs.IO, first(errors.Join(err, os.Remove(f.Name()))), "the file could not be written out")
	}
	return nil
}

// renderDashboard shows a context in a few lines.
func renderDashboard(w *Painter, m *pager.Dashboard) {
	now := &m.Now
	w.Line(w.Bold(clean(oneLine(strings.Join(m.Scope, " / ")))))
	pressure := now.Pressure
	switch pressure {
	case "advisory":
		pressure = w.Yellow(pressure)
	case "high", "hard":
		pressure = w.Red(pressure)
	}
	w.Line(fmt.Sprintf("%d of %d %s, %s: pressure %s", now.Cost, now.Budget, now.Unit, percent(&now.Used), pressure))
	published := "published as it stands"
	switch {
	case now.Generation == 0:
		published = "nothing published yet"
	case now.Unpublished:
		published = "changes wait to be published"
	}
	w.Line(fmt.Sprintf("Stable prefix %d of %d bytes, generation %d, %s", now.StablePrefixBytes, now.TextBytes, now.Generation, published))
	w.Line("")
	row := func(name string, t *pager.TierShare) []string {
		return []string{name, fmt.Sprint(t.Pages), fmt.Sprint(t.Bytes), fmt.Sprint(t.RenderedBytes)}
	}
	archive := row("archive", &m.Composition.Archive)
	archive[3] = "–" // it is not in the text
	w.Table([]string{"TIER", "PAGES", "BYTES", "IN THE TEXT"},
		[][]string{row("core", &m.Composition.Core), row("working", &m.Composition.Working), archive})
	w.Line("")
	t := &m.Totals
	w.Line(fmt.Sprintf("%s, %s of those behind the first left the prefix intact", plural(int(t.Renders), "change of the published bytes", "changes of the published bytes"), percent(t.IntactShare)))
	w.Line(fmt.Sprintf("%d bytes invalidated, %d rewritten, %s, %s", t.InvalidatedBytes, t.RewrittenBytes,
		plural(int(t.Evictions), "eviction", "evictions"), plural(int(t.Faults), "fault", "faults")))
	if sum := &m.Usage.Totals.Provider; sum.Calls > 0 {
		w.Line(fmt.Sprintf("Billed %s, cache hit rate %s", plural(int(sum.Calls), "call", "calls"), percent(sum.HitRate)))
	}
	if sum := &m.Usage.Totals.Simulated; sum.Calls > 0 {
		w.Line(w.Yellow(fmt.Sprintf("Simulated accounting: %s that nobody billed, cache hit rate %s", plural(int(sum.Calls), "call", "calls"), percent(sum.HitRate))))
	}
	p := &m.Replacement.Policy
	w.Line(fmt.Sprintf("Policy %s, every %d turns, from %d%% down to %d%%, %s; %s, %s", p.Mode, p.EveryN, p.ThresholdPct, p.TargetPct, p.Strategy,
		plural(int(m.Replacement.State.Turns), "turn", "turns"), plural(int(m.Replacement.State.Runs), "run", "runs")))
	for i := range m.Warnings {
		w.Line(w.Yellow("Warning: " + clean(oneLine(m.Warnings[i].Message))))
	}
}

// contextDemoCommand plays an agent's session and draws it.
func (a *App) contextDemoCommand() *cobra.Command {
	var page pageFlags
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play an agent's session and show what each step does to the prefix",
		Long: `Plays a session of forty steps that is made up, in a store of its own: pages are
written, evicted, recalled, folded and restored, and each step says how much of
the text a prompt cache could still use. The model is not called; what its calls
would cost is reckoned and marked as simulated. Your own contexts are not touched,
and the store is removed at the end unless --keep names a directory.

  loci context demo --out session.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if page.out == "-" {
				return usageError{errors.New("the walk-through goes to standard output: give --out the name of a file"), cmd.CommandPath()}
			}
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			opts := session.Options{Out: a.deps.Stdout, Color: a.Color(), Dir: keep}
			var report bytes.Buffer
			if a.JSON() {
				opts.Out, opts.Color = &report, false
			}
			m, err := session.Run(ctx, opts)
			if err != nil {
				return err
			}
			if page.out != "" {
				if err := a.drawPage("context.demo", m, &page); err != nil {
					return err
				}
			}
			if a.JSON() {
				return a.writeJSON(a.deps.Stdout, map[string]any{"report": report.String(), "dashboard": m})
			}
			if page.out == "" {
				a.Note("A picture of it: loci context demo --out session.html")
				return nil
			}
			return a.Print(nil, func(w *Painter) { w.Line("Drawn into " + clean(page.out)) })
		},
	}
	page.add(cmd)
	cmd.Flags().StringVar(&keep, "keep", "", "make the store in this `directory` and leave it there")
	return cmd
}
