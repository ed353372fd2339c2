package cli

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
)

// TestDoctorAttached holds what doctor tells of a store that another process holds
// and serves, and of one that it may not attach to.
func TestDoctorAttached(t *testing.T) {
	dir := t.TempDir()
	m, err := local.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	got := cmdLine{args: words("doctor --deep --data " + dir)}.run(t)
	if got.code != 0 || !strings.Contains(got.stdout, "holds the data and serves other processes; it answered in") ||
		!strings.Contains(got.stdout, "integrity checked") {
		t.Errorf("%+v", got)
	}
	got = cmdLine{args: words("doctor --attach=false --data " + dir)}.run(t)
	if got.code != op.ExitLocked || !strings.Contains(got.stdout, "another process holds the data directory: process ") {
		t.Errorf("%+v", got)
	}
	// Every command goes through the holder, and one that needs the store itself
	// says whom to end.
	if got := (cmdLine{args: words("remember --data " + dir + " The-lamp-is-lit.")}).run(t); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := (cmdLine{args: words("recall --data " + dir + " lamp")}).run(t); got.code != 0 || !strings.Contains(got.stdout, "lamp") {
		t.Errorf("%+v", got)
	}
	if got := (cmdLine{args: words("export --wait 0s --data " + dir)}).run(t); got.code != op.ExitLocked || !strings.Contains(got.stderr, "in use by process") {
		t.Errorf("%+v", got)
	}
}
