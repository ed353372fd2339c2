package pager

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// WriteRequest makes a page or replaces a whole revision of one: what is left
// out takes its default and is not kept, but for tier and outline.
type WriteRequest struct {
	Content string `json:"content"` // at most 1 MiB
	Title   string `json:"title,omitempty"`
	// Tags are words to find the page by, at most 64.
	Tags    []string `json:"tags,omitempty"`
	Summary string   `json:"summary,omitempty"` // of an outline page: the row, at most 240 bytes
	// Importance weighs against eviction: 0..1, default 0.5.
	Importance *float64 `json:"importance,omitempty"`
	Tier       Tier     `json:"tier,omitempty"`    // default archive for a new page, else as it is
	PageID     string   `json:"page_id,omitempty"` // left out: a new page with an id of the store's choice
	// ExpectedVersion is the version to replace; 0 or left out for a new page.
	ExpectedVersion *int64   `json:"expected_version,omitempty"`
	Links           []string `json:"links,omitempty"` // page ids of this scope, at most 32
	Source          string   `json:"source,omitempty"`
	// Outline makes the page a row of the outline: pinned, one line of title and
	// summary, its content to be read when needed.
	Outline   *bool  `json:"outline,omitempty"`
	PinReason string `json:"pin_reason,omitempty"` // why it is in core; for a page of core only
}

