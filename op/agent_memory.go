package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// OpenedMemory says which memory was opened.
type OpenedMemory struct {
	Namespace string `json:"namespace"`
	Scope     string `json:"scope"`
	Dimension int    `json:"dimension"` // length of its vectors
	Space     string `json:"space"`     // the embedding space that they belong to
}

// RestoreMemory says what a memory is to be replaced by.
type RestoreMemory struct {
	Version *int64 `json:"version,omitempty"` // of the snapshot; default the latest one that can be used
}

// wholeMemoryOps are the operations on an agent memory as a whole.
func wholeMemoryOps() []*Operation {
	whole := func(m *agent.AgentMemory) *agent.AgentMemory { return m }
	return []*Operation{
		Define(Spec{
			Name:    "agent.open",
			Summary: "Make an agent memory, or see that it is there",
			Description: "What stores a point makes the memory too; this is for one whose dimension or space is to be chosen beforehand. " +
				"Without a dimension it is that of the namespace's search space, if it has an embedder.",
			Idempotent: true,
			Covers:     []string{"AgentMemory.Dimension", "AgentMemory.Space", "AgentMemory.Namespace", "AgentMemory.Scope"},
		}, func(ctx context.Context, db *loci.DB, in AgentMake) (*OpenedMemory, error) {
			cfg := in.config()
			cfg.Dimension, cfg.Space = in.Dimension, in.Space
			m, err := agent.Open(ctx, db, cfg)
			if err != nil {
				return nil, err
			}
			return &OpenedMemory{Namespace: m.Namespace(), Scope: m.Scope(), Dimension: m.Dimension(), Space: m.Space()}, nil
		}),
		Define(Spec{
			Name:        "agent.status",
			Summary:     "Show what an agent memory is made of and how it is set up",
			Description: "Of a memory that is not there it says what it would be: the dimension is 0 as long as nothing tells.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"AgentMemory.Status"},
		}, func(ctx context.Context, db *loci.DB, in AgentTarget) (*agent.Status, error) {
			m, err := AgentMake{AgentTarget: in}.open(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return m.Status(ctx)
		}),
		Define(Spec{
			Name:     "agent.policy",
			Summary:  "Show what an agent memory does by itself",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"AgentMemory.Policy"},
		}, func(ctx context.Context, db *loci.DB, in AgentTarget) (*agent.Policy, error) {
			m, err := AgentMake{AgentTarget: in}.open(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return m.Policy(ctx)
		}),
		Define(Spec{
			Name:        "agent.set_policy",
			Summary:     "Say what an agent memory does by itself",
			Description: "It replaces the policy: what is left out takes its default. The memory is made if it is not there.",
			Idempotent:  true,
			Covers:      []string{"AgentMemory.SetPolicy"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.Policy
		}) (*loci.Receipt[agent.Policy], error) {
			return makeMemory(ctx, db, in.AgentMake, nil, whole, in.Policy, (*agent.AgentMemory).SetPolicy)
		}),
		Define(Spec{
			Name:    "agent.auto_expire",
			Summary: "Do what an agent memory's policy says, now",
			Description: "Removes what has expired, turns episodes that are old enough into facts, at most 1000 a call, removes procedures that do not serve, and trims histories. truncated says that another call has more to do. " +
				"What fails on the way leaves what was done, and says how much that was.",
			Destructive: true, LongRunning: true,
			Covers: []string{"AgentMemory.AutoExpire"},
		}, func(ctx context.Context, db *loci.DB, in AgentTarget) (*agent.AutoExpired, error) {
			m, err := AgentMake{AgentTarget: in}.open(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return m.AutoExpire(ctx)
		}),
		Define(Spec{
			Name:    "agent.snapshot",
			Summary: "Write an agent memory to a snapshot in the data directory",
			Description: "All of it, as it is at one moment: points, vectors, expiry, history, relations and policy. The answer names its version. " +
				"Older ones than the policy's max_snapshots go afterwards.",
			LongRunning: true,
			Covers:      []string{"AgentMemory.Snapshot"},
		}, func(ctx context.Context, db *loci.DB, in AgentTarget) (*agent.SnapshotTaken, error) {
			m, err := agent.OpenExisting(ctx, db, in.config())
			if err != nil {
				return nil, err
			}
			return m.Snapshot(ctx)
		}),
		Define(Spec{
			Name:        "agent.snapshots",
			Summary:     "List the snapshots of an agent memory",
			Description: "By ascending version, each with whether it can be used.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"AgentMemory.Snapshots"},
		}, func(ctx context.Context, db *loci.DB, in AgentTarget) (*agent.SnapshotList, error) {
			m, err := AgentMake{AgentTarget: in}.open(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return m.Snapshots(ctx)
		}),
		Define(Spec{
			Name:    "agent.restore",
			Summary: "Replace an agent memory by one of its snapshots",
			Description: "All of it or nothing, and others see all of the old or all of the new. Without a version it is the latest snapshot that can be used; warnings name newer ones that could not. " +
				"What has expired since is left out. The memory is made if it is not there.",
			Idempotent: true, Destructive: true, LongRunning: true,
			Covers: []string{"AgentMemory.RestoreVersion", "AgentMemory.RestoreLatest"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			RestoreMemory
		}) (*loci.Receipt[agent.Restored], error) {
			m, err := in.open(ctx, db, nil)
			switch {
			case err != nil:
				return nil, err
			case in.Version == nil:
				return m.RestoreLatest(ctx)
			}
			return m.RestoreVersion(ctx, agent.RestoreRequest{Version: *in.Version})
		}),
	}
}
