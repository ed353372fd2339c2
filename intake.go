package loci

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
)

// MaxIntake is how many judgments and triples one intake takes together.
const MaxIntake = 1000

// IntakeRequest is what somebody made of a text, a model as a rule: judgments to
// remember and triples for the graph.
type IntakeRequest struct {
	Namespace *string `json:"namespace,omitempty"` // default DefaultNamespace
	Scope     *string `json:"scope,omitempty"`     // default PublicScope
	// Source names what all of it was taken from. It becomes the evidence of what
	// brings none.
	Source    string           `json:"source,omitempty"`
	Judgments []IntakeJudgment `json:"judgments,omitempty"` // what to remember; with triples 1000 at most
	Triples   []IntakeTriple   `json:"triples,omitempty"`   // who has to do what with whom
	DryRun    bool             `json:"dry_run,omitempty"`   // report only
}

// IntakeJudgment is something to remember.
type IntakeJudgment struct {
	Text      string     `json:"text"`                // one statement that stands on its own, names in place of pronouns
	Reasoning string     `json:"reasoning,omitempty"` // why it holds, or how it is known
	Type      *string    `json:"type,omitempty"`      // knowledge (default), skill, emotion, event, task, graph, or a word of your own
	Tags      []string   `json:"tags,omitempty"`
	Evidence  []Evidence `json:"evidence,omitempty"`
}

// IntakeTriple is an edge of the graph by names.
type IntakeTriple struct {
	Subject   string `json:"subject"`   // the name of who or what it is about
	Predicate string `json:"predicate"` // the verb, in few words: works at, is part of
	Object    string `json:"object"`    // the name of the other end
	// SubjectType is person, place, project or another word; left out: that of the
	// entity that has the name, or else "entity".
	SubjectType *string    `json:"subject_type,omitempty"`
	ObjectType  *string    `json:"object_type,omitempty"` // likewise
	Confidence  *float64   `json:"confidence,omitempty"`  // 0..1, default 0.8
	Reason      string     `json:"reason,omitempty"`      // why it holds
	Tags        []string   `json:"tags,omitempty"`
	Evidence    []Evidence `json:"evidence,omitempty"`
}

// IntakeReport says what became of every judgment and every triple: each is in one
// of the lists.
type IntakeReport struct {
	DryRun   bool         `json:"dry_run"`
	Created  int          `json:"created"`  // judgments and triples that were new
	Merged   int          `json:"merged"`   // those that were known, or came twice
	Entities int          `json:"entities"` // entities that were made for triples
	Stored   []IntakeItem `json:"stored"`   // what was created or merged
	Rejected []Rejection  `json:"rejected"` // what was not stored, and why
}

// IntakeItem is a judgment or triple that was stored, or would be.
type IntakeItem struct {
	List    string `json:"list"`    // judgments or triples
	Index   int    `json:"index"`   // in that list, from 0
	ID      ID     `json:"id"`      // of the memory or relation; with a dry run of what is new: 0
	Created bool   `json:"created"` // false: it was merged with what was known
}

// Rejection is a judgment or triple that was not stored.
type Rejection struct {
	List   string `json:"list"`            // judgments or triples
	Index  int    `json:"index"`           // in that list, from 0
	Field  string `json:"field,omitempty"` // of it
	Reason string `json:"reason"`
}

// The lists of an intake.
const (
	intakeJudgments = "judgments"
	intakeTriples   = "triples"
)

// Intake checks judgments and triples, stores those that are sound in one
// transaction, and says of each what became of it. What is known is merged: a
// judgment as UpsertByJudgment does it, the ends of a triple by their names, an edge
// by its ends and predicate. Marked blocks, which a memory gave itself, are taken
// out first.
func (db *DB) Intake(ctx context.Context, req IntakeRequest) (*Receipt[IntakeReport], error) {
	const op = "intake"
	if err := db.eng.enter(op); err != nil {
		return nil, err
	}
	defer db.eng.gate.leave()
	r, err := db.intake(ctx, &req)
	return r, errs.WithOp(op, err)
}

// intake is one intake under way.
type intake struct {
	db       *DB
	access   *Access
	place    recordDraft // of all that is stored
	redactor *secretscan.Redactor
	items    []*intakeItem
	report   IntakeReport
}

// intakeItem is a judgment or a triple, checked.
type intakeItem struct {
	list   string
	index  int
	memory *memoryDraft
	triple *tripleDraft
	why    *Rejection // nil while it is sound
}

type tripleDraft struct {
	subject, object entityDraft
	subjectTyped    bool
	objectTyped     bool
	relation        relationDraft
}

