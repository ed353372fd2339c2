package loci

import (
	"context"

	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// SearchPoints implements link.Store.
func (l engineLink) SearchPoints(ctx context.Context, q link.PointQuery) (found []link.FoundPoint, degraded []string, err error) {
	req := SearchRequest{
		Query: q.Text, Kinds: []Kind{kindOf(q.Kind)}, Filter: ReadFilter{Namespace: &q.Namespace, Scopes: []string{q.Scope}, Tags: q.Tags},
		EmbedSpace: q.Space, ValidAtUS: q.ValidAt, NoRerank: q.NoRerank,
	}
	if q.Thread != "" {
		req.Filter.Thread = &q.Thread
	}
	p, err := req.plan(ctx)
	if err != nil {
		return nil, nil, err
	}
	// What follows reaches beyond what a request may ask for: conditions that the
	// caller has checked, and a window without bounds, which does not grow.
	p.filter.where = q.Where
	p.limit, p.candidates, req.CandidateLimit = q.Window, q.Window, &q.Window
	answer, hits, err := l.e.answer(ctx, p, l.e.sinks.trace())
	if err != nil {
		return nil, nil, err
	}
	for i := range hits {
		if point, ok := hits[i].record.(*store.Point); ok {
			found = append(found, link.FoundPoint{Point: point, Score: hits[i].Score})
		}
	}
	for _, code := range answer.res.Diagnostics.Degraded {
		degraded = append(degraded, string(code))
	}
	return found, degraded, nil
}
