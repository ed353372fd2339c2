//go:build unix

package lociworker

import (
	"fmt"
	"syscall"
	"time"
)

// processorTime is that of the process so far, user and system.
func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("the processor time of the process: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
