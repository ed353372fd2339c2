package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/agentpolicy"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// Config says which memory to open. Only its namespace and scope name it; the rest
// is for a memory that is new.
type Config struct {
	// Namespace and Scope are where the memory lies: default loci.DefaultNamespace
	// and loci.PublicScope.
	Namespace string `json:"namespace,omitempty"`
	Scope     string `json:"scope,omitempty"`
	// Dimension is the length of the vectors, 1..65536. 0 is that of the memory as it
	// is stored; of a new one that of the namespace's search space, if it has an
	// embedder.
	Dimension int `json:"dimension,omitempty"`
	// Space names the embedding space that the vectors belong to. "" is that of the
	// memory as it is stored; of a new one the namespace's search space, if it has an
	// embedder and that dimension, else a space of callers' vectors, which is made.
	Space string `json:"space,omitempty"`
}

// AgentMemory is an open memory. It is a handle: any number of them may be open on
// one memory, and all are safe for concurrent use. They end with the store.
type AgentMemory struct {
	db   *loci.DB
	link link.Store

	namespace, scope string
	dimension        int
	space            string
	// lazy says that the memory was not there when it was opened, and is made by the
	// first call that stores something.
	lazy bool
}

// Open opens the memory of a namespace and scope, making it if there is none. A
// memory of another dimension is ErrInvalidVector, one in another space
// ErrConflict; without a dimension and anything to take it from it is
// ErrValidation.
func Open(ctx context.Context, db *loci.DB, cfg Config) (*AgentMemory, error) {
	return openAs(ctx, db, cfg, openMaking)
}

// OpenLazy is Open for a memory that may be made later: where there is none, reads
// find nothing, and the first call that stores a point makes it, once what is to be
// stored was found right. So it asks for no dimension, which only storing needs;
// Dimension is 0 as long as nothing says what it will be.
func OpenLazy(ctx context.Context, db *loci.DB, cfg Config) (*AgentMemory, error) {
	return openAs(ctx, db, cfg, openLazily)
}

// OpenExisting is Open for a memory that there is; one that there is not is
// ErrNotFound.
func OpenExisting(ctx context.Context, db *loci.DB, cfg Config) (*AgentMemory, error) {
	return openAs(ctx, db, cfg, openThere)
}

// opening says what to do about a memory that is not there.
type opening int

const (
	openMaking opening = iota // make it
	openThere                 // refuse
	openLazily                // leave it to the first write
)

