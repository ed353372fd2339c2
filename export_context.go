package loci

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// The lines of the context store.
type (
	// contextLine is a scope. What it logged follows it.
	contextLine struct {
		Context   ID              `json:"context"`
		Namespace string          `json:"namespace"`
		Scope     string          `json:"scope"` // canonical: a JSON array whose first element is the namespace
		Version   int64           `json:"version"`
		State     json.RawMessage `json:"state"`               // an object of package pager
		Published *string         `json:"published,omitempty"` // nil: it never published
	}

	// logLine is an entry of a scope's log.
	logLine struct {
		Log    ID              `json:"log"`  // the scope's id
		Type   string          `json:"type"` // one of logTypes
		Number int64           `json:"number"`
		AtUS   int64           `json:"at_us"`
		Key    string          `json:"key,omitempty"`
		Body   json.RawMessage `json:"body"` // an object of package pager
	}

	// pageLine is a page with its current revision. Those before it follow it.
	pageLine struct {
		Kind Kind `json:"kind"`
		Header
		Context     ID          `json:"context"`
		PageID      string      `json:"page_id"`
		Tier        PageTier    `json:"tier"`
		Outline     bool        `json:"outline,omitempty"`
		Seq         int64       `json:"seq,omitempty"`
		Admission   int64       `json:"admission,omitempty"`
		RowVersion  int64       `json:"row_version,omitempty"`
		PinReason   string      `json:"pin_reason,omitempty"`
		Hits        int64       `json:"hits"`
		Touched     int64       `json:"touched"` // tick
		TouchedAtUS int64       `json:"touched_at_us"`
		EvictedTurn int64       `json:"evicted_turn"` // -1 for never
		ProtectedTo int64       `json:"protected_to"`
		Faults      int64       `json:"faults"`
		Origin      *originLine `json:"origin,omitempty"` // of a copy: its record
		revisionText
	}

	originLine struct {
		Kind Kind `json:"kind"`
		ID   ID   `json:"id"`
	}

	// revisionText is a revision of a page but for its tags, which a page has in
	// its header.
	revisionText struct {
		Version    int64   `json:"version"`
		AtUS       int64   `json:"at_us"`
		Operation  string  `json:"operation"`
		Importance float64 `json:"importance"`
		Source     string  `json:"source,omitempty"`
		Links      []ID    `json:"links,omitempty"`
		Title      string  `json:"title"`
		Summary    string  `json:"summary"`
		Content    string  `json:"content"`
	}

	// revisionLine is a revision of a page before its current one.
	revisionLine struct {
		Revision ID       `json:"page_revision"` // the page's id
		Tags     []string `json:"tags"`
		revisionText
	}

	// checkpointLine is a checkpoint of a scope.
	checkpointLine struct {
		Checkpoint ID               `json:"checkpoint"`
		Context    ID               `json:"context"`
		Label      string           `json:"label"`
		AtUS       int64            `json:"at_us"`
		Pages      []checkpointPage `json:"pages"` // ascending; those that are removed by now as well
	}

	checkpointPage struct {
		ID         ID       `json:"id"`
		Version    int64    `json:"version"`
		Tier       PageTier `json:"tier,omitempty"` // "" for the archive
		Outline    bool     `json:"outline,omitempty"`
		Seq        int64    `json:"seq,omitempty"`
		Admission  int64    `json:"admission,omitempty"`
		RowVersion int64    `json:"row_version,omitempty"` // of an outline row
	}
)

// contextCounts says in a header how many lines of the context store there are
// besides those of the pages.
type contextCounts struct {
	Scopes      int64 `json:"scopes"`
	Revisions   int64 `json:"revisions"`
	Log         int64 `json:"log"`
	Checkpoints int64 `json:"checkpoints"`
}

// logTypes are the types of log entries as lines name them.
var logTypes = [...]string{store.LogRender: "render", store.LogResidency: "residency", store.LogUsage: "usage"}

// contextScopes writes the scopes of the context store, each with its log.
func (x *exporter) contextScopes(tx *store.ReadTx, namespace string) error {
	scopes, err := tx.Contexts(namespace)
	if err != nil {
		return err
	}
	for _, c := range scopes {
		x.contexts = append(x.contexts, c.ID)
		line, err := contextLineOf(tx, c)
		if err != nil {
			return err
		}
		x.report.Contexts++
		if err := x.bounded(line, "context", c.ID); err != nil {
			return err
		}
		for typ, name := range logTypes {
			if name == "" {
				continue
			}
			if err := x.log(tx, c.ID, store.LogType(typ)); err != nil {
				return err
			}
		}
	}
	return nil
}

func contextLineOf(tx *store.ReadTx, c *store.ContextScope) (*contextLine, error) {
	if !json.Valid(c.State) {
		return nil, errs.New(errs.Storage, "the database is damaged: the state of context %d cannot be read: restore a backup", c.ID)
	}
	line := &contextLine{Context: ID(c.ID), Namespace: c.Namespace, Scope: c.Scope, Version: c.Version, State: c.State}
	text, ok, err := tx.PublishedText(c.ID)
	if err != nil || !ok {
		return line, err
	}
	if !utf8.Valid(text) {
		return nil, errs.New(errs.Storage, "the database is damaged: the published text of context %d is not valid UTF-8: restore a backup", c.ID)
	}
	line.Published = new(string(text))
	return line, nil
}

