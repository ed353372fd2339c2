package loci

import "github.com/loci-memory/loci/internal/store"

// OnVFS has a store's files opened through a file system that was registered. It is
// for tests of packages that are built on this one.
func OnVFS(opts *Options, name string) *Options {
	opts.store = store.Options{VFS: name, CheckpointPages: 8}
	return opts
}
