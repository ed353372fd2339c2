package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/pager"
)

// renderContextState shows the results of operations that count, note and
// advise; false for one without a form of its own.
func renderContextState(w, notes *Painter, name string, raw json.RawMessage) (bool, error) {
	switch strings.TrimPrefix(name, contextPrefix) {
	case "status":
		return true, render(raw, w, renderContextStatus)
	case "dashboard":
		return true, render(raw, w, func(w *Painter, m pager.Dashboard) { renderDashboard(w, &m) })
	case "metrics":
		return true, render(raw, w, renderMetrics)
	case "usage":
		return true, render(raw, w, renderUsage)
	case "record_usage":
		return true, render(raw, w, func(w *Painter, r pager.RecordUsageResult) {
			if r.Duplicate {
				w.Line("That call had been recorded before; nothing was counted")
				return
			}
			w.Line(fmt.Sprintf("%d input tokens recorded, %s of them from the cache", r.Record.BilledInput, percent(r.Record.HitRate)))
		})
	case "fold":
		return true, render(raw, w, renderFold)
	case "organize":
		return true, render(raw, w, renderOrganize)
	case "checkpoint":
		return true, render(raw, w, func(w *Painter, r pager.CheckpointResult) {
			c := r.Checkpoint
			w.Line(fmt.Sprintf("Checkpoint %s of %s: %d in core, %d in working, %d in the archive", w.Bold(idText(c.CheckpointID)),
				plural(c.Pages, "page", "pages"), c.Core, c.Working, c.Archive))
		})
	case "checkpoints":
		return true, render(raw, w, renderCheckpoints)
	case "restore":
		return true, render(raw, w, func(w *Painter, r pager.RestoreResult) {
			if !r.Changed {
				w.Line("All is as it was at checkpoint " + w.Bold(idText(r.CheckpointID)))
				return
			}
			w.Line(fmt.Sprintf("Checkpoint %s restored: %s got their content back, %s moved", w.Bold(idText(r.CheckpointID)),
				plural(len(r.Restored), "page", "pages"), plural(len(r.Moved), "page", "pages")))
			if len(r.Forgotten) > 0 {
				w.Line(w.Yellow(plural(len(r.Forgotten), "page was", "pages were") + " removed for good since"))
			}
			renderEvicted(w, r.Evicted)
		})
	case "forget":
		return true, render(raw, w, func(w *Painter, r pager.ForgetResult) {
			w.Line(fmt.Sprintf("Page %s removed for good, with %s", w.Bold(clean(r.PageID)), plural(r.Revisions, "revision", "revisions")))
		})
	case "schedule":
		return true, render(raw, w, renderSchedule)
	case "prepare_task":
		return true, render(raw, w, func(w *Painter, r pager.PrepareTaskResult) {
			renderPageRecall(w, notes, &r.Recall)
			renderSchedule(w, r.Schedule)
		})
	case "policy_tick":
		return true, render(raw, w, renderPolicyTick)
	}
	return false, nil
}

