package loci

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// ApplyBatch writes entities, then relations, then events, all of them or none.
//
// An entity with an id is replaced. One without is new, unless it is to match
// by name: then it is merged with the entity of its scope, type and normalised
// name, which keeps its spelling, gains aliases, attributes, tags, evidence and
// metadata, and gets a summary that is given. A relation without an id whose
// ends and predicate stand in its scope, and an event whose name and
// participants do, are merged likewise: confidence and texts are replaced when
// given. So the same batch applied twice adds nothing. What is merged again and
// again keeps its latest MaxEvidence pieces of evidence.
//
// What relations and events name must lie in their namespace, and in their own
// scope or in PublicScope: otherwise the whole batch is ErrNotFound. The scope
// of an entity that is referred to cannot change: ErrConflict.
func (s *GraphStore) ApplyBatch(ctx context.Context, batch GraphBatch) (*Receipt[GraphBatchResult], error) {
	const op = "graph.apply_batch"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	redactor := s.eng.redactor(ctx)
	batch = batch.redacted(redactor)
	draft, err := batch.draft(AccessFrom(ctx))
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	w := &graphWriter{eng: s.eng, access: AccessFrom(ctx), now: s.eng.clock().UnixMicro()}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error { return w.apply(tx, draft) })
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	result, err := w.result()
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[GraphBatchResult]{Value: *result, Revision: revision, Redacted: redactedBy(redactor)}, nil
}

// graphWriter writes one batch.
type graphWriter struct {
	eng    *engine
	access *Access
	now    int64
	tx     *store.WriteTx

	refs    map[string]int64
	places  map[int64]place
	touched map[int64]store.Stored // what was written, in its last state
	order   []int64                // of touched
	renamed []int64

	entities, relations, events []int64 // what the batch's inputs became
}

// place is where an entity lies; the zero place is nowhere.
type place struct{ namespace, scope string }

func (w *graphWriter) apply(tx *store.WriteTx, d *graphDraft) error {
	w.tx = tx
	w.refs, w.places, w.touched = map[string]int64{}, map[int64]place{}, map[int64]store.Stored{}
	for i := range d.entities {
		e := &d.entities[i]
		written, err := w.entity(e)
		if err != nil {
			return atField(e.field, err)
		}
		w.entities = append(w.entities, written.ID)
		w.touch(written)
		if e.ref != "" {
			w.refs[e.ref] = written.ID
		}
	}
	for i := range d.relations {
		r := &d.relations[i]
		written, err := w.relation(r)
		if err != nil {
			return atField(r.field, err)
		}
		w.relations = append(w.relations, written.ID)
		w.touch(written)
	}
	for i := range d.events {
		v := &d.events[i]
		written, err := w.event(v)
		if err != nil {
			return atField(v.field, err)
		}
		w.events = append(w.events, written.ID)
		w.touch(written)
	}
	if err := w.refresh(); err != nil {
		return err
	}
	return w.stage()
}

func (w *graphWriter) touch(r store.Stored) {
	id := r.Head().ID
	if w.touched[id] == nil {
		w.order = append(w.order, id)
	}
	w.touched[id] = r
}

// refresh touches what names a renamed entity: its search text is another now.
func (w *graphWriter) refresh() error {
	for _, entity := range w.renamed {
		for _, look := range []struct {
			kind store.Kind
			ids  func(int64) ([]int64, error)
		}{{store.KindRelation, w.tx.RelationsOf}, {store.KindEvent, w.tx.EventsOf}} {
			ids, err := look.ids(entity)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if w.touched[id] != nil {
					continue
				}
				r, err := w.tx.RecordOf(look.kind, id)
				if err != nil {
					return err
				}
				if r == nil {
					return errs.New(errs.Storage, "the database is damaged: %s %d is not there", kindOf(look.kind), id)
				}
				if err := w.tx.Touch(r.Head()); err != nil {
					return err
				}
				w.touch(r)
			}
		}
	}
	return nil
}