// WriteResult names the page that was written.
type WriteResult struct {
	Page    Reference   `json:"page"`
	Changed bool        `json:"changed"` // false: it was like this already
	Created bool        `json:"created"`
	Evicted []Reference `json:"evicted"` // to make room
	// Redacted is what was taken out of the request, see loci.WithRedaction.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// Write makes a page or replaces the revision of one.
func (cs *Store) Write(ctx context.Context, req WriteRequest) (*WriteResult, error) {
	const op = "write"
	redactor := cs.reg.link.Redactor(ctx)
	req.redact(redactor)
	d, err := req.check()
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *WriteResult
	err = cs.mutate(ctx, op, func(c *change) error {
		out = &WriteResult{Evicted: []Reference{}, Redacted: redactedBy(redactor)}
		r, err := d.target(c)
		if err != nil {
			return err
		}
		if err := d.link(c, r); err != nil {
			return err
		}
		if r == nil {
			out.Created, out.Changed = true, true
			r, err = d.make(c)
		} else {
			r, out.Changed, err = d.replace(c, r)
		}
		if err != nil {
			return err
		}
		out.Page = c.scope.reference(r)
		return nil
	}, func(c *change) error {
		if r := c.pages[out.Page.PageID]; r != nil {
			out.Page = c.scope.reference(r)
		}
		out.Evicted = append(out.Evicted, c.evicted...)
		return c.scope.complete(ctx, &out.Page)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// writeDraft is a request that was checked.
type writeDraft struct {
	req        *WriteRequest
	tags       []string
	links      []int64
	importance float64
	tier       store.PageTier
	outline    bool // as far as it is known without the page
}

// check looks at what needs no scope.
func (r *WriteRequest) check() (*writeDraft, error) {
	d := &writeDraft{req: r, importance: 0.5, outline: r.Outline != nil && *r.Outline}
	if r.Content == "" {
		return nil, invalid("content", "must not be empty")
	}
	if len(r.Content) > MaxContentBytes {
		return nil, fail(ErrTooLarge, "content", "has %d bytes, a page takes %d: use ingest, which cuts a text into pages",
			len(r.Content), MaxContentBytes).with("bytes", len(r.Content)).with("limit", MaxContentBytes)
	}
	for _, t := range []struct {
		field, text string
		limit       int
	}{
		{"content", r.Content, MaxContentBytes}, {"title", r.Title, MaxTitleBytes}, {"summary", r.Summary, MaxSummaryBytes},
		{"source", r.Source, MaxSourceBytes}, {"pin_reason", r.PinReason, MaxReasonBytes},
	} {
		if err := validText(t.field, t.text, t.limit); err != nil {
			return nil, err
		}
	}
	var err error
	if d.tags, err = validTags(r.Tags); err != nil {
		return nil, err
	}
	if r.Importance != nil {
		if d.importance = *r.Importance; !(d.importance >= 0 && d.importance <= 1) || math.IsNaN(d.importance) {
			return nil, invalid("importance", "must be from 0 to 1")
		}
	}
	if r.Tier != "" {
		var ok bool
		if d.tier, ok = tierNumber(r.Tier); !ok {
			return nil, invalid("tier", "must be core, working or archive")
		}
	}
	if r.PageID != "" {
		if err := validPageID("page_id", r.PageID); err != nil {
			return nil, err
		}
	}
	if r.ExpectedVersion != nil && *r.ExpectedVersion < 0 {
		return nil, invalid("expected_version", "must not be negative")
	}
	if len(r.Links) > MaxLinks {
		return nil, fail(ErrLinkInvalid, "links", "has %d entries, at most %d are allowed", len(r.Links), MaxLinks).with("limit", MaxLinks)
	}
	if d.outline {
		return d, d.checkRow()
	}
	return d, nil
}

// checkRow checks what only an outline row must have.
func (d *writeDraft) checkRow() error {
	r := d.req
	switch {
	case r.Title == "" || r.Summary == "":
		return fail(ErrOutlineInvalid, "outline", "needs a title and a summary: they are the row")
	case len(r.Title) > MaxOutlineTitleBytes:
		return fail(ErrOutlineInvalid, "title", "has %d bytes, that of an outline row at most %d", len(r.Title), MaxOutlineTitleBytes)
	case len(r.Summary) > MaxOutlineSummaryBytes:
		return fail(ErrOutlineInvalid, "summary", "has %d bytes, that of an outline row at most %d", len(r.Summary), MaxOutlineSummaryBytes)
	case r.Tier != "" && r.Tier != Core:
		return fail(ErrOutlineInvalid, "tier", "of an outline row is core: leave it out")
	}
	return nil
}

// target gives the page that is to be replaced, nil when a new one is to be made.
func (d *writeDraft) target(c *change) (*resident, error) {
	expected := d.req.ExpectedVersion
	if d.req.PageID == "" {
		if expected != nil && *expected != 0 {
			return nil, invalid("page_id", "must name the page whose version is expected")
		}
		return nil, nil
	}
	r, err := c.lookup(d.req.PageID)
	if err != nil {
		return nil, err
	}
	if r == nil {
		if _, _, isCopy := copyOf(d.req.PageID); isCopy || expected != nil && *expected != 0 {
			return nil, noPage("page_id")
		}
		return nil, validNewPageID("page_id", d.req.PageID)
	}
	if r.OriginID != 0 {
		return nil, invalid("page_id", "names a copy of a record: change the record, and page it in again")
	}
	if expected == nil || *expected != r.Version {
		return nil, fail(ErrVersionConflict, "expected_version", "the page is at version %d: read it, then give that version", r.Version).
			with("current", r.Version)
	}
	return r, nil
}

// link finds the pages that the page is to link to.
func (d *writeDraft) link(c *change, self *resident) error {
	d.links = nil
	for i, id := range d.req.Links {
		field := fmt.Sprintf("links[%d]", i)
		if id == d.req.PageID && id != "" {
			return fail(ErrLinkInvalid, field, "names the page itself").with("link", id)
		}
		r, err := c.lookup(id)
		if err != nil {
			return err
		}
		if r == nil || r == self {
			return fail(ErrLinkInvalid, field, "names no page of the scope").with("link", id)
		}
		if !slices.Contains(d.links, r.ID) {
			d.links = append(d.links, r.ID)
		}
	}
	return nil
}

// fill fills a revision in.
func (d *writeDraft) fill(rev *store.PageRevision) {
	r := d.req
	rev.Title, rev.Summary, rev.Content, rev.Tags = r.Title, r.Summary, r.Content, d.tags
	rev.Importance, rev.Source, rev.Links = d.importance, r.Source, d.links
}

// make makes a new page.
func (d *writeDraft) make(c *change) (*resident, error) {
	id := d.req.PageID
	if id == "" {
		var err error
		if id, err = c.freshPageID(); err != nil {
			return nil, err
		}
	}
	if err := d.checkReason(d.outline, d.tier); err != nil {
		return nil, err
	}
	p := &store.Page{PageID: id}
	d.fill(&p.PageRevision)
	r := c.create(p)
	return d.place(c, r, d.outline, d.tier)
}

// replace gives a page its new revision, unless it would be like the one before.
func (d *writeDraft) replace(c *change, r *resident) (_ *resident, changed bool, err error) {
	outline := d.outline
	if d.req.Outline == nil {
		outline = r.Outline
	}
	tier := r.Tier
	switch {
	case d.req.Tier != "":
		tier = d.tier
	case r.Outline && !outline:
		tier = store.TierArchived
	}
	if outline {
		if err := d.checkRow(); err != nil {
			return r, false, err
		}
	}
	if err := d.checkReason(outline, tier); err != nil {
		return r, false, err
	}
	var next store.PageRevision
	d.fill(&next)
	same := sameRevision(&next, &r.PageRevision)
	pinned := d.req.PinReason != "" && d.req.PinReason != r.PinReason
	if same && outline == r.Outline && tier == r.Tier && !pinned {
		return r, false, nil
	}
	if !same {
		r = c.revise(r, d.fill)
	}
	r, err = d.place(c, r, outline, tier)
	return r, true, err
}

// checkReason refuses a reason for a page that is not to be in core.
func (d *writeDraft) checkReason(outline bool, tier store.PageTier) error {
	if d.req.PinReason != "" && !outline && tier != store.TierCore {
		return invalid("pin_reason", "says why a page is in core: write it with tier core, or leave the reason out")
	}
	return nil
}

// place puts a page where it is to be.
func (d *writeDraft) place(c *change, r *resident, outline bool, tier store.PageTier) (*resident, error) {
	r = c.touch(r)
	if outline {
		tier = store.TierCore
	}
	if outline != r.Outline {
		if err := c.setOutline(r, outline); err != nil {
			return r, err
		}
	}
	r = c.move(r, tier, "write")
	if d.req.PinReason != "" {
		r = c.edit(r)
		r.PinReason = d.req.PinReason
	}
	return r, nil
}

// sameRevision says whether two revisions hold the same.
func sameRevision(a, b *store.PageRevision) bool {
	return a.Title == b.Title && a.Summary == b.Summary && a.Content == b.Content && slices.Equal(a.Tags, b.Tags) &&
		a.Importance == b.Importance && a.Source == b.Source && slices.Equal(a.Links, b.Links)
}

// setOutline makes an edited page an outline row or a plain page.
func (c *change) setOutline(r *resident, outline bool) error {
	r.RowVersion = 0
	if outline {
		rows := 0
		for _, o := range c.window.core {
			if o.Outline && o.PageID != r.PageID {
				rows++
			}
		}
		if rows >= MaxOutlineRows {
			return fail(ErrOutlineFull, "outline", "the outline has %d rows, which is all it takes: fold it first", rows).
				with("rows", rows).with("limit", MaxOutlineRows)
		}
		r.RowVersion = r.Version
	}
	r.Outline = outline
	r.redraw()
	c.note(r.PageID)
	return nil
}

// freshPageID gives the next page id of the store's choice that is free.
func (c *change) freshPageID() (string, error) {
	for {
		id := fmt.Sprintf("p%d", c.state.NextPage)
		c.state.NextPage++
		r, err := c.lookup(id)
		if err != nil {
			return "", err
		}
		if r == nil && !c.removed[id] {
			return id, nil
		}
	}
}
