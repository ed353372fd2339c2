package pager

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// RestoreRequest brings the pages of the scope back to where a checkpoint has
// them.
type RestoreRequest struct {
	CheckpointID loci.ID `json:"checkpoint_id"`
}

// RestoredPage is a page whose earlier content became a new revision.
type RestoredPage struct {
	PageID  string `json:"page_id"`
	Version int64  `json:"version"` // the new one
	From    int64  `json:"from"`    // the version that it repeats
}

// MovedPage is a page that changed its tier.
type MovedPage struct {
	PageID string `json:"page_id"`
	From   Tier   `json:"from"`
	To     Tier   `json:"to"`
}

// RestoreResult says what was brought back.
type RestoreResult struct {
	CheckpointID loci.ID        `json:"checkpoint_id"`
	Changed      bool           `json:"changed"`
	Restored     []RestoredPage `json:"restored"`
	Moved        []MovedPage    `json:"moved"`     // later pages to the archive among them
	Forgotten    []loci.ID      `json:"forgotten"` // records of pages of the checkpoint that were removed for good
	Evicted      []Reference    `json:"evicted"`   // those for which the budget has no room any more
}

// Restore brings every page back to the version, the tier and the place that a
// checkpoint has of it. A page whose text differs gets a new revision that
// repeats the old one; pages made later go to the archive; pages removed for good
// since are passed over. Of copies of records only the tier moves: their text is
// the record's. Statistics and the generation stay as they are, and so do the
// numbers from which new places are given. The budget holds: what there is no
// room for is evicted, and when core alone is over it nothing changes.
func (cs *Store) Restore(ctx context.Context, req RestoreRequest) (*RestoreResult, error) {
	const op = "restore"
	if req.CheckpointID < 1 {
		return nil, withOp(op, invalid("checkpoint_id", "must be the id of a checkpoint"))
	}
	var out *RestoreResult
	err := cs.mutate(ctx, op, func(c *change) error {
		out = &RestoreResult{CheckpointID: req.CheckpointID, Restored: []RestoredPage{}, Moved: []MovedPage{},
			Forgotten: []loci.ID{}, Evicted: []Reference{}}
		r := &restorer{change: c, out: out}
		then, err := r.checkpoint(int64(req.CheckpointID))
		if err != nil {
			return err
		}
		return r.restore(then)
	}, func(c *change) error {
		out.Evicted = append(out.Evicted, c.evicted...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// restorer is a restore at work.
type restorer struct {
	*change
	out *RestoreResult
}

// checkpoint gives the pages of a checkpoint of the scope.
func (r *restorer) checkpoint(id int64) (pages []store.CheckpointPage, err error) {
	found := false
	if r.scope.stored != nil {
		err = r.scope.reg.link.Read(r.ctx, func(tx *store.ReadTx) error {
			c, err := tx.Checkpoint(r.scope.stored.ID, id)
			if c != nil {
				pages, found = c.Pages, true
			}
			return err
		})
	}
	if err == nil && !found {
		err = fail(ErrNotFound, "checkpoint_id", "there is no such checkpoint in the scope")
	}
	return pages, err
}

// restore compares all pages with those of a checkpoint, both by ascending
// record, and brings back those that differ. The rest are not even read.
func (r *restorer) restore(then []store.CheckpointPage) error {
	var differ []store.CheckpointPage // as they are to be
	err := r.scope.places(r.ctx, func(now store.CheckpointPage) {
		for len(then) > 0 && then[0].ID < now.ID {
			r.out.Forgotten = append(r.out.Forgotten, loci.ID(then[0].ID))
			then = then[1:]
		}
		// A page made later goes to the archive as it is.
		to := store.CheckpointPage{ID: now.ID, Version: now.Version, Tier: store.TierArchived}
		if len(then) > 0 && then[0].ID == now.ID {
			to, then = then[0], then[1:]
		}
		if now.Outline && to.Outline {
			to.RowVersion = now.RowVersion // a row that stays is a matter of its text alone
		}
		if now != to {
			differ = append(differ, to)
		}
	})
	if err != nil {
		return err
	}
	for _, p := range then {
		r.out.Forgotten = append(r.out.Forgotten, loci.ID(p.ID))
	}
	for i := range differ {
		p, err := r.resident(differ[i].ID)
		if err != nil {
			return err
		}
		if p == nil {
			continue // removed from outside just now, which the commit finds
		}
		was := p.PageRevision
		if p, err = r.revert(p, differ[i].Version); err != nil {
			return err
		}
		if err := r.put(p, &differ[i], &was); err != nil {
			return err
		}
	}
	return nil
}

// resident gives a page by its record, nil when there is none.
func (r *restorer) resident(id int64) (p *resident, err error) {
	for _, list := range [][]*resident{r.window.core, r.window.working} {
		for _, p := range list {
			if p.ID == id {
				r.pages[p.PageID] = p
				return p, nil
			}
		}
	}
	err = r.scope.reg.link.Read(r.ctx, func(tx *store.ReadTx) error {
		stored, err := tx.Page(id)
		if stored != nil {
			p = newResident(stored)
			r.pages[p.PageID] = p
		}
		return err
	})
	return p, err
}

// revert gives a page the text of one of its versions as a new revision, unless
// it has that text.
func (r *restorer) revert(p *resident, version int64) (*resident, error) {
	if p.Version == version || p.OriginID != 0 {
		return p, nil
	}
	var was *store.PageRevision
	err := r.scope.reg.link.Read(r.ctx, func(tx *store.ReadTx) (err error) {
		was, err = tx.PageVersion(p.ID, version)
		return err
	})
	if err != nil {
		return nil, err
	}
	if was == nil {
		return nil, errs.New(errs.Storage, "the database is damaged: version %d of page %d is not there", version, p.ID)
	}
	if sameRevision(was, &p.PageRevision) {
		return p, nil
	}
	p = r.revise(p, func(rev *store.PageRevision) {
		rev.Title, rev.Summary, rev.Content, rev.Tags = was.Title, was.Summary, was.Content, was.Tags
		rev.Importance, rev.Source, rev.Links = was.Importance, was.Source, was.Links
	})
	r.out.Restored = append(r.out.Restored, RestoredPage{PageID: p.PageID, Version: p.Version, From: version})
	r.out.Changed = true
	return p, nil
}

// put puts a page into the place that a checkpoint has of it. was is its
// revision before the restore.
func (r *restorer) put(p *resident, to *store.CheckpointPage, was *store.PageRevision) error {
	if p.Tier == to.Tier && p.Outline == to.Outline && p.Seq == to.Seq && p.Admission == to.Admission {
		return nil
	}
	n := r.edit(p)
	from := n.Tier
	r.take(n)
	n.Tier, n.Seq, n.Admission = to.Tier, to.Seq, to.Admission
	if n.Outline != to.Outline {
		if n.Outline, n.RowVersion = to.Outline, 0; n.Outline {
			var err error
			if n.RowVersion, err = r.rowVersion(n, to.RowVersion, was); err != nil {
				return err
			}
		}
	}
	switch n.Tier {
	case store.TierCore:
		r.window.core = append(r.window.core, n)
	case store.TierWorking:
		r.window.working = append(r.window.working, n)
	}
	r.window.sort()
	if n.Tier != store.TierCore {
		n.PinReason = ""
	}
	if n.Tier != store.TierArchived {
		n.EvictedTurn = -1
	}
	n.redraw()
	if from != n.Tier {
		m := MovedPage{PageID: n.PageID, From: tierNames[from], To: tierNames[n.Tier]}
		r.out.Moved = append(r.out.Moved, m)
		r.ledger = append(r.ledger, Movement{AtUS: r.now, Operation: r.op, PageID: n.PageID, From: string(m.From), To: string(m.To),
			Reason: "restore", Bytes: len(n.Content)})
	}
	r.out.Changed = true
	r.note(n.PageID)
	return nil
}

// rowVersion gives the version at which a page that becomes a row again last
// changed as one: that of the checkpoint, unless its title or summary changed
// later.
func (r *restorer) rowVersion(p *resident, then int64, was *store.PageRevision) (version int64, err error) {
	if p.Title != was.Title || p.Summary != was.Summary {
		return p.Version, nil
	}
	err = r.scope.reg.link.Read(r.ctx, func(tx *store.ReadTx) error {
		version, err = tx.PageRowVersion(p.ID, was.Version)
		return err
	})
	return max(version, then), err
}