// stage hands everything touched to the index. All names are settled by now.
func (w *graphWriter) stage() error {
	documents := make([]*index.Prepared, len(w.order))
	for i, id := range w.order {
		d, err := documentOf(w.tx, w.touched[id])
		if err != nil {
			return err
		}
		documents[i] = &index.Prepared{Document: d}
	}
	if len(documents) > draftsPerTask {
		parallel(len(documents), func(i int) { documents[i] = w.eng.prepare(documents[i].Document) })
	}
	for i, id := range w.order {
		if err := w.eng.stage(w.tx, w.touched[id].Head(), documents[i]); err != nil {
			return err
		}
	}
	return nil
}

// result is what the batch became.
func (w *graphWriter) result() (*GraphBatchResult, error) {
	out := &GraphBatchResult{
		Entities: make([]Entity, len(w.entities)), Relations: make([]Relation, len(w.relations)), Events: make([]Event, len(w.events)),
	}
	for i, id := range w.entities {
		out.Entities[i] = entityOf(w.touched[id].(*store.Entity))
	}
	for i, id := range w.relations {
		out.Relations[i] = relationOf(w.touched[id].(*store.Relation))
	}
	for i, id := range w.events {
		out.Events[i] = eventOf(w.touched[id].(*store.Event))
	}
	return out, nil
}

func noSuch(kind Kind, id ID) error {
	return &errs.Error{Code: errs.NotFound, Field: "id",
		Message: fmt.Sprintf("there is no %s %d; leave the id out to create one", kind, id)}
}

// sameName is the conflict of a match with several records.
func sameName(field, what string, ids []int64) error {
	const shown = 10
	texts := make([]string, 0, shown)
	for _, id := range ids[:min(len(ids), shown)] {
		texts = append(texts, fmt.Sprint(id))
	}
	return &errs.Error{Code: errs.Conflict, Field: field,
		Message: fmt.Sprintf("%d %s, ids %s: update one by its id, or delete all but one", len(ids), what, strings.Join(texts, ", "))}
}

// entity creates, replaces or merges an entity.
func (w *graphWriter) entity(d *entityDraft) (*store.Entity, error) {
	if d.id != 0 {
		old, err := w.tx.Entity(int64(d.id))
		if err != nil {
			return nil, err
		}
		if old = seen(w.access, old); old == nil || d.namespace != "" && d.namespace != old.Namespace {
			return nil, noSuch(KindEntity, d.id)
		}
		if err := d.mayReplace(&old.Record); err != nil {
			return nil, err
		}
		e := &store.Entity{
			Record: d.replacement(), Type: d.entityType, Name: d.name, NameKey: d.key, Aliases: d.aliases, Summary: d.summary,
		}
		if e.Attributes, err = encodeAttributes(d.values); err != nil {
			return nil, err
		}
		return e, w.updateEntity(d, old, e)
	}
	if d.byName {
		old, err := w.namesake(d)
		if err != nil {
			return nil, err
		}
		if old != nil {
			e, err := d.mergedEntity(old)
			if err != nil {
				return nil, err
			}
			return e, w.updateEntity(d, old, e)
		}
	}
	record, err := d.fresh(d.field, w.now)
	if err != nil {
		return nil, err
	}
	e := &store.Entity{Record: record, Type: d.entityType, Name: d.name, NameKey: d.key, Aliases: d.aliases, Summary: d.summary}
	if e.Attributes, err = encodeAttributes(d.values); err != nil {
		return nil, err
	}
	return e, w.tx.AddEntity(e)
}

