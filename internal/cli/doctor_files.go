package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/diskspace"
)

const (
	// leastFree is the free space below which nothing works for long.
	leastFree = 64 << 20
	// longLog is the length of a log that should have been moved into the
	// database long before.
	longLog = 256 << 20
)

// space says how much room there is, and whether a copy of the data would fit.
func (d *doctor) space() {
	const check = "free space"
	dir := d.dir
	if _, err := os.Stat(dir); err != nil {
		dir = existingParent(dir)
	}
	free, ok := diskspace.Free(dir)
	if !ok {
		d.add(check, levelNote, "this system does not tell", "")
		return
	}
	d.judgeSpace(free, d.used())
}

// used is the size of the database with its log.
func (d *doctor) used() uint64 {
	if d.files == nil {
		return 0
	}
	return uint64(d.files.Database.Bytes + d.files.Database.LogBytes)
}

func (d *doctor) judgeSpace(free, used uint64) {
	const check = "free space"
	switch {
	case free < leastFree:
		d.add(check, levelTrouble, "only "+sizeOf(free)+" are left", "Free space on the disk of "+d.dir+", or move the data directory. Writes fail when it is full; nothing is lost then.")
	case free < used:
		d.add(check, levelWarning, sizeOf(free)+" are left, less than the database takes ("+sizeOf(used)+")", "Free space: a backup, a migration or a rebuild of the index on this disk may fail.")
	default:
		d.add(check, levelOK, sizeOf(free)+" are left", "")
	}
}

// look reads what the files tell without opening them. It is false when the
// store cannot be opened anyway.
func (d *doctor) look() bool {
	files, err := loci.Inspect(d.dir)
	if err != nil {
		d.add("files", levelTrouble, "they cannot be looked at: "+d.app.failure(err).Message, "Change the permissions of "+d.dir+".")
		return false
	}
	d.files = files
	return true
}

// openToOthers says who else may read or change the files. Loci makes them for their
// owner alone; a folder that was there before, or was copied, may be open.
func (d *doctor) openToOthers() {
	const check = "permissions"
	if runtime.GOOS == "windows" {
		return // which has no such bits
	}
	mode := func(name ...string) fs.FileMode {
		info, err := os.Stat(filepath.Join(append([]string{d.dir}, name...)...))
		if err != nil {
			return 0 // others tell that it cannot be looked at
		}
		return info.Mode().Perm()
	}
	folder := mode()
	switch do := "Close it to them: chmod -R go-rwx " + d.dir; {
	case folder&0o022 != 0:
		d.add(check, levelWarning, fmt.Sprintf("other users may replace files in it (mode %04o)", folder), do)
	case folder&0o011 != 0 && (mode("loci.db")|mode("loci.db-wal"))&0o077 != 0:
		d.add(check, levelWarning, "other users may read the database", do)
	default:
		d.add(check, levelOK, "its owner's alone", "")
	}
}

// filesFound tells what look has seen.
func (d *doctor) filesFound() {
	d.openToOthers()
	db := &d.files.Database
	switch {
	case db.Problem != nil && loci.CodeOf(db.Problem) == loci.ErrSchemaVersion:
		d.add("database file", levelTrouble, fmt.Sprintf("it has schema version %d, which is newer than this program", db.SchemaVersion), "Install a newer loci; this one leaves the data alone.")
	case db.Problem != nil:
		d.add("database file", levelTrouble, d.app.failure(db.Problem).Message, "Choose another directory with --data, or move the file away and restore a backup.")
	case db.Ours:
		d.add("database file", levelOK, fmt.Sprintf("%s, schema version %d, application id %#x", sizeOf(uint64(db.Bytes)), db.SchemaVersion, db.ApplicationID), "")
	default:
		d.add("database file", levelOK, sizeOf(uint64(db.Bytes))+"; its header is not written yet", "")
	}
	if db.LogBytes > longLog {
		d.add("log", levelWarning, sizeOf(uint64(db.LogBytes))+" are not yet moved into the database", "Close what holds it open for long, such as an export that waits for its reader; the next write or close then moves it.")
	} else {
		d.add("log", levelOK, sizeOf(uint64(db.LogBytes)), "")
	}
	var written, begun int
	var bytes int64
	for _, g := range d.files.Index {
		bytes += g.Bytes
		if g.Listed {
			written++
		} else {
			begun++
		}
	}
	switch text := fmt.Sprintf("%s in %d generations", sizeOf(uint64(bytes)), written+begun); {
	case written+begun == 0:
		d.add("index files", levelNote, "there are none", "Opening the store builds the index from the database.")
	case written == 0:
		d.add("index files", levelOK, "none written out yet; the journal has what they would hold", "")
	case begun > 0:
		d.add("index files", levelNote, text+", one of them begun and not finished", "Opening the store takes the rebuild up again; finish it with: loci rebuild-indexes")
	case written == 1:
		d.add("index files", levelOK, sizeOf(uint64(bytes))+" in one generation", "")
	default:
		d.add("index files", levelOK, text, "")
	}
	for _, left := range []struct {
		check, what, do string
		files           []loci.InspectedFile
	}{
		{"set aside", "damaged index files, kept to be looked at", "Nothing needs them: delete them when you have seen what you wanted.", d.files.Damaged},
		{"left behind", "remains of a backup, restore or import that was killed", "Delete them unless one is running now.", d.files.Partial},
		{"old copies", "databases as they were before a migration", "Delete them when the newer version has proved itself.", d.files.Copies},
	} {
		if len(left.files) == 0 {
			continue
		}
		var bytes int64
		var names []string
		for _, f := range left.files {
			bytes += f.Bytes
			names = append(names, f.Path)
		}
		d.add(left.check, levelNote, fmt.Sprintf("%s: %s: %s", left.what, sizeOf(uint64(bytes)), strings.Join(names, ", ")), left.do)
	}
}

// sizeOf is a number of bytes as people read it.
func sizeOf(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, names := float64(n)/unit, "KMGTPE"
	for value >= unit && len(names) > 1 {
		value, names = value/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, names[0])
}
