// Package crash kills a child process without warning while it writes and
// gives what the child had reported by then. The child is the test binary
// itself, run again.
//
//	func TestMain(m *testing.M) {
//		crash.Child(func(report func(string)) { ...write and report... })
//		os.Exit(m.Run())
//	}
//
//	lines, err := crash.Run(ctx, wait, "DIR="+dir)
package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// marker is the environment variable that makes the test binary a child.
const marker = "LOCI_CRASH_CHILD"

// Child runs work and ends the process when this process is a child; else it
// returns. Each line given to report is known to the parent once report has
// returned, even if the child is killed at once.
func Child(work func(report func(line string))) {
	if os.Getenv(marker) == "" {
		return
	}
	work(func(line string) {
		// One write of the file, unbuffered: it is in the pipe or it is not.
		fmt.Fprintln(os.Stdout, strings.ReplaceAll(line, "\n", " "))
	})
	os.Exit(0)
}

// Run starts a child with env added to the environment, kills it when wait has
// passed since its first report, and gives every line it reported in full. A
// child that ends by itself with an error is an error.
func Run(ctx context.Context, wait time.Duration, env ...string) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "-test.run=^$")
	cmd.Env = append(append(os.Environ(), marker+"=1"), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var lines []string
	var timer *time.Timer
	killed := make(chan struct{})
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break // a line without its end was not reported in full
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		if timer == nil {
			timer = time.AfterFunc(wait, func() {
				close(killed)
				cmd.Process.Kill()
			})
		}
	}
	err = cmd.Wait()
	if timer != nil {
		timer.Stop()
	}
	select {
	case <-killed:
		return lines, nil
	default:
	}
	if err != nil {
		return lines, errors.Join(err, errors.New(stderr.String()))
	}
	return lines, nil
}
