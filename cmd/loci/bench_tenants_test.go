package main

import (
	"encoding/json"
	"testing"

	"github.com/loci-memory/loci/bench"
)

// TestBenchTenants runs a small benchmark whose stores are opened by real processes.
// What it says of time is not looked at.
func TestBenchTenants(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ten processes")
	}
	raw, err := program(t, "--json", "--quiet", "bench", "tenants", "--tenants", "3", "--each", "20", "--calls", "5", "--work", t.TempDir()).Output()
	if err != nil {
		t.Fatal(err)
	}
	var r bench.TenantsReport
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Stores) != 2 || r.Each != 20 {
		t.Fatalf("%s", raw)
	}
	for _, s := range r.Stores {
		if s.Records != 60 || s.Open.OpenMS <= 0 || s.Open.Memory.ResidentMB <= 0 || s.Open.Handles <= 0 || len(s.Calls) == 0 {
			t.Errorf("%+v", s)
		}
	}
}
