package op_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/crash"
	"github.com/loci-memory/loci/op"
)

// killLines is enough for several batches of every kind.
func killLines(t *testing.T, path string) {
	t.Helper()
	var lines []string
	for i := range 1200 {
		lines = append(lines, fmt.Sprintf(`{"id":"%d","text":"The buoy %d was seen","tags":["b%d"]}`, i, i, i%7))
	}
	for i := range 700 {
		lines = append(lines, fmt.Sprintf(`{"kind":"entity","name":"buoy %d","type":"buoy"}`, i), fmt.Sprintf(`{"kind":"relation","subject":"buoy %d","predicate":"next","object":"buoy %d"}`, i, (i+1)%700))
	}
	writeLines(t, path, lines...)
}

// TestKillImportChild is what TestKillImport starts: an import that kills its own
// process after so many steps.
func TestKillImportChild(t *testing.T) {
	role, args := crash.Role()
	if role != "import" {
		t.Skip("runs as a child")
	}
	ctx := context.Background()
	db, err := loci.Open(ctx, args[0], &loci.Options{WaitForIndex: true, Clock: importClock, NoBackgroundEmbedding: true, NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(op.ImportFrom{From: "jsonl", Path: args[1]})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	ctx = op.WithProgress(ctx, func(int64, int64) {
		if steps++; fmt.Sprint(steps) == args[2] {
			crash.Say("killed")
			crash.Suicide()
		}
	})
	if _, err := op.Local(db).Call(ctx, "import_from", raw); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	crash.Say("done")
}

// TestKillImport kills an import after each of its steps in turn, each time going on
// with what the one before left, until one comes to its end: all is there once.
func TestKillImport(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "a.jsonl")
	killLines(t, file)
	deaths := 0
	for step := 1; ; step += 2 {
		child, err := crash.Start("TestKillImportChild", "import", dir, file, fmt.Sprint(step))
		if err != nil {
			t.Fatal(err)
		}
		said, _, output := child.Wait()
		if len(said) != 1 {
			t.Fatalf("step %d: said %q\n%s", step, said, output)
		}
		if said[0] == "done" {
			break
		}
		deaths++
		if step > 5 {
			step += 1 << 20 // the rest in one go
		}
	}
	if deaths < 3 {
		t.Errorf("killed %d times only", deaths)
	}
	db, err := loci.Open(t.Context(), dir, &loci.Options{WaitForIndex: true, Clock: importClock})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h, err := db.DeepHealth(t.Context())
	if err != nil || h.Integrity != "ok" || h.Counts["memory"] != 1200 || h.Counts["entity"] != 700 || h.Counts["relation"] != 700 {
		t.Errorf("%+v %v", h, err)
	}
	out := importFrom(t, db, op.ImportFrom{From: "jsonl", Path: file})
	if out.Revision != h.Revision || out.Kinds["memory"].Unchanged != 1200 || out.Kinds["relation"].Unchanged != 700 {
		t.Errorf("%s", indented(t, out))
	}
}

// TestImportEnds ends an import at each step by its context; another one completes
// it.
func TestImportEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.jsonl")
	killLines(t, file)
	raw, err := json.Marshal(op.ImportFrom{From: "jsonl", Path: file})
	if err != nil {
		t.Fatal(err)
	}
	db := importStore(t)
	for stop := 1; stop < 6; stop++ {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		_, err := op.Local(db).Call(op.WithProgress(ctx, func(int64, int64) {
			if steps++; steps == stop {
				cancel()
			}
		}), "import_from", raw)
		cancel()
		if loci.CodeOf(err) != loci.ErrCanceled {
			t.Fatalf("stopped at step %d: %v", stop, err)
		}
	}
	out := importFrom(t, db, op.ImportFrom{From: "jsonl", Path: file})
	for kind, n := range map[string]int64{"memory": 1200, "entity": 700, "relation": 700} {
		if got := out.Kinds[kind]; got.Created+got.Unchanged != n {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
