package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

// vacuumSuffix ends the name of the copy that a vacuum makes beside the database.
// One that is there when no vacuum runs was left by a killed process.
const vacuumSuffix = ".vacuum"

// truncateWait is how long a vacuum waits for readers of old snapshots at a time,
// while which nobody writes; truncateRest how long it then lets others write.
const (
	truncateWait = 250 * time.Millisecond
	truncateRest = 50 * time.Millisecond
)

// Vacuum writes the database anew, so that its file holds what is stored and nothing
// that ever was: no free pages, no rest of a row in the slack of a page, no log. It
// copies what is stored into a file beside the database, and then that file over the
// database in one transaction. So whoever kills the process, and a disk that fills,
// leave the store as it was before or as it is after. Readers go on throughout;
// writers wait for both copies. Then the log is emptied, which waits for readers of
// older snapshots; when ctx ends before the last of them does, that is errs.Canceled,
// and the old pages are gone from the database but not from the log.
//
// It needs as much free space as the database takes, twice. progress is told of bytes.
func (s *Store) Vacuum(ctx context.Context, progress func(done, total int64)) error {
	if err := s.RemoveLeftovers(); err != nil {
		return err
	}
	var err error
	if between := s.Between(ctx, func() { err = s.rewrite(ctx, progress) }); between != nil {
		return between
	}
	if err != nil {
		return err
	}
	return s.emptyLog(ctx)
}

// RemoveLeftovers removes the copy that a killed vacuum left.
func (s *Store) RemoveLeftovers() error {
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(s.path + vacuumSuffix + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return errs.Wrap(errs.IO, err, "the copy that an earlier vacuum left could not be removed")
		}
	}
	return nil
}

// rewrite does both copies on the writer's goroutine, while no transaction is open.
func (s *Store) rewrite(ctx context.Context, progress func(done, total int64)) (err error) {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	copied := s.path + vacuumSuffix
	defer func() {
		if end := s.RemoveLeftovers(); err == nil {
			err = end
		}
	}()
	c := s.writer.session.c
	c.interruptOn(ctx)
	defer c.interruptOn(context.Background())
	size := s.DiskBytes()
	watched, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		watchSize(copied, size, done, func(n int64) { progress(n, 2*size) })
	}()
	err = createPrivate(copied) // VACUUM INTO takes an empty file, and keeps its mode
	if err == nil {
		err = s.copyTo(c, copied)
	}
	close(done)
	<-watched
	if err != nil {
		return vacuumFailed(ctx, err)
	}
	progress(size, 2*size)
	if err := c.restoreFrom(ctx, copied); err != nil {
		return vacuumFailed(ctx, err)
	}
	progress(2*size, 2*size)
	s.writer.cache.known = false
	return nil
}

func vacuumFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended first; nothing was changed")
	}
	return errs.Wrap(errs.Storage, err, "the database could not be written anew; it is as it was")
}

// watchSize tells of a file's size, up to most, until done is closed.
func watchSize(path string, most int64, done <-chan struct{}, tell func(int64)) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if info, err := os.Stat(path); err == nil {
				tell(min(info.Size(), most))
			}
		}
	}
}

// emptyLog moves the whole log into the database and cuts the log's file off at its
// beginning.
func (s *Store) emptyLog(ctx context.Context) error {
	for {
		var emptied bool
		var err error
		between := s.Between(ctx, func() { emptied, err = s.writer.session.c.truncateLog(truncateWait) })
		switch {
		case between != nil:
			return between
		case err != nil:
			return err
		case emptied:
			return nil
		}
		timer := time.NewTimer(truncateRest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while a reader held on to what was; the log was not emptied: run it again")
		case <-timer.C:
		}
	}
}

// MigrationCopies gives the names of the copies of the database that stand in a data
// directory since older versions of it were brought up. Nobody removes them.
func MigrationCopies(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the data directory could not be read")
	}
	var out []string
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), DatabaseFile+".v"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
