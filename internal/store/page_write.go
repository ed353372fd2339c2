package store

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/render"
)

// AddPage writes a new page with its first revision, whose version need not be 1,
// and fills in its id and revision. The caller stages it.
func (tx *WriteTx) AddPage(p *Page) error {
	p.Kind, p.Record.Tags = KindPage, p.PageRevision.Tags
	if err := tx.addRecord(&p.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlAddPage)
	if err != nil {
		return err
	}
	bindPageState(st, p.state())
	st.bindInt(13, p.ID)
	st.bindInt(14, p.Context)
	st.bindText(15, p.PageID)
	st.bindInt(16, p.Version)
	st.bindInt(17, int64(len(p.Content)))
	bindID(st, 18, int64(p.OriginKind))
	bindID(st, 19, p.OriginID)
	if err := st.run(); err != nil {
		return err
	}
	if p.OriginID != 0 {
		tx.w.copies = copiesThere
	}
	return tx.AddPageVersion(p.ID, &p.PageRevision)
}

// AddPageRevision gives a page, as it was read in this operation, another
// revision: p's, which becomes the current one. What p says of residency and of
// its record is written too; it keeps its ids, its scope and its origin. A
// version that is not above that of old is errs.Storage. The caller stages it.
func (tx *WriteTx) AddPageRevision(old, p *Page) error {
	if p.Version <= old.Version {
		return errs.New(errs.Storage, "page %d cannot get version %d, it has version %d", p.ID, p.Version, old.Version)
	}
	p.Record.Tags = p.PageRevision.Tags
	if err := tx.updateRecord(&old.Record, &p.Record); err != nil {
		return err
	}
	st, err := tx.stmt(sqlUpdatePage)
	if err != nil {
		return err
	}
	bindPageState(st, p.state())
	st.bindInt(13, p.Version)
	st.bindInt(14, int64(len(p.Content)))
	st.bindInt(15, p.ID)
	if err := tx.runOnOne(st, "page", p.ID); err != nil {
		return err
	}
	return tx.AddPageVersion(p.ID, &p.PageRevision)
}

// SetPageState writes a page's residency and statistics. An index holds none of
// them, so nothing is staged, and the record's revision stays.
func (tx *WriteTx) SetPageState(id int64, s *PageState) error {
	st, err := tx.stmt(sqlSetPageState)
	if err != nil {
		return err
	}
	bindPageState(st, s)
	st.bindInt(13, id)
	return tx.runOnOne(st, "page", id)
}

// TouchPage adds uses to a page's statistics: hits of them, the last one at a
// tick and a time in UTC microseconds. A page that is gone is left alone.
func (tx *WriteTx) TouchPage(id, hits, tick, at int64) error {
	tx.Change()
	return tx.exec(sqlTouchPage, hits, tick, at, id)
}

// state is the part of a page that SetPageState writes.
func (p *Page) state() *PageState {
	return &PageState{
		Tier: p.Tier, Outline: p.Outline, Seq: p.Seq, Admission: p.Admission, RowVersion: p.RowVersion, PinReason: p.PinReason,
		Hits: p.Hits, Touched: p.Touched, TouchedAt: p.TouchedAt, EvictedTurn: p.EvictedTurn, ProtectedTo: p.ProtectedTo,
		Faults: p.Faults,
	}
}

func bindPageState(st stmt, s *PageState) {
	st.bindInt(1, int64(s.Tier))
	st.bindInt(2, boolInt(s.Outline))
	st.bindInt(3, s.Seq)
	st.bindInt(4, s.Admission)
	st.bindInt(5, s.RowVersion)
	st.bindText(6, s.PinReason)
	st.bindInt(7, s.Hits)
	st.bindInt(8, s.Touched)
	st.bindInt(9, s.TouchedAt)
	st.bindInt(10, s.EvictedTurn)
	st.bindInt(11, s.ProtectedTo)
	st.bindInt(12, s.Faults)
}

// AddPageVersion writes a revision of a page and notes what it links to. It is
// for revisions before the current one, which come with their page, or with
// AddPageRevision. One that is there already is errs.Conflict.
func (tx *WriteTx) AddPageVersion(page int64, r *PageRevision) error {
	st, err := tx.stmt(sqlAddPageVersion)
	if err != nil {
		return err
	}
	st.bindInt(1, page)
	st.bindInt(2, r.Version)
	st.bindInt(3, r.At)
	st.bindFloat(4, r.Importance)
	st.bindText(5, r.Operation)
	st.bindText(6, r.Title)
	st.bindText(7, r.Summary)
	st.bindText(8, r.Source)
	st.bindNull(9)
	if len(r.Tags) > 0 {
		tags, err := json.Marshal(r.Tags)
		if err != nil {
			return errs.Wrap(errs.Storage, err, "the tags of page %d could not be written", page)
		}
		st.bindText(9, string(tags))
	}
	st.bindBlob(10, encodeIDs(r.Links))
	st.bindText(11, r.Content)
	if err := st.run(); err != nil {
		return err
	}
	for _, target := range r.Links {
		if err := tx.exec(sqlAddPageLink, target, page); err != nil {
			return err
		}
	}
	return nil
}

