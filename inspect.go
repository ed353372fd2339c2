package loci

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Inspection is what the files of a data directory tell without opening it.
type Inspection struct {
	Database InspectedDatabase
	// Holder is whom the lock file names, nil when nobody. After a crash it names
	// a process that holds nothing any more: only opening tells.
	Holder *InspectedHolder
	Index  []InspectedIndex // generations of index files, oldest first
	// Damaged are index files that were set aside for whoever wants to look at
	// them.
	Damaged []InspectedFile
	// Partial are the remains of backups, restores and imports that were killed,
	// in the directory and beside it.
	Partial []InspectedFile
	// Copies are databases as they were before a migration.
	Copies []InspectedFile
}

// InspectedDatabase is the database file of a data directory.
type InspectedDatabase struct {
	Exists        bool
	Bytes         int64
	LogBytes      int64 // changes that are not yet moved into the database
	ApplicationID uint32
	SchemaVersion int
	Ours          bool  // it has this product's application id
	Problem       error // why Open would refuse it, as far as its header tells
}

// InspectedHolder is a process as the lock file names it.
type InspectedHolder struct {
	PID         int
	StartedAtUS int64
	Version     string // of the program
}

// InspectedIndex is one generation of index files.
type InspectedIndex struct {
	InspectedFile
	Listed bool // it has the list of its files: it was written out at least once
}

// InspectedFile is a file or folder with all that is in it.
type InspectedFile struct {
	Path  string
	Bytes int64
}

// Inspect looks at the files of a data directory. It opens no database, takes no
// lock and changes nothing, so it works on a directory that is in use, damaged
// or of a newer version.
func Inspect(directory string) (*Inspection, error) {
	const op = "inspect"
	dir, err := filepath.Abs(directory)
	if err != nil {
		return nil, errs.WithOp(op, errs.Wrap(errs.IO, err, "the directory's path could not be resolved"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, errs.WithOp(op, errs.Wrap(errs.IO, err, "the directory cannot be read"))
	}
	info, err := store.InspectFile(dir)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	r := &Inspection{Database: InspectedDatabase(info)}
	if h, ok := store.Holder(dir); ok {
		r.Holder = &InspectedHolder{PID: h.PID, StartedAtUS: h.StartedAtUS, Version: h.Version}
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch name := entry.Name(); {
		case strings.HasPrefix(name, damagedPrefix):
			r.Damaged = append(r.Damaged, measured(path))
		case strings.HasPrefix(name, store.PartialPrefix), strings.HasSuffix(name, spoolSuffix):
			r.Partial = append(r.Partial, measured(path))
		case strings.HasPrefix(name, store.DatabaseFile+".v"):
			r.Copies = append(r.Copies, measured(path))
		}
	}
	if beside, err := os.ReadDir(filepath.Dir(dir)); err == nil {
		for _, entry := range beside {
			if strings.HasPrefix(entry.Name(), store.PartialPrefix) {
				r.Partial = append(r.Partial, measured(filepath.Join(filepath.Dir(dir), entry.Name())))
			}
		}
	}
	generations, err := os.ReadDir(filepath.Join(dir, indexFolder))
	if err != nil {
		return r, nil // there is none, or opening will say what is wrong
	}
	for _, entry := range generations {
		path := filepath.Join(dir, indexFolder, entry.Name())
		if strings.HasPrefix(entry.Name(), damagedPrefix) {
			r.Damaged = append(r.Damaged, measured(path))
			continue
		}
		var n int
		if _, err := fmt.Sscanf(entry.Name(), "g%06d", &n); err == nil {
			_, err := os.Stat(filepath.Join(path, "MANIFEST"))
			r.Index = append(r.Index, InspectedIndex{measured(path), err == nil})
		}
	}
	return r, nil
}

// measured is a file or folder with its size, as far as it can be read.
func measured(path string) InspectedFile {
	f := InspectedFile{Path: path}
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is not counted
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			f.Bytes += info.Size()
		}
		return nil
	})
	return f
}
