// Package notewatch tells when something under a folder has changed, by the
// system's notices where they can be had and by the clock where not.
package notewatch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options tune Watch. The zero value works.
type Options struct {
	Quiet time.Duration // how long nothing must happen before a change is told; default 300 ms
	Most  time.Duration // the longest that a change waits for quiet; default 5 s
	// Poll is how often a change is told without a notice, for file systems that
	// give none, such as those of other machines; default 30 s.
	Poll time.Duration
	// Fallback is Poll where there are no notices at all; default 2 s.
	Fallback time.Duration
	// Skip says which names are not looked at; default those that begin with a
	// dot.
	Skip func(name string) bool

	pollOnly bool // as if the system had no notices
}

func (o *Options) fill() {
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{
		{&o.Quiet, 300 * time.Millisecond}, {&o.Most, 5 * time.Second}, {&o.Poll, 30 * time.Second}, {&o.Fallback, 2 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.or
		}
	}
	if o.Skip == nil {
		o.Skip = func(name string) bool { return name != "" && name[0] == '.' }
	}
}

// Watch calls changed at once and then whenever something under dir may have
// changed, once for all that happens together, until ctx ends or changed fails.
// It returns nil when ctx ended. Changes that happen while changed runs are
// told afterwards.
func Watch(ctx context.Context, dir string, o Options, changed func(context.Context) error) error {
	o.fill()
	w := &watch{dir: dir, o: &o}
	w.open()
	defer w.close()
	for {
		if err := changed(ctx); err != nil || ctx.Err() != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if !w.next(ctx) {
			return nil
		}
	}
}

// watch is one run of Watch. Without a notifier it goes by the clock.
type watch struct {
	dir      string
	o        *Options
	notifier *fsnotify.Watcher
}

// open begins to listen, if that can be done.
func (w *watch) open() {
	if w.o.pollOnly {
		return
	}
	notifier, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	w.notifier = notifier
	w.add(w.dir)
}

func (w *watch) close() {
	if w.notifier != nil {
		w.notifier.Close()
		w.notifier = nil
	}
}

// add listens to a folder and those in it. When the system has no more notices
// to give, all goes by the clock from now on.
func (w *watch) add(dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if entry != nil && entry.IsDir() {
				return fs.SkipDir // it went, or is closed to us
			}
			return nil
		case !entry.IsDir():
			return nil
		case path != w.dir && w.o.Skip(entry.Name()):
			return fs.SkipDir
		}
		if err := w.notifier.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	})
	if err != nil {
		w.close()
	}
}

// next waits for the next change; false when ctx ended first.
func (w *watch) next(ctx context.Context) bool {
	every := w.o.Poll
	if w.notifier == nil {
		every = w.o.Fallback
	}
	poll := time.NewTimer(every)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var most <-chan time.Time
	for {
		var events chan fsnotify.Event
		var failures chan error
		if w.notifier != nil {
			events, failures = w.notifier.Events, w.notifier.Errors
		}
		select {
		case <-ctx.Done():
			return false
		case <-poll.C:
			if w.notifier != nil {
				w.add(w.dir) // it may have gone and come back
			}
			return true
		case <-quiet.C:
			return true
		case <-most:
			return true
		case e, ok := <-events:
			if !ok || !w.matters(e) {
				continue
			}
		case <-failures:
			// Notices were lost: it may be anything.
			if w.notifier != nil {
				w.add(w.dir)
			}
		}
		quiet.Reset(w.o.Quiet)
		if most == nil {
			most = time.After(w.o.Most)
		}
	}
}

// matters says whether a notice may be of a change, and listens to new folders.
func (w *watch) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod || w.o.Skip(filepath.Base(e.Name)) {
		return false
	}
	if e.Has(fsnotify.Create) {
		if info, err := os.Lstat(e.Name); err == nil && info.IsDir() {
			w.add(e.Name)
		}
	}
	return true
}
