package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// expectation is what a file must be to replace points of a memory.
type expectation struct {
	dimension int // of the memory; 0 where it is not there yet and nothing says
	kinds     []store.Kind
	// place is of a snapshot, which must be of this very memory; nil for a file that
	// may come from anywhere.
	place *[2]string
}

// header checks what a file says of itself.
func (e *expectation) header(h *agentfile.Header) error {
	if !slices.EqualFunc(h.Kinds, e.kinds, func(name string, k store.Kind) bool { return name == kindName(k) }) {
		want := make([]string, len(e.kinds))
		for i, k := range e.kinds {
			want[i] = kindName(k)
		}
		return errs.New(errs.Validation, "the file holds points of the kinds %v and not of %v", h.Kinds, want)
	}
	if e.dimension != 0 && h.Dimension != e.dimension {
		return &errs.Error{Code: errs.InvalidVector, Field: "dimension",
			Message: fmt.Sprintf("is %d in the file, the memory's vectors have %d numbers", h.Dimension, e.dimension)}
	}
	if h.Dimension < 1 {
		return errs.New(errs.Validation, "the file says of no dimension what its vectors have")
	}
	if e.place == nil {
		if len(h.Settings) > 0 {
			return errs.New(errs.Validation, "the file holds settings, which points of one kind do not have")
		}
		return nil
	}
	if h.Namespace != e.place[0] || h.Scope != e.place[1] {
		return errs.New(errs.Validation, "the snapshot is of another memory")
	}
	policy, err := policyOf(&store.AgentMemory{Settings: h.Settings})
	if err == nil {
		err = policy.check()
	}
	if err != nil {
		return errs.New(errs.Validation, "the policy in the snapshot cannot be used: %s", err)
	}
	return nil
}

