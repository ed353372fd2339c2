package loci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/note"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

const (
	// From this many notes on, more than half of them going is taken for a
	// mistake, such as a disk that is not there.
	massDeleteFrom = 20

	syncBatchFiles  = 32      // files in one transaction
	syncBatchBytes  = 4 << 20 // and the sum of their sizes, unless one is larger
	syncBatchGone   = 256     // notes deleted in one transaction
	maxSyncProblems = 1000    // a report lists at most
)

// defaultExtensions are those of files that are brought in unless told
// otherwise.
var defaultExtensions = []string{".md", ".markdown", ".txt"}

// noteSync is one run of SyncDir.
type noteSync struct {
	s          *NoteStore
	o          *SyncOptions
	folder     *noteFolder
	namespace  string
	scope      string
	tags       []string // of the options
	chunkChars int
	extensions map[string]bool
	redactor   *secretscan.Redactor

	files    []syncFile // by path
	notes    map[string]*store.Note
	report   SyncReport
	revision int64
	done     int64
}

// syncFile is a file as the walk saw it.
type syncFile struct {
	path string
	size int64
	time time.Time
}

// SyncDir brings the notes of a namespace and scope up to the folder that is
// the namespace's root: new files come in, changed ones are read anew, and notes
// whose file is gone go too. A file that cannot be taken is reported and the
// rest goes on; files in UTF-16 or GBK are converted. Names that begin with a
// dot are left out, and so are symbolic links: what they lead to under the root
// is found where it is.
//
// Files are written some at a time: ended half-way, it has done a part, and the
// next call does the rest. When more than half of 20 or more notes would go it
// is ErrConflict and nothing is done, unless the options allow it. A root that
// is not there is ErrIO.
func (s *NoteStore) SyncDir(ctx context.Context, namespace string, o SyncOptions) (*Receipt[SyncReport], error) {
	const op = "notes.sync_dir"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	y, err := s.newSync(ctx, namespace, &o)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	defer y.folder.close()
	if err := y.run(ctx); err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[SyncReport]{Value: y.report, Revision: y.revision, Redacted: redactedBy(y.redactor)}, nil
}

