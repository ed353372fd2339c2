package loci

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Snapshots of agent memories lie in the data directory as agent/NAMESPACE/SCOPE/
// snapshot-N.loci. Erasure reads their headers rather than the names of folders, which
// it has no need to understand.
const (
	agentFolder     = "agent"
	snapshotPattern = "snapshot-*.loci"
	erasedSuffix    = ".tmp" // of a file that is being rewritten; whoever writes snapshots removes such
)

// snapshots takes what goes out of the snapshots in the data directory. It comes
// before the records do, which say what has to go: so an erasure that is killed finds
// them again. Nobody can tell what is in a snapshot that cannot be read: it is removed
// with a namespace as a whole, if others in its folder say that it is of that one, and
// else named as not reached.
func (r *eraseRun) snapshots(ctx context.Context) error {
	if r.namespace == 0 {
		return nil
	}
	root, err := os.OpenRoot(r.e.dir)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the data directory could not be opened")
	}
	defer root.Close()
	if err := r.removeUnfinished(root); err != nil {
		return err
	}
	files, err := fs.Glob(root.FS(), path.Join(agentFolder, "*", "*", snapshotPattern))
	if err != nil {
		return errs.Wrap(errs.IO, err, "the snapshots of agent memories could not be listed")
	}
	mine := map[string]bool{} // folders of namespaces: whether it is ours
	unreadable := []string{}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := &snapshotErasure{eraseRun: r, root: root, file: file}
		err := s.read(ctx)
		if s.header != nil {
			mine[namespaceFolder(file)] = s.header.Namespace == r.filter.Namespace
		}
		switch {
		case err != nil && errs.CodeOf(err) == errs.Validation:
			unreadable = append(unreadable, file)
		case err != nil:
			return err
		default:
			if err := s.write(ctx); err != nil {
				return err
			}
		}
	}
	for _, file := range unreadable {
		if r.whole() && r.every && mine[namespaceFolder(file)] {
			if err := r.removeSnapshot(root, file); err != nil {
				return err
			}
			continue
		}
		r.unreadable = append(r.unreadable, filepath.Join(r.e.dir, filepath.FromSlash(file)))
	}
	if r.dryRun {
		return nil
	}
	return removeEmptyFolders(root)
}

// removeEmptyFolders removes folders of agent memories that have no snapshot any more:
// their names are those of namespaces and scopes. Nobody writes a snapshot now.
func removeEmptyFolders(root *os.Root) error {
	for _, level := range []string{path.Join(agentFolder, "*", "*"), path.Join(agentFolder, "*")} {
		names, err := fs.Glob(root.FS(), level)
		if err != nil {
			return errs.Wrap(errs.IO, err, "the folders of agent memories could not be listed")
		}
		for _, name := range names {
			info, err := root.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
				continue
			}
			var entries []fs.DirEntry
			if err == nil {
				entries, err = fs.ReadDir(root.FS(), name)
			}
			if err == nil && len(entries) == 0 {
				err = root.Remove(name)
			}
			if err != nil {
				return errs.Wrap(errs.IO, err, "an empty folder of agent memories could not be removed")
			}
		}
	}
	return nil
}

// removeUnfinished removes what killed processes left. Nobody writes such a file now.
func (r *eraseRun) removeUnfinished(root *os.Root) error {
	names, err := unfinishedFiles(root)
	for _, name := range names {
		if err != nil || r.dryRun {
			break
		}
		if err = root.Remove(name); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return errs.Wrap(errs.IO, err, "what is left of an unfinished snapshot could not be removed")
}

func namespaceFolder(file string) string { return path.Dir(path.Dir(file)) }

func (r *eraseRun) removeSnapshot(root *os.Root, file string) error {
	r.tally.SnapshotsRemoved++
	if r.dryRun {
		return nil
	}
	if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errs.Wrap(errs.IO, err, "a snapshot of an agent memory could not be removed")
	}
	syncFolder(filepath.Join(r.e.dir, filepath.FromSlash(path.Dir(file))))
	return nil
}

// snapshotErasure takes what goes out of one snapshot.
type snapshotErasure struct {
	*eraseRun
	root   *os.Root
	file   string
	header *agentfile.Header

	gone  map[fileKey]bool // points that go
	edges int64            // that go for what they say
	left  int64            // points that stay
}

// fileKey is a point of a snapshot.
type fileKey struct {
	kind string
	key  uint64
}

// open opens the snapshot for reading.
func (s *snapshotErasure) open() (*os.File, *agentfile.Reader, error) {
	f, err := s.root.Open(s.file)
	if err != nil {
		return nil, nil, errs.Wrap(errs.IO, err, "a snapshot of an agent memory could not be opened")
	}
	r, err := agentfile.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, r, nil
}

// read finds what of the snapshot goes.
func (s *snapshotErasure) read(ctx context.Context) error {
	f, r, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	s.header, s.gone = r.Header(), map[fileKey]bool{}
	if s.header.Namespace != s.filter.Namespace {
		return nil
	}
	return s.each(ctx, r, func(record any) error {
		switch v := record.(type) {
		case *agentfile.Point:
			key := fileKey{v.Kind, v.Key}
			if s.goes(v) {
				s.gone[key] = true
			} else {
				s.left++
			}
		case *agentfile.PointVersion:
			key := fileKey{v.Kind, v.Key}
			if !s.gone[key] && s.looks(s.header.Scope) && s.saysVersion(v) {
				s.gone[key] = true
				s.left--
			}
		case *agentfile.Edge:
			if s.goesEdge(v) {
				s.edges++
			}
		}
		return nil
	})
}

