package pager

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/internal/store"
)

// ForgetRequest asks for a page to be removed for good.
type ForgetRequest struct {
	PageID string `json:"page_id"`
}

// ForgetResult says what was removed.
type ForgetResult struct {
	PageID        string `json:"page_id"`
	Tier          Tier   `json:"tier"`           // where it lay
	Revisions     int    `json:"revisions"`      // that were removed
	LinksStripped int    `json:"links_stripped"` // pages that had a link to it, in any of their revisions
}

// Forget removes a page with every revision of it, wherever it lies, and takes it
// out of the links of all others. The text that was published last is cut off
// before it. The record that a copy was made of stays, and so does what was
// written of it elsewhere: a milestone names the rows that were folded into it,
// with their titles and summaries.
func (cs *Store) Forget(ctx context.Context, req ForgetRequest) (*ForgetResult, error) {
	const op = "forget"
	if err := validPageID("page_id", req.PageID); err != nil {
		return nil, withOp(op, err)
	}
	var out *ForgetResult
	err := cs.mutate(ctx, op, func(c *change) error {
		r, err := c.page(req.PageID)
		if err != nil {
			return err
		}
		id := r.ID
		out = &ForgetResult{PageID: r.PageID, Tier: tierNames[r.Tier]}
		err = c.scope.reg.link.Read(ctx, func(tx *store.ReadTx) error {
			versions, err := tx.PageHistory(id)
			if err != nil {
				return err
			}
			linking, err := tx.PagesLinking(id)
			out.Revisions, out.LinksStripped = len(versions), len(linking)
			return err
		})
		if err != nil {
			return err
		}
		c.remove(r)
		c.unlink(id)
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// unlink takes a page that is removed out of the links of those in the window,
// as the removal does it in the store.
func (c *change) unlink(id int64) {
	for _, list := range [][]*resident{c.window.core, c.window.working} {
		for i, r := range list {
			if !slices.Contains(r.Links, id) {
				continue
			}
			page := *r.Page
			page.Links = slices.DeleteFunc(slices.Clone(page.Links), func(link int64) bool { return link == id })
			list[i] = &resident{Page: &page, line: r.line, first: r.first, next: r.next}
			if c.pages[r.PageID] == r {
				c.pages[r.PageID] = list[i]
			}
		}
	}
}