func (x *exporter) log(tx *store.ReadTx, context int64, typ store.LogType) error {
	for after := int64(0); ; {
		entries, err := tx.ScanLog(context, typ, after, exportBatch)
		if err != nil || len(entries) == 0 {
			return err
		}
		for i := range entries {
			e := &entries[i]
			after = e.Number
			if !json.Valid(e.Body) {
				return errs.New(errs.Storage, "the database is damaged: an entry in the log of context %d cannot be read: restore a backup", context)
			}
			x.report.LogEntries++
			if err := x.bounded(logLineOf(context, typ, e), "the log of context", context); err != nil {
				return err
			}
		}
	}
}

func logLineOf(context int64, typ store.LogType, e *store.LogEntry) *logLine {
	return &logLine{Log: ID(context), Type: logTypes[typ], Number: e.Number, AtUS: e.At, Key: e.Key, Body: e.Body}
}

func pageLineOf(p *store.Page) pageLine {
	line := pageLine{
		Kind: KindPage, Header: headerOf(&p.Record), Context: ID(p.Context), PageID: p.PageID, Tier: pageTiers[p.Tier], Outline: p.Outline,
		Seq: p.Seq, Admission: p.Admission, RowVersion: p.RowVersion, PinReason: p.PinReason, Hits: p.Hits, Touched: p.Touched,
		TouchedAtUS: p.TouchedAt, EvictedTurn: p.EvictedTurn, ProtectedTo: p.ProtectedTo, Faults: p.Faults,
		revisionText: textOfRevision(&p.PageRevision),
	}
	if p.OriginID != 0 {
		line.Origin = &originLine{kindOf(p.OriginKind), ID(p.OriginID)}
	}
	return line
}

func textOfRevision(r *store.PageRevision) revisionText {
	t := revisionText{
		Version: r.Version, AtUS: r.At, Operation: r.Operation, Importance: r.Importance, Source: r.Source, Title: r.Title,
		Summary: r.Summary, Content: r.Content,
	}
	for _, id := range r.Links {
		t.Links = append(t.Links, ID(id))
	}
	return t
}

func revisionLineOf(page int64, r *store.PageRevision) *revisionLine {
	return &revisionLine{ID(page), append([]string{}, r.Tags...), textOfRevision(r)}
}

// revisions writes what was before the current revision of a page.
func (x *exporter) revisions(tx *store.ReadTx, r store.Stored) error {
	p, ok := r.(*store.Page)
	if !ok || p.Version == 1 {
		return nil
	}
	versions, err := tx.PageHistory(p.ID)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v.Version == p.Version {
			continue
		}
		r, err := tx.PageVersion(p.ID, v.Version)
		if err != nil {
			return err
		}
		if r == nil {
			return errs.New(errs.Storage, "the database is damaged: version %d of page %d is listed and not there: restore a backup", v.Version, p.ID)
		}
		x.report.Revisions++
		if err := x.bounded(revisionLineOf(p.ID, r), "a revision of page", p.ID); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints writes the checkpoints of the scopes that were written.
func (x *exporter) checkpoints(tx *store.ReadTx) error {
	for _, context := range x.contexts {
		all, err := tx.Checkpoints(context)
		if err != nil {
			return err
		}
		for i := range all {
			c, err := tx.Checkpoint(context, all[i].ID)
			if err != nil {
				return err
			}
			if c == nil {
				return errs.New(errs.Storage, "the database is damaged: checkpoint %d is listed and not there: restore a backup", all[i].ID)
			}
			x.report.Checkpoints++
			if err := x.bounded(checkpointLineOf(c), "checkpoint", c.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkpointLineOf(c *store.Checkpoint) *checkpointLine {
	line := &checkpointLine{Checkpoint: ID(c.ID), Context: ID(c.Context), Label: c.Label, AtUS: c.At, Pages: make([]checkpointPage, len(c.Pages))}
	for i, p := range c.Pages {
		line.Pages[i] = checkpointPage{ID: ID(p.ID), Version: p.Version, Outline: p.Outline, Seq: p.Seq, Admission: p.Admission, RowVersion: p.RowVersion}
		if p.Tier != store.TierArchived {
			line.Pages[i].Tier = pageTiers[p.Tier]
		}
	}
	return line
}

// policyLines are a namespace's replacement policy.
func policyLines(tx *store.ReadTx, namespace string) ([]settingLine, error) {
	policy, err := tx.Policy(namespace)
	if err != nil || policy == nil {
		return nil, err
	}
	if !json.Valid(policy) {
		return nil, errs.New(errs.Storage, "the database is damaged: the replacement policy of a namespace cannot be read: restore a backup")
	}
	return []settingLine{{Setting: settingPolicy, Namespace: namespace, Policy: policy}}, nil
}
