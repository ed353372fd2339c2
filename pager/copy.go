package pager

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// maxRecordScopes bounds the scopes of records that a request names.
const maxRecordScopes = 100

// recordScopes checks the scopes whose records a request may bring in; without
// any it is the public one. Another context's scope is refused whatever lies in
// it, so that the answer tells nothing.
func (cs *Store) recordScopes(scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return []string{loci.PublicScope}, nil
	}
	if len(scopes) > maxRecordScopes {
		return nil, invalid("scopes", "has %d entries, at most %d are allowed", len(scopes), maxRecordScopes)
	}
	out := make([]string, 0, len(scopes))
	for i, scope := range scopes {
		field := fmt.Sprintf("scopes[%d]", i)
		switch {
		case scope == "":
			return nil, invalid(field, "must not be empty")
		case len(scope) > loci.MaxScopeBytes:
			return nil, invalid(field, "is %d bytes long, at most %d are allowed", len(scope), loci.MaxScopeBytes)
		case !utf8.ValidString(scope):
			return nil, invalid(field, "is not valid UTF-8")
		case scope != cs.key.scope && isContextScope(scope):
			return nil, invalid(field, "is that of another context: only scopes of records can be named")
		}
		if !slices.Contains(out, scope) {
			out = append(out, scope)
		}
	}
	return out, nil
}

// isContextScope says whether a record scope is the canonical form of a context
// scope.
func isContextScope(scope string) bool {
	var parts []string
	if json.Unmarshal([]byte(scope), &parts) != nil {
		return false
	}
	key, err := Scope(parts).key()
	return err == nil && key.scope == scope
}

// record reads a record of the scope's namespace as a page shows it; nil when
// there is none in the scopes given.
func (s *scope) record(ctx context.Context, kind store.Kind, id int64, scopes []string) (*link.Copy, error) {
	c, err := s.reg.link.CopyOf(ctx, s.key.namespace, kind, id)
	if err != nil || c == nil || !slices.Contains(scopes, c.Scope) {
		return nil, err
	}
	return c, nil
}

// copyID is the page id of a record's copy.
func copyID(kind store.Kind, id int64) string { return fmt.Sprintf("%s:%d", kindName(kind), id) }

// copyRevision is the revision of a page that shows a record. What a page has no
// room for is cut: a title that is too long then begins the content.
func copyRevision(c *link.Copy) store.PageRevision {
	rev := store.PageRevision{
		Version: c.Revision, Title: c.Title, Content: c.Content, Tags: slices.Clone(c.Tags), Importance: defaultImportance, Source: c.Source,
	}
	if len(rev.Title) > MaxTitleBytes {
		rev.Content = rev.Title + "\n" + rev.Content
		rev.Title = cutAt(rev.Title, MaxTitleBytes)
	}
	rev.Tags = rev.Tags[:min(len(rev.Tags), MaxTags)]
	rev.Source = cutAt(rev.Source, MaxSourceBytes)
	return rev
}

// defaultImportance is that of a page whose writer names none.
const defaultImportance = 0.5

// checkCopy says why a record cannot be a page.
func checkCopy(rev *store.PageRevision) *Error {
	if strings.TrimSpace(rev.Content) == "" {
		return invalid("page_id", "names a record without any text")
	}
	if len(rev.Content) > MaxContentBytes {
		return fail(ErrTooLarge, "page_id", "names a record of %d bytes, a page takes %d: read the record itself", len(rev.Content), MaxContentBytes).
			with("bytes", len(rev.Content)).with("limit", MaxContentBytes)
	}
	return nil
}

// admitCopy makes a page of a record. move puts it into the window.
func (c *change) admitCopy(of *link.Copy) *resident {
	r := c.create(&store.Page{PageID: copyID(of.Kind, of.ID), OriginKind: of.Kind, OriginID: of.ID, PageRevision: copyRevision(of)})
	c.stillAt(of)
	return r
}

// refreshCopy gives a copy the revision that its record has.
func (c *change) refreshCopy(r *resident, of *link.Copy) *resident {
	n := c.revise(r, func(rev *store.PageRevision) { *rev = refreshed(rev, of) })
	c.stillAt(of)
	return n
}

// refreshed is a copy's next revision, of which next has all that is not the
// record's, and the least version.
func refreshed(next *store.PageRevision, of *link.Copy) store.PageRevision {
	rev := copyRevision(of)
	rev.At, rev.Operation, rev.Importance, rev.Links = next.At, next.Operation, next.Importance, next.Links
	rev.Version = max(rev.Version, next.Version)
	return rev
}

// stillAt makes the change begin anew should the record be another by the time
// it is written, or be gone.
func (c *change) stillAt(of *link.Copy) {
	c.then(func(tx *store.WriteTx) error {
		revision, ok, err := tx.RecordRevision(of.ID)
		if err == nil && (!ok || revision != of.Revision) {
			err = errMoved
		}
		return err
	})
}

// newer reads the record of a copy when it has another revision than the copy
// and lies in one of the scopes; nil otherwise.
func (s *scope) newer(ctx context.Context, p *store.Page, scopes []string) (*link.Copy, error) {
	if p.OriginID == 0 {
		return nil, nil
	}
	stale := false
	err := s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		revision, ok, err := tx.RecordRevision(p.OriginID)
		stale = ok && revision != p.Version
		return err
	})
	if err != nil || !stale {
		return nil, err
	}
	of, err := s.record(ctx, p.OriginKind, p.OriginID, scopes)
	if err != nil || of == nil || saysNothingNew(p, of) {
		return nil, err
	}
	return of, nil
}

// saysNothingNew says of a copy whose record is at an earlier revision that it
// shows the record as it is. That comes of bringing both into another store,
// which counts revisions anew; the copy is not to be written again and again.
func saysNothingNew(p *store.Page, of *link.Copy) bool {
	next := refreshed(&p.PageRevision, of)
	return of.Revision <= p.Version && sameRevision(&next, &p.PageRevision)
}
