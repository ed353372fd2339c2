package loci

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"go.uber.org/goleak"
)

// library writes n memories of mixed words, with threads, tags and metadata.
func library(t testing.TB, db *DB, n int) (ids []ID) {
	t.Helper()
	words := []string{"harbor", "tide", "灯塔", "茶馆", "lamp", "keeper", "潮水", "getUserName", "v1.2.3", "夜航"}
	ins := make([]MemoryInput, n)
	for i := range ins {
		ins[i] = MemoryInput{Judgment: fmt.Sprint(words[i%10], " ", words[i/10%10], " ", words[i*i%7], strings.Repeat(" "+words[i%3], i%5)),
			RecordInput: RecordInput{Tags: []string{words[i%4]}, Metadata: Metadata(fmt.Sprintf(`{"n":%d}`, i%13)),
				Thread: new(fmt.Sprint("t", i%17)), CreatedAtUS: new(int64(i))}}
		if i%3 == 0 {
			ins[i].Scope = new("private")
		}
	}
	for part := range slices.Chunk(ins, MaxBatch) {
		ids = append(ids, rememberAll(t, db, part...)...)
	}
	return ids
}

// libraryQueries are searches that the library answers in many ways.
func libraryQueries() (reqs []SearchRequest) {
	both := scoped("public", "private")
	for _, query := range []string{"harbor", "harbor tide", "灯塔", "茶馆夜航", "塔", "user name", "v1.2.3 missing", "潮水 lamp keeper"} {
		reqs = append(reqs, SearchRequest{Query: query}, SearchRequest{Query: query, Filter: both, Limit: new(50)},
			SearchRequest{Query: query, Filter: both, ThreadWeight: 0.5, Fusion: FusionScore},
			SearchRequest{Query: query, Filter: ReadFilter{Scopes: both.Scopes, Tags: []string{"tide"},
				Where: []Condition{{Key: "n", Op: OpGt, Value: []byte("6")}}}})
	}
	return reqs
}

// closedLibrary is the folder of a closed store of n memories in files, some of
// them deleted again, and a few that only the journal has. It gives its answers.
func closedLibrary(t testing.TB, n int) (dir string, want []answer) {
	t.Helper()
	dir = t.TempDir()
	db := openReal(t, dir)
	ids := library(t, db, n)
	settle(t, db)
	for _, id := range ids[:n/10] {
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), id, scoped("public", "private")))
	}
	settle(t, db)
	library(t, db, 7)
	want = answersOf(t, db, libraryQueries())
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

