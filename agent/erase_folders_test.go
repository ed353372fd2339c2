package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
)

// TestEraseTakesFolders: a folder of snapshots bears the names of a namespace and a
// scope, so it goes with the last snapshot, and the others stay.
func TestEraseTakesFolders(t *testing.T) {
	m := openMemory(t, 4)
	ctx := t.Context()
	for _, at := range [][2]string{{"ada", "ship"}, {"ada", "shore"}, {"ben", "ship"}} {
		other := must[*AgentMemory](t)(Open(ctx, m.db, Config{Namespace: at[0], Scope: at[1], Dimension: 4}))
		must[*loci.Receipt[Stored]](t)(other.Semantic().Put(ctx, fact(1, "a tide", x())))
		takeSnapshot(t, other)
	}
	folders := func() (names []string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(m.dir, "agent", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			rel, err := filepath.Rel(filepath.Join(m.dir, "agent"), name)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return names
	}
	want := func(what string, names ...string) {
		t.Helper()
		if got := folders(); !slices.Equal(got, names) {
			t.Errorf("%s: the folders are %q, not %q", what, got, names)
		}
	}
	want("before", "ada/ship", "ada/shore", "ben/ship")
	req := loci.EraseRequest{DryRun: true, Filter: loci.ReadFilter{Namespace: new("ada"), Scopes: []string{"ship"}}}
	must[*loci.EraseReport](t)(m.db.Erase(ctx, req))
	want("dry run", "ada/ship", "ada/shore", "ben/ship")
	req.DryRun = false
	must[*loci.EraseReport](t)(m.db.Erase(ctx, req))
	want("a scope", "ada/shore", "ben/ship")
	must[*loci.EraseReport](t)(m.db.Erase(ctx, loci.EraseRequest{Filter: loci.ReadFilter{Namespace: new("ada")}, EveryScope: true}))
	want("a namespace", "ben/ship")
	if _, err := os.Stat(filepath.Join(m.dir, "agent", "ada")); err == nil {
		t.Error("the namespace's folder is there")
	}

	// What an erasure left that was killed in between goes with the next vacuum.
	if err := os.MkdirAll(filepath.Join(m.dir, "agent", "ada", "ship"), 0o700); err != nil {
		t.Fatal(err)
	}
	must[*loci.VacuumReport](t)(m.db.Vacuum(ctx))
	want("vacuum", "ben/ship")
}
