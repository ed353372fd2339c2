package loci

import (
	"maps"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
)

// nameReader gives the names of entities. Both a snapshot and the writer's
// transaction are one.
type nameReader interface {
	EntityName(id int64) (string, error)
}

// entityDocument is what the index learns of a stored entity.
func entityDocument(e *store.Entity) *index.Document {
	attributes := attributesOf(e)
	d := &index.Document{Name: []string{e.Name}, Text: slices.Clone(e.Aliases)}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		d.Text = append(append(d.Text, name), attributes[name]...)
	}
	d.Text = append(d.Text, e.Summary)
	return recordDocument(d, &e.Record)
}

// attributesOf is an entity's attributes. Damaged ones count as none: they
// must not keep the rest of the record from being read.
func attributesOf(e *store.Entity) map[string][]string {
	attributes, err := decodeAttributes(e.Attributes)
	if err != nil {
		return map[string][]string{}
	}
	return attributes
}

// relationDocument is what the index learns of a stored relation.
func relationDocument(names nameReader, r *store.Relation) (*index.Document, error) {
	subject, err := names.EntityName(r.Subject)
	if err != nil {
		return nil, err
	}
	object, err := names.EntityName(r.Object)
	if err != nil {
		return nil, err
	}
	return recordDocument(&index.Document{Text: []string{subject, r.Predicate, object, r.Reason}}, &r.Record), nil
}

// eventDocument is what the index learns of a stored event.
func eventDocument(names nameReader, v *store.Event) (*index.Document, error) {
	d := &index.Document{Text: []string{v.Name, v.Summary}}
	for _, id := range v.Participants {
		name, err := names.EntityName(id)
		if err != nil {
			return nil, err
		}
		d.Text = append(d.Text, name)
	}
	d.Text = append(d.Text, v.Reason)
	return recordDocument(d, &v.Record), nil
}

// recordDocument fills in what every kind's document has of the header.
func recordDocument(d *index.Document, r *store.Record) *index.Document {
	d.Tag = r.Tags
	if members, err := meta.Scan(r.Metadata); err == nil {
		d.Metadata = meta.Attributes(members)
	}
	settleDocument(&index.Prepared{Document: d}, r)
	return d
}

// entityOf is a stored entity as the caller gets it.
func entityOf(e *store.Entity) Entity {
	return Entity{
		Header: headerOf(&e.Record), Name: e.Name, EntityType: e.Type, Aliases: orNone(e.Aliases),
		Attributes: attributesOf(e), Summary: e.Summary,
	}
}

// relationOf is a stored relation as the caller gets it.
func relationOf(r *store.Relation) Relation {
	return Relation{
		Header: headerOf(&r.Record), SubjectID: ID(r.Subject), Predicate: r.Predicate, ObjectID: ID(r.Object),
		Confidence: r.Confidence, Reason: r.Reason,
	}
}

// eventOf is a stored event as the caller gets it.
func eventOf(v *store.Event) Event {
	out := Event{
		Header: headerOf(&v.Record), Name: v.Name, Summary: v.Summary, Participants: make([]ID, len(v.Participants)),
		Confidence: v.Confidence, Reason: v.Reason,
	}
	for i, id := range v.Participants {
		out.Participants[i] = ID(id)
	}
	return out
}

// orNone is s, never nil.
func orNone(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
