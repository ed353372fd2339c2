// Package crash kills processes for tests: a test starts its own binary again as
// a child, listens to what the child says it has done, and kills it at a moment
// of its choosing.
package crash

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// roleEnv tells a process that it is a child, and what it has to do.
const roleEnv = "LOCI_CRASH_ROLE"

// Role is the role and its arguments that a child was started with; empty in a
// process that is none.
func Role() (role string, args []string) {
	fields := strings.Split(os.Getenv(roleEnv), "\n")
	return fields[0], fields[1:]
}

// Say tells the parent something, in one write: what was said arrives whatever
// happens next.
func Say(format string, args ...any) {
	if _, err := os.Stdout.WriteString(linePrefix + fmt.Sprintf(format, args...) + "\n"); err != nil {
		os.Exit(3) // the parent is gone
	}
}

// linePrefix separates what children say from what the test framework prints.
const linePrefix = "crash: "

// Suicide kills this process as kill -9 does: nothing is run or flushed any more.
func Suicide() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		// Either it does not return or the process lives, which the parent sees.
		_ = p.Kill()
	}
	select {}
}

// Child is a child process.
type Child struct {
	cmd    *exec.Cmd
	lines  chan string
	stderr bytes.Buffer

	mu      sync.Mutex
	said    []string
	printed strings.Builder // by the test framework
}

// Start runs one test of this test binary as a child with a role.
func Start(test, role string, args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Child{lines: make(chan string, 1)}
	c.cmd = exec.Command(self, "-test.run=^"+test+"$", "-test.count=1")
	c.cmd.Env = append(os.Environ(), roleEnv+"="+strings.Join(append([]string{role}, args...), "\n"))
	c.cmd.Stderr = &c.stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.listen(out)
	return c, nil
}

func (c *Child) listen(out io.Reader) {
	defer close(c.lines)
	first := true
	for s := bufio.NewScanner(out); s.Scan(); {
		line, ok := strings.CutPrefix(s.Text(), linePrefix)
		c.mu.Lock()
		if ok {
			c.said = append(c.said, line)
		} else {
			c.printed.WriteString(s.Text() + "\n")
		}
		c.mu.Unlock()
		if ok && first {
			first = false
			c.lines <- line
		}
	}
}

// First waits for the first thing that the child says; false when it has ended
// without a word.
func (c *Child) First() (string, bool) {
	line, ok := <-c.lines
	return line, ok
}

// Kill kills the child. It may have ended already.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() }

// Wait waits for the child's end and gives all that it said, whether it ended by
// itself and well, and whatever else it printed.
func (c *Child) Wait() (said []string, ended bool, output string) {
	for range c.lines {
		// Until the pipe is at its end.
	}
	err := c.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said, err == nil, c.printed.String() + c.stderr.String()
}
