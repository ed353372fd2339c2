package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/valid"
)

// textHit is a point that answers a query by text.
type textHit struct {
	point any // a *loci.Fact, a *loci.Episode or a *loci.Procedure
	key   uint64
	score float64
}

// QueryText gives the current facts that answer a text best, by its words and, where
// an embedder turns it into a vector, by what they mean. Pages at successive offsets
// are disjoint as long as nothing is written.
func (s *SemanticMemory) QueryText(ctx context.Context, req TextRequest) (*Hits, error) {
	found, degraded, err := s.queryText(ctx, "query_text", &req, 0)
	if err != nil {
		return nil, err
	}
	out := &Hits{Hits: []Hit{}, Degraded: degraded}
	for _, h := range found {
		if f, ok := h.point.(*loci.Fact); ok {
			out.Hits = append(out.Hits, Hit{ID: f.ID, Score: h.score, Content: f.Content})
		}
	}
	return out, nil
}

// queryText answers a query by text. least is the least confidence of a procedure;
// 0 takes any.
func (s *points) queryText(ctx context.Context, call string, req *TextRequest, least float64) (hits []*textHit, degraded []loci.Degrade, err error) {
	op := s.name(call)
	q, err := s.checkText(req, least)
	if err != nil {
		return nil, nil, errs.WithOp(op, err)
	}
	leave, err := s.m.enter(ctx, op)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	if err := q.run(ctx); err != nil {
		return nil, nil, errs.WithOp(op, err)
	}
	hits = q.hits[min(q.skip, len(q.hits)):]
	return hits[:min(q.k, len(hits))], q.degraded, nil
}

// textRun is a query by text.
type textRun struct {
	s        *points
	query    link.PointQuery
	selected *selection
	k, skip  int

	hits     []*textHit
	seen     map[int64]bool
	degraded []loci.Degrade
}

func (s *points) checkText(req *TextRequest, least float64) (q *textRun, err error) {
	if strings.TrimSpace(req.Text) == "" {
		return nil, errs.Invalid("text", "must not be blank")
	}
	if err := valid.Text("text", req.Text, loci.MaxQueryBytes); err != nil {
		return nil, err
	}
	q = &textRun{s: s, skip: req.Offset, seen: map[int64]bool{}}
	if q.k, err = checkLimit("k", req.K, defaultK); err != nil {
		return nil, err
	}
	if err := checkOffset(req.Offset); err != nil {
		return nil, err
	}
	if q.selected, err = req.Selection.check(); err != nil {
		return nil, err
	}
	q.selected.least = least
	q.query = link.PointQuery{
		Namespace: s.m.namespace, Scope: s.m.scope, Kind: s.kind, Text: req.Text,
		Where: q.selected.where, Tags: q.selected.tags, Thread: q.selected.thread, ValidAt: q.selected.validAt,
	}
	if s.m.link.HasEmbedder(s.m.space) {
		q.query.Space = s.m.space
	}
	return q, nil
}

const (
	// firstWindow is how many candidates are looked at first, windowGrowth by how much
	// more when these are not enough.
	firstWindow  = 100
	windowGrowth = 10
)

// run finds the hits up to the last one that is asked for.
//
// What scores a point gets depends on how many candidates were looked at. So that the
// order of hits does not depend on what page of them is asked for, it is that of the
// first window, and behind it what a wider one has besides, and so on. A point that
// the index lets pass may still not meet the selection; then too a wider window has
// to do.
func (q *textRun) run(ctx context.Context) error {
	for q.query.Window = firstWindow; ; q.query.Window *= windowGrowth {
		found, degraded, err := q.s.m.link.SearchPoints(ctx, q.query)
		if err != nil {
			return err
		}
		if q.degraded == nil {
			for _, code := range degraded {
				q.degraded = append(q.degraded, loci.Degrade(code))
			}
		}
		q.take(found)
		if len(found) < q.query.Window || len(q.hits)-q.k >= q.skip {
			return nil
		}
		// A reranker has had its say on the best.
		q.query.NoRerank = true
	}
}

// take takes the hits of a window in that no narrower one had. They stand behind.
func (q *textRun) take(found []link.FoundPoint) {
	slices.SortStableFunc(found, func(a, b link.FoundPoint) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Point.Key, b.Point.Key))
	})
	for _, f := range found {
		if q.seen[f.Point.ID] {
			continue
		}
		q.seen[f.Point.ID] = true
		if !q.selected.meets(f.Point) {
			continue
		}
		if n := len(q.hits); n > 0 {
			f.Score = min(f.Score, q.hits[n-1].score)
		}
		q.hits = append(q.hits, &textHit{q.s.m.link.Point(f.Point), f.Point.Key, f.Score})
	}
}
