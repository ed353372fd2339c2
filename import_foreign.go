package loci

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
)

// Adoption is a batch of records that another program kept.
type Adoption struct {
	Memories []MemoryInput
	Graph    GraphBatch
	DryRun   bool // find out what would become of the batch, and write nothing
}

// AdoptOutcome says what became of an adopted record.
type AdoptOutcome string

// The outcomes of an adoption.
const (
	AdoptCreated   AdoptOutcome = "created"   // there was none like it
	AdoptMerged    AdoptOutcome = "merged"    // what it had beyond one that was there is added to that one
	AdoptReplaced  AdoptOutcome = "replaced"  // it names an id, and that record has its text now
	AdoptUnchanged AdoptOutcome = "unchanged" // one that was there has all of it
	AdoptRefused   AdoptOutcome = "refused"   // Err says why; nothing of it is written
)

// Adopted is what became of one record.
type Adopted struct {
	Outcome AdoptOutcome
	ID      ID    // 0 of a refused one, and of one that a dry run would create
	Err     error // of a refused one
}

// AdoptResult is what a batch became, in its order.
type AdoptResult struct {
	Memories, Entities, Relations, Events []Adopted
	Revision                              int64 // of the store after it
}

// Adopt brings in what another program kept, in one transaction. It adds to what
// is there and takes nothing away: a memory of the same normalised judgment, an
// entity of the same normalised name and type, a relation of the same ends and
// predicate and an event of the same name and participants get the tags,
// evidence, aliases, attributes, texts and metadata keys that they lack, and keep
// all else, their state and times too. So the same batch adopted twice writes
// nothing the second time.
//
// A memory with an id replaces the text of that one, as Upsert does, but keeps
// its state, tags, evidence and metadata keys. An entity with an id stands for
// that one and is not written.
//
// A record that is refused does not hold up the others, except for those that
// refer to it. Any other failure ends the whole batch.
func (db *DB) Adopt(ctx context.Context, batch Adoption) (*AdoptResult, error) {
	const op = "adopt"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if n := len(batch.Memories) + len(batch.Graph.Entities) + len(batch.Graph.Relations) + len(batch.Graph.Events); n > MaxBatch {
		return nil, errs.WithOp(op, errs.Invalid("", "the batch has %d records, at most %d are allowed", n, MaxBatch))
	}
	a := newAdopter(ctx, db, &batch)
	revision, err := e.write(ctx, func(tx *store.WriteTx) error { return a.run(tx) })
	if errors.Is(err, errDryRun) {
		err = e.read(ctx, func(tx *store.ReadTx) error {
			revision = tx.Revision()
			return nil
		})
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	a.result.Revision = revision
	return &a.result, nil
}

// adopter is one batch under way.
type adopter struct {
	memories *MemoryStore
	graph    graphWriter
	dryRun   bool
	drafts   []*memoryDraft // nil where refused
	entities []entityDraft
	batch    *Adoption
	result   AdoptResult
}

// newAdopter checks the batch, a record at a time.
func newAdopter(ctx context.Context, db *DB, batch *Adoption) *adopter {
	access := AccessFrom(ctx)
	a := &adopter{memories: db.Memories(), dryRun: batch.DryRun, batch: batch}
	a.graph = graphWriter{eng: db.eng, access: access, now: db.eng.clock().UnixMicro()}
	a.drafts = make([]*memoryDraft, len(batch.Memories))
	a.result.Memories = make([]Adopted, len(batch.Memories))
	parallel(len(batch.Memories), func(i int) {
		d, err := a.memories.draft(ctx, &batch.Memories[i], "")
		if err != nil {
			a.result.Memories[i] = refused(err)
			return
		}
		a.drafts[i] = d
	})
	a.entities = make([]entityDraft, len(batch.Graph.Entities))
	a.result.Entities = make([]Adopted, len(batch.Graph.Entities))
	for i := range batch.Graph.Entities {
		if err := a.entities[i].fill(access, &batch.Graph.Entities[i], ""); err != nil {
			a.result.Entities[i] = refused(err)
		}
	}
	a.result.Relations = make([]Adopted, len(batch.Graph.Relations))
	a.result.Events = make([]Adopted, len(batch.Graph.Events))
	return a
}

func refused(err error) Adopted { return Adopted{Outcome: AdoptRefused, Err: err} }

// isRefusal says whether err is about the record and not about the store.
func isRefusal(err error) bool {
	for _, code := range []Code{ErrValidation, ErrConflict, ErrNotFound, ErrStaleRevision, ErrForbidden} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

func (a *adopter) run(tx *store.WriteTx) error {
	w := &a.graph
	w.tx = tx
	w.refs, w.places, w.touched = map[string]int64{}, map[int64]place{}, map[int64]store.Stored{}
	written := 0
	put := func(out *Adopted, got Adopted, err error) error {
		if err != nil && !isRefusal(err) {
			return err
		}
		if err != nil {
			got = refused(err)
		}
		if *out = got; got.Outcome != AdoptUnchanged && got.Outcome != AdoptRefused {
			written++
		}
		return nil
	}
	for i, d := range a.drafts {
		if d == nil {
			continue
		}
		got, err := a.memory(tx, d)
		if err := put(&a.result.Memories[i], got, err); err != nil {
			return err
		}
	}
	for i := range a.entities {
		if a.result.Entities[i].Outcome == AdoptRefused {
			continue
		}
		got, err := a.entity(&a.entities[i])
		if err := put(&a.result.Entities[i], got, err); err != nil {
			return err
		}
	}
	refs := map[string]bool{}
	for ref := range w.refs {
		refs[ref] = true
	}
	for i := range a.batch.Graph.Relations {
		var d relationDraft
		err := d.fill(w.access, &a.batch.Graph.Relations[i], "", refs)
		var got Adopted
		if err == nil {
			got, err = a.relation(&d)
		}
		if err := put(&a.result.Relations[i], got, err); err != nil {
			return err
		}
	}
	for i := range a.batch.Graph.Events {
		var d eventDraft
		err := d.fill(w.access, &a.batch.Graph.Events[i], "", refs)
		var got Adopted
		if err == nil {
			got, err = a.event(&d)
		}
		if err := put(&a.result.Events[i], got, err); err != nil {
			return err
		}
	}
	if written == 0 {
		return nil
	}
	if err := w.refresh(); err != nil {
		return err
	}
	if err := w.stage(); err != nil {
		return err
	}
	if a.dryRun {
		a.forget()
		return errDryRun
	}
	return nil
}

// forget takes out the ids of what a dry run does not create.
func (a *adopter) forget() {
	for _, list := range [][]Adopted{a.result.Memories, a.result.Entities, a.result.Relations, a.result.Events} {
		for i := range list {
			if list[i].Outcome == AdoptCreated {
				list[i].ID = 0
			}
		}
	}
}

// lacking is the part of a record that old does not have yet.
func (d *recordDraft) lacking(old *store.Record) (r store.Record, more bool, err error) {
	r.Thread, r.Position = old.Thread, old.Position
	if old.Thread == "" && d.thread != nil {
		r.Thread, r.Position, more = *d.thread, clonePtr(d.position), true
	}
	// What is there wins, so it is what is merged over the newcomer; the order of
	// the keys is that of the record all the same.
	added, err := Metadata(old.Metadata).merge(d.metadata)
	if err != nil {
		return r, false, errs.Wrap(errs.Storage, err, "the stored metadata is damaged")
	}
	metadata, err := added.merge(Metadata(old.Metadata))
	if err != nil {
		return r, false, errs.Wrap(errs.Storage, err, "the stored metadata is damaged")
	}
	if len(metadata) > MaxMetadataBytes {
		return r, false, errs.Invalid("metadata", "would be %d bytes long once merged, at most %d are allowed", len(metadata), MaxMetadataBytes)
	}
	r.Metadata = old.Metadata
	if !metadata.Equal(Metadata(old.Metadata)) && len(d.metadata) > 0 {
		r.Metadata, more = metadata, true
	}
	r.Tags = slices.Concat(old.Tags, d.tags)
	slices.Sort(r.Tags)
	if r.Tags = slices.Compact(r.Tags); len(r.Tags) > MaxTags {
		return r, false, errs.Invalid("tags", "would have %d entries once merged, at most %d are allowed", len(r.Tags), MaxTags)
	}
	more = more || len(r.Tags) > len(old.Tags)
	r.Evidence = slices.Clone(old.Evidence)
	for _, e := range d.evidence {
		if slices.ContainsFunc(r.Evidence, func(o store.Evidence) bool { return sameEvidence(o, e) }) {
			continue
		}
		// A record that is full of evidence is known well enough.
		if len(r.Evidence) < MaxEvidence {
			r.Evidence, more = append(r.Evidence, e), true
		}
	}
	return r, more, nil
}

// memory creates a memory, adds to the one of its judgment, or replaces the one
// that it names.
func (a *adopter) memory(tx *store.WriteTx, d *memoryDraft) (Adopted, error) {
	if d.id != 0 {
		return a.replace(tx, d)
	}
	namespace, scope := d.place()
	same, err := tx.MemoriesByHash(judgmentHash(namespace, scope, d.normalized))
	if err != nil {
		return Adopted{}, err
	}
	same = slices.DeleteFunc(same, func(m *store.Memory) bool {
		return m.Namespace != namespace || m.Scope != scope || normalize(m.Judgment) != d.normalized
	})
	if len(same) == 0 {
		m, err := a.memories.create(tx, d)
		if err != nil {
			return Adopted{}, err
		}
		return Adopted{Outcome: AdoptCreated, ID: ID(m.ID)}, nil
	}
	slices.SortFunc(same, func(a, b *store.Memory) int { return cmp.Compare(a.ID, b.ID) })
	// Several of one judgment are the caller's own doing. One that has all of it
	// already counts before the first one, or adopting again would go on writing.
	var old, first *store.Memory
	for _, m := range same {
		next, more, err := d.added(m)
		if err != nil {
			return Adopted{}, err
		}
		if !more {
			return Adopted{Outcome: AdoptUnchanged, ID: ID(m.ID)}, nil
		}
		if first == nil {
			old, first = m, next
		}
	}
	d.state = nil
	return Adopted{Outcome: AdoptMerged, ID: ID(old.ID)}, a.rewrite(tx, d, old, first)
}

// added is old with what the draft has beyond it, and whether that is anything.
func (d *memoryDraft) added(old *store.Memory) (*store.Memory, bool, error) {
	record, more, err := d.lacking(&old.Record)
	if err != nil {
		return nil, false, err
	}
	m := &store.Memory{Record: record, Type: old.Type, Judgment: old.Judgment, Reasoning: old.Reasoning}
	if m.Reasoning == "" && d.reasoning != "" {
		m.Reasoning, more = d.reasoning, true
	}
	return m, more, nil
}

// replace gives the memory of the draft's id its text.
func (a *adopter) replace(tx *store.WriteTx, d *memoryDraft) (Adopted, error) {
	old, err := tx.Memory(int64(d.id))
	if err != nil {
		return Adopted{}, err
	}
	if old = seen(a.graph.access, old); old == nil {
		return Adopted{}, noSuch(KindMemory, d.id)
	}
	if err := d.mayReplace(&old.Record); err != nil {
		return Adopted{}, err
	}
	record, more, err := d.lacking(&old.Record)
	if err != nil {
		return Adopted{}, err
	}
	m := &store.Memory{Record: record, Type: old.Type, Judgment: d.judgment, Reasoning: d.reasoning}
	if d.memoryType != "" {
		m.Type = d.memoryType
	}
	if !more && m.Type == old.Type && m.Judgment == old.Judgment && m.Reasoning == old.Reasoning {
		return Adopted{Outcome: AdoptUnchanged, ID: d.id}, nil
	}
	// The newcomer's own keys say what it is now.
	metadata, err := Metadata(old.Metadata).merge(d.metadata)
	if err != nil {
		return Adopted{}, errs.Wrap(errs.Storage, err, "the stored metadata is damaged")
	}
	m.Metadata, d.state = metadata, nil
	return Adopted{Outcome: AdoptReplaced, ID: d.id}, a.rewrite(tx, d, old, m)
}

// rewrite writes m over old, with the document of what it has become.
func (a *adopter) rewrite(tx *store.WriteTx, d *memoryDraft, old, m *store.Memory) error {
	document := &index.Document{Kind: index.Kind(store.KindMemory), Text: []string{m.Judgment, m.Reasoning}, Tag: m.Tags}
	members, err := meta.Scan(m.Metadata)
	if err != nil {
		return errs.Wrap(errs.Storage, err, "the stored metadata is damaged")
	}
	document.Metadata = meta.Attributes(members)
	d.normalized = normalize(m.Judgment)
	_, err = a.memories.replace(tx, d, old, m, a.memories.eng.prepare(document))
	return err
}

// entity creates an entity or adds to the one of its name and type.
func (a *adopter) entity(d *entityDraft) (Adopted, error) {
	w := &a.graph
	known := func(out AdoptOutcome, id int64) Adopted {
		if d.ref != "" {
			w.refs[d.ref] = id
		}
		return Adopted{Outcome: out, ID: ID(id)}
	}
	if d.id != 0 {
		old, err := w.tx.Entity(int64(d.id))
		if err != nil {
			return Adopted{}, err
		}
		if old = seen(w.access, old); old == nil {
			return Adopted{}, noSuch(KindEntity, d.id)
		}
		return known(AdoptUnchanged, old.ID), nil
	}
	var old *store.Entity
	if d.byName {
		var err error
		if old, err = w.namesake(d); err != nil {
			return Adopted{}, err
		}
	}
	if old == nil {
		e, err := w.entity(d)
		if err != nil {
			return Adopted{}, err
		}
		w.touch(e)
		return known(AdoptCreated, e.ID), nil
	}
	record, more, err := d.lacking(&old.Record)
	if err != nil {
		return Adopted{}, err
	}
	summary := d.summary
	if old.Summary != "" {
		d.summary = ""
	}
	e, err := d.mergedEntity(old)
	d.summary = summary
	if err != nil {
		return Adopted{}, err
	}
	e.Record = record
	if !more && e.Summary == old.Summary && slices.Equal(e.Aliases, old.Aliases) && string(e.Attributes) == string(old.Attributes) {
		return known(AdoptUnchanged, old.ID), nil
	}
	if err := w.updateEntity(d, old, e); err != nil {
		return Adopted{}, err
	}
	w.touch(e)
	return known(AdoptMerged, old.ID), nil
}

// relation creates a relation or adds to the one of its ends and predicate.
func (a *adopter) relation(d *relationDraft) (Adopted, error) {
	w := &a.graph
	namespace, scope := d.place()
	subject, err := w.end("subject", d.subject, namespace, scope)
	if err != nil {
		return Adopted{}, err
	}
	object, err := w.end("object", d.object, namespace, scope)
	if err != nil {
		return Adopted{}, err
	}
	old, err := w.tx.RelationByTriple(scope, subject, d.key, object)
	if err != nil {
		return Adopted{}, err
	}
	if old == nil {
		r, err := w.relation(d)
		if err != nil {
			return Adopted{}, err
		}
		w.touch(r)
		return Adopted{Outcome: AdoptCreated, ID: ID(r.ID)}, nil
	}
	record, more, err := d.lacking(&old.Record)
	if err != nil {
		return Adopted{}, err
	}
	r := *old
	r.Record = record
	if r.Reason == "" && d.reason != "" {
		r.Reason, more = d.reason, true
	}
	if !more {
		return Adopted{Outcome: AdoptUnchanged, ID: ID(old.ID)}, nil
	}
	if err := d.over("", &old.Record, &r.Record, w.now); err != nil {
		return Adopted{}, err
	}
	if err := w.tx.UpdateRelation(old, &r); err != nil {
		return Adopted{}, err
	}
	w.touch(&r)
	return Adopted{Outcome: AdoptMerged, ID: ID(old.ID)}, nil
}

// event creates an event or adds to the one of its name and participants.
func (a *adopter) event(d *eventDraft) (Adopted, error) {
	w := &a.graph
	namespace, scope := d.place()
	v := &store.Event{NameKey: d.key}
	for _, ref := range d.participants {
		id, err := w.end("participants", ref, namespace, scope)
		if err != nil {
			return Adopted{}, err
		}
		v.Participants = append(v.Participants, id)
	}
	slices.Sort(v.Participants)
	v.Participants = slices.Compact(v.Participants)
	v.IdentityHash = eventHash(namespace, scope, v.NameKey, v.Participants)
	old, err := w.sameEvent(namespace, scope, v)
	if err != nil {
		return Adopted{}, err
	}
	if old == nil {
		created, err := w.event(d)
		if err != nil {
			return Adopted{}, err
		}
		w.touch(created)
		return Adopted{Outcome: AdoptCreated, ID: ID(created.ID)}, nil
	}
	record, more, err := d.lacking(&old.Record)
	if err != nil {
		return Adopted{}, err
	}
	e := *old
	e.Record = record
	if e.Summary == "" && strings.TrimSpace(d.summary) != "" {
		e.Summary, more = d.summary, true
	}
	if e.Reason == "" && d.reason != "" {
		e.Reason, more = d.reason, true
	}
	if !more {
		return Adopted{Outcome: AdoptUnchanged, ID: ID(old.ID)}, nil
	}
	if err := d.over("", &old.Record, &e.Record, w.now); err != nil {
		return Adopted{}, err
	}
	if err := w.tx.UpdateEvent(old, &e); err != nil {
		return Adopted{}, err
	}
	w.touch(&e)
	return Adopted{Outcome: AdoptMerged, ID: ID(old.ID)}, nil
}