func (s *NoteStore) newSync(ctx context.Context, namespace string, o *SyncOptions) (_ *noteSync, err error) {
	y := &noteSync{s: s, o: o, namespace: namespace, scope: PublicScope, extensions: map[string]bool{}}
	y.report.Problems = []SyncProblem{}
	y.redactor = s.eng.redactor(ctx)
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, err
	}
	if o.Scope != nil {
		if err := valid.Label("scope", *o.Scope, MaxScopeBytes); err != nil {
			return nil, err
		}
		y.scope = *o.Scope
	}
	// As with UpsertFile.
	if err := mayWriteAll(ctx, namespace); err != nil {
		return nil, err
	}
	if y.tags, err = validTags("tags", y.redactor.Texts(o.Tags)); err != nil {
		return nil, err
	}
	if y.chunkChars, err = checkChunkChars(o.ChunkChars); err != nil {
		return nil, err
	}
	extensions := o.Extensions
	if extensions == nil {
		extensions = defaultExtensions
	}
	for i, e := range extensions {
		if len(e) < 2 || e[0] != '.' || strings.ContainsAny(e, `/\`) {
			return nil, errs.Invalid(fmt.Sprintf("extensions[%d]", i), `must begin with a dot, as in ".md"`)
		}
		y.extensions[strings.ToLower(e)] = true
	}
	if len(y.extensions) == 0 {
		return nil, errs.Invalid("extensions", "must name at least one; leave it out for .md, .markdown and .txt")
	}
	y.folder, err = s.folder(ctx, namespace)
	return y, err
}

func (y *noteSync) run(ctx context.Context) error {
	if err := y.walk(ctx); err != nil {
		return err
	}
	err := y.s.eng.read(ctx, func(tx *store.ReadTx) error {
		notes, err := tx.NotesIn(y.namespace, y.scope)
		y.notes = make(map[string]*store.Note, len(notes))
		for _, n := range notes {
			y.notes[n.Path] = n
		}
		y.revision = tx.Revision()
		return err
	})
	if err != nil {
		return err
	}
	gone, err := y.gone()
	if err != nil {
		return err
	}
	if n := len(y.notes); n >= massDeleteFrom && 2*len(gone) > n && !y.o.AllowMassDelete && !y.o.DryRun {
		return &errs.Error{Code: errs.Conflict, Field: "allow_mass_delete",
			Message: fmt.Sprintf("the files of %d of %d notes are gone: check the root, or allow it if they are to go", len(gone), n)}
	}
	y.reportTwins()
	if err := y.bringIn(ctx); err != nil {
		return err
	}
	return y.remove(ctx, gone)
}

// problem notes what is wrong with a file.
func (y *noteSync) problem(rel string, err error, skipped bool) {
	if skipped {
		y.report.Skipped++
	}
	if len(y.report.Problems) == maxSyncProblems {
		return
	}
	p := SyncProblem{Path: strings.ToValidUTF8(rel, "\ufffd"), Code: errs.CodeOf(err), Message: err.Error(), Skipped: skipped}
	if p.Code == "" {
		p.Code = errs.IO
	}
	if e, ok := err.(*errs.Error); ok { // the code stands beside it
		bare := *e
		bare.Op, bare.Field = "", ""
		p.Message = strings.TrimSuffix(bare.Error(), " ("+string(e.Code)+")")
	}
	y.report.Problems = append(y.report.Problems, p)
}

// walk lists the files of the folder.
func (y *noteSync) walk(ctx context.Context) error {
	err := fs.WalkDir(y.folder.root.FS(), ".", func(rel string, entry fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if rel == "." {
			return err // without the folder itself there is nothing to do
		}
		if err != nil {
			y.problem(rel, unreadable(err), false)
			return nil
		}
		name := entry.Name()
		if name[0] == '.' {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			y.link(rel)
			return nil
		}
		if entry.IsDir() || !y.wanted(name) {
			return nil
		}
		y.report.Files++
		info, err := entry.Info()
		if err == nil {
			err = regular(info)
		}
		if err == nil {
			err = note.CheckRel(rel)
		}
		if err != nil {
			y.problem(rel, unreadable(err), true)
			return nil
		}
		y.files = append(y.files, syncFile{rel, info.Size(), changeTime(info)})
		return nil
	})
	if err != nil && errs.CodeOf(err) == "" {
		return noRootFolder(err)
	}
	return err
}

func (y *noteSync) wanted(name string) bool { return y.extensions[strings.ToLower(path.Ext(name))] }

// link reports a symbolic link that leads out of the root, or nowhere, if it
// could have been a note.
func (y *noteSync) link(rel string) {
	_, err := y.folder.resolve(rel)
	if err == nil {
		return
	}
	info, statErr := os.Stat(filepath.Join(y.folder.real, filepath.FromSlash(rel)))
	if y.wanted(rel) || statErr == nil && info.IsDir() {
		y.report.Files++
		y.problem(rel, err, true)
	}
}

// gone gives the notes whose file is not there any more. A file that was not
// seen may still be there, under a folder that cannot be read or with an
// extension that is not looked for.
func (y *noteSync) gone() (gone []*store.Note, err error) {
	seen := make(map[string]bool, len(y.files))
	folded := make(map[string][]string, len(y.files))
	for i := range y.files {
		f := &y.files[i]
		seen[f.path] = true
		key := note.FoldKey(f.path)
		folded[key] = append(folded[key], f.path)
	}
	for rel, n := range y.notes {
		if seen[rel] {
			continue
		}
		info, err := y.folder.root.Lstat(filepath.FromSlash(rel))
		switch {
		case errors.Is(err, fs.ErrNotExist) || isNotFolder(err):
			gone = append(gone, n)
		case err == nil && (!info.Mode().IsRegular() || y.renamed(info, folded[note.FoldKey(rel)])):
			gone = append(gone, n)
		}
	}
	slices.SortFunc(gone, func(a, b *store.Note) int { return strings.Compare(a.Path, b.Path) })
	// Had the folder itself gone meanwhile, all of this would say nothing.
	now, errNow := os.Stat(y.folder.real)
	opened, errOpened := y.folder.root.Stat(".")
	if err := errors.Join(errNow, errOpened); err != nil {
		return nil, noRootFolder(err)
	}
	if !os.SameFile(now, opened) {
		return nil, errs.New(errs.IO, "the root of the notes was replaced meanwhile: try again")
	}
	return gone, nil
}

// renamed says whether a file that was not seen under its name was seen under
// one that the file system takes for the same.
func (y *noteSync) renamed(info fs.FileInfo, paths []string) bool {
	return slices.ContainsFunc(paths, func(rel string) bool {
		other, err := y.folder.root.Lstat(filepath.FromSlash(rel))
		return err == nil && os.SameFile(info, other)
	})
}

// isNotFolder says that a piece of a path is a file now.
func isNotFolder(err error) bool {
	return errors.Is(err, syscall.ENOTDIR)
}

// reportTwins tells of files that some file system takes for one.
func (y *noteSync) reportTwins() {
	first := make(map[string]string, len(y.files))
	for i := range y.files {
		rel := y.files[i].path
		key := note.FoldKey(rel)
		if other, ok := first[key]; ok {
			y.problem(rel, errs.New(errs.Conflict, "differs from %q only in case or in how accents are written: some systems take them for one file, rename one", other), false)
			continue
		}
		first[key] = rel
	}
}

// progress counts files as dealt with.
func (y *noteSync) progress(n int) {
	y.done += int64(n)
	if y.o.Progress != nil {
		y.o.Progress(y.done, int64(len(y.files)))
	}
}

// bringIn reads what may be new or changed, some files at a time: while some
// are written the next are read.
func (y *noteSync) bringIn(ctx context.Context) error {
	var todo []syncFile
	for _, f := range y.files {
		if n := y.notes[f.path]; n != nil && y.untouched(n, &f) {
			y.report.Unchanged++
			continue
		}
		todo = append(todo, f)
	}
	y.progress(len(y.files) - len(todo))
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan []syncDraft, 1)
	failed := make(chan error, 1)
	go func() {
		defer close(batches)
		for len(todo) > 0 {
			n, bytes := 0, int64(0)
			for n < len(todo) && n < syncBatchFiles && (n == 0 || bytes+todo[n].size <= syncBatchBytes) {
				bytes += todo[n].size
				n++
			}
			batch, err := y.read(ctx, todo[:n])
			if err != nil {
				failed <- err
				return
			}
			select {
			case batches <- batch:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
			todo = todo[n:]
		}
		failed <- nil
	}()
	var err error
	for batch := range batches {
		if err == nil {
			if err = y.write(ctx, batch); err != nil {
				cancel()
			}
		}
	}
	readErr := <-failed
	cancel()
	if err == nil {
		err = readErr
	}
	return err
}

// untouched says whether the file need not even be read.
func (y *noteSync) untouched(n *store.Note, f *syncFile) bool {
	if n.Modified == 0 || n.Modified != f.time.UnixNano() || n.Bytes != f.size || n.ChunkChars != y.chunkChars {
		return false
	}
	if y.tags == nil {
		return true
	}
	pathTags, err := validTags("path", note.PathTags(f.path))
	if err != nil {
		return false
	}
	tags, err := withPathTags(y.tags, pathTags)
	return err == nil && slices.Equal(tags, n.Tags)
}

// syncDraft is a file that was read.
type syncDraft struct {
	path      string
	draft     *noteDraft
	converted string // the encoding, when it was not UTF-8
	err       error  // why it cannot be taken
}

// read reads and prepares some files, on all processors.
func (y *noteSync) read(ctx context.Context, files []syncFile) ([]syncDraft, error) {
	out := make([]syncDraft, len(files))
	parallelFiles(len(files), func(i int) {
		out[i].path = files[i].path
		if ctx.Err() == nil {
			out[i].draft, out[i].converted, out[i].err = y.readFile(&files[i])
		}
	})
	if err := ctx.Err(); err != nil || y.o.DryRun {
		return out, err
	}
	todo := make([][]int, len(out))
	err := y.s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
		for i := range out {
			if d := out[i].draft; d != nil {
				if todo[i], err = d.unanalysed(tx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		parallelFiles(len(out), func(i int) {
			for _, piece := range todo[i] {
				y.s.document(out[i].draft, piece)
			}
		})
	}
	return out, err
}

// parallelFiles calls f for 0..n-1 on all processors, each taking the next one:
// files differ in size.
func parallelFiles(n int, f func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	group.Wait()
}

func (y *noteSync) readFile(f *syncFile) (*noteDraft, string, error) {
	now := y.s.eng.clock()
	d := &noteDraft{keep: true, chunkChars: y.chunkChars, now: now.UnixMicro(), redactor: y.redactor}
	d.namespace, d.scope, d.tags = y.namespace, y.scope, y.tags
	old := y.notes[f.path]
	if y.tags == nil && old != nil {
		d.tags = old.Tags
	}
	if err := d.at(f.path); err != nil {
		return nil, "", err
	}
	content, err := y.folder.read(f.path)
	if err != nil {
		return nil, "", err
	}
	encoding, err := d.load(content, trusted(content.modified, now))
	if err != nil {
		return nil, "", err
	}
	if encoding == note.UTF8 {
		encoding = ""
	}
	if !y.o.DryRun && (old == nil || !d.sameChunks(old)) {
		err = d.cut()
	}
	return d, encoding, err
}

// write writes some files in one transaction.
func (y *noteSync) write(ctx context.Context, batch []syncDraft) error {
	var drafts []syncDraft
	for _, b := range batch {
		if b.err != nil {
			y.problem(b.path, b.err, true)
			continue
		}
		if b.converted != "" {
			y.report.Converted++
		}
		drafts = append(drafts, b)
	}
	if err := y.writeDrafts(ctx, drafts); err != nil {
		return err
	}
	y.progress(len(batch))
	return nil
}

func (y *noteSync) writeDrafts(ctx context.Context, drafts []syncDraft) error {
	if len(drafts) == 0 {
		return nil
	}
	outcomes := make([]noteOutcome, len(drafts))
	if y.o.DryRun {
		for i, b := range drafts {
			outcomes[i] = y.wouldDo(b.draft)
		}
	} else {
		revision, err := y.s.eng.write(ctx, func(tx *store.WriteTx) (err error) {
			for i, b := range drafts {
				if _, outcomes[i], err = y.s.apply(tx, b.draft); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case err == nil:
			y.revision = revision
		case len(drafts) > 1 && errs.CodeOf(err) != errs.Canceled && errs.CodeOf(err) != errs.Closed:
			// One of them cannot be written: the others can.
			for i := range drafts {
				if err := y.writeDrafts(ctx, drafts[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		case errs.CodeOf(err) == errs.Validation || errs.CodeOf(err) == errs.Conflict:
			y.problem(drafts[0].path, err, true)
			return nil
		default:
			return err
		}
	}
	for _, outcome := range outcomes {
		switch outcome {
		case noteAdded:
			y.report.Added++
		case noteChanged:
			y.report.Changed++
		default:
			y.report.Unchanged++
		}
	}
	return nil
}

func (y *noteSync) wouldDo(d *noteDraft) noteOutcome {
	old := y.notes[d.path]
	d.settle(old)
	switch {
	case old == nil:
		return noteAdded
	case d.same(old):
		return noteUnchanged
	default:
		return noteChanged
	}
}

// remove deletes the notes whose files are gone.
func (y *noteSync) remove(ctx context.Context, gone []*store.Note) error {
	if y.o.DryRun {
		y.report.Deleted = len(gone)
		return nil
	}
	filter := &readFilter{Filter: store.Filter{Namespace: y.namespace, Scopes: []string{y.scope}, Kind: store.KindNote}}
	for len(gone) > 0 {
		batch := gone[:min(len(gone), syncBatchGone)]
		gone = gone[len(batch):]
		var n int
		revision, err := y.s.eng.writeMany(ctx, func(tx *store.WriteTx) error {
			n = 0
			for _, g := range batch {
				deleted, err := deleteNote(tx, filter, g.ID)
				if err != nil {
					return err
				}
				if deleted {
					n++
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		y.report.Deleted += n
		y.revision = revision
	}
	return nil
}