// inspect reads a whole file and checks all that can be wrong with it by itself: the
// format, and that the store would have taken every record of it.
func (e *expectation) inspect(ctx context.Context, r io.Reader) (*agentfile.Header, *agentfile.Summary, error) {
	in, err := agentfile.NewReader(&contextReader{ctx, r})
	if err != nil {
		return nil, nil, err
	}
	if err := e.header(in.Header()); err != nil {
		return in.Header(), nil, err
	}
	var chain versionChain
	var ids []uint64 // of relations
	for {
		record, err := in.Next()
		switch record := record.(type) {
		case *agentfile.Point:
			_, _, err = checkPoint(record)
			chain.point(record)
		case *agentfile.PointVersion:
			if err = checkVersion(record); err == nil {
				err = chain.version(record)
			}
		case *agentfile.Edge:
			err = checkEdge(record)
			ids = append(ids, record.ID)
		}
		if errors.Is(err, io.EOF) {
			sum := in.Summary()
			return in.Header(), &sum, checkEdgeIDs(ids)
		}
		if err != nil {
			return in.Header(), nil, err
		}
	}
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// wrongRecord is the error about a record of a file that the store would not have
// written.
func wrongRecord(kind string, key uint64, err error) error {
	if err == nil {
		return nil
	}
	return errs.New(errs.Validation, "%s %d of the file: %s", kind, key, reasonOf(err))
}

// reasonOf is an error's text without its code.
func reasonOf(err error) string {
	if e, ok := err.(*errs.Error); ok && e.Err == nil {
		return strings.TrimSpace(e.Field + " " + e.Message)
	}
	return err.Error()
}

// checkPoint checks a point of a file and makes what the store keeps of it, and its
// attributes for the index.
func checkPoint(p *agentfile.Point) (*store.Point, []index.Attribute, error) {
	attributes, err := checkStored(p)
	if err != nil {
		return nil, nil, wrongRecord(p.Kind, p.Key, err)
	}
	return &store.Point{
		Record: store.Record{
			Kind: kindNamed(p.Kind), Thread: p.Thread, Position: p.Position, Created: p.Created, Updated: p.Updated,
			Tags: p.Tags, Metadata: p.Metadata,
		},
		Key: p.Key, Version: p.Version, Recorded: p.Recorded, Expires: p.ExpiresAt, ValidFrom: p.ValidFrom, ValidTo: p.ValidTo,
		Happened: p.HappenedAt, Confidence: p.Confidence, Uses: p.Uses, Successes: p.Successes, LastUsed: p.LastUsed,
		Title: p.Title, Data: p.Data, Content: p.Content,
	}, attributes, nil
}

// checkStored checks that the store could have written a point.
func checkStored(p *agentfile.Point) ([]index.Attribute, error) {
	if err := checkWords(p.Kind, p.Title, p.Content, p.Data); err != nil {
		return nil, err
	}
	attributes, err := checkStoredMetadata(p.Metadata)
	if err != nil {
		return nil, err
	}
	tags, err := valid.Tags("tags", p.Tags, loci.MaxTags, loci.MaxTagBytes)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(tags, p.Tags) {
		return nil, errs.Invalid("tags", "are not in the form that they are stored in")
	}
	if p.Thread != "" {
		if err := valid.Label("thread", p.Thread, loci.MaxLabelBytes); err != nil {
			return nil, err
		}
	} else if p.Position != nil {
		return nil, errs.Invalid("position", "needs a thread")
	}
	if err := checkValidity("", p.ValidFrom, p.ValidTo); err != nil {
		return nil, err
	}
	switch kind := kindNamed(p.Kind); {
	case len(p.Evidence) > 0:
		return nil, errs.Invalid("evidence", "is nothing that points have")
	case p.ExpiresAt != nil && *p.ExpiresAt < 0:
		return nil, errs.Invalid("expires_at_us", "is before there was time")
	case kind != store.KindFact && (p.ValidFrom != nil || p.ValidTo != nil):
		return nil, errs.Invalid("valid_from_us", "is nothing that only facts have")
	case kind == store.KindEpisode && (p.HappenedAt == nil || *p.HappenedAt != p.Created):
		return nil, errs.Invalid("at_us", "is missing, or another time than that of creation")
	case kind != store.KindEpisode && p.HappenedAt != nil:
		return nil, errs.Invalid("at_us", "is something that only episodes have")
	case kind != store.KindProcedure && (p.Uses != 0 || p.LastUsed != nil || p.Confidence != 0):
		return nil, errs.Invalid("confidence", "is something that only procedures have")
	}
	return attributes, nil
}

// checkWords checks what a point, or a version of one, is about.
func checkWords(kind, title, content string, data json.RawMessage) error {
	if err := valid.Text("content", content, loci.MaxTextBytes); err != nil {
		return err
	}
	if kindNamed(kind) != store.KindProcedure {
		if title != "" || len(data) > 0 {
			return errs.Invalid("name", "is something that only procedures have")
		}
		return nil
	}
	if err := valid.Label("name", title, loci.MaxNameBytes); err != nil {
		return err
	}
	var steps procedureData
	if err := json.Unmarshal(data, &steps); err != nil || len(steps.Steps) < 1 || len(steps.Steps) > MaxSteps {
		return errs.Invalid("steps", "cannot be read, or are not 1 to %d", MaxSteps)
	}
	return nil
}

// checkStoredMetadata checks metadata as it was stored, which is without what is not
// the caller's to set.
func checkStoredMetadata(m json.RawMessage) ([]index.Attribute, error) {
	if len(m) > loci.MaxMetadataBytes {
		return nil, errs.Invalid("metadata", "is %d bytes long, at most %d are allowed", len(m), loci.MaxMetadataBytes)
	}
	if len(m) == 0 {
		return nil, nil
	}
	kept, attributes, err := checkMetadata("metadata", loci.Metadata(m))
	if err == nil && !slices.Equal(kept, []byte(m)) {
		err = errs.Invalid("metadata", "has a key that is not for callers")
	}
	return attributes, err
}

// checkVersion checks an earlier version of a point.
func checkVersion(v *agentfile.PointVersion) error {
	err := checkWords(v.Kind, v.Title, v.Content, v.Data)
	if err == nil {
		_, err = checkStoredMetadata(v.Metadata)
	}
	if err == nil {
		err = checkValidity("", v.ValidFrom, v.ValidTo)
	}
	if err == nil && v.RecordedTo < v.RecordedAt {
		err = errs.Invalid("recorded_at_us", "is later than when the next version was recorded")
	}
	return wrongRecord(v.Kind, v.Key, err)
}

// checkEdge checks a relation.
func checkEdge(e *agentfile.Edge) error {
	err := checkRelType(e.Type)
	if err == nil {
		err = checkProperties(loci.Metadata(e.Properties))
	}
	return wrongRecord("relation of "+e.FromKind, e.From, err)
}

// checkEdgeIDs checks that relations have ids, and different ones.
func checkEdgeIDs(ids []uint64) error {
	slices.Sort(ids)
	if len(ids) > 0 && ids[0] == 0 {
		return errs.New(errs.Validation, "a relation of the file has no id")
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return errs.New(errs.Validation, "two relations of the file have the id %d", ids[i])
		}
	}
	return nil
}

// versionChain checks that versions follow each other and their point, which stands
// before all of them in a file: what it keeps of a point is two numbers.
type versionChain struct {
	points [3][]pointMark // by ascending key
	last   *agentfile.PointVersion
}

type pointMark struct {
	key      uint64
	version  int64
	recorded int64
}

func (c *versionChain) point(p *agentfile.Point) {
	if p.Version > 1 { // others have no versions before them
		k := kindNamed(p.Kind) - store.KindFact
		c.points[k] = append(c.points[k], pointMark{p.Key, p.Version, p.Recorded})
	}
}

func (c *versionChain) version(v *agentfile.PointVersion) error {
	marks := c.points[kindNamed(v.Kind)-store.KindFact]
	i, ok := slices.BinarySearchFunc(marks, v.Key, func(m pointMark, key uint64) int { return cmp.Compare(m.key, key) })
	var err error
	switch last := c.last; {
	case !ok || v.Version >= marks[i].version:
		err = errs.Invalid("version", "is %d, not below the point's own", v.Version)
	case v.RecordedTo > marks[i].recorded:
		err = errs.Invalid("recorded_at_us", "is before the version before it was given up")
	case last != nil && last.Kind == v.Kind && last.Key == v.Key && v.RecordedAt < last.RecordedTo:
		err = errs.Invalid("recorded_at_us", "is before the version before it was given up")
	}
	c.last = v
	return wrongRecord(v.Kind, v.Key, err)
}
