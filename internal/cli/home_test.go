package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
)

// A home directory that is not named, that is a file, and that cannot be written:
// what needs none works, all else says what to do, and nothing is made elsewhere.
func TestNoHome(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	const unnamed, beAFile, readOnly = "unnamed", "a file", "read-only"
	homes := map[string]func() (string, error){
		unnamed: func() (string, error) { return "", errors.New("none") }, beAFile: func() (string, error) { return file, nil }, readOnly: func() (string, error) { return locked, nil },
	}
	if writable(locked) {
		delete(homes, readOnly) // nothing is read-only to an administrator, or on this system
	}
	for name, home := range homes {
		ask := func(stdin string, args ...string) outcome {
			return cmdLine{stdin: stdin, args: args, deps: func(d *Deps) { d.HomeDir = home }}.run(t)
		}
		for _, line := range []string{"version", "schema recall", "schema --openapi", "config", "config --json", "where", "where --json", "completion bash", "help recall", "call --help"} {
			if got := ask("", words(line)...); got.code != op.ExitOK || got.stdout == "" {
				t.Errorf("%s: loci %s: %+v", name, line, got)
			}
		}
		for _, line := range []string{"remember x", "recall x", "health", "call health", "serve", "export -", "doctor"} {
			got := ask("", words(line)...)
			said := got.stdout + got.stderr
			if got.code == op.ExitOK || !strings.Contains(said, "--data") && !strings.Contains(said, "loci doctor") {
				t.Errorf("%s: loci %s: %+v", name, line, got)
			}
		}
		doctor := ask("", "doctor").stdout
		want := map[string]string{unnamed: "none is named, and there is no home directory", beAFile: "not a directory", readOnly: "cannot be written"}[name]
		if !strings.Contains(doctor, "trouble  data directory: ") || !strings.Contains(doctor, want) {
			t.Errorf("%s: %s", name, doctor)
		}
		// A client goes on, whatever became of its user's home.
		if got := ask(`{"session_id":"s","cwd":"/","prompt":"is there a tide?"}`, "hook", "prompt"); got.code != op.ExitOK || got.stdout != "" || got.stderr == "" {
			t.Errorf("%s: hook: %+v", name, got)
		}
		// With a directory named there is nothing to complain of.
		data := filepath.Join(t.TempDir(), "data")
		if got := ask("", "remember", "x", "--data", data); got.code != op.ExitOK {
			t.Errorf("%s: with --data: %+v", name, got)
		}
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("%v was made where it ran, %v", left, err)
	}
}