// openAs opens a memory; how says what becomes of one that is not there.
func openAs(ctx context.Context, db *loci.DB, cfg Config, how opening) (*AgentMemory, error) {
	const op = "agent.open"
	m, err := handle(db, cfg)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	leave, err := m.enter(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := m.open(ctx, cfg, how); err != nil {
		return nil, errs.WithOp(op, err)
	}
	return m, nil
}

// handle checks the configuration.
func handle(db *loci.DB, cfg Config) (*AgentMemory, error) {
	m := &AgentMemory{
		db: db, link: db.Link(),
		namespace: cmp.Or(cfg.Namespace, loci.DefaultNamespace), scope: cmp.Or(cfg.Scope, loci.PublicScope),
	}
	if err := valid.Label("namespace", m.namespace, loci.MaxNamespaceBytes); err != nil {
		return nil, err
	}
	if err := valid.Label("scope", m.scope, loci.MaxScopeBytes); err != nil {
		return nil, err
	}
	if cfg.Dimension < 0 || cfg.Dimension > loci.MaxDimension {
		return nil, errs.Invalid("dimension", "must be 1 to %d, not %d", loci.MaxDimension, cfg.Dimension)
	}
	if cfg.Space != "" {
		if err := valid.Label("space", cfg.Space, loci.MaxNamespaceBytes); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// open finds the memory, or does what there is to do where there is none.
func (m *AgentMemory) open(ctx context.Context, cfg Config, how opening) error {
	var row *store.AgentMemory
	err := m.link.Read(ctx, func(tx *store.ReadTx) (err error) {
		row, err = tx.AgentMemory(m.namespace, m.scope)
		return err
	})
	switch {
	case err != nil:
		return err
	case row != nil:
		return m.adopt(row, cfg.Dimension, cfg.Space)
	case how == openThere:
		return m.missing()
	}
	if how == openMaking {
		if err := m.link.MayWrite(ctx, "", m.namespace, m.scope); err != nil {
			return err
		}
	}
	if m.dimension, m.space, err = m.plan(ctx, cfg); err != nil {
		return err
	}
	m.lazy = true
	if how == openLazily {
		return nil
	}
	err = m.ensure(ctx)
	m.lazy = false
	return err
}

// asStore is ctx for the spaces of vectors, which are the whole store's: a caller
// that may write to the memory gets the one that this needs.
func asStore(ctx context.Context) context.Context { return loci.WithAccess(ctx, nil) }

// missing is the error for a memory that is not there.
func (m *AgentMemory) missing() error {
	return &errs.Error{Code: errs.NotFound, Message: fmt.Sprintf("there is no agent memory in namespace %q, scope %q", m.namespace, m.scope)}
}

// adopt takes over what a memory is, which must be what the caller takes it for; 0
// and "" are for whatever it is.
func (m *AgentMemory) adopt(row *store.AgentMemory, dimension int, space string) error {
	switch {
	case dimension != 0 && dimension != row.Dimension:
		return &errs.Error{Code: errs.InvalidVector, Field: "dimension",
			Message: fmt.Sprintf("is %d, the memory's vectors have %d numbers", dimension, row.Dimension)}
	case space != "" && space != row.Space:
		return &errs.Error{Code: errs.Conflict, Field: "space", Message: fmt.Sprintf("is %q, the memory's vectors are of the space %q", space, row.Space)}
	}
	m.dimension, m.space = row.Dimension, row.Space
	return nil
}

// callersModel is the model of spaces whose vectors callers bring.
const callersModel = "caller"

// plan says of what dimension and space a new memory is; a dimension of 0 says that
// nothing tells.
func (m *AgentMemory) plan(ctx context.Context, cfg Config) (dimension int, space string, err error) {
	dimension, space = cfg.Dimension, cfg.Space
	if space != "" {
		found, err := m.db.Embeddings().EmbedderSpace(asStore(ctx), space)
		if err != nil {
			return 0, "", err
		}
		if found == nil {
			return 0, "", &errs.Error{Code: errs.NotFound, Field: "space", Message: fmt.Sprintf("there is no embedding space %q: register it first", space)}
		}
		if dimension != 0 && dimension != found.Dimension {
			return 0, "", &errs.Error{Code: errs.InvalidVector, Field: "dimension",
				Message: fmt.Sprintf("is %d, the space %q has %d dimensions", dimension, space, found.Dimension)}
		}
		return found.Dimension, space, nil
	}
	found, err := m.link.SearchSpace(ctx, m.namespace)
	if err != nil {
		return 0, "", err
	}
	if found != nil && m.link.HasEmbedder(found.Name) && (dimension == 0 || dimension == found.Dimension) {
		return found.Dimension, found.Name, nil
	}
	if dimension != 0 {
		space = fmt.Sprintf("agent-%d", dimension)
	}
	return dimension, space, nil
}

// ensure makes a memory that was not there when it was opened, unless somebody else
// has by now. It comes before the transaction that stores its first point, since a
// space is made by one of its own.
func (m *AgentMemory) ensure(ctx context.Context) error {
	if !m.lazy {
		return nil
	}
	leave, err := m.enterWriting(ctx, "agent.open")
	if err != nil {
		return err
	}
	defer leave()
	var row *store.AgentMemory
	err = m.link.Read(ctx, func(tx *store.ReadTx) (err error) {
		row, err = tx.AgentMemory(m.namespace, m.scope)
		return err
	})
	if err == nil && row == nil {
		row, err = m.create(ctx)
	}
	if err != nil {
		return err
	}
	return (&AgentMemory{}).adopt(row, m.dimension, m.space)
}

// create makes the memory, and its space if it is one of callers' vectors.
func (m *AgentMemory) create(ctx context.Context) (row *store.AgentMemory, err error) {
	if m.dimension == 0 {
		return nil, errs.Invalid("dimension", "is needed for a new memory where no embedder gives it: give the length of your vectors")
	}
	space, err := m.db.Embeddings().EmbedderSpace(asStore(ctx), m.space)
	if err != nil {
		return nil, err
	}
	if space == nil {
		space = &loci.EmbeddingSpace{ID: m.space, Model: callersModel, Dimension: m.dimension}
		if _, err := m.db.Embeddings().RegisterSpace(asStore(ctx), *space); err != nil {
			return nil, err
		}
	}
	if space.Dimension != m.dimension {
		return nil, &errs.Error{Code: errs.Conflict, Field: "space", Message: fmt.Sprintf(
			"is to be %q, which has %d dimensions and not %d: name another one", m.space, space.Dimension, m.dimension)}
	}
	_, err = m.link.Write(ctx, func(tx *store.WriteTx) (err error) {
		if row, err = tx.AgentMemory(m.namespace, m.scope); err != nil || row != nil {
			return err
		}
		row = &store.AgentMemory{Namespace: m.namespace, Scope: m.scope, Dimension: m.dimension, Space: m.space}
		return tx.AddAgentMemory(row)
	})
	return row, err
}

// Dimension is the length of the memory's vectors.
func (m *AgentMemory) Dimension() int { return m.dimension }

// Space is the embedding space of the memory's vectors.
func (m *AgentMemory) Space() string { return m.space }

// Namespace is where the memory lies.
func (m *AgentMemory) Namespace() string { return m.namespace }

// Scope is where in the namespace the memory lies.
func (m *AgentMemory) Scope() string { return m.scope }

// Semantic gives the memory's facts.
func (m *AgentMemory) Semantic() *SemanticMemory {
	return &SemanticMemory{points{m, store.KindFact, "facts"}}
}

// Episodic gives the memory's episodes.
func (m *AgentMemory) Episodic() *EpisodicMemory {
	return &EpisodicMemory{points{m, store.KindEpisode, "episodes"}}
}

// Procedural gives the memory's procedures.
func (m *AgentMemory) Procedural() *ProceduralMemory {
	return &ProceduralMemory{points{m, store.KindProcedure, "procedures"}}
}

// points are the points of one kind of a memory: what the three stores have in
// common.
type points struct {
	m    *AgentMemory
	kind store.Kind
	noun string // "facts"
}

// name is the name of an operation.
func (s *points) name(call string) string { return s.noun + "." + call }

// Kind is the kind of record that the store keeps.
func (s *points) Kind() loci.Kind {
	switch s.kind {
	case store.KindEpisode:
		return loci.KindEpisode
	case store.KindProcedure:
		return loci.KindProcedure
	}
	return loci.KindFact
}

// CollectionName names the store's points in a readable way, differently for each
// namespace, scope and kind: "agent/default/public/facts".
func (s *points) CollectionName() string {
	escape := strings.NewReplacer("%", "%25", "/", "%2F").Replace
	return "agent/" + escape(s.m.namespace) + "/" + escape(s.m.scope) + "/" + s.noun
}

// row is the memory as it is stored.
func (m *AgentMemory) row(tx rowReader) (*store.AgentMemory, error) {
	row, err := tx.AgentMemory(m.namespace, m.scope)
	if err != nil || row != nil {
		return row, err
	}
	if _, reads := tx.(*store.ReadTx); reads && m.lazy {
		// Its places are those of no point.
		return &store.AgentMemory{Namespace: m.namespace, Scope: m.scope, Dimension: m.dimension, Space: m.space}, nil
	}
	return nil, m.missing()
}

// rowReader is what a memory's row is read from: a snapshot, or the writer's
// transaction.
type rowReader interface {
	AgentMemory(namespace, scope string) (*store.AgentMemory, error)
}

// enter counts in a call that reads the memory, if ctx's access allows that.
func (m *AgentMemory) enter(ctx context.Context, op string) (leave func(), err error) {
	return m.entering(ctx, op, m.link.MayRead)
}

// enterWriting is enter for a call that changes the memory.
func (m *AgentMemory) enterWriting(ctx context.Context, op string) (leave func(), err error) {
	return m.entering(ctx, op, m.link.MayWrite)
}

func (m *AgentMemory) entering(ctx context.Context, op string, may func(ctx context.Context, field, namespace, scope string) error) (leave func(), err error) {
	if leave, err = m.link.Enter(op); err != nil {
		return nil, err
	}
	if err := may(ctx, "", m.namespace, m.scope); err != nil {
		leave()
		return nil, errs.WithOp(op, err)
	}
	return leave, nil
}

// read runs fn with a snapshot and the memory as it is in it.
func (m *AgentMemory) read(ctx context.Context, op string, fn func(*store.ReadTx, *store.AgentMemory) error) error {
	leave, err := m.enter(ctx, op)
	if err != nil {
		return err
	}
	defer leave()
	return errs.WithOp(op, m.link.Read(ctx, func(tx *store.ReadTx) error {
		row, err := m.row(tx)
		if err != nil {
			return err
		}
		return fn(tx, row)
	}))
}

// write runs fn as one operation of the writer, with the memory as it is.
func (m *AgentMemory) write(ctx context.Context, op string, fn func(*store.WriteTx, *store.AgentMemory) error) (int64, error) {
	leave, err := m.enterWriting(ctx, op)
	if err != nil {
		return 0, err
	}
	defer leave()
	revision, err := m.link.Write(ctx, func(tx *store.WriteTx) error {
		row, err := m.row(tx)
		if err != nil {
			return err
		}
		return fn(tx, row)
	})
	return revision, errs.WithOp(op, err)
}

// Policy is what a memory does by itself. Its zero value is the default.
type Policy struct {
	// ConsolidateAfterSeconds is the age, 1 and up, from which AutoExpire turns
	// episodes into facts; nil never.
	ConsolidateAfterSeconds *int64 `json:"consolidate_after_seconds,omitempty"`
	// EvictBelowConfidence is the confidence, 0..1, below which AutoExpire removes
	// procedures that were used; nil never.
	EvictBelowConfidence *float64 `json:"evict_below_confidence,omitempty"`
	// KeepVersions is how many earlier versions of a point are kept, 0..1000:
	// default 10.
	KeepVersions *int `json:"keep_versions,omitempty"`
	// MaxSnapshots is how many snapshots are kept, 1..1000: default 10.
	MaxSnapshots *int `json:"max_snapshots,omitempty"`
}

const (
	defaultVersions  = 10
	defaultSnapshots = 10
)

// check is about the ranges above, which whatever brings a policy in has to keep.
func (p *Policy) check() error { return (*agentpolicy.Policy)(p).Check() }

// policyOf is a memory's policy as it is stored.
func policyOf(row *store.AgentMemory) (p Policy, err error) {
	if len(row.Settings) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(row.Settings, &p); err != nil {
		return p, errs.Wrap(errs.Storage, err, "the agent memory's policy is damaged")
	}
	return p, nil
}

func (p *Policy) keepVersions() int64 { return int64(valueOr(p.KeepVersions, defaultVersions)) }

// Policy gives the memory's policy.
func (m *AgentMemory) Policy(ctx context.Context) (*Policy, error) {
	var p Policy
	err := m.read(ctx, "agent.policy", func(_ *store.ReadTx, row *store.AgentMemory) (err error) {
		p, err = policyOf(row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// SetPolicy replaces the memory's policy.
func (m *AgentMemory) SetPolicy(ctx context.Context, p Policy) (*loci.Receipt[Policy], error) {
	const op = "agent.set_policy"
	if err := p.check(); err != nil {
		return nil, errs.WithOp(op, err)
	}
	settings, err := json.Marshal(p)
	if err != nil {
		return nil, errs.WithOp(op, errs.Wrap(errs.Validation, err, "the policy cannot be written"))
	}
	if err := m.ensure(ctx); err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := m.write(ctx, op, func(tx *store.WriteTx, row *store.AgentMemory) error {
		row.Settings = settings
		return tx.UpdateAgentMemory(row)
	})
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[Policy]{Value: p, Revision: revision}, nil
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
