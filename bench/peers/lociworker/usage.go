package lociworker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

// meter times calls one by one and sums the processor time that the process took
// meanwhile.
type meter struct {
	times []float64
	cpu   time.Duration
}

// call measures f.
func (m *meter) call(f func() error) error {
	cpu, err := processorTime()
	if err != nil {
		return err
	}
	begin := time.Now()
	failed := f()
	took := time.Since(begin)
	after, err := processorTime()
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	m.times = append(m.times, took.Seconds())
	m.cpu += after - cpu
	return nil
}

// cost is what all calls took.
func (m *meter) cost() protocol.Cost {
	out := protocol.Cost{Times: m.times, CPU: m.cpu.Seconds()}
	for _, t := range m.times {
		out.Wall += t
	}
	return out
}

// memory is what the process holds, in bytes: all of it, and what is its own and not
// pages of files.
func memory() (resident, anonymous int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, fmt.Errorf("the memory of the process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		var to *int64
		switch name {
		case "VmRSS":
			to = &resident
		case "RssAnon":
			to = &anonymous
		default:
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the memory of the process: %s: %w", name, err)
		}
		*to = kb << 10
	}
	if resident == 0 || anonymous == 0 {
		return 0, 0, errors.New("the system does not say what memory the process holds")
	}
	return resident, anonymous, nil
}
