package loci

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// BackupReport says what a backup holds.
type BackupReport struct {
	Revision int64 `json:"revision"` // of the snapshot
	Records  int64 `json:"records"`
	Bytes    int64 `json:"bytes"` // size of the file
}

// Backup writes everything that is stored, as it is at one moment, to a new file
// while reads and writes go on. An existing target is ErrIO and stays as it is;
// its folder must exist. When Backup returns, the file has been checked and is
// on disk; when it fails or ctx ends, nothing is left of it. Restore makes a
// store of it again. progress, if there is one, is told how many pages of how
// many have been copied.
func (db *DB) Backup(ctx context.Context, target string, progress ...func(done, total int64)) (*BackupReport, error) {
	const op = "backup"
	if err := db.eng.enter(op); err != nil {
		return nil, err
	}
	defer db.eng.gate.leave()
	if err := needAdmin(ctx, "", "a backup"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if target == "" {
		return nil, errs.WithOp(op, errs.Invalid("target", "must not be empty: name a new file"))
	}
	leave, err := db.eng.copying.enter(ctx)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	defer leave()
	// The copy should not take a clock for the present one that is behind it. On a full
	// disk it gets that of the last commit, which is better than no copy.
	_ = db.eng.keepClock(ctx)
	done, err := db.eng.store.Backup(ctx, target, tell(progress))
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &BackupReport{Revision: done.Revision, Records: done.Records, Bytes: done.Bytes}, nil
}

// tell calls every function that wants to know.
func tell(progress []func(done, total int64)) func(done, total int64) {
	return func(done, total int64) {
		for _, f := range progress {
			if f != nil {
				f(done, total)
			}
		}
	}
}

// Restore makes a data directory of a snapshot and opens it, with its index
// built. The snapshot is a file that Backup wrote, or the database file of a
// closed store; it is only read. A directory that exists is ErrIO. A file of
// another program is ErrValidation, a newer schema ErrSchemaVersion, a damaged
// snapshot ErrStorage; then there is no directory. opts may be nil.
func Restore(ctx context.Context, snapshot, directory string, opts *Options) (*DB, error) {
	const op = "restore"
	if opts == nil {
		opts = &Options{}
	}
	if snapshot == "" {
		return nil, errs.WithOp(op, errs.Invalid("snapshot", "must not be empty: name a file that a backup wrote"))
	}
	if directory == "" {
		return nil, errs.WithOp(op, errs.Invalid("directory", "must not be empty: name a new directory"))
	}
	err := store.Restore(ctx, snapshot, directory, opts.store, tell([]func(done, total int64){opts.Progress}))
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	wait := *opts
	wait.WaitForIndex = true
	e, err := openEngine(ctx, directory, &wait)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &DB{eng: e}, nil
}
