package loci

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// The limits of what an import takes as a page. Package pager has its own, which
// do not lie above them.
const (
	maxPageIDBytes     = 128
	maxPageLinks       = 32
	maxPinReasonBytes  = 200
	maxLogKeyBytes     = 256
	maxContextParts    = 16
	maxOutlineRows     = 32
	maxOutlineTitle    = 200
	maxOutlineSummary  = 240
	maxCheckpointLabel = 200
	maxPublishedBytes  = 64 << 20
)

// importedLog is an entry of a scope's log as a line has it.
type importedLog struct {
	context int64
	typ     store.LogType
	entry   store.LogEntry
}

// importedRevision is a revision of a page as a line has it.
type importedRevision struct {
	page int64
	store.PageRevision
}

// importedContext is a scope as a line has it.
type importedContext struct {
	store.ContextScope
	published []byte // nil: none
}

func parseContext(text []byte) (*importedContext, error) {
	var line contextLine
	if err := decodeLine(text, &line); err != nil {
		return nil, err
	}
	c := &importedContext{ContextScope: store.ContextScope{
		ID: int64(line.Context), Namespace: line.Namespace, Scope: line.Scope, Version: line.Version, State: compact(line.State),
	}}
	switch {
	case c.ID < 1:
		return nil, errs.Invalid("context", "must be the id of a scope")
	case c.Version < 1:
		return nil, errs.Invalid("version", "must be above 0")
	case !isObject(line.State):
		return nil, errs.Invalid("state", "must be an object")
	}
	if err := validContext(c.Namespace, c.Scope); err != nil {
		return nil, err
	}
	if line.Published != nil {
		if len(*line.Published) > maxPublishedBytes {
			return nil, errs.Invalid("published", "is longer than %d bytes", maxPublishedBytes)
		}
		c.published = []byte(*line.Published)
	}
	return c, nil
}

// validContext checks a scope of the context store in its canonical form.
func validContext(namespace, scope string) error {
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return err
	}
	if err := valid.Label("scope", scope, MaxScopeBytes); err != nil {
		return err
	}
	var parts []string
	if err := json.Unmarshal([]byte(scope), &parts); err != nil || len(parts) == 0 || len(parts) > maxContextParts || parts[0] != namespace {
		return errs.Invalid("scope", "must be a JSON array of 1 to %d strings, the first of which is the namespace", maxContextParts)
	}
	canonical := []byte{'['}
	for i, part := range parts {
		if valid.Label("scope", part, MaxNamespaceBytes) != nil {
			return errs.Invalid("scope", "has a part %d that is no name", i)
		}
		if i > 0 {
			canonical = append(canonical, ',')
		}
		canonical = render.AppendString(canonical, part)
	}
	if string(append(canonical, ']')) != scope {
		return errs.Invalid("scope", "must be a JSON array without blanks or needless escapes")
	}
	return nil
}

// isObject says whether a JSON value is an object.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// compact is a JSON value, which is known to be one, without blanks.
func compact(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}

func parseLog(text []byte) (*importedLog, error) {
	var line logLine
	if err := decodeLine(text, &line); err != nil {
		return nil, err
	}
	typ := slices.Index(logTypes[:], line.Type)
	switch {
	case line.Log < 1:
		return nil, errs.Invalid("log", "must be the id of a scope")
	case line.Type == "" || typ < 0:
		return nil, errs.Invalid("type", "must be render, residency or usage")
	case line.Number < 1:
		return nil, errs.Invalid("number", "must be above 0")
	case len(line.Key) > maxLogKeyBytes:
		return nil, errs.Invalid("key", "is longer than %d bytes", maxLogKeyBytes)
	case !isObject(line.Body):
		return nil, errs.Invalid("body", "must be an object")
	}
	return &importedLog{int64(line.Log), store.LogType(typ), store.LogEntry{Number: line.Number, At: line.AtUS, Key: line.Key, Body: compact(line.Body)}}, nil
}

// copyKinds are the kinds of records that pages may be copies of.
var copyKinds = []Kind{KindMemory, KindEntity, KindRelation, KindEvent, KindChunk}

// copyPageID is the page id of a record's copy.
func copyPageID(kind Kind, id int64) string { return fmt.Sprintf("%s:%d", kind, id) }