func (db *DB) intake(ctx context.Context, req *IntakeRequest) (*Receipt[IntakeReport], error) {
	if n := len(req.Judgments) + len(req.Triples); n > MaxIntake {
		return nil, errs.Invalid("", "there are %d judgments and triples, at most %d are taken at once", n, MaxIntake)
	}
	record := RecordInput{Namespace: req.Namespace, Scope: req.Scope}
	if req.Source != "" {
		record.Evidence = []Evidence{{Source: req.Source}}
	}
	in := &intake{db: db, access: AccessFrom(ctx), redactor: db.eng.redactor(ctx)}
	var err error
	if in.place, err = record.draft(in.access, ""); err != nil {
		if e, ok := errors.AsType[*errs.Error](err); ok && strings.HasPrefix(e.Field, "evidence") {
			return nil, errs.Invalid("source", "%s", e.Message)
		}
		return nil, err
	}
	namespace, scope := in.place.place()
	if !in.access.Writes(namespace, scope) {
		return nil, in.access.refusal("", "scope", namespace, scope, "write")
	}
	for i := range req.Judgments {
		if err := in.add(intakeJudgments, i, func(it *intakeItem) error { return in.judgment(ctx, it, &req.Judgments[i], record) }); err != nil {
			return nil, err
		}
	}
	for i := range req.Triples {
		if err := in.add(intakeTriples, i, func(it *intakeItem) error { return in.draftTriple(it, &req.Triples[i], record) }); err != nil {
			return nil, err
		}
	}
	revision, err := in.store(ctx, req.DryRun)
	if err != nil {
		return nil, err
	}
	return &Receipt[IntakeReport]{Value: in.report, Revision: revision, Redacted: redactedBy(in.redactor)}, nil
}

// add checks one item. What is wrong with it is its own affair.
func (in *intake) add(list string, index int, check func(*intakeItem) error) error {
	it := &intakeItem{list: list, index: index}
	in.items = append(in.items, it)
	return it.reject(check(it))
}

// reject notes why an item is not stored. An error that is not about the item is
// given back.
func (it *intakeItem) reject(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Code != errs.Validation && e.Code != errs.Conflict {
		return err
	}
	it.why = &Rejection{List: it.list, Index: it.index, Field: e.Field, Reason: e.Message}
	return nil
}

// own takes marked blocks out of a text.
func own(field, text string) (string, error) {
	if !mark.Has(text) {
		return text, nil
	}
	if text = mark.Strip(text); text == "" {
		return "", errs.Invalid(field, "holds nothing but what was recalled from memory, which is there already")
	}
	return text, nil
}

// record gives the part that all records have. Quotes lose marked blocks too.
func (in *intake) record(all RecordInput, tags []string, evidence []Evidence) RecordInput {
	all.Tags = tags
	if len(evidence) > 0 {
		all.Evidence = slices.Clone(evidence)
		for i := range all.Evidence {
			all.Evidence[i].Quote = mark.Strip(all.Evidence[i].Quote)
		}
	}
	return all
}

func (in *intake) judgment(ctx context.Context, it *intakeItem, j *IntakeJudgment, record RecordInput) error {
	text, err := own("text", j.Text)
	if err != nil {
		return err
	}
	m := MemoryInput{
		RecordInput: in.record(record, j.Tags, j.Evidence), MemoryType: j.Type,
		Judgment: text, Reasoning: mark.Strip(j.Reasoning),
	}.redacted(in.redactor)
	it.memory, err = in.db.Memories().draft(ctx, &m, "")
	return renamed(err, map[string]string{"judgment": "text", "memory_type": "type"})
}

// renamed gives an error the name that the caller knows its field by.
func renamed(err error, names map[string]string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || names[e.Field] == "" {
		return err
	}
	c := *e
	c.Field = names[e.Field]
	return &c
}

func (in *intake) draftTriple(it *intakeItem, t *IntakeTriple, record RecordInput) error {
	var batch GraphBatch
	for _, end := range []struct {
		field, name string
		kind        *string
	}{{"subject", t.Subject, t.SubjectType}, {"object", t.Object, t.ObjectType}} {
		name, err := own(end.field, end.name)
		if err != nil {
			return err
		}
		batch.Entities = append(batch.Entities, EntityInput{
			RecordInput: record, Ref: end.field, Match: MatchByName, Name: strings.TrimSpace(name), EntityType: end.kind,
		})
	}
	predicate, err := own("predicate", t.Predicate)
	if err != nil {
		return err
	}
	batch.Relations = []RelationInput{{
		RecordInput: in.record(record, t.Tags, t.Evidence), Subject: EntityRef{Ref: "subject"}, Object: EntityRef{Ref: "object"},
		Predicate: strings.TrimSpace(predicate), Confidence: t.Confidence, Reason: mark.Strip(t.Reason),
	}}
	batch = batch.redacted(in.redactor)
	d, err := batch.draft(in.access)
	if err != nil {
		return tripleField(err)
	}
	it.triple = &tripleDraft{
		subject: d.entities[0], object: d.entities[1], relation: d.relations[0],
		subjectTyped: t.SubjectType != nil, objectTyped: t.ObjectType != nil,
	}
	return nil
}

