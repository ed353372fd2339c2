package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCommitted wants the committed assembly to be what the generator writes.
func TestCommitted(t *testing.T) {
	// The cache of test results knows what a test opens, not what its children do.
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	for _, name := range append(sources, "go.mod") {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	names := map[string]string{"-out": "kernels_amd64.s", "-stubs": "kernels_amd64.go"}
	cmd := exec.Command("go", "run", ".", "-pkg", "transformer")
	for flag, name := range names {
		cmd.Args = append(cmd.Args, flag, filepath.Join(dir, name))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		// The first line tells the command, and so the directory.
		_, got, _ = bytes.Cut(got, []byte("\n"))
		_, want, _ = bytes.Cut(want, []byte("\n"))
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate in internal/transformer", name)
		}
	}
}
