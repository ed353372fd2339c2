package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/bench/peers/result"
)

// machine says what a run runs on, as far as the system tells.
func machine(ctx context.Context, python string) result.Machine {
	m := result.Machine{
		Processor: procField("/proc/cpuinfo", "model name"),
		Cores:     runtime.NumCPU(),
		System:    runtime.GOOS + "/" + runtime.GOARCH,
		Go:        runtime.Version(),
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err == nil { // else the system does not say
		m.Memory = kilobytes << 10
	}
	if python != "" {
		if out, err := exec.CommandContext(ctx, python, "--version").CombinedOutput(); err == nil {
			m.Python = strings.TrimSpace(strings.TrimPrefix(string(out), "Python"))
		}
	}
	return m
}

// procField gives the value of the first line "name: value" of a file, "" when
// there is none.
func procField(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(content) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// commit names the state of the sources that a run measures, "unknown" outside of
// the repository.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(out))
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil || len(bytes.TrimSpace(changed)) > 0 {
		id += "-dirty"
	}
	return id
}
