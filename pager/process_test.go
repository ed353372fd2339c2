package pager

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/crash"
)

// childSays runs a child and gives the one thing it says.
func childSays(t *testing.T, role string, args ...string) string {
	t.Helper()
	child, err := crash.Start("TestCrashChild", role, args...)
	if err != nil {
		t.Fatal(err)
	}
	said, ended, output := child.Wait()
	if !ended || len(said) != 1 {
		t.Fatalf("the child said %q, printed %s", said, output)
	}
	return said[0]
}

// TestOtherProcess takes a context to another process, another folder, and
// through a backup and an export: it is rendered to the same bytes.
func TestOtherProcess(t *testing.T) {
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	cs := scopeOf(t, db, Config{Scope: crashScope})
	writeBase(t, cs)
	put(t, cs, WriteRequest{PageID: `odd"\漢`, Title: "tab\t", Tags: []string{"Blue", "a"}, Content: "\x01\r\n\u2028</script>", Tier: Working, Links: []string{"a"}})
	must[*IngestResult](t)(cs.Ingest(t.Context(), IngestRequest{Content: longText}))
	s := snapshot(t, cs)
	put(t, cs, WriteRequest{PageID: "late", Content: "not published", Tier: Working})
	must[*CheckpointResult](t)(cs.Checkpoint(t.Context(), CheckpointRequest{}))
	looked := must[*Snapshot](t)(cs.Render(t.Context(), RenderRequest{}))
	want := fmt.Sprintf("%s %s %d", looked.SHA, looked.CoreSHA, s.Generation)

	if got := childSays(t, "open", dir); got != string(loci.ErrLocked) {
		t.Errorf("a second process opens the folder: %q", got)
	}
	snapshotFile := filepath.Join(t.TempDir(), "backup")
	if _, err := db.Backup(t.Context(), snapshotFile); err != nil {
		t.Fatal(err)
	}
	var exported bytes.Buffer
	if _, err := db.Export(t.Context(), &exported, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := childSays(t, "look", dir); got != want {
		t.Errorf("another process renders %q, this one %q", got, want)
	}

	restored := filepath.Join(t.TempDir(), "restored")
	other, err := loci.Restore(t.Context(), snapshotFile, restored, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := childSays(t, "look", restored); got != want {
		t.Errorf("restored from a backup it is %q, it was %q", got, want)
	}

	imported := t.TempDir()
	if other, err = loci.Open(t.Context(), imported, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Import(t.Context(), &exported, nil); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := childSays(t, "look", imported); got != want {
		t.Errorf("imported it is %q, it was %q", got, want)
	}
	// All goes on as it would have in the first folder.
	for _, dir := range []string{dir, restored, imported} {
		cs := scopeOf(t, openDB(t, dir, nil), Config{Scope: crashScope})
		if again := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Since: &s.Generation})); !again.Changed || again.Generation != s.Generation+1 {
			t.Errorf("%+v", again)
		}
		if next := must[*RestoreResult](t)(cs.Restore(t.Context(), RestoreRequest{CheckpointID: newestCheckpoint(t, cs)})); next.Changed {
			t.Errorf("%+v", next)
		}
		events := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})).Events
		if len(events) != 2 || !events[0].PrefixIntact || !strings.Contains(fmt.Sprint(events[0].Operations), "late") {
			t.Errorf("%+v", events)
		}
		checkDeep(t, cs)
	}
}

func newestCheckpoint(t testing.TB, cs *Store) loci.ID {
	t.Helper()
	return must[*CheckpointsResult](t)(cs.Checkpoints(t.Context(), CheckpointsRequest{})).Checkpoints[0].CheckpointID
}
