package op

import (
	"context"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// SpaceName names an embedding space.
type SpaceName struct {
	Space string `json:"space"` // its id
}

// Spaces are the embedding spaces of a store.
type Spaces struct {
	Spaces []loci.EmbeddingSpace `json:"spaces"` // by id
}

// SpaceAnswer is the definition of a space.
type SpaceAnswer struct {
	Space *loci.EmbeddingSpace `json:"space,omitempty"` // absent when there is no such space
}

// NamespaceName names a namespace.
type NamespaceName struct {
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// TierName names a tier of a namespace.
type TierName struct {
	Tier      loci.Tier `json:"tier"`
	Namespace *string   `json:"namespace,omitempty"` // default "default"
}

// NamespaceSwitch turns the vectors of a namespace on or off.
type NamespaceSwitch struct {
	Enabled   bool    `json:"enabled"`
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// TierSwitch turns the vectors of a tier of a namespace on or off.
type TierSwitch struct {
	Tier      loci.Tier `json:"tier"`
	Enabled   bool      `json:"enabled"`
	Namespace *string   `json:"namespace,omitempty"` // default "default"
}

// SwitchState says how a switch stands.
type SwitchState struct {
	Enabled bool `json:"enabled"`
}

// DefaultSpaceAnswer is the space that searches of a namespace use.
type DefaultSpaceAnswer struct {
	Space string `json:"space"` // empty when none is set
}

// DefaultSpaceWrite sets the space that searches of a namespace use.
type DefaultSpaceWrite struct {
	Space     string  `json:"space"`               // its id; empty sets none
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// TierQuery asks about a tier of a namespace in a space.
type TierQuery struct {
	Tier      loci.Tier `json:"tier"`
	Space     *string   `json:"space,omitempty"`     // default the namespace's, else the only one
	Namespace *string   `json:"namespace,omitempty"` // default "default"
}

// Readiness says whether nothing lacks a vector.
type Readiness struct {
	Ready bool `json:"ready"`
}

// VectorQuery asks how far a namespace has its vectors.
type VectorQuery struct {
	Space     *string `json:"space,omitempty"`     // default the namespace's, else the only one
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// VectorStatus says how far a namespace has its vectors.
type VectorStatus struct {
	Space   string            `json:"space"`   // that was looked at
	Enabled bool              `json:"enabled"` // the namespace's switch, over those of its tiers
	Tiers   []loci.TierStatus `json:"tiers"`
}

// VectorSync asks to give vectors to what lacks them.
type VectorSync struct {
	Space *string `json:"space,omitempty"` // default the only one that has an embedder
	loci.EmbeddingSyncOptions
}

// RerankerState says whether searches ask a reranker.
type RerankerState struct {
	Registered bool `json:"registered"`
}

func embeddingOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "embeddings.register_space",
			Summary:     "Add a space of vectors for a model",
			Description: "A space never changes: one of the same definition is left as it is, another one under the same id is a conflict. Vectors come from an embedder that the program which holds the store binds to the space.",
			Idempotent:  true,
			Admin:       true,
			Covers:      []string{"EmbeddingStore.RegisterSpace"},
		}, func(ctx context.Context, db *loci.DB, in loci.EmbeddingSpace) (*loci.Receipt[loci.EmbeddingSpace], error) {
			return db.Embeddings().RegisterSpace(ctx, in)
		}),
		Define(Spec{
			Name:     "embeddings.spaces",
			Summary:  "List the spaces of vectors",
			ReadOnly: true, Idempotent: true,
			Admin:  true,
			Covers: []string{"EmbeddingStore.Spaces"},
		}, func(ctx context.Context, db *loci.DB, _ Nothing) (Spaces, error) {
			spaces, err := db.Embeddings().Spaces(asStore(ctx))
			return Spaces{orEmpty(spaces)}, err
		}),
		Define(Spec{
			Name:       "embeddings.embedder_space",
			Summary:    "Show a space's definition",
			Positional: []string{"space"},
			ReadOnly:   true, Idempotent: true,
			Admin:  true,
			Covers: []string{"EmbeddingStore.EmbedderSpace"},
		}, func(ctx context.Context, db *loci.DB, in SpaceName) (SpaceAnswer, error) {
			space, err := db.Embeddings().EmbedderSpace(ctx, in.Space)
			return SpaceAnswer{space}, err
		}),
		Define(Spec{
			Name:        "embeddings.delete_space",
			Summary:     "Delete a space with all of its vectors",
			Description: "Acts on the whole store, whatever the namespace. No record goes, and the vectors can be made anew.",
			Positional:  []string{"space"},
			Idempotent:  true, Destructive: true,
			Admin:  true,
			Covers: []string{"EmbeddingStore.DeleteSpace"},
		}, func(ctx context.Context, db *loci.DB, in SpaceName) (*loci.Receipt[bool], error) {
			return db.Embeddings().DeleteSpace(ctx, in.Space)
		}),
		Define(Spec{
			Name:     "embeddings.namespace_vectorization",
			Summary:  "Show whether a namespace's records get vectors",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"EmbeddingStore.NamespaceVectorization"},
		}, func(ctx context.Context, db *loci.DB, in NamespaceName) (SwitchState, error) {
			on, err := db.Embeddings().NamespaceVectorization(ctx, namespaceOr(in.Namespace))
			return SwitchState{on}, err
		}),
		Define(Spec{
			Name:        "embeddings.set_namespace_vectorization",
			Summary:     "Turn the vectors of a namespace on or off",
			Description: "Stands over the switches of its tiers, which stay as they are. Off, its records get no vectors and are found by text alone; no vector is deleted.",
			Idempotent:  true,
			Covers:      []string{"EmbeddingStore.SetNamespaceVectorization"},
		}, func(ctx context.Context, db *loci.DB, in NamespaceSwitch) (*loci.Receipt[bool], error) {
			return db.Embeddings().SetNamespaceVectorization(ctx, namespaceOr(in.Namespace), in.Enabled)
		}),
		Define(Spec{
			Name:       "embeddings.vectorization",
			Summary:    "Show whether a tier's records get vectors",
			Positional: []string{"tier"},
			ReadOnly:   true, Idempotent: true,
			Covers: []string{"EmbeddingStore.Vectorization"},
		}, func(ctx context.Context, db *loci.DB, in TierName) (SwitchState, error) {
			on, err := db.Embeddings().Vectorization(ctx, namespaceOr(in.Namespace), in.Tier)
			return SwitchState{on}, err
		}),
		Define(Spec{
			Name:        "embeddings.set_vectorization",
			Summary:     "Turn the vectors of a tier on or off",
			Description: "Tiers: memory; graph (entities, relations, events); notes (chunks), the only one that is off unless it is turned on; pages; agent (facts, episodes, procedures). No vector is deleted.",
			Positional:  []string{"tier"},
			Idempotent:  true,
			Covers:      []string{"EmbeddingStore.SetVectorization"},
		}, func(ctx context.Context, db *loci.DB, in TierSwitch) (*loci.Receipt[bool], error) {
			return db.Embeddings().SetVectorization(ctx, namespaceOr(in.Namespace), in.Tier, in.Enabled)
		}),
		Define(Spec{
			Name:     "embeddings.default_space",
			Summary:  "Show the space that searches of a namespace use",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"EmbeddingStore.DefaultSpace"},
		}, func(ctx context.Context, db *loci.DB, in NamespaceName) (DefaultSpaceAnswer, error) {
			space, err := db.Embeddings().DefaultSpace(ctx, namespaceOr(in.Namespace))
			return DefaultSpaceAnswer{space}, err
		}),
		Define(Spec{
			Name:        "embeddings.set_default_space",
			Summary:     "Set the space that searches of a namespace use",
			Description: "Without one they use the space that has an embedder.",
			Positional:  []string{"space"},
			Idempotent:  true,
			Admin:       true,
			Covers:      []string{"EmbeddingStore.SetDefaultSpace"},
		}, func(ctx context.Context, db *loci.DB, in DefaultSpaceWrite) (*loci.Receipt[string], error) {
			return db.Embeddings().SetDefaultSpace(ctx, namespaceOr(in.Namespace), in.Space)
		}),
		Define(Spec{
			Name:        "embeddings.vector_ready",
			Summary:     "Show whether nothing of a tier lacks a vector",
			Description: "As the last sync found it, and nothing was written since. A tier that is turned off is never ready.",
			Positional:  []string{"tier"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EmbeddingStore.VectorReady"},
		}, func(ctx context.Context, db *loci.DB, in TierQuery) (Readiness, error) {
			space, err := spaceOr(ctx, db, in.Space, namespaceOr(in.Namespace))
			if err != nil {
				return Readiness{}, err
			}
			ready, err := db.Embeddings().VectorReady(ctx, namespaceOr(in.Namespace), space, in.Tier)
			return Readiness{ready}, err
		}),
		Define(Spec{
			Name:        "embeddings.status",
			Summary:     "Show how far a namespace has its vectors",
			Description: "By tier: whether it is on, how many records it has, and how many of them have a vector.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EmbeddingStore.Status"},
		}, vectorStatus),
		Define(Spec{
			Name:        "embeddings.sync",
			Summary:     "Give vectors to the records that lack them",
			Description: "Needs an embedder that is bound to the space. What is written stays when a later part fails; the report says why in interrupted. A namespace narrows it; without one it is the whole store.",
			Idempotent:  true, LongRunning: true,
			Covers: []string{"EmbeddingStore.Sync"},
		}, func(ctx context.Context, db *loci.DB, in VectorSync) (*loci.Receipt[loci.EmbeddingReport], error) {
			space, err := boundSpaceOr(ctx, db, in.Space)
			if err != nil {
				return nil, err
			}
			opts := in.EmbeddingSyncOptions
			opts.Progress = ProgressFrom(ctx)
			return db.Embeddings().Sync(ctx, space, opts)
		}),
		Define(Spec{
			Name:     "reranker_registered",
			Summary:  "Show whether searches ask a reranker",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"DB.RerankerRegistered"},
		}, func(_ context.Context, db *loci.DB, _ Nothing) (RerankerState, error) {
			return RerankerState{db.RerankerRegistered()}, nil
		}),
	}
}

