package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/op"
)

// renderAgentResult shows the result of an operation on agent memory; false when it
// has no form of its own.
func renderAgentResult(w *Painter, name string, raw json.RawMessage) (bool, error) {
	group, call, _ := strings.Cut(name, ".")
	if !isAgentGroup(group) {
		return false, nil
	}
	kind := strings.TrimSuffix(group, "s")
	switch call {
	case "store", "store_unique", "record", "learn":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Stored]) { renderStored(w, kind, r.Value, "stored") })
	case "update_metadata", "set_ttl", "clear_ttl":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Stored]) { renderStored(w, kind, r.Value, "updated") })
	case "store_batch", "record_batch":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.BatchResult]) { renderStoredBatch(w, kind, r.Value) })
	case "count":
		return true, render(raw, w, func(w *Painter, c agent.Count) { w.Line(pointsOf(kind, c.Count)) })
	case "delete", "unrelate":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[bool]) {
			if r.Value {
				w.Line("Deleted")
			} else {
				w.Line("There was nothing to delete")
			}
		})
	case "clear":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[int64]) { w.Line(pointsOf(kind, r.Value) + " deleted") })
	case "relate":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Edge]) {
			w.Line(fmt.Sprintf("Relation %s: %s", w.Bold(pointText(r.Value.ID)), edgeText(r.Value)))
		})
	case "relations", "incoming_relations":
		return true, render(raw, w, renderEdges)
	case "match":
		return true, render(raw, w, renderMatches)
	case "history":
		return true, render(raw, w, renderVersions)
	case "serialize":
		return true, render(raw, w, func(w *Painter, s agent.Summary) {
			w.Line(fmt.Sprintf("Wrote %s, %d bytes, at revision %d", contentsText(s.Facts, s.Episodes, s.Procedures, s.Versions, s.Relations), s.Bytes, s.Revision))
		})
	case "deserialize", "restore":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Restored]) { renderRestored(w, r.Value) })
	}
	switch name {
	case "facts.get", "episodes.get", "procedures.get":
		return true, renderPoint(w, kind, raw)
	case "facts.list":
		return true, render(raw, w, renderFacts)
	case "episodes.list", "episodes.recent", "episodes.older_than", "episodes.between":
		return true, render(raw, w, renderEpisodes)
	case "procedures.list":
		return true, render(raw, w, renderProcedures)
	}
	return renderAgentAnswer(w, name, raw)
}

// renderAgentAnswer shows the results that only one kind has, or the memory as a
// whole.
func renderAgentAnswer(w *Painter, name string, raw json.RawMessage) (bool, error) {
	switch name {
	case "facts.query", "facts.query_text":
		return true, render(raw, w, renderFactHits)
	case "episodes.recall_similar":
		return true, render(raw, w, renderEpisodeHits)
	case "procedures.recall":
		return true, render(raw, w, renderProcedureHits)
	case "facts.supersede":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Superseded]) {
			v := r.Value
			w.Line(fmt.Sprintf("Fact %s holds until %s, fact %s from %s on", pointText(v.Old), instant(v.ValidToUS), pointText(v.New), instant(v.ValidFromUS)))
		})
	case "procedures.reinforce":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Reinforced]) {
			v := r.Value
			w.Line(fmt.Sprintf("Procedure %s: confidence %s, served %d of %s", w.Bold(pointText(v.ID)), figure(v.Confidence), v.Successes, plural(int(v.Uses), "time", "times")))
		})
	case "episodes.import":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.ImportReport]) { renderImported(w, r.Value) })
	case "agent.open":
		return true, render(raw, w, func(w *Painter, m op.OpenedMemory) {
			w.Line(fmt.Sprintf("Agent memory %s/%s: vectors of %s, in the space %s", clean(m.Namespace), clean(m.Scope), plural(m.Dimension, "number", "numbers"), clean(m.Space)))
		})
	case "agent.status":
		return true, render(raw, w, renderAgentStatus)
	case "agent.policy":
		return true, render(raw, w, renderPolicy)
	case "agent.set_policy":
		return true, render(raw, w, func(w *Painter, r loci.Receipt[agent.Policy]) { renderPolicy(w, r.Value) })
	case "agent.auto_expire":
		return true, render(raw, w, renderAutoExpired)
	case "agent.snapshot":
		return true, render(raw, w, func(w *Painter, s agent.SnapshotTaken) {
			w.Line(fmt.Sprintf("Snapshot %s: %s, %d bytes", w.Bold(strconv.FormatInt(s.Version, 10)), contentsText(s.Facts, s.Episodes, s.Procedures, s.Versions, s.Relations), s.Bytes))
			for _, v := range s.Removed {
				w.Line(w.Dim(fmt.Sprintf("Snapshot %d went: the policy keeps no more", v)))
			}
			renderWarnings(w, s.Warnings)
		})
	case "agent.snapshots":
		return true, render(raw, w, renderSnapshots)
	}
	return false, nil
}

