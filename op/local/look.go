package local

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Holder is the process that the lock file of a data directory names.
type Holder struct {
	PID           int
	StartedAtUS   int64  // UTC microseconds since 1970
	Version       string // of its program
	SchemaVersion int
	Protocol      int // by which it serves others; 0 when it serves nobody
	// Problem is why this process cannot attach to it; nil when its socket answers.
	// It is loci.ErrLocked where the versions are unequal or it serves nobody.
	Problem error
}

// Look says who holds the data directory dir, and tries its socket. It takes no
// lock: after a crash the lock file names a process that has ended, which only
// opening the directory tells for sure. It is false when the file names nobody.
func Look(dir string) (Holder, bool) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	info, ok := store.Holder(dir)
	if !ok {
		return Holder{}, false
	}
	h := Holder{PID: info.PID, StartedAtUS: info.StartedAtUS, Version: info.Version, SchemaVersion: info.SchemaVersion}
	if info.Endpoint == nil {
		h.Problem = errs.New(errs.Locked, "it serves no other process")
		return h, true
	}
	h.Protocol = info.Endpoint.Protocol
	c, err := reach(context.Background(), dir, info)
	if err == nil {
		err = c.close()
	}
	h.Problem = blunt(err)
	return h, true
}

// reach attaches to the holder that the lock file of dir names, which serves
// others or said why it does not.
func reach(ctx context.Context, dir string, info store.LockInfo) (*client, error) {
	if err := unequal(info.PID, info.Version, info.Endpoint.Protocol, info.SchemaVersion); err != nil {
		return nil, err
	}
	if info.Endpoint.Trouble != "" {
		return nil, errs.New(errs.Locked, "%s is in use by process %d, and no other process can attach to it: %s. End it, or choose another folder",
			dir, info.PID, info.Endpoint.Trouble)
	}
	c, err := attach(ctx, dir, info.Endpoint)
	if why, ok := errors.AsType[refusal](err); ok {
		return nil, passing{errs.New(errs.Locked, "%s is in use by process %d, which lets this one not attach: %s", dir, info.PID, string(why))}
	}
	if err != nil && loci.CodeOf(err) == "" {
		err = passing{&errs.Error{Code: errs.Locked, Err: err, Message: inUse(dir, info.PID)}}
	}
	return c, err
}
