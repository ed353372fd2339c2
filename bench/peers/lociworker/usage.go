package lociworker

import (
	"context"
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

// When the process counts as quiet: in so many looks in a row it did next to nothing.
const (
	quietLook  = 100 * time.Millisecond
	quietWork  = 2 * time.Millisecond // of processor time, in one look
	quietLooks = 2
	longest    = 10 * time.Minute
)

// settle waits for what the store does by itself after loading. There is nothing to
// call for: what was written is searchable, and the index looks after itself. But what
// it costs is a cost of loading, and must not fall into what is measured next. The
// looks that find the process quiet do not count.
func settle(ctx context.Context) (protocol.Cost, error) {
	begin := time.Now()
	first, err := processorTime()
	if err != nil {
		return protocol.Cost{}, err
	}
	out, last := protocol.Cost{}, first
	for quiet := 0; quiet < quietLooks; {
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(quietLook):
		}
		now, err := processorTime()
		if err != nil {
			return out, err
		}
		quiet++
		if took := time.Since(begin); now-last >= quietWork {
			quiet = 0
			out = protocol.Cost{Times: []float64{took.Seconds()}, Wall: took.Seconds(), CPU: (now - first).Seconds()}
			if took > longest {
				return out, fmt.Errorf("the store is still at work %v after loading", took)
			}
		}
		last = now
	}
	return out, nil
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
