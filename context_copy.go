package loci

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
		if err != nil || r == nil || r.Head().Namespace != namespace || !AccessFrom(ctx).Reads(namespace, r.Head().Scope) {
			return err
		}
		if hidden, err := l.e.hiddenPoint(tx, r); err != nil || hidden {
			return err
		}
		out, err = copyOf(seenNames{tx, AccessFrom(ctx)}, r)
		return err
	})
	return out, err
}

// seenNames are the names of those entities that access may read. A relation or an
// event may stand on others: those go by their ids.
type seenNames struct {
	*store.ReadTx
	access *Access
}

// EntityName implements nameReader.
func (n seenNames) EntityName(id int64) (string, error) {
	if ok, err := readable(n.ReadTx, n.access, id); err != nil || !ok {
		return fmt.Sprintf("entity %d", id), err
	}
	return n.ReadTx.EntityName(id)
}

// copyOf is a record as a page shows it; nil for a kind that pages do not show.
func copyOf(names nameReader, r store.Stored) (*link.Copy, error) {
	h := r.Head()
	c := &link.Copy{
		Kind: h.Kind, ID: h.ID, Scope: h.Scope, Revision: h.Revision, Tags: slices.Clone(h.Tags), Source: string(kindOf(h.Kind)),
		Created: h.Created, Updated: h.Updated,
	}
	var lines []string
	switch r := r.(type) {
	case *store.Memory:
		lines = []string{r.Judgment, r.Reasoning}
	case *store.Entity:
		c.Title, lines = r.Name, entityLines(r)
	case *store.Relation:
		ends, err := entityNames(names, r.Subject, r.Object)
		if err != nil {
			return nil, err
		}
		lines = []string{ends[0] + " " + r.Predicate + " " + ends[1], r.Reason}
	case *store.Event:
		participants, err := entityNames(names, r.Participants...)
		if err != nil {
			return nil, err
		}
		c.Title, lines = r.Name, []string{r.Summary, strings.Join(participants, ", "), r.Reason}
	case *store.Chunk:
		c.Title, c.Source, lines = noteTitle(r.NotePath), chunkSource(r), []string{r.Content}
	case *store.Point:
		c.Title, lines = r.Title, []string{r.Content}
	default:
		return nil, nil
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
	c.Content = cmp.Or(strings.Join(lines, "\n"), c.Title)
	return c, nil
}

// entityLines are an entity's summary, its other names, and its attributes, each
// in a line.
func entityLines(e *store.Entity) []string {
	lines := []string{e.Summary, strings.Join(e.Aliases, ", ")}
	attributes := attributesOf(e)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		lines = append(lines, name+": "+strings.Join(attributes[name], ", "))
	}
	return lines
}

func entityNames(names nameReader, ids ...int64) (out []string, err error) {
	for _, id := range ids {
		name, err := names.EntityName(id)
		if err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
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
		Filter: ReadFilter{Namespace: &p.Namespace, Scopes: []string{p.Scope}}}).plan(ctx)
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
		f, some, err := plan.indexFilter(tx, l.e.lifeNow())
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
