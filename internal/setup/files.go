package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/loci-memory/loci/internal/secretscan"
)

// maxFile is how large a configuration may be, in bytes.
const maxFile = 8 << 20

// Request says what is to be done with a client.
type Request struct {
	Env     Env
	Server  Server
	Project bool     // in the repository's files, not the user's
	NoHooks bool     // the server alone
	Remove  bool     // take out what setup wrote
	Flags   []string // of every hook, such as --data
}

// Change is what becomes of one file.
type Change struct {
	Path    string `json:"path"`
	Exists  bool   `json:"exists"`           // it is there
	Changed bool   `json:"changed"`          // something is to be done
	Gone    bool   `json:"gone,omitempty"`   // it goes: nothing but setup's was in it
	Diff    string `json:"diff,omitempty"`   // unified
	Backup  string `json:"backup,omitempty"` // the copy, once it is written

	real          string // behind symbolic links
	mode          fs.FileMode
	before, after []byte
}

// Plan says what would be done with a client's files, without touching them. An
// error names the file that it is about.
func (c *Client) Plan(r *Request) ([]Change, error) {
	servers, hooks := c.Files(&r.Env, r.Project)
	switch {
	case r.Project && r.Env.Project == "":
		return nil, errors.New("the working folder lies in no repository, so there are no files of one")
	case servers == "":
		return nil, fmt.Errorf("%s has no files of a repository; set it up for the user", c.Title)
	case !filepath.IsAbs(servers):
		return nil, errors.New("there is no home directory, so the files of the user cannot be found")
	}
	edits := map[string][]edit{}
	order := []string{servers}
	if r.Remove {
		edits[servers] = append(edits[servers], c.removeServer())
	} else {
		edits[servers] = append(edits[servers], c.addServer(r.Server))
	}
	if hooks != "" && (r.Remove || !r.NoHooks) {
		if hooks != servers {
			order = append(order, hooks)
		}
		if r.Remove {
			edits[hooks] = append(edits[hooks], c.removeHooks())
		} else {
			edits[hooks] = append(edits[hooks], c.addHooks(r.Env.OS, r.Server, r.Flags))
		}
	}
	var out []Change
	for _, file := range order {
		ch, err := plan(file, edits[file], r.Project)
		if err != nil {
			return nil, fmt.Errorf("%s is left as it is: %w", file, err)
		}
		out = append(out, *ch)
	}
	return out, nil
}

func plan(path string, edits []edit, project bool) (*Change, error) {
	ch := &Change{Path: path, mode: 0o600}
	if project {
		ch.mode = 0o644
	}
	var err error
	if ch.real, ch.before, ch.Exists, err = read(path, &ch.mode); err != nil {
		return nil, err
	}
	ch.after = ch.before
	exists := ch.Exists
	for _, e := range edits {
		if ch.after, err = e(ch.after, exists); err != nil {
			return nil, err
		}
		exists = ch.after != nil
	}
	ch.Gone = ch.Exists && ch.after == nil
	if ch.Changed = ch.Gone || !bytes.Equal(ch.before, ch.after); ch.Changed {
		// Keys of other servers stand in such files, and a screen may be seen or kept.
		ch.Diff = (&secretscan.Redactor{}).Lines(udiff.Unified(path, path, string(ch.before), string(ch.after)))
	}
	return ch, nil
}

// read reads a file behind its symbolic links. One that is not there is no error.
func read(path string, mode *fs.FileMode) (real string, raw []byte, exists bool, err error) {
	real, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", nil, false, errors.New("it is a symbolic link to what is not there")
		}
		return path, nil, false, nil
	}
	if err != nil {
		return "", nil, false, reason(err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", nil, false, reason(err)
	case !info.Mode().IsRegular():
		return "", nil, false, errors.New("it is no file")
	case info.Size() > maxFile:
		return "", nil, false, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	*mode = info.Mode().Perm()
	raw, err = os.ReadFile(real)
	if raw == nil {
		raw = []byte{}
	}
	return real, raw, true, reason(err)
}

// reason is a file error without the path, which the caller names.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// Apply writes a change: first the copy of what was there, then the file, whole or
// not at all. A file that has changed since the plan is left alone.
func (ch *Change) Apply(now time.Time) error {
	if !ch.Changed {
		return nil
	}
	if err := ch.apply(now); err != nil {
		return fmt.Errorf("%s: %w", ch.Path, reason(err))
	}
	return nil
}

func (ch *Change) apply(now time.Time) (err error) {
	mode := ch.mode
	real, raw, exists, err := read(ch.Path, &mode)
	if err != nil {
		return err
	}
	if real != ch.real || exists != ch.Exists || !bytes.Equal(raw, ch.before) {
		return errors.New("it has changed meanwhile; run setup again")
	}
	dir := filepath.Dir(ch.real)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if ch.Exists {
		backup := ch.real + ".loci-backup-" + now.UTC().Format("20060102T150405.000000Z")
		if err := writeNew(backup, ch.before, ch.mode); err != nil {
			return fmt.Errorf("no copy of it could be kept: %w", reason(err))
		}
		ch.Backup = backup
	}
	if ch.after == nil {
		return os.Remove(ch.real)
	}
	next := ch.real + ".loci-new-" + now.UTC().Format("20060102T150405.000000Z")
	if err := writeNew(next, ch.after, ch.mode); err != nil {
		return err
	}
	if err := os.Rename(next, ch.real); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return nil
}

// writeNew writes a file that must not be there.
func writeNew(path string, raw []byte, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	_, err = f.Write(raw)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
