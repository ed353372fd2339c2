//go:build !linux

package cli

// fileSystemOf is not known here.
func fileSystemOf(string) string { return "" }
