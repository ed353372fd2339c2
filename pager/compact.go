package pager

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// CompactRequest replaces a page's content by a shorter one.
type CompactRequest struct {
	PageID  string `json:"page_id"`
	Summary string `json:"summary"` // the new content, shorter in bytes than the old one
	// ExpectedVersion is the version that the summary was made of.
	ExpectedVersion *int64 `json:"expected_version"`
}

// CompactResult names the page that was compacted.
type CompactResult struct {
	Page          Reference   `json:"page"`
	PreviousBytes int         `json:"previous_bytes"` // of the content before, which its version still gives
	SavedBytes    int         `json:"saved_bytes"`
	Evicted       []Reference `json:"evicted"`
	// Redacted is what was taken out of the request, see loci.WithRedaction.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// Compact makes a revision of a page whose content is a summary of it. All else
// of the page stays as it is: its place too, and the row of an outline page. The
// text before is read by its version.
func (cs *Store) Compact(ctx context.Context, req CompactRequest) (*CompactResult, error) {
	const op = "compact"
	redactor := cs.reg.link.Redactor(ctx)
	req.Summary = redactor.Text(req.Summary)
	if err := req.check(); err != nil {
		return nil, withOp(op, err)
	}
	var out *CompactResult
	err := cs.mutate(ctx, op, func(c *change) error {
		out = &CompactResult{Evicted: []Reference{}, Redacted: redactedBy(redactor)}
		r, err := c.page(req.PageID)
		if err != nil {
			return err
		}
		if r.OriginID != 0 {
			return ofCopy()
		}
		if *req.ExpectedVersion != r.Version {
			return fail(ErrVersionConflict, "expected_version", "the page is at version %d: read it, then give that version", r.Version).
				with("current", r.Version)
		}
		out.PreviousBytes = len(r.Content)
		if len(req.Summary) >= len(r.Content) {
			return fail(ErrNotShorter, "summary", "has %d bytes, the content has %d: it must have less", len(req.Summary), len(r.Content)).
				with("bytes", len(req.Summary)).with("current_bytes", len(r.Content))
		}
		out.SavedBytes = out.PreviousBytes - len(req.Summary)
		c.touch(c.revise(r, func(rev *store.PageRevision) { rev.Content = req.Summary }))
		return nil
	}, func(c *change) error {
		out.Page = c.scope.reference(c.pages[req.PageID])
		out.Evicted = append(out.Evicted, c.evicted...)
		return c.scope.complete(ctx, &out.Page)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// check looks at what needs no scope.
func (r *CompactRequest) check() error {
	if err := validPageID("page_id", r.PageID); err != nil {
		return err
	}
	if r.Summary == "" {
		return invalid("summary", "must not be empty")
	}
	if err := validText("summary", r.Summary, MaxContentBytes); err != nil {
		return err
	}
	if r.ExpectedVersion == nil {
		return invalid("expected_version", "must be given: the version that the summary was made of")
	}
	if *r.ExpectedVersion < 1 {
		return invalid("expected_version", "must be 1 or more")
	}
	return nil
}

// ofCopy refuses to change the content of a copy.
func ofCopy() *Error {
	return invalid("page_id", "names a copy of a record: change the record, and page it in again")
}
