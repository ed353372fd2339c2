package agent

import (
	"context"
	"math"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// MatchRequest asks for relations of a type whose two ends are current.
type MatchRequest struct {
	// From is where they begin, a point of the kind that the request is made to; nil
	// for any.
	From *loci.PointID `json:"from,omitempty"`
	Type string        `json:"rel_type"`
	// To is where they end; nil for any point.
	To *loci.PointID `json:"to,omitempty"`
	// ToKind is the kind of points where they end: fact, episode or procedure. Default
	// is that of From where To is given, else any.
	ToKind loci.Kind `json:"to_kind,omitempty"`
	// Selection is about the far end: the points where the relations end or, where To
	// is given, those where they begin. The time at which what a point says must hold
	// is for both ends.
	Selection
	Limit  *int   `json:"limit,omitempty"`  // 1..10000, default 50
	Cursor string `json:"cursor,omitempty"` // of the page before; "" for the first
}

// Match is a relation that answers a MatchRequest.
type Match struct {
	Edge
	// Content is the far end's text: a fact's content, an episode's description, a
	// procedure's name.
	Content string `json:"content"`
}

// Matches is a page of matches.
type Matches struct {
	Matches []Match `json:"matches"`
	// NextCursor asks for the next page; "" after the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// Match gives the relations of a type between current points, sorted by where they
// begin, then by kind and id of where they end. The answer is exact, however rare
// what is asked for; a page reads on from where the one before ended.
func (s *points) Match(ctx context.Context, req MatchRequest) (*Matches, error) {
	op := s.name("match")
	r := matchRun{s: s, ctx: ctx, req: &req, page: &Matches{Matches: []Match{}}}
	err := r.check()
	if err == nil {
		err = s.m.read(ctx, op, func(tx *store.ReadTx, row *store.AgentMemory) error {
			r.tx, r.row, r.now = tx, row, s.m.link.Clock()
			return r.run()
		})
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return r.page, nil
}

// matchBatch is how many relations are read at a time at most.
const matchBatch = 256

// matchRun answers a MatchRequest.
type matchRun struct {
	s        *points
	ctx      context.Context
	req      *MatchRequest
	selected *selection
	toKind   store.Kind // 0: any
	limit    int
	after    *matchPlace

	tx   *store.ReadTx
	row  *store.AgentMemory
	now  int64
	page *Matches
}

// matchPlace is a place in the order of matches.
type matchPlace struct {
	from   uint64
	toKind store.Kind
	to     uint64
}

func (r *matchRun) check() (err error) {
	if err = checkRelType(r.req.Type); err != nil {
		return err
	}
	otherwise := store.Kind(0)
	if r.req.To != nil {
		otherwise = r.s.kind
	}
	if r.toKind, err = checkKind("to_kind", r.req.ToKind, otherwise); err != nil {
		return err
	}
	if r.selected, err = r.req.Selection.check(); err != nil {
		return err
	}
	if r.limit, err = checkLimit("limit", r.req.Limit, defaultPage); err != nil {
		return err
	}
	r.after, err = parseMatchCursor(r.req.Cursor)
	return err
}

// matchCursor is the cursor of a page that ends with a match.
func matchCursor(m *Match) string {
	return keyCursor(uint64(m.From)) + "/" + string(m.ToKind) + "/" + keyCursor(uint64(m.To))
}

// parseMatchCursor reads what matchCursor gave; nil for "".
func parseMatchCursor(cursor string) (*matchPlace, error) {
	if cursor == "" {
		return nil, nil
	}
	if parts := strings.Split(cursor, "/"); len(parts) == 3 && parts[0] != "" && parts[1] != "" && parts[2] != "" {
		from, errFrom := cursorKey(parts[0])
		kind, errKind := checkKind("cursor", loci.Kind(parts[1]), 0)
		to, errTo := cursorKey(parts[2])
		if errFrom == nil && errKind == nil && errTo == nil {
			return &matchPlace{*from, kind, *to}, nil
		}
	}
	return nil, errs.Invalid("cursor", "is not one that a page gave")
}

// run finds the matches of the page.
func (r *matchRun) run() error {
	switch {
	case r.req.From == nil && r.req.To == nil:
		return r.all()
	case r.req.From == nil:
		return r.into()
	}
	from, err := r.current(r.s.kind, uint64(*r.req.From))
	if err != nil || from == nil {
		return err
	}
	if r.req.To == nil {
		_, err = r.outOf(from)
		return err
	}
	to, err := r.current(r.toKind, uint64(*r.req.To))
	if err != nil || to == nil {
		return err
	}
	e, err := r.tx.PointEdge(from.ID, r.req.Type, to.ID)
	if err != nil || e == nil || r.passed(from.Key, r.toKind, to.Key) {
		return err
	}
	r.take(e, from)
	return nil
}

// current gives a current point of the memory; nil when there is none.
func (r *matchRun) current(kind store.Kind, key uint64) (*store.Point, error) {
	p, err := r.tx.PointByKey(r.row.Place(kind), key)
	if err != nil || p == nil || !r.holds(p) {
		return nil, err
	}
	return p, nil
}

// holds says whether a point is current at the time asked about.
func (r *matchRun) holds(p *store.Point) bool {
	at := selection{validAt: r.selected.validAt}
	return at.covers(p, r.now)
}

// passed says whether a relation stands on an earlier page.
func (r *matchRun) passed(from uint64, toKind store.Kind, to uint64) bool {
	a := r.after
	switch {
	case a == nil || from > a.from:
		return false
	case from < a.from || toKind < a.toKind:
		return true
	}
	return toKind == a.toKind && to <= a.to
}

// take adds a relation to the page if its far end meets the selection; true says
// that the page is full.
func (r *matchRun) take(e *store.PointEdge, far *store.Point) bool {
	if !r.selected.covers(far, r.now) {
		return false
	}
	if n := len(r.page.Matches); n == r.limit { // one more says that there is a next page
		r.page.NextCursor = matchCursor(&r.page.Matches[n-1])
		return true
	}
	content := far.Content
	if far.Kind == store.KindProcedure {
		content = far.Title
	}
	r.page.Matches = append(r.page.Matches, Match{edgeOf(r.row, e), content})
	return false
}

// all goes through the points that relations of the type go out from.
func (r *matchRun) all() error {
	for next := uint64(0); ; next++ {
		if r.after != nil {
			next = max(next, r.after.from)
		}
		from, err := r.tx.EdgeSource(r.row.Place(r.s.kind), r.req.Type, next)
		if err != nil || from == nil {
			return err
		}
		if r.holds(from) {
			if full, err := r.outOf(from); err != nil || full {
				return err
			}
		}
		if next = from.Key; next == math.MaxUint64 {
			return nil
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
}

// outOf goes through the relations that go out from a point; true says that the page
// is full.
func (r *matchRun) outOf(from *store.Point) (full bool, err error) {
	for _, kind := range pointKinds() {
		if r.toKind != 0 && kind != r.toKind || r.passed(from.Key, kind, math.MaxUint64) {
			continue
		}
		var after *uint64
		if r.passed(from.Key, kind, 0) {
			after = &r.after.to
		}
		full, err = r.each(from, store.EdgesOut, kind, after)
		if full || err != nil {
			return full, err
		}
	}
	return false, nil
}

// into goes through the relations that come in to the point that is asked for.
func (r *matchRun) into() error {
	to, err := r.current(r.toKind, uint64(*r.req.To))
	if err != nil || to == nil {
		return err
	}
	var after *uint64
	if r.after != nil {
		after = &r.after.from // all of them end at one point
	}
	_, err = r.each(to, store.EdgesIn, r.s.kind, after)
	return err
}

// each goes through the relations of a point on one side whose far ends are of a
// kind, behind a far end; true says that the page is full.
func (r *matchRun) each(near *store.Point, side store.EdgeSide, kind store.Kind, after *uint64) (full bool, err error) {
	batch := min(matchBatch, r.limit+1)
	for {
		found, err := r.tx.EdgesBy(near.ID, side, r.req.Type, r.row.Place(kind), r.now, after, batch)
		if err != nil {
			return false, err
		}
		for _, e := range found {
			id := e.Target
			after = &e.TargetKey
			if side == store.EdgesIn {
				id, after = e.Source, &e.SourceKey
			}
			far, err := r.tx.Point(id)
			if err != nil {
				return false, err
			}
			if far != nil && r.take(e, far) {
				return true, nil
			}
		}
		if len(found) < batch {
			return false, nil
		}
		if err := r.ctx.Err(); err != nil {
			return false, err
		}
	}
}
