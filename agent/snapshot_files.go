package agent

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

const (
	snapshotPrefix = "snapshot-"
	snapshotSuffix = ".loci"
	// unfinished ends the name of a snapshot that is being written.
	unfinished = ".tmp"
)

func snapshotName(version int64) string {
	return snapshotPrefix + strconv.FormatInt(version, 10) + snapshotSuffix
}

// snapshotVersion is the version of a file's name; false when it is not one that
// snapshotName gives.
func snapshotVersion(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, snapshotPrefix)
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, snapshotSuffix); !ok {
		return 0, false
	}
	version, err := strconv.ParseInt(digits, 10, 64)
	return version, err == nil && version > 0 && snapshotName(version) == name
}

// maxComponent bounds the length of a folder's name, in bytes. File systems take 255.
const maxComponent = 200

// folderName makes the name of a folder of any label, so that different labels have
// different folders, also where a file system ignores case or takes forms of one
// letter for the same: what is not a small letter, a digit, "-" or "_" is written as
// bytes. A name that Windows keeps for a device begins with such a byte, and one that
// would be too long ends in a digest, which no other holds the mark of.
func folderName(label string) string {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	var b strings.Builder
	cut := 0 // where the name may be cut to make room for a digest
	for i := range len(label) {
		if b.Len() <= maxComponent-1-2*sha256.Size {
			cut = b.Len()
		}
		if c := label[i]; strings.IndexByte(plain, c) >= 0 && (i > 0 || !isDevice(label)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if len(name) <= maxComponent {
		return name
	}
	sum := sha256.Sum256([]byte(label))
	return name[:cut] + "~" + hex.EncodeToString(sum[:])
}

// isDevice says whether Windows keeps a name, as far as such a name would be left as
// it is.
func isDevice(label string) bool {
	switch label {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(label) == 4 && (strings.HasPrefix(label, "com") || strings.HasPrefix(label, "lpt")) && label[3] >= '0' && label[3] <= '9'
}

// fileHooks are where tests have a file system fail; nil where they do not.
type fileHooks struct {
	// before is called before each step, of which it may be the last.
	before func(step string) error
}

func (h *fileHooks) step(name string) error {
	if h == nil || h.before == nil {
		return nil
	}
	return h.before(name)
}

// snapshotDir is the folder with a memory's snapshots.
type snapshotDir struct {
	m    *AgentMemory
	fs   *fileHooks
	root *os.Root // nil: there is none
	at   string   // its path, for what takes no root
}

// open opens the folder, and makes it if make is set; without, one that is not there
// has no snapshots.
func (d *snapshotDir) open(make bool) error {
	if d.root != nil {
		return nil
	}
	data, err := d.m.files()
	if err != nil {
		return err
	}
	defer data.Close()
	name := path.Join(filesDir, folderName(d.m.namespace), folderName(d.m.scope))
	d.at = filepath.Join(d.m.link.Directory(), filepath.FromSlash(name))
	d.root, err = data.OpenRoot(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return errs.Wrap(errs.IO, err, "the folder with the snapshots could not be opened")
	}
	if !make {
		return nil
	}
	if err = d.fs.step("folder"); err == nil {
		err = data.MkdirAll(name, 0o700)
	}
	for at := name; err == nil && at != "."; { // each folder is in the one above it for good
		at = path.Dir(at)
		err = syncDir(filepath.Join(d.m.link.Directory(), filepath.FromSlash(at)))
	}
	if err == nil {
		d.root, err = data.OpenRoot(name)
	}
	return errs.Wrap(errs.IO, err, "the folder for snapshots could not be made")
}

func (d *snapshotDir) close() {
	if d.root != nil {
		_ = d.root.Close() // only a handle to a folder
		d.root = nil
	}
}

// versions gives the versions that are there, ascending.
func (d *snapshotDir) versions() ([]int64, error) {
	if d.root == nil {
		return nil, nil
	}
	names, err := listDir(d.root, ".")
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the folder with the snapshots could not be read")
	}
	var out []int64
	for _, name := range names {
		if version, ok := snapshotVersion(name); ok {
			out = append(out, version)
		}
	}
	slices.Sort(out)
	return out, nil
}

// tidy removes what a killed process or a full disk left.
func (d *snapshotDir) tidy() error {
	names, err := listDir(d.root, ".")
	for _, name := range names {
		if err == nil && strings.HasSuffix(name, unfinished) {
			err = d.root.Remove(name)
		}
	}
	return errs.Wrap(errs.IO, err, "what is left of an unfinished snapshot could not be removed")
}

// file opens a snapshot.
func (d *snapshotDir) file(version int64) (*os.File, error) {
	if d.root == nil {
		return nil, fs.ErrNotExist
	}
	return d.root.Open(snapshotName(version))
}

// write writes a snapshot.
func (d *snapshotDir) write(ctx context.Context, op string, version int64) (info SnapshotInfo, err error) {
	name := snapshotName(version)
	f, err := d.create(name + unfinished)
	if err != nil {
		return info, errs.Wrap(errs.IO, err, "snapshot %d could not be written", version)
	}
	defer func() {
		if err != nil {
			// What cannot be removed now is by the next snapshot. f is closed already, or is
			// to be.
			_ = f.Close()
			_ = d.root.Remove(name + unfinished)
		}
	}()
	kinds := pointKinds()
	buffered := bufio.NewWriterSize(&hookedWriter{d.fs, f}, 1<<20)
	sum, err := d.m.serialize(ctx, op, buffered, kinds[:], true)
	if err != nil {
		return info, err
	}
	if err = buffered.Flush(); err == nil {
		err = d.finish(f, name)
	}
	if err != nil {
		return info, errs.Wrap(errs.IO, err, "snapshot %d could not be written", version)
	}
	return SnapshotInfo{
		Version: version, CreatedAtUS: sum.created, Bytes: sum.Bytes, Facts: sum.Facts, Episodes: sum.Episodes,
		Procedures: sum.Procedures, Versions: sum.Versions, Relations: sum.Relations, Vectors: sum.Vectors, OK: true,
	}, nil
}

func (d *snapshotDir) create(name string) (*os.File, error) {
	if err := d.fs.step("create"); err != nil {
		return nil, err
	}
	return d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// finish makes a file that was written durable, and then known by its name.
func (d *snapshotDir) finish(f *os.File, name string) error {
	err := d.fs.step("sync")
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = d.fs.step("rename")
	}
	if err == nil {
		err = d.root.Rename(name+unfinished, name)
	}
	if err == nil {
		err = d.fs.step("sync folder")
	}
	if err == nil {
		err = syncDir(d.at)
	}
	return err
}

// hookedWriter is a file that tests have fail.
type hookedWriter struct {
	fs *fileHooks
	f  *os.File
}

func (w *hookedWriter) Write(p []byte) (int, error) {
	if err := w.fs.step("write"); err != nil {
		return 0, err
	}
	return w.f.Write(p)
}

// retain removes all but the latest keep snapshots.
func (d *snapshotDir) retain(keep int) (removed []int64, warnings []string) {
	removed = []int64{}
	versions, err := d.versions()
	if err != nil {
		return removed, []string{reasonOf(err)}
	}
	for _, version := range versions[:max(0, len(versions)-keep)] {
		err := d.fs.step("remove")
		if err == nil {
			err = d.root.Remove(snapshotName(version))
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("snapshot %d could not be removed: %s", version, err))
			continue
		}
		removed = append(removed, version)
		d.forget(version)
	}
	return removed, warnings
}

// forget drops what is known of a file that is gone.
func (d *snapshotDir) forget(version int64) {
	t := d.m.turns()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.checked, filepath.Join(d.at, snapshotName(version)))
}

