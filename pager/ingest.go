package pager

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// The limits of an ingest.
const (
	MinPageBytes     = 32
	MaxPageBytes     = 64 << 10
	DefaultPageBytes = 2048
	// MaxIngestPages bounds the pages of one ingest, which are written in one
	// transaction.
	MaxIngestPages = 100_000
)

// IngestRequest stores a long text as pages of the archive.
type IngestRequest struct {
	Content string   `json:"content"`         // 1 byte to 64 MiB
	Title   string   `json:"title,omitempty"` // of every page
	Tags    []string `json:"tags,omitempty"`  // of every page, at most 64
	// PageBytes bounds a page, in UTF-8 bytes: 32..65536, default 2048.
	PageBytes *int   `json:"page_bytes,omitempty"`
	Source    string `json:"source,omitempty"` // of every page
}

// IngestedPage names a page that an ingest made.
type IngestedPage struct {
	PageID  string `json:"page_id"`
	Version int64  `json:"version"`
	Ordinal int64  `json:"ordinal"` // its place in the text, from 0
	Bytes   int    `json:"bytes"`   // UTF-8 bytes of its content
}

// IngestResult names the pages, in the order of the text.
type IngestResult struct {
	IngestID string         `json:"ingest_id"` // unique in the scope: the id of the first page
	Pages    []IngestedPage `json:"pages"`
	Bytes    int            `json:"bytes"` // of the whole text
	// Redacted is what was taken out of the request, see loci.WithRedaction.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// Ingest cuts a text into pages and stores all of them in the archive, or none.
// The pages one after the other are the text, byte for byte; each but the last
// is cut where its second half has the last end of a paragraph, or else of a
// line, a sentence, a word, or a character.
func (cs *Store) Ingest(ctx context.Context, req IngestRequest) (*IngestResult, error) {
	const op = "ingest"
	redactor := cs.reg.link.Redactor(ctx)
	req.redact(redactor)
	d, err := req.check()
	if err != nil {
		return nil, withOp(op, err)
	}
	prepared, err := cs.prepare(ctx, op, d)
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *IngestResult
	err = cs.mutate(ctx, op, func(c *change) error {
		ids, err := c.freshPageIDs(len(d.pieces))
		if err != nil {
			return err
		}
		out = &IngestResult{IngestID: ids[0], Pages: make([]IngestedPage, len(ids)), Bytes: len(req.Content), Redacted: redactedBy(redactor)}
		pages := make([]*store.Page, len(ids))
		for i, id := range ids {
			pages[i] = d.page(id, out.IngestID, int64(i))
			out.Pages[i] = IngestedPage{PageID: id, Version: 1, Ordinal: int64(i), Bytes: len(d.pieces[i])}
		}
		c.archive(pages, prepared)
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ingestDraft is a request that was checked and cut.
type ingestDraft struct {
	req    *IngestRequest
	tags   []string
	pieces []string
}

// check looks at what needs no scope.
func (r *IngestRequest) check() (*ingestDraft, error) {
	d := &ingestDraft{req: r}
	if r.Content == "" {
		return nil, invalid("content", "must not be empty")
	}
	size, err := validLimit("page_bytes", r.PageBytes, DefaultPageBytes, MinPageBytes, MaxPageBytes)
	if err != nil {
		return nil, err
	}
	for _, t := range []struct {
		field, text string
		limit       int
	}{{"title", r.Title, MaxTitleBytes}, {"source", r.Source, MaxSourceBytes}, {"content", r.Content, MaxIngestBytes}} {
		if err := validText(t.field, t.text, t.limit); err != nil {
			return nil, err
		}
	}
	if d.tags, err = validTags(r.Tags); err != nil {
		return nil, err
	}
	cutPages(r.Content, size, func(piece string) bool {
		d.pieces = append(d.pieces, piece)
		return len(d.pieces) <= MaxIngestPages
	})
	if len(d.pieces) > MaxIngestPages {
		// A page is longer than half of page_bytes.
		enough := 2 * (len(r.Content)/MaxIngestPages + 1)
		return nil, fail(ErrTooLarge, "page_bytes", "of %d cuts this text into more than %d pages: %d is enough", size, MaxIngestPages, enough).
			with("bytes", len(r.Content)).with("limit", MaxIngestPages).with("page_bytes", enough)
	}
	with := len(r.Title) + len(r.Source)
	for _, tag := range d.tags {
		with += len(tag)
	}
	if with *= len(d.pieces); with > MaxIngestBytes {
		return nil, fail(ErrTooLarge, "title", "tags and source would be stored with each of %d pages, %d bytes in all, of which %d are allowed: shorten them, or give larger page_bytes",
			len(d.pieces), with, MaxIngestBytes).with("bytes", with).with("limit", MaxIngestBytes)
	}
	return d, nil
}

// page makes a page of a piece.
func (d *ingestDraft) page(id, ingest string, ordinal int64) *store.Page {
	p := &store.Page{PageID: id}
	p.Thread, p.Position = ingestPrefix+ingest, &ordinal
	p.Title, p.Source, p.Importance, p.Content = d.req.Title, d.req.Source, defaultImportance, d.pieces[ordinal]
	p.PageRevision.Tags = d.tags
	return p
}

// freshPageIDs gives page ids of the store's choice that are free, in one look
// at the truth. The numbers in them never go back, so an id that once began an
// ingest begins no other.
func (c *change) freshPageIDs(n int) ([]string, error) {
	ids := make([]string, 0, n)
	take := func(there func(id string) (bool, error)) error {
		for len(ids) < n {
			id := fmt.Sprintf("p%d", c.state.NextPage)
			c.state.NextPage++
			taken, err := there(id)
			if err != nil {
				return err
			}
			if !taken && c.pages[id] == nil && !c.removed[id] {
				ids = append(ids, id)
			}
		}
		return nil
	}
	if c.scope.stored == nil {
		return ids, take(func(string) (bool, error) { return false, nil })
	}
	err := c.scope.reg.link.Read(c.ctx, func(tx *store.ReadTx) error {
		return take(func(id string) (bool, error) {
			p, err := tx.PageByID(c.scope.stored.ID, id)
			return p != nil, err
		})
	})
	return ids, err
}

// archive adds many pages of fresh page ids to the archive, which were analysed
// for the index before. Nothing of them is rendered, and the ledger tells of none
// of them.
func (c *change) archive(pages []*store.Page, prepared []*index.Prepared) {
	for _, p := range pages {
		c.settleNew(p)
	}
	c.then(func(tx *store.WriteTx) error {
		for i, p := range pages {
			p.Context = c.scope.stored.ID
			if err := tx.AddPage(p); err != nil {
				return err
			}
			if err := c.scope.reg.link.StagePage(tx, p, prepared[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepare analyses the pages of an ingest for the index, on all processors and
// before the scope's turn is taken: it is half of the work.
func (cs *Store) prepare(ctx context.Context, op string, d *ingestDraft) ([]*index.Prepared, error) {
	leave, err := cs.enter(ctx, op, cs.reg.link.MayWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]*index.Prepared, len(d.pieces))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(out)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(out) {
					return
				}
				out[i] = cs.reg.link.PreparePage(d.page("", "", int64(i)))
			}
		})
	}
	workers.Wait()
	return out, ctx.Err()
}
