package loci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/loci-memory/loci/internal/testkit/crash"
)

func (b *noteBox) sync(o SyncOptions) SyncReport {
	b.t.Helper()
	return must[*Receipt[SyncReport]](b.t)(b.db.Notes().SyncDir(b.t.Context(), DefaultNamespace, o)).Value
}

func (b *noteBox) remove(name string) {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.dir, filepath.FromSlash(name))); err != nil {
		b.t.Fatal(err)
	}
}

// notes gives the notes of a scope by path.
func (b *noteBox) notes() map[string]Note {
	b.t.Helper()
	all := map[string]Note{}
	for _, n := range must[*Page[Note]](b.t)(b.db.Notes().List(b.t.Context(), PageRequest{Limit: new(MaxPage)})).Items {
		all[n.Path] = n
	}
	return all
}

func wantReport(t *testing.T, got SyncReport, want SyncReport) {
	t.Helper()
	problems := got.Problems
	got.Problems = nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v, problems %+v", got, want, problems)
	}
}

// problemsOf are the paths with problems and their codes.
func problemsOf(r SyncReport) map[string]Code {
	m := map[string]Code{}
	for _, p := range r.Problems {
		m[p.Path] = p.Code
	}
	return m
}

func TestSyncDir(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b *noteBox)
	}{
		{"new, changed, gone", func(t *testing.T, b *noteBox) {
			b.file("a.md", "alpha\n\nbeta")
			b.file("x/b.markdown", "gamma")
			b.file("x/c.TXT", "delta")
			b.file("x/d.org", "left out")
			b.file(".hidden/e.md", "left out")
			b.file(".f.md", "left out")
			wantReport(t, b.sync(SyncOptions{DryRun: true}), SyncReport{Files: 3, Added: 3})
			if s := stateOf(t, b.db); s.records != 0 {
				t.Errorf("%+v", s)
			}
			var done []int64
			wantReport(t, b.sync(SyncOptions{Progress: func(n, total int64) {
				if total != 3 {
					t.Error(total)
				}
				done = append(done, n)
			}}), SyncReport{Files: 3, Added: 3})
			if !slices.Equal(done, []int64{0, 3}) {
				t.Error(done)
			}
			before, revision := b.notes(), stateOf(t, b.db).revision
			wantReport(t, b.sync(SyncOptions{}), SyncReport{Files: 3, Unchanged: 3})
			if stateOf(t, b.db).revision != revision {
				t.Error("nothing changed, but the revision")
			}
			kept := b.chunks(before["a.md"].ID)[0]
			b.file("a.md", "alpha\n\nnew")
			b.remove("x/b.markdown")
			b.file("x/new.md", "epsilon")
			want := SyncReport{Files: 3, Added: 1, Changed: 1, Unchanged: 1, Deleted: 1}
			wantReport(t, b.sync(SyncOptions{DryRun: true}), want)
			wantReport(t, b.sync(SyncOptions{}), want)
			after := b.notes()
			if len(after) != 3 || after["a.md"].ID != before["a.md"].ID || b.chunks(after["a.md"].ID)[0].ID != kept.ID {
				t.Errorf("%+v", after)
			}
			if len(b.find("gamma"))+len(b.find("beta")) != 0 || len(b.find("epsilon")) != 1 {
				t.Error("the index did not follow")
			}
		}},
		{"scopes and tags", func(t *testing.T, b *noteBox) {
			n := b.put("x/a.md", "text", "mine")
			b.upsert(NoteFileInput{Path: "x/a.md", RecordInput: RecordInput{Tags: []string{"mine"}, Metadata: Metadata(`{"k":1}`),
				Evidence: []Evidence{{Source: "s"}}, Thread: new("t"), Position: new(int64(4))}})
			b.file("x/a.md", "text two")
			wantReport(t, b.sync(SyncOptions{}), SyncReport{Files: 1, Changed: 1})
			got := must[*Note](t)(b.db.Notes().Get(t.Context(), n.ID, ReadFilter{}))
			if !slices.Equal(got.Tags, []string{"a", "mine", "x"}) || string(got.Metadata) != `{"k":1}` || len(got.Evidence) != 1 || *got.Position != 4 {
				t.Errorf("%+v", got)
			}
			wantReport(t, b.sync(SyncOptions{Tags: []string{}}), SyncReport{Files: 1, Unchanged: 1})
			wantReport(t, b.sync(SyncOptions{Tags: []string{"Other"}}), SyncReport{Files: 1, Changed: 1})
			if got = must[*Note](t)(b.db.Notes().Get(t.Context(), n.ID, ReadFilter{})); !slices.Equal(got.Tags, []string{"a", "other", "x"}) {
				t.Errorf("%+v", got)
			}
			wantReport(t, b.sync(SyncOptions{Scope: new("private")}), SyncReport{Files: 1, Added: 1})
			b.remove("x")
			wantReport(t, b.sync(SyncOptions{Scope: new("private")}), SyncReport{Deleted: 1})
			if len(b.notes()) != 1 {
				t.Error("one scope's notes went with another's")
			}
		}},
		{"bad files", func(t *testing.T, b *noteBox) {
			b.file("good.md", "fine")
			b.file("bad.md", "\xff\xfe\xfd")
			b.file("con.md", "x")
			b.file("big.md", strings.Repeat("x", MaxNoteBytes+1))
			b.file("utf16.txt", "\xff\xfeh\x00i\x00\r\x00\n\x00")
			b.file("gbk.txt", "\xb3\xb1\xcb\xae\xb1\xed\xc3\xbf\xd6\xdc\xb8\xfc\xd0\xc2") // 潮水表每周更新
			r := b.sync(SyncOptions{})
			wantReport(t, r, SyncReport{Files: 6, Added: 3, Skipped: 3, Converted: 2})
			want := map[string]Code{"bad.md": ErrValidation, "con.md": ErrValidation, "big.md": ErrValidation}
			if got := problemsOf(r); !maps.Equal(got, want) {
				t.Errorf("%+v", r.Problems)
			}
			if len(b.find("潮水")) != 1 {
				t.Error("converted text is not found")
			}
			// A note whose file went bad stays as it was.
			b.file("good.md", "\xff\xfe\xfd")
			wantReport(t, b.sync(SyncOptions{}), SyncReport{Files: 6, Unchanged: 2, Skipped: 4, Converted: 2})
			if len(b.find("fine")) != 1 {
				t.Error("a note was lost to a bad file")
			}
		}},
		{"twins", func(t *testing.T, b *noteBox) {
			b.file("Read.md", "one")
			b.file("read.md", "two")
			b.file("caf\u00e9.md", "three")
			b.file("cafe\u0301.md", "four")
			entries, err := os.ReadDir(b.dir)
			if err != nil || len(entries) != 4 {
				t.Skip("this file system takes them for one file")
			}
			r := b.sync(SyncOptions{})
			wantReport(t, r, SyncReport{Files: 4, Added: 4})
			if got := problemsOf(r); len(got) != 2 || got["read.md"] != ErrConflict {
				t.Errorf("%+v", r.Problems)
			}
		}},
		{"links", func(t *testing.T, b *noteBox) {
			outside := t.TempDir()
			if err := os.WriteFile(filepath.Join(outside, "secret.md"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.file("in/a.md", "text")
			for name, target := range map[string]string{"out": outside, "out.md": filepath.Join(outside, "secret.md"), "again": "in",
				"same.md": "in/a.md", "loop.md": "loop.md", "nothing.txt": "no.txt"} {
				if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
					t.Skip("no symbolic links here")
				}
			}
			r := b.sync(SyncOptions{})
			wantReport(t, r, SyncReport{Files: 5, Added: 1, Skipped: 4})
			want := map[string]Code{"out": ErrValidation, "out.md": ErrValidation, "loop.md": ErrIO, "nothing.txt": ErrIO}
			if got := problemsOf(r); !maps.Equal(got, want) {
				t.Errorf("%+v", r.Problems)
			}
			// A file that became a link is a note no more.
			b.remove("in/a.md")
			if err := os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(b.dir, "in", "a.md")); err != nil {
				t.Fatal(err)
			}
			if r := b.sync(SyncOptions{}); r.Deleted != 1 || len(b.find("secret")) != 0 {
				t.Errorf("%+v", r)
			}
		}},
		{"mass deletion", func(t *testing.T, b *noteBox) {
			for i := range 20 {
				b.file(fmt.Sprint("d", i, ".md"), "text")
			}
			b.sync(SyncOptions{})
			for i := range 11 {
				b.remove(fmt.Sprint("d", i, ".md"))
			}
			_, err := b.db.Notes().SyncDir(t.Context(), DefaultNamespace, SyncOptions{})
			wantCode(t, err, ErrConflict)
			wantReport(t, b.sync(SyncOptions{DryRun: true}), SyncReport{Files: 9, Unchanged: 9, Deleted: 11})
			wantReport(t, b.sync(SyncOptions{AllowMassDelete: true}), SyncReport{Files: 9, Unchanged: 9, Deleted: 11})
			for i := range 20 {
				b.remove(fmt.Sprint("d", i, ".md"))
			}
			wantReport(t, b.sync(SyncOptions{}), SyncReport{Deleted: 9}) // fewer than 20
		}},
		{"what was not seen but is there", func(t *testing.T, b *noteBox) {
			b.put("a.org", "kept")
			b.put(".hidden.md", "kept")
			b.put("closed/b.md", "kept")
			wantReport(t, b.sync(SyncOptions{}), SyncReport{Files: 1, Unchanged: 1})
			if os.Getuid() != 0 && runtime.GOOS != "windows" {
				if err := os.Chmod(filepath.Join(b.dir, "closed"), 0); err != nil {
					t.Fatal(err)
				}
				defer os.Chmod(filepath.Join(b.dir, "closed"), 0o755)
				if r := b.sync(SyncOptions{}); len(r.Problems) != 1 || r.Deleted != 0 {
					t.Errorf("%+v", r)
				}
			}
			if len(b.notes()) != 3 {
				t.Error(b.notes())
			}
			// A folder in the place of a file, and the other way round.
			b.remove("a.org")
			b.file("a.org/c.md", "new")
			b.file("d/e.md", "deep")
			b.sync(SyncOptions{})
			b.remove("d")
			b.file("d", "a file")
			if r := b.sync(SyncOptions{}); r.Deleted != 1 {
				t.Errorf("%+v", r)
			}
		}},
		{"no root", func(t *testing.T, b *noteBox) {
			b.put("a.md", "text")
			b.remove("")
			_, err := b.db.Notes().SyncDir(t.Context(), DefaultNamespace, SyncOptions{})
			wantCode(t, err, ErrIO)
			_, err = b.db.Notes().SyncDir(t.Context(), "other", SyncOptions{})
			wantCode(t, err, ErrValidation)
			for _, o := range []SyncOptions{{Scope: new("")}, {Extensions: []string{"md"}}, {Extensions: []string{}}, {ChunkChars: new(15)}} {
				_, err := b.db.Notes().SyncDir(t.Context(), DefaultNamespace, o)
				wantCode(t, err, ErrValidation)
			}
			if len(b.notes()) != 1 {
				t.Error("a note went with the root")
			}
		}},
		{"many files", func(t *testing.T, b *noteBox) {
			for i := range 3 * syncBatchFiles {
				b.file(fmt.Sprintf("d%d/n%d.md", i%7, i), fmt.Sprintf("number n%dq\n\nand more", i))
			}
			wantReport(t, b.sync(SyncOptions{}), SyncReport{Files: 96, Added: 96})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := b.db.Notes().SyncDir(ctx, DefaultNamespace, SyncOptions{})
			wantCode(t, err, ErrCanceled)
			if hits := b.find("n95q"); len(hits) == 0 || noteOfHit(hits[0]) != b.notes()["d4/n95.md"].ID {
				t.Error("not found")
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newNoteBox(t)) })
	}
}

