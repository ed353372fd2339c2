package pager

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// RecallRequest asks for the pages that answer a query to be in the window.
type RecallRequest struct {
	SearchRequest
	// Publish, when false, leaves the generation as it is. Default true.
	Publish *bool `json:"publish,omitempty"`
}

// RecallResult says what a recall found and what the window has become.
type RecallResult struct {
	Ranked   []Found     `json:"ranked"`   // what was found, best first, where it lies now
	Admitted []Reference `json:"admitted"` // of these, those that came into working
	Evicted  []Reference `json:"evicted"`  // to make room
	Skipped  []Skipped   `json:"skipped"`  // those that there was no room for
	Context  *Snapshot   `json:"context"`  // the window, with its text
	// Degraded says with what the search had to do without.
	Degraded []loci.Degrade `json:"degraded"`
}

// Skipped is a page that a recall found and left where it was.
type Skipped struct {
	PageID string `json:"page_id"`
	Reason string `json:"reason"`         // "no_room", "too_large" or "empty"
	Bytes  int    `json:"bytes"`          // of its content
	Cost   int    `json:"cost,omitempty"` // of the window with core, what was admitted before it, and it
	Budget int    `json:"budget"`
}

// The reasons why a recall skips a page. The last two are for records that no
// page can be made of.
const (
	skipNoRoom   = "no_room"
	skipTooLarge = "too_large"
	skipEmpty    = "empty"
)

// Recall searches, and puts what it finds into working, the best first, each with
// all that was put there before it and core within the budget. One that does not
// fit is skipped, and the rest go on. Pages of the window are touched; outline
// rows and core stay as they are. Records get copies, and copies take the changes
// of their records. The window's text comes along.
func (cs *Store) Recall(ctx context.Context, req RecallRequest) (*RecallResult, error) {
	const op = "recall"
	q, err := cs.question(&req.SearchRequest)
	if err != nil {
		return nil, withOp(op, err)
	}
	hits, degraded, err := cs.ask(ctx, q)
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *RecallResult
	var r *recall
	err = cs.mutate(ctx, op, func(c *change) (err error) {
		r = &recall{c: c, q: q}
		c.publish = req.Publish == nil || *req.Publish
		if !c.state.Ticked {
			c.state.Turn++
		}
		return r.run(hits)
	}, func(c *change) (err error) {
		out, err = r.result()
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Degraded = degraded
	return out, nil
}

// recall is a recall at work.
type recall struct {
	c        *change
	q        *question
	ranked   []ranked
	admitted []string // page ids
	skipped  []Skipped
	uses     []int64 // records of pages that were found and not touched
}

func (r *recall) run(hits []hit) error {
	var err error
	if r.ranked, err = r.c.scope.rank(r.c.ctx, r.q, hits); err != nil {
		return err
	}
	for i := range r.ranked {
		if err := r.take(&r.ranked[i]); err != nil {
			return err
		}
	}
	return nil
}

// take brings a result into the window, if it has room.
func (r *recall) take(f *ranked) error {
	c, page := r.c, f.page
	if page == nil {
		return r.takeRecord(f)
	}
	if c.pages[page.PageID] == nil {
		c.pages[page.PageID] = page
	}
	if page.Tier == store.TierCore {
		c.hit(page)
		return nil
	}
	of, err := r.newer(f)
	if err != nil {
		return err
	}
	probe := page
	if of != nil {
		changed := *page.Page
		changed.PageRevision = refreshed(&store.PageRevision{Version: page.Version + 1, Importance: page.Importance}, of)
		probe = newResident(&changed)
	}
	if !r.fits(probe) {
		r.uses = append(r.uses, page.ID)
		return nil
	}
	if of != nil {
		page = c.refreshCopy(page, of)
	}
	r.admit(page)
	return nil
}

// newer reads the record of a stale copy, if the question covers its scope and
// it can still be a page.
func (r *recall) newer(f *ranked) (*link.Copy, error) {
	if !f.stale {
		return nil, nil
	}
	of, err := r.c.scope.record(r.c.ctx, f.page.OriginKind, f.page.OriginID, r.q.scopes)
	if err != nil || of == nil || saysNothingNew(f.page.Page, of) {
		return nil, err
	}
	if rev := copyRevision(of); checkCopy(&rev) != nil {
		return nil, nil // the copy stays as it is, and its reference says that it is stale
	}
	return of, nil
}

// takeRecord brings a copy of a record into the window, if it has room.
func (r *recall) takeRecord(f *ranked) error {
	rev := copyRevision(f.text)
	if err := checkCopy(&rev); err != nil {
		s := Skipped{PageID: copyID(f.kind, f.id), Reason: skipEmpty, Bytes: len(rev.Content), Budget: r.c.state.Budget}
		if err.Code == ErrTooLarge {
			s.Reason = skipTooLarge
		}
		r.skipped = append(r.skipped, s)
		return nil
	}
	if r.fits(newResident(&store.Page{PageID: copyID(f.kind, f.id), PageRevision: rev})) {
		r.admit(r.c.admitCopy(f.text))
	}
	return nil
}

// fits says whether a page has room in working beside core and what this recall
// put or kept there; if not, it is skipped.
func (r *recall) fits(page *resident) bool {
	c := r.c
	w := window{core: c.window.core, working: make([]*resident, 0, len(r.ranked))}
	placed := false
	for _, o := range c.window.working {
		switch {
		case o.PageID == page.PageID:
			w.working, placed = append(w.working, page), true
		case c.touched[o.PageID]:
			w.working = append(w.working, o)
		}
	}
	if !placed {
		w.working = append(w.working, page)
	}
	cost := c.meter.cost(&w)
	if cost <= c.state.Budget {
		return true
	}
	r.skipped = append(r.skipped, Skipped{PageID: page.PageID, Reason: skipNoRoom, Bytes: len(page.Content), Cost: cost, Budget: c.state.Budget})
	return false
}

// admit puts a page that fits into working, at its end unless it is there.
func (r *recall) admit(page *resident) {
	page = r.c.hit(page)
	if page.Tier == store.TierWorking {
		return
	}
	page = r.c.move(page, store.TierWorking, r.c.op)
	r.admitted = append(r.admitted, page.PageID)
}

// result is the answer, once all is written.
func (r *recall) result() (*RecallResult, error) {
	c, s := r.c, r.c.scope
	if err := s.countUses(c.ctx, r.uses...); err != nil {
		return nil, err
	}
	out := &RecallResult{
		Ranked: []Found{}, Admitted: []Reference{}, Evicted: append([]Reference{}, c.evicted...), Skipped: append([]Skipped{}, r.skipped...),
		Context: s.snapshot(c.policy, nil),
	}
	for i := range r.ranked {
		f := &r.ranked[i]
		pageID := ""
		if f.page != nil {
			pageID = f.page.PageID
		} else {
			pageID = copyID(f.kind, f.id)
		}
		if now := c.pages[pageID]; now != nil {
			out.Ranked = append(out.Ranked, f.found(s.current(now.Page)))
		} else {
			out.Ranked = append(out.Ranked, f.found(recordReference(f.text)))
		}
	}
	for _, id := range r.admitted {
		out.Admitted = append(out.Admitted, s.reference(c.pages[id]))
	}
	if err := s.completeFound(c.ctx, out.Ranked); err != nil {
		return nil, err
	}
	if err := s.completeAll(c.ctx, out.Admitted); err != nil {
		return nil, err
	}
	return out, s.completeAll(c.ctx, out.Evicted)
}
