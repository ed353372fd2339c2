package loci

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when a file was last touched in any way. A file that was put in
// the place of another shows here, whatever its modification time.
func changeTime(info fs.FileInfo) time.Time {
	t := info.ModTime()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if c := time.Unix(st.Ctimespec.Unix()); c.After(t) {
			t = c
		}
	}
	return t
}
