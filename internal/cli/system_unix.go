//go:build unix

package cli

import "golang.org/x/sys/unix"

// writable asks the system whether this process may write in dir, without
// trying it.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
