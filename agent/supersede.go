package agent

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// RelSupersedes is the type of the relation from a fact to the one that it
// supersedes.
const RelSupersedes = "supersedes"

// SupersedeRequest says that a fact takes the place of another.
type SupersedeRequest struct {
	Old loci.PointID `json:"old"`
	New loci.PointID `json:"new"`
	// FromUS is when, in UTC microseconds; default now, or when it was said to be
	// before.
	FromUS *int64 `json:"from_us,omitempty"`
}

// Superseded says what became of two facts.
type Superseded struct {
	Old    loci.PointID `json:"old"`
	New    loci.PointID `json:"new"`
	EdgeID loci.PointID `json:"edge_id"` // of the relation from the new one to the old one
	// ValidToUS is until when the old fact holds, and ValidFromUS from when on the new
	// one does, in UTC microseconds.
	ValidToUS   int64 `json:"valid_to_us"`
	ValidFromUS int64 `json:"valid_from_us"`
}

// Supersede ends a live fact at a time and lets another one begin then, which gets a
// relation RelSupersedes to it. A fact that ends earlier anyway keeps its end, and one
// that has a beginning keeps that. Saying the same again changes nothing; a fact that
// another live one superseded and that has its end since is ErrConflict.
func (s *SemanticMemory) Supersede(ctx context.Context, req SupersedeRequest) (*loci.Receipt[Superseded], error) {
	const call = "supersede"
	if req.Old == req.New {
		return nil, errs.WithOp(s.name(call), errs.Invalid("new", "must be another fact than old"))
	}
	out := Superseded{Old: req.Old, New: req.New}
	revision, err := s.change(ctx, call, func(w *writer) error {
		old, err := w.required("old", uint64(req.Old))
		if err != nil {
			return err
		}
		successor, err := w.required("new", uint64(req.New))
		if err != nil {
			return err
		}
		return w.supersede(old, successor, req.FromUS, &out)
	})
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[Superseded]{Value: out, Revision: revision}, nil
}

func (w *writer) supersede(old, successor *store.Point, given *int64, out *Superseded) error {
	said, err := w.tx.PointEdge(successor.ID, RelSupersedes, old.ID)
	if err != nil {
		return err
	}
	from := w.now
	switch {
	case given != nil:
		from = *given
	case said != nil && old.ValidTo != nil:
		from = *old.ValidTo
	}
	if old.ValidTo != nil {
		if err := w.noOtherSuccessor(old, successor); err != nil {
			return err
		}
	}
	if old.ValidFrom != nil && from <= *old.ValidFrom {
		return errs.Invalid("from_us", "is %d, not after the old fact's valid_from_us %d", from, *old.ValidFrom)
	}
	if successor.ValidTo != nil && from >= *successor.ValidTo {
		return errs.Invalid("from_us", "is %d, not before the new fact's valid_to_us %d", from, *successor.ValidTo)
	}
	out.ValidToUS, out.ValidFromUS = min(from, valueOr(old.ValidTo, from)), valueOr(successor.ValidFrom, from)
	if err := w.setValidity(old, old.ValidFrom, &out.ValidToUS); err != nil {
		return err
	}
	if err := w.setValidity(successor, &out.ValidFromUS, successor.ValidTo); err != nil {
		return err
	}
	e, err := w.relate(successor, old, RelSupersedes, nil, triple.hash)
	if err == nil {
		out.EdgeID = loci.PointID(e.Key)
	}
	return err
}

// noOtherSuccessor refuses to supersede a fact that another live one has superseded.
func (w *writer) noOtherSuccessor(old, successor *store.Point) error {
	// Of three there is one other, although a caller may relate a fact to itself.
	found, err := w.tx.EdgesBy(old.ID, store.EdgesIn, RelSupersedes, w.place, w.now, nil, 3)
	if err != nil {
		return err
	}
	for _, e := range found {
		if e.SourceKey != successor.Key && e.SourceKey != old.Key {
			return &errs.Error{Code: errs.Conflict, Field: "old", Message: "is superseded already, by " + w.s.describe(e.SourceKey)}
		}
	}
	return nil
}

// describe names a point in a message.
func (s *points) describe(key uint64) string { return string(s.Kind()) + " " + keyCursor(key) }

// setValidity makes a version of a fact that holds between other times, unless it is
// between these already.
func (w *writer) setValidity(old *store.Point, from, to *int64) error {
	if samePtr(old.ValidFrom, from) && samePtr(old.ValidTo, to) {
		return nil
	}
	p := *old
	p.ValidFrom, p.ValidTo = from, to
	p.Updated = max(p.Updated, w.s.m.link.Now().UnixMicro())
	if err := w.replace(old, &p); err != nil {
		return err
	}
	return w.restage(&p)
}
