package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
)

// throughHolder looks at a store that another process holds through that process.
// It is false where that cannot be done, after a finding that says why.
func (d *doctor) throughHolder(ctx context.Context, deep bool) bool {
	const check = "holder"
	h, ok := local.Look(d.dir)
	if !ok || d.app.settings.get("attach").Value == "false" {
		return false
	}
	who := fmt.Sprintf("process %d, since %s, loci %s, schema version %d, protocol %d",
		h.PID, time.UnixMicro(h.StartedAtUS).UTC().Format(time.RFC3339), orUnknown(h.Version), h.SchemaVersion, h.Protocol)
	if h.Problem != nil {
		d.add(check, levelTrouble, who+": "+d.app.failure(h.Problem).Message, "Other processes cannot attach to it, and have to wait until it ends.")
		return false
	}
	m, err := local.Dial(ctx, d.dir, &local.Options{Wait: time.Second, Log: d.app.Log()})
	if err != nil {
		d.add(check, levelTrouble, who+": "+d.app.failure(err).Message, "If it does not answer the next time either, end that process.")
		return false
	}
	defer m.Close() // which is of no consequence to what was found
	begin := time.Now()
	report, rebuilding, err := askHealth(ctx, m, deep)
	if err != nil {
		d.add(check, levelTrouble, who+": "+d.app.failure(err).Message, "If it does not answer the next time either, end that process.")
		return false
	}
	d.add(checkLock, levelOK, who+", holds the data and serves other processes; it answered in "+time.Since(begin).Round(10*time.Microsecond).String(), "")
	d.health(report, rebuilding)
	d.add("vectors", levelNote, "not looked at, since another process holds the data", "Ask for them with: loci embeddings status")
	return true
}

// askHealth asks for the store's counters and whether its index is being built.
func askHealth(ctx context.Context, caller op.Caller, deep bool) (*loci.HealthReport, bool, error) {
	in, err := marshal(map[string]bool{"deep": deep})
	if err != nil {
		return nil, false, err
	}
	out, err := caller.Call(ctx, "health", in)
	if err != nil {
		return nil, false, err
	}
	var report loci.HealthReport
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, false, errs.Wrap(errs.IO, err, "the answer cannot be read")
	}
	if out, err = caller.Call(ctx, "rebuild_progress", nil); err != nil {
		return nil, false, err
	}
	var progress struct {
		Active bool `json:"active"`
	}
	if err := json.Unmarshal(out, &progress); err != nil {
		return nil, false, errs.Wrap(errs.IO, err, "the answer cannot be read")
	}
	return &report, progress.Active, nil
}
