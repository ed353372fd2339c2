package loci

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// CopyOf implements link.Store.
func (l engineLink) CopyOf(ctx context.Context, namespace string, kind store.Kind, id int64) (out *link.Copy, err error) {
	err = l.e.read(ctx, func(tx *store.ReadTx) error {
		r, err := tx.RecordOf(kind, id)
		if err != nil || r == nil || r.Head().Namespace != namespace {
			return err
		}
		out, err = copyOf(tx, r)
		return err
	})
	return out, err
}

// copyOf is a record as a page shows it: its name above its text, as the index
// has them, but for chunks, whose text is given as it stands in the note.
func copyOf(names nameReader, r store.Stored) (*link.Copy, error) {
	d, err := documentOf(names, r)
	if err != nil || d == nil {
		return nil, err
	}
	h := r.Head()
	c := &link.Copy{
		Kind: h.Kind, ID: h.ID, Scope: h.Scope, Revision: h.Revision, Title: strings.Join(d.Name, ", "), Tags: slices.Clone(h.Tags),
		Source: string(kindOf(h.Kind)), Created: h.Created, Updated: h.Updated,
	}
	pieces := d.Text
	if chunk, ok := r.(*store.Chunk); ok {
		c.Title, c.Source, pieces = noteTitle(chunk.NotePath), chunkSource(chunk), []string{chunk.Content}
	}
	kept := make([]string, 0, len(pieces))
	for _, p := range pieces {
		if p = strings.TrimSpace(p); p != "" && p != c.Title {
			kept = append(kept, p)
		}
	}
	c.Content = strings.Join(kept, "\n")
	if c.Content == "" {
		c.Content = c.Title
	}
	return c, nil
}

// chunkSource names the lines of a note that a chunk holds, such as
// "plans/week.md:12-30".
func chunkSource(c *store.Chunk) string {
	return fmt.Sprintf("%s:%d-%d", c.NotePath, c.Offset, c.Offset+max(c.Limit, 1)-1)
}

// Similar implements link.Store. Vectors are those that the background made of
// the pages, so two texts are compared in the same way round; a search would
// compare a question with a text.
func (l engineLink) Similar(ctx context.Context, p *store.Page, limit int) (found []link.Scored, ok bool, err error) {
	plan, err := (&SearchRequest{Query: "similar", Kinds: []Kind{KindPage}, NoText: true,
		Filter: ReadFilter{Namespace: &p.Namespace, Scopes: []string{p.Scope}}}).plan()
	if err != nil {
		return nil, false, err
	}
	err = l.e.readPair(ctx, func(tx *store.ReadTx, view index.View) error {
		space, err := l.e.searchSpace(tx, p.Namespace, "")
		if err != nil || space == nil || view == nil {
			return err
		}
		on, err := l.e.switchesOf(tx, p.Namespace)
		if err != nil || !on.takes(TierPages) {
			return err
		}
		values, has, err := tx.UnitVector(space.ID, p.ID)
		if err != nil || !has {
			return err
		}
		f, some, err := plan.indexFilter(tx)
		if err != nil || !some {
			return err
		}
		near, err := view.Nearest(index.VectorQuery{Space: space.ID, Values: values, Limit: limit + 1, Exact: true}, f)
		if err != nil {
			return err
		}
		ok = true
		for _, h := range near.Hits {
			if h.ID == p.ID || len(found) == limit {
				continue
			}
			// The index scans a coarser form; what is compared with a threshold is the
			// cosine itself.
			other, has, err := tx.UnitVector(space.ID, h.ID)
			if err != nil {
				return err
			}
			if has {
				found = append(found, link.Scored{ID: h.ID, Score: dotProduct(values, other)})
			}
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b link.Scored) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return int(a.ID - b.ID)
	})
	return found, ok, err
}

func dotProduct(a, b []float32) float64 {
	var sum float64
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
