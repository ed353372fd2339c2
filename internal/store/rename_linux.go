package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew gives a file or folder its name unless something has it.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return renameUnlessThere(from, to) // a file system that cannot do it at once
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}
