package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is everything a run measured. Parts that were not asked for are nil.
type Report struct {
	Machine  Machine        `json:"machine"`
	Seed     uint64         `json:"seed"`
	Records  int            `json:"records"`
	Bytes    int64          `json:"text_bytes,omitempty"` // of the records' text; 0 when the store was there already
	Ingest   *Throughput    `json:"ingest,omitempty"`     // in batches of 1,000
	Search   []SearchReport `json:"search,omitempty"`
	Open     *OpenReport    `json:"open,omitempty"`
	Single   *Throughput    `json:"single,omitempty"`   // one write after the other
	Parallel *Throughput    `json:"parallel,omitempty"` // one write each from several goroutines
	Rebuild  *Throughput    `json:"rebuild,omitempty"`
	Disk     *DiskReport    `json:"disk,omitempty"`

	Spaced     []SpacedReport `json:"spaced,omitempty"`      // loading with and without vectors
	VectorSync *Throughput    `json:"vector_sync,omitempty"` // vectors of all records, made up
	Vector     []VectorReport `json:"vector,omitempty"`
	Embed      []EmbedReport  `json:"embed,omitempty"`
}

// Throughput says how much work was done at which cost.
type Throughput struct {
	Records      int      `json:"records"`
	WallSeconds  float64  `json:"wall_s"`
	CPUSeconds   float64  `json:"cpu_s"`
	PerSecond    float64  `json:"per_s"`
	PerCPUSecond float64  `json:"per_cpu_s"`
	AllocBytes   float64  `json:"alloc_bytes"`       // a record
	Latency      *Latency `json:"latency,omitempty"` // of one call
}

// SearchReport is the cost of one class of queries under one filter.
type SearchReport struct {
	Class      Class   `json:"class"`
	Filter     string  `json:"filter"` // "none", "10 %", "1 %", "0.1 %"
	Latency    Latency `json:"latency"`
	CPUMicros  float64 `json:"cpu_us"`      // mean, of the whole process
	AllocBytes float64 `json:"alloc_bytes"` // mean
	Hits       float64 `json:"hits"`        // mean; at most the limit of 10
}

// OpenReport is how soon a store answers after opening.
type OpenReport struct {
	OpenMS        float64 `json:"open_ms"`
	FirstAnswerMS float64 `json:"first_answer_ms"` // from the beginning of Open
	ProcessMS     float64 `json:"process_ms,omitempty"`
	Fresh         bool    `json:"fresh"` // measured in a process of its own
	AfterOpen     Memory  `json:"after_open"`
	AfterSearch   Memory  `json:"after_search"`
}

// DiskReport is the size of the data directory after Close.
type DiskReport struct {
	Bytes     int64            `json:"bytes"`
	PerRecord float64          `json:"bytes_per_record"`
	Parts     map[string]int64 `json:"parts"` // by first path element
}

// WriteJSON writes the report as one JSON document.
func (r *Report) WriteJSON(w io.Writer) error {
	return writeJSON(w, r)
}

