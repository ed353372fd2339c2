//go:build !linux && !darwin && !freebsd && !windows

package diskspace

// Free is not known here.
func Free(string) (uint64, bool) { return 0, false }
