package loci

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

var kindNumbers = map[Kind]store.Kind{
	KindMemory: store.KindMemory, KindEntity: store.KindEntity, KindRelation: store.KindRelation,
	KindEvent: store.KindEvent, KindNote: store.KindNote, KindChunk: store.KindChunk, KindPage: store.KindPage,
	KindFact: store.KindFact, KindEpisode: store.KindEpisode, KindProcedure: store.KindProcedure,
}

// number is the kind as the store and the index keep it; 0 when it is unknown.
func (k Kind) number() index.Kind { return index.Kind(kindNumbers[k]) }

// kindOf is the kind with this number.
func kindOf(n store.Kind) Kind {
	if n == store.KindMemory { // of most records, and asked for every hit
		return KindMemory
	}
	for kind, number := range kindNumbers {
		if number == n {
			return kind
		}
	}
	return Kind(fmt.Sprintf("kind-%d", n))
}

// validText checks a text of a record.
func validText(field, s string) error { return valid.Text(field, s, MaxTextBytes) }

// validTags normalises tags, drops blank and repeated ones, and sorts them.
func validTags(field string, tags []string) ([]string, error) {
	return valid.Tags(field, tags, MaxTags, MaxTagBytes)
}

func validEvidence(field string, evidence []Evidence) ([]store.Evidence, error) {
	if len(evidence) == 0 {
		return nil, nil
	}
	if len(evidence) > MaxEvidence {
		return nil, errs.Invalid(field, "has %d entries, at most %d are allowed", len(evidence), MaxEvidence)
	}
	out := make([]store.Evidence, len(evidence))
	for i, e := range evidence {
		at := fmt.Sprintf("%s[%d]", field, i)
		if strings.TrimSpace(e.Source) == "" {
			return nil, errs.Invalid(at+".source", "must not be blank")
		}
		for _, text := range []struct{ name, text string }{
			{".source", e.Source}, {".source_revision", e.SourceRevision}, {".quote", e.Quote},
		} {
			if err := validText(at+text.name, text.text); err != nil {
				return nil, err
			}
		}
		switch {
		case (e.Offset == nil) != (e.Limit == nil):
			return nil, errs.Invalid(at, "offset and limit go together: give both or neither")
		case e.Offset != nil && *e.Offset < 1:
			return nil, errs.Invalid(at+".offset", "counts from 1, not %d", *e.Offset)
		case e.Limit != nil && *e.Limit < 1:
			return nil, errs.Invalid(at+".limit", "must be at least 1, not %d", *e.Limit)
		case e.ChunkID != nil && *e.ChunkID < 1:
			return nil, errs.Invalid(at+".chunk_id", "must be above 0, not %d", *e.ChunkID)
		}
		metadata, _, err := validMetadata(at+".metadata", e.Metadata)
		if err != nil {
			return nil, err
		}
		out[i] = store.Evidence{
			Source: e.Source, SourceRevision: e.SourceRevision, Offset: clonePtr(e.Offset), Limit: clonePtr(e.Limit),
			Quote: e.Quote, Metadata: metadata,
		}
		if e.ChunkID != nil {
			id := int64(*e.ChunkID)
			out[i].ChunkID = &id
		}
	}
	return out, nil
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// recordDraft is the part of a write that every kind shares, checked.
type recordDraft struct {
	id               ID
	namespace, scope string // "" when not given
	tags             []string
	evidence         []store.Evidence
	metadata         Metadata
	attributes       []index.Attribute
	created, updated *int64
	thread           *string
	position         *int64
	expectedRevision *int64
	access           *Access // the caller's
}

// draft checks the input, and refuses a place where access does not allow to write;
// field goes before the names of its fields.
func (in *RecordInput) draft(access *Access, field string) (d recordDraft, err error) {
	d = recordDraft{
		access: access,
		id:     in.ID, created: in.CreatedAtUS, updated: in.UpdatedAtUS, thread: in.Thread, position: in.Position,
		expectedRevision: in.ExpectedRevision,
	}
	if in.ID < 0 {
		return d, errs.Invalid(field+"id", "must not be negative; leave it out to create a record")
	}
	if in.Namespace != nil {
		if err := valid.Label(field+"namespace", *in.Namespace, MaxNamespaceBytes); err != nil {
			return d, err
		}
		d.namespace = *in.Namespace
	}
	if in.Scope != nil {
		if err := valid.Label(field+"scope", *in.Scope, MaxScopeBytes); err != nil {
			return d, err
		}
		d.scope = *in.Scope
	}
	// An update by id that leaves a part of its place to what is stored is looked at
	// when that is known.
	if in.ID == 0 || in.Namespace != nil && in.Scope != nil {
		namespace, scope := d.place()
		if !access.Writes(namespace, scope) {
			return d, access.refusal(field, "scope", namespace, scope, "write")
		}
	}
	if d.tags, err = validTags(field+"tags", in.Tags); err != nil {
		return d, err
	}
	if d.evidence, err = validEvidence(field+"evidence", in.Evidence); err != nil {
		return d, err
	}
	if d.metadata, d.attributes, err = validMetadata(field+"metadata", in.Metadata); err != nil {
		return d, err
	}
	if in.Thread != nil {
		if err := valid.Label(field+"thread", *in.Thread, MaxLabelBytes); err != nil {
			return d, err
		}
	} else if in.Position != nil {
		return d, errs.Invalid(field+"position", "needs a thread")
	}
	return d, nil
}

// times settles a record's times: created is given for an update and nil for a
// new record.
func (d *recordDraft) times(field string, created *int64, now int64) (createdAt, updatedAt int64, err error) {
	switch {
	case created != nil:
		createdAt = *created
	case d.created != nil:
		createdAt = *d.created
	default:
		createdAt = now
	}
	if d.updated == nil {
		return createdAt, max(now, createdAt), nil
	}
	if *d.updated < createdAt {
		return 0, 0, errs.Invalid(field+"updated_at_us", "is %d, before created_at_us %d", *d.updated, createdAt)
	}
	return createdAt, *d.updated, nil
}

// staleRevision is the error of a write that expected another revision.
func staleRevision(expected, found int64) error {
	return &errs.Error{Code: errs.StaleRevision, Field: "expected_revision",
		Message: fmt.Sprintf("expected %d, the record is at %d: read it again", expected, found)}
}
