package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
)

// hitView is a hit whose record is still JSON.
type hitView struct {
	Key     string          `json:"key"`
	Score   float64         `json:"score"`
	Record  json.RawMessage `json:"record"`
	Explain *loci.Explain   `json:"explain"`
}

// contextualView is a search with context whose records are still JSON.
type contextualView struct {
	Hits []struct {
		hitView
		Context loci.Neighborhood `json:"context"`
	} `json:"hits"`
	Total       *int64                 `json:"total"`
	Diagnostics loci.SearchDiagnostics `json:"diagnostics"`
}

func renderContextual(w *Painter, r contextualView) {
	for _, h := range r.Hits {
		renderRecordHit(w, h.hitView)
		if len(h.Context.Entities)+len(h.Context.Relations) > 0 {
			w.Line("  " + w.Dim(fmt.Sprintf("known about its tags: %d entities, %d relations", len(h.Context.Entities), len(h.Context.Relations))))
		}
	}
	renderFoot(w, len(r.Hits), r.Total, r.Diagnostics)
}

// presetView is a preset's result whose records are still JSON.
type presetView struct {
	Memories []hitView         `json:"memories"`
	Graph    loci.GraphSection `json:"graph"`
	Notes    struct {
		Titles   []hitView `json:"titles"`
		Contents []hitView `json:"contents"`
		Paths    []hitView `json:"paths"`
	} `json:"notes"`
	Diagnostics loci.SearchDiagnostics `json:"diagnostics"`
}

func renderPreset(w *Painter, r presetView) {
	found := 0
	section := func(title string, hits []hitView) {
		if len(hits) == 0 {
			return
		}
		found += len(hits)
		w.Line(w.Bold(title))
		for _, h := range hits {
			renderRecordHit(w, h)
		}
	}
	section("Memories", r.Memories)
	names := map[loci.ID]string{}
	for _, e := range r.Graph.Entities {
		names[e.ID] = e.Name
	}
	name := func(id loci.ID) string {
		if n, ok := names[id]; ok {
			return clean(n)
		}
		return idText(id)
	}
	if len(r.Graph.Entities) > 0 {
		found += len(r.Graph.Entities)
		w.Line(w.Bold("Graph"))
	}
	for _, e := range r.Graph.Entities {
		line := clean(e.Name)
		if len(e.Aliases) > 0 {
			line += " (" + clean(strings.Join(e.Aliases, ", ")) + ")"
		}
		w.Line("  " + line + " " + w.Dim(clean(e.EntityType)+" "+idText(e.ID)))
	}
	for _, rel := range append(r.Graph.Relations, r.Graph.ContextRelations...) {
		w.Line("  " + name(rel.SubjectID) + " " + clean(rel.Predicate) + " " + name(rel.ObjectID))
	}
	for _, v := range r.Graph.ContextEvents {
		people := make([]string, len(v.Participants))
		for i, id := range v.Participants {
			people[i] = name(id)
		}
		w.Line("  " + clean(v.Name) + ": " + strings.Join(people, ", "))
	}
	section("Notes by name", r.Notes.Titles)
	section("Notes by text", r.Notes.Contents)
	section("Notes by folder", r.Notes.Paths)
	renderFoot(w, found, nil, r.Diagnostics)
}

// pageColumns is how much of a page without a title a hit shows.
const pageColumns = 120

// renderRecordHit shows a hit by what its record says of itself.
func renderRecordHit(w *Painter, h hitView) {
	var rec struct {
		Judgment  string   `json:"judgment"`
		Reasoning string   `json:"reasoning"`
		Content   string   `json:"content"`
		Type      string   `json:"memory_type"`
		Tags      []string `json:"tags"`

		// Of a page of a context:
		PageID  string `json:"page_id"`
		Version int64  `json:"version"`
		Tier    string `json:"tier"`
		Title   string `json:"title"`
		Summary string `json:"summary"`

		// Of a point of an agent memory; a fact's text is its content.
		RecordID    string   `json:"record_id"`
		PointID     string   `json:"id"`
		Description string   `json:"description"`
		AtUS        int64    `json:"at_us"`
		Name        string   `json:"name"`
		Steps       []string `json:"steps"`
	}
	// A record of a kind without these fields is shown by its key alone.
	_ = json.Unmarshal(h.Record, &rec)
	facts := []string{h.Key}
	if rec.Type != "" {
		facts = append(facts, rec.Type)
	}
	if len(rec.Tags) > 0 {
		facts = append(facts, strings.Join(rec.Tags, ", "))
	}
	title, more := rec.Judgment, rec.Reasoning
	switch {
	case rec.PageID != "":
		facts = append(facts, fmt.Sprintf("%s@%d", rec.PageID, rec.Version), rec.Tier)
		// A page may have a megabyte: context read shows all of it.
		if title, more = rec.Title, rec.Summary; title == "" {
			title = cut(oneLine(rec.Content), pageColumns)
		}
	case rec.RecordID != "":
		// A text may have a megabyte: get shows all of it.
		title = cut(oneLine(rec.Content+rec.Description+rec.Name), pageColumns)
		more = cut(oneLine(strings.Join(rec.Steps, "; ")), pageColumns)
		facts = append(facts, "id "+rec.PointID)
		if rec.Description != "" {
			facts = append(facts, instant(rec.AtUS))
		}
	case title == "":
		title = rec.Content
	}
	if title == "" {
		title, more = graphTitle(h.Record)
	}
	if title == "" {
		title = h.Key
	}
	renderHit(w, title, more, h.Score, facts)
	if e := h.Explain; e != nil {
		for _, line := range explainLines(e) {
			w.Line("  " + w.Dim(clean(line)))
		}
	}
}

// explainLines say what each path gave to a hit.
func explainLines(e *loci.Explain) (lines []string) {
	if e.TextRank > 0 {
		terms := make([]string, len(e.Terms))
		for i, t := range e.Terms {
			terms[i] = fmt.Sprintf("%s %.3f", t.Term, t.Score)
		}
		lines = append(lines, fmt.Sprintf("rank %d, %s, terms: %s", e.TextRank, strings.ReplaceAll(e.Round, "_", " "), strings.Join(terms, ", ")))
	}
	if e.VectorRank > 0 {
		lines = append(lines, fmt.Sprintf("rank %d by its vector, cosine %.3f; %.3f of the score are the text's, %.3f the vector's", e.VectorRank, e.VectorScore, e.TextPart, e.VectorPart))
	}
	if e.RerankRank > 0 {
		lines = append(lines, fmt.Sprintf("rank %d by the reranker", e.RerankRank))
	}
	return lines
}

// renderFoot ends a list of hits.
func renderFoot(w *Painter, hits int, total *int64, d loci.SearchDiagnostics) {
	if hits == 0 {
		w.Line("Nothing was found")
	}
	if total != nil {
		w.Line(w.Dim(fmt.Sprintf("%d of %d", hits, *total)))
	}
	renderMissing(w, d.VectorMissing)
	renderDegraded(w, d.Degraded)
}
