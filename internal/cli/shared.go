package cli

import (
	"context"
	"path/filepath"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
)

// shared opens the memory for a command that stays, such as serve and mcp: it
// holds the store or is attached to the process that does. While it holds, the
// models in force are bound in the background and vectors are made in the
// background. opts are the store's; nil is the zero value.
func (a *App) shared(ctx context.Context, opts *loci.Options) (*local.Memory, error) {
	return local.Open(ctx, a.DataDir(), &local.Options{
		Store: opts, OpenStore: a.deps.Open, Wait: a.settings.duration("wait"),
		RuntimeDir: a.runtimeDir(), Log: a.Log(),
		Hold: func(ctx context.Context, db *loci.DB) (op.Caller, func() error, error) {
			stop, err := a.keepModels(ctx, db)
			if err != nil {
				return nil, nil, err
			}
			return op.Local(db), stop, nil
		},
	})
}

// Shared is shared for commands outside of this package: close the memory in the
// end.
func (a *App) Shared(ctx context.Context, opts *loci.Options) (*local.Memory, error) {
	return a.shared(ctx, opts)
}

// runtimeDir is the user's runtime folder, or "" where there is none.
func (a *App) runtimeDir() string {
	if dir, ok := a.deps.LookupEnv("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