// each calls fn with every record of a snapshot.
func (s *snapshotErasure) each(ctx context.Context, r *agentfile.Reader, fn func(any) error) error {
	for n := 0; ; n++ {
		if n%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(record); err != nil {
			return err
		}
	}
}

// looks says whether texts of the scope's points are looked through for words.
func (s *snapshotErasure) looks(scope string) bool {
	return s.mentions && len(s.words) > 0 && (s.every || slices.Contains(s.filter.Scopes, scope))
}

// goes says whether a point goes: it does in the store, or it would if it were still
// there as it was.
func (s *snapshotErasure) goes(p *agentfile.Point) bool {
	kind := store.Kind(Kind(p.Kind).number())
	if s.points[pointPlace{s.header.Scope, kind, p.Key}] {
		return true
	}
	if len(s.filter.noteIDs) > 0 {
		return false
	}
	record := &store.Record{
		Kind: kind, Namespace: s.header.Namespace, Scope: s.header.Scope, Thread: p.Thread, Created: p.Created, Tags: p.Tags, Metadata: p.Metadata,
	}
	if !s.covers(record) {
		return false
	}
	return !s.picks() || s.mentions && s.says(p)
}

func (s *snapshotErasure) says(p *agentfile.Point) bool {
	m := mentionSearch{words: s.words}
	m.text(p.Title, p.Content, p.Thread)
	m.text(p.Tags...)
	m.json(p.Data)
	m.json(p.Metadata)
	m.json(p.Evidence)
	return m.found
}

func (s *snapshotErasure) saysVersion(v *agentfile.PointVersion) bool {
	m := mentionSearch{words: s.words}
	m.text(v.Title, v.Content)
	m.json(v.Data)
	m.json(v.Metadata)
	return m.found
}

// goesEdge says whether an edge goes for what it says.
func (s *snapshotErasure) goesEdge(e *agentfile.Edge) bool {
	if !s.looks(s.header.Scope) {
		return false
	}
	m := mentionSearch{words: s.words}
	m.text(e.Type)
	m.json(e.Properties)
	return m.found
}

// write rewrites the snapshot without what goes, or removes it when nothing is left
// of it.
func (s *snapshotErasure) write(ctx context.Context) error {
	removed := s.whole() && s.header.Namespace == s.filter.Namespace && (s.every || slices.Contains(s.filter.Scopes, s.header.Scope))
	switch {
	case removed, len(s.gone) > 0 && s.left == 0:
		return s.removeSnapshot(s.root, s.file)
	case len(s.gone) == 0 && s.edges == 0:
		return nil
	}
	s.tally.SnapshotsRewritten++
	if s.dryRun {
		return nil
	}
	return s.rewrite(ctx)
}

// rewrite writes a file beside the snapshot, which takes its name in the end.
func (s *snapshotErasure) rewrite(ctx context.Context) (err error) {
	f, r, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	name := s.file + erasedSuffix
	out, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return errs.Wrap(errs.IO, err, "a snapshot of an agent memory could not be rewritten")
	}
	defer func() {
		if err != nil {
			out.Close() // it may be already
			if gone := s.root.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
			err = errs.Wrap(errs.IO, err, "a snapshot of an agent memory could not be rewritten; it is as it was")
		}
	}()
	buffered := bufio.NewWriterSize(out, 1<<20)
	w, err := agentfile.NewWriter(buffered, r.Header())
	if err != nil {
		return err
	}
	if err := s.each(ctx, r, func(record any) error { return s.keep(w, record) }); err != nil {
		return err
	}
	if _, err := w.Close(); err != nil {
		return err
	}
	if err := errors.Join(buffered.Flush(), out.Sync(), out.Close()); err != nil {
		return err
	}
	// Windows renames over no file that is open.
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.root.Rename(name, s.file); err != nil {
		return err
	}
	syncFolder(filepath.Join(s.e.dir, filepath.FromSlash(path.Dir(s.file))))
	return nil
}

// keep writes what stays of a snapshot.
func (s *snapshotErasure) keep(w *agentfile.Writer, record any) error {
	switch v := record.(type) {
	case *agentfile.Point:
		if !s.gone[fileKey{v.Kind, v.Key}] {
			return w.Point(v)
		}
	case *agentfile.PointVersion:
		if !s.gone[fileKey{v.Kind, v.Key}] {
			return w.Version(v)
		}
	case *agentfile.Edge:
		if !s.gone[fileKey{v.FromKind, v.From}] && !s.gone[fileKey{v.ToKind, v.To}] && !s.goesEdge(v) {
			return w.Edge(v)
		}
	}
	return nil
}

// Copying implements link.Store.
func (l engineLink) Copying(ctx context.Context) (func(), error) { return l.e.copying.enter(ctx) }

// unfinishedFiles are what killed processes left in the folders of agent memories:
// snapshots that were being written, and what was read from a stream.
func unfinishedFiles(root *os.Root) (files []string, err error) {
	err = fs.WalkDir(root.FS(), agentFolder, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == agentFolder {
			return fs.SkipAll
		}
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, erasedSuffix) {
			files = append(files, name)
		}
		return err
	})
	return files, errs.Wrap(errs.IO, err, "the folder of the agent memories could not be read")
}
