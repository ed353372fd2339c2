package bench

import (
	"bytes"
	"testing"
)

// TestRunTenants runs everything on a small scale: every search finds its record and
// no other tenant's, or the run fails.
func TestRunTenants(t *testing.T) {
	if testing.Short() {
		t.Skip("makes four stores")
	}
	report, err := RunTenants(t.Context(), TenantsOptions{Tenants: []int{1, 30}, Each: 20, Dimension: 8, Calls: 12, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Stores) != 4 {
		t.Fatalf("%+v", report)
	}
	for i, s := range report.Stores {
		if s.Tenants != []int{1, 30}[i/2] || s.Together != (i%2 == 1) || s.Records != 20*s.Tenants || s.Load.Records != s.Records || s.DiskBytes == 0 {
			t.Errorf("%+v", s)
		}
		if len(s.Calls) != 8 || s.Open.FirstAnswerMS < s.Open.OpenMS {
			t.Errorf("%+v", s)
		}
		for _, c := range s.Calls {
			if c.Latency.Samples != 12 {
				t.Errorf("%+v", c)
			}
		}
	}
	var text, json bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Error(err)
	}
	if err := report.WriteJSON(&json); err != nil {
		t.Error(err)
	}
	if text.Len() == 0 || json.Len() == 0 {
		t.Error("an empty report")
	}
}

// TestTenancy: both ways to keep tenants apart show each of them the same records.
func TestTenancy(t *testing.T) {
	c := NewCorpus(1, 60)
	for _, together := range []bool{false, true} {
		x := tenancy{tenants: 6, each: 10, together: together}
		seen := map[string]int{}
		for i := range 60 {
			in := x.input(c, i)
			f := x.filter(i / 10)
			if *in.Namespace != *f.Namespace || in.Judgment != c.Record(i).Judgment {
				t.Errorf("record %d: %+v, filter %+v", i, in, f)
			}
			seen[*in.Namespace]++
			if together && in.Tags[len(in.Tags)-1] != f.Tags[0] || !together && len(f.Tags) > 0 {
				t.Errorf("record %d: %+v, filter %+v", i, in.Tags, f.Tags)
			}
		}
		if want := map[bool]int{false: 6, true: 1}[together]; len(seen) != want {
			t.Errorf("%d namespaces, want %d", len(seen), want)
		}
		calls := map[int]bool{}
		for n := range 6 {
			calls[x.tenant(n)] = true
		}
		if len(calls) != 6 {
			t.Errorf("six calls are about %d tenants", len(calls))
		}
	}
}

func TestTenantsOptions(t *testing.T) {
	for _, o := range []TenantsOptions{{Tenants: []int{0}}, {Each: -1}, {Dimension: -1}, {Calls: -1}} {
		if _, err := RunTenants(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
