package bench

import (
	"fmt"
	"io"
	"strings"
)

// AgentReport is everything that a run over agent memory measured. Parts that were
// not asked for are nil.
type AgentReport struct {
	Machine Machine `json:"machine"`
	Seed    uint64  `json:"seed"`
	// Single is of facts with vectors stored one after the other, Commit of bare
	// commits in between.
	Single *Latency `json:"single,omitempty"`
	Commit *Latency `json:"commit,omitempty"`
	// Batches is of facts with vectors, 1,000 at a time.
	Batches   *Throughput       `json:"batches,omitempty"`
	Queries   []FactQueryReport `json:"queries,omitempty"`
	Snapshots *SnapshotsReport  `json:"snapshots,omitempty"`
	Expiry    *ExpiryReport     `json:"expiry,omitempty"`
}

// FactQueryReport is the cost of exact queries for the ten nearest facts.
type FactQueryReport struct {
	Facts      int     `json:"facts"`
	Filter     string  `json:"filter"` // "none", "10 %", "1 %", "0.1 %"
	Latency    Latency `json:"latency"`
	CPUMicros  float64 `json:"cpu_us"`      // mean, of the whole process
	AllocBytes float64 `json:"alloc_bytes"` // mean
	// Wrong is how many of the Checked answers differ from a plain scan's.
	Wrong   int `json:"wrong"`
	Checked int `json:"checked"`
}

// SnapshotsReport is the cost of a snapshot and of its restore.
type SnapshotsReport struct {
	Facts           int     `json:"facts"`
	SnapshotSeconds float64 `json:"snapshot_s"`
	SnapshotMB      float64 `json:"snapshot_heap_mb"` // live heap above that before, at most
	RestoreSeconds  float64 `json:"restore_s"`
	RestoreMB       float64 `json:"restore_heap_mb"`
}

// ExpiryReport is what the sweep of many expired facts costs.
type ExpiryReport struct {
	Facts        int                `json:"facts"`
	Expired      int                `json:"expired"`
	Swept        int64              `json:"swept"`
	OpenSeconds  float64            `json:"open_s"`
	SweepSeconds float64            `json:"sweep_s"`
	SweepCPU     float64            `json:"sweep_cpu_s"` // of the whole process, readers included
	Reads        []ExpiryReadReport `json:"reads"`
}

// ExpiryReadReport is what readers notice of a sweep.
type ExpiryReadReport struct {
	Read     string  `json:"read"`
	Idle     Latency `json:"idle"`
	Sweeping Latency `json:"sweeping"`
}

// WriteJSON writes the report as one JSON document.
func (r *AgentReport) WriteJSON(w io.Writer) error {
	return writeJSON(w, r)
}

// WriteText writes the report as aligned tables.
func (r *AgentReport) WriteText(w io.Writer) error {
	var b strings.Builder
	r.Machine.write(&b)
	fmt.Fprintf(&b, "seed     %d\n", r.Seed)
	if r.Single != nil {
		fmt.Fprintf(&b, "\nstored   singly p50 %s, p95 %s; a bare commit p50 %s, p95 %s\n",
			duration(r.Single.P50), duration(r.Single.P95), duration(r.Commit.P50), duration(r.Commit.P95))
	}
	if r.Batches != nil {
		fmt.Fprintf(&b, "batches  %d facts, %.0f a second, %.0f a CPU second\n", r.Batches.Records, r.Batches.PerSecond, r.Batches.PerCPUSecond)
	}
	if len(r.Queries) > 0 {
		rows := [][]string{{"facts", "filter", "p50", "p95", "p99", "CPU", "KB alloc", "wrong"}}
		for _, q := range r.Queries {
			rows = append(rows, []string{fmt.Sprint(q.Facts), q.Filter, duration(q.Latency.P50), duration(q.Latency.P95), duration(q.Latency.P99),
				duration(q.CPUMicros), fmt.Sprintf("%.1f", q.AllocBytes/1024), fmt.Sprintf("%d of %d", q.Wrong, q.Checked)})
		}
		table(&b, rows)
	}
	if s := r.Snapshots; s != nil {
		fmt.Fprintf(&b, "\nsnapshot of %d facts %.2f s, live heap +%.0f MB; restore %.2f s, live heap +%.0f MB\n",
			s.Facts, s.SnapshotSeconds, s.SnapshotMB, s.RestoreSeconds, s.RestoreMB)
	}
	if x := r.Expiry; x != nil {
		fmt.Fprintf(&b, "\nexpiry   %d facts, opened in %.3f s; %d of %d expired swept in %.2f s, CPU %.2f s\n",
			x.Facts, x.OpenSeconds, x.Swept, x.Expired, x.SweepSeconds, x.SweepCPU)
		rows := [][]string{{"read", "idle p50", "p99", "sweeping p50", "p99", "p99 ratio", "reads"}}
		for _, d := range x.Reads {
			rows = append(rows, []string{d.Read, duration(d.Idle.P50), duration(d.Idle.P99), duration(d.Sweeping.P50), duration(d.Sweeping.P99),
				fmt.Sprintf("%.1f", ratio(d.Sweeping.P99, d.Idle.P99)), fmt.Sprint(d.Sweeping.Samples)})
		}
		table(&b, rows)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
