package agent

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

const (
	contentKey     = "content"
	reservedPrefix = "_loci_"
)

// draft is a point to be stored, checked and analysed before the transaction.
type draft struct {
	point            store.Point // without what only the transaction knows
	attributes       []index.Attribute
	ttl              *uint64
	expectedRevision *int64
	// confidence and reset are a procedure's.
	confidence *float64
	reset      bool

	vector      []float32
	fingerprint uint64
	state       VectorState
	prepared    *index.Prepared
	// kept says that the point that was there has a vector of the very same text.
	kept bool
}

// vectorState says where the vector comes from of the point that was stored.
func (d *draft) vectorState() VectorState {
	if d.kept {
		return VectorMade
	}
	return d.state
}

// removes says that the draft is only to be checked, and its point removed.
func (d *draft) removes() bool { return d.ttl != nil && *d.ttl == 0 }

// draft checks the common part of an input; field goes before the names of its
// fields.
func (s *points) draft(field string, in *PointInput) (d *draft, err error) {
	d = &draft{ttl: in.TTLSeconds, expectedRevision: in.ExpectedRevision}
	p := &d.point
	p.Key, p.Kind, p.Namespace, p.Scope = uint64(in.ID), s.kind, s.m.namespace, s.m.scope
	if in.Embedding != nil {
		if err := s.m.checkVector(field+"embedding", in.Embedding); err != nil {
			return nil, err
		}
		d.vector, d.fingerprint, d.state = in.Embedding, store.TextOfCaller, VectorGiven
	} else if s.kind == store.KindFact && s.m.dimension == 0 {
		return nil, &errs.Error{Code: errs.InvalidVector, Field: field + "embedding",
			Message: "is missing, and there is no embedder that makes one: give a vector, or register an embedder"}
	} else if s.kind == store.KindFact && !s.m.link.HasEmbedder(s.m.space) {
		return nil, &errs.Error{Code: errs.InvalidVector, Field: field + "embedding", Message: fmt.Sprintf(
			"is missing, and no embedder is registered for the space %q: give %d numbers, or register one", s.m.space, s.m.dimension)}
	}
	if p.Metadata, d.attributes, err = checkMetadata(field+"metadata", in.Metadata); err != nil {
		return nil, err
	}
	if p.Tags, err = valid.Tags(field+"tags", in.Tags, loci.MaxTags, loci.MaxTagBytes); err != nil {
		return nil, err
	}
	if in.Thread != nil {
		if err := valid.Label(field+"thread", *in.Thread, loci.MaxLabelBytes); err != nil {
			return nil, err
		}
		p.Thread, p.Position = *in.Thread, in.Position
	} else if in.Position != nil {
		return nil, errs.Invalid(field+"position", "needs a thread")
	}
	return d, nil
}

// checkText checks the text of a point. Where nothing but the text says what the
// point is, it must say something.
func (d *draft) checkText(field, text string) error {
	if err := valid.Text(field, text, loci.MaxTextBytes); err != nil {
		return err
	}
	if d.vector == nil && strings.TrimSpace(text) == "" {
		return errs.Invalid(field, "must not be blank where no embedding is given")
	}
	return nil
}

// checkVector checks a caller's vector.
func (m *AgentMemory) checkVector(field string, v []float32) error {
	if len(v) == 0 {
		return &errs.Error{Code: errs.InvalidVector, Field: field, Message: "has no numbers"}
	}
	if len(v) != m.dimension && m.dimension != 0 { // 0: there is no memory yet, of OpenLazy
		return &errs.Error{Code: errs.InvalidVector, Field: field,
			Message: fmt.Sprintf("has %d numbers, the memory's vectors have %d", len(v), m.dimension)}
	}
	zero := true
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return &errs.Error{Code: errs.InvalidVector, Field: field, Message: fmt.Sprintf("is not finite at place %d", i)}
		}
		zero = zero && x == 0
	}
	if zero {
		return &errs.Error{Code: errs.InvalidVector, Field: field, Message: "is zero everywhere and so has no direction"}
	}
	return nil
}