// checkedFile is what is known of a snapshot that was read whole.
type checkedFile struct {
	size     int64
	modified time.Time
	want     int // the dimension that it was held against
	info     SnapshotInfo
}

// info reads a snapshot and says what it holds, and whether it could be restored.
func (d *snapshotDir) info(ctx context.Context, version int64, want *expectation) (SnapshotInfo, error) {
	info := SnapshotInfo{Version: version}
	f, err := d.file(version)
	if errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	if err != nil {
		info.Problem = "it could not be opened: " + err.Error()
		return info, nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		info.Problem = "it could not be read: " + err.Error()
		return info, nil
	}
	info.Bytes = st.Size()
	t, key := d.m.turns(), filepath.Join(d.at, snapshotName(version))
	t.mu.Lock()
	known, ok := t.checked[key]
	t.mu.Unlock()
	if ok && known.size == st.Size() && known.modified.Equal(st.ModTime()) && known.want == want.dimension {
		return known.info, nil
	}
	h, sum, err := want.inspect(ctx, f)
	if ctx.Err() != nil {
		return info, ctx.Err()
	}
	if h != nil {
		info.CreatedAtUS = h.CreatedAt
	}
	if err != nil {
		info.Problem = reasonOf(err)
		if errs.CodeOf(err) == errs.IO {
			return info, nil // perhaps not the next time
		}
	} else {
		info.OK, info.Facts, info.Episodes, info.Procedures = true, sum.Facts, sum.Episodes, sum.Procedures
		info.Versions, info.Relations, info.Vectors = sum.Versions, sum.Edges, sum.Vectors
	}
	t.mu.Lock()
	t.checked[key] = checkedFile{st.Size(), st.ModTime(), want.dimension, info}
	t.mu.Unlock()
	return info, nil
}