func vectorStatus(ctx context.Context, db *loci.DB, in VectorQuery) (VectorStatus, error) {
	namespace := namespaceOr(in.Namespace)
	space, err := spaceOr(ctx, db, in.Space, namespace)
	if err != nil {
		return VectorStatus{}, err
	}
	out := VectorStatus{Space: space}
	if out.Tiers, err = db.Embeddings().Status(ctx, namespace, space); err != nil {
		return VectorStatus{}, err
	}
	out.Enabled, err = db.Embeddings().NamespaceVectorization(ctx, namespace)
	return out, err
}

// spaceOr is the space that was named, else the namespace's, else the only one
// with an embedder, else the only one.
func spaceOr(ctx context.Context, db *loci.DB, named *string, namespace string) (string, error) {
	if named != nil {
		return *named, nil
	}
	if space, err := db.Embeddings().DefaultSpace(ctx, namespace); err != nil || space != "" {
		return space, err // also for who may not read the namespace
	}
	bound, err := boundSpaces(ctx, db)
	if err != nil {
		return "", err
	}
	if len(bound) == 1 {
		return bound[0], nil
	}
	spaces, err := db.Embeddings().Spaces(asStore(ctx))
	if err != nil {
		return "", err
	}
	names := make([]string, len(spaces))
	for i, sp := range spaces {
		names[i] = sp.ID
	}
	return onlySpace(ctx, names, "there is no space yet")
}

// boundSpaceOr is the space that was named, else the only one with an embedder.
func boundSpaceOr(ctx context.Context, db *loci.DB, named *string) (string, error) {
	if named != nil {
		return *named, nil
	}
	bound, err := boundSpaces(ctx, db)
	if err != nil {
		return "", err
	}
	return onlySpace(ctx, bound, "no space has an embedder")
}

func boundSpaces(ctx context.Context, db *loci.DB) ([]string, error) {
	h, err := db.Health(asStore(ctx))
	if err != nil {
		return nil, err
	}
	return h.EmbedderSpaces, nil
}

// asStore is ctx for choosing a space where none was named: which ones there are is
// nothing that a caller with limited access is told.
func asStore(ctx context.Context) context.Context { return loci.WithAccess(ctx, nil) }

func onlySpace(ctx context.Context, names []string, none string) (string, error) {
	switch len(names) {
	case 0:
		return "", &errs.Error{Code: errs.NotFound, Field: "space", Message: none}
	case 1:
		return names[0], nil
	}
	if !loci.AccessFrom(ctx).IsAdmin() {
		return "", errs.Invalid("space", "is needed: there are several")
	}
	return "", errs.Invalid("space", "must be one of %s", strings.Join(names, ", "))
}
