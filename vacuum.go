package loci

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// DiskUse says what the data directory takes, in bytes.
type DiskUse struct {
	Database  int64 `json:"database"`  // with its log
	Index     int64 `json:"index"`     // index files, what was set aside of them included
	Snapshots int64 `json:"snapshots"` // of agent memories
	Other     int64 `json:"other"`     // copies from before migrations, and files that are not the store's
	Total     int64 `json:"total"`
}

// VacuumReport says what a vacuum did.
type VacuumReport struct {
	Revision int64   `json:"revision"`
	Before   DiskUse `json:"before"`
	After    DiskUse `json:"after"`
	Strings  int64   `json:"strings"` // of the dictionary, that nothing used any more
	Removed  int     `json:"removed"` // files and folders that killed processes and damage left
	// NotReached are copies in the data directory that a vacuum leaves as they are.
	NotReached []NotReached `json:"not_reached"`
}

// vacuumReserve is what has to stay free beyond the copies that a vacuum makes.
const vacuumReserve = 16 << 20

// Vacuum writes the database and the index anew, so that their files hold what is
// stored and nothing that was erased or replaced, and gives back the space. It removes
// what killed processes left, and index files that were set aside as damaged. Reads
// go on; writes wait while the database is copied. A vacuum that fails, is killed, or has no room leaves everything that is
// stored as it was. It needs free space of about twice what the store
// takes, which is looked at first: too little is ErrIO. Admin is needed.
//
// The log is emptied once no reader of an older state is left. When ctx ends before
// that it is ErrCanceled, and another call goes on.
//
// progress, if there is one, is told how many thousandths of the work are done.
func (db *DB) Vacuum(ctx context.Context, progress ...func(done, total int64)) (*VacuumReport, error) {
	const op = "vacuum"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if err := needAdmin(ctx, "", "a vacuum"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	ctx, stop := e.untilClosing(unrestricted(ctx))
	defer stop()
	report, err := e.vacuum(ctx, tell(progress))
	return report, errs.WithOp(op, err)
}

// The parts of a vacuum, in thousandths.
const (
	vacuumAll   = 1000
	vacuumTruth = 500
)

func (e *engine) vacuum(ctx context.Context, progress func(done, total int64)) (*VacuumReport, error) {
	done, err := e.upkeep.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	freed, err := e.copying.all(ctx)
	if err != nil {
		return nil, err
	}
	defer freed()
	report := &VacuumReport{NotReached: []NotReached{}}
	// What was left behind is in the way of knowing how much room there is.
	if report.Removed, err = e.removeLeftovers(); err != nil {
		return nil, err
	}
	if report.Before, err = e.diskUse(); err != nil {
		return nil, err
	}
	if err := e.checkRoom(report.Before); err != nil {
		return nil, err
	}
	if report.Strings, err = e.sweepStrings(ctx); err != nil {
		return nil, err
	}
	progress(0, vacuumAll)
	err = e.store.Vacuum(ctx, func(n, of int64) { progress(n*vacuumTruth/max(of, 1), vacuumAll) })
	if err != nil {
		return nil, err
	}
	if err := e.vacuumIndex(ctx, progress); err != nil {
		return nil, err
	}
	progress(vacuumAll, vacuumAll)
	if report.After, err = e.diskUse(); err != nil {
		return nil, err
	}
	report.Revision = e.store.Counters().Revision
	copies, err := store.MigrationCopies(e.dir)
	for _, file := range copies {
		report.NotReached = append(report.NotReached, NotReached{What: UnreachedMigration, File: file,
			Says: "A copy of the database from before it was brought up to a newer version holds what there was then: delete it once you do not need it."})
	}
	return report, err
}

// vacuumIndex has the index built anew from the truth as it is now. A rebuild that
// runs already has read what may be gone since.
func (e *engine) vacuumIndex(ctx context.Context, progress func(done, total int64)) error {
	e.rebuilds.mu.Lock()
	running := e.rebuilds.last
	e.rebuilds.mu.Unlock()
	if running != nil {
		if err := waitRebuild(ctx, running, func() {}); err != nil {
			return err
		}
	}
	before, err := e.generations()
	if err != nil {
		return err
	}
	run := e.startRebuild(nil)
	err = waitRebuild(ctx, run, func() {
		n, of := run.processed.Load(), max(run.total.Load(), 1)
		progress(vacuumTruth+min(n, of)*(vacuumAll-vacuumTruth)/of, vacuumAll)
	})
	if err != nil {
		return err
	}
	if run.err != nil {
		// What was built so far would be taken up at the next open. The index in use is
		// whole, and the disk may be full.
		e.removeNewGenerations(before)
		return errs.Wrap(errs.CodeOf(run.err), run.err, "the database was written anew, the index could not be; it is as it was")
	}
	// The journal tells the index, once, what it has in its files by now.
	if ix := e.usableIndex(); ix != nil {
		return e.store.PruneJournal(ctx, min(ix.Checkpointed(), e.rebuilds.floor.Load()))
	}
	return nil
}

// removeNewGenerations removes what a failed rebuild wrote, unless it is in use.
func (e *engine) removeNewGenerations(before []generation) {
	if e.usableIndex() == nil || len(before) == 0 {
		return // it is all there is to go on from
	}
	now, err := e.generations()
	if err != nil {
		return // the next open looks again
	}
	for _, g := range now {
		if g.number > before[0].number {
			e.removeGeneration(g)
		}
	}
}

// removeLeftovers removes files that nobody uses: what killed processes were writing,
// and index files that were set aside. The caller keeps away whoever might be writing
// such a file now.
func (e *engine) removeLeftovers() (removed int, err error) {
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return 0, errs.Wrap(errs.IO, err, "the data directory could not be opened")
	}
	defer root.Close()
	names, err := unfinishedFiles(root)
	if err != nil {
		return 0, err
	}
	for _, at := range []struct{ folder, prefix string }{{".", store.PartialPrefix}, {".", damagedPrefix}, {indexFolder, damagedPrefix}} {
		entries, err := fs.ReadDir(root.FS(), at.folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, errs.Wrap(errs.IO, err, "the data directory could not be read")
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), at.prefix) {
				names = append(names, filepath.Join(at.folder, entry.Name()))
			}
		}
	}
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil {
			return removed, errs.Wrap(errs.IO, err, "a file that was left behind could not be removed")
		}
		removed++
	}
	if err := removeEmptyFolders(root); err != nil { // an erasure that was killed, or an earlier version's
		return removed, err
	}
	return removed, e.store.RemoveLeftovers()
}