func parsePage(in *lineInput) (store.Stored, []importRef, error) {
	line := pageLine{Tier: PageArchive, EvictedTurn: -1, revisionText: revisionText{Version: 1, Importance: 0.5}}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	if len(r.Evidence) > 0 || len(r.Metadata) > 0 {
		return nil, nil, errs.Invalid("", "is of a page, which has neither evidence nor metadata")
	}
	if !in.given["at_us"] {
		line.AtUS = r.Created
	}
	p := &store.Page{
		Record: r, Context: int64(line.Context), PageID: line.PageID, Outline: line.Outline, Seq: line.Seq, Admission: line.Admission,
		RowVersion: line.RowVersion, PinReason: line.PinReason, Hits: line.Hits, Touched: line.Touched, TouchedAt: line.TouchedAtUS,
		EvictedTurn: line.EvictedTurn, ProtectedTo: line.ProtectedTo, Faults: line.Faults,
	}
	p.Kind = store.KindPage
	if p.PageRevision, err = line.revision(r.Tags); err != nil {
		return nil, nil, err
	}
	refs := linkRefs(p.Links)
	if line.Origin != nil {
		if !slices.Contains(copyKinds, line.Origin.Kind) || line.Origin.ID < 1 {
			return nil, nil, errs.Invalid("origin", "must name a record by its kind, one of %v, and its id", copyKinds)
		}
		p.OriginKind, p.OriginID = kindNumbers[line.Origin.Kind], int64(line.Origin.ID)
		refs = append(refs, importRef{field: "origin", id: p.OriginID, kind: p.OriginKind, anyScope: true, move: func(id int64) {
			p.OriginID, p.PageID = id, copyPageID(line.Origin.Kind, id)
		}})
	}
	if p.Tier, err = line.tier(); err != nil {
		return nil, nil, err
	}
	return p, refs, validPage(p)
}

// tier checks a page's place and gives its tier.
func (l *pageLine) tier() (store.PageTier, error) {
	tier := slices.Index(pageTiers[:], l.Tier)
	switch {
	case tier < 0:
		return 0, errs.Invalid("tier", "must be archive, working or core")
	case (l.Tier == PageCore) != (l.Seq > 0) || l.Seq < 0:
		return 0, errs.Invalid("seq", "must be above 0 in core and 0 elsewhere")
	case (l.Tier == PageWorking) != (l.Admission > 0) || l.Admission < 0:
		return 0, errs.Invalid("admission", "must be above 0 in working and 0 elsewhere")
	case l.Outline && l.Tier != PageCore:
		return 0, errs.Invalid("outline", "stands in core only")
	case l.Outline != (l.RowVersion > 0) || l.RowVersion < 0 || l.RowVersion > l.Version:
		return 0, errs.Invalid("row_version", "must be that of a revision of an outline row, and 0 for any other page")
	}
	return store.PageTier(tier), nil
}

// validPage checks what is left of a page.
func validPage(p *store.Page) error {
	isCopy := p.OriginID != 0
	switch {
	case p.Context < 1:
		return errs.Invalid("context", "must be the id of a scope")
	case p.PageID == "" || len(p.PageID) > maxPageIDBytes ||
		strings.ContainsFunc(p.PageID, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '@' }):
		return errs.Invalid("page_id", "must have 1 to %d bytes without blanks, control characters or @", maxPageIDBytes)
	case isCopy && p.PageID != copyPageID(kindOf(p.OriginKind), p.OriginID):
		return errs.Invalid("page_id", "of a copy must be the kind and the id of its origin, with a colon between them")
	case !isCopy && strings.Contains(p.PageID, ":"):
		return errs.Invalid("page_id", "has a colon, which only those of copies have")
	case isCopy && p.Outline:
		return errs.Invalid("outline", "is for pages that are no copies")
	case p.Version < 1 && !isCopy:
		return errs.Invalid("version", "must be above 0")
	case len(p.PinReason) > maxPinReasonBytes:
		return errs.Invalid("pin_reason", "is longer than %d bytes", maxPinReasonBytes)
	case min(p.Hits, p.Touched, p.ProtectedTo, p.Faults) < 0:
		return errs.Invalid("hits", "and the other statistics must not be negative")
	case p.EvictedTurn < -1:
		return errs.Invalid("evicted_turn", "must be -1 for never, or a turn")
	case p.Outline && (p.Title == "" || p.Summary == "" || len(p.Title) > maxOutlineTitle || len(p.Summary) > maxOutlineSummary):
		return errs.Invalid("outline", "needs a title of at most %d bytes and a summary of at most %d", maxOutlineTitle, maxOutlineSummary)
	}
	return nil
}

