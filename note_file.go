package loci

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/note"
)

// noteFolder is the folder that a namespace's notes lie under, opened for one
// operation. Files are opened through root, which leads nowhere else, whatever
// becomes a symbolic link meanwhile.
type noteFolder struct {
	dir  string // as it was registered
	real string // without symbolic links
	root *os.Root
}

func openNoteFolder(dir string) (*noteFolder, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, noRootFolder(err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, noRootFolder(err)
	}
	return &noteFolder{dir: dir, real: real, root: root}, nil
}

func noRootFolder(err error) error {
	return &errs.Error{Code: errs.IO, Field: "root", Err: plainCause(err),
		Message: "the root of the notes cannot be opened: mount it, or set another with set_root"}
}

// plainCause is the reason of a file error without the path, which the caller
// knows and which may be long.
func plainCause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (f *noteFolder) close() { f.root.Close() }

// resolve gives the relative path of the file behind path, which is absolute or
// relative to the folder: without symbolic links, with forward slashes. A file
// that does not lie under the folder is refused.
func (f *noteFolder) resolve(path string) (rel string, err error) {
	switch {
	case path == "":
		return "", errs.Invalid("path", "must not be empty")
	case strings.ContainsRune(path, 0):
		return "", errs.Invalid("path", "must not hold a zero byte")
	}
	path = filepath.FromSlash(path)
	if slices.Contains(strings.Split(path, string(filepath.Separator)), "..") {
		return "", errs.Invalid("path", `must not have the piece "..": name the file itself`)
	}
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(f.real, path)
	}
	lexical, under := f.relative(f.dir, abs)
	if !under {
		lexical, under = f.relative(f.real, abs)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		// What is outside is none of the caller's business, there or not.
		if !under {
			return "", outsideRoot()
		}
		if err := note.CheckRel(lexical); err != nil {
			return "", err
		}
		// Nor is what lies behind a link that leads there. That it does is the only thing
		// the root says of itself, and not in the system's words.
		if _, err := f.root.Stat(filepath.FromSlash(lexical)); err != nil {
			if _, system := errors.AsType[syscall.Errno](err); !system {
				return "", outsideRoot()
			}
		}
		return "", unreadable(err)
	}
	if rel, under = f.relative(f.real, resolved); !under {
		return "", outsideRoot()
	}
	return rel, note.CheckRel(rel)
}

func outsideRoot() error {
	return errs.Invalid("path", "must lie under the root of the notes, symbolic links resolved")
}

// relative gives path relative to dir, with forward slashes; false when it does
// not lie under it.
func (f *noteFolder) relative(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// noteContent is a file as it was read.
type noteContent struct {
	data     []byte
	modified time.Time // see changeTime
}

// read reads a file under the folder.
func (f *noteFolder) read(rel string) (*noteContent, error) {
	name := filepath.FromSlash(rel)
	// Opening a pipe would wait for somebody to write to it.
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, unreadable(err)
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	content, err := readStable(func() (openFile, error) { return f.root.Open(name) })
	if err != nil {
		return nil, unreadable(err)
	}
	return content, nil
}

// unreadable gives an error of a file its code and takes the path out of it.
func unreadable(err error) error {
	if errs.CodeOf(err) != "" {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errs.New(errs.IO, "there is no such file")
	}
	return errs.Wrap(errs.IO, plainCause(err), "the file cannot be read")
}

func regular(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errs.Invalid("path", "must name a file, not a folder or a device")
	}
	if info.Size() > MaxNoteBytes {
		return errs.Invalid("path", "names a file of %d bytes, at most %d are allowed", info.Size(), MaxNoteBytes)
	}
	return nil
}

// openFile is what readStable needs of an *os.File.
type openFile interface {
	io.ReadCloser
	Stat() (fs.FileInfo, error)
}

// readAttempts bounds how often a file that changes while it is read is read
// again.
const readAttempts = 4

// readStable reads a file whole, and again when somebody wrote to it meanwhile.
func readStable(open func() (openFile, error)) (*noteContent, error) {
	for range readAttempts {
		content, err := readOnce(open)
		if content != nil || err != nil {
			return content, err
		}
	}
	return nil, errs.New(errs.IO, "the file keeps changing while it is read: try again later")
}

// readOnce gives nil when the file was written to meanwhile.
func readOnce(open func() (openFile, error)) (*noteContent, error) {
	file, err := open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := regular(before); err != nil {
		return nil, err
	}
	data := make([]byte, 0, before.Size()+1) // a byte more, to see the end
	for len(data) <= MaxNoteBytes {
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	after, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != before.Size() || after.Size() != before.Size() || !changeTime(after).Equal(changeTime(before)) {
		return nil, nil
	}
	return &noteContent{data: data, modified: changeTime(after)}, nil
}

// settledAfter is how old the time of a file's last change must be to say that
// there was none since: within the file system's resolution a second change
// leaves no trace.
const settledAfter = 2 * time.Second

// trusted is the time of change to remember, 0 when it says nothing.
func trusted(modified, now time.Time) int64 {
	if modified.After(now.Add(-settledAfter)) {
		return 0
	}
	return modified.UnixNano()
}
