//go:build !linux && !darwin

package loci

import (
	"io/fs"
	"time"
)

// changeTime is when a file was last written to.
func changeTime(info fs.FileInfo) time.Time { return info.ModTime() }
