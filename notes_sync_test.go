package loci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store"
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
