package agent

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// EpisodicMemory keeps episodes: what happened, and when.
type EpisodicMemory struct{ points }

// Episodes are episodes in the order that was asked for.
type Episodes = Page[loci.Episode]

// RecentRequest asks for what happened last.
type RecentRequest struct {
	Limit *int `json:"limit,omitempty"` // 1..10000, default 50
	// SinceUS leaves out what happened then, in UTC microseconds, or before; nil
	// leaves out nothing.
	SinceUS *int64 `json:"since_us,omitempty"`
}

// OlderThanRequest asks for what happened before a time.
type OlderThanRequest struct {
	BeforeUS int64 `json:"before_us"`       // UTC microseconds; what happened then is left out
	Limit    *int  `json:"limit,omitempty"` // 1..10000, default 50
}

// BetweenRequest asks for a page of what happened from a time on and before another.
type BetweenRequest struct {
	FromUS int64  `json:"from_us"`          // UTC microseconds; what happened then belongs to it
	ToUS   int64  `json:"to_us"`            // not below FromUS; what happened then is left out
	Limit  *int   `json:"limit,omitempty"`  // 1..10000, default 50
	Cursor string `json:"cursor,omitempty"` // of the page before; "" for the first
}

// draftEpisode checks an episode; field goes before the names of its fields.
func (s *EpisodicMemory) draftEpisode(field string, in *EpisodeInput) (*draft, error) {
	d, err := s.draft(field, &in.PointInput)
	if err != nil {
		return nil, err
	}
	d.point.Content, d.point.Happened = in.Description, in.AtUS
	return d, d.checkText(field+"description", in.Description)
}

// vacate removes the point that holds the position of p in its thread, if that point
// is expired: what is expired holds nothing.
func (w *writer) vacate(p *store.Point) error {
	if p.Thread == "" || p.Position == nil {
		return nil
	}
	held, err := w.tx.PointInThread(w.row.NamespaceID, w.place, p.Kind, p.Thread, *p.Position)
	if err != nil || held == nil || !expired(held, w.now) {
		return err
	}
	return w.tx.RemovePoint(held)
}

// Record records an episode under its id. What is there is replaced, but for its
// relations, and kept in its history. A position that another episode of the thread
// holds is ErrConflict.
func (s *EpisodicMemory) Record(ctx context.Context, in EpisodeInput) (*loci.Receipt[Stored], error) {
	r := s.m.link.Redactor(ctx)
	d, err := s.draftEpisode("", in.redacted(r))
	if err != nil {
		return nil, errs.WithOp(s.name("record"), err)
	}
	return s.putOne(ctx, "record", d, r)
}

// RecordBatch records many episodes in one transaction, all or none. Of those of one
// id the last one counts; all are checked. They are written one after the other: a
// position that another episode gives up later in the batch is still taken.
func (s *EpisodicMemory) RecordBatch(ctx context.Context, batch EpisodeBatch) (*loci.Receipt[BatchResult], error) {
	op := s.name("record_batch")
	if len(batch.Episodes) > MaxBatch {
		return nil, errs.WithOp(op, errs.Invalid("episodes", "has %d entries, at most %d are allowed", len(batch.Episodes), MaxBatch))
	}
	drafts, r := make([]*draft, len(batch.Episodes)), s.m.link.Redactor(ctx)
	for i := range batch.Episodes {
		var err error
		if drafts[i], err = s.draftEpisode(fmt.Sprintf("episodes[%d].", i), batch.Episodes[i].redacted(r)); err != nil {
			return nil, errs.WithOp(op, err)
		}
	}
	return s.putBatch(ctx, "record_batch", drafts, r)
}

// Get reads a live episode; the answer's point is nil when there is none.
func (s *EpisodicMemory) Get(ctx context.Context, req GetRequest) (*Found[loci.Episode], error) {
	p, embedding, err := s.get(ctx, req)
	return found[loci.Episode](&s.points, p, embedding, err)
}

// List reads a page of live episodes by ascending id.
func (s *EpisodicMemory) List(ctx context.Context, req ListRequest) (*Page[loci.Episode], error) {
	return page[loci.Episode](ctx, &s.points, req)
}

// Recent gives the live episodes that happened last, the latest first; of those of
// one time the one with the greatest id first.
func (s *EpisodicMemory) Recent(ctx context.Context, req RecentRequest) (*Episodes, error) {
	const call = "recent"
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	return s.inTime(ctx, call, func(tx *store.ReadTx, place, now int64, _ *Episodes) ([]*store.Point, error) {
		from := int64(math.MinInt64)
		if req.SinceUS != nil {
			if *req.SinceUS == math.MaxInt64 {
				return nil, nil // there is no later time
			}
			from = *req.SinceUS + 1
		}
		return tx.RecentPoints(place, now, from, limit)
	})
}

// OlderThan gives the live episodes that happened before a time, the earliest first;
// of those of one time the one with the least id first.
func (s *EpisodicMemory) OlderThan(ctx context.Context, req OlderThanRequest) (*Episodes, error) {
	const call = "older_than"
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	return s.inTime(ctx, call, func(tx *store.ReadTx, place, now int64, _ *Episodes) ([]*store.Point, error) {
		return tx.PointsBetween(place, now, math.MinInt64, req.BeforeUS, nil, limit)
	})
}

// Between gives a page of the live episodes that happened from a time on and before
// another, in the order of OlderThan.
func (s *EpisodicMemory) Between(ctx context.Context, req BetweenRequest) (*Episodes, error) {
	const call = "between"
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err == nil && req.ToUS < req.FromUS {
		err = errs.Invalid("to_us", "is %d, before from_us %d", req.ToUS, req.FromUS)
	}
	var after *store.PointTime
	if err == nil {
		after, err = cursorTime(req.Cursor)
	}
	if err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	return s.inTime(ctx, call, func(tx *store.ReadTx, place, now int64, out *Episodes) ([]*store.Point, error) {
		// One more than is wanted says whether there is a next page.
		found, err := tx.PointsBetween(place, now, req.FromUS, req.ToUS, after, limit+1)
		if len(found) > limit {
			found = found[:limit]
			out.NextCursor = timeCursor(found[limit-1])
		}
		return found, err
	})
}

// timeCursor and cursorTime turn the time and the id of the last episode of a page
// into a cursor and back.
func timeCursor(p *store.Point) string {
	return strconv.FormatInt(valueOr(p.Happened, p.Created), 10) + ":" + keyCursor(p.Key)
}

func cursorTime(cursor string) (*store.PointTime, error) {
	if cursor == "" {
		return nil, nil
	}
	time, id, _ := strings.Cut(cursor, ":")
	at, err := strconv.ParseInt(time, 10, 64)
	if err != nil || strconv.FormatInt(at, 10) != time || id == "" {
		return nil, errs.Invalid("cursor", "is not one that a page gave")
	}
	key, err := cursorKey(id)
	if err != nil {
		return nil, err
	}
	return &store.PointTime{At: at, Key: *key}, nil
}

// inTime answers with the episodes that fn finds.
func (s *EpisodicMemory) inTime(ctx context.Context, call string,
	fn func(tx *store.ReadTx, place, now int64, out *Episodes) ([]*store.Point, error)) (*Episodes, error) {
	out := &Episodes{Items: []loci.Episode{}}
	err := s.m.read(ctx, s.name(call), func(tx *store.ReadTx, row *store.AgentMemory) error {
		found, err := fn(tx, row.Place(s.kind), s.m.link.Clock(), out)
		if err != nil {
			return err
		}
		for _, p := range found {
			e, err := pointAs[loci.Episode](&s.points, p)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, *e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