func TestRebuild(t *testing.T) {
	t.Run("H1", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		remember(t, db, "潮水")
		for range 2 {
			h := must[*HealthReport](t)(db.UpdateIndex(t.Context()))
			if h.RecordCount != 1 || h.Counts["memory"] != 1 || len(h.Counts) != 1 || h.Integrity != "ok" || h.ForeignKeyErrors != 0 ||
				h.PendingIndexUpdates != 0 || h.IndexedRevision != h.Revision || h.IndexedDocuments != 1 || !h.IndexUsable {
				t.Errorf("%+v", h)
			}
		}
		if got := folders(t, db.Directory()); !slices.Equal(got, []string{"g000001"}) {
			t.Errorf("update_index rebuilt a good index: %v", got)
		}
	})
	t.Run("H2", func(t *testing.T) {
		b := &barrier{}
		db := openWith(t, t.TempDir(), &Options{Clock: newTestClock().Now, indexFS: hookIndexFS(b.before)})
		ids := library(t, db, 2500)
		reqs := libraryQueries()
		if p := db.RebuildProgress(); p != (RebuildProgress{}) {
			t.Errorf("before any rebuild: %+v", p)
		}
		// Held up before it has read a record, and again when it has read all and
		// writes them out.
		for at, op := range []string{"mkdir", "create"} {
			want := answersOf(t, db, reqs)
			b.arm(op)
			done := make(chan error)
			go func() { _, err := db.RebuildIndexes(context.Background()); done <- err }()
			<-b.reached
			total := int64(2500)
			if p := db.RebuildProgress(); !p.Active || p.Total != total || p.Processed > total {
				t.Errorf("%s: %+v", op, p)
			}
			wantAnswers(t, db, reqs, want)
			late := remember(t, db, "walrus "+op)
			wantHits(t, db, SearchRequest{Query: "walrus " + op, Limit: new(1)}, late...)
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[at], scoped("public", "private")))
			want = answersOf(t, db, reqs)
			close(b.open)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if p := db.RebuildProgress(); p.Active || p.Processed < total-1 {
				t.Errorf("%s: %+v", op, p)
			}
			wantAnswers(t, db, reqs, want)
			wantHits(t, db, SearchRequest{Query: "walrus " + op, Limit: new(1)}, late...)
		}
		h := must[*HealthReport](t)(db.Health(t.Context()))
		if h.PendingIndexUpdates != 0 || h.IndexedDocuments != h.RecordCount {
			t.Errorf("%+v", h)
		}
		if got := folders(t, db.Directory()); !slices.Equal(got, []string{"g000003"}) {
			t.Errorf("%v", got)
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		b := &barrier{}
		db := openWith(t, t.TempDir(), &Options{indexFS: hookIndexFS(b.before)})
		library(t, db, 50)
		want := answersOf(t, db, libraryQueries())
		b.arm("mkdir")
		first := db.eng.startRebuild(nil)
		<-b.reached
		if db.eng.startRebuild(nil) != first {
			t.Error("two rebuilds run")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := db.RebuildIndexes(ctx)
		wantCode(t, err, ErrCanceled)
		close(b.open)
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				if _, err := db.RebuildIndexes(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		wantAnswers(t, db, libraryQueries(), want)
		if got := folders(t, db.Directory()); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
	t.Run("empty store", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		rebuild(t, db)
		ids := remember(t, db, "潮水")
		wantHits(t, db, SearchRequest{Query: "潮水"}, ids...)
	})
	t.Run("closed", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		db.Close()
		_, err := db.RebuildIndexes(t.Context())
		wantCode(t, err, ErrClosed)
		_, err = db.Search(t.Context(), SearchRequest{Query: "潮水"})
		wantCode(t, err, ErrClosed)
	})
}