// tripleField names the field of a triple that an error of its batch is about.
func tripleField(err error) error {
	return renamed(renamed(err, map[string]string{
		"entities[0].name": "subject", "entities[1].name": "object",
		"entities[0].entity_type": "subject_type", "entities[1].entity_type": "object_type",
	}), relationFields())
}

func relationFields() map[string]string {
	out := map[string]string{}
	for _, f := range []string{"predicate", "confidence", "reason", "tags", "evidence"} {
		out["relations[0]."+f] = f
	}
	return out
}

// badItem is an item that the store's state speaks against.
type badItem struct {
	item *intakeItem
	err  error
}

func (e *badItem) Error() string { return e.err.Error() }
func (e *badItem) Unwrap() error { return e.err }

// errDry ends the transaction of a dry run.
var errDry = errors.New("a dry run writes nothing")

// store writes what is sound. The state may speak against an item only once the
// transaction has begun: then all is done anew without it.
func (in *intake) store(ctx context.Context, dry bool) (int64, error) {
	for {
		var report IntakeReport
		revision, err := in.db.eng.write(ctx, func(tx *store.WriteTx) (err error) {
			if report, err = in.apply(tx, dry); err == nil && (dry || len(report.Stored) == 0) {
				return errDry
			}
			return err
		})
		if bad, ok := errors.AsType[*badItem](err); ok {
			if err := bad.item.reject(bad.err); err != nil {
				return 0, err
			}
			continue
		}
		if errors.Is(err, errDry) {
			err = in.db.eng.read(ctx, func(tx *store.ReadTx) error {
				revision = tx.Revision()
				return nil
			})
		}
		if err != nil {
			return 0, err
		}
		report.DryRun, report.Rejected = dry, []Rejection{}
		for _, it := range in.items {
			if it.why != nil {
				report.Rejected = append(report.Rejected, *it.why)
			}
		}
		in.report = report
		return revision, nil
	}
}

func (in *intake) apply(tx *store.WriteTx, dry bool) (IntakeReport, error) {
	report := IntakeReport{Stored: []IntakeItem{}}
	first := tx.NextID()
	w := &graphWriter{eng: in.db.eng, access: in.access, now: in.db.eng.clock().UnixMicro(), tx: tx,
		refs: map[string]int64{}, places: map[int64]place{}, touched: map[int64]store.Stored{}}
	seen := map[int64]bool{}
	for _, it := range in.items {
		if it.why != nil {
			continue
		}
		var id int64
		var err error
		if it.memory != nil {
			var m *store.Memory
			if m, err = in.db.Memories().applyByJudgment(tx, it.memory); err == nil {
				id = m.ID
			}
		} else {
			id, err = w.triple(it.triple, first, &report.Entities)
		}
		if err != nil {
			return report, &badItem{it, renamed(err, map[string]string{"judgment": "text"})}
		}
		done := IntakeItem{List: it.list, Index: it.index, ID: ID(id), Created: id >= first && !seen[id]}
		seen[id] = true
		if dry && id >= first {
			done.ID = 0 // nobody will have it
		}
		if done.Created {
			report.Created++
		} else {
			report.Merged++
		}
		report.Stored = append(report.Stored, done)
	}
	return report, w.stage()
}

// triple writes an edge and, where they are new, its ends.
func (w *graphWriter) triple(d *tripleDraft, first int64, made *int) (int64, error) {
	for _, end := range []struct {
		draft *entityDraft
		typed bool
		ref   string
	}{{&d.subject, d.subjectTyped, "subject"}, {&d.object, d.objectTyped, "object"}} {
		id, err := w.named(end.draft, end.typed, end.ref)
		if err != nil {
			return 0, err
		}
		if id == 0 {
			e, err := w.entity(end.draft)
			if err != nil {
				return 0, renamed(err, map[string]string{"name": end.ref})
			}
			id = e.ID
			w.touch(e)
			*made++
		}
		w.refs[end.ref] = id
	}
	r, err := w.relation(&d.relation)
	if err != nil {
		return 0, err
	}
	w.touch(r)
	return r.ID, nil
}

// named finds the entity that goes by a name in the scope, 0 for none: the one of
// its type, or without a type the only one there is.
func (w *graphWriter) named(d *entityDraft, typed bool, field string) (int64, error) {
	namespace, scope := d.place()
	ids, err := w.tx.EntitiesByName(namespace, scope, d.key)
	if err != nil {
		return 0, err
	}
	if !typed && len(ids) == 1 {
		return ids[0], nil
	}
	var same []int64
	for _, id := range ids {
		e, err := w.tx.Entity(id)
		if err != nil {
			return 0, err
		}
		if e != nil && e.Type == d.entityType {
			same = append(same, id)
		}
	}
	switch {
	case len(same) == 1:
		return same[0], nil
	case len(same) > 1:
		return 0, sameName(field, "entities have this name and type", same)
	case !typed && len(ids) > 1:
		return 0, errs.New(errs.Conflict, "%s", fmt.Sprintf("%d entities go by the name of the %s: say its %s_type", len(ids), field, field))
	}
	return 0, nil
}
