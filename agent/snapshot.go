package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// SnapshotInfo says what a snapshot holds.
type SnapshotInfo struct {
	Version     int64 `json:"version"`       // 1 and up, never given twice
	CreatedAtUS int64 `json:"created_at_us"` // UTC microseconds
	Bytes       int64 `json:"bytes"`
	Facts       int64 `json:"facts"`
	Episodes    int64 `json:"episodes"`
	Procedures  int64 `json:"procedures"`
	Versions    int64 `json:"versions"` // earlier ones, of all points
	Relations   int64 `json:"relations"`
	Vectors     int64 `json:"vectors"`
	// OK says that RestoreVersion would take it; else Problem says why not, and what
	// could not be read is 0.
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
}

// SnapshotTaken is what Snapshot did.
type SnapshotTaken struct {
	SnapshotInfo
	Removed []int64 `json:"removed"` // versions that were one too many
	// Warnings tell of old snapshots that could not be removed. The next one tries
	// again.
	Warnings []string `json:"warnings,omitempty"`
}

// SnapshotList are the snapshots of a memory by ascending version.
type SnapshotList struct {
	Snapshots []SnapshotInfo `json:"snapshots"`
}

// RestoreRequest names a snapshot.
type RestoreRequest struct {
	Version int64 `json:"version"` // 1 and up
}

