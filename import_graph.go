package loci

import (
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// The lines of the knowledge graph.
type (
	entityLine struct {
		Kind Kind `json:"kind"`
		Entity
	}
	relationLine struct {
		Kind Kind `json:"kind"`
		Relation
	}
	eventLine struct {
		Kind Kind `json:"kind"`
		Event
	}
)

func parseEntity(in *lineInput) (store.Stored, []importRef, error) {
	line := entityLine{Entity: Entity{EntityType: DefaultEntityType}}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	var d entityDraft
	err = d.fill(nil, &EntityInput{
		Name: line.Name, EntityType: &line.EntityType, Aliases: line.Aliases, Attributes: line.Attributes, Summary: line.Summary,
	}, "")
	if err != nil {
		return nil, nil, err
	}
	e := &store.Entity{Record: r, Type: d.entityType, Name: d.name, NameKey: d.key, Aliases: d.aliases, Summary: d.summary}
	e.Kind = store.KindEntity
	e.Attributes, err = encodeAttributes(d.values)
	return e, nil, err
}

func parseRelation(in *lineInput) (store.Stored, []importRef, error) {
	line := relationLine{Relation: Relation{Confidence: DefaultConfidence}}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	var d relationDraft
	err = d.fill(nil, &RelationInput{
		Subject: EntityRef{ID: line.SubjectID}, Predicate: line.Predicate, Object: EntityRef{ID: line.ObjectID},
		Confidence: &line.Confidence, Reason: line.Reason,
	}, "", nil)
	if err != nil {
		return nil, nil, err
	}
	x := &store.Relation{
		Record: r, Subject: int64(line.SubjectID), Predicate: d.predicate, PredicateKey: d.key, Object: int64(line.ObjectID),
		Confidence: line.Confidence, Reason: d.reason,
	}
	x.Kind = store.KindRelation
	return x, []importRef{
		{field: "subject_id", id: x.Subject, kind: store.KindEntity, move: func(id int64) { x.Subject = id }},
		{field: "object_id", id: x.Object, kind: store.KindEntity, move: func(id int64) { x.Object = id }},
	}, nil
}

func parseEvent(in *lineInput) (store.Stored, []importRef, error) {
	line := eventLine{Event: Event{Confidence: DefaultConfidence}}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	ends := make([]EntityRef, len(line.Participants))
	for i, id := range line.Participants {
		ends[i].ID = id
	}
	var d eventDraft
	err = d.fill(nil, &EventInput{
		Name: line.Name, Summary: line.Summary, Participants: ends, Confidence: &line.Confidence, Reason: line.Reason,
	}, "", nil)
	if err != nil {
		return nil, nil, err
	}
	v := &store.Event{
		Record: r, Name: d.name, NameKey: d.key, Summary: d.summary, Confidence: line.Confidence, Reason: d.reason,
	}
	v.Kind = store.KindEvent
	for _, id := range line.Participants {
		v.Participants = append(v.Participants, int64(id))
	}
	slices.Sort(v.Participants)
	v.Participants = slices.Compact(v.Participants)
	refs := make([]importRef, len(v.Participants))
	for i, id := range v.Participants {
		refs[i] = importRef{field: fmt.Sprintf("participants[%d]", i), id: id, kind: store.KindEntity, move: func(id int64) { v.Participants[i] = id }}
	}
	return v, refs, nil
}

// settleEvent gives an event its identity, and refuses one that is there
// already.
func settleEvent(tx *store.WriteTx, v *store.Event) error {
	v.IdentityHash = eventHash(v.Namespace, v.Scope, v.NameKey, v.Participants)
	same, err := tx.EventsByHash(v.IdentityHash)
	if err != nil {
		return err
	}
	for _, o := range same {
		if o.Namespace == v.Namespace && o.Scope == v.Scope && o.NameKey == v.NameKey && slices.Equal(o.Participants, v.Participants) {
			return errs.New(errs.Conflict, "event %d of this scope has the same name and participants: update that one, or delete one of the two", o.ID)
		}
	}
	return nil
}
