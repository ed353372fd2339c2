package loci

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// notesFolder holds Markdown files to measure with: $LOCI_EVAL_DATA or what
// lies beside the repository.
func notesFolder(b testing.TB) string {
	b.Helper()
	dir := os.Getenv("LOCI_EVAL_DATA")
	if dir == "" {
		dir = filepath.Join("..", "shared", "data")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "notes"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		b.Skip("there is no folder of notes to measure with; LOCI_EVAL_DATA says where the evaluation sets lie")
	}
	return dir
}

// BenchmarkSyncDir measures how long a folder takes to come in, and how long it
// takes to see that nothing changed.
func BenchmarkSyncDir(b *testing.B) {
	dir := notesFolder(b)
	for b.Loop() {
		db, err := Open(b.Context(), b.TempDir(), &Options{WaitForIndex: true})
		if err != nil {
			b.Fatal(err)
		}
		must[*Receipt[string]](b)(db.Notes().SetRoot(b.Context(), DefaultNamespace, dir))
		began := time.Now()
		first := must[*Receipt[SyncReport]](b)(db.Notes().SyncDir(b.Context(), DefaultNamespace, SyncOptions{}))
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "first-ms")
		began = time.Now()
		second := must[*Receipt[SyncReport]](b)(db.Notes().SyncDir(b.Context(), DefaultNamespace, SyncOptions{}))
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "second-ms")
		if second.Value.Unchanged != first.Value.Added || second.Revision != first.Revision {
			b.Errorf("%+v %+v", first, second)
		}
		b.ReportMetric(float64(first.Value.Added), "notes")
		b.ReportMetric(float64(db.eng.health().IndexedDocuments), "chunks")
		db.Close()
	}
}
