package pager

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/internal/store"
)

// DashboardRequest asks for what a person looks at.
type DashboardRequest struct {
	Events *int `json:"events,omitempty"` // of each kind, newest first: 1..1000, default 200
}

// Dashboard is a scope as a person looks at it: what is in the window, what
// changed in it and what that cost. Making it publishes nothing.
type Dashboard struct {
	Scope       Scope           `json:"scope"`
	AtUS        int64           `json:"at_us"` // when it was made, UTC microseconds
	Now         DashboardNow    `json:"now"`
	Composition Composition     `json:"composition"`
	Pages       []DashboardPage `json:"pages"` // those in the window in its order, then the archived ones that were touched last
	// PagesLeftOut counts the archived pages that Pages does not show.
	PagesLeftOut int64          `json:"pages_left_out"`
	Renders      []RenderEvent  `json:"renders"`   // newest first
	Residency    []Movement     `json:"residency"` // the paging ledger, newest first
	Totals       Totals         `json:"totals"`
	Usage        DashboardUsage `json:"usage"`
	Replacement  Replacement    `json:"replacement"`
	Fold         *FoldEstimate  `json:"fold,omitempty"` // where there is something to fold and a provider to reckon with
	Warnings     []Warning      `json:"warnings"`
}

// DashboardNow is the window at this moment.
type DashboardNow struct {
	Cost              int     `json:"cost"` // of the whole text, in Unit
	Budget            int     `json:"budget"`
	Unit              Unit    `json:"unit"`
	Used              float64 `json:"used"` // cost over budget
	CoreCost          int     `json:"core_cost"`
	StablePrefixBytes int     `json:"stable_prefix_bytes"`
	TextBytes         int     `json:"text_bytes"`
	Generation        int64   `json:"generation"`
	Epoch             int64   `json:"residency_epoch"`
	Pressure          string  `json:"pressure"`    // a Pressure's level
	Unpublished       bool    `json:"unpublished"` // the text differs from what was published last
}

// Composition says what the scope's pages are made of.
type Composition struct {
	Core    TierShare `json:"core"`
	Working TierShare `json:"working"`
	Archive TierShare `json:"archive"`
}

// TierShare is what lies in a tier.
type TierShare struct {
	Pages         int64 `json:"pages"`
	Bytes         int64 `json:"bytes"`          // of the pages' content
	RenderedBytes int64 `json:"rendered_bytes"` // of the window's text
}

// DashboardPage is a page as the dashboard shows it.
type DashboardPage struct {
	PageID        string `json:"page_id"`
	Version       int64  `json:"version"`
	Title         string `json:"title,omitempty"`
	Segment       string `json:"segment"` // "2" is core, "3" is working, "archive" is not in the window
	Bytes         int64  `json:"bytes"`   // of its content
	RenderedBytes int64  `json:"rendered_bytes"`
	Hits          int64  `json:"hits"`
	IdleMS        *int64 `json:"idle_ms"` // since it was used last; null if never
	Outline       bool   `json:"outline,omitempty"`
	Stale         bool   `json:"stale,omitempty"` // a copy of a record that has changed since
}

// DashboardUsage is what was billed.
type DashboardUsage struct {
	Records []UsageRecord `json:"records"` // newest first
	Totals  UsageTotals   `json:"totals"`
	Costs   []UsageCost   `json:"costs"` // by every profile, of what was billed and then of what was simulated
}

const (
	defaultEvents = 200
	maxEvents     = 1000
	// dashboardArchive bounds the archived pages that a dashboard shows.
	dashboardArchive = 200
)

