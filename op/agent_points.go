package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/errs"
)

// pointStore is what the stores of facts, episodes and procedures have in common.
type pointStore interface {
	UpdateMetadata(context.Context, agent.UpdateRequest) (*loci.Receipt[agent.Stored], error)
	SetTTL(context.Context, agent.TTLRequest) (*loci.Receipt[agent.Stored], error)
	ClearTTL(context.Context, loci.PointID) (*loci.Receipt[agent.Stored], error)
	Count(context.Context) (*agent.Count, error)
	Delete(context.Context, loci.PointID) (*loci.Receipt[bool], error)
	Clear(context.Context) (*loci.Receipt[int64], error)
	Relate(context.Context, agent.RelateRequest) (*loci.Receipt[agent.Edge], error)
	Relations(context.Context, agent.RelationsRequest) (*agent.Edges, error)
	IncomingRelations(context.Context, agent.RelationsRequest) (*agent.Edges, error)
	Unrelate(context.Context, loci.PointID) (*loci.Receipt[bool], error)
	Match(context.Context, agent.MatchRequest) (*agent.Matches, error)
	History(context.Context, agent.PointRequest) (*agent.Versions, error)
	SerializeTo(context.Context, agent.FileRequest) (*agent.Summary, error)
	DeserializeFrom(context.Context, agent.FileRequest) (*loci.Receipt[agent.Restored], error)
}

// pointKind is one of the three kinds as the table speaks of it.
type pointKind struct {
	group string // of its operations: "facts"
	a     string // with its article: "a fact"
	store string // the Go type of its store
	pick  func(*agent.AgentMemory) pointStore
}

func (k pointKind) covers(methods ...string) []string {
	out := make([]string, len(methods))
	for i, m := range methods {
		out[i] = k.store + "." + m
	}
	return out
}

func factKind() pointKind {
	return pointKind{"facts", "a fact", "SemanticMemory", func(m *agent.AgentMemory) pointStore { return m.Semantic() }}
}

func episodeKind() pointKind {
	return pointKind{"episodes", "an episode", "EpisodicMemory", func(m *agent.AgentMemory) pointStore { return m.Episodic() }}
}

func procedureKind() pointKind {
	return pointKind{"procedures", "a procedure", "ProceduralMemory", func(m *agent.AgentMemory) pointStore { return m.Procedural() }}
}

// ClearTarget names the memory that a kind is to be cleared of. It must be named in
// full, so that a forgotten field never empties one.
type ClearTarget struct {
	AgentTarget
	All bool `json:"all,omitempty"` // take the defaults for what of namespace and scope is left out
}

func (t ClearTarget) validate() error {
	const how = "name it, or say all: true to take the default"
	switch {
	case t.All:
	case t.Namespace == nil:
		return errs.Invalid("namespace", "is needed to delete everything; %s", how)
	case t.Scope == nil:
		return errs.Invalid("scope", "is needed to delete everything; %s", how)
	}
	return t.AgentTarget.validate()
}

// TargetEdge names a relation of an agent memory.
type TargetEdge struct {
	Edge loci.PointID `json:"edge"` // its id
}

