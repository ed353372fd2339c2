package loci

import (
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// fresh is the header of a new record.
func (d *recordDraft) fresh(field string, now int64) (r store.Record, err error) {
	if d.expectedRevision != nil {
		return r, &errs.Error{Code: errs.StaleRevision, Field: "expected_revision",
			Message: "is for an existing record, and there is none to compare with"}
	}
	r = d.replacement()
	r.Namespace, r.Scope = d.place()
	r.Created, r.Updated, err = d.times(field, nil, now)
	return r, err
}

// place is where a new record goes.
func (d *recordDraft) place() (namespace, scope string) {
	namespace, scope = d.namespace, d.scope
	if namespace == "" {
		namespace = DefaultNamespace
	}
	if scope == "" {
		scope = PublicScope
	}
	return namespace, scope
}

// mayReplace refuses to write over old, which the caller may read, where it may not
// write or is to put it where it may not.
func (d *recordDraft) mayReplace(old *store.Record) error {
	if d.access == nil {
		return nil
	}
	for _, scope := range []string{old.Scope, d.scope} {
		if scope != "" && !d.access.Writes(old.Namespace, scope) {
			return d.access.refusal("", "scope", old.Namespace, scope, "write")
		}
	}
	return nil
}

// replacement is the part of a header that an update by id replaces.
func (d *recordDraft) replacement() store.Record {
	return store.Record{
		Tags: d.tags, Evidence: d.evidence, Metadata: d.metadata, Thread: valueOr(d.thread, ""), Position: clonePtr(d.position),
	}
}

// over fills in what r, which will stand in the place of old, has from there.
func (d *recordDraft) over(field string, old, r *store.Record, now int64) (err error) {
	if d.expectedRevision != nil && *d.expectedRevision != old.Revision {
		return staleRevision(*d.expectedRevision, old.Revision)
	}
	r.ID, r.Kind, r.Namespace = old.ID, old.Kind, old.Namespace
	if r.Scope = d.scope; r.Scope == "" {
		r.Scope = old.Scope
	}
	r.Created, r.Updated, err = d.times(field, &old.Created, now)
	return err
}

// merged is the header of old with what d brings: new metadata keys win, tags
// and evidence are united. More evidence than a record may have is refused.
func (d *recordDraft) merged(old *store.Record) (store.Record, error) {
	r, err := d.mergedLatest(old, len(old.Evidence)+len(d.evidence))
	if err == nil && len(r.Evidence) > MaxEvidence {
		err = errs.Invalid("evidence", "would have %d entries once merged, at most %d are allowed", len(r.Evidence), MaxEvidence)
	}
	return r, err
}

// mergedLatest is merged, but keeps only the latest pieces of evidence.
func (d *recordDraft) mergedLatest(old *store.Record, evidence int) (r store.Record, err error) {
	r.Thread, r.Position = old.Thread, old.Position
	if d.thread != nil {
		r.Thread, r.Position = *d.thread, clonePtr(d.position)
	}
	metadata, err := Metadata(old.Metadata).merge(d.metadata)
	if err != nil {
		return r, errs.Wrap(errs.Storage, err, "the stored metadata is damaged")
	}
	if len(metadata) > MaxMetadataBytes {
		return r, errs.Invalid("metadata", "would be %d bytes long once merged, at most %d are allowed", len(metadata), MaxMetadataBytes)
	}
	r.Metadata = metadata
	r.Tags = slices.Concat(old.Tags, d.tags)
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	if len(r.Tags) > MaxTags {
		return r, errs.Invalid("tags", "would have %d entries once merged, at most %d are allowed", len(r.Tags), MaxTags)
	}
	r.Evidence = slices.Clone(old.Evidence)
	for _, e := range d.evidence {
		if !slices.ContainsFunc(r.Evidence, func(o store.Evidence) bool { return sameEvidence(o, e) }) {
			r.Evidence = append(r.Evidence, e)
		}
	}
	r.Evidence = r.Evidence[max(0, len(r.Evidence)-evidence):]
	return r, nil
}

func sameEvidence(a, b store.Evidence) bool {
	return a.Source == b.Source && a.SourceRevision == b.SourceRevision && a.Quote == b.Quote &&
		samePtr(a.ChunkID, b.ChunkID) && samePtr(a.Offset, b.Offset) && samePtr(a.Limit, b.Limit) &&
		Metadata(a.Metadata).Equal(b.Metadata)
}

func samePtr[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// settleDocument fills in what only the store knows.
func settleDocument(p *index.Prepared, r *store.Record) {
	d := p.Document
	d.ID, d.Kind = r.ID, index.Kind(r.Kind)
	d.Namespace, d.Scope, d.Thread = r.NamespaceID, r.ScopeID, r.ThreadID
	d.CreatedAt = r.Created
	if r.Position != nil {
		d.Position, d.HasPosition = *r.Position, true
	}
	d.Tags = slices.Clone(r.TagIDs)
	slices.Sort(d.Tags)
}

// headerOf shares nothing with r that a caller could change.
func headerOf(r *store.Record) Header {
	h := Header{
		ID: ID(r.ID), Namespace: r.Namespace, Scope: r.Scope, Tags: slices.Clone(r.Tags), Evidence: make([]Evidence, len(r.Evidence)),
		Metadata: slices.Clone(r.Metadata), CreatedAtUS: r.Created, UpdatedAtUS: r.Updated, Thread: r.Thread, Position: clonePtr(r.Position),
		Revision: r.Revision,
	}
	if h.Tags == nil {
		h.Tags = []string{}
	}
	for i, e := range r.Evidence {
		h.Evidence[i] = Evidence{
			Source: e.Source, SourceRevision: e.SourceRevision, Offset: clonePtr(e.Offset), Limit: clonePtr(e.Limit), Quote: e.Quote,
			Metadata: slices.Clone(e.Metadata),
		}
		if e.ChunkID != nil {
			id := ID(*e.ChunkID)
			h.Evidence[i].ChunkID = &id
		}
	}
	return h
}
