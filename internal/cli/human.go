package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// renderResult shows an operation's result to a person. What has no form of
// its own is shown as names and values.
func renderResult(w *Painter, name string, raw json.RawMessage) error {
	switch name {
	case "remember":
		return render(raw, w, renderRemembered)
	case "recall":
		return render(raw, w, renderRecalled)
	case "search":
		return render(raw, w, renderSearch)
	case "search_with_context":
		return render(raw, w, renderContextual)
	case "search_preset":
		return render(raw, w, renderPreset)
	case "memories.list":
		return render(raw, w, renderMemories)
	case "memories.upsert", "memories.upsert_by_judgment":
		return render(raw, w, func(w *Painter, r loci.Receipt[loci.Memory]) {
			w.Line(fmt.Sprintf("Memory %s written at revision %d", w.Bold(idText(r.Value.ID)), r.Revision))
		})
	case "memories.upsert_many":
		return render(raw, w, func(w *Painter, r loci.Receipt[[]loci.Memory]) {
			w.Line(fmt.Sprintf("%d memories written at revision %d", len(r.Value), r.Revision))
		})
	case "graph.apply_batch":
		return render(raw, w, renderBatch)
	case "graph.list":
		return render(raw, w, renderGraphPage)
	case "graph.resolve":
		return render(raw, w, renderResolved)
	case "graph.neighbors":
		return render(raw, w, renderNeighborhood)
	case "graph.events_for_entity":
		return render(raw, w, func(w *Painter, r op.EntityEvents) { renderEvents(w, r.Events) })
	case "import_from":
		return render(raw, w, renderImportedFrom)
	case "graph.import_text":
		return render(raw, w, func(w *Painter, r loci.Receipt[loci.GraphTextResult]) {
			w.Line(fmt.Sprintf("%s and %s read, written up to revision %d", plural(r.Value.Entities, "entity", "entities"),
				plural(r.Value.Relations, "relation", "relations"), r.Revision))
		})
	case "graph.ego", "graph.path":
		return render(raw, w, renderFound)
	case "graph.predicate_rules":
		return render(raw, w, renderRules)
	case "graph.predicate_equivalents":
		return render(raw, w, renderEquivalents)
	case "erase":
		return render(raw, w, renderErased)
	case "vacuum":
		return render(raw, w, renderVacuumed)
	case "memories.delete", "graph.delete", "graph.delete_predicate_rule":
		return render(raw, w, func(w *Painter, r loci.Receipt[bool]) {
			if r.Value {
				w.Line("Deleted")
			} else {
				w.Line("There was nothing to delete")
			}
		})
	}
	if shown, err := renderNoteResult(w, name, raw); shown {
		return err
	}
	if shown, err := renderVectorResult(w, name, raw); shown {
		return err
	}
	if shown, err := renderAgentResult(w, name, raw); shown {
		return err
	}
	return renderAny(w, raw)
}

func render[T any](raw json.RawMessage, w *Painter, f func(*Painter, T)) error {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	f(w, v)
	return nil
}

func idText(id loci.ID) string { return "#" + strconv.FormatInt(int64(id), 10) }

func renderRemembered(w *Painter, r op.Remembered) {
	w.Line(fmt.Sprintf("Remembered %s in %s/%s", w.Bold(idText(r.ID)), clean(r.Namespace), clean(r.Scope)))
}

func renderRecalled(w *Painter, r op.Recalled) {
	for _, h := range r.Hits {
		facts := []string{idText(h.ID), h.Type}
		if len(h.Tags) > 0 {
			facts = append(facts, strings.Join(h.Tags, ", "))
		}
		facts = append(facts, day(h.CreatedAtUS))
		renderHit(w, h.Text, h.Reasoning, h.Score, facts)
	}
	if len(r.Hits) == 0 {
		w.Line("Nothing is remembered about that")
	}
	renderMissing(w, r.VectorMissing)
	renderDegraded(w, r.Degraded)
}