// ops are the operations that the kind shares with the others. ttl is its own name
// of setting a TTL.
func (k pointKind) ops(ttl ...string) []*Operation {
	content := "The keys given replace those of the same name, null takes one away, and all else stays: vector, expiry and validity too. What changes nothing makes no version."
	if k.group == "facts" {
		content += ` The key "content" is the fact's text, whose vector is made anew if an embedder made it.`
	}
	return append(k.linkOps(),
		Define(Spec{
			Name:        k.group + ".update_metadata",
			Summary:     "Merge into the metadata of " + k.a,
			Description: content,
			Positional:  []string{"id"},
			Idempotent:  true,
			Covers:      k.covers("UpdateMetadata"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.UpdateRequest
		}) (*loci.Receipt[agent.Stored], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.UpdateRequest, pointStore.UpdateMetadata)
		}),
		Define(Spec{
			Name:        k.group + ".set_ttl",
			Summary:     "Set how long " + k.a + " lives from now on",
			Description: "With ttl_seconds 0 it is removed at once.",
			Positional:  []string{"id"},
			Destructive: true,
			Covers:      append(k.covers("SetTTL"), ttl...),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.TTLRequest
		}) (*loci.Receipt[agent.Stored], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.TTLRequest, pointStore.SetTTL)
		}),
		Define(Spec{
			Name:       k.group + ".clear_ttl",
			Summary:    "Let " + k.a + " live for ever",
			Positional: []string{"id"},
			Idempotent: true,
			Covers:     k.covers("ClearTTL"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.PointRequest
		}) (*loci.Receipt[agent.Stored], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.ID, pointStore.ClearTTL)
		}),
		Define(Spec{
			Name:        k.group + ".history",
			Summary:     "List the versions of " + k.a + ", newest first",
			Description: "The current one, and as many earlier ones as the memory's policy keeps, without vectors.",
			Positional:  []string{"id"},
			ReadOnly:    true, Idempotent: true,
			Covers: k.covers("History"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.PointRequest
		}) (*agent.Versions, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.PointRequest, pointStore.History)
		}),
		Define(Spec{
			Name:     k.group + ".count",
			Summary:  "Count the live " + k.group,
			ReadOnly: true, Idempotent: true,
			Covers: k.covers("Count", "IsEmpty"),
		}, func(ctx context.Context, db *loci.DB, in AgentTarget) (*agent.Count, error) {
			m, err := AgentMake{AgentTarget: in}.open(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return k.pick(m).Count(ctx)
		}),
		Define(Spec{
			Name:        k.group + ".delete",
			Summary:     "Delete " + k.a + " with its history and relations",
			Description: "The value is false when there was none.",
			Positional:  []string{"id"},
			Idempotent:  true, Destructive: true,
			Covers: k.covers("Delete"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.PointRequest
		}) (*loci.Receipt[bool], error) {
			return removeFrom(ctx, db, in.AgentTarget, k.pick, func(s pointStore, ctx context.Context) (*loci.Receipt[bool], error) {
				return s.Delete(ctx, in.ID)
			})
		}),
		Define(Spec{
			Name:        k.group + ".clear",
			Summary:     "Delete all " + k.group + " of a memory, with their history and relations",
			Description: "The memory must be named by namespace and scope, or all must be true, which takes the defaults. All go at once, however many there are. The value is the number of those that were live. The memory's dimension stays.",
			Idempotent:  true, Destructive: true,
			Covers: k.covers("Clear"),
		}, func(ctx context.Context, db *loci.DB, in ClearTarget) (*loci.Receipt[int64], error) {
			return removeFrom(ctx, db, in.AgentTarget, k.pick, pointStore.Clear)
		}),
		Define(Spec{
			Name:    k.group + ".serialize",
			Summary: "Write all live " + k.group + " of a memory to a new file",
			Description: "With their vectors, expiry, history and relations, as they are at one moment. A file that exists is refused and stays as it is. The format is open and checksummed; " +
				k.group + ".deserialize reads it, in this store or another one." + absolutePaths,
			Positional:  []string{"path"},
			LocalPaths:  []string{"path"},
			LongRunning: true,
			Admin:       true,
			Covers:      k.covers("SerializeTo"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.FileRequest
		}) (*agent.Summary, error) {
			m, err := agent.OpenExisting(ctx, db, in.config()) // without one there is no dimension to write
			if err != nil {
				return nil, err
			}
			return k.pick(m).SerializeTo(ctx, in.FileRequest)
		}),
		Define(Spec{
			Name:    k.group + ".deserialize",
			Summary: "Replace all " + k.group + " of a memory by those of a file",
			Description: "The file is one that " + k.group + ".serialize wrote. It is checked first; one that is damaged, of another dimension or of a newer version changes nothing. Others see all of the old or all of the new. " +
				"What has expired since is left out. The memory is made if it is not there." + absolutePaths,
			Positional: []string{"path"},
			LocalPaths: []string{"path"},
			Idempotent: true, Destructive: true, LongRunning: true,
			Admin:  true,
			Covers: k.covers("DeserializeFrom"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.FileRequest
		}) (*loci.Receipt[agent.Restored], error) {
			return makeMemory(ctx, db, in.AgentMake, nil, k.pick, in.FileRequest, pointStore.DeserializeFrom)
		}),
	)
}

// linkOps are the operations on relations.
func (k pointKind) linkOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:    k.group + ".relate",
			Summary: "Relate " + k.a + " to a point of the same memory",
			Description: "Where they are related by that type already, the answer is the same relation, and the properties are merged into its own. " +
				"A relation goes when one of its points goes. to_kind names the kind of the other one: fact, episode or procedure.",
			Positional: []string{"from", "rel_type", "to"},
			Idempotent: true,
			Covers:     k.covers("Relate"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.RelateRequest
		}) (*loci.Receipt[agent.Edge], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.RelateRequest, pointStore.Relate)
		}),
		Define(Spec{
			Name:        k.group + ".relations",
			Summary:     "List the relations that lead from " + k.a,
			Description: "By type, kind and id of the other end. " + pagedBy,
			Positional:  []string{"id"},
			ReadOnly:    true, Idempotent: true,
			Covers: k.covers("Relations"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.RelationsRequest
		}) (*agent.Edges, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.RelationsRequest, pointStore.Relations)
		}),
		Define(Spec{
			Name:        k.group + ".incoming_relations",
			Summary:     "List the relations that lead to " + k.a,
			Description: "By type, kind and id of the other end. " + pagedBy,
			Positional:  []string{"id"},
			ReadOnly:    true, Idempotent: true,
			Covers: k.covers("IncomingRelations"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.RelationsRequest
		}) (*agent.Edges, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.RelationsRequest, pointStore.IncomingRelations)
		}),
		Define(Spec{
			Name:        k.group + ".unrelate",
			Summary:     "Remove a relation that leads from " + k.a,
			Description: "The value is false when there was no such relation.",
			Positional:  []string{"edge"},
			Idempotent:  true, Destructive: true,
			Covers: k.covers("Unrelate"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			TargetEdge
		}) (*loci.Receipt[bool], error) {
			return removeFrom(ctx, db, in.AgentTarget, k.pick, func(s pointStore, ctx context.Context) (*loci.Receipt[bool], error) {
				return s.Unrelate(ctx, in.Edge)
			})
		}),
		Define(Spec{
			Name:    k.group + ".match",
			Summary: "Find relations of a type between points that hold now",
			Description: "From " + k.group + " to points of any kind. from and to name an end; filter, where, tags and thread are about the far end. Both ends must be live and valid now, or at as_of_valid_us. " +
				pagedBy,
			Positional: []string{"rel_type"},
			ReadOnly:   true, Idempotent: true,
			Covers: k.covers("Match"),
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.MatchRequest
		}) (*agent.Matches, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, k.pick, in.MatchRequest, pointStore.Match)
		}),
	}
}
