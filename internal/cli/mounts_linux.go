package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fileSystemOf is the kind of file system that dir lies on, or "".
func fileSystemOf(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return mountKind(string(raw), dir)
}

// mountKind finds the mount that covers dir: the longest one, and of those the
// last, which lies on top.
func mountKind(table, dir string) string {
	best, kind := -1, ""
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		fields, system := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(system) == 0 {
			continue
		}
		point := unescapeMount(fields[4])
		covers := point == "/" || dir == point || strings.HasPrefix(dir, point+"/")
		if covers && len(point) >= best {
			best, kind = len(point), system[0]
		}
	}
	return kind
}

// unescapeMount undoes the octal escapes that the kernel writes for blanks.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
