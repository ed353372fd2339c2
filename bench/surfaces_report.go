package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// SurfacesReport is everything that a run over the surfaces measured. Parts that
// were not asked for are nil.
type SurfacesReport struct {
	Machine Machine        `json:"machine"`
	Seed    uint64         `json:"seed"`
	Records int            `json:"records"`
	MCP     *MCPReport     `json:"mcp,omitempty"`
	Calls   *CallsReport   `json:"calls,omitempty"`
	Load    *LoadReport    `json:"load,omitempty"`
	Writers *WritersReport `json:"writers,omitempty"`
}

// MCPReport is the life of an MCP server on standard input and output.
type MCPReport struct {
	Starts     int     `json:"starts"`
	Initialize Latency `json:"initialize"` // from the start of the process to the answer
	Recall     Latency `json:"recall"`     // the first one
	Exit       Latency `json:"exit"`       // from the end of standard input
}

// CallsReport is one recall through each way in, and a snapshot of a context that
// has not changed, from another process through the socket.
type CallsReport struct {
	Library  Latency `json:"library"`  // DB.Search
	Table    Latency `json:"table"`    // the operation, JSON in and out, in the same process
	Attached Latency `json:"attached"` // from another process through the local socket
	HTTP     Latency `json:"http"`     // from another process
	Snapshot Latency `json:"snapshot"`
}

// LoadReport is what many HTTP clients met.
type LoadReport struct {
	Clients    int                `json:"clients"`
	Seconds    float64            `json:"s"`
	Errors     int                `json:"errors"`
	FirstError string             `json:"first_error,omitempty"`
	Calls      map[string]Latency `json:"calls"` // by operation, and "all"
	ResidentMB []float64          `json:"resident_mb"`
}

// WritersReport is what was found of what several processes wrote.
type WritersReport struct {
	Processes int     `json:"processes"`
	Each      int     `json:"each"`
	Found     int     `json:"found"`
	Seconds   float64 `json:"s"`
}

// WriteJSON writes the report as one JSON document.
func (r *SurfacesReport) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

// WriteText writes the report as aligned tables.
func (r *SurfacesReport) WriteText(w io.Writer) error {
	var b strings.Builder
	r.Machine.write(&b)
	fmt.Fprintf(&b, "seed     %d, %d records\n", r.Seed, r.Records)
	line := func(name string, l Latency, note string) {
		fmt.Fprintf(&b, "%-22s %6d  p50 %9s  p95 %9s  p99 %9s  max %9s%s\n", name, l.Samples,
			duration(l.P50), duration(l.P95), duration(l.P99), duration(l.Max), note)
	}
	if m := r.MCP; m != nil {
		b.WriteString("\nmcp\n")
		line("initialize", m.Initialize, "")
		line("first recall", m.Recall, "")
		line("exit", m.Exit, "")
	}
	if c := r.Calls; c != nil {
		b.WriteString("\none recall\n")
		more := func(l Latency) string { return fmt.Sprintf("  %+.0fµs at the median", l.P50-c.Library.P50) }
		line("library", c.Library, "")
		line("operation", c.Table, more(c.Table))
		line("attached process", c.Attached, more(c.Attached))
		line("HTTP", c.HTTP, more(c.HTTP))
		line("unchanged snapshot", c.Snapshot, "")
	}
	if l := r.Load; l != nil {
		fmt.Fprintf(&b, "\n%d clients for %.0f s, %d errors\n", l.Clients, l.Seconds, l.Errors)
		if l.FirstError != "" {
			fmt.Fprintf(&b, "the first one: %s\n", l.FirstError)
		}
		for _, name := range slices.Sorted(maps.Keys(l.Calls)) {
			c := l.Calls[name]
			line(name, c, fmt.Sprintf("  p99 is %.1f times p50", ratio(c.P99, c.P50)))
		}
		b.WriteString("memory of its own, MB:")
		for _, mb := range l.ResidentMB {
			fmt.Fprintf(&b, " %.0f", mb)
		}
		b.WriteByte('\n')
	}
	if x := r.Writers; x != nil {
		fmt.Fprintf(&b, "\n%d processes wrote %d each in %.1f s; %d are there\n", x.Processes, x.Each, x.Seconds, x.Found)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
