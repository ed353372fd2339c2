package loci

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// importContexts takes the context store of an import along.
type importContexts struct {
	scopes []importedScope // by id
	places map[place]bool
	ids    map[int64]bool // of scopes and checkpoints, which share a sequence with records
	found  contextCounts
	begun  bool // a checkpoint came

	// Of the line that may be followed by more of its own.
	log      importedLog // the entry before
	page     *store.Page // whose revisions may follow
	pageLine int
	revision int64 // the version that came last, 0 for none

	written int // scopes, in the second reading
}

// importedScope is what is remembered of a scope between the two readings.
type importedScope struct {
	id, now int64 // now: the id that it got
	line    int
	place   place
	rows    int            // of the outline
	seqs    map[int64]bool // places in core that are taken
	copies  bool           // some copy of a record is in its window
}

// scope finds a scope of the file.
func (c *importContexts) scope(id int64) *importedScope {
	i, ok := slices.BinarySearchFunc(c.scopes, id, func(s importedScope, id int64) int { return cmp.Compare(s.id, id) })
	if !ok {
		return nil
	}
	return &c.scopes[i]
}

// meetScope checks a scope's line against the lines before it.
func (im *importer) meetScope(s *importedContext, line int, begun bool) error {
	c := &im.contexts
	at := place{s.Namespace, s.Scope}
	switch {
	case begun || c.begun:
		return errs.Invalid("context", "must stand before the first record")
	case len(c.scopes) > 0 && c.scopes[len(c.scopes)-1].id >= s.ID:
		return errs.Invalid("context", "is not above that of the scope before it: scopes must ascend by id, each once")
	case im.header.Namespace != "" && s.Namespace != im.header.Namespace:
		return errs.Invalid("namespace", "is not the one that the header names")
	case c.places[at]:
		return errs.Invalid("scope", "is that of another line")
	}
	c.places[at], c.ids[s.ID] = true, true
	c.scopes = append(c.scopes, importedScope{id: s.ID, line: line, place: at, seqs: map[int64]bool{}})
	c.log = importedLog{context: s.ID}
	c.found.Scopes++
	return nil
}

// meetLog checks an entry of a log against the lines before it.
func (im *importer) meetLog(l *importedLog, begun bool) error {
	c := &im.contexts
	switch {
	case begun || c.begun || c.log.context != l.context:
		return errs.Invalid("log", "must follow the line of its scope")
	case l.typ < c.log.typ || l.typ == c.log.typ && l.entry.Number <= c.log.entry.Number:
		return errs.Invalid("number", "is not above that of the entry before it: render, residency and usage come in this order, each by number")
	}
	c.log = importedLog{context: l.context, typ: l.typ, entry: store.LogEntry{Number: l.entry.Number}}
	c.found.Log++
	return nil
}

// meetPage checks a page's line against those of the scopes.
func (im *importer) meetPage(p *store.Page, line int) error {
	c := &im.contexts
	s := c.scope(p.Context)
	switch {
	case s == nil:
		return errs.Invalid("context", "is none that a line before the records names")
	case s.place != place{p.Namespace, p.Scope}:
		return errs.Invalid("scope", "and namespace must be those of the context")
	}
	if p.Outline {
		if s.rows++; s.rows > maxOutlineRows {
			return errs.Invalid("outline", "has too many rows: a scope has at most %d", maxOutlineRows)
		}
	}
	if p.Tier == store.TierCore {
		if s.seqs[p.Seq] {
			return errs.Invalid("seq", "is that of another page of the scope's core")
		}
		s.seqs[p.Seq] = true
	}
	if p.OriginID != 0 && p.Tier != store.TierArchived {
		s.copies = true
	}
	c.page, c.pageLine, c.revision = p, line, 0
	return nil
}

// meetRevision checks a revision's line against the lines before it.
func (im *importer) meetRevision(r *importedRevision) error {
	c := &im.contexts
	switch {
	case c.page == nil || c.page.ID != r.page:
		return errs.Invalid("page_revision", "must follow the line of its page")
	case r.Version >= c.page.Version:
		return errs.Invalid("version", "must be below that of the page, whose line has the current revision")
	case c.page.OriginID != 0:
		if r.Version <= c.revision && c.revision > 0 {
			return errs.Invalid("version", "must be above that of the revision before it")
		}
	case r.Version != c.revision+1:
		return errs.Invalid("version", "must be %d: versions go from 1 without a gap", c.revision+1)
	}
	c.revision = r.Version
	c.found.Revisions++
	return nil
}

// endPage says whether the page before has all of its revisions.
func (c *importContexts) endPage() error {
	p := c.page
	c.page = nil
	if p != nil && p.OriginID == 0 && c.revision != p.Version-1 {
		return errs.Invalid("version", "is %d, and the revisions that follow end with %d", p.Version, c.revision)
	}
	return nil
}

// meetCheckpoint checks a checkpoint's line against all before it.
func (im *importer) meetCheckpoint(p *store.Checkpoint) error {
	c := &im.contexts
	c.begun = true
	s := c.scope(p.Context)
	if s == nil {
		return errs.Invalid("context", "is none that a line before the records names")
	}
	if _, ok := im.rank(p.ID); ok || c.ids[p.ID] {
		return errs.Invalid("checkpoint", "is the id of something else in this file")
	}
	c.ids[p.ID] = true
	c.found.Checkpoints++
	for i := range p.Pages {
		field := "pages[" + strconv.Itoa(i) + "]"
		page := &p.Pages[i]
		k, ok := im.rank(page.ID)
		switch {
		case !ok && (page.ID >= int64(im.header.NextID) || c.ids[page.ID]):
			return errs.Invalid(field, "names neither a page of this file nor one that was removed: those have ids below the header's next_id")
		case ok && (im.records[k].kind != store.KindPage || im.places[im.records[k].place] != s.place):
			return errs.Invalid(field, "names a record that is no page of the scope")
		case ok && page.Version > im.records[k].stamp:
			return errs.Invalid(field, "has a version that the page does not have")
		}
	}
	return nil
}