// revision checks a revision and gives it.
func (t *revisionText) revision(tags []string) (r store.PageRevision, err error) {
	r = store.PageRevision{
		Version: t.Version, At: t.AtUS, Operation: t.Operation, Importance: t.Importance, Source: t.Source, Title: t.Title,
		Summary: t.Summary, Content: t.Content, Tags: tags,
	}
	switch {
	case r.Version < 0:
		return r, errs.Invalid("version", "must not be negative")
	case r.Content == "":
		return r, errs.Invalid("content", "must not be empty")
	case !(r.Importance >= 0 && r.Importance <= 1):
		return r, errs.Invalid("importance", "must be from 0 to 1")
	case len(t.Links) > maxPageLinks:
		return r, errs.Invalid("links", "has %d entries, at most %d are allowed", len(t.Links), maxPageLinks)
	case len(r.Operation) > MaxLabelBytes:
		return r, errs.Invalid("operation", "is longer than %d bytes", MaxLabelBytes)
	}
	for _, f := range []struct{ field, text string }{{"title", r.Title}, {"summary", r.Summary}, {"content", r.Content}, {"source", r.Source}} {
		if err := validText(f.field, f.text); err != nil {
			return r, err
		}
	}
	for i, id := range t.Links {
		if id < 1 || slices.Contains(r.Links, int64(id)) {
			return r, errs.Invalid(fmt.Sprintf("links[%d]", i), "must be the id of a page, each once")
		}
		r.Links = append(r.Links, int64(id))
	}
	return r, nil
}

// linkRefs are the references of a page's links, which are moved in place.
func linkRefs(links []int64) (refs []importRef) {
	for i, id := range links {
		refs = append(refs, importRef{field: fmt.Sprintf("links[%d]", i), id: id, kind: store.KindPage, move: func(id int64) { links[i] = id }})
	}
	return refs
}

func parseRevision(text []byte) (*importedRevision, []importRef, error) {
	line := revisionLine{revisionText: revisionText{Importance: 0.5}}
	if err := decodeLine(text, &line); err != nil {
		return nil, nil, err
	}
	if line.Revision < 1 {
		return nil, nil, errs.Invalid("page_revision", "must be the id of a page")
	}
	tags, err := validTags("tags", line.Tags)
	if err != nil {
		return nil, nil, err
	}
	r, err := line.revision(tags)
	if err != nil {
		return nil, nil, err
	}
	return &importedRevision{int64(line.Revision), r}, linkRefs(r.Links), nil
}

func parseCheckpoint(text []byte) (*store.Checkpoint, error) {
	var line checkpointLine
	if err := decodeLine(text, &line); err != nil {
		return nil, err
	}
	c := &store.Checkpoint{ID: int64(line.Checkpoint), Context: int64(line.Context), Label: line.Label, At: line.AtUS}
	switch {
	case c.ID < 1:
		return nil, errs.Invalid("checkpoint", "must be an id")
	case c.Context < 1:
		return nil, errs.Invalid("context", "must be the id of a scope")
	case len(c.Label) > maxCheckpointLabel:
		return nil, errs.Invalid("label", "is longer than %d bytes", maxCheckpointLabel)
	}
	for i, p := range line.Pages {
		tier := slices.Index(pageTiers[:], cmp.Or(p.Tier, PageArchive))
		if i > 0 && p.ID <= line.Pages[i-1].ID || p.ID < 1 || p.Version < 0 || tier < 0 ||
			(tier == int(store.TierCore)) != (p.Seq > 0) || p.Seq < 0 || (tier == int(store.TierWorking)) != (p.Admission > 0) || p.Admission < 0 ||
			p.Outline && tier != int(store.TierCore) || p.Outline != (p.RowVersion > 0) || p.RowVersion > p.Version {
			return nil, errs.Invalid(fmt.Sprintf("pages[%d]", i), "must ascend by id, and have a version, and a tier with the place that goes with it")
		}
		c.Pages = append(c.Pages, store.CheckpointPage{
			ID: int64(p.ID), Version: p.Version, Tier: store.PageTier(tier), Outline: p.Outline, Seq: p.Seq, Admission: p.Admission, RowVersion: p.RowVersion,
		})
	}
	return c, nil
}
