package pager

import (
	"context"
	"strconv"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// ingestPrefix begins the thread of the pages of an ingest; its id follows.
const ingestPrefix = "ingest:"

// reference is what is known of a page, but for the names of its links and
// whether it is stale: complete adds those.
func (s *scope) reference(r *resident) Reference {
	p := r.Page
	ref := Reference{
		PageID: p.PageID, Version: p.Version, Tier: tierNames[p.Tier], Mode: "full", Seq: p.Seq, Title: p.Title,
		Tags: append([]string{}, p.PageRevision.Tags...), Summary: p.Summary, Bytes: len(p.Content), Importance: p.Importance,
		Source: p.Source, PinReason: p.PinReason, Hits: p.Hits, CreatedAtUS: p.Created, UpdatedAtUS: p.Updated, links: p.Links,
	}
	if p.Outline {
		ref.Mode = "index"
	}
	if id, ok := strings.CutPrefix(p.Thread, ingestPrefix); ok {
		ref.IngestID, ref.Ordinal = id, p.Position
	}
	if p.OriginID != 0 {
		ref.Origin = &Origin{Kind: kindName(p.OriginKind), ID: loci.ID(p.OriginID), Revision: p.Version}
	}
	return ref
}

// complete names the links of references and says which copies are stale. It goes
// on when ctx has ended: the answer is often that of a change that is stored.
func (s *scope) complete(ctx context.Context, refs ...*Reference) error {
	some := false
	for _, r := range refs {
		some = some || len(r.links) > 0 || r.Origin != nil
	}
	if !some {
		return nil
	}
	return s.reg.link.Read(context.WithoutCancel(ctx), func(tx *store.ReadTx) error {
		for _, r := range refs {
			r.Links = nil
			for _, id := range r.links {
				p, err := tx.Page(id)
				if err != nil {
					return err
				}
				if p != nil {
					r.Links = append(r.Links, p.PageID)
				}
			}
			if r.Origin == nil {
				continue
			}
			revision, ok, err := tx.RecordRevision(int64(r.Origin.ID))
			if err != nil {
				return err
			}
			r.Origin.Stale = !ok || revision != r.Origin.Revision
		}
		return nil
	})
}

// completeAll is complete for a list.
func (s *scope) completeAll(ctx context.Context, refs []Reference) error {
	pointers := make([]*Reference, len(refs))
	for i := range refs {
		pointers[i] = &refs[i]
	}
	return s.complete(ctx, pointers...)
}

// kinds are the kinds of records that pages may be copies of.
var kinds = map[loci.Kind]store.Kind{
	loci.KindMemory: store.KindMemory, loci.KindEntity: store.KindEntity, loci.KindRelation: store.KindRelation,
	loci.KindEvent: store.KindEvent, loci.KindChunk: store.KindChunk,
}

func kindName(n store.Kind) loci.Kind {
	for name, number := range kinds {
		if number == n {
			return name
		}
	}
	return loci.Kind("kind-" + strconv.Itoa(int(n)))
}

// copyOf takes apart the page id of a copy, "kind:id"; ok is false for any other
// page id.
func copyOf(pageID string) (kind store.Kind, id int64, ok bool) {
	name, number, found := strings.Cut(pageID, ":")
	if !found {
		return 0, 0, false
	}
	kind, known := kinds[loci.Kind(name)]
	id, err := strconv.ParseInt(number, 10, 64)
	if !known || err != nil || id <= 0 || strconv.FormatInt(id, 10) != number {
		return 0, 0, false
	}
	return kind, id, true
}
