package loci

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// MemoryStore reads and writes memories.
type MemoryStore struct {
	eng *engine
}

// memoryDraft is a memory to write, checked, normalised and analysed, so that
// the writer has little left to do.
type memoryDraft struct {
	recordDraft
	field      string // goes before field names in errors
	memoryType string // "" when not given
	judgment   string
	normalized string
	reasoning  string
	state      *store.State
	now        int64
	document   *index.Prepared
}

// draft checks the input and prepares everything that needs no database.
func (s *MemoryStore) draft(ctx context.Context, in *MemoryInput, field string) (*memoryDraft, error) {
	record, err := in.RecordInput.draft(AccessFrom(ctx), field)
	if err != nil {
		return nil, err
	}
	d := &memoryDraft{recordDraft: record, field: field, now: s.eng.clock().UnixMicro()}
	if in.MemoryType != nil {
		if err := valid.Label(field+"memory_type", *in.MemoryType, MaxLabelBytes); err != nil {
			return nil, err
		}
		d.memoryType = *in.MemoryType
	}
	if err := validText(field+"judgment", in.Judgment); err != nil {
		return nil, err
	}
	if err := validText(field+"reasoning", in.Reasoning); err != nil {
		return nil, err
	}
	d.judgment, d.reasoning = strings.TrimSpace(in.Judgment), in.Reasoning
	if d.normalized = normalize(d.judgment); d.normalized == "" {
		return nil, errs.Invalid(field+"judgment", "must not be blank")
	}
	if in.State != nil {
		if d.state, err = validState(field+"state.", in.State); err != nil {
			return nil, err
		}
	}
	d.document = s.eng.prepare(&index.Document{
		Kind: index.Kind(store.KindMemory), Text: []string{d.judgment, d.reasoning}, Tag: d.tags, Metadata: d.attributes,
	})
	return d, nil
}

func validState(field string, in *MemoryState) (*store.State, error) {
	for _, f := range []struct {
		name string
		v    float64
	}{{"strength", in.Strength}, {"useful_score", in.UsefulScore}} {
		if !(f.v >= 0) || f.v > maxFinite {
			return nil, errs.Invalid(field+f.name, "must be finite and not negative, not %v", f.v)
		}
	}
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"useful_count", in.UsefulCount}, {"last_recalled_at_us", valueOr(in.LastRecalledAtUS, 0)},
		{"last_decay_at_us", valueOr(in.LastDecayAtUS, 0)},
	} {
		if f.v < 0 {
			return nil, errs.Invalid(field+f.name, "must not be negative, not %d", f.v)
		}
	}
	return &store.State{
		Pinned: in.Pinned, Strength: in.Strength, UsefulCount: in.UsefulCount, UsefulScore: in.UsefulScore,
		LastRecalled: clonePtr(in.LastRecalledAtUS), LastDecay: clonePtr(in.LastDecayAtUS),
	}, nil
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Upsert creates a memory, or replaces the one with the input's id.
func (s *MemoryStore) Upsert(ctx context.Context, in MemoryInput) (*Receipt[Memory], error) {
	return s.upsertOne(ctx, "memories.upsert", in, s.apply)
}

// UpsertByJudgment creates a memory unless one with the same normalised
// judgment exists in its namespace and scope; that one is merged with the
// input. Several such memories are ErrConflict, naming their ids.
func (s *MemoryStore) UpsertByJudgment(ctx context.Context, in MemoryInput) (*Receipt[Memory], error) {
	return s.upsertOne(ctx, "memories.upsert_by_judgment", in, s.applyByJudgment)
}

func (s *MemoryStore) upsertOne(ctx context.Context, op string, in MemoryInput,
	apply func(*store.WriteTx, *memoryDraft) (*store.Memory, error)) (*Receipt[Memory], error) {
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	redactor := s.eng.redactor(ctx)
	in = in.redacted(redactor)
	d, err := s.draft(ctx, &in, "")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	var written *store.Memory
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) (err error) {
		written, err = apply(tx, d)
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[Memory]{Value: memoryOf(written), Revision: revision, Redacted: redactedBy(redactor)}, nil
}