func pointText(id loci.PointID) string { return strconv.FormatUint(uint64(id), 10) }

// pointsOf is a number of points in words.
func pointsOf(kind string, n int64) string {
	if n == 1 {
		return "1 " + kind
	}
	return strconv.FormatInt(n, 10) + " " + kind + "s"
}

// instant is a time for people. One that no calendar has is shown as its number.
func instant(us int64) string {
	t := time.UnixMicro(us).UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		return strconv.FormatInt(us, 10) + " µs"
	}
	if us%1_000_000 == 0 {
		return t.Format(time.RFC3339)
	}
	return t.Format("2006-01-02T15:04:05.000000Z07:00")
}

// ending is when something expires.
func ending(us *int64) string {
	switch {
	case us == nil:
		return ""
	case *us == math.MaxInt64:
		return "never, or nearly so"
	}
	return instant(*us)
}

func figure(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

func renderStored(w *Painter, kind string, s agent.Stored, did string) {
	if s.Version == 0 {
		w.Line(fmt.Sprintf("Nothing is stored as %s %s: it lives for 0 seconds", kind, w.Bold(pointText(s.ID))))
		return
	}
	text := fmt.Sprintf("%s %s %s, version %d", strings.ToUpper(kind[:1])+kind[1:], w.Bold(pointText(s.ID)), did, s.Version)
	switch s.Vector {
	case agent.VectorPending:
		text += "; its vector is still to be made"
	case agent.VectorNone:
		text += "; it has no vector, so its words alone find it"
	}
	w.Line(text)
}

func renderStoredBatch(w *Painter, kind string, b agent.BatchResult) {
	text := pointsOf(kind, int64(b.Stored)) + " stored"
	if b.Removed > 0 {
		text += fmt.Sprintf(", %d removed", b.Removed)
	}
	if b.Replaced > 0 {
		text += fmt.Sprintf(", %s of an id that a later one has", plural(b.Replaced, "entry", "entries"))
	}
	w.Line(text)
	if b.Pending > 0 {
		w.Line(w.Dim(fmt.Sprintf("%s still to be made: loci embeddings sync", plural(b.Pending, "vector is", "vectors are"))))
	}
}

// renderPoint shows a point in full.
func renderPoint(w *Painter, kind string, raw json.RawMessage) error {
	var found struct {
		Point     json.RawMessage `json:"point"`
		Embedding []float32       `json:"embedding"`
	}
	var p struct {
		loci.PointHeader
		Content     string   `json:"content"`
		ValidFromUS *int64   `json:"valid_from_us"`
		ValidToUS   *int64   `json:"valid_to_us"`
		Description string   `json:"description"`
		AtUS        *int64   `json:"at_us"`
		Name        string   `json:"name"`
		Steps       []string `json:"steps"`
		Confidence  *float64 `json:"confidence"`
		Uses        int64    `json:"uses"`
		Successes   int64    `json:"successes"`
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return err
	}
	if len(found.Point) == 0 || string(found.Point) == "null" {
		w.Line("There is no " + kind + " under that id")
		return nil
	}
	if err := json.Unmarshal(found.Point, &p); err != nil {
		return err
	}
	w.Line(w.Bold(clean(p.Content + p.Description + p.Name)))
	for i, step := range p.Steps {
		w.Line(fmt.Sprintf("%3d. %s", i+1, strings.ReplaceAll(clean(step), "\n", "\n     ")))
	}
	pairs := [][2]string{{"id", pointText(p.ID)}}
	add := func(name, value string) {
		if value != "" {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	at := func(us *int64) string {
		if us == nil {
			return ""
		}
		return instant(*us)
	}
	add("happened", at(p.AtUS))
	add("holds from", at(p.ValidFromUS))
	add("holds until", at(p.ValidToUS))
	if p.Confidence != nil {
		add("confidence", figure(*p.Confidence))
		add("served", fmt.Sprintf("%d of %s", p.Successes, plural(int(p.Uses), "time", "times")))
	}
	add("tags", strings.Join(p.Tags, ", "))
	if p.Thread != "" {
		place := p.Thread
		if p.Position != nil {
			place += ", position " + strconv.FormatInt(*p.Position, 10)
		}
		add("thread", place)
	}
	if string(p.Metadata) != "{}" {
		add("metadata", string(p.Metadata))
	}
	add("recorded", instant(p.RecordedAtUS)+", version "+strconv.FormatInt(p.Version, 10))
	add("expires", ending(p.ExpiresAtUS))
	if n := len(found.Embedding); n > 0 {
		add("vector", plural(n, "number", "numbers"))
	}
	w.Pairs(pairs)
	return nil
}

func renderNext(w *Painter, cursor string) {
	if cursor != "" {
		w.Line(w.Dim("There are more: --cursor " + clean(cursor)))
	}
}

func renderFacts(w *Painter, p agent.Page[loci.Fact]) {
	if len(p.Items) == 0 {
		w.Line("There are no facts here")
		return
	}
	rows := make([][]string, len(p.Items))
	for i, f := range p.Items {
		rows[i] = []string{pointText(f.ID), day(f.RecordedAtUS), ending(f.ExpiresAtUS), strings.Join(f.Tags, ","), f.Content}
	}
	w.Table([]string{"ID", "RECORDED", "EXPIRES", "TAGS", "CONTENT"}, rows)
	renderNext(w, p.NextCursor)
}

func renderEpisodes(w *Painter, p agent.Episodes) {
	if len(p.Items) == 0 {
		w.Line("There are no episodes here")
		return
	}
	rows := make([][]string, len(p.Items))
	for i, e := range p.Items {
		rows[i] = []string{pointText(e.ID), instant(e.AtUS), e.Thread, e.Description}
	}
	w.Table([]string{"ID", "HAPPENED", "THREAD", "DESCRIPTION"}, rows)
	renderNext(w, p.NextCursor)
}

func procedureRow(p *loci.Procedure) []string {
	return []string{pointText(p.ID), figure(p.Confidence), fmt.Sprintf("%d/%d", p.Successes, p.Uses), strconv.Itoa(len(p.Steps)), p.Name}
}

func renderProcedures(w *Painter, p agent.Page[loci.Procedure]) {
	if len(p.Items) == 0 {
		w.Line("There are no procedures here")
		return
	}
	rows := make([][]string, len(p.Items))
	for i := range p.Items {
		rows[i] = procedureRow(&p.Items[i])
	}
	w.Table([]string{"ID", "CONFIDENCE", "SERVED", "STEPS", "NAME"}, rows)
	renderNext(w, p.NextCursor)
}

// renderHits shows what a query found, best first.
func renderHits(w *Painter, head []string, rows [][]string, degraded []loci.Degrade) {
	if len(rows) == 0 {
		w.Line("Nothing was found")
	} else {
		w.Table(head, rows)
	}
	renderDegraded(w, degraded)
}

func renderFactHits(w *Painter, h agent.Hits) {
	rows := make([][]string, len(h.Hits))
	for i, f := range h.Hits {
		rows[i] = []string{pointText(f.ID), figure(f.Score), f.Content}
	}
	renderHits(w, []string{"ID", "SCORE", "CONTENT"}, rows, h.Degraded)
}

func renderEpisodeHits(w *Painter, h agent.EpisodeHits) {
	rows := make([][]string, len(h.Hits))
	for i, e := range h.Hits {
		rows[i] = []string{pointText(e.Episode.ID), figure(e.Score), instant(e.Episode.AtUS), e.Episode.Description}
	}
	renderHits(w, []string{"ID", "SCORE", "HAPPENED", "DESCRIPTION"}, rows, h.Degraded)
}

func renderProcedureHits(w *Painter, h agent.ProcedureHits) {
	rows := make([][]string, len(h.Hits))
	for i := range h.Hits {
		row := procedureRow(&h.Hits[i].Procedure)
		rows[i] = slices.Insert(row, 1, figure(h.Hits[i].Score))
	}
	renderHits(w, []string{"ID", "SCORE", "CONFIDENCE", "SERVED", "STEPS", "NAME"}, rows, h.Degraded)
}

// edgeText is a relation as an arrow.
func edgeText(e agent.Edge) string {
	return fmt.Sprintf("%s %s -[%s]-> %s %s", e.FromKind, pointText(e.From), clean(e.Type), e.ToKind, pointText(e.To))
}

func renderEdges(w *Painter, e agent.Edges) {
	if len(e.Edges) == 0 {
		w.Line("There are no relations here")
		return
	}
	rows := make([][]string, len(e.Edges))
	for i, v := range e.Edges {
		rows[i] = edgeRow(v, string(v.Properties))
	}
	w.Table([]string{"RELATION", "FROM", "TYPE", "TO", "PROPERTIES"}, rows)
	renderNext(w, e.NextCursor)
}

func edgeRow(e agent.Edge, last string) []string {
	return []string{pointText(e.ID), string(e.FromKind) + " " + pointText(e.From), e.Type, string(e.ToKind) + " " + pointText(e.To), last}
}

func renderMatches(w *Painter, m agent.Matches) {
	if len(m.Matches) == 0 {
		w.Line("Nothing was found")
	} else {
		rows := make([][]string, len(m.Matches))
		for i, v := range m.Matches {
			rows[i] = edgeRow(v.Edge, v.Content)
		}
		w.Table([]string{"RELATION", "FROM", "TYPE", "TO", "CONTENT"}, rows)
	}
	renderNext(w, m.NextCursor)
}

func renderVersions(w *Painter, v agent.Versions) {
	if len(v.Versions) == 0 {
		w.Line("There is nothing under that id")
		return
	}
	rows := make([][]string, len(v.Versions))
	for i, one := range v.Versions {
		until := "now"
		if one.RecordedToUS != nil {
			until = instant(*one.RecordedToUS)
		}
		text := one.Content
		if one.Name != "" {
			text = one.Name + ": " + strings.Join(one.Steps, "; ")
		}
		rows[i] = []string{strconv.FormatInt(one.Version, 10), instant(one.RecordedAtUS), until, text}
	}
	w.Table([]string{"VERSION", "BELIEVED FROM", "UNTIL", "TEXT"}, rows)
}

// contentsText says what a file of points holds.
func contentsText(facts, episodes, procedures, versions, relations int64) string {
	var parts []string
	for _, p := range []struct {
		kind string
		n    int64
	}{{"fact", facts}, {"episode", episodes}, {"procedure", procedures}, {"relation", relations}, {"earlier version", versions}} {
		if p.n > 0 {
			parts = append(parts, pointsOf(p.kind, p.n))
		}
	}
	if len(parts) == 0 {
		return "no points"
	}
	return strings.Join(parts, ", ")
}

func renderRestored(w *Painter, r agent.Restored) {
	from := ""
	if r.Version > 0 {
		from = fmt.Sprintf(" from snapshot %d", r.Version)
	}
	w.Line("Restored " + contentsText(r.Facts, r.Episodes, r.Procedures, r.Versions, r.Relations) + from)
	if r.Expired > 0 {
		w.Line(fmt.Sprintf("%d left out, for they have expired", r.Expired))
	}
	if r.DroppedRelations > 0 {
		w.Line(w.Yellow(pointsOf("relation", r.DroppedRelations) + " dropped, for an end is not there"))
	}
	renderWarnings(w, r.Warnings)
}

func renderWarnings(w *Painter, warnings []string) {
	for _, text := range warnings {
		w.Line(w.Yellow(clean(text)))
	}
}

func renderImported(w *Painter, r agent.ImportReport) {
	did := "Imported "
	if r.DryRun {
		did = "Would import "
	}
	w.Line(did + fmt.Sprintf("%s of %s (%s): %d new, %d updated, %d unchanged", pointsOf("message", r.Messages),
		pointsOf("conversation", r.Threads), r.Format, r.Stored, r.Updated, r.Unchanged))
	for _, counts := range []struct {
		what string
		n    map[string]int64
	}{{"left out", r.LeftOut}, {"beside text", r.Parts}} {
		var parts []string
		for name, n := range counts.n {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(clean(name), "_", " "), n))
		}
		if slices.Sort(parts); len(parts) > 0 {
			w.Line(w.Dim(counts.what + ": " + strings.Join(parts, ", ")))
		}
	}
	for _, note := range []struct {
		n         int64
		one, many string
	}{
		{r.EmptyThreads, "conversation has no message", "conversations have no message"},
		{r.IDTaken, "message left out, for an episode outside of its conversation has its id", "messages left out, for episodes outside of their conversations have their ids"},
		{r.Displaced, "moved to the end of its conversation, for its place is taken", "moved to the end of their conversations, for their places are taken"},
		{r.Dated, "without a time, now that of the message before or of the import", ""},
		{r.Renamed, "of a conversation whose name had to be changed", "of conversations whose names had to be changed"},
		{r.CutTexts, "text cut", "texts cut"},
		{r.CutNames, "title or author cut", "titles and authors cut"},
		{r.UnreadTimes, "time that could not be read", "times that could not be read"},
		{r.RepeatedIDs, "with the id of an earlier one", ""},
		{r.Replaced + r.NULs, "character that is no text, replaced", "characters that are no text, replaced"},
	} {
		if note.n > 0 {
			w.Line(w.Yellow(plural(int(note.n), note.one, cmp.Or(note.many, note.one))))
		}
	}
	if r.Pending > 0 && !r.DryRun {
		w.Line(w.Dim(plural(int(r.Pending), "vector is", "vectors are") + " still to be made: loci embeddings sync"))
	}
}

func renderAgentStatus(w *Painter, s agent.Status) {
	head := w.Bold(clean(s.Namespace + "/" + s.Scope))
	if s.Dimension == 0 {
		w.Line("Agent memory " + head + ": nothing is stored yet")
		return
	}
	w.Line(fmt.Sprintf("Agent memory %s: vectors of %s, in the space %s", head, plural(s.Dimension, "number", "numbers"), clean(s.Space)))
	w.Line(fmt.Sprintf("%s, %s, %s", pointsOf("fact", s.Facts), pointsOf("episode", s.Episodes), pointsOf("procedure", s.Procedures)))
	switch {
	case s.Snapshots > 0:
		w.Line(fmt.Sprintf("%s, the latest is %d", pointsOf("snapshot", int64(s.Snapshots)), s.LatestSnapshot))
	default:
		w.Line("no snapshots")
	}
	renderPolicy(w, s.Policy)
}

func renderPolicy(w *Painter, p agent.Policy) {
	pairs := [][2]string{{"episodes become facts", "never"}, {"procedures go", "never"}, {"earlier versions kept", "10"}, {"snapshots kept", "10"}}
	if v := p.ConsolidateAfterSeconds; v != nil {
		pairs[0][1] = "after " + (time.Duration(min(*v, math.MaxInt64/int64(time.Second))) * time.Second).String()
	}
	if v := p.EvictBelowConfidence; v != nil {
		pairs[1][1] = "below a confidence of " + strconv.FormatFloat(*v, 'g', -1, 64) + ", once used"
	}
	if v := p.KeepVersions; v != nil {
		pairs[2][1] = strconv.Itoa(*v)
	}
	if v := p.MaxSnapshots; v != nil {
		pairs[3][1] = strconv.Itoa(*v)
	}
	w.Pairs(pairs)
}

func renderAutoExpired(w *Painter, r agent.AutoExpired) {
	w.Line(fmt.Sprintf("%d expired, %s became facts, %s and %s removed", r.Swept, pointsOf("episode", r.Consolidated),
		pointsOf("procedure", r.Evicted), pointsOf("earlier version", r.Trimmed)))
	if r.Truncated {
		w.Line(w.Yellow("There is more to do: call it again"))
	}
}

func renderSnapshots(w *Painter, l agent.SnapshotList) {
	if len(l.Snapshots) == 0 {
		w.Line("There are no snapshots: loci agent snapshot takes one")
		return
	}
	rows := make([][]string, len(l.Snapshots))
	for i, s := range l.Snapshots {
		state := contentsText(s.Facts, s.Episodes, s.Procedures, s.Versions, s.Relations)
		if !s.OK {
			state = "cannot be used: " + s.Problem
		}
		rows[i] = []string{strconv.FormatInt(s.Version, 10), instant(s.CreatedAtUS), strconv.FormatInt(s.Bytes, 10), state}
	}
	w.Table([]string{"VERSION", "TAKEN", "BYTES", "HOLDS"}, rows)
}
