package loci

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/note"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/store/faultvfs"
	"github.com/loci-memory/loci/internal/testkit/crash"
)

// wantNotes checks that the notes are what a model folder says, down to the
// chunks.
func (b *noteBox) wantNotes(model map[string]string) {
	t := b.t
	t.Helper()
	notes := b.notes()
	if got, want := slices.Sorted(maps.Keys(notes)), slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
		t.Fatalf("notes %q, want %q", got, want)
	}
	for path, text := range model {
		pieces := must[[]TextChunk](t)(ChunkText(text, DefaultChunkChars))
		chunks := b.chunks(notes[path].ID)
		if len(chunks) != len(pieces) {
			t.Fatalf("%s has %d chunks, want %d", path, len(chunks), len(pieces))
		}
		tags, err := validTags("", note.PathTags(path))
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range chunks {
			if got := (TextChunk{c.Ordinal, c.Offset, c.Limit, c.Content}); got != pieces[i] || c.NoteID != notes[path].ID || !slices.Equal(c.Tags, tags) {
				t.Fatalf("%s: chunk %+v, want %+v", path, c, pieces[i])
			}
		}
	}
}

// TestSyncModel edits a folder at random and holds after each SyncDir that the
// notes are the folder, that chunks whose text stayed kept their ids, and that
// a rebuilt index gives the same answers.
func TestSyncModel(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	b := newNoteBox(t)
	rng := rand.New(rand.NewPCG(7, 7))
	model := map[string]string{}
	words := []string{"alpha", "beta", "gamma", "delta", "潮水", "灯塔", "阿青"}
	paragraph := func() string {
		if rng.IntN(8) == 0 {
			return "```\n" + words[rng.IntN(len(words))] + "\n\n" + words[rng.IntN(len(words))] + "\n```"
		}
		return words[rng.IntN(len(words))] + " " + words[rng.IntN(len(words))]
	}
	names := []string{"a.md", "b.md", "x/a.md", "x/y/c.txt", "设定/阿青.md", "x/beta/d.md"}
	for range rounds {
		for range 1 + rng.IntN(3) {
			name := names[rng.IntN(len(names))]
			text, there := model[name]
			parts := strings.Split(text, "\n\n")
			at := rng.IntN(len(parts))
			switch n := rng.IntN(10); {
			case there && n == 0:
				delete(model, name)
				b.remove(name)
				continue
			case n < 4:
				parts = slices.Insert(parts, at, paragraph())
			case n < 6:
				parts = slices.Delete(parts, at, at+1)
			case n < 8:
				parts[at] = paragraph()
			default:
				rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			}
			model[name] = strings.Join(parts, "\n\n")
			b.file(name, model[name])
		}
		type key struct{ path, text string }
		before := map[key][]ID{}
		for path, n := range b.notes() {
			for _, c := range b.chunks(n.ID) {
				before[key{path, c.Content}] = append(before[key{path, c.Content}], c.ID)
			}
		}
		b.sync(SyncOptions{})
		b.wantNotes(model)
		after := map[key][]ID{}
		for path, n := range b.notes() {
			for _, c := range b.chunks(n.ID) {
				after[key{path, c.Content}] = append(after[key{path, c.Content}], c.ID)
			}
		}
		for k, old := range before {
			kept := 0
			for _, id := range after[k] {
				if slices.Contains(old, id) {
					kept++
				}
			}
			if _, there := model[k.path]; there && kept != min(len(old), len(after[k])) {
				t.Fatalf("%v: ids %v, were %v", k, after[k], old)
			}
		}
	}
	answers := func() (all []string) {
		for _, query := range append(words, "x", "设定", "alpha 潮水") {
			res := must[*SearchResult](t)(b.db.Search(t.Context(), SearchRequest{Query: query, WithTotal: true, NeighbourWeight: 0.3}))
			line := fmt.Sprint(query, " ", *res.Total)
			for _, h := range res.Hits {
				line += fmt.Sprintf(" %s %.6f %d %v", h.Key, h.Score, *h.NoteChunks, h.TopChunks)
			}
			all = append(all, line)
		}
		return all
	}
	want := answers()
	must[*HealthReport](t)(b.db.RebuildIndexes(t.Context()))
	if got := answers(); !slices.Equal(got, want) {
		t.Errorf("after a rebuild\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if h := must[*HealthReport](t)(b.db.DeepHealth(t.Context())); h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
		t.Errorf("%+v", h)
	}
}

// TestNotesChild is the child process of TestKillDuringSync.
func TestNotesChild(t *testing.T) {
	role, args := crash.Role()
	if role != "sync" {
		t.Skip("only in a child process")
	}
	db, err := Open(context.Background(), args[0], &Options{WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Notes().SetRoot(context.Background(), DefaultNamespace, args[1]); err != nil {
		t.Fatal(err)
	}
	crash.Say("open")
	if _, err := db.Notes().SyncDir(context.Background(), DefaultNamespace, SyncOptions{AllowMassDelete: true}); err != nil {
		t.Fatal(err)
	}
	crash.Say("done")
	select {} // until it is killed
}

// TestKillDuringSync kills a process in the middle of SyncDir, again and again:
// every note is there whole or not at all, and the next SyncDir does the rest.
func TestKillDuringSync(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	dir, data := t.TempDir(), t.TempDir()
	rng := rand.New(rand.NewPCG(3, 3))
	b := &noteBox{t: t, dir: dir}
	model := map[string]string{}
	partial := 0
	for round := range rounds {
		for i := range 400 {
			name := fmt.Sprintf("d%d/n%d.md", i%9, i)
			switch {
			case rng.IntN(6) == 0:
				delete(model, name)
				b.remove(name)
			case rng.IntN(2) == 0 || round == 0:
				model[name] = fmt.Sprintf("round %d\n\nfile %d\n\nsame\n\n%s", round, i, strings.Repeat("long line\n\n", rng.IntN(20)))
				b.file(name, model[name])
			}
		}
		child, err := crash.Start("TestNotesChild", "sync", data, dir)
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := child.First(); !ok || line != "open" {
			_, _, output := child.Wait()
			t.Fatalf("the child said %q, printed %s", line, output)
		}
		time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
		child.Kill()
		if said, _, _ := child.Wait(); !slices.Contains(said, "done") {
			partial++
		}
		b.db = must[*DB](t)(Open(t.Context(), data, &Options{WaitForIndex: true}))
		h := must[*HealthReport](t)(b.db.DeepHealth(t.Context()))
		if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.IndexedDocuments != h.Counts["chunk"] {
			t.Errorf("%+v", h)
		}
		for path, n := range b.notes() {
			// The chunks are those of one version of the file.
			var text []string
			for _, c := range b.chunks(n.ID) {
				text = append(text, c.Content)
			}
			if len(text) < 3 || text[2] != "same" || !strings.HasPrefix(text[0], "round ") {
				t.Fatalf("%s: %q", path, text)
			}
		}
		b.sync(SyncOptions{AllowMassDelete: true})
		b.wantNotes(model)
		if err := b.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if partial == 0 {
		t.Log("no process was killed half-way: the test shows nothing")
	}
}

// TestSyncFailures lets operation N of the database's files fail during SyncDir,
// for every N until none does: each note is one version of its file, and the next
// SyncDir does the rest. Every ninth operation with -short.
func TestSyncFailures(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 9
	}
	vfs := faultvfs.Register("notes")
	defer vfs.Close()
	start, dir := t.TempDir(), t.TempDir()
	open := func(data string) *DB {
		t.Helper()
		return must[*DB](t)(Open(t.Context(), data, &Options{WaitForIndex: true, store: store.Options{VFS: vfs.Name(), CheckpointPages: 8}}))
	}
	b := &noteBox{t: t, dir: dir}
	text := func(version, file int) string {
		return fmt.Sprintf("version %d of %d\n\n%s", version, file, strings.Repeat("a line\n\n", 10*file))
	}
	b.db = open(start)
	must[*Receipt[string]](t)(b.db.Notes().SetRoot(t.Context(), DefaultNamespace, dir))
	old, young := map[string]string{}, map[string]string{}
	for i := range 6 {
		name := fmt.Sprint("n", i, ".md")
		if i > 0 {
			old[name] = text(1, i)
			b.file(name, old[name])
		}
	}
	b.sync(SyncOptions{})
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 { // the first is new, the last goes
		name := fmt.Sprint("n", i, ".md")
		young[name] = text(1+i%2, i)
		b.file(name, young[name])
	}
	b.remove("n5.md")
	tried := 0
	for n := int64(1); ; n += step {
		data := copyDir(t, start)
		b.db = open(data)
		vfs.FailAt(n, faultvfs.Any, faultvfs.ErrIO, false)
		_, err := b.db.Notes().SyncDir(t.Context(), DefaultNamespace, SyncOptions{})
		failed := vfs.Failed()
		vfs.FailAt(0, 0, nil, false)
		if err != nil {
			wantCode(t, err, CodeOf(err))
		}
		b.db.Close()
		b.db = open(data)
		for path, note := range b.notes() {
			var got []string
			for _, c := range b.chunks(note.ID) {
				got = append(got, c.Content)
			}
			whole := strings.Join(got, "\n\n")
			if whole != strings.TrimSpace(old[path]) && whole != strings.TrimSpace(young[path]) {
				t.Fatalf("operation %d: %s is no version of its file", n, path)
			}
		}
		if h := must[*HealthReport](t)(b.db.DeepHealth(t.Context())); h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
			t.Fatalf("operation %d: %+v", n, h)
		}
		b.sync(SyncOptions{})
		b.wantNotes(young)
		if err := b.db.Close(); err != nil {
			t.Fatal(err)
		}
		os.RemoveAll(data)
		tried++
		if !failed {
			if err != nil {
				t.Error(err)
			}
			break
		}
	}
	if tried < 3 {
		t.Errorf("%d places to fail: the test shows nothing", tried)
	}
}

// TestSyncWhileWriting holds that files which are written to during SyncDir
// come in as one of their versions.
func TestSyncWhileWriting(t *testing.T) {
	b := newNoteBox(t)
	old, young := strings.Repeat("old\n\n", 2000), strings.Repeat("young\n\n", 2000)
	b.file("a.md", old)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			temp := filepath.Join(b.dir, ".temp")
			if os.WriteFile(temp, []byte([]string{old, young}[i%2]), 0o600) == nil {
				os.Rename(temp, filepath.Join(b.dir, "a.md"))
			}
		}
	}()
	for range 10 {
		b.sync(SyncOptions{})
		var text bytes.Buffer
		for _, c := range b.chunks(b.notes()["a.md"].ID) {
			text.WriteString(c.Content + "\n\n")
		}
		if s := text.String(); s != old && s != young {
			t.Error("neither version")
		}
	}
	close(stop)
	<-stopped
}
