package main

import (
	"encoding/json"
	"testing"

	"github.com/loci-memory/loci/bench"
)

// TestBenchSurfaces runs a small benchmark through real processes. What it says of
// time is not looked at.
func TestBenchSurfaces(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a dozen processes")
	}
	raw, err := program(t, "--json", "--quiet", "--embedder", "static", "bench", "surfaces",
		"--records", "300", "--starts", "1", "--calls", "60", "--load", "300ms", "--clients", "4", "--writes", "50").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r bench.SurfacesReport
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if r.Records != 300 || r.MCP == nil || r.MCP.Initialize.Samples != 1 || r.Calls == nil || r.Load == nil || r.Writers == nil {
		t.Fatalf("%s", raw)
	}
	for _, l := range []bench.Latency{r.Calls.Library, r.Calls.Table, r.Calls.Attached, r.Calls.HTTP, r.Calls.Snapshot} {
		if l.Samples != 60 || l.P50 <= 0 {
			t.Errorf("%+v", r.Calls)
		}
	}
	if r.Load.Errors > 0 || r.Load.Calls["all"].Samples == 0 {
		t.Errorf("%+v", r.Load)
	}
	if r.Writers.Found != 100 {
		t.Errorf("%+v", r.Writers)
	}
}
