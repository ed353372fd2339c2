package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/pager"
)

// renderContextResult shows the result of an operation on a context; false when
// it has no form of its own. What is a text goes to w as it is, and the figures
// about it to notes.
func renderContextResult(w, notes *Painter, name string, raw json.RawMessage) (bool, error) {
	switch strings.TrimPrefix(name, contextPrefix) {
	case "render", "snapshot":
		return true, render(raw, w, func(w *Painter, s pager.Snapshot) { renderWindow(w, notes, &s) })
	case "prefix":
		return true, render(raw, w, func(w *Painter, r pager.PrefixResult) {
			whole := r.Prefix + r.Tail
			r.Text = &whole
			renderWindow(w, notes, &r.Snapshot)
			if r.Last != nil {
				notes.Line(notes.Dim("the last change: " + changeText(r.Last)))
			}
		})
	case "read":
		return true, render(raw, w, func(w *Painter, r pager.ReadResult) {
			w.Text(r.Content)
			notes.Line(notes.Dim(clean(strings.Join(referenceFacts(&r.Page), " · "))))
			if r.Page.Version != r.CurrentVersion {
				notes.Line(notes.Dim(fmt.Sprintf("the current version is %d", r.CurrentVersion)))
			}
		})
	case "write":
		return true, render(raw, w, func(w *Painter, r pager.WriteResult) {
			renderPlaced(w, &r.Page, r.Changed, "written", r.Evicted)
		})
	case "page_in":
		return true, render(raw, w, func(w *Painter, r pager.PageInResult) {
			renderPlaced(w, &r.Page, r.Changed, "brought in", r.Evicted)
		})
	case "page_out":
		return true, render(raw, w, func(w *Painter, r pager.PageOutResult) {
			renderPlaced(w, &r.Page, r.Changed, "put out", nil)
		})
	case "unpin":
		return true, render(raw, w, func(w *Painter, r pager.UnpinResult) {
			renderPlaced(w, &r.Page, r.Changed, "unpinned", r.Evicted)
		})
	case "compact":
		return true, render(raw, w, func(w *Painter, r pager.CompactResult) {
			renderPlaced(w, &r.Page, true, fmt.Sprintf("compacted from %d to %d bytes", r.PreviousBytes, r.Page.Bytes), r.Evicted)
		})
	case "ingest":
		return true, render(raw, w, func(w *Painter, r pager.IngestResult) {
			pages := r.Pages
			w.Line(fmt.Sprintf("%s of %d bytes stored in the archive, %s to %s", plural(len(pages), "page", "pages"), r.Bytes,
				w.Bold(clean(pages[0].PageID)), w.Bold(clean(pages[len(pages)-1].PageID))))
		})
	case "history":
		return true, render(raw, w, renderPageHistory)
	case "search":
		return true, render(raw, w, func(w *Painter, r pager.SearchResult) {
			renderFoundPages(w, r.Results)
			renderDegraded(w, r.Degraded)
		})
	case "recall":
		return true, render(raw, w, func(w *Painter, r pager.RecallResult) { renderPageRecall(w, notes, &r) })
	}
	return renderContextState(w, notes, name, raw)
}

// renderWindow shows a window's text and what is to be said about it.
func renderWindow(w, notes *Painter, s *pager.Snapshot) {
	if s.Text == nil {
		w.Line(fmt.Sprintf("Nothing has changed since generation %d", s.Generation))
	} else {
		w.Text(*s.Text)
	}
	notes.Line(notes.Dim(windowFacts(s)))
}

// windowFacts are a window's figures in one line.
func windowFacts(s *pager.Snapshot) string {
	p := s.Pressure
	return fmt.Sprintf("%d of %d %s (%.0f%%, %s) · stable prefix %d of %d bytes · generation %d · %.12s",
		p.Cost, p.Budget, p.Unit, 100*p.Used, p.Level, s.StablePrefixBytes, s.TextBytes, s.Generation, s.SHA)
}

func changeText(e *pager.RenderEvent) string {
	if e.First {
		return fmt.Sprintf("%d bytes, the first ones", e.TextBytes)
	}
	prefix := "the stable prefix kept"
	if !e.PrefixIntact {
		prefix = "the stable prefix changed"
	}
	return fmt.Sprintf("%d bytes invalidated, %d rewritten, %s", e.InvalidatedBytes, e.RewrittenBytes, prefix)
}

// versionKey names a page at a version.
func versionKey(id string, version int64) string { return id + "@" + strconv.FormatInt(version, 10) }