// namesake is the one entity of the draft's normalised name, type and scope, or
// nil.
func (w *graphWriter) namesake(d *entityDraft) (*store.Entity, error) {
	namespace, scope := d.place()
	ids, err := w.tx.EntitiesByName(namespace, scope, d.key)
	if err != nil {
		return nil, err
	}
	var found []*store.Entity
	var same []int64
	for _, id := range ids {
		e, err := w.tx.Entity(id)
		if err != nil {
			return nil, err
		}
		if e != nil && e.Type == d.entityType {
			found, same = append(found, e), append(same, id)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, sameName("name", "entities have this name and type", same)
}

func (w *graphWriter) updateEntity(d *entityDraft, old, e *store.Entity) error {
	if err := d.over(d.field, &old.Record, &e.Record, w.now); err != nil {
		return err
	}
	if e.Scope != old.Scope {
		kind, by, err := w.tx.ReferenceTo(old.ID)
		if err != nil {
			return err
		}
		if kind != 0 {
			what := fmt.Sprintf("%s %d", kindOf(kind), by)
			if ok, err := readable(w.tx, w.access, by); err != nil {
				return err
			} else if !ok {
				what = unseenReference
			}
			return &errs.Error{Code: errs.Conflict, Field: "scope", Message: "cannot change while the entity is referred to, as by " + what}
		}
	}
	if err := w.tx.UpdateEntity(old, e); err != nil {
		return err
	}
	if e.Name != old.Name {
		w.renamed = append(w.renamed, e.ID)
	}
	return nil
}

// mergedEntity is old with what d brings.
func (d *entityDraft) mergedEntity(old *store.Entity) (*store.Entity, error) {
	record, err := d.mergedLatest(&old.Record, MaxEvidence)
	if err != nil {
		return nil, err
	}
	// A spelling that comes again and again in two ways would otherwise refresh
	// everything that names the entity each time.
	e := &store.Entity{Record: record, Type: old.Type, Name: old.Name, NameKey: old.NameKey, Summary: old.Summary}
	if d.summary != "" {
		e.Summary = d.summary
	}
	if e.Aliases, err = validAliases("aliases", slices.Concat(old.Aliases, d.aliases)); err != nil {
		return nil, err
	}
	values, err := decodeAttributes(old.Attributes)
	if err != nil {
		return nil, err
	}
	for name, added := range d.values {
		all := values[name]
		for _, value := range added {
			if !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
		values[name] = all
	}
	if values, err = validAttributes("attributes", values); err != nil {
		return nil, err
	}
	e.Attributes, err = encodeAttributes(values)
	return e, err
}

// end gives the entity that a relation or an event of a place names.
func (w *graphWriter) end(field string, ref EntityRef, namespace, scope string) (int64, error) {
	id := int64(ref.ID)
	if ref.Ref != "" {
		id = w.refs[ref.Ref]
	}
	at, known := w.places[id]
	if !known {
		kind, ns, sc, err := w.tx.Place(id)
		if err != nil {
			return 0, err
		}
		if kind == store.KindEntity && w.access.Reads(ns, sc) {
			at = place{ns, sc}
		}
		w.places[id] = at
	}
	if at.namespace != namespace || at.scope != scope && at.scope != PublicScope {
		return 0, &errs.Error{Code: errs.NotFound, Field: field,
			Message: fmt.Sprintf("there is no entity %d in this namespace, in the record's own scope or in %q", id, PublicScope)}
	}
	return id, nil
}

// relation creates, replaces or merges a relation.
func (w *graphWriter) relation(d *relationDraft) (r *store.Relation, err error) {
	var old *store.Relation
	namespace, scope := d.place()
	if d.id != 0 {
		if old, err = w.tx.Relation(int64(d.id)); err != nil {
			return nil, err
		}
		if old = seen(w.access, old); old == nil || d.namespace != "" && d.namespace != old.Namespace {
			return nil, noSuch(KindRelation, d.id)
		}
		if err := d.mayReplace(&old.Record); err != nil {
			return nil, err
		}
		namespace = old.Namespace
		if d.scope == "" {
			scope = old.Scope
		}
	}
	subject, err := w.end("subject", d.subject, namespace, scope)
	if err != nil {
		return nil, err
	}
	object, err := w.end("object", d.object, namespace, scope)
	if err != nil {
		return nil, err
	}
	r = &store.Relation{
		Subject: subject, Predicate: d.predicate, PredicateKey: d.key, Object: object,
		Confidence: valueOr(d.confidence, DefaultConfidence), Reason: d.reason,
	}
	if old != nil {
		r.Record = d.replacement()
	} else {
		if old, err = w.tx.RelationByTriple(scope, subject, d.key, object); err != nil {
			return nil, err
		}
		if old == nil {
			if r.Record, err = d.fresh(d.field, w.now); err != nil {
				return nil, err
			}
			return r, w.tx.AddRelation(r)
		}
		if r.Record, err = d.mergedLatest(&old.Record, MaxEvidence); err != nil {
			return nil, err
		}
		r.Predicate, r.Confidence = old.Predicate, valueOr(d.confidence, old.Confidence)
		if r.Reason == "" {
			r.Reason = old.Reason
		}
	}
	if err := d.over(d.field, &old.Record, &r.Record, w.now); err != nil {
		return nil, err
	}
	return r, w.tx.UpdateRelation(old, r)
}

// event creates, replaces or merges an event.
func (w *graphWriter) event(d *eventDraft) (v *store.Event, err error) {
	var old *store.Event
	namespace, scope := d.place()
	if d.id != 0 {
		if old, err = w.tx.Event(int64(d.id)); err != nil {
			return nil, err
		}
		if old = seen(w.access, old); old == nil || d.namespace != "" && d.namespace != old.Namespace {
			return nil, noSuch(KindEvent, d.id)
		}
		if err := d.mayReplace(&old.Record); err != nil {
			return nil, err
		}
		namespace = old.Namespace
		if d.scope == "" {
			scope = old.Scope
		}
	}
	v = &store.Event{
		Name: d.name, NameKey: d.key, Summary: d.summary,
		Confidence: valueOr(d.confidence, DefaultConfidence), Reason: d.reason,
	}
	for i, ref := range d.participants {
		id, err := w.end(fmt.Sprintf("participants[%d]", i), ref, namespace, scope)
		if err != nil {
			return nil, err
		}
		v.Participants = append(v.Participants, id)
	}
	slices.Sort(v.Participants)
	v.Participants = slices.Compact(v.Participants)
	v.IdentityHash = eventHash(namespace, scope, v.NameKey, v.Participants)
	same, err := w.sameEvent(namespace, scope, v)
	if err != nil {
		return nil, err
	}
	switch {
	case old != nil:
		if same != nil && same.ID != old.ID {
			return nil, errs.New(errs.Conflict, "event %d of this scope has the same name and participants: update that one, or delete one of the two", same.ID)
		}
		v.Record = d.replacement()
	case same == nil:
		if v.Record, err = d.fresh(d.field, w.now); err != nil {
			return nil, err
		}
		return v, w.tx.AddEvent(v)
	default:
		old = same
		if v.Record, err = d.mergedLatest(&old.Record, MaxEvidence); err != nil {
			return nil, err
		}
		v.Name, v.Confidence = old.Name, valueOr(d.confidence, old.Confidence)
		if v.Summary == "" {
			v.Summary = old.Summary
		}
		if v.Reason == "" {
			v.Reason = old.Reason
		}
	}
	if err := d.over(d.field, &old.Record, &v.Record, w.now); err != nil {
		return nil, err
	}
	return v, w.tx.UpdateEvent(old, v)
}

// sameEvent is the event of a scope that has v's normalised name and
// participants, or nil. There is one at most, since every write looks.
func (w *graphWriter) sameEvent(namespace, scope string, v *store.Event) (*store.Event, error) {
	found, err := w.tx.EventsByHash(v.IdentityHash)
	if err != nil {
		return nil, err
	}
	for _, o := range found {
		if o.Namespace == namespace && o.Scope == scope && o.NameKey == v.NameKey && slices.Equal(o.Participants, v.Participants) {
			return o, nil
		}
	}
	return nil, nil
}

// eventHash finds events of the same identity; equal hashes are compared in
// full.
func eventHash(namespace, scope, key string, participants []int64) int64 {
	var h xxhash.Digest
	h.Reset()
	for _, s := range []string{namespace, scope, key} {
		h.WriteString(s)
		h.WriteString("\x00")
	}
	var buf [8]byte
	for _, id := range participants {
		binary.LittleEndian.PutUint64(buf[:], uint64(id))
		h.Write(buf[:])
	}
	return int64(h.Sum64())
}
