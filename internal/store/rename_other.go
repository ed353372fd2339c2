//go:build !linux

package store

// renameNew gives a file or folder its name unless something has it.
func renameNew(from, to string) error { return renameUnlessThere(from, to) }