// WriteText writes the report as aligned tables.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	r.Machine.write(&b)
	fmt.Fprintf(&b, "corpus   %d records, seed %d", r.Records, r.Seed)
	if r.Bytes > 0 {
		fmt.Fprintf(&b, ", %.1f MB of text", float64(r.Bytes)/1e6)
	}
	b.WriteString("\n")

	if r.Ingest != nil || r.Single != nil || r.Parallel != nil || r.Rebuild != nil {
		b.WriteString("\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "writing\trecords\tper s\tper CPU s\tKB alloc each\tcall p50\tp95\tp99\t")
		for _, row := range []struct {
			name string
			t    *Throughput
		}{{"batches of 1,000", r.Ingest}, {"one by one", r.Single}, {"8 goroutines", r.Parallel}, {"rebuild", r.Rebuild}} {
			if row.t == nil {
				continue
			}
			fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.1f\t", row.name, row.t.Records, row.t.PerSecond, row.t.PerCPUSecond, row.t.AllocBytes/1024)
			if l := row.t.Latency; l != nil {
				fmt.Fprintf(t, "%s\t%s\t%s\t\n", duration(l.P50), duration(l.P95), duration(l.P99))
			} else {
				fmt.Fprint(t, "\t\t\t\n")
			}
		}
		t.Flush()
	}
	if len(r.Search) > 0 {
		b.WriteString("\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "search, top %d\tfilter\tp50\tp95\tp99\tCPU\tKB alloc\thits\t\n", searchLimit)
		for i, s := range r.Search {
			name := string(s.Class)
			if i > 0 && r.Search[i-1].Class == s.Class {
				name = ""
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\t\n", name, s.Filter,
				duration(s.Latency.P50), duration(s.Latency.P95), duration(s.Latency.P99), duration(s.CPUMicros), s.AllocBytes/1024, s.Hits)
		}
		t.Flush()
	}
	if o := r.Open; o != nil {
		where := "in this process"
		if o.Fresh {
			where = fmt.Sprintf("in a fresh process (%.0f ms with its start and end)", o.ProcessMS)
		}
		fmt.Fprintf(&b, "\nopen     %.1f ms, first answer after %.1f ms, %s\n", o.OpenMS, o.FirstAnswerMS, where)
		if o.AfterOpen.ResidentMB > 0 {
			fmt.Fprintf(&b, "memory   %.0f MB resident after opening (%.0f anonymous, %.0f mapped), %.0f MB after a search\n",
				o.AfterOpen.ResidentMB, o.AfterOpen.AnonymousMB, o.AfterOpen.MappedMB, o.AfterSearch.ResidentMB)
		}
	}
	if d := r.Disk; d != nil {
		fmt.Fprintf(&b, "disk     %.1f MB, %.0f bytes a record:", float64(d.Bytes)/1e6, d.PerRecord)
		for i, name := range sortedKeys(d.Parts) {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s %.1f MB", name, float64(d.Parts[name])/1e6)
		}
		b.WriteString("\n")
	}
	r.writeVectors(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeVectors writes what was measured of vectors.
func (r *Report) writeVectors(b *strings.Builder) {
	table := func() *tabwriter.Writer {
		b.WriteString("\n")
		return tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	}
	if len(r.Spaced) > 0 {
		t := table()
		fmt.Fprintln(t, "writing, space\trecords\tper s\tper CPU s\tready after\t")
		for _, s := range r.Spaced {
			fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.2f s\t\n", s.Space, s.Records, s.PerSecond, s.PerCPUSecond, s.ReadySeconds)
		}
		if v := r.VectorSync; v != nil {
			fmt.Fprintf(t, "sync of all\t%d\t%.0f\t%.0f\t\t\n", v.Records, v.PerSecond, v.PerCPUSecond)
		}
		t.Flush()
	}
	if len(r.Vector) > 0 {
		t := table()
		fmt.Fprintf(t, "vectors, top %d\tfilter\tp50\tp95\tp99\tCPU\trecall\texact\t\n", searchLimit)
		for i, v := range r.Vector {
			name := v.Path
			if i > 0 && r.Vector[i-1].Path == v.Path {
				name = ""
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t", name, v.Filter, duration(v.Latency.P50), duration(v.Latency.P95), duration(v.Latency.P99), duration(v.CPUMicros))
			if v.Recall > 0 {
				fmt.Fprintf(t, "%.4f\t%.0f %%\t\n", v.Recall, 100*v.Exact)
			} else {
				fmt.Fprint(t, "\t\t\n")
			}
		}
		t.Flush()
	}
	if len(r.Embed) > 0 {
		t := table()
		fmt.Fprintln(t, "embedding\ttexts\tCPU each\twall each\tper CPU s\t")
		for _, e := range r.Embed {
			fmt.Fprintf(t, "%s\t%d\t%.1f ms\t%.1f ms\t%.0f\t\n", e.What, e.Texts, e.CPUMS, e.WallMS, e.PerCPUSec)
		}
		t.Flush()
	}
}

// duration writes microseconds with a unit that suits them.
func duration(us float64) string {
	switch {
	case us < 100:
		return fmt.Sprintf("%.1f us", us)
	case us < 1000:
		return fmt.Sprintf("%.0f us", us)
	case us < 100_000:
		return fmt.Sprintf("%.2f ms", us/1000)
	default:
		return fmt.Sprintf("%.0f ms", us/1000)
	}
}

// writeJSON writes a report as one JSON document.
func writeJSON(w io.Writer, report any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
