package agent

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
)

// writer is a transaction that changes points of a memory.
type writer struct {
	s      *points
	tx     *store.WriteTx
	row    *store.AgentMemory
	place  int64
	space  *store.Space
	now    int64 // the clock of expiry
	policy Policy
}

// writer begins to change points in a transaction.
func (s *points) writer(tx *store.WriteTx, row *store.AgentMemory) (*writer, error) {
	w := &writer{s: s, tx: tx, row: row, place: row.Place(s.kind), now: s.m.link.Clock()}
	var err error
	if w.policy, err = policyOf(row); err != nil {
		return nil, err
	}
	if w.space, err = tx.Space(row.Space); err != nil {
		return nil, err
	}
	if w.space == nil {
		return nil, errs.New(errs.Conflict, "the embedding space %q of the memory was deleted: register it again", row.Space)
	}
	return w, nil
}

// change runs fn as one transaction that changes points.
func (s *points) change(ctx context.Context, call string, fn func(*writer) error) (int64, error) {
	return s.m.write(ctx, s.name(call), func(tx *store.WriteTx, row *store.AgentMemory) error {
		w, err := s.writer(tx, row)
		if err != nil {
			return err
		}
		return fn(w)
	})
}

// expired says whether a point is expired.
func expired(p *store.Point, now int64) bool { return p.Expires != nil && *p.Expires <= now }

// live gives the live point of an id, or nil. One that is expired is removed on the
// way if remove is set, so that something else can take its place.
func (w *writer) live(key uint64, remove bool) (*store.Point, error) {
	p, err := w.tx.PointByKey(w.place, key)
	if err != nil || p == nil || !expired(p, w.now) {
		return p, err
	}
	if remove {
		err = w.tx.RemovePoint(p)
	}
	return nil, err
}

// required is live for an id that must be there.
func (w *writer) required(field string, key uint64) (*store.Point, error) {
	p, err := w.live(key, false)
	if err == nil && p == nil {
		err = w.s.notFound(field, key)
	}
	return p, err
}

func (s *points) notFound(field string, key uint64) error {
	return &errs.Error{Code: errs.NotFound, Field: field, Message: fmt.Sprintf("there is no %s %d", s.Kind(), key)}
}

// put stores a draft. It gives the point, or nil for one that was removed.
func (w *writer) put(d *draft) (*store.Point, error) {
	old, err := w.live(d.point.Key, true)
	if err != nil {
		return nil, err
	}
	if d.expectedRevision != nil {
		if err := expect(*d.expectedRevision, old); err != nil {
			return nil, err
		}
	}
	if d.removes() {
		if old != nil {
			return nil, w.tx.RemovePoint(old)
		}
		return nil, nil
	}
	p := d.point // a draft may be stored again, when its transaction is
	d.kept = false
	p.Recorded, p.Version = w.now, 1
	wall := w.s.m.link.Now().UnixMicro()
	p.Created, p.Updated = wall, wall
	if old != nil {
		p.Created, p.Updated = old.Created, max(wall, old.Updated)
	}
	if p.Kind == store.KindEpisode {
		if p.Happened == nil {
			p.Happened = new(w.now)
		}
		p.Created = *p.Happened
	}
	p.Updated = max(p.Updated, p.Created)
	if d.ttl != nil {
		p.Expires = expiry(w.now, *d.ttl)
		d.prepared.Document.Life.Expires = *p.Expires
	}
	w.learned(d, old, &p)
	if err := w.vacate(&p); err != nil {
		return nil, err
	}
	if old == nil {
		err = w.tx.AddPoint(w.place, &p)
	} else {
		err = w.replace(old, &p)
	}
	if err != nil {
		return nil, w.renamePosition(err, p.Thread)
	}
	if err := w.s.m.link.StagePoint(w.tx, &p, d.prepared); err != nil {
		return nil, err
	}
	if d.vector != nil {
		return &p, w.tx.PutVector(w.space, &p.Record, d.fingerprint, d.vector)
	}
	if old == nil {
		return &p, nil
	}
	// One that was made of another text is gone by now. What the caller gave for the
	// old text says nothing of the new one.
	of, ok, err := w.tx.VectorText(w.space.ID, p.ID)
	switch {
	case err != nil || !ok:
		return &p, err
	case of == store.TextOfCaller:
		return &p, w.tx.DropVector(w.space.ID, &p.Record)
	}
	d.kept = true
	return &p, nil
}

// learned fills in what a procedure knows of itself.
func (w *writer) learned(d *draft, old, p *store.Point) {
	if p.Kind != store.KindProcedure {
		return
	}
	p.Confidence = defaultConfidence
	if old != nil && !d.reset {
		p.Confidence, p.Uses, p.Successes, p.LastUsed = old.Confidence, old.Uses, old.Successes, old.LastUsed
	}
	if d.confidence != nil {
		p.Confidence = *d.confidence
	}
}

// defaultConfidence is that of a procedure that nobody has said anything of.
const defaultConfidence = 0.5