// checkMetadata checks metadata and drops what is not the caller's to set.
func checkMetadata(field string, m loci.Metadata) (stored []byte, attributes []index.Attribute, err error) {
	raw := bytes.TrimSpace(m)
	if len(raw) > loci.MaxMetadataBytes {
		return nil, nil, errs.Invalid(field, "is %d bytes long, at most %d are allowed", len(raw), loci.MaxMetadataBytes)
	}
	members, err := meta.Scan(raw)
	if err != nil {
		return nil, nil, errs.Invalid(field, "%s", err)
	}
	kept := make([]meta.Member, 0, len(members))
	for _, m := range members {
		if m.Key != contentKey && !strings.HasPrefix(m.Key, reservedPrefix) {
			kept = append(kept, m)
		}
	}
	if len(kept) < len(members) {
		raw = meta.Join(kept)
	}
	if len(kept) == 0 {
		return nil, nil, nil
	}
	return bytes.Clone(raw), meta.Attributes(kept), nil
}

// attributesOf are the index's attributes of stored metadata.
func attributesOf(metadata []byte) []index.Attribute {
	members, err := meta.Scan(metadata)
	if err != nil || len(members) == 0 {
		return nil // what cannot be read is damage, which the deep check tells of
	}
	return meta.Attributes(members)
}

// checkValidity checks the times between which a fact holds.
func checkValidity(field string, from, to *int64) error {
	if from != nil && to != nil && *to <= *from {
		return errs.Invalid(field+"valid_to_us", "is %d, not after valid_from_us %d", *to, *from)
	}
	return nil
}

// analyse prepares drafts for the index and has made what vectors are missing.
func (s *points) analyse(ctx context.Context, drafts ...*draft) error {
	if err := s.m.link.MayWrite(ctx, "", s.m.namespace, s.m.scope); err != nil {
		return err // before a model is asked
	}
	s.prepare(drafts)
	var missing []*draft
	for _, d := range drafts {
		if d.vector == nil {
			d.state = VectorNone
			if !d.removes() {
				missing = append(missing, d)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if makes, err := s.m.makesVectors(ctx); err != nil || !makes {
		return err
	}
	for _, d := range missing {
		d.state = VectorPending
	}
	return s.embed(ctx, missing)
}

// makesVectors says whether points without a vector get one: the memory's space has
// an embedder, and the namespace's switches let it.
func (m *AgentMemory) makesVectors(ctx context.Context) (makes bool, err error) {
	if !m.link.HasEmbedder(m.space) {
		return false, nil // without a read
	}
	err = m.link.Read(ctx, func(tx *store.ReadTx) (err error) {
		makes, err = m.link.MakesVectors(tx, m.space, m.namespace)
		return err
	})
	return makes, err
}

// prepare analyses the texts of drafts, on every processor where there are many.
func (s *points) prepare(drafts []*draft) {
	workers := min(runtime.GOMAXPROCS(0), (len(drafts)+31)/32)
	if workers < 2 {
		for _, d := range drafts {
			d.prepared = s.m.link.PreparePoint(&d.point, d.attributes)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(drafts)); i = next.Add(1) - 1 {
				d := drafts[i]
				d.prepared = s.m.link.PreparePoint(&d.point, d.attributes)
			}
		})
	}
	all.Wait()
}

// embedAtOnce is how many vectors a write waits for; those of larger batches are
// made in the background.
const embedAtOnce = 64

// embed makes the vectors of drafts. What the embedder cannot do now it does in the
// background later.
func (s *points) embed(ctx context.Context, drafts []*draft) error {
	if len(drafts) > embedAtOnce {
		return nil
	}
	docs := make([]*index.Prepared, len(drafts))
	for i, d := range drafts {
		docs[i] = d.prepared
	}
	vectors, fingerprints, err := s.m.link.EmbedPoints(ctx, s.m.space, docs)
	if err != nil {
		return ctx.Err()
	}
	for i, d := range drafts {
		if vectors[i] == nil {
			d.state = VectorNone
			continue
		}
		d.vector, d.fingerprint, d.state = vectors[i], fingerprints[i], VectorMade
	}
	return nil
}

// expiry is when something expires that lives for so many seconds from now on. What
// no time can say is the last one.
func expiry(now int64, seconds uint64) *int64 {
	const most = math.MaxInt64
	if seconds > most/1_000_000 || int64(seconds)*1_000_000 > most-now {
		return new(int64(most))
	}
	return new(now + int64(seconds)*1_000_000)
}
