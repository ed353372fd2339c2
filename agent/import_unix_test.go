//go:build unix

package agent

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/loci-memory/loci"
)

// TestImportPipe holds that a pipe that nobody writes to is refused and not waited for.
func TestImportPipe(t *testing.T) { // C11
	m := openMemory(t, 4)
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	_, err := m.episodes.Import(t.Context(), ImportRequest{Path: path})
	wantField(t, err, loci.ErrValidation, "path")
}