// replace writes p in the place of old, and old into the history.
func (w *writer) replace(old, p *store.Point) error {
	p.ID, p.Version = old.ID, old.Version+1
	p.Recorded = max(w.now, old.Recorded)
	err := w.tx.AddPointVersion(old.ID, &store.PointVersion{
		Version: old.Version, Recorded: old.Recorded, RecordedTo: p.Recorded, ValidFrom: old.ValidFrom, ValidTo: old.ValidTo,
		Title: old.Title, Data: old.Data, Metadata: old.Metadata, Content: old.Content,
	}, w.policy.keepVersions())
	if err != nil {
		return err
	}
	return w.tx.UpdatePoint(old, p)
}

// renamePosition makes the error of a position that is taken speak of points: the
// store names a record.
func (w *writer) renamePosition(err error, thread string) error {
	if errs.CodeOf(err) == errs.Conflict && thread != "" {
		return &errs.Error{Code: errs.Conflict, Field: "position", Message: "is taken in that thread: choose another position"}
	}
	return err
}

// restage hands a point to the index that was changed in this transaction other than
// by put.
func (w *writer) restage(p *store.Point) error {
	return w.s.m.link.StagePoint(w.tx, p, w.s.m.link.PreparePoint(p, attributesOf(p.Metadata)))
}

// expect compares the revision that a caller expects with that of a live point, which
// is nil if there is none.
func expect(revision int64, p *store.Point) error {
	if p == nil {
		return &errs.Error{Code: errs.StaleRevision, Field: "expected_revision", Message: "is for a point that is there, and there is none under this id"}
	}
	if p.Revision != revision {
		return &errs.Error{Code: errs.StaleRevision, Field: "expected_revision",
			Message: fmt.Sprintf("is %d, the point is at %d: read it again", revision, p.Revision)}
	}
	return nil
}

// stored says what became of a draft.
func stored(d *draft, p *store.Point) Stored {
	out := Stored{ID: loci.PointID(d.point.Key)}
	if p != nil {
		out.ID, out.Vector, out.Version = loci.PointID(p.Key), d.vectorState(), p.Version
	}
	return out
}

// receiptOf is that of a write whose secrets r took out.
func receiptOf[T any](value T, revision int64, r *secretscan.Redactor) *loci.Receipt[T] {
	out := &loci.Receipt[T]{Value: value, Revision: revision}
	for _, c := range r.Counts() {
		out.Redacted = append(out.Redacted, loci.Redacted(c))
	}
	return out
}

// ready does what comes before the transaction that stores drafts.
func (s *points) ready(ctx context.Context, drafts ...*draft) error {
	if err := s.analyse(ctx, drafts...); err != nil {
		return err
	}
	if len(drafts) == 0 {
		return nil
	}
	return s.m.ensure(ctx)
}

// putOne stores one draft.
func (s *points) putOne(ctx context.Context, call string, d *draft, r *secretscan.Redactor) (*loci.Receipt[Stored], error) {
	if err := s.ready(ctx, d); err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	var out Stored
	revision, err := s.change(ctx, call, func(w *writer) error {
		p, err := w.put(d)
		out = stored(d, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receiptOf(out, revision, r), nil
}

// putUnique stores a draft under its id, or under a free one where that is taken.
func (s *points) putUnique(ctx context.Context, call string, d *draft, r *secretscan.Redactor) (*loci.Receipt[Stored], error) {
	if d.expectedRevision != nil {
		return nil, errs.WithOp(s.name(call), errs.Invalid("expected_revision", "says nothing here: what is stored already is never replaced"))
	}
	if err := s.ready(ctx, d); err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	wanted := d.point.Key
	var out Stored
	revision, err := s.change(ctx, call, func(w *writer) error {
		d.point.Key = wanted
		if d.removes() { // nothing to store, and nothing that is there is meant
			out = stored(d, nil)
			return nil
		}
		p, err := w.putUnique(d)
		out = stored(d, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receiptOf(out, revision, r), nil
}

func (w *writer) putUnique(d *draft) (*store.Point, error) {
	held, err := w.live(d.point.Key, true)
	if err != nil {
		return nil, err
	}
	if held != nil {
		// An expired point that has the free id is removed when the draft is put.
		if d.point.Key, err = w.tx.FreePointKey(w.place, w.now); err != nil {
			return nil, err
		}
	}
	return w.put(d)
}

// putBatch stores drafts, all or none. Of those of one id the last one counts.
func (s *points) putBatch(ctx context.Context, call string, drafts []*draft, r *secretscan.Redactor) (*loci.Receipt[BatchResult], error) {
	last := make(map[uint64]int, len(drafts))
	for i, d := range drafts {
		last[d.point.Key] = i
	}
	kept := make([]*draft, 0, len(last))
	for i, d := range drafts {
		if last[d.point.Key] == i {
			kept = append(kept, d)
		}
	}
	out := BatchResult{Replaced: len(drafts) - len(kept)}
	if err := s.ready(ctx, kept...); err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	revision, err := s.change(ctx, call, func(w *writer) error {
		out.Stored, out.Removed, out.Made, out.Pending = 0, 0, 0, 0
		for _, d := range kept {
			p, err := w.put(d)
			switch {
			case err != nil:
				return err
			case p == nil:
				out.Removed++
			default:
				out.Stored++
				switch d.vectorState() {
				case VectorMade:
					out.Made++
				case VectorPending:
					out.Pending++
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return receiptOf(out, revision, r), nil
}