// RemovePage removes a page, as it was read in this operation, for good: its
// record, every revision and its vectors. It is taken out of the links of every
// revision of every page, and the published text is cut off before it. The
// scope's version grows: whoever holds the scope reads it again. Its deletion is
// staged.
func (tx *WriteTx) RemovePage(p *Page) error {
	if err := tx.allowed(&p.Record); err != nil {
		return err
	}
	return tx.removePage(&p.Record, false)
}

// removePage is RemovePage by the header of the page. outside says that whoever
// keeps pages did not ask for it.
func (tx *WriteTx) removePage(r *Record, outside bool) error {
	context, pageID, err := tx.pagePlace(r.ID)
	if err != nil {
		return err
	}
	linking, err := tx.PagesLinking(r.ID)
	if err != nil {
		return err
	}
	for _, page := range linking {
		if err := tx.stripLink(page, r.ID); err != nil {
			return err
		}
	}
	text, ok, err := tx.PublishedText(context)
	if err != nil {
		return err
	}
	if ok {
		if at := render.Find(text, pageID); at >= 0 {
			if err := tx.PutPublished(context, text[:at]); err != nil {
				return err
			}
		}
	}
	if err := tx.exec(sqlTouchContext, context); err != nil {
		return err
	}
	return tx.removePageRecord(r, outside)
}

// pagePlace gives a page's scope and the caller's id.
func (s *session) pagePlace(id int64) (context int64, pageID string, err error) {
	there := false
	err = s.each(sqlPagePlace, []int64{id}, func(st stmt) bool {
		context, pageID, there = st.columnInt(0), st.columnText(1), true
		return false
	})
	if err == nil && !there {
		err = errs.New(errs.NotFound, "page %d is not there", id)
	}
	return context, pageID, err
}

// stripLink takes a page out of the links of every revision of another.
func (tx *WriteTx) stripLink(page, target int64) error {
	links, err := tx.pageLinks(page)
	if err != nil {
		return err
	}
	for _, v := range links {
		rest := slices.DeleteFunc(slices.Clone(v.links), func(id int64) bool { return id == target })
		if len(rest) == len(v.links) {
			continue
		}
		st, err := tx.stmt(sqlSetPageVersionLinks)
		if err != nil {
			return err
		}
		st.bindBlob(1, encodeIDs(rest))
		st.bindInt(2, page)
		st.bindInt(3, v.version)
		if err := st.run(); err != nil {
			return err
		}
	}
	return nil
}

// versionLinks are the links of a revision.
type versionLinks struct {
	version int64
	links   []int64
}

// pageLinks gives the links of those revisions of a page that have any.
func (s *session) pageLinks(page int64) (out []versionLinks, err error) {
	err = s.each(sqlPageVersionLinks, []int64{page}, func(st stmt) bool {
		out = append(out, versionLinks{st.columnInt(0), decodeIDs(st.columnRaw(1))})
		return true
	})
	return out, err
}

// removePageRecord removes a page and what hangs on it, and stages that. What
// its scope says of it is the caller's to see to, but for who links to it.
func (tx *WriteTx) removePageRecord(r *Record, outside bool) error {
	links, err := tx.pageLinks(r.ID)
	if err != nil {
		return err
	}
	for _, v := range links {
		for _, target := range v.links {
			if err := tx.exec(sqlDeletePageLink, target, r.ID); err != nil {
				return err
			}
		}
	}
	if err := tx.exec(sqlDeletePageLinksTo, r.ID); err != nil {
		return err
	}
	if err := tx.removeCopies(r.ID); err != nil {
		return err
	}
	if err := tx.removeRecord(r); err != nil {
		return err
	}
	tx.w.changes[len(tx.w.changes)-1].Outside = outside
	return nil
}

// removeCopies removes the pages that are copies of a record.
func (tx *WriteTx) removeCopies(record int64) error {
	some, err := tx.someCopies()
	if err != nil || !some {
		return err
	}
	copies, err := tx.CopiesOf(record)
	if err != nil {
		return err
	}
	for _, id := range copies {
		r, err := tx.recordHead(id)
		if err != nil {
			return err
		}
		if r == nil {
			continue // it went with another
		}
		if err := tx.removePage(r, true); err != nil {
			return err
		}
	}
	return nil
}

// copiesState is what the writer knows of pages that are copies of records, so
// that deleting a record reads nothing where there are none.
type copiesState uint8

const (
	copiesUnknown copiesState = iota
	copiesNone
	copiesThere // or were: they may be gone, or never have been committed
)

// someCopies says whether any page may be a copy of a record.
func (tx *WriteTx) someCopies() (bool, error) {
	if tx.w.copies == copiesUnknown {
		found, err := tx.ids(sqlAnyCopy)
		if err != nil {
			return false, err
		}
		tx.w.copies = copiesNone
		if len(found) > 0 {
			tx.w.copies = copiesThere
		}
	}
	return tx.w.copies == copiesThere, nil
}

// recordHead gives a record's header without what its ids stand for; nil when
// there is none.
func (s *session) recordHead(id int64) (r *Record, err error) {
	err = s.each(sqlRecordHead, []int64{id}, func(st stmt) bool {
		r = new(readRecord(st))
		return false
	})
	return r, err
}
