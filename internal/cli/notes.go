package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/notewatch"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// addWatch puts the watch command among the operations on notes.
func (a *App) addWatch(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "notes" {
			c.AddCommand(a.watchCommand())
		}
	}
}

func (a *App) watchCommand() *cobra.Command {
	var o loci.SyncOptions
	var poll time.Duration
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Keep a namespace's notes up to their folder until stopped",
		Long: `Does what "loci notes sync-dir" does, at once and whenever a file under the root
changes. It holds the data directory meanwhile.

  loci notes set-root ~/notes
  loci notes watch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("tags") && o.Tags == nil {
				o.Tags = []string{}
			}
			d, err := a.domain()
			if err != nil {
				return err
			}
			switch len(d.scopes) {
			case 0:
			case 1:
				o.Scope = &d.scopes[0]
			default:
				return usageError{errors.New("notes are written to one scope: give --scope once"), cmd.CommandPath()}
			}
			m, err := a.shared(ctx, &loci.Options{WaitForIndex: true})
			if err != nil {
				return errs.WithOp("notes.watch", err)
			}
			return errors.Join(a.watch(ctx, m, valueOr(d.namespace, loci.DefaultNamespace), o, poll), m.Close())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Tags, "tags", nil, "tags of every note, beside its path; left out, notes keep theirs")
	f.StringSliceVar(&o.Extensions, "extensions", nil, "of files to bring in (default .md,.markdown,.txt)")
	f.BoolVar(&o.AllowMassDelete, "allow-mass-delete", false, "let more than half of the notes go")
	f.DurationVar(&poll, "poll", 0, "look this often even if the system tells of no change (default 30s)")
	return cmd
}

func valueOr(p *string, otherwise string) string {
	if p == nil {
		return otherwise
	}
	return *p
}

// watch keeps notes up to their folder until ctx ends.
func (a *App) watch(ctx context.Context, caller op.Caller, namespace string, o loci.SyncOptions, poll time.Duration) error {
	in, err := marshal(map[string]any{"namespace": namespace})
	if err != nil {
		return err
	}
	out, err := caller.Call(ctx, "notes.root", in)
	if err != nil {
		return err
	}
	var root op.RootAnswer
	if err := json.Unmarshal(out, &root); err != nil {
		return err
	}
	if in, err = syncInput(namespace, o); err != nil {
		return err
	}
	first := true
	return notewatch.Watch(ctx, root.Root, notewatch.Options{Poll: poll}, func(ctx context.Context) error {
		if first {
			p := a.Progress("Bring in notes")
			defer p.Close()
			ctx = op.WithProgress(ctx, p.Update)
		}
		out, err := caller.Call(ctx, "notes.sync_dir", in)
		if err != nil {
			// What ails the folder may pass; a wrong call does not.
			if first || errors.Is(err, loci.ErrClosed) || errors.Is(err, loci.ErrStorage) {
				return err
			}
			a.Log().Warn("the notes could not be brought up to their folder", "error", err)
			return nil
		}
		var r loci.Receipt[loci.SyncReport]
		if err := json.Unmarshal(out, &r); err != nil {
			return err
		}
		if v := r.Value; first || v.Added+v.Changed+v.Deleted > 0 {
			first = false
			return a.Print(r, func(w *Painter) { renderSync(w, r) })
		}
		return nil
	})
}

// syncInput is the input of notes.sync_dir. No tags at all are not the same as
// none given.
func syncInput(namespace string, o loci.SyncOptions) (json.RawMessage, error) {
	raw, err := marshal(o)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	put(fields, "namespace", namespace, true)
	if o.Tags != nil {
		put(fields, "tags", o.Tags, true)
	}
	return marshal(fields)
}

// renderNoteResult shows the result of an operation on notes; false when it has
// no form of its own.
func renderNoteResult(w *Painter, name string, raw json.RawMessage) (bool, error) {
	switch name {
	case "notes.list":
		return true, render(raw, w, renderNotes)
	case "notes.chunks":
		return true, render(raw, w, renderChunks)
	case "notes.get_chunk":
		return true, render(raw, w, func(w *Painter, c loci.Chunk) { renderChunk(w, c) })
	case "notes.sync_dir":
		return true, render(raw, w, renderSync)
	case "notes.upsert_file":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[loci.Note]) {
			w.Line(fmt.Sprintf("Note %s, %s, at revision %d", w.Bold(idText(r.Value.ID)), clean(r.Value.Path), r.Value.Revision))
		})
	case "notes.set_root":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[string]) { w.Line("Notes lie under " + clean(r.Value)) })
	case "notes.root":
		return true, render(raw, w, func(w *Painter, r op.RootAnswer) {
			if r.Root == "" {
				w.Line("No root is registered: loci notes set-root FOLDER")
				return
			}
			w.Line(clean(r.Root))
		})
	}
	return false, nil
}

func renderNotes(w *Painter, p loci.Page[loci.Note]) {
	if len(p.Items) == 0 {
		w.Line("There are no notes here")
		return
	}
	rows := make([][]string, len(p.Items))
	for i, n := range p.Items {
		rows[i] = []string{number(n.ID), day(n.UpdatedAtUS), strconv.FormatInt(n.Bytes, 10), strings.Join(n.Tags, ","), n.Path}
	}
	w.Table([]string{"ID", "UPDATED", "BYTES", "TAGS", "PATH"}, rows)
	if p.NextCursor != 0 {
		w.Line(w.Dim(fmt.Sprintf("There are more: --after %d", p.NextCursor)))
	}
}

func renderChunks(w *Painter, p loci.Page[loci.Chunk]) {
	if len(p.Items) == 0 {
		w.Line("The note has no text here")
	}
	for _, c := range p.Items {
		renderChunk(w, c)
	}
	if p.NextCursor != 0 {
		w.Line(w.Dim(fmt.Sprintf("There are more: --after %d", p.NextCursor)))
	}
}

func renderChunk(w *Painter, c loci.Chunk) {
	w.Line(w.Dim(fmt.Sprintf("%s, line %d", idText(c.ID), c.Offset)))
	w.Line(clean(c.Content))
}

func renderSync(w *Painter, r loci.Receipt[loci.SyncReport]) {
	v := r.Value
	w.Line(fmt.Sprintf("%s: %d added, %d changed, %d unchanged, %d deleted", plural(v.Files, "file", "files"), v.Added, v.Changed, v.Unchanged, v.Deleted))
	if v.Converted > 0 {
		w.Line(fmt.Sprintf("%d converted to UTF-8", v.Converted))
	}
	for _, p := range v.Problems {
		text := clean(p.Path) + ": " + clean(p.Message)
		if p.Skipped {
			text = "left out " + text
		}
		w.Line(w.Yellow(text))
	}
}