// Dashboard gives what a person looks at. It changes nothing.
func (cs *Store) Dashboard(ctx context.Context, req DashboardRequest) (*Dashboard, error) {
	const op = "dashboard"
	limit, err := validLimit("events", req.Events, defaultEvents, 1, maxEvents)
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *Dashboard
	err = cs.with(ctx, op, func(s *scope) error {
		policy, err := s.policy(ctx)
		if err != nil {
			return err
		}
		at := s.reg.link.Now().UnixMicro()
		out = &Dashboard{Scope: cs.Scope(), AtUS: at, Now: s.now(&policy), Totals: s.state.Totals.totals(),
			Replacement: Replacement{policy, s.state.Policy.public()}, Fold: s.foldEstimate(&policy, at)}
		if out.Renders, err = s.renderEvents(ctx, limit); err != nil {
			return err
		}
		if out.Residency, err = s.movements(ctx, limit); err != nil {
			return err
		}
		if out.Usage.Records, err = s.usageRecords(ctx, limit); err != nil {
			return err
		}
		out.Usage.Totals = s.state.Usage.totals()
		out.Usage.Costs = append(costs(&out.Usage.Totals.Provider, false), costs(&out.Usage.Totals.Simulated, true)...)
		if err := s.dashboardPages(ctx, out); err != nil {
			return err
		}
		stale := int64(0)
		for i := range out.Pages {
			if p := &out.Pages[i]; p.Stale && p.Segment != string(Archive) {
				stale++
			}
		}
		out.Warnings = s.warnings(&policy, out.Fold, stale)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// now describes the window.
func (s *scope) now(policy *Policy) DashboardNow {
	snap := s.silentSnapshot(*policy)
	return DashboardNow{
		Cost: snap.Pressure.Cost, Budget: snap.Pressure.Budget, Unit: snap.Pressure.Unit, Used: snap.Pressure.Used, Pressure: snap.Pressure.Level,
		CoreCost: s.coreCost(), StablePrefixBytes: snap.StablePrefixBytes, TextBytes: snap.TextBytes, Generation: snap.Generation, Epoch: snap.Epoch,
		Unpublished: snap.Changed,
	}
}

// dashboardPages fills in what the scope's pages are and what they are made of.
func (s *scope) dashboardPages(ctx context.Context, out *Dashboard) error {
	now := out.AtUS
	out.Pages = []DashboardPage{}
	c := &out.Composition
	for _, list := range []struct {
		pages   []*resident
		segment string
		share   *TierShare
	}{{s.window.core, "2", &c.Core}, {s.window.working, "3", &c.Working}} {
		for i, r := range list.pages {
			n := int64(renderedBytes(r, i))
			list.share.Pages++
			list.share.Bytes += int64(len(r.Content))
			list.share.RenderedBytes += n
			hits, _, at := s.statistics(r.ID, r.Hits, r.Touched, r.TouchedAt)
			out.Pages = append(out.Pages, DashboardPage{PageID: r.PageID, Version: r.Version, Title: r.Title, Segment: list.segment,
				Bytes: int64(len(r.Content)), RenderedBytes: n, Hits: hits, IdleMS: idle(at, now), Outline: r.Outline})
		}
	}
	if s.stored == nil {
		return nil
	}
	return s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		pages, bytes, err := tx.CountPages(s.stored.ID)
		if err != nil {
			return err
		}
		c.Archive = TierShare{Pages: pages[store.TierArchived], Bytes: bytes[store.TierArchived]}
		i := 0
		for _, list := range [][]*resident{s.window.core, s.window.working} {
			for _, r := range list {
				if out.Pages[i].Stale, err = stale(tx, r.Page); err != nil {
					return err
				}
				i++
			}
		}
		recent, err := s.recentArchive(tx, dashboardArchive)
		if err != nil {
			return err
		}
		for _, h := range recent {
			p := DashboardPage{PageID: h.PageID, Version: h.Version, Title: h.Title, Segment: string(Archive), Bytes: h.Bytes}
			if _, record, ok := copyOf(h.PageID); ok {
				if p.Stale, err = staleCopy(tx, record, h.Version); err != nil {
					return err
				}
			}
			var at int64
			p.Hits, _, at = s.statistics(h.ID, h.Hits, h.Touched, h.TouchedAt)
			p.IdleMS = idle(at, now)
			out.Pages = append(out.Pages, p)
		}
		out.PagesLeftOut = c.Archive.Pages - int64(len(recent))
		return nil
	})
}

// recentArchive gives the archived pages that were touched last, newest first.
func (s *scope) recentArchive(tx *store.ReadTx, limit int) ([]*store.PageHead, error) {
	ids, err := tx.RecentPages(s.stored.ID, store.TierArchived, limit)
	if err != nil {
		return nil, err
	}
	ids = append(ids, s.waiting(limit)...)
	slices.Sort(ids)
	var out []*store.PageHead
	for _, id := range slices.Compact(ids) {
		err := tx.PageHeads(s.stored.ID, id-1, 1, func(h *store.PageHead) bool {
			if h.ID == id && h.Tier == store.TierArchived {
				out = append(out, h)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b *store.PageHead) int {
		_, x, _ := s.statistics(a.ID, 0, a.Touched, 0)
		_, y, _ := s.statistics(b.ID, 0, b.Touched, 0)
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(b.ID, a.ID))
	})
	return out[:min(len(out), limit)], nil
}

// waiting gives the records outside the window whose last touch waits to be
// written, latest first, at most limit.
func (s *scope) waiting(limit int) []int64 {
	inside := map[int64]bool{}
	for _, list := range [][]*resident{s.window.core, s.window.working} {
		for _, r := range list {
			inside[r.ID] = true
		}
	}
	var ids []int64
	for id := range s.touches {
		if !inside[id] {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int {
		return cmp.Or(cmp.Compare(s.touches[b].tick, s.touches[a].tick), cmp.Compare(b, a))
	})
	return ids[:min(len(ids), limit)]
}

// statistics adds to a page's statistics what was counted and not written yet.
func (s *scope) statistics(id, hits, tick, at int64) (int64, int64, int64) {
	if t := s.touches[id]; t != nil {
		return hits + t.hits, max(tick, t.tick), max(at, t.at)
	}
	return hits, tick, at
}

// idle is how long ago a page was used, in milliseconds.
func idle(at, now int64) *int64 {
	if at == 0 {
		return nil
	}
	return new(max(now-at, 0) / 1000)
}

// stale says whether a page is a copy of a record that has changed since.
func stale(tx *store.ReadTx, p *store.Page) (bool, error) {
	if p.OriginID == 0 {
		return false, nil
	}
	return staleCopy(tx, p.OriginID, p.Version)
}

// staleCopy is stale for a copy of a record at a revision.
func staleCopy(tx *store.ReadTx, record, revision int64) (bool, error) {
	now, ok, err := tx.RecordRevision(record)
	return !ok || now != revision, err
}