// UpsertMany writes all of the inputs or none.
func (s *MemoryStore) UpsertMany(ctx context.Context, ins []MemoryInput) (*Receipt[[]Memory], error) {
	const op = "memories.upsert_many"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if len(ins) > MaxBatch {
		return nil, errs.WithOp(op, errs.Invalid("memories", "has %d entries, at most %d are allowed", len(ins), MaxBatch))
	}
	redactor := s.eng.redactor(ctx)
	drafts, err := s.drafts(ctx, ins, redactor)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	written := make([]*store.Memory, len(ins))
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) (err error) {
		for i, d := range drafts {
			if written[i], err = s.apply(tx, d); err != nil {
				return atField(d.field, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	values := make([]Memory, len(written))
	for i, m := range written {
		values[i] = memoryOf(m)
	}
	return &Receipt[[]Memory]{Value: values, Revision: revision, Redacted: redactedBy(redactor)}, nil
}

// atField puts the place in a batch before the field of an error.
func atField(field string, err error) error {
	if e, ok := err.(*errs.Error); ok && !strings.HasPrefix(e.Field, field) {
		c := *e
		c.Field = strings.TrimSuffix(field+c.Field, ".")
		return &c
	}
	return err
}

// draftsPerTask is the least number of drafts that is worth a goroutine.
const draftsPerTask = 16

// drafts prepares a batch on all processors. The error is that of the first
// input that has one.
func (s *MemoryStore) drafts(ctx context.Context, ins []MemoryInput, redactor *secretscan.Redactor) ([]*memoryDraft, error) {
	out := make([]*memoryDraft, len(ins))
	tasks := min(runtime.GOMAXPROCS(0), (len(ins)+draftsPerTask-1)/draftsPerTask)
	if tasks == 0 {
		return out, ctx.Err()
	}
	type failure struct {
		at  int
		err error
	}
	failures := make([]failure, tasks)
	var group sync.WaitGroup
	size := (len(ins) + tasks - 1) / tasks
	for t := range tasks {
		from, to := min(t*size, len(ins)), min((t+1)*size, len(ins))
		work := func() {
			for i := from; i < to; i++ {
				err := ctx.Err()
				if err == nil {
					in := ins[i].redacted(redactor)
					out[i], err = s.draft(ctx, &in, fmt.Sprintf("memories[%d].", i))
				}
				if err != nil {
					failures[t] = failure{i, err}
					return
				}
			}
		}
		if t == tasks-1 {
			work()
		} else {
			group.Go(work)
		}
	}
	group.Wait()
	for _, f := range failures {
		if f.err != nil {
			return nil, f.err
		}
	}
	return out, nil
}

// apply creates or replaces.
func (s *MemoryStore) apply(tx *store.WriteTx, d *memoryDraft) (*store.Memory, error) {
	if d.id == 0 {
		return s.create(tx, d)
	}
	old, err := tx.Memory(int64(d.id))
	if err != nil {
		return nil, err
	}
	if old = seen(d.access, old); old == nil || d.namespace != "" && d.namespace != old.Namespace {
		return nil, &errs.Error{Code: errs.NotFound, Field: "id",
			Message: fmt.Sprintf("there is no memory %d; leave the id out to create one", d.id)}
	}
	if err := d.mayReplace(&old.Record); err != nil {
		return nil, err
	}
	m := &store.Memory{Record: d.replacement(), Type: d.memoryType, Judgment: d.judgment, Reasoning: d.reasoning}
	if m.Type == "" {
		m.Type = DefaultMemoryType
	}
	return s.replace(tx, d, old, m, d.document)
}

// create writes a new memory.
func (s *MemoryStore) create(tx *store.WriteTx, d *memoryDraft) (*store.Memory, error) {
	record, err := d.fresh(d.field, d.now)
	if err != nil {
		return nil, err
	}
	m := &store.Memory{
		Record: record, Type: d.memoryType, Judgment: d.judgment, Reasoning: d.reasoning, State: store.State{Strength: 1},
	}
	if m.Type == "" {
		m.Type = DefaultMemoryType
	}
	if d.state != nil {
		m.State = *d.state
	}
	m.JudgmentHash = judgmentHash(m.Namespace, m.Scope, d.normalized)
	if err := tx.AddMemory(m); err != nil {
		return nil, err
	}
	settleDocument(d.document, &m.Record)
	return m, s.eng.stage(tx, &m.Record, d.document)
}

// replace writes m over old; what an update never changes is taken from old.
func (s *MemoryStore) replace(tx *store.WriteTx, d *memoryDraft, old, m *store.Memory, document *index.Prepared) (*store.Memory, error) {
	if err := d.over(d.field, &old.Record, &m.Record, d.now); err != nil {
		return nil, err
	}
	if m.State = old.State; d.state != nil {
		m.State = *d.state
	}
	m.JudgmentHash = judgmentHash(m.Namespace, m.Scope, d.normalized)
	if err := tx.UpdateMemory(old, m); err != nil {
		return nil, err
	}
	settleDocument(document, &m.Record)
	return m, s.eng.stage(tx, &m.Record, document)
}

// applyByJudgment creates, or merges with the memory of the same judgment.
func (s *MemoryStore) applyByJudgment(tx *store.WriteTx, d *memoryDraft) (*store.Memory, error) {
	namespace, scope := d.place()
	if !d.access.Writes(namespace, scope) { // an id may stand beside a place that is left out
		return nil, d.access.refusal("", "scope", namespace, scope, "write")
	}
	same, err := tx.MemoriesByHash(judgmentHash(namespace, scope, d.normalized))
	if err != nil {
		return nil, err
	}
	same = slices.DeleteFunc(same, func(m *store.Memory) bool {
		return m.Namespace != namespace || m.Scope != scope || normalize(m.Judgment) != d.normalized
	})
	switch {
	case len(same) > 1:
		ids := make([]string, 0, 10)
		for _, m := range same[:min(len(same), 10)] {
			ids = append(ids, fmt.Sprint(m.ID))
		}
		return nil, &errs.Error{Code: errs.Conflict, Field: "judgment",
			Message: fmt.Sprintf("%d memories have this judgment, ids %s: delete all but one, or update one by its id",
				len(same), strings.Join(ids, ", "))}
	case len(same) == 0:
		return s.apply(tx, d)
	}
	old := same[0]
	if d.id != 0 && int64(d.id) != old.ID {
		return nil, &errs.Error{Code: errs.Conflict, Field: "id",
			Message: fmt.Sprintf("memory %d has this judgment, the call names %d: leave the id out to merge", old.ID, d.id)}
	}
	m, err := merged(d, old)
	if err != nil {
		return nil, err
	}
	members, err := meta.Scan(m.Metadata)
	if err != nil {
		return nil, err
	}
	document := d.document
	if m.Reasoning != d.reasoning || !slices.Equal(m.Tags, d.tags) {
		document = s.eng.prepare(&index.Document{
			Kind: index.Kind(store.KindMemory), Text: []string{m.Judgment, m.Reasoning}, Tag: m.Tags,
		})
	}
	document.Document.Metadata = meta.Attributes(members)
	return s.replace(tx, d, old, m, document)
}

// merged is old with what d brings: new metadata keys win, tags and evidence
// are united, type and reasoning are replaced when given.
func merged(d *memoryDraft, old *store.Memory) (*store.Memory, error) {
	record, err := d.merged(&old.Record)
	if err != nil {
		return nil, err
	}
	m := &store.Memory{Record: record, Type: old.Type, Judgment: d.judgment, Reasoning: old.Reasoning}
	if d.memoryType != "" {
		m.Type = d.memoryType
	}
	if d.reasoning != "" {
		m.Reasoning = d.reasoning
	}
	return m, nil
}

// judgmentHash finds memories of the same judgment; equal hashes are compared
// in full.
func judgmentHash(namespace, scope, normalized string) int64 {
	var h xxhash.Digest
	h.Reset()
	h.WriteString(namespace)
	h.WriteString("\x00")
	h.WriteString(scope)
	h.WriteString("\x00")
	h.WriteString(normalized)
	return int64(h.Sum64())
}

// memoryDocument is what the index learns of a stored memory.
func memoryDocument(m *store.Memory) *index.Document {
	d := &index.Document{Text: []string{m.Judgment, m.Reasoning}, Tag: m.Tags}
	if members, err := meta.Scan(m.Metadata); err == nil {
		d.Metadata = meta.Attributes(members)
	}
	settleDocument(&index.Prepared{Document: d}, &m.Record)
	return d
}

// memoryOf is a stored memory as the caller gets it.
func memoryOf(m *store.Memory) Memory {
	return Memory{
		Header:     headerOf(&m.Record),
		MemoryType: m.Type,
		Judgment:   m.Judgment,
		Reasoning:  m.Reasoning,
		State: MemoryState{
			Pinned: m.State.Pinned, Strength: m.State.Strength, UsefulCount: m.State.UsefulCount,
			UsefulScore: m.State.UsefulScore, LastRecalledAtUS: clonePtr(m.State.LastRecalled), LastDecayAtUS: clonePtr(m.State.LastDecay),
		},
	}
}
