package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// ContextReport is everything that a run over the context store measured. Parts
// that were not asked for are nil.
type ContextReport struct {
	Machine  Machine         `json:"machine"`
	Seed     uint64          `json:"seed"`
	Windows  []WindowReport  `json:"windows,omitempty"`
	Random   *RandomReport   `json:"random,omitempty"`
	Sessions []SessionReport `json:"sessions,omitempty"`
	// Assumptions are those of Sessions.
	Assumptions []string      `json:"assumptions,omitempty"`
	Recall      *RecallReport `json:"recall,omitempty"`
}

// WriteJSON writes the report as one JSON document.
func (r *ContextReport) WriteJSON(w io.Writer) error {
	return writeJSON(w, r)
}

// WriteText writes the report as aligned tables.
func (r *ContextReport) WriteText(w io.Writer) error {
	var b strings.Builder
	r.Machine.write(&b)
	fmt.Fprintf(&b, "seed     %d\n", r.Seed)
	for _, write := range []func(*strings.Builder){r.writeWindows, r.writeRandom, r.writeSessions, r.writeRecall} {
		write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes rows of cells, the first of which is the head.
func table(b *strings.Builder, rows [][]string) {
	b.WriteString("\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
}

func (r *ContextReport) writeWindows(b *strings.Builder) {
	if len(r.Windows) == 0 {
		return
	}
	b.WriteString("\nwindow of 64 KiB after a change: p50 and p95\n")
	rows := [][]string{{"counted in", "changed", "evicted", "change", "snapshot", "both", "bare commit", "commit of the text", "snapshot over bare", "CPU: change", "snapshot", "bare commit", "KB alloc"}}
	before := ""
	for i := range r.Windows {
		w := &r.Windows[i]
		name := w.Measure
		if name == before {
			name = ""
		}
		before = w.Measure
		over := ""
		if w.Commit != nil {
			over = duration(w.Snapshot.P50-w.Commit.P50) + " " + duration(w.OverCommit())
		}
		rows = append(rows, []string{name, w.Case, fmt.Sprint(w.Evicted), pair(w.Change), pair(&w.Snapshot), pair(w.Both), pair(w.Commit), pair(w.CommitText),
			over, cpu(w.ChangeCPU), cpu(w.SnapshotCPU), cpu(w.CommitCPU), fmt.Sprintf("%.1f", w.SnapshotAlloc/1024)})
	}
	table(b, rows)
}

// cpu writes processor time, nothing for none.
func cpu(us float64) string {
	if us == 0 {
		return ""
	}
	return duration(us)
}

// pair writes the p50 and the p95 of a latency, nothing for none.
func pair(l *Latency) string {
	if l == nil {
		return ""
	}
	return duration(l.P50) + " " + duration(l.P95)
}

func (r *ContextReport) writeRandom(b *strings.Builder) {
	x := r.Random
	if x == nil {
		return
	}
	fmt.Fprintf(b, "\nrandom   %d operations over %d pages in %.1f s (%.1f CPU s), %d refused", x.Operations, x.Pages, x.WallSeconds, x.CPUSeconds, x.Failed)
	for i, code := range slices.Sorted(maps.Keys(x.Codes)) {
		fmt.Fprintf(b, "%s %s %d", []string{":", ","}[min(i, 1)], code, x.Codes[code])
	}
	fmt.Fprintf(b, "\n         budget overruns %d, prefix breaks %d in %d renders, unexplained %d\n", x.Overruns, x.Breaks, x.Renders, x.Unexplained)
	fmt.Fprintf(b, "         live heap %.1f MB before, %.1f MB after\n", x.HeapBefore, x.HeapAfter)
}

func (r *ContextReport) writeSessions(b *strings.Builder) {
	if len(r.Sessions) == 0 {
		return
	}
	b.WriteString("\nSIMULATED SESSIONS, an estimate and no measurement of any provider:\n")
	for _, a := range r.Assumptions {
		fmt.Fprintf(b, "- %s\n", a)
	}
	for i := range r.Sessions {
		r.Sessions[i].writeText(b)
	}
}

func (s *SessionReport) writeText(b *strings.Builder) {
	waits := "the policy does not wait for the cache"
	if s.Waits {
		waits = fmt.Sprintf("the policy waits while the cache is warm (%d times)", s.Deferred)
	}
	fmt.Fprintf(b, "\nsession  budget %d bytes, %d steps, %s; %.2f bytes a token\n", s.Budget, s.Steps, waits, s.BytesPerToken)
	fmt.Fprintf(b, "         %d evictions, %d faults; %.0f %% of the five best hits are in Loci's window\n", s.Evictions, s.Faults, 100*s.InWindow)
	for _, x := range s.Resent {
		fmt.Fprintf(b, "         %s: %d steps, prefix broken at %d, %d of its bytes sent again\n", x.Steps, x.Count, x.Breaks, x.Bytes)
	}
	for _, h := range s.Hosts {
		fmt.Fprintf(b, "         %s: %.0f bytes, unchanged at %d steps, %.0f %% of a text common with the one before\n", h.Host, h.Bytes, h.Unchanged, 100*h.Common)
	}
	head := []string{"simulated", "host's own"}
	for _, h := range s.Hosts {
		head = append(head, h.Host+": hit", "cost")
	}
	rows := [][]string{append(head, "paid: Loci / naive", "by page / naive")}
	for i := 0; i < len(s.Bills); i += len(s.Hosts) {
		bills := s.Bills[i : i+len(s.Hosts)]
		row := []string{bills[0].Profile, fmt.Sprint(bills[0].Before)}
		for _, x := range bills {
			row = append(row, fmt.Sprintf("%.0f %%", 100*x.HitRate), fmt.Sprintf("%.3f", x.Cost))
		}
		naive := bills[slices.IndexFunc(bills, func(x BillReport) bool { return x.Host == hostNaive })]
		rows = append(rows, append(row, fmt.Sprintf("%.2f", ratio(bills[0].Paid, naive.Paid)), fmt.Sprintf("%.2f", ratio(bills[1].Paid, naive.Paid))))
	}
	table(b, rows)
}

func (r *ContextReport) writeRecall(b *strings.Builder) {
	x := r.Recall
	if x == nil {
		return
	}
	fmt.Fprintf(b, "\nrecall   over %d pages of %.0f bytes on the average, budget %d bytes; bare commit p50 %s, p95 %s\n", x.Pages, x.PageBytes, x.Budget,
		duration(x.Commit.P50), duration(x.Commit.P95))
	if l := x.Load; l != nil {
		fmt.Fprintf(b, "         ingested in %.1f s (%.1f CPU s)\n", l.WallSeconds, l.CPUSeconds)
	}
	rows := [][]string{{"query", "words", "admitted", "evicted", "recall p50", "p95", "p99", "CPU", "KB alloc", "search p50", "p95"}}
	for _, q := range x.Queries {
		rows = append(rows, []string{q.Query, fmt.Sprintf("%.0f", q.Words), fmt.Sprintf("%.1f", q.Admitted), fmt.Sprintf("%.1f", q.Evicted),
			duration(q.Latency.P50), duration(q.Latency.P95), duration(q.Latency.P99), duration(q.CPU), fmt.Sprintf("%.0f", q.Alloc/1024),
			duration(q.Search.P50), duration(q.Search.P95)})
	}
	table(b, rows)
}