// TestDamagedIndex is H3: whatever happens to the index's files while the store
// is closed, it opens, everything is found, and the truth is untouched.
func TestDamagedIndex(t *testing.T) {
	dir, want := closedLibrary(t, 400)
	reqs := libraryQueries()
	before := func() []Memory {
		db := openReal(t, copyDir(t, dir))
		defer db.Close()
		return listMemories(t, db, scoped("public", "private"))
	}()
	files := indexFiles(t, dir)
	if len(files) < 3 || !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, ".del-") }) {
		t.Fatalf("too few files to damage: %v", files)
	}
	check := func(t *testing.T, damaged string, wait, aside bool) {
		db := openWith(t, damaged, &Options{Clock: newTestClock().Now, WaitForIndex: wait})
		if !wait {
			must[*HealthReport](t)(db.UpdateIndex(t.Context()))
		}
		h := must[*HealthReport](t)(db.Health(t.Context()))
		if !h.IndexUsable || h.PendingIndexUpdates != 0 || h.IndexedDocuments != h.RecordCount {
			t.Errorf("%+v", h)
		}
		wantAnswers(t, db, reqs, want)
		after := listMemories(t, db, scoped("public", "private"))
		if len(after) != len(before) {
			t.Fatalf("%d records, want %d", len(after), len(before))
		}
		for i := range after {
			if after[i].ID != before[i].ID || after[i].Judgment != before[i].Judgment || after[i].Revision != before[i].Revision {
				t.Errorf("%+v, was %+v", after[i], before[i])
			}
		}
		if got := folders(t, damaged); aside != slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, damagedPrefix) }) {
			t.Errorf("folders %v, damage set aside: want %v", got, aside)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openReal(t, damaged)
		wantAnswers(t, db, reqs, want)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		for what, damage := range map[string]func([]byte) []byte{
			"emptied":   func(b []byte) []byte { return b[:0] },
			"truncated": func(b []byte) []byte { return b[:len(b)/2] },
			"one short": func(b []byte) []byte { return b[:len(b)-1] },
			"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b },
			"head":      func(b []byte) []byte { b[0] ^= 1; return b },
			"zeroed":    func(b []byte) []byte { return make([]byte, len(b)) },
			"gone":      func(b []byte) []byte { return nil },
		} {
			t.Run(filepath.Base(file)+" "+what, func(t *testing.T) {
				damaged := copyDir(t, dir)
				path := filepath.Join(damaged, file)
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				aside := true
				if b = damage(b); b != nil {
					err = os.WriteFile(path, b, 0o600)
				} else {
					err = os.Remove(path)
					aside = filepath.Base(path) != "MANIFEST" // without it there is no index, which is no damage
				}
				if err != nil {
					t.Fatal(err)
				}
				check(t, damaged, what != "flipped", aside)
			})
		}
	}
	t.Run("no index folder", func(t *testing.T) {
		damaged := copyDir(t, dir)
		if err := os.RemoveAll(filepath.Join(damaged, indexFolder)); err != nil {
			t.Fatal(err)
		}
		check(t, damaged, true, false)
	})
	t.Run("empty index folder", func(t *testing.T) {
		damaged := copyDir(t, dir)
		if err := os.RemoveAll(filepath.Join(damaged, filepath.Dir(files[0]))); err != nil {
			t.Fatal(err)
		}
		check(t, damaged, false, false)
	})
	replace := func(t *testing.T, from string) string {
		damaged := copyDir(t, dir)
		if err := os.RemoveAll(filepath.Join(damaged, indexFolder)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(damaged, indexFolder), os.DirFS(filepath.Join(from, indexFolder))); err != nil {
			t.Fatal(err)
		}
		return damaged
	}
	t.Run("another store's", func(t *testing.T) {
		other, _ := closedLibrary(t, 80)
		check(t, replace(t, other), true, true)
	})
	t.Run("of an earlier time", func(t *testing.T) {
		early := copyDir(t, dir)
		late := copyDir(t, dir)
		db := openReal(t, late)
		library(t, db, 5)
		settle(t, db)
		now := answersOf(t, db, reqs)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(late, indexFolder)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(late, indexFolder), os.DirFS(filepath.Join(early, indexFolder))); err != nil {
			t.Fatal(err)
		}
		db = openReal(t, late)
		wantAnswers(t, db, reqs, now)
	})
	t.Run("of a later time", func(t *testing.T) {
		late := copyDir(t, dir)
		db := openReal(t, late)
		library(t, db, 5)
		settle(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		check(t, replace(t, late), true, false)
	})
	t.Run("a file in the index folder's place", func(t *testing.T) {
		damaged := copyDir(t, dir)
		if err := os.RemoveAll(filepath.Join(damaged, indexFolder)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(damaged, indexFolder), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, damaged, true, false)
	})
	t.Run("a file in a generation's place", func(t *testing.T) {
		damaged := copyDir(t, dir)
		gen := filepath.Join(damaged, filepath.Dir(files[0]))
		if err := os.RemoveAll(gen); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(gen, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, damaged, true, true)
	})
	t.Run("foreign files", func(t *testing.T) {
		damaged := copyDir(t, dir)
		for _, name := range []string{"index/notes.txt", "index/g", "index/gabc", filepath.Join(filepath.Dir(files[0]), "notes.txt"),
			filepath.Join(filepath.Dir(files[0]), "seg-99999999"), filepath.Join(filepath.Dir(files[0]), "MANIFEST.tmp")} {
			if err := os.WriteFile(filepath.Join(damaged, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		check(t, damaged, true, false)
		if _, err := os.Stat(filepath.Join(damaged, "index/notes.txt")); err != nil {
			t.Error(err)
		}
	})
	t.Run("damaged again", func(t *testing.T) {
		damaged := copyDir(t, dir)
		for range 3 {
			for _, f := range indexFiles(t, damaged) {
				if filepath.Base(f) == "MANIFEST" && !strings.Contains(f, damagedPrefix) {
					if err := os.WriteFile(filepath.Join(damaged, f), []byte("x"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			check(t, damaged, true, true)
		}
		if got := folders(t, damaged); len(got) != 2 {
			t.Errorf("more than the last damaged index is kept: %v", got)
		}
	})
}

// TestDegradedOpen opens a store whose index is gone while its rebuild cannot
// get on: Open does not wait, writes and reads work, searches say what is
// missing, and find everything when the rebuild is through.
func TestDegradedOpen(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir, want := closedLibrary(t, 300)
	if err := os.RemoveAll(filepath.Join(dir, indexFolder)); err != nil {
		t.Fatal(err)
	}
	b := &barrier{}
	b.arm("readdir")
	db := openWith(t, dir, &Options{Clock: newTestClock().Now, indexFS: hookIndexFS(b.before)})
	<-b.reached
	r := &recorder{}
	listen(t, db, r.sink)
	res := search(t, db, SearchRequest{Query: "harbor", WithTotal: true})
	if len(res.Hits) != 0 || res.Hits == nil || *res.Total != 0 || res.Diagnostics.TextUsed || res.IndexedRevision != 0 ||
		!slices.Equal(res.Diagnostics.Degraded, []Degrade{DegradeTextIndexUnavailable}) {
		t.Errorf("%+v", res)
	}
	h := must[*HealthReport](t)(db.Health(t.Context()))
	if h.IndexUsable || h.PendingIndexUpdates != h.Revision || !slices.Equal(h.LastDegraded, []Degrade{DegradeTextIndexUnavailable}) {
		t.Errorf("%+v", h)
	}
	if p := db.RebuildProgress(); !p.Active || p.Total != h.RecordCount {
		t.Errorf("%+v", p)
	}
	late := remember(t, db, "walrus", "walrus two")
	getMemory(t, db, late[0], ReadFilter{})
	close(b.open)
	h = must[*HealthReport](t)(db.UpdateIndex(t.Context()))
	if !h.IndexUsable || h.PendingIndexUpdates != 0 || h.IndexedDocuments != h.RecordCount {
		t.Errorf("%+v", h)
	}
	events := r.settled(t, db)
	if len(events) != 2 || events[0].Kind != "search" || events[0].Hits != 0 || !slices.Equal(events[0].Degraded, res.Diagnostics.Degraded) ||
		events[1].Kind != "rebuild" || len(events[1].Degraded) != 0 {
		t.Errorf("%+v", events)
	}
	wantHits(t, db, SearchRequest{Query: "walrus"}, late...)
	must[*Receipt[int64]](t)(db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: ReadFilter{CreatedFromUS: new(int64(1e12))}}))
	wantAnswers(t, db, libraryQueries(), want)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWaitForIndexCanceled checks that an Open whose context ends while it waits
// leaves nothing behind.
func TestWaitForIndexCanceled(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir, want := closedLibrary(t, 100)
	if err := os.RemoveAll(filepath.Join(dir, indexFolder)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var eng *engine
	opts := &Options{WaitForIndex: true, openIndex: func(ctx context.Context, e *engine, opts *Options) error {
		eng = e
		return openIndex(ctx, e, opts)
	}}
	opts.indexFS = hookIndexFS(func(op, _ string) error {
		cancel()
		<-eng.background.Done() // Open has given up
		return eng.background.Err()
	})
	_, err := Open(ctx, dir, opts)
	wantCode(t, err, ErrCanceled)
	db := openReal(t, dir)
	wantAnswers(t, db, libraryQueries(), want)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// halfBuilt leaves a closed store with an unfinished generation of the index that
// covers the first thousand records, as a rebuild leaves it when the process
// dies, and writes that came after it.
func halfBuilt(t *testing.T) (dir string, want []answer) {
	t.Helper()
	dir = t.TempDir()
	db := openReal(t, dir)
	ids := library(t, db, 2500)
	settle(t, db)
	b, err := db.eng.beginGeneration()
	if err != nil {
		t.Fatal(err)
	}
	base := b.ix.Revision()
	err = db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		batch, next, err := tx.ScanRecords(0, 1000)
		if err != nil {
			return err
		}
		var changes []index.Change
		for _, m := range batch {
			doc, err := documentOf(tx, m)
			if err != nil {
				return err
			}
			changes = append(changes, index.Change{ID: doc.ID, Namespace: doc.Namespace, Kind: doc.Kind, Doc: b.ix.Prepare(doc)})
		}
		b.ix.SetCursor(next)
		b.ix.Stage(base, changes)
		b.ix.Publish()
		return b.ix.Flush()
	})
	if err != nil {
		t.Fatal(err)
	}
	b.ix.Abandon()
	// What the unfinished generation holds changes, and so does what it lacks.
	for _, id := range []ID{ids[3], ids[2000]} {
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), id, scoped("public", "private")))
	}
	addMemory(t, db, MemoryInput{Judgment: "harbor 灯塔 walrus", RecordInput: RecordInput{ID: ids[7]}})
	library(t, db, 100)
	want = answersOf(t, db, libraryQueries())
	if err := db.eng.index.Load().Flush(); err != nil { // must not cost the journal that the other one needs
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

// TestRebuildResumes opens a store whose rebuild did not come to its end.
func TestRebuildResumes(t *testing.T) {
	dir, want := halfBuilt(t)
	reqs := libraryQueries()
	after := func(t *testing.T, db *DB, resumed bool) {
		if p := db.RebuildProgress(); p.Active || resumed != (p.Processed < p.Total-900) {
			t.Errorf("resumed: want %v, %+v", resumed, p)
		}
		wantAnswers(t, db, reqs, want)
		if got := folders(t, db.Directory()); !slices.Equal(got, []string{"g000002"}) {
			t.Errorf("%v", got)
		}
		rebuild(t, db)
		wantAnswers(t, db, reqs, want)
	}
	t.Run("without another index", func(t *testing.T) {
		dir := copyDir(t, dir)
		if err := os.RemoveAll(filepath.Join(dir, indexFolder, "g000001")); err != nil {
			t.Fatal(err)
		}
		after(t, openReal(t, dir), true)
	})
	t.Run("beside the index in use", func(t *testing.T) {
		b := &barrier{}
		b.arm("create")
		db := openWith(t, copyDir(t, dir), &Options{Clock: newTestClock().Now, indexFS: hookIndexFS(b.before)})
		wantAnswers(t, db, reqs, want) // at once
		<-b.reached
		wantAnswers(t, db, reqs, want)
		run := db.eng.startRebuild(nil)
		close(b.open)
		<-run.done
		after(t, db, true)
	})
	t.Run("damaged", func(t *testing.T) {
		dir := copyDir(t, dir)
		if err := os.RemoveAll(filepath.Join(dir, indexFolder, "g000001")); err != nil {
			t.Fatal(err)
		}
		for _, f := range indexFiles(t, dir) {
			if err := os.Truncate(filepath.Join(dir, f), 100); err != nil {
				t.Fatal(err)
			}
		}
		db := openReal(t, dir)
		if p := db.RebuildProgress(); p.Processed != p.Total {
			t.Errorf("%+v", p)
		}
		wantAnswers(t, db, reqs, want)
	})
}

// TestCloseDuringRebuild closes a store in the midst of its background rebuild,
// before it has read anything and when it has read everything.
func TestCloseDuringRebuild(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	whole, want := closedLibrary(t, 1200)
	for _, op := range []string{"mkdir", "readdir", "create", "sync", "rename", "syncdir"} {
		t.Run(op, func(t *testing.T) {
			dir := copyDir(t, whole)
			if err := os.RemoveAll(filepath.Join(dir, indexFolder)); err != nil {
				t.Fatal(err)
			}
			b := &barrier{}
			b.arm(op)
			db := openWith(t, dir, &Options{indexFS: hookIndexFS(b.before)})
			<-b.reached
			closed := make(chan error)
			go func() { closed <- db.Close() }()
			<-db.eng.background.Done()
			close(b.open)
			if err := <-closed; err != nil {
				t.Fatal(err)
			}
			db = openReal(t, dir)
			wantAnswers(t, db, libraryQueries(), want)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
