//go:build linux || darwin || freebsd

package diskspace

import "golang.org/x/sys/unix"

// Free is the space that is left for this user where dir lies.
func Free(dir string) (uint64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}
