//go:build unix

package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/loci-memory/loci/internal/store"
)

const (
	// socketName is the socket's name in a data directory.
	socketName = "loci.sock"
	// maxSocketPath is below what systems take for the path of a socket, the
	// longer one of the folder that it is made in included.
	maxSocketPath = 99
	makingSuffix  = ".new"
)

// socket is where a holder listens.
type socket struct {
	net.Listener
	endpoint store.Endpoint
	path     string
}

// listen makes the socket of a data directory: in it, or where that cannot be in
// the runtime folder. Whoever calls it holds the lock, so what lies there is a
// dead process's.
func listen(dir, runtimeDir string) (*socket, error) {
	var errDir error
	if path := filepath.Join(dir, socketName); len(path) <= maxSocketPath {
		ln, err := bind(path)
		if err == nil {
			return &socket{ln, store.Endpoint{Network: "unix", Address: socketName}, path}, nil
		}
		errDir = fmt.Errorf("in the data directory: %w", err)
	}
	folder, err := runtimeFolder(runtimeDir)
	if err != nil {
		return nil, errors.Join(errDir, err)
	}
	sum := sha256.Sum256([]byte(dir))
	path := filepath.Join(folder, hex.EncodeToString(sum[:8])+".sock")
	if len(path) > maxSocketPath {
		return nil, errors.Join(errDir, fmt.Errorf("the path of the runtime folder %s is too long for a socket", folder))
	}
	ln, err := bind(path)
	if err != nil {
		return nil, errors.Join(errDir, fmt.Errorf("in the runtime folder: %w", err))
	}
	return &socket{ln, store.Endpoint{Network: "unix", Address: path}, path}, nil
}

// bind makes a socket that only this user can connect to, and that no other
// user could at any moment: it is made in a folder that is closed to all others
// and then moved to its place.
func bind(path string) (net.Listener, error) {
	making := path + makingSuffix
	if err := os.RemoveAll(making); err != nil {
		return nil, err
	}
	if err := os.Mkdir(making, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(making) // it is empty then, and a next one would remove it
	fresh := filepath.Join(making, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false)
	if err = os.Chmod(fresh, 0o600); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// Close stops listening and removes the socket.
func (s *socket) Close() error {
	err := s.Listener.Close()
	if rm := os.Remove(s.path); !errors.Is(rm, fs.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}

// runtimeFolder makes and checks a folder that belongs to this user alone: in
// the given one, or where that cannot be in the system's temporary one.
func runtimeFolder(runtimeDir string) (string, error) {
	var errGiven error
	if runtimeDir != "" {
		folder := filepath.Join(runtimeDir, "loci")
		if errGiven = ownFolder(folder); errGiven == nil {
			return folder, nil
		}
	}
	folder := filepath.Join(os.TempDir(), "loci-"+strconv.Itoa(os.Geteuid()))
	if err := ownFolder(folder); err != nil {
		return "", errors.Join(errGiven, err)
	}
	return folder, nil
}

func ownFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the runtime folder cannot be made: %w", err)
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("the runtime folder cannot be looked at: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", folder)
	case ok && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", folder)
	case info.Mode().Perm() != 0o700:
		if err := os.Chmod(folder, 0o700); err != nil {
			return fmt.Errorf("%s is open to other users: %w", folder, err)
		}
	}
	return nil
}

// connect connects to the endpoint that the lock file of dir names.
func connect(ctx context.Context, dir string, e *store.Endpoint, patience time.Duration) (net.Conn, error) {
	if e.Network != "unix" {
		return nil, fmt.Errorf("%w: it is on the network %q", errFrame, e.Network)
	}
	path := e.Address
	if !filepath.IsAbs(path) {
		if path != socketName {
			return nil, fmt.Errorf("%w: its socket is %q", errFrame, path)
		}
		path = filepath.Join(dir, path)
	}
	d := net.Dialer{Timeout: patience}
	return d.DialContext(ctx, "unix", path)
}
