package loci

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestBackup is cases H4 to H6.
func TestBackup(t *testing.T) {
	db := openReal(t, t.TempDir())
	remember(t, db, "the lamps are lit at seven", "潮水表每周更新")
	folder := t.TempDir()
	target := filepath.Join(folder, "snapshot")
	t.Run("H4", func(t *testing.T) {
		report := must[*BackupReport](t)(db.Backup(t.Context(), target))
		info := must[os.FileInfo](t)(os.Stat(target))
		if report.Records != 2 || report.Revision != stateOf(t, db).revision || report.Bytes != info.Size() {
			t.Errorf("%+v", report)
		}
		old := filepath.Join(folder, "old")
		if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{old, folder, filepath.Join(folder, "no folder", "x")} {
			_, err := db.Backup(t.Context(), name)
			wantCode(t, err, ErrIO)
		}
		if text, err := os.ReadFile(old); string(text) != "old" {
			t.Errorf("%q, %v", text, err)
		}
		_, err := db.Backup(t.Context(), "")
		wantCode(t, err, ErrValidation)
		if entries := must[[]os.DirEntry](t)(os.ReadDir(folder)); len(entries) != 2 {
			t.Errorf("%v", entries)
		}
	})
	t.Run("H5", func(t *testing.T) {
		dir := filepath.Join(folder, "a", "b")
		var done, total int64
		again, err := Restore(t.Context(), target, dir, &Options{Progress: func(d, n int64) { done, total = d, n }})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if stateOf(t, again) != stateOf(t, db) || again.Directory() != dir || done == 0 || done != total {
			t.Errorf("%+v, %+v, %s, %d of %d", stateOf(t, again), stateOf(t, db), again.Directory(), done, total)
		}
		for _, q := range []string{"lamps", "潮水"} {
			want := hitIDs(search(t, db, SearchRequest{Query: q}))
			if got := search(t, again, SearchRequest{Query: q}); len(want) != 1 || len(got.Hits) != 1 || hitIDs(got)[0] != want[0] || len(got.Diagnostics.Degraded) > 0 {
				t.Errorf("%s: %+v", q, got)
			}
		}
		if h := must[*HealthReport](t)(again.DeepHealth(t.Context())); h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
			t.Errorf("%+v", h)
		}
		if m := addMemory(t, again, MemoryInput{Judgment: "new"}); m.ID != 3 {
			t.Errorf("the next id is %d", m.ID)
		}
	})
	t.Run("H6", func(t *testing.T) {
		restore := func(snapshot, dir string, code Code) {
			t.Helper()
			again, err := Restore(t.Context(), snapshot, dir, nil)
			if err == nil {
				again.Close()
			}
			wantCode(t, err, code)
		}
		restore(target, t.TempDir(), ErrIO)
		restore(target, target, ErrIO)
		restore(target, db.Directory(), ErrIO)
		gone := filepath.Join(t.TempDir(), "x", "y")
		restore(filepath.Join(folder, "missing"), gone, ErrIO)
		restore(folder, gone, ErrValidation)
		restore(filepath.Join(folder, "old"), gone, ErrValidation)
		restore("", gone, ErrValidation)
		restore(target, "", ErrValidation)
		text := must[[]byte](t)(os.ReadFile(target))
		text[63] = 99 // the schema version
		newer := filepath.Join(folder, "newer")
		if err := os.WriteFile(newer, text, 0o600); err != nil {
			t.Fatal(err)
		}
		restore(newer, gone, ErrSchemaVersion)
		if _, err := os.Stat(filepath.Dir(gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder was made: %v", err)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := Restore(canceled, target, gone, nil)
		wantCode(t, err, ErrCanceled)
		_, err = db.Backup(canceled, filepath.Join(folder, "canceled"))
		wantCode(t, err, ErrCanceled)
	})
}
