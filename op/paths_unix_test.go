//go:build unix

package op

import (
	"syscall"
	"testing"
)

// makePipe makes a pipe that nobody writes to: opening it waits for ever.
func makePipe(t *testing.T, path string) bool {
	t.Helper()
	return syscall.Mkfifo(path, 0o600) == nil
}
