//go:build unix

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow opens the file itself, never one that a link leads to.
const noFollow = unix.O_NOFOLLOW

// lockFile locks the open file itself, so a second open of the same process
// finds it held as well.
func lockFile(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		}
		return err
	}
}

func unlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