func percent(share *float64) string {
	if share == nil {
		return "none"
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + "%"
}

func renderContextStatus(w *Painter, r pager.StatusResult) {
	s := r.Snapshot
	tier := func(t pager.TierShare) string {
		return fmt.Sprintf("%d, %d bytes", t.Pages, t.Bytes)
	}
	budget := fmt.Sprintf("%d %s", r.Configuration.Budget, r.Configuration.Unit)
	if r.Configuration.Tokenizer != "" {
		budget += " of " + r.Configuration.Tokenizer
	}
	pairs := [][2]string{
		{"scope", strings.Join(r.Scope, " / ")},
		{"budget", budget},
		{"used", fmt.Sprintf("%d (%.0f%%, %s)", s.Pressure.Cost, 100*s.Pressure.Used, s.Pressure.Level)},
		{"core", tier(r.Counts.Core)},
		{"working", tier(r.Counts.Working)},
		{"archive", tier(r.Counts.Archive)},
		{"stable prefix", fmt.Sprintf("%d of %d bytes", s.StablePrefixBytes, s.TextBytes)},
		{"generation", strconv.FormatInt(s.Generation, 10)},
		{"policy", fmt.Sprintf("%s, from %d%% to %d%%, %s", r.Policy.Mode, r.Policy.ThresholdPct, r.Policy.TargetPct, r.Policy.Strategy)},
	}
	w.Pairs(pairs)
	for _, warning := range r.Warnings {
		w.Line(w.Yellow(clean(warning.Message)))
	}
	if len(r.Pages) == 0 {
		return
	}
	w.Line("")
	renderPageList(w, r.Pages)
	if r.NextCursor != 0 {
		w.Line(w.Dim(fmt.Sprintf("There are more: --after %d", r.NextCursor)))
	}
}

func renderMetrics(w *Painter, r pager.MetricsResult) {
	if len(r.Events) == 0 {
		w.Line("Nothing was published yet")
		return
	}
	rows := make([][]string, len(r.Events))
	for i := range r.Events {
		e := &r.Events[i]
		prefix := "kept"
		if !e.PrefixIntact {
			prefix = "changed"
		}
		rows[i] = []string{strconv.FormatInt(e.Generation, 10), moment(e.AtUS), strconv.Itoa(e.TextBytes), strconv.Itoa(e.InvalidatedBytes),
			strconv.Itoa(e.RewrittenBytes), prefix, operationsText(e.Operations)}
	}
	w.Table([]string{"GENERATION", "AT", "BYTES", "INVALIDATED", "REWRITTEN", "PREFIX", "BY"}, rows)
	t := r.Totals
	w.Line(w.Dim(fmt.Sprintf("%s in all: %d bytes invalidated, the prefix kept by %s · %d evictions, %d faults",
		plural(int(t.Renders), "change", "changes"), t.InvalidatedBytes, percent(t.IntactShare), t.Evictions, t.Faults)))
}

// operationsText names operations once each, with their pages.
func operationsText(ops []pager.Operation) string {
	var names []string
	pages := map[string][]string{}
	for _, o := range ops {
		if _, seen := pages[o.Name]; !seen {
			names = append(names, o.Name)
		}
		pages[o.Name] = append(pages[o.Name], o.PageID)
	}
	for i, name := range names {
		names[i] = strings.TrimSpace(name + " " + strings.Join(pages[name], " "))
	}
	return strings.Join(names, ", ")
}

func renderUsage(w *Painter, r pager.UsageResult) {
	for _, sum := range []struct {
		name string
		sum  pager.UsageSum
	}{{"billed", r.Totals.Provider}, {"simulated, billed by nobody", r.Totals.Simulated}} {
		if sum.sum.Calls > 0 || sum.name == "billed" {
			w.Line(fmt.Sprintf("%s: %s, %d input tokens, hit rate %s, %d output tokens", w.Bold(sum.name),
				plural(int(sum.sum.Calls), "call", "calls"), sum.sum.BilledInput, percent(sum.sum.HitRate), sum.sum.Output))
		}
	}
	if len(r.Records) == 0 {
		return
	}
	rows := make([][]string, len(r.Records))
	for i := range r.Records {
		u := &r.Records[i]
		rows[i] = []string{moment(u.AtUS), numberOr(u.Turn), numberOr(u.Step), strconv.FormatInt(u.InputTokens, 10), strconv.FormatInt(u.CacheReadTokens, 10),
			strconv.FormatInt(u.CacheWriteTokens, 10), strconv.FormatInt(u.OutputTokens, 10), percent(u.HitRate), u.Source}
	}
	w.Table([]string{"AT", "TURN", "STEP", "INPUT", "READ", "WRITTEN", "OUTPUT", "HIT RATE", "SOURCE"}, rows)
}

func numberOr(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func renderFold(w *Painter, r pager.FoldResult) {
	switch {
	case r.Changed && r.Milestone != nil:
		w.Line(fmt.Sprintf("%s folded into %s, %s; %s left in the outline", plural(len(r.Folded), "row", "rows"),
			w.Bold(clean(versionKey(r.Milestone.PageID, r.Milestone.Version))), clean(oneLine(r.Milestone.Title)), plural(r.Rows, "row", "rows")))
		renderEvicted(w, r.Evicted)
	case r.Deferred:
		w.Line("Nothing was folded yet: " + clean(r.Reason))
	default:
		w.Line(fmt.Sprintf("There is nothing to fold: the outline has %s", plural(r.Rows, "row", "rows")))
	}
}

func renderOrganize(w *Painter, r pager.OrganizeResult) {
	if len(r.Linked)+len(r.Skipped) == 0 {
		w.Line("No page is like it enough")
		return
	}
	var rows [][]string
	for _, p := range r.Linked {
		rows = append(rows, []string{versionKey(p.PageID, p.Version), strconv.FormatFloat(p.Similarity, 'f', 3, 64), "linked"})
	}
	for _, p := range r.Skipped {
		rows = append(rows, []string{versionKey(p.PageID, p.Version), strconv.FormatFloat(p.Similarity, 'f', 3, 64), "skipped: " + strings.ReplaceAll(p.Reason, "_", " ")})
	}
	w.Table([]string{"PAGE", "ALIKE", "WHAT"}, rows)
	w.Line(w.Dim("compared by " + clean(r.Method)))
	renderEvicted(w, r.Evicted)
}

func renderCheckpoints(w *Painter, r pager.CheckpointsResult) {
	if len(r.Checkpoints) == 0 {
		w.Line("There are no checkpoints")
		return
	}
	rows := make([][]string, len(r.Checkpoints))
	for i, c := range r.Checkpoints {
		rows[i] = []string{number(c.CheckpointID), moment(c.CreatedAtUS), strconv.Itoa(c.Pages), strconv.Itoa(c.Core), strconv.Itoa(c.Working), c.Label}
	}
	w.Table([]string{"ID", "CREATED", "PAGES", "CORE", "WORKING", "LABEL"}, rows)
	if r.NextCursor != 0 {
		w.Line(w.Dim(fmt.Sprintf("There are older ones: --after %d", r.NextCursor)))
	}
}

func renderSchedule(w *Painter, r pager.ScheduleResult) {
	figure := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	rows := make([][]string, len(r.Ranked))
	for i, e := range r.Ranked {
		name := e.ID
		if e.Holder {
			name += " (holder)"
		}
		rows[i] = []string{name, figure(e.Score), figure(e.QueueMS), figure(e.ComputeMS), figure(e.TransferMS), strconv.FormatInt(e.MissingBytes, 10)}
	}
	w.Table([]string{"EXECUTOR", "SCORE", "QUEUE MS", "COMPUTE MS", "TRANSFER MS", "MISSING BYTES"}, rows)
}

func renderPolicyTick(w *Painter, r pager.PolicyTickResult) {
	switch {
	case r.Triggered:
		w.Line(fmt.Sprintf("The policy ran (%s): from %d to %d, %s evicted", clean(r.Reason), r.Before, r.After, plural(len(r.Evicted), "page", "pages")))
		if r.Reached != nil && !*r.Reached {
			w.Line(w.Yellow(fmt.Sprintf("The target of %d was not reached: what is left may not go", r.Target)))
		}
		renderEvicted(w, r.Evicted)
	case r.Deferred:
		w.Line("The policy waits: " + clean(r.Reason))
	default:
		w.Line(fmt.Sprintf("Turn %d; the policy has nothing to do", r.Turns))
	}
}
