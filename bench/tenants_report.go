package bench

import (
	"fmt"
	"io"
	"strings"
)

// TenantsReport is everything that a run over many tenants measured.
type TenantsReport struct {
	Machine   Machine       `json:"machine"`
	Seed      uint64        `json:"seed"`
	Each      int           `json:"each"` // records of a tenant
	Dimension int           `json:"dimension"`
	Stores    []TenantStore `json:"stores"`
}

// TenantStore is what one store costs.
type TenantStore struct {
	Tenants   int          `json:"tenants"`
	Together  bool         `json:"together"` // all in one namespace, where a tenant is a tag
	Records   int          `json:"records"`
	Load      *Throughput  `json:"load"`    // without vectors
	Vectors   *Throughput  `json:"vectors"` // their making and storing
	DiskBytes int64        `json:"disk_bytes"`
	Open      TenantOpen   `json:"open"` // the median of each figure
	Calls     []TenantCall `json:"calls"`

	opened []TenantOpen
}

// TenantOpen is what a fresh process found: opening with an embedder, and one hybrid
// search of one tenant.
type TenantOpen struct {
	OpenMS        float64 `json:"open_ms"`
	FirstAnswerMS float64 `json:"first_answer_ms"` // from the beginning
	Memory        Memory  `json:"memory"`          // after it
	Handles       int     `json:"handles"`         // open files, sockets and the like of the process; 0: not known
}

// TenantCall is what one tenant's calls cost, each time another's.
type TenantCall struct {
	What       string  `json:"what"`
	Latency    Latency `json:"latency"`
	CPUMicros  float64 `json:"cpu_us"`      // of the whole process, a call
	AllocBytes float64 `json:"alloc_bytes"` // a call
}

// settleOpen keeps the median of each figure.
func (s *TenantStore) settleOpen() {
	of := func(f func(TenantOpen) float64) float64 { return median(s.opened, f) }
	s.Open = TenantOpen{
		OpenMS: of(func(o TenantOpen) float64 { return o.OpenMS }), FirstAnswerMS: of(func(o TenantOpen) float64 { return o.FirstAnswerMS }),
		Handles: int(of(func(o TenantOpen) float64 { return float64(o.Handles) })),
		Memory: Memory{
			ResidentMB:  of(func(o TenantOpen) float64 { return o.Memory.ResidentMB }),
			AnonymousMB: of(func(o TenantOpen) float64 { return o.Memory.AnonymousMB }),
			MappedMB:    of(func(o TenantOpen) float64 { return o.Memory.MappedMB }),
		},
	}
}

// WriteJSON writes the report as one JSON document.
func (r *TenantsReport) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

// WriteText writes the report as aligned tables: a line a store.
func (r *TenantsReport) WriteText(w io.Writer) error {
	var b strings.Builder
	r.Machine.write(&b)
	fmt.Fprintf(&b, "seed     %d, %d records a tenant, vectors of %d numbers\n", r.Seed, r.Each, r.Dimension)
	name := func(s *TenantStore) string {
		if s.Together {
			return fmt.Sprintf("%d in one namespace", s.Tenants)
		}
		return fmt.Sprintf("%d namespaces", s.Tenants)
	}
	rows := [][]string{{"tenants", "load: CPU us a record", "vectors: the same", "disk, bytes a record", "open", "first answer", "resident MB", "of its own", "handles"}}
	for i := range r.Stores {
		s := &r.Stores[i]
		each := func(t *Throughput) string { return fmt.Sprintf("%.1f", ratio(1e6*t.CPUSeconds, float64(t.Records))) }
		rows = append(rows, []string{name(s), each(s.Load), each(s.Vectors), fmt.Sprintf("%.0f", ratio(float64(s.DiskBytes), float64(s.Records))),
			fmt.Sprintf("%.1f ms", s.Open.OpenMS), fmt.Sprintf("%.1f ms", s.Open.FirstAnswerMS),
			fmt.Sprintf("%.1f", s.Open.Memory.ResidentMB), fmt.Sprintf("%.1f", s.Open.Memory.AnonymousMB), fmt.Sprint(s.Open.Handles)})
	}
	table(&b, rows)
	b.WriteString("\none tenant's calls: p50, p95, CPU of a call, KB allocated\n")
	rows = [][]string{{"call", "tenants", "p50", "p95", "CPU", "KB"}}
	if len(r.Stores) > 0 {
		for c := range r.Stores[0].Calls {
			for i := range r.Stores {
				x := &r.Stores[i].Calls[c]
				rows = append(rows, []string{x.What, name(&r.Stores[i]), duration(x.Latency.P50), duration(x.Latency.P95), cpu(x.CPUMicros), fmt.Sprintf("%.1f", x.AllocBytes/1024)})
			}
		}
	}
	table(&b, rows)
	_, err := io.WriteString(w, b.String())
	return err
}