// conflicts notes the scopes that the store has already. Two histories of one
// window cannot be merged.
func (im *importer) conflicts(tx *store.WriteTx) error {
	for _, s := range im.contexts.scopes {
		there, err := tx.ContextOf(s.place.namespace, s.place.scope)
		if err != nil {
			return err
		}
		if there != nil && !im.problems.full() {
			im.problems.add(s.line, &errs.Error{Code: errs.Conflict, Field: "scope",
				Message: "the store has a context " + s.place.scope + " already, and two are not merged: import into a store without it"})
		}
	}
	return nil
}

// addContext writes a scope of the file.
func (im *importer) addContext(tx *store.WriteTx, in *importedContext, base int64, report *ImportReport) error {
	c := &im.contexts
	if c.written == len(c.scopes) || c.scopes[c.written].id != in.ID {
		return errChanged()
	}
	s := &c.scopes[c.written]
	c.written++
	row := in.ContextScope
	if !report.Kept {
		row.State = im.renamed(row.State, base)
		if s.copies {
			// Its copies get other names, so the window has other bytes: like this
			// whoever loads it takes notice.
			row.Version++
		}
	}
	if err := tx.AddContext(&row); err != nil {
		return err
	}
	s.now = row.ID
	report.Contexts++
	if in.published == nil {
		return nil
	}
	return tx.PutPublished(row.ID, in.published)
}

// addLog writes an entry of a scope's log.
func (im *importer) addLog(tx *store.WriteTx, l *importedLog, base int64, report *ImportReport) error {
	s := im.contexts.scope(l.context)
	if s == nil || s.now == 0 {
		return errChanged()
	}
	if !report.Kept {
		l.entry.Body = im.renamed(l.entry.Body, base)
	}
	report.LogEntries++
	return tx.AddLog(s.now, l.typ, &l.entry)
}

// settlePage gives a page the id of its scope and, where ids are not kept, a copy
// of a record the version that its record gets: the store's revision of this
// import, or the one before where the copy is stale.
func (im *importer) settlePage(tx *store.WriteTx, p *store.Page, refs []importRef, kept bool) error {
	s := im.contexts.scope(p.Context)
	if s == nil || s.now == 0 {
		return errChanged()
	}
	p.Context = s.now
	if kept || p.OriginID == 0 {
		return nil
	}
	i, ok := im.rank(refs[len(refs)-1].id)
	if !ok {
		return errChanged()
	}
	stale := im.records[i].stamp != p.Version
	p.Version = tx.Change()
	if stale {
		p.Version--
	}
	return nil
}

// addRevision writes a revision before the current one. Those of a copy are left
// out where ids are not kept: their versions are revisions of another store.
func (im *importer) addRevision(tx *store.WriteTx, n numbered, base int64, report *ImportReport) error {
	p, ok := im.vectors.record.(*store.Page)
	r := n.revision
	if !ok || im.lastID() != r.page {
		return errChanged()
	}
	if p.OriginID != 0 && !report.Kept {
		report.RevisionsSkipped++
		return nil
	}
	if !report.Kept {
		if err := im.remap(n.refs, nil, base); err != nil {
			return err
		}
	}
	report.Revisions++
	return tx.AddPageVersion(p.ID, &r.PageRevision)
}

// addCheckpoint writes a checkpoint. Where ids are not kept, pages that are no
// more are left out of it.
func (im *importer) addCheckpoint(tx *store.WriteTx, c *store.Checkpoint, base int64, report *ImportReport) error {
	s := im.contexts.scope(c.Context)
	if s == nil || s.now == 0 {
		return errChanged()
	}
	c.Context = s.now
	if !report.Kept {
		pages := c.Pages[:0]
		for _, p := range c.Pages {
			if i, ok := im.rank(p.ID); ok {
				p.ID = base + int64(i)
				pages = append(pages, p)
			}
		}
		c.Pages = pages
	}
	report.Checkpoints++
	return tx.AddCheckpoint(c)
}

// renamed gives the copies of the file's records the names that they get, where
// JSON of package pager tells of them: a quotation mark stands bare outside of
// strings only, so this finds members and never text.
func (im *importer) renamed(body []byte, base int64) []byte {
	const member = `"page_id":"`
	var out []byte
	for {
		at := bytes.Index(body, []byte(member))
		if at < 0 {
			return append(out, body...)
		}
		at += len(member)
		out = append(out, body[:at]...)
		body = body[at:]
		kind, rest, _ := bytes.Cut(body, []byte(":"))
		number, _, ended := bytes.Cut(rest, []byte(`"`))
		id, err := strconv.ParseInt(string(number), 10, 64)
		if !ended || err != nil || !slices.Contains(copyKinds, Kind(kind)) {
			continue
		}
		if i, ok := im.rank(id); ok && im.records[i].kind == kindNumbers[Kind(kind)] {
			out = append(out, copyPageID(Kind(kind), base+int64(i))...)
			body = body[len(kind)+1+len(number):]
		}
	}
}

// errChanged says that the second reading found something else than the first.
func errChanged() error {
	return errs.New(errs.IO, "the input changed while it was read: nothing was imported")
}
