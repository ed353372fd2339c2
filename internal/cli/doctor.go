package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// The levels of a finding.
const (
	levelOK      = "ok"
	levelNote    = "note"    // worth knowing
	levelWarning = "warning" // may hurt later
	levelTrouble = "trouble" // does not work; the exit code says so too
)

// finding is one thing that doctor looked at.
type finding struct {
	Check   string `json:"check"`
	Level   string `json:"level"`
	Finding string `json:"finding"`
	Do      string `json:"do,omitempty"` // what to do about it
}

// doctor collects findings.
type doctor struct {
	app      *App
	dir      string
	files    *loci.Inspection // nil until look has read them
	findings []finding
}

func (d *doctor) add(check, level, text, do string) {
	d.findings = append(d.findings, finding{check, level, text, do})
}

func (a *App) doctorCommand() *cobra.Command {
	var deep bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the data directory and say what to do about each finding",
		Long: `Checks versions, settings, the models, the data directory, its file system and free
space, its files, who holds it, the database, the index and the vectors. It makes no store where there is
none. A store that another process holds is looked at through that process, but
for its vectors. The exit code is 1 when something does not work, and 5 when the
process that holds the data cannot be attached to; what the files tell is shown
then as well.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			d := &doctor{app: a, dir: a.settings.get("data").Value}
			code := d.run(ctx, deep)
			if err := ctx.Err(); err != nil {
				return err
			}
			err := a.Print(map[string]any{"ok": code == op.ExitOK, "data": d.dir, "findings": d.findings}, d.print)
			if err != nil {
				return err
			}
			if code != op.ExitOK {
				return Failed(code)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "also check the database's integrity, which reads every page")
	return cmd
}

func (d *doctor) print(w *Painter) {
	worst := levelOK
	for _, f := range d.findings {
		mark := w.Green("ok     ")
		switch f.Level {
		case levelNote:
			mark = w.Dim("note   ")
		case levelWarning:
			mark = w.Yellow("warning")
			if worst == levelOK {
				worst = levelWarning
			}
		case levelTrouble:
			mark = w.Red("trouble")
			worst = levelTrouble
		}
		w.Line(mark + "  " + w.Bold(f.Check) + ": " + clean(f.Finding))
		if f.Do != "" {
			w.Line("         " + clean(f.Do))
		}
	}
	switch worst {
	case levelOK:
		w.Line(w.Green("All is well"))
	case levelWarning:
		w.Line(w.Yellow("It works, with warnings"))
	default:
		w.Line(w.Red("Something does not work"))
	}
}

// run makes all checks and gives the exit code.
func (d *doctor) run(ctx context.Context, deep bool) int {
	v := d.app.deps.Version
	d.add("version", levelOK, fmt.Sprintf("loci %s, %s, %s", orUnknown(v.Version), v.Go, v.Platform), "")
	if s := d.app.settings; s.exists {
		d.add("settings", levelOK, "read from "+s.file, "")
	} else if s.file == "" {
		d.add("settings", levelOK, "defaults; there is no home directory to look for a file in", "")
	} else {
		d.add("settings", levelOK, "defaults; there is no "+s.file, "")
	}
	d.place()
	d.clients()
	d.tools()
	d.models(ctx)
	if !d.directory() {
		return d.code()
	}
	d.fileSystem()
	if !d.storeThere() {
		d.space()
		d.add("store", levelNote, "there is none yet", "The first write makes it: loci remember \"...\"")
		return d.code()
	}
	if !d.look() {
		return d.code()
	}
	d.space()
	d.filesFound()
	if d.files.Database.Problem == nil {
		d.store(ctx, deep)
	}
	return d.code()
}

func (d *doctor) code() int {
	code := op.ExitOK
	for _, f := range d.findings {
		if f.Level != levelTrouble {
			continue
		}
		if f.Check == checkLock {
			return op.ExitLocked
		}
		code = op.ExitFailed
	}
	return code
}

const checkLock = "lock"

// directory looks at the directory itself and says whether the rest makes sense.
func (d *doctor) directory() bool {
	const check = "data directory"
	if d.dir == "" {
		d.add(check, levelTrouble, "none is named, and there is no home directory", "Name one with --data or LOCI_DATA, or set HOME.")
		return false
	}
	info, err := os.Stat(d.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := existingParent(d.dir)
		if !writable(parent) {
			d.add(check, levelTrouble, d.dir+" is not there, and "+parent+" cannot be written",
				"Choose another directory with --data or LOCI_DATA, or change the permissions of "+parent+".")
			return false
		}
		d.add(check, levelOK, d.dir+" is not there yet and can be made", "")
	case err != nil:
		d.add(check, levelTrouble, d.dir+" cannot be looked at: "+cause(err), "Change its permissions or choose another directory with --data.")
		return false
	case !info.IsDir():
		d.add(check, levelTrouble, d.dir+" is a file", "Choose a directory with --data or LOCI_DATA.")
		return false
	case !writable(d.dir):
		d.add(check, levelTrouble, d.dir+" cannot be written", "Change its permissions or choose another directory with --data.")
		return false
	default:
		d.add(check, levelOK, d.dir, "")
	}
	return true
}

// cause is a file error without the path, which the finding names.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func existingParent(dir string) string {
	for {
		parent := filepath.Dir(dir)
		if parent == dir {
			return dir
		}
		if info, err := os.Stat(parent); err == nil && info.IsDir() {
			return parent
		}
		dir = parent
	}
}

// remoteSystems are file systems whose locks do not hold between machines, or
// that change files behind the database's back.
var remoteSystems = []string{"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "9p", "ceph", "davfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.davfs2", "webdav"}

// fileSystem says what the directory lies on, where the system tells.
func (d *doctor) fileSystem() {
	const check = "file system"
	dir := d.dir
	if _, err := os.Stat(dir); err != nil {
		dir = existingParent(dir)
	}
	kind := fileSystemOf(dir)
	for _, remote := range remoteSystems {
		if kind == remote {
			d.add(check, levelWarning, kind+" is a network file system; its locks may not hold",
				"Keep the data directory on a local disk.")
			return
		}
	}
	for _, part := range strings.Split(filepath.ToSlash(d.dir), "/") {
		switch strings.ToLower(part) {
		case "dropbox", "onedrive", "google drive", "icloud drive", "nextcloud", "syncthing":
			d.add(check, levelWarning, "the directory lies in "+part+", which copies files while they change",
				"Keep the data directory outside of synced folders.")
			return
		}
	}
	if kind == "" {
		d.add(check, levelNote, "this system does not tell its kind; opening the store tries its locks", "")
		return
	}
	d.add(check, levelOK, kind, "")
}

// storeThere says whether the directory holds a store, without opening it.
func (d *doctor) storeThere() bool {
	_, err := os.Stat(filepath.Join(d.dir, "loci.db"))
	return err == nil
}

// store opens the store and looks inside.
func (d *doctor) store(ctx context.Context, deep bool) {
	db, err := d.app.deps.Open(ctx, d.dir, &loci.Options{NoBackgroundEmbedding: true})
	if errors.Is(err, loci.ErrLocked) && d.throughHolder(ctx, deep) {
		return
	}
	if err != nil {
		d.openFailed(err)
		return
	}
	d.add(checkLock, levelOK, "nobody else holds the data, and the file system can lock", "")
	defer func() {
		if err := db.Close(); err != nil {
			d.add("store", levelTrouble, "closing failed: "+err.Error(), "Look at free space and permissions of the data directory.")
		}
	}()
	var h *loci.HealthReport
	if deep {
		h, err = db.DeepHealth(ctx)
	} else {
		h, err = db.Health(ctx)
	}
	if err != nil {
		d.add("store", levelTrouble, "its state cannot be read: "+err.Error(), "Keep a copy of the directory and restore a backup.")
		return
	}
	d.health(h, db.RebuildProgress().Active)
	d.vectors(ctx, db)
}

// health judges a store by its counters.
func (d *doctor) health(h *loci.HealthReport, rebuilding bool) {
	d.add("store", levelOK, fmt.Sprintf("schema version %d, revision %d, %s", h.SchemaVersion, h.Revision, countOf(h.RecordCount)), "")
	switch {
	case h.Integrity != "" && h.Integrity != "ok":
		d.add("database", levelTrouble, "it is damaged: "+h.Integrity, "Keep a copy of the directory and restore a backup.")
	case h.ForeignKeyErrors > 0:
		d.add("database", levelTrouble, fmt.Sprintf("%d rows refer to what is not there", h.ForeignKeyErrors), "Keep a copy of the directory and restore a backup.")
	case h.Integrity == "ok":
		d.add("database", levelOK, "integrity checked", "")
	default:
		d.add("database", levelNote, "integrity not checked", "Check it with: loci doctor --deep")
	}
	if h.JournalLength > longJournal {
		d.add("journal", levelWarning, fmt.Sprintf("it holds %d revisions", h.JournalLength), "The index was not written out for long. Do that with: loci rebuild-indexes")
	} else {
		d.add("journal", levelOK, fmt.Sprintf("%d revisions", h.JournalLength), "")
	}
	switch {
	case !h.IndexUsable && rebuilding:
		d.add("index", levelWarning, "it is being built anew; until then searches are degraded", "Finish that with: loci rebuild-indexes")
	case !h.IndexUsable:
		d.add("index", levelTrouble, "it is not usable", "Build it anew with: loci rebuild-indexes")
	case h.PendingIndexUpdates > 0:
		d.add("index", levelWarning, fmt.Sprintf("it is %d updates behind", h.PendingIndexUpdates), "Bring it up with: loci update-index")
	default:
		d.add("index", levelOK, fmt.Sprintf("%d documents at revision %d", h.IndexedDocuments, h.IndexedRevision), "")
	}
	if h.SweepError != "" {
		d.add("agent memory", levelWarning, "what has expired is hidden, but stays in the file: "+h.SweepError, "Look at free space and permissions of the data directory.")
	}
}

// longJournal is a number of revisions that the index should have brought to
// disk long before.
const longJournal = 1_000_000

func countOf(n int64) string {
	if n == 1 {
		return "1 record"
	}
	return strconv.FormatInt(n, 10) + " records"
}

func (d *doctor) openFailed(err error) {
	f := d.app.failure(err)
	switch loci.CodeOf(err) {
	case loci.ErrLocked:
		text := "another process holds the data directory"
		if who := d.holder(); who != "" {
			text += ": " + who
		}
		d.add(checkLock, levelTrouble, text, "Stop it, or ask it instead, when it serves. What is inside cannot be checked meanwhile.")
	case loci.ErrSchemaVersion:
		d.add("store", levelTrouble, f.Message, "Install a newer loci; this one leaves the data alone.")
	case loci.ErrIO:
		d.add("store", levelTrouble, f.Message, "Look at free space, permissions and file system of "+d.dir+".")
	default:
		d.add("store", levelTrouble, f.Message, "Keep a copy of the directory and restore a backup.")
	}
}

// holder says who holds the lock, as far as the lock file tells.
func (d *doctor) holder() string {
	if d.files == nil || d.files.Holder == nil {
		return ""
	}
	h := d.files.Holder
	text := fmt.Sprintf("process %d, since %s", h.PID, time.UnixMicro(h.StartedAtUS).UTC().Format(time.RFC3339))
	if h.Version != "" {
		text += ", loci " + h.Version
	}
	return text
}