func renderHit(w *Painter, text, reasoning string, score float64, facts []string) {
	w.Line(w.Bold(clean(text)))
	if reasoning != "" {
		w.Line("  " + strings.ReplaceAll(clean(reasoning), "\n", "\n  "))
	}
	facts = append(facts, "score "+strconv.FormatFloat(score, 'f', 3, 64))
	w.Line("  " + w.Dim(clean(strings.Join(facts, " · "))))
}

func renderDegraded(w *Painter, degraded []loci.Degrade) {
	for _, d := range degraded {
		if w.wordsOnly && (d == loci.DegradeNoSpace || d == loci.DegradeNoEmbedder) {
			continue
		}
		w.Line(w.Yellow("The search was incomplete: " + strings.ReplaceAll(string(d), "_", " ")))
	}
}

// searchView is a search result whose records are still JSON.
type searchView struct {
	Hits        []hitView              `json:"hits"`
	Total       *int64                 `json:"total"`
	Diagnostics loci.SearchDiagnostics `json:"diagnostics"`
}

func renderSearch(w *Painter, r searchView) {
	for _, h := range r.Hits {
		renderRecordHit(w, h)
	}
	renderFoot(w, len(r.Hits), r.Total, r.Diagnostics)
}

func renderMemories(w *Painter, p loci.Page[loci.Memory]) {
	if len(p.Items) == 0 {
		w.Line("There are no memories here")
		return
	}
	rows := make([][]string, len(p.Items))
	for i, m := range p.Items {
		rows[i] = []string{strconv.FormatInt(int64(m.ID), 10), m.MemoryType, day(m.CreatedAtUS), strings.Join(m.Tags, ","), m.Judgment}
	}
	w.Table([]string{"ID", "TYPE", "CREATED", "TAGS", "JUDGMENT"}, rows)
	if p.NextCursor != 0 {
		w.Line(w.Dim(fmt.Sprintf("There are more: --after %d", p.NextCursor)))
	}
}

func day(us int64) string { return time.UnixMicro(us).UTC().Format(time.DateOnly) }

// member is one field of an object in the order of the text.
type member struct {
	name  string
	value any
}

// renderAny shows any JSON object: scalars first as they come, what is nested
// indented below its name.
func renderAny(w *Painter, raw json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := ordered(dec)
	if err != nil {
		return err
	}
	obj, ok := v.([]member)
	if !ok {
		w.Line(scalarText("", v))
		return nil
	}
	var pairs [][2]string
	flatten(obj, "", &pairs)
	w.Pairs(pairs)
	return nil
}

// ordered decodes a value and keeps the order of an object's fields.
func ordered(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		obj := []member{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := ordered(dec)
			if err != nil {
				return nil, err
			}
			obj = append(obj, member{name.(string), v})
		}
		_, err := dec.Token()
		return obj, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := ordered(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return tok, nil
}

func flatten(obj []member, prefix string, pairs *[][2]string) {
	for _, m := range obj {
		name := prefix + strings.ReplaceAll(m.name, "_", " ")
		switch v := m.value.(type) {
		case []member:
			if len(v) == 0 {
				continue
			}
			flatten(v, name+" / ", pairs)
		case []any:
			words := make([]string, 0, len(v))
			nested := false
			for i, e := range v {
				if inner, ok := e.([]member); ok {
					nested = true
					flatten(inner, name+" "+strconv.Itoa(i+1)+" / ", pairs)
					continue
				}
				words = append(words, scalarText("", e))
			}
			if !nested {
				text := strings.Join(words, ", ")
				if text == "" {
					text = "none"
				}
				*pairs = append(*pairs, [2]string{name, text})
			}
		default:
			if text := scalarText(m.name, v); text != "" {
				*pairs = append(*pairs, [2]string{strings.TrimSuffix(name, " us"), text})
			}
		}
	}
}

func scalarText(name string, v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case json.Number:
		if us, err := v.Int64(); err == nil && strings.HasSuffix(name, "_at_us") {
			return time.UnixMicro(us).UTC().Format(time.RFC3339)
		}
		return v.String()
	default:
		return fmt.Sprint(v)
	}
}
