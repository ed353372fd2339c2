package agent

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/crash"
	"pgregory.net/rapid"
)

// TestImportCrashChild is what the child processes of TestImportKilled run; in any
// other process it does nothing.
func TestImportCrashChild(t *testing.T) {
	role, args := crash.Role()
	if role != "import" {
		t.Skip("only in a child process")
	}
	m := &testMemory{t: t, dir: args[0], clock: &testClock{at: T}}
	m.open(4)
	bytes, err := strconv.Atoi(args[1])
	if err != nil {
		t.Fatal(err)
	}
	text := manyLines(4*importBatch, longWords())
	_, err = m.episodes.ImportFrom(t.Context(), io.MultiReader(strings.NewReader(text[:bytes]), deadly{}), ImportRequest{Format: ImportJSONL})
	t.Fatal("it lives, with the error ", err)
}

// deadly is a reader that kills the process.
type deadly struct{}

func (deadly) Read([]byte) (int, error) {
	crash.Suicide()
	return 0, nil
}

// TestImportKilled holds that an import that was killed has kept whole batches, and
// that another one completes it.
func TestImportKilled(t *testing.T) { // C13
	if testing.Short() {
		t.Skip("starts processes")
	}
	text := manyLines(4*importBatch, longWords())
	want := openMemory(t, 4)
	want.importsText(text)
	whole := alike(t, want.allEpisodes())
	for part := range 4 {
		m := &testMemory{t: t, dir: t.TempDir(), clock: &testClock{at: T}}
		child, err := crash.Start("TestImportCrashChild", "import", m.dir, strconv.Itoa(len(text)*(part+1)/4-7))
		if err != nil {
			t.Fatal(err)
		}
		if _, ended, output := child.Wait(); ended {
			t.Fatal(output)
		}
		m.open(4)
		kept := m.episodeCount()
		if kept%importBatch != 0 || part > 0 && kept == 0 {
			t.Errorf("%d episodes are kept", kept)
		}
		if got := m.importsText(text); got.Unchanged != kept || got.Stored != got.Messages-kept {
			t.Errorf("completed by %+v, %d were kept", got, kept)
		}
		if alike(t, m.allEpisodes()) != whole {
			t.Error("it is not what it would have been")
		}
		m.deepCheck()
		if err := m.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImportAtOnce holds that a file that several import at once is imported once.
func TestImportAtOnce(t *testing.T) { // C14
	m := openMemory(t, 4)
	text := manyLines(importBatch+100, "")
	const importers = 4
	var all sync.WaitGroup
	var mu sync.Mutex
	var sum ImportReport
	for range importers {
		all.Go(func() {
			got, err := m.episodes.ImportFrom(t.Context(), strings.NewReader(text), ImportRequest{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Stored += got.Value.Stored
			sum.Updated += got.Value.Updated
			sum.Unchanged += got.Value.Unchanged
		})
	}
	all.Wait()
	const n = importBatch + 100
	if sum.Stored != n || sum.Updated != 0 || sum.Unchanged != (importers-1)*n || m.episodeCount() != n {
		t.Errorf("%+v, %d episodes", sum, m.episodeCount())
	}
	want := openMemory(t, 4)
	want.importsText(text)
	if alike(t, m.allEpisodes()) != alike(t, want.allEpisodes()) {
		t.Error("it is not what one import makes")
	}
}

// TestImportMany imports a long file, and again, which writes nothing.
func TestImportMany(t *testing.T) { // C17
	if testing.Short() {
		t.Skip("100,000 messages")
	}
	m := openMemory(t, 4)
	text := manyLines(100_000, "")
	if got := m.importsText(text); got.Stored != 100_000 || got.Threads != 17 || got.Displaced != 0 {
		t.Errorf("%+v", got)
	}
	revision := m.revision()
	if got := m.importsText(text); got.Unchanged != 100_000 || m.revision() != revision {
		t.Errorf("again %+v", got)
	}
	if n := m.episodeCount(); n != 100_000 {
		t.Errorf("%d episodes", n)
	}
	m.deepCheck()
}

// TestImportAnyVersions imports versions of conversations that have little to do with
// each other, and checks what must hold after each: every message of the file has its
// episode with its text, what was there before is there still, no position is taken
// twice, new messages stand in the order of the file and behind those before them, a
// dry run reports the same, and another import changes nothing.
func TestImportAnyVersions(t *testing.T) { // C16
	if testing.Short() {
		t.Skip("hundreds of imports, one at a time")
	}
	store, scope := openMemory(t, 4), 0
	rapid.Check(t, func(rt *rapid.T) {
		scope++
		memory := must[*AgentMemory](t)(Open(t.Context(), store.db, Config{Scope: strconv.Itoa(scope), Dimension: 4}))
		m := &testMemory{AgentMemory: memory, t: t, db: store.db, episodes: memory.Episodic()}
		seen := map[string]string{} // thread and id: text
		for range rapid.IntRange(1, 4).Draw(rt, "versions") {
			var text strings.Builder
			type message struct{ thread, id, text string }
			var file []message
			used := map[string]bool{}
			for range rapid.IntRange(0, 12).Draw(rt, "messages") {
				msg := message{
					thread: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "thread"), id: rapid.StringMatching("[a-h]").Draw(rt, "id"),
					text: rapid.SampledFrom([]string{"tide", "ferry", "boat"}).Draw(rt, "text"),
				}
				if key := msg.thread + " " + msg.id; !used[key] {
					used[key] = true
					file = append(file, msg)
					text.WriteString(line(msg.thread, msg.id, msg.text, int64(rapid.IntRange(0, 2).Draw(rt, "at"))*day))
				}
			}
			was := map[loci.PointID]bool{}
			for _, e := range m.allEpisodes() {
				was[e.ID] = true
			}
			dry := m.importsText(text.String(), func(r *ImportRequest) { r.DryRun = true })
			got := m.importsText(text.String())
			if dry.DryRun = false; asJSON(t, dry) != asJSON(t, got) {
				rt.Fatalf("a dry run reports %s, the import %s", asJSON(t, dry), asJSON(t, got))
			}
			last := map[string]int64{"a": -1, "b": -1}
			for _, msg := range file {
				seen[msg.thread+" "+msg.id] = msg.text
				e := m.episodeOf(msg.thread, msg.id)
				if !was[e.ID] && *e.Position <= last[msg.thread] {
					rt.Fatalf("%+v stands at %d, one before it at %d", msg, *e.Position, last[msg.thread])
				}
				last[msg.thread] = max(last[msg.thread], *e.Position)
			}
			positions := map[string]bool{}
			all := m.allEpisodes()
			for i := range all {
				place := fmt.Sprint(all[i].Thread, " ", *all[i].Position)
				if positions[place] {
					rt.Fatalf("%s is taken twice", place)
				}
				positions[place] = true
			}
			if len(all) != len(seen) {
				rt.Fatalf("%d episodes of %d messages", len(all), len(seen))
			}
			for key, text := range seen {
				thread, id, _ := strings.Cut(key, " ")
				if e := m.episodeOf(thread, id); e.Description != text {
					rt.Fatalf("%s says %q, not %q", key, e.Description, text)
				}
			}
			revision := m.revision()
			if again := m.importsText(text.String()); again.Unchanged != int64(len(file)) || m.revision() != revision {
				rt.Fatalf("again %+v", again)
			}
		}
	})
}

// TestImportSymlink holds that a link to a file is one, and a link to a folder is not.
func TestImportSymlink(t *testing.T) { // C11
	m := openMemory(t, 4)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/talk.jsonl", []byte(line("talk", "a", "one", T)), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(dir+"/talk.jsonl", dir+"/file") != nil || os.Symlink(dir, dir+"/folder") != nil {
		t.Skip("no links here")
	}
	if got := m.imports(dir + "/file"); got.Stored != 1 {
		t.Errorf("%+v", got)
	}
	_, err := m.episodes.Import(t.Context(), ImportRequest{Path: dir + "/folder"})
	wantField(t, err, loci.ErrValidation, "path")
}
