package pager

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// PageInRequest asks for a page to be in the window.
type PageInRequest struct {
	// PageID is a page of the scope, or "kind:id" of a record of the scope's
	// namespace (memory, entity, relation, event, chunk), which gets a copy here.
	PageID string `json:"page_id"`
	// Tier is where it goes: working (the default), or core, where it is pinned.
	Tier Tier `json:"tier,omitempty"`
	// Reason says why it is pinned, in at most 200 bytes; with tier core only.
	Reason string `json:"reason,omitempty"`
	// Scopes are the scopes in which a record may lie. Default: public.
	Scopes []string `json:"scopes,omitempty"`
}

// PageInResult names the page that was asked for.
type PageInResult struct {
	Page    Reference   `json:"page"`
	Changed bool        `json:"changed"` // false: it was there already
	Evicted []Reference `json:"evicted"` // to make room
	// Redacted is what was taken out of the request, see loci.WithRedaction.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// PageIn puts a page into the window: at the end of working, or into core. A page
// of working can be moved to core. One that is there already is touched only;
// but a copy takes the change of its record.
func (cs *Store) PageIn(ctx context.Context, req PageInRequest) (*PageInResult, error) {
	const op = "page_in"
	redactor := cs.reg.link.Redactor(ctx)
	req.Reason = redactor.Text(req.Reason)
	p, err := cs.planPageIn(&req)
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *PageInResult
	err = cs.mutate(ctx, op, func(c *change) (err error) {
		out = &PageInResult{Evicted: []Reference{}, Redacted: redactedBy(redactor)}
		out.Changed, err = p.run(c)
		return err
	}, func(c *change) error {
		r := c.pages[req.PageID]
		if out.Page = c.scope.reference(r); !out.Changed {
			if err := c.scope.countUses(ctx, r.ID); err != nil {
				return err
			}
			out.Page = c.scope.current(r.Page)
		}
		out.Evicted = append(out.Evicted, c.evicted...)
		return c.scope.completeBoth(ctx, &out.Page, out.Evicted)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// completeBoth completes the reference of a page and those of the evicted.
func (s *scope) completeBoth(ctx context.Context, page *Reference, evicted []Reference) error {
	if err := s.complete(ctx, page); err != nil {
		return err
	}
	return s.completeAll(ctx, evicted)
}

// pageInPlan is a request that was checked.
type pageInPlan struct {
	req    *PageInRequest
	tier   store.PageTier
	scopes []string
}

func (cs *Store) planPageIn(req *PageInRequest) (*pageInPlan, error) {
	p := &pageInPlan{req: req, tier: store.TierWorking}
	if err := validPageID("page_id", req.PageID); err != nil {
		return nil, err
	}
	switch req.Tier {
	case "", Working:
		if req.Reason != "" {
			return nil, invalid("reason", "says why a page is pinned: ask for tier core")
		}
	case Core:
		p.tier = store.TierCore
	default:
		return nil, invalid("tier", "must be working or core")
	}
	if err := validText("reason", req.Reason, MaxReasonBytes); err != nil {
		return nil, err
	}
	var err error
	p.scopes, err = cs.recordScopes(req.Scopes)
	return p, err
}

func (p *pageInPlan) run(c *change) (changed bool, err error) {
	r, changed, err := p.find(c)
	if err != nil {
		return false, err
	}
	if tier := max(r.Tier, p.tier); tier != r.Tier {
		r, changed = c.move(c.hit(r), tier, c.op), true
	}
	if r.Tier == store.TierCore && p.req.Reason != "" && p.req.Reason != r.PinReason {
		r, changed = c.edit(r), true
		r.PinReason = p.req.Reason
	}
	if !changed {
		return false, nil
	}
	if !c.touched[r.PageID] {
		r = c.hit(r)
	}
	if cost := c.alone(r); r.Tier == store.TierWorking && cost > c.state.Budget {
		return false, fail(ErrBudgetExceeded, "page_id", "names a page that would take, with core alone, %d of a budget of %d: read it, or compact it",
			cost, c.state.Budget).with("cost", cost).with("budget", c.state.Budget)
	}
	return true, nil
}

// find gives the page that is asked for, as its record has it now if it is a
// copy.
func (p *pageInPlan) find(c *change) (r *resident, changed bool, err error) {
	if r, err = c.lookup(p.req.PageID); err != nil {
		return nil, false, err
	}
	kind, id, isCopy := copyOf(p.req.PageID)
	switch {
	case r == nil && !isCopy:
		return nil, false, noPage("page_id")
	case r == nil:
		of, err := c.scope.record(c.ctx, kind, id, p.scopes)
		if err != nil {
			return nil, false, err
		}
		if of == nil {
			return nil, false, fail(ErrNotFound, "page_id", "there is no such page in the scope, and no such record in its namespace and the scopes that were named")
		}
		if rev := copyRevision(of); checkCopy(&rev) != nil {
			return nil, false, checkCopy(&rev)
		}
		return c.admitCopy(of), true, nil
	}
	of, err := c.scope.newer(c.ctx, r.Page, p.scopes)
	if err != nil || of == nil {
		return r, false, err
	}
	if rev := copyRevision(of); checkCopy(&rev) != nil {
		return nil, false, checkCopy(&rev)
	}
	return c.refreshCopy(r, of), true, nil
}

// alone is what the window costs with a page of working and core only.
func (c *change) alone(r *resident) int {
	return c.meter.cost(&window{core: c.window.core, working: []*resident{r}})
}

// PageOutRequest asks for a page to leave the window.
type PageOutRequest struct {
	PageID string `json:"page_id"`
}

// PageOutResult names the page that was put out.
type PageOutResult struct {
	Page    Reference `json:"page"`
	Changed bool      `json:"changed"` // false: it was in the archive already
}

// PageOut puts a page of working into the archive. One of core has to be
// unpinned first.
func (cs *Store) PageOut(ctx context.Context, req PageOutRequest) (*PageOutResult, error) {
	const op = "page_out"
	if err := validPageID("page_id", req.PageID); err != nil {
		return nil, withOp(op, err)
	}
	var out *PageOutResult
	err := cs.mutate(ctx, op, func(c *change) error {
		out = &PageOutResult{}
		r, err := c.page(req.PageID)
		if err != nil {
			return err
		}
		switch {
		case r.Outline:
			return outlinePinned()
		case r.Tier == store.TierCore:
			return fail(ErrPinned, "page_id", "names a page of core: unpin it first")
		}
		out.Changed = r.Tier == store.TierWorking
		c.move(r, store.TierArchived, op)
		return nil
	}, func(c *change) error {
		out.Page = c.scope.reference(c.pages[req.PageID])
		return c.scope.complete(ctx, &out.Page)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func outlinePinned() error {
	return fail(ErrPinned, "page_id", "names a row of the outline: write it with outline false, or fold the outline")
}

// UnpinRequest asks for a page to be pinned no longer.
type UnpinRequest struct {
	PageID string `json:"page_id"`
}

// UnpinResult names the page that was unpinned.
type UnpinResult struct {
	Page    Reference   `json:"page"`
	Changed bool        `json:"changed"` // false: it was in working already
	Evicted []Reference `json:"evicted"` // to make room
}

// Unpin moves a page from core to the end of working, from where it may be
// evicted.
func (cs *Store) Unpin(ctx context.Context, req UnpinRequest) (*UnpinResult, error) {
	const op = "unpin"
	if err := validPageID("page_id", req.PageID); err != nil {
		return nil, withOp(op, err)
	}
	var out *UnpinResult
	err := cs.mutate(ctx, op, func(c *change) error {
		out = &UnpinResult{Evicted: []Reference{}}
		r, err := c.page(req.PageID)
		if err != nil {
			return err
		}
		switch {
		case r.Outline:
			return outlinePinned()
		case r.Tier == store.TierArchived:
			return invalid("page_id", "names a page of the archive, which is not pinned: page it in to have it in the window")
		case r.Tier == store.TierCore:
			out.Changed = true
			c.move(c.touch(r), store.TierWorking, op)
		}
		return nil
	}, func(c *change) error {
		out.Page = c.scope.reference(c.pages[req.PageID])
		out.Evicted = append(out.Evicted, c.evicted...)
		return c.scope.completeBoth(ctx, &out.Page, out.Evicted)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
