package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Machine says where a measurement was made.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Go       string `json:"go"`
	Commit   string `json:"commit"` // "" when the build does not know
}

// write writes a line of text.
func (m *Machine) write(b *strings.Builder) {
	fmt.Fprintf(b, "machine  %s, %d cores, %s/%s, %s, commit %s\n", m.CPU, m.Cores, m.OS, m.Arch, m.Go, cmp.Or(m.Commit, "unknown"))
}

func thisMachine() Machine {
	m := Machine{
		CPU:      procField("/proc/cpuinfo", "model name"),
		Cores:    runtime.GOMAXPROCS(0),
		MemoryMB: kilobytes(procField("/proc/meminfo", "MemTotal")) / 1024,
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		Go:       runtime.Version(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		modified := false
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				m.Commit = s.Value[:min(12, len(s.Value))]
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
		if modified && m.Commit != "" {
			m.Commit += "+"
		}
	}
	return m
}

// Memory is the process's resident memory, where the system tells.
type Memory struct {
	ResidentMB  float64 `json:"resident_mb"`
	AnonymousMB float64 `json:"anonymous_mb"` // heap, stacks, database pages
	MappedMB    float64 `json:"mapped_mb"`    // files mapped into memory, which the system can drop
}

// residentMemory reads Linux's account of this process; elsewhere it gives
// zeros.
func residentMemory() Memory {
	read := func(name string) float64 { return float64(kilobytes(procField("/proc/self/status", name))) / 1024 }
	return Memory{ResidentMB: read("VmRSS"), AnonymousMB: read("RssAnon"), MappedMB: read("RssFile")}
}

// procField gives the value of the first line "name: value" of a file, "" when
// there is none.
func procField(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes reads "123 kB".
func kilobytes(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	return n
}
