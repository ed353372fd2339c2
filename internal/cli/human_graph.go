package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func renderBatch(w *Painter, r loci.Receipt[loci.GraphBatchResult]) {
	v := r.Value
	w.Line(fmt.Sprintf("%s, %s and %s written at revision %d", plural(len(v.Entities), "entity", "entities"),
		plural(len(v.Relations), "relation", "relations"), plural(len(v.Events), "event", "events"), r.Revision))
	if len(v.Entities) > 0 {
		renderEntities(w, v.Entities)
	}
}

func renderEntities(w *Painter, entities []loci.Entity) {
	rows := make([][]string, len(entities))
	for i, e := range entities {
		rows[i] = []string{number(e.ID), e.EntityType, e.Name, strings.Join(e.Aliases, ", "), e.Summary}
	}
	w.Table([]string{"ID", "TYPE", "NAME", "ALIASES", "SUMMARY"}, rows)
}

// renderRelations shows relations with the names of those entities that are
// known, and the ids of the others.
func renderRelations(w *Painter, relations []loci.Relation, names map[loci.ID]string) {
	end := func(id loci.ID) string {
		if name := names[id]; name != "" {
			return name
		}
		return idText(id)
	}
	rows := make([][]string, len(relations))
	for i, r := range relations {
		rows[i] = []string{number(r.ID), end(r.SubjectID), r.Predicate, end(r.ObjectID), strconv.FormatFloat(r.Confidence, 'g', 3, 64), r.Reason}
	}
	w.Table([]string{"ID", "SUBJECT", "PREDICATE", "OBJECT", "CONFIDENCE", "REASON"}, rows)
}

func renderEvents(w *Painter, events []loci.Event) {
	if len(events) == 0 {
		w.Line("There are no events here")
		return
	}
	rows := make([][]string, len(events))
	for i, v := range events {
		who := make([]string, len(v.Participants))
		for j, id := range v.Participants {
			who[j] = idText(id)
		}
		rows[i] = []string{number(v.ID), v.Name, strings.Join(who, " "), v.Summary}
	}
	w.Table([]string{"ID", "NAME", "PARTICIPANTS", "SUMMARY"}, rows)
}

func renderResolved(w *Painter, r op.ResolvedEntities) {
	if len(r.Entities) == 0 {
		w.Line("Nobody goes by that name")
		return
	}
	renderEntities(w, r.Entities)
}

func renderFound(w *Painter, r op.FoundEntities) {
	if len(r.Points) > 0 {
		renderPoints(w, r.Points)
		return
	}
	if len(r.Entities) == 0 {
		w.Line("There are no entities here")
		return
	}
	renderEntities(w, r.Entities)
}

// renderPoints shows points of agent memory, each by the text that its kind has.
func renderPoints(w *Painter, points []any) {
	rows := make([][]string, 0, len(points))
	for _, p := range points {
		fields, _ := p.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		for _, kind := range []struct {
			name loci.Kind
			key  string
		}{{loci.KindFact, "content"}, {loci.KindEpisode, "description"}, {loci.KindProcedure, "name"}} {
			if _, ok := fields[kind.key]; ok {
				rows = append(rows, []string{text("record_id"), string(kind.name), text("id"), text(kind.key)})
				break
			}
		}
	}
	w.Table([]string{"RECORD", "KIND", "ID", "TEXT"}, rows)
}

func renderRules(w *Painter, r op.RuleList) {
	if len(r.Rules) == 0 {
		w.Line("There are no rules here")
		return
	}
	rows := make([][]string, len(r.Rules))
	for i, rule := range r.Rules {
		implies := rule.Inverse
		if rule.Symmetric {
			implies = rule.Predicate
		}
		rows[i] = []string{rule.Namespace, rule.Predicate, implies}
	}
	w.Table([]string{"NAMESPACE", "PREDICATE", "IMPLIES BACKWARDS"}, rows)
}

func renderEquivalents(w *Painter, r op.EquivalentsList) {
	if len(r.Groups) == 0 {
		w.Line("There are no groups here")
		return
	}
	rows := make([][]string, len(r.Groups))
	for i, g := range r.Groups {
		rows[i] = []string{g.Canonical, strings.Join(g.Words, ", ")}
	}
	w.Table([]string{"CANONICAL", "WORDS"}, rows)
}

func renderNeighborhood(w *Painter, n loci.Neighborhood) {
	if len(n.Relations) == 0 {
		w.Line("There are no relations here")
		return
	}
	names := make(map[loci.ID]string, len(n.Entities))
	for _, e := range n.Entities {
		names[e.ID] = e.Name
	}
	renderRelations(w, n.Relations, names)
}

func renderGraphPage(w *Painter, p loci.Page[json.RawMessage]) {
	var entities []loci.Entity
	var relations []loci.Relation
	var events []loci.Event
	for _, raw := range p.Items {
		// What kind it is shows in what it has.
		var has struct {
			Type      *string `json:"entity_type"`
			Predicate *string `json:"predicate"`
		}
		_ = json.Unmarshal(raw, &has)
		switch {
		case has.Type != nil:
			entities = appendJSON(entities, raw)
		case has.Predicate != nil:
			relations = appendJSON(relations, raw)
		default:
			events = appendJSON(events, raw)
		}
	}
	switch {
	case len(entities) > 0:
		renderEntities(w, entities)
	case len(relations) > 0:
		renderRelations(w, relations, nil)
	case len(events) > 0:
		renderEvents(w, events)
	default:
		w.Line("There is nothing here")
	}
	if p.NextCursor != 0 {
		w.Line(w.Dim(fmt.Sprintf("There are more: --after %d", p.NextCursor)))
	}
}

func appendJSON[T any](list []T, raw json.RawMessage) []T {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		list = append(list, v)
	}
	return list
}

func number(id loci.ID) string { return strconv.FormatInt(int64(id), 10) }

// graphTitle gives what a record of the graph is called and what else it says;
// nothing for other records.
func graphTitle(raw json.RawMessage) (title, more string) {
	var r struct {
		Name      string  `json:"name"`
		Summary   string  `json:"summary"`
		Predicate string  `json:"predicate"`
		Subject   loci.ID `json:"subject_id"`
		Object    loci.ID `json:"object_id"`
		Reason    string  `json:"reason"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return "", ""
	}
	if r.Predicate != "" {
		return fmt.Sprintf("%s %s %s", idText(r.Subject), r.Predicate, idText(r.Object)), r.Reason
	}
	return r.Name, r.Summary
}
