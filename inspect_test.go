package loci

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// TestInspect looks at a store in use, a closed one, and what is none.
func TestInspect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db := openReal(t, dir)
	remember(t, db, "something")
	r := must[*Inspection](t)(Inspect(dir))
	if !r.Database.Exists || !r.Database.Ours || r.Database.Problem != nil || r.Database.SchemaVersion != store.SchemaVersion || r.Database.LogBytes == 0 {
		t.Errorf("%+v", r.Database)
	}
	if r.Holder == nil || r.Holder.PID != os.Getpid() || len(r.Index) != 1 {
		t.Errorf("%+v", r)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if r = must[*Inspection](t)(Inspect(dir)); r.Holder != nil || r.Database.LogBytes != 0 || len(r.Damaged)+len(r.Partial)+len(r.Copies) > 0 {
		t.Errorf("%+v", r)
	}
	empty := t.TempDir()
	if r = must[*Inspection](t)(Inspect(empty)); r.Database.Exists || r.Holder != nil || len(r.Index) > 0 {
		t.Errorf("%+v", r)
	}
	if entries := must[[]os.DirEntry](t)(os.ReadDir(empty)); len(entries) > 0 {
		t.Errorf("it made %v", entries)
	}
	_, err := Inspect(filepath.Join(empty, "missing"))
	wantCode(t, err, ErrIO)
	if err := os.WriteFile(filepath.Join(empty, store.DatabaseFile), []byte("no database at all, and long enough to have a header of a hundred bytes, which this text has now for sure"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r = must[*Inspection](t)(Inspect(empty)); !r.Database.Exists || CodeOf(r.Database.Problem) != ErrValidation {
		t.Errorf("%+v", r)
	}
}
