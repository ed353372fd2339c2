package agent

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Status is what a memory holds, in numbers.
type Status struct {
	Namespace  string `json:"namespace"`
	Scope      string `json:"scope"`
	Dimension  int    `json:"dimension"`
	Space      string `json:"space"`
	Embedder   bool   `json:"embedder"` // one is registered for the space
	Revision   int64  `json:"revision"` // of the store that this shows
	ClockUS    int64  `json:"clock_us"` // that expiry is judged by, UTC microseconds
	Facts      int64  `json:"facts"`    // live ones, as the next two
	Episodes   int64  `json:"episodes"`
	Procedures int64  `json:"procedures"`
	Policy     Policy `json:"policy"`
	// Snapshots is how many there are. Whether they can be used, Snapshots tells.
	Snapshots int `json:"snapshots"`
	// LatestSnapshot is the version that was given last, whether it is still there or
	// not; 0 before the first.
	LatestSnapshot int64 `json:"latest_snapshot"`
}

// Status tells what the memory holds.
func (m *AgentMemory) Status(ctx context.Context) (*Status, error) {
	const op = "agent.status"
	out := &Status{Namespace: m.namespace, Scope: m.scope, ClockUS: m.link.Clock()}
	err := m.read(ctx, op, func(tx *store.ReadTx, row *store.AgentMemory) (err error) {
		out.Dimension, out.Space, out.Revision, out.LatestSnapshot = row.Dimension, row.Space, tx.Revision(), row.Snapshot
		if out.Policy, err = policyOf(row); err != nil {
			return err
		}
		for i, n := range [...]*int64{&out.Facts, &out.Episodes, &out.Procedures} {
			if *n, err = tx.CountPoints(row.Places[i], out.ClockUS); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Embedder = m.link.HasEmbedder(out.Space)
	dir := &snapshotDir{m: m}
	defer dir.close()
	if err := dir.open(false); err != nil {
		return nil, errs.WithOp(op, err)
	}
	versions, err := dir.versions()
	out.Snapshots = len(versions)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}
