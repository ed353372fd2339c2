package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

func TestNotesWatch(t *testing.T) {
	data, notes := t.TempDir(), t.TempDir()
	run := func(ctx context.Context, out io.Writer, args ...string) (int, string) {
		var errOut bytes.Buffer
		code := Run(ctx, Deps{
			Args: append([]string{"--data", data, "--json"}, args...), Stdout: out, Stderr: &errOut,
			Stdin: bytes.NewReader(nil), LookupEnv: func(string) (string, bool) { return "", false }, WorkDir: noWorkDir,
		})
		return code, errOut.String()
	}
	if code, text := run(t.Context(), io.Discard, "notes", "watch"); code != 2 {
		t.Errorf("without a root: %d %s", code, text)
	}
	t.Chdir(filepath.Dir(notes))
	if code, text := run(t.Context(), io.Discard, "notes", "set-root", filepath.Base(notes)); code != 0 {
		t.Fatalf("a relative root: %d %s", code, text)
	}
	if code, text := run(t.Context(), io.Discard, "notes", "watch", "--scope", "a", "--scope", "b"); code != 2 {
		t.Errorf("two scopes: %d %s", code, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan int, 1)
	go func() {
		code, text := run(ctx, writer, "notes", "watch", "--poll", "1s", "--scope", "own")
		if code != 0 {
			t.Error(text)
		}
		writer.Close()
		done <- code
	}()
	lines := make(chan string, 10)
	go func() {
		for s := bufio.NewScanner(reader); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	next := func() (r loci.Receipt[loci.SyncReport]) {
		t.Helper()
		select {
		case line := <-lines:
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Error(line, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nothing was said")
		}
		return r
	}
	if r := next(); r.Value.Files != 0 {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(filepath.Join(notes, "a.md"), []byte("walrus"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := next(); r.Value.Added != 1 {
		t.Errorf("%+v", r)
	}
	if err := os.Remove(filepath.Join(notes, "a.md")); err != nil {
		t.Fatal(err)
	}
	if r := next(); r.Value.Deleted != 1 {
		t.Errorf("%+v", r)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("stopped with %d", code)
	}
}
