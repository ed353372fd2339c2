package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNoDoctorForPaths holds that what a caller named wrongly is told as that, and
// that nobody is sent to look for the cause in a sound data directory.
func TestNoDoctorForPaths(t *testing.T) {
	folder := t.TempDir()
	run := func(args ...string) outcome {
		t.Helper()
		return cmdLine{args: append([]string{"--data", filepath.Join(folder, "data"), "--embedder=none"}, args...)}.run(t)
	}
	if got := run("remember", "The tide table is updated weekly."); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	export := filepath.Join(folder, "all.jsonl")
	if got := run("export", export); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{
		{"export", export},
		{"import", filepath.Join(folder, "nothing.jsonl")},
		{"import", "--from", "mem0", filepath.Join(folder, "nothing.json")},
		{"backup", export},
	} {
		if got := run(args...); got.code == 0 || strings.Contains(got.stderr, "doctor") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