// referenceFacts are what a line says about a page.
func referenceFacts(r *pager.Reference) []string {
	facts := []string{versionKey(r.PageID, r.Version), string(r.Tier)}
	if r.Mode == "index" {
		facts[1] = "outline"
	}
	if r.Title != "" {
		facts = append(facts, oneLine(r.Title))
	}
	if len(r.Tags) > 0 {
		facts = append(facts, strings.Join(r.Tags, ", "))
	}
	facts = append(facts, plural(r.Bytes, "byte", "bytes"))
	if r.Origin != nil && r.Origin.Stale {
		facts = append(facts, "stale: the record has changed since")
	}
	return facts
}

// renderPlaced shows a page that was written or moved.
func renderPlaced(w *Painter, r *pager.Reference, changed bool, done string, evicted []pager.Reference) {
	where := string(r.Tier)
	if r.Mode == "index" {
		where = "the outline"
	}
	text := fmt.Sprintf("Page %s %s, now in %s", w.Bold(clean(versionKey(r.PageID, r.Version))), done, where)
	if !changed {
		text = fmt.Sprintf("Page %s is like that already, in %s", w.Bold(clean(versionKey(r.PageID, r.Version))), where)
	}
	w.Line(text)
	renderEvicted(w, evicted)
}

// renderEvicted says which pages went to make room.
func renderEvicted(w *Painter, evicted []pager.Reference) {
	if len(evicted) == 0 {
		return
	}
	names := make([]string, len(evicted))
	for i := range evicted {
		names[i] = evicted[i].PageID
	}
	w.Line("Evicted to make room: " + clean(strings.Join(names, ", ")))
}

func moment(us int64) string { return time.UnixMicro(us).UTC().Format(time.DateTime) }

func renderPageHistory(w *Painter, r pager.HistoryResult) {
	rows := make([][]string, len(r.Versions))
	for i, v := range r.Versions {
		rows[i] = []string{strconv.FormatInt(v.Version, 10), moment(v.CreatedAtUS), strconv.FormatInt(v.Bytes, 10), v.Operation}
	}
	w.Table([]string{"VERSION", "CREATED", "BYTES", "BY"}, rows)
}

// renderFoundPages lists what a search found.
func renderFoundPages(w *Painter, found []pager.Found) {
	if len(found) == 0 {
		w.Line("Nothing was found")
		return
	}
	rows := make([][]string, len(found))
	for i := range found {
		f := &found[i]
		text := f.Title
		if f.Summary != "" {
			text = strings.TrimPrefix(text+": "+f.Summary, ": ")
		}
		if f.Via != "" {
			text += " (by a link of " + f.Via + ")"
		}
		rows[i] = []string{versionKey(f.PageID, f.Version), string(f.Tier), strconv.FormatFloat(f.Score, 'f', 3, 64), strings.Join(f.Tags, ","), text}
	}
	w.Table([]string{"PAGE", "TIER", "SCORE", "TAGS", "TITLE"}, rows)
}

func renderPageRecall(w, notes *Painter, r *pager.RecallResult) {
	renderFoundPages(w, r.Ranked)
	if len(r.Admitted) > 0 {
		names := make([]string, len(r.Admitted))
		for i := range r.Admitted {
			names[i] = r.Admitted[i].PageID
		}
		w.Line("Brought in: " + clean(strings.Join(names, ", ")))
	}
	renderEvicted(w, r.Evicted)
	for _, s := range r.Skipped {
		w.Line(w.Yellow(fmt.Sprintf("Left out: %s of %s, %s", clean(s.PageID), plural(s.Bytes, "byte", "bytes"), strings.ReplaceAll(s.Reason, "_", " "))))
	}
	renderDegraded(w, r.Degraded)
	if r.Context != nil {
		notes.Line(notes.Dim(windowFacts(r.Context)))
	}
}

// renderPageList lists pages.
func renderPageList(w *Painter, refs []pager.Reference) {
	rows := make([][]string, len(refs))
	for i := range refs {
		r := &refs[i]
		tier := string(r.Tier)
		if r.Mode == "index" {
			tier = "outline"
		}
		rows[i] = []string{versionKey(r.PageID, r.Version), tier, strconv.Itoa(r.Bytes), strconv.FormatInt(r.Hits, 10), strings.Join(r.Tags, ","), r.Title}
	}
	w.Table([]string{"PAGE", "TIER", "BYTES", "HITS", "TAGS", "TITLE"}, rows)
}
