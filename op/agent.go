package op

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/strictjson"
)

// AgentTarget says which agent memory an operation is about. One that is not there
// is like one in which nothing is stored.
type AgentTarget struct {
	Namespace *string `json:"namespace,omitempty"` // default "default"
	Scope     *string `json:"scope,omitempty"`     // default "public"
}

// AgentMake is the target of an operation that makes the memory if it is not there.
type AgentMake struct {
	AgentTarget
	// Dimension is the length of the memory's vectors, 1..65536: default that of the
	// memory as it is stored; of a new one that of the embedding, else that of the
	// namespace's search space, if it has an embedder. Another one than is stored is
	// refused.
	Dimension int `json:"dimension,omitempty"`
	// Space names the embedding space of the vectors: default that of the memory as it
	// is stored; of a new one the namespace's search space, if it has an embedder and
	// the dimension is the same, else a space of callers' vectors. Another one than is
	// stored is refused.
	Space string `json:"space,omitempty"`
}

// agentTypes are the types of agent memory that have a form of their own.
func agentTypes(special map[reflect.Type]*jsonschema.Schema) {
	special[reflect.TypeFor[agent.VectorState]()] = strictjson.Words(
		string(agent.VectorGiven), string(agent.VectorMade), string(agent.VectorPending), string(agent.VectorNone))
	special[reflect.TypeFor[agent.StrategyKind]()] = strictjson.Words(
		string(agent.StrategyFixed), string(agent.StrategyDiminishing), string(agent.StrategyTemporal), string(agent.StrategyWeighted))
	special[reflect.TypeFor[agent.ImportFormat]()] = strictjson.Words(
		string(agent.ImportJSONL), string(agent.ImportChatGPT), string(agent.ImportClaude), string(agent.ImportClaudeCode))
}

// validate refuses an empty name, which in Go stands for the default and here is a
// mistake: what is left out takes the default.
func (t AgentTarget) validate() error {
	for _, f := range []struct {
		name  string
		value *string
	}{{"namespace", t.Namespace}, {"scope", t.Scope}} {
		if f.value != nil && *f.value == "" {
			return errs.Invalid(f.name, "must not be empty; leave it out for the default")
		}
	}
	return nil
}

func (t AgentTarget) config() (cfg agent.Config) {
	if t.Namespace != nil {
		cfg.Namespace = *t.Namespace
	}
	if t.Scope != nil {
		cfg.Scope = *t.Scope
	}
	return cfg
}

// open gives a handle on a memory that need not be there: reads find nothing, and
// what stores a point makes it, of the dimension of the embedding where nothing says
// otherwise.
func (t AgentMake) open(ctx context.Context, db *loci.DB, embedding []float32) (*agent.AgentMemory, error) {
	if len(embedding) > loci.MaxDimension {
		return nil, &errs.Error{Code: errs.InvalidVector, Field: "embedding", Message: "has more numbers than any memory's vectors"}
	}
	cfg := t.config()
	cfg.Dimension, cfg.Space = t.Dimension, t.Space
	m, err := agent.OpenExisting(ctx, db, cfg)
	if !errors.Is(err, loci.ErrNotFound) {
		return m, err
	}
	if cfg.Dimension == 0 && cfg.Space == "" {
		cfg.Dimension = len(embedding)
	}
	return agent.OpenLazy(ctx, db, cfg)
}

// inMemory runs a call that makes no memory. embedding is that of the request, if it
// has one.
func inMemory[S, Req, Res any](ctx context.Context, db *loci.DB, t AgentTarget, embedding []float32,
	pick func(*agent.AgentMemory) S, req Req, method func(S, context.Context, Req) (*Res, error),
) (*Res, error) {
	return makeMemory(ctx, db, AgentMake{AgentTarget: t}, embedding, pick, req, method)
}

// makeMemory runs a call that makes the memory if it stores something.
func makeMemory[S, Req, Res any](ctx context.Context, db *loci.DB, t AgentMake, embedding []float32,
	pick func(*agent.AgentMemory) S, req Req, method func(S, context.Context, Req) (*Res, error),
) (*Res, error) {
	m, err := t.open(ctx, db, embedding)
	if err != nil {
		return nil, err
	}
	return method(pick(m), ctx, req)
}

// removeFrom runs a call that removes something and tells how much: of a memory that
// is not there, nothing.
func removeFrom[S, T any](ctx context.Context, db *loci.DB, t AgentTarget,
	pick func(*agent.AgentMemory) S, remove func(S, context.Context) (*loci.Receipt[T], error),
) (*loci.Receipt[T], error) {
	m, err := agent.OpenExisting(ctx, db, t.config())
	if errors.Is(err, loci.ErrNotFound) {
		return nothingIn[T](ctx, db, t)
	}
	if err != nil {
		return nil, err
	}
	return remove(pick(m), ctx)
}

// nothingIn is the receipt of a call that had nothing to do in a memory, for a caller
// that may write there.
func nothingIn[T any](ctx context.Context, db *loci.DB, t AgentTarget) (*loci.Receipt[T], error) {
	cfg := t.config()
	if err := db.Link().MayWrite(ctx, "", cmp.Or(cfg.Namespace, loci.DefaultNamespace), cmp.Or(cfg.Scope, loci.PublicScope)); err != nil {
		return nil, err
	}
	h, err := db.Health(asStore(ctx))
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[T]{Revision: h.Revision}, nil
}

// agentOps are the operations of agent memory.
func agentOps() []*Operation {
	ops := slices.Concat(
		factOps(), factKind().ops("SemanticMemory.SetTTLDurable", "AgentMemory.SetSemanticTTL"),
		episodeOps(), captureOps(), episodeKind().ops("AgentMemory.SetEpisodicTTL"),
		procedureOps(), procedureKind().ops("AgentMemory.SetProceduralTTL"),
		wholeMemoryOps(),
	)
	for _, o := range ops {
		// A memory is opened by the operation that the caller asked for.
		o.coded = func(err error) error { return retitle(err, o.Name, nil) }
	}
	return ops
}
