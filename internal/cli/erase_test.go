package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
)

// TestEraseAsks holds that nothing is erased unasked, nor by a flag whose value was
// lost on the way.
func TestEraseAsks(t *testing.T) {
	data := "--data=" + filepath.Join(t.TempDir(), "data")
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := cmdLine{args: append([]string{data, "--embedder=none"}, args...)}.run(t)
		if got.code != code {
			t.Fatalf("loci %s: %+v", strings.Join(args, " "), got)
		}
		return got
	}
	run(0, "remember", "The harbour master is Ada.")
	for _, args := range [][]string{
		{"erase", "--all"},
		{"erase", "--subject", "Ada", "--erase-mentions"},
		{"erase", `{"all":true}`},
		{"erase", "--input", "-"},
		{"erase", "-"},
		{"erase", "--subject", "", "--yes"},
		{"erase", "--ids", "", "--yes"},
		{"erase", "--mentions", "", "--all", "--yes"},
		{"erase", "--tags", "", "--all", "--yes"},
		{"erase", "--kinds", "", "--all", "--yes"},
		{"memories", "delete-by-filter", "--all", "--tags", ""},
		{"memories", "delete-by-filter", "--all", "--kinds", ""},
		{"memories", "delete-by-filter", "--all", "--where", "[]"},
		{"graph", "delete-by-filter", "--all", "--tags", ""},
		{"notes", "delete-by-filter", "--all", "--tags", ""},
	} {
		run(op.ExitUsage, args...)
	}
	if got := run(0, "erase", "--subject", "Ada", "--erase-mentions", "--dry-run"); !strings.Contains(got.stdout, "Would erase 1 record") {
		t.Errorf("%+v", got)
	}
	if got := run(op.ExitUsage, "forget", "1"); !strings.Contains(got.stderr, "erase") {
		t.Errorf("%+v", got)
	}
	if got := run(0, "erase", "--subject", "Ada", "--erase-mentions", "--yes"); !strings.Contains(got.stdout, "Erased 1 record") {
		t.Errorf("%+v", got)
	}
}
