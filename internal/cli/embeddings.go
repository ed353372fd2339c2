package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// addSwitches puts the two commands that people turn vectors on and off with
// among the operations on embeddings.
func (a *App) addSwitches(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "embeddings" {
			c.AddCommand(a.switchCommand("enable", true), a.switchCommand("disable", false))
		}
	}
}

func (a *App) switchCommand(name string, on bool) *cobra.Command {
	tiers := []string{string(loci.TierMemory), string(loci.TierGraph), string(loci.TierNotes), string(loci.TierPages), string(loci.TierAgent)}
	does := "Turn the vectors of a tier, or of all of a namespace, off"
	if on {
		does = "Turn the vectors of a tier, or of all of a namespace, on"
	}
	return &cobra.Command{
		Use:   name + " [" + strings.Join(tiers, " | ") + "]",
		Short: does,
		Long: does + `. Without a tier it is the
namespace's own switch, over those of its tiers, which stay as they are. Vectors
that are there stay as well; missing ones are made by: loci embeddings sync`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: tiers,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, in := "embeddings.set_namespace_vectorization", map[string]any{"enabled": on}
			if len(args) == 1 {
				name, in["tier"] = "embeddings.set_vectorization", args[0]
			}
			raw, err := marshal(in)
			if err != nil {
				return err
			}
			o, ok := op.Default().Lookup(name)
			if !ok {
				return op.Default().Unknown(name)
			}
			if raw, err = a.fillDefaults(o, o.InputSchema(), raw, nil); err != nil {
				return err
			}
			return a.Call(cmd.Context(), name, raw)
		},
	}
}

// renderVectorResult shows the result of an operation on embeddings; false when
// it has no form of its own.
func renderVectorResult(w *Painter, name string, raw json.RawMessage) (bool, error) {
	switch name {
	case "embeddings.status":
		return true, render(raw, w, renderVectorStatus)
	case "embeddings.spaces":
		return true, render(raw, w, renderSpaces)
	case "embeddings.sync":
		return true, render(raw, w, renderVectorSync)
	case "embeddings.set_vectorization", "embeddings.set_namespace_vectorization":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[bool]) {
			if r.Value {
				w.Line("On. Missing vectors are made by: loci embeddings sync")
			} else {
				w.Line("Off. Vectors that are there stay, and searches leave them out")
			}
		})
	case "embeddings.delete_space":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[bool]) {
			if r.Value {
				w.Line("Deleted, with its vectors")
			} else {
				w.Line("There was no such space")
			}
		})
	}
	return false, nil
}

func renderVectorStatus(w *Painter, r op.VectorStatus) {
	w.Line("Space " + w.Bold(clean(r.Space)))
	rows := make([][]string, len(r.Tiers))
	for i, t := range r.Tiers {
		state := "off"
		switch missing := t.Records - t.Vectors - t.Left; {
		case !t.Enabled || !r.Enabled:
		case missing > 0:
			state = strconv.FormatInt(missing, 10) + " missing"
		case t.Left > 0:
			state = fmt.Sprintf("complete, but for %d that no vector can be made of", t.Left)
		default:
			state = "complete"
		}
		rows[i] = []string{string(t.Tier), strconv.FormatInt(t.Records, 10), strconv.FormatInt(t.Vectors, 10), state}
	}
	w.Table([]string{"TIER", "RECORDS", "VECTORS", "STATE"}, rows)
	if !r.Enabled {
		w.Line("The namespace is turned off: loci embeddings enable")
	}
}

func renderSpaces(w *Painter, r op.Spaces) {
	if len(r.Spaces) == 0 {
		w.Line("There is no space yet: loci embeddings sync makes one")
		return
	}
	rows := make([][]string, len(r.Spaces))
	for i, sp := range r.Spaces {
		rows[i] = []string{strconv.Itoa(sp.Dimension), string(sp.Encoding), sp.ID}
	}
	w.Table([]string{"DIMENSION", "ENCODING", "SPACE"}, rows)
}

func renderVectorSync(w *Painter, r loci.Receipt[loci.EmbeddingReport]) {
	v := r.Value
	text := plural(int(v.Embedded), "vector", "vectors") + " made"
	if v.Skipped > 0 {
		text += fmt.Sprintf(", %d left to a change meanwhile", v.Skipped)
	}
	if v.Cut > 0 {
		text += fmt.Sprintf(", %d of texts longer than the model reads", v.Cut)
	}
	w.Line(text)
	if v.Failed > 0 {
		w.Line(w.Yellow(plural(int(v.Failed), "text is", "texts are") + " refused by the model"))
	}
	switch {
	case v.Interrupted != "":
		w.Line(w.Yellow("It ended early: " + clean(v.Interrupted)))
		w.Line("What was made stays; go on with: loci embeddings sync")
	case v.Ready:
		w.Line("Nothing lacks a vector")
	default:
		w.Line("Something was written meanwhile and lacks a vector")
	}
}

// renderMissing says what only its words could find.
func renderMissing(w *Painter, missing []loci.VectorMissing) {
	if w.wordsOnly {
		return
	}
	for _, m := range missing {
		w.Line(w.Dim(fmt.Sprintf("%d of %d records of tier %s have no vectors: loci embeddings sync", m.Missing, m.Total, m.Tier)))
	}
}
