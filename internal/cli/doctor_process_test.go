package cli

import (
	"bytes"
	"os"
	"regexp"
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
	// Every command goes through the holder, or through a copy that it makes, and
	// one that needs the store itself says whom to end.
	if got := (cmdLine{args: words("remember --data " + dir + " The-lamp-is-lit.")}).run(t); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := (cmdLine{args: words("recall --data " + dir + " lamp")}).run(t); got.code != 0 || !strings.Contains(got.stdout, "lamp") {
		t.Errorf("%+v", got)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	exported := cmdLine{args: words("export --all --namespace harbour --wait 0s --data " + dir)}.run(t)
	if direct, err := exportOf(t, m); err != nil || exported.code != 0 || untimed(exported.stdout) != untimed(direct) || !strings.Contains(direct, "lamp") {
		t.Errorf("%+v, want %s, %v", exported, direct, err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("an export leaves %v, %v", left, err)
	}
	if got := (cmdLine{args: words("export --attach=false --wait 0s --data " + dir)}).run(t); got.code != op.ExitLocked {
		t.Errorf("%+v", got)
	}
	if got := (cmdLine{args: words("import --wait 0s --data " + dir), stdin: exported.stdout}).run(t); got.code != op.ExitLocked || !strings.Contains(got.stderr, "in use by process") {
		t.Errorf("%+v", got)
	}
}

// untimed is an export without the time at which it was made.
func untimed(text string) string {
	return regexp.MustCompile(`"exported_at_us":\d+`).ReplaceAllString(text, "")
}

// exportOf is what the holder itself would export.
func exportOf(t *testing.T, m *local.Memory) (string, error) {
	t.Helper()
	var b bytes.Buffer
	_, err := m.DB().Export(t.Context(), &b, nil)
	return b.String(), err
}
