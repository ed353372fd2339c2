package agent

import (
	"context"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// changes are an UpdateRequest, checked.
type changes struct {
	updates []byte  // of the metadata
	content *string // nil stays
}

// checkUpdates validates updates. Only facts take a text this way: what an episode
// or a procedure is has fields of its own.
func (s *points) checkUpdates(m loci.Metadata) (*changes, error) {
	if len(m) > loci.MaxMetadataBytes+loci.MaxTextBytes {
		return nil, errs.Invalid("updates", "is %d bytes long, at most %d are allowed", len(m), loci.MaxMetadataBytes)
	}
	members, err := meta.Scan(m)
	if err != nil {
		return nil, errs.Invalid("updates", "%s", err)
	}
	out := &changes{}
	kept := make([]meta.Member, 0, len(members))
	for _, m := range members {
		switch {
		case strings.HasPrefix(m.Key, reservedPrefix):
		case m.Key == contentKey && s.kind == store.KindFact:
			text, ok := stringOf(m.Value)
			if !ok {
				return nil, errs.Invalid("updates.content", "must be a string: it is the fact's text")
			}
			if err := valid.Text("updates.content", text, loci.MaxTextBytes); err != nil {
				return nil, err
			}
			out.content = &text
		case m.Key == contentKey:
		default:
			kept = append(kept, m)
		}
	}
	out.updates = meta.Join(kept)
	return out, nil
}

// UpdateMetadata merges into the metadata of a live point, whose vector, expiry and
// validity stay. A fact's new text has a vector made by the embedder refreshed; one
// that the caller gave stays. What changes nothing makes no version.
func (s *points) UpdateMetadata(ctx context.Context, req UpdateRequest) (*loci.Receipt[Stored], error) {
	const call = "update_metadata"
	op := s.name(call)
	r := s.m.link.Redactor(ctx)
	c, err := s.checkUpdates(r.JSON(req.Updates))
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	made, err := s.embedText(ctx, req.ID, c.content)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	out := Stored{ID: req.ID}
	revision, err := s.change(ctx, call, func(w *writer) error {
		old, err := w.required("id", uint64(req.ID))
		if err != nil {
			return err
		}
		if req.ExpectedRevision != nil {
			if err := expect(*req.ExpectedRevision, old); err != nil {
				return err
			}
		}
		p := *old
		out.Version = old.Version
		if p.Metadata, err = meta.Merge(old.Metadata, c.updates, true); err != nil {
			return errs.Wrap(errs.Storage, err, "the metadata of point %d is damaged", old.ID)
		}
		if len(p.Metadata) > loci.MaxMetadataBytes {
			return errs.Invalid("updates", "would make the metadata %d bytes long, at most %d are allowed", len(p.Metadata), loci.MaxMetadataBytes)
		}
		p.Content = valueOr(c.content, old.Content)
		if meta.Equal(p.Metadata, old.Metadata) && p.Content == old.Content {
			out.Vector, err = w.vectorState(old)
			return err
		}
		p.Updated = max(p.Updated, s.m.link.Now().UnixMicro())
		if err := w.replace(old, &p); err != nil {
			return err
		}
		out.Version = p.Version
		given, err := w.vectorState(old)
		if err != nil {
			return err
		}
		if err := w.restage(&p); err != nil {
			return err
		}
		if made.vector != nil && p.Content == made.text && given != VectorGiven {
			err = w.tx.PutVector(w.space, &p.Record, made.fingerprint, made.vector)
		}
		if err == nil {
			out.Vector, err = w.vectorState(&p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return receiptOf(out, revision, r), nil
}

// madeVector is what an embedder made of a text.
type madeVector struct {
	text        string
	vector      []float32 // nil: none was made
	fingerprint uint64
}

// embedText makes the vector of a fact's new text, before the transaction, where the
// present one was made by the embedder. What the embedder cannot do now it does in
// the background later.
func (s *points) embedText(ctx context.Context, id loci.PointID, text *string) (made madeVector, err error) {
	if text == nil {
		return made, nil
	}
	if makes, err := s.m.makesVectors(ctx); err != nil || !makes {
		return made, err
	}
	p, _, err := s.get(ctx, GetRequest{ID: id})
	if err != nil || p == nil || p.Content == *text {
		return made, err
	}
	p.Content = *text
	vectors, fingerprints, err := s.m.link.EmbedPoints(ctx, s.m.space, []*index.Prepared{s.m.link.PreparePoint(p, nil)})
	if err != nil {
		return made, ctx.Err()
	}
	return madeVector{*text, vectors[0], fingerprints[0]}, nil
}

// vectorState says where the vector of a point comes from that is stored.
func (w *writer) vectorState(p *store.Point) (VectorState, error) {
	text, ok, err := w.tx.VectorText(w.space.ID, p.ID)
	switch {
	case err != nil:
		return "", err
	case ok && text == store.TextOfCaller:
		return VectorGiven, nil
	case ok:
		return VectorMade, nil
	}
	makes, err := w.s.m.link.MakesVectors(w.tx, w.s.m.space, w.s.m.namespace)
	if err != nil {
		return "", err
	}
	if makes {
		return VectorPending, nil
	}
	return VectorNone, nil
}
