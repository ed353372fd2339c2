package store

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// Page gives a page, or nil when there is none.
func (s *session) Page(id int64) (*Page, error) {
	st, err := s.stmt(sqlPage)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, id)
	return s.onePage(st)
}

// PageByID gives the page of a scope by the caller's id, or nil when there is
// none.
func (s *session) PageByID(context int64, pageID string) (*Page, error) {
	st, err := s.stmt(sqlPageByID)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, context)
	st.bindText(2, pageID)
	return s.onePage(st)
}

func (s *session) onePage(st stmt) (*Page, error) {
	pages, err := s.pages(st)
	if err != nil || len(pages) == 0 {
		return nil, err
	}
	return pages[0], nil
}

// pages gives the pages that a statement finds.
func (s *session) pages(st stmt) ([]*Page, error) {
	defer st.reset()
	var out []*Page
	for {
		found, err := st.step()
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		p, err := readPage(st)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	st.reset()
	for _, p := range out {
		if err := s.completeRecord(&p.Record); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readPage reads the row of pageColumns that st stands on.
func readPage(st stmt) (*Page, error) {
	const at = recordColumnCount
	p := &Page{
		Record: readRecord(st), Context: st.columnInt(at), PageID: st.columnText(at + 1), Tier: PageTier(st.columnInt(at + 2)),
		Outline: st.columnInt(at+3) != 0, Seq: st.columnInt(at + 4), Admission: st.columnInt(at + 5),
		RowVersion: st.columnInt(at + 6), PinReason: st.columnText(at + 7), Hits: st.columnInt(at + 8),
		Touched: st.columnInt(at + 9), TouchedAt: st.columnInt(at + 10), EvictedTurn: st.columnInt(at + 11),
		ProtectedTo: st.columnInt(at + 12), Faults: st.columnInt(at + 13), OriginKind: Kind(st.columnInt(at + 14)),
		OriginID: st.columnInt(at + 15),
	}
	var err error
	p.PageRevision, err = readPageRevision(st, at+16)
	return p, err
}

// readPageRevision reads pageVersionColumns, which begin at a column.
func readPageRevision(st stmt, at int) (PageRevision, error) {
	r := PageRevision{
		Version: st.columnInt(at), At: st.columnInt(at + 1), Importance: st.columnFloat(at + 2), Operation: st.columnText(at + 3),
		Title: st.columnText(at + 4), Summary: st.columnText(at + 5), Source: st.columnText(at + 6), Content: st.columnText(at + 9),
	}
	if raw := st.columnRaw(at + 7); len(raw) > 0 {
		if err := json.Unmarshal(raw, &r.Tags); err != nil {
			return r, errs.New(errs.Storage, "the database is damaged: the tags of a page's revision cannot be read")
		}
	}
	r.Links = decodeIDs(st.columnRaw(at + 8))
	return r, nil
}

// ResidentPages gives the pages of a scope that are in core or working, with
// their content: core first, in the order of their places.
func (s *session) ResidentPages(context int64) ([]*Page, error) {
	st, err := s.stmt(sqlResidentPages)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, context)
	pages, err := s.pages(st)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pages, func(a, b *Page) int {
		return cmp.Or(cmp.Compare(b.Tier, a.Tier), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Admission, b.Admission), cmp.Compare(a.ID, b.ID))
	})
	return pages, nil
}

// PageVersion gives a revision of a page, or nil when there is none.
func (s *session) PageVersion(page, version int64) (*PageRevision, error) {
	st, err := s.stmt(sqlPageVersion)
	if err != nil {
		return nil, err
	}
	st.bindInt(1, page)
	st.bindInt(2, version)
	defer st.reset()
	if found, err := st.step(); err != nil || !found {
		return nil, err
	}
	r, err := readPageRevision(st, 0)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// PageHistory gives what there is of a page's revisions, without their text, by
// version.
func (s *session) PageHistory(page int64) (out []PageVersionInfo, err error) {
	err = s.each(sqlPageHistory, []int64{page}, func(st stmt) bool {
		out = append(out, PageVersionInfo{
			Version: st.columnInt(0), At: st.columnInt(1), Operation: st.columnText(2), Bytes: st.columnInt(3),
		})
		return true
	})
	return out, err
}

// PageHeads calls fn with the pages of a scope, by ascending record id from
// behind after and at most limit of them, or all with 0, until fn gives false.
// fn may keep what it gets; it must neither call PageHeads nor write.
func (s *session) PageHeads(context, after int64, limit int, fn func(*PageHead) bool) error {
	most := int64(limit)
	if limit <= 0 {
		most = math.MaxInt64
	}
	return s.each(sqlPageHeads, []int64{context, after, most}, func(st stmt) bool {
		return fn(&PageHead{
			ID: st.columnInt(0), PageID: st.columnText(1), Version: st.columnInt(2), Tier: PageTier(st.columnInt(3)),
			Outline: st.columnInt(4) != 0, Seq: st.columnInt(5), Admission: st.columnInt(6), Hits: st.columnInt(7),
			Touched: st.columnInt(8), TouchedAt: st.columnInt(9), EvictedTurn: st.columnInt(10), Title: st.columnText(11),
			Importance: st.columnFloat(12), Bytes: st.columnInt(13),
		})
	})
}

// CountPages counts the pages of a scope, and the bytes of their content, by
// PageTier. It looks at each of them.
func (s *session) CountPages(context int64) (pages, bytes [3]int64, err error) {
	err = s.each(sqlCountPages, []int64{context}, func(st stmt) bool {
		if t := st.columnInt(0); t >= 0 && t < int64(len(pages)) {
			pages[t], bytes[t] = st.columnInt(1), st.columnInt(2)
		}
		return true
	})
	return pages, bytes, err
}

// RecentPages gives the ids of the pages of a scope in a tier that were touched
// last, latest first, at most limit. It looks at each page of the scope.
func (s *session) RecentPages(context int64, tier PageTier, limit int) ([]int64, error) {
	return s.ids(sqlRecentPages, context, int64(tier), int64(max(limit, 0)))
}

// CopiesOf gives the ids of the pages that are copies of a record, ascending.
func (s *session) CopiesOf(record int64) ([]int64, error) { return s.ids(sqlCopiesOf, record) }

// PagesLinking gives the ids of the pages that link to a page in any of their
// revisions, ascending.
func (s *session) PagesLinking(target int64) ([]int64, error) { return s.ids(sqlPagesLinking, target) }

// RecordRevision is the revision of the operation that last changed a record of
// any kind; false when there is no such record.
func (s *session) RecordRevision(id int64) (int64, bool, error) {
	found, err := s.ids(sqlRecordRevision, id)
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return found[0], true, nil
}