// TestSyncTrust holds that a file is not read again when nothing says that it
// changed, and that one which took another's place is, whatever its times.
func TestSyncTrust(t *testing.T) {
	b := newNoteBoxAt(t, func() time.Time { return time.Now().Add(time.Hour) }) // so that all changes are long ago
	then := time.Now().Add(-time.Hour)
	for _, name := range []string{"a.md", "b.md", "c.md"} {
		b.file(name, "text "+name[:1])
		if err := os.Chtimes(filepath.Join(b.dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	b.sync(SyncOptions{})
	time.Sleep(20 * time.Millisecond) // past the resolution of the file system
	for _, names := range [][2]string{{"a.md", "c"}, {"b.md", "a.md"}, {"c", "b.md"}} {
		if err := os.Rename(filepath.Join(b.dir, names[0]), filepath.Join(b.dir, names[1])); err != nil {
			t.Fatal(err)
		}
	}
	want := SyncReport{Files: 3, Unchanged: 3}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		want = SyncReport{Files: 3, Changed: 2, Unchanged: 1}
	}
	wantReport(t, b.sync(SyncOptions{}), want)
	err := b.db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		n, err := tx.Note(int64(b.notes()["c.md"].ID))
		if err == nil && n.Modified == 0 {
			t.Error("the time of the last change was not kept")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	before := stateOf(t, b.db)
	wantReport(t, b.sync(SyncOptions{}), SyncReport{Files: 3, Unchanged: 3})
	wantReport(t, b.sync(SyncOptions{Tags: []string{"new"}}), SyncReport{Files: 3, Changed: 3})
	if before.revision == stateOf(t, b.db).revision {
		t.Error("new tags made no revision")
	}
}

// restlessFile is a file that somebody writes to.
type restlessFile struct {
	io.Reader
	size int64
	time time.Time
	stat func(*restlessFile)
}

func (f *restlessFile) Close() error               { return nil }
func (f *restlessFile) Name() string               { return "a.md" }
func (f *restlessFile) Size() int64                { return f.size }
func (f *restlessFile) Mode() fs.FileMode          { return 0 }
func (f *restlessFile) ModTime() time.Time         { return f.time }
func (f *restlessFile) IsDir() bool                { return false }
func (f *restlessFile) Sys() any                   { return nil }
func (f *restlessFile) Stat() (fs.FileInfo, error) { s := *f; f.stat(f); return &s, nil }

func TestReadStable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(opened int, f *restlessFile)
		opens  int // 0: given up
	}{
		"still":          {func(int, *restlessFile) {}, 1},
		"touched once":   {func(n int, f *restlessFile) { f.time = time.Unix(int64(max(2-n, 0)), 0) }, 2},
		"grows":          {func(_ int, f *restlessFile) { f.size++ }, 0},
		"shrunk at once": {func(n int, f *restlessFile) { f.size -= int64(max(3-n, 0)) }, 3},
	} {
		opens := 0
		content, err := readStable(func() (openFile, error) {
			opens++
			f := &restlessFile{Reader: strings.NewReader("hello"), size: 5, time: time.Unix(0, 0)}
			f.stat = func(f *restlessFile) { c.change(opens, f) }
			return f, nil
		})
		if c.opens == 0 {
			if CodeOf(err) != ErrIO || opens != readAttempts {
				t.Error(name, err, opens)
			}
			continue
		}
		if err != nil || string(content.data) != "hello" || opens != c.opens {
			t.Error(name, err, opens)
		}
	}
	boom := errors.New("boom")
	if _, err := readStable(func() (openFile, error) { return nil, boom }); err != boom {
		t.Error(err)
	}
	now := time.Unix(1000, 0)
	if trusted(now.Add(-time.Second), now) != 0 || trusted(now.Add(time.Hour), now) != 0 || trusted(now.Add(-3*time.Second), now) == 0 {
		t.Error("what a modification time says")
	}
}

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
