//go:build unix

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// TestSocketFile holds where the socket lies, that it and the lock file are the
// user's alone, and that both are cleared up.
func TestSocketFile(t *testing.T) {
	short := t.TempDir()
	long := filepath.Join(t.TempDir(), strings.Repeat("deep", 30))
	runtimeDir := t.TempDir()
	if len(runtimeDir) > 60 {
		t.Skip("the temporary folder's path is too long for a socket")
	}
	notRuntime := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notRuntime, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir, runtime, under string
	}{
		{short, "", short},
		{long, runtimeDir, filepath.Join(runtimeDir, "loci")},
		{long, notRuntime, filepath.Join(os.TempDir(), "loci-")},
	} {
		o := quiet()
		o.RuntimeDir = tt.runtime
		m, err := Open(t.Context(), tt.dir, o)
		if err != nil {
			t.Fatal(err)
		}
		path := m.place.server.socket.path
		if !strings.HasPrefix(path, tt.under) {
			t.Errorf("the socket is %s", path)
		}
		for _, file := range []string{path, filepath.Join(tt.dir, store.LockFile)} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", file, info, err)
			}
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || tt.dir != short && info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info, err)
		}
		b := mustOpen(t, tt.dir, o)
		mustCall(t, b, "health", "")
		if err := errors.Join(b.Close(), m.Close()); err != nil {
			t.Error(err)
		}
		for _, file := range []string{path, path + makingSuffix} {
			if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", file, err)
			}
		}
		if info, ok := store.Holder(tt.dir); ok {
			t.Errorf("the lock file still names %+v", info)
		}
	}
}

// TestForeignRuntimeFolder holds that a folder is refused that is no folder of
// the user's own.
func TestForeignRuntimeFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := ownFolder(filepath.Join(dir, "link")); err == nil {
		t.Error("a link was taken")
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := ownFolder(open); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
}
