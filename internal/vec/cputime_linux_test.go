package vec

import (
	"testing"

	"golang.org/x/sys/unix"
)

// cpuTime is how long this thread has computed, in nanoseconds. A neighbour on
// the machine moves it far less than it moves the clock.
func cpuTime(t testing.TB) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}
