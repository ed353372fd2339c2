//go:build windows

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow is nothing here: making a link needs a privilege.
const noFollow = 0

// lockOffset lies far behind the file's text, which others may then read while
// the lock is held.
const lockOffset = 1 << 30

func lockFile(f *os.File) error {
	at := windows.Overlapped{Offset: lockOffset}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}

func unlockFile(f *os.File) error {
	at := windows.Overlapped{Offset: lockOffset}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
