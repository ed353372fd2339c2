package loci

import (
	"fmt"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// PageTier says where a page of the context store lies.
type PageTier string

// The tiers of pages.
const (
	PageArchive PageTier = "archive" // stored and found, not in the context window
	PageWorking PageTier = "working" // in the window, may be evicted
	PageCore    PageTier = "core"    // pinned in the window's stable prefix
)

// ContextPage is a page of the context store as a search gives it: its current
// revision and where it lies. Package pager works with pages.
type ContextPage struct {
	Header
	PageID     string   `json:"page_id"`
	Version    int64    `json:"version"`
	Tier       PageTier `json:"tier"`
	Outline    bool     `json:"outline"`
	Title      string   `json:"title"`
	Summary    string   `json:"summary"`
	Content    string   `json:"content"`
	Importance float64  `json:"importance"` // 0..1
	Source     string   `json:"source,omitempty"`
	Origin     string   `json:"origin,omitempty"` // "kind:id" of the record that the page is a copy of
}

var pageTiers = [...]PageTier{store.TierArchived: PageArchive, store.TierWorking: PageWorking, store.TierCore: PageCore}

// pageOf is a stored page as the caller gets it.
func pageOf(p *store.Page) ContextPage {
	c := ContextPage{
		Header: headerOf(&p.Record), PageID: p.PageID, Version: p.Version, Tier: pageTiers[p.Tier], Outline: p.Outline,
		Title: p.Title, Summary: p.Summary, Content: p.Content, Importance: p.Importance, Source: p.Source,
	}
	if p.OriginID != 0 {
		c.Origin = fmt.Sprintf("%s:%d", kindOf(p.OriginKind), p.OriginID)
	}
	return c
}

// pageText is what the index learns of a page before it is written.
func pageText(p *store.Page) *index.Document {
	d := &index.Document{Kind: index.Kind(store.KindPage), Text: []string{p.Content}, Tag: p.PageRevision.Tags}
	if p.Summary != "" {
		d.Text = []string{p.Summary, p.Content}
	}
	if p.Title != "" {
		d.Name = []string{p.Title}
	}
	return d
}

// pageDocument is what the index learns of a stored page.
func pageDocument(p *store.Page) *index.Document {
	d := pageText(p)
	settleDocument(&index.Prepared{Document: d}, &p.Record)
	return d
}