// Snapshot writes the whole memory, as it is at one moment, to a file of the data
// directory: all live points with vectors, expiry, earlier versions and relations, and
// the policy. When it returns the file is on disk. Older ones than the policy's
// max_snapshots go then; while they are kept, each takes about as much room as the
// memory's part of the store. Reads and writes go on meanwhile; snapshots of one
// memory are written one after the other. What the disk fails with is ErrIO; nothing
// older has gone then.
func (m *AgentMemory) Snapshot(ctx context.Context) (*SnapshotTaken, error) {
	const op = "agent.snapshot"
	leave, err := m.enterWriting(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	work, stop := m.link.UntilClosing(ctx)
	defer stop()
	out, err := m.snapshot(work, op)
	return out, errs.WithOp(op, closing(ctx, work, err))
}

func (m *AgentMemory) snapshot(ctx context.Context, op string) (*SnapshotTaken, error) {
	done, err := m.take(ctx, workFiles)
	if err != nil {
		return nil, err
	}
	defer done()
	row, err := m.stored(ctx)
	if err != nil {
		return nil, err
	}
	if row.ID == 0 {
		return nil, m.missing()
	}
	dir := &snapshotDir{m: m, fs: m.turns().files}
	defer dir.close()
	if err := dir.open(true); err != nil {
		return nil, err
	}
	versions, err := dir.versions()
	if err != nil {
		return nil, err
	}
	// The version is taken before anything is written, so that none names two
	// contents, whatever happens next.
	var version int64
	var policy Policy
	_, err = m.write(ctx, op, func(tx *store.WriteTx, row *store.AgentMemory) (err error) {
		if policy, err = policyOf(row); err != nil {
			return err
		}
		version = row.Snapshot + 1
		if n := len(versions); n > 0 {
			version = max(version, versions[n-1]+1)
		}
		row.Snapshot = version
		return tx.UpdateAgentMemory(row)
	})
	if err != nil {
		return nil, err
	}
	if err := dir.tidy(); err != nil {
		return nil, err
	}
	out := &SnapshotTaken{Removed: []int64{}}
	if out.SnapshotInfo, err = dir.write(ctx, op, version); err != nil {
		return nil, err
	}
	out.Removed, out.Warnings = dir.retain(valueOr(policy.MaxSnapshots, defaultSnapshots))
	return out, nil
}

// Snapshots lists the snapshots that are there. Each is read and checked as a restore
// would, once while the store is open and as long as the file stays the same.
func (m *AgentMemory) Snapshots(ctx context.Context) (*SnapshotList, error) {
	const op = "agent.snapshots"
	leave, err := m.enter(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	work, stop := m.link.UntilClosing(ctx)
	defer stop()
	out, err := m.snapshots(work)
	return out, errs.WithOp(op, closing(ctx, work, err))
}

func (m *AgentMemory) snapshots(ctx context.Context) (*SnapshotList, error) {
	out := &SnapshotList{Snapshots: []SnapshotInfo{}}
	dir := &snapshotDir{m: m, fs: m.turns().files}
	defer dir.close()
	want, versions, err := m.lookForSnapshots(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		info, err := dir.info(ctx, version, want)
		if errors.Is(err, fs.ErrNotExist) {
			continue // retention has removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		out.Snapshots = append(out.Snapshots, info)
	}
	return out, nil
}

// lookForSnapshots opens the folder, if there is one, and says what versions it has.
func (m *AgentMemory) lookForSnapshots(ctx context.Context, dir *snapshotDir) (*expectation, []int64, error) {
	kinds := pointKinds()
	want := &expectation{kinds: kinds[:], place: &[2]string{m.namespace, m.scope}}
	if err := m.expect(ctx, want); err != nil {
		return nil, nil, err
	}
	if err := dir.open(false); err != nil {
		return nil, nil, err
	}
	versions, err := dir.versions()
	return want, versions, err
}

// RestoreVersion replaces the whole memory by a snapshot, see Deserialize: points,
// vectors, expiry, earlier versions, relations and policy. Damage is ErrValidation;
// then nothing has changed.
func (m *AgentMemory) RestoreVersion(ctx context.Context, req RestoreRequest) (*loci.Receipt[Restored], error) {
	const op = "agent.restore_version"
	if req.Version < 1 {
		return nil, errs.WithOp(op, errs.Invalid("version", "must be 1 or more, not %d", req.Version))
	}
	out, err := m.replacing(ctx, op, func(work context.Context) (*loci.Receipt[Restored], error) {
		dir := &snapshotDir{m: m, fs: m.turns().files}
		defer dir.close()
		want, versions, err := m.lookForSnapshots(work, dir)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(versions, req.Version) {
			return nil, noSnapshot(req.Version)
		}
		out, _, err := m.restore(work, op, dir, req.Version, want)
		return out, err
	})
	return out, errs.WithOp(op, err)
}

func noSnapshot(version int64) error {
	return &errs.Error{Code: errs.NotFound, Field: "version", Message: fmt.Sprintf("there is no snapshot %d", version)}
}

// RestoreLatest is RestoreVersion for the latest snapshot that can be used; warnings
// name the newer ones. It is ErrNotFound when there is none, and ErrValidation when
// none can be used.
func (m *AgentMemory) RestoreLatest(ctx context.Context) (*loci.Receipt[Restored], error) {
	const op = "agent.restore_latest"
	out, err := m.replacing(ctx, op, func(work context.Context) (*loci.Receipt[Restored], error) {
		dir := &snapshotDir{m: m, fs: m.turns().files}
		defer dir.close()
		want, versions, err := m.lookForSnapshots(work, dir)
		if err != nil {
			return nil, err
		}
		var warnings []string
		for _, version := range slices.Backward(versions) {
			out, unusable, err := m.restore(work, op, dir, version, want)
			switch {
			case err == nil:
				out.Value.Warnings = warnings
				return out, nil
			case !unusable:
				return nil, err
			case errs.CodeOf(err) == errs.NotFound:
				continue // retention has removed it meanwhile
			}
			warnings = append(warnings, fmt.Sprintf("snapshot %d was not used: %s", version, reasonOf(err)))
		}
		if len(warnings) == 0 {
			return nil, &errs.Error{Code: errs.NotFound, Message: "there is no snapshot"}
		}
		return nil, &errs.Error{Code: errs.Validation, Message: fmt.Sprintf("none of the %d snapshots can be used; %s", len(warnings), warnings[0])}
	})
	return out, errs.WithOp(op, err)
}

// restore replaces the memory by a snapshot. unusable says that the file is why it
// failed.
func (m *AgentMemory) restore(ctx context.Context, op string, dir *snapshotDir, version int64, want *expectation) (out *loci.Receipt[Restored], unusable bool, err error) {
	f, err := dir.file(version)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, noSnapshot(version)
	}
	if err != nil {
		return nil, true, errs.Wrap(errs.IO, err, "snapshot %d could not be opened", version)
	}
	defer f.Close()
	h, _, err := want.inspect(ctx, f)
	if err != nil {
		return nil, ctx.Err() == nil, err
	}
	out, err = m.replace(ctx, op, f, h, want)
	if err != nil {
		return nil, errs.CodeOf(err) == errs.Validation, err
	}
	out.Value.Version = version
	return out, false, nil
}
