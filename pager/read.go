package pager

import (
	"context"

	"github.com/loci-memory/loci/internal/store"
)

// ReadRequest asks for the content of a page.
type ReadRequest struct {
	PageID string `json:"page_id"`
	// Version is the revision to read; left out: the current one.
	Version *int64 `json:"version,omitempty"`
}

// ReadResult is a page with its content.
type ReadResult struct {
	// Page is the page as the revision has it. Where it lies, its hits and its
	// reason to be pinned are those of now.
	Page           Reference `json:"page"`
	CurrentVersion int64     `json:"current_version"`
	Content        string    `json:"content"`
}

// Read gives a page's content, of its current revision or an earlier one. The
// window stays as it is; that the page was read is counted.
func (cs *Store) Read(ctx context.Context, req ReadRequest) (*ReadResult, error) {
	const op = "read"
	err := validPageID("page_id", req.PageID)
	if err == nil && req.Version != nil && *req.Version < 1 {
		err = invalid("version", "must be 1 or above, not %d", *req.Version)
	}
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *ReadResult
	err = cs.with(ctx, op, func(s *scope) error {
		r, err := s.find(ctx, req.PageID)
		if err != nil {
			return err
		}
		page := *r.Page
		if req.Version != nil && *req.Version != page.Version {
			rev, err := s.revision(ctx, page.ID, *req.Version)
			if err != nil {
				return err
			}
			page.PageRevision, page.Updated = *rev, rev.At
		}
		out = &ReadResult{Page: s.current(&page), CurrentVersion: r.Version, Content: page.Content}
		if err := s.complete(ctx, &out.Page); err != nil {
			return err
		}
		return s.countUses(ctx, page.ID)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// find gives a page of the scope, or ErrNotFound.
func (s *scope) find(ctx context.Context, pageID string) (*resident, error) {
	if r := s.window.find(pageID); r != nil {
		return r, nil
	}
	r, err := s.readPage(ctx, pageID)
	if err == nil && r == nil {
		err = noPage("page_id")
	}
	return r, err
}

// revision reads a revision of a page, or is ErrNotFound.
func (s *scope) revision(ctx context.Context, page, version int64) (rev *store.PageRevision, err error) {
	err = s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		if rev, err = tx.PageVersion(page, version); err == nil && rev == nil {
			err = fail(ErrNotFound, "version", "the page has no version %d: its history names those that it has", version)
		}
		return err
	})
	return rev, err
}

// current is the reference of a page outside any change, with the uses that are
// not written yet.
func (s *scope) current(p *store.Page) Reference {
	ref := s.reference(&resident{Page: p})
	if t := s.touches[p.ID]; t != nil {
		ref.Hits += t.hits
	}
	return ref
}

// countUses counts a use of each of some pages, by an operation that changes nothing
// else.
func (s *scope) countUses(ctx context.Context, records ...int64) error {
	if len(records) == 0 {
		return nil
	}
	s.state.Tick++
	at := s.reg.link.Now().UnixMicro()
	for _, id := range records {
		s.count(id, s.state.Tick, at)
	}
	if len(s.touches) > maxTouches {
		return s.flush(ctx)
	}
	return nil
}

// HistoryRequest asks for the revisions of a page.
type HistoryRequest struct {
	PageID string `json:"page_id"`
}

// HistoryResult lists the revisions of a page.
type HistoryResult struct {
	PageID   string        `json:"page_id"`
	Versions []PageVersion `json:"versions"` // by ascending version, the current one last
}

// PageVersion is a revision of a page without its text.
type PageVersion struct {
	// Version counts from 1 without gaps; that of a copy of a record is the
	// record's revision.
	Version     int64  `json:"version"`
	CreatedAtUS int64  `json:"created_at_us"`
	Bytes       int64  `json:"bytes"`     // UTF-8 bytes of its content
	Operation   string `json:"operation"` // what made it
}

// History lists the revisions of a page, all of which can still be read.
func (cs *Store) History(ctx context.Context, req HistoryRequest) (*HistoryResult, error) {
	const op = "history"
	if err := validPageID("page_id", req.PageID); err != nil {
		return nil, withOp(op, err)
	}
	var out *HistoryResult
	err := cs.with(ctx, op, func(s *scope) error {
		r, err := s.find(ctx, req.PageID)
		if err != nil {
			return err
		}
		out = &HistoryResult{PageID: r.PageID, Versions: []PageVersion{}}
		versions, err := s.versions(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, v := range versions {
			out.Versions = append(out.Versions, PageVersion{v.Version, v.At, v.Bytes, v.Operation})
		}
		return s.countUses(ctx, r.ID)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// versions reads what there is of a page's revisions, by version.
func (s *scope) versions(ctx context.Context, page int64) (out []store.PageVersionInfo, err error) {
	err = s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		out, err = tx.PageHistory(page)
		return err
	})
	return out, err
}