// diskUse looks at what there is in the data directory.
func (e *engine) diskUse() (use DiskUse, err error) {
	err = filepath.WalkDir(e.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		rel, err := filepath.Rel(e.dir, name)
		if err != nil {
			return err
		}
		size := info.Size()
		use.Total += size
		switch first := strings.Split(filepath.ToSlash(rel), "/")[0]; {
		case first == indexFolder:
			use.Index += size
		case first == agentFolder:
			use.Snapshots += size
		case first == store.DatabaseFile, first == store.DatabaseFile+"-wal", first == store.DatabaseFile+"-shm":
			use.Database += size
		default:
			use.Other += size
		}
		return nil
	})
	return use, errs.Wrap(errs.IO, err, "the data directory could not be looked at")
}

// ignoreGone lets a file go that was removed while the directory was read.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkRoom refuses a vacuum for which there is no room. Where the system does not
// tell, the copy finds out.
func (e *engine) checkRoom(use DiskUse) error {
	free, known := e.room(e.dir)
	need := roomFor(use)
	if !known || free >= uint64(need) {
		return nil
	}
	return errs.New(errs.IO, "a vacuum needs %d bytes of free space here, there are %d: free some and retry; nothing was changed", need, free)
}

// roomFor is the free space that a vacuum takes: the database twice, beside itself
// and in its log, and then a second index, which is larger than a merged one until it
// is merged as well.
func roomFor(use DiskUse) int64 { return 2*(use.Database+use.Index) + vacuumReserve }
