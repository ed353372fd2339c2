package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store/faultvfs"
	"go.uber.org/goleak"
)

// files gives what lies in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(text)
	}
	return out
}

func execFile(t *testing.T, path, sql string) {
	t.Helper()
	c, err := openSQLite(path, "", openWriter)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.exec(sql); err != nil {
		t.Fatal(err)
	}
}

// TestRefused checks that a file that this program should not open is told
// apart and left alone, byte for byte.
func TestRefused(t *testing.T) {
	newer := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; CREATE TABLE t (x)", applicationID, SchemaVersion+1)
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		code errs.Code
	}{
		{"newer", func(t *testing.T, path string) { execFile(t, path, newer) }, errs.SchemaVersion},
		{"another program's", func(t *testing.T, path string) { execFile(t, path, "PRAGMA application_id=77; CREATE TABLE t (x)") }, errs.Validation},
		{"nobody's", func(t *testing.T, path string) { execFile(t, path, "CREATE TABLE t (x)") }, errs.Validation},
		{"not a database", func(t *testing.T, path string) { os.WriteFile(path, bytes.Repeat([]byte("text\n"), 100), 0o600) }, errs.Validation},
		{"short", func(t *testing.T, path string) { os.WriteFile(path, []byte("SQLite format 3\x00"), 0o600) }, errs.Validation},
		{"a folder", func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, errs.IO},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			dir := t.TempDir()
			path := filepath.Join(dir, DatabaseFile)
			c.make(t, path)
			var before map[string]string
			if c.code != errs.IO {
				before = files(t, dir)
			}
			_, err := Open(t.Context(), dir, Options{})
			if !errors.Is(err, c.code) {
				t.Fatal(err)
			}
			if before == nil {
				return
			}
			after := files(t, dir)
			if after[DatabaseFile] != before[DatabaseFile] {
				t.Error("the file was changed")
			}
		})
	}
}

// TestNewerInLog is a newer version whose header still stands in the log, as
// after a crash right behind its migration.
func TestNewerInLog(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, Options{}).Close()
	path := filepath.Join(dir, DatabaseFile)
	c, err := openSQLite(path, "", openWriter)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.exec(fmt.Sprintf("PRAGMA user_version=%d", SchemaVersion+1)); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, errs.SchemaVersion) {
		t.Error(err)
	}
	after := files(t, dir)
	delete(before, DatabaseFile+"-shm") // holds locks' traces, not data
	delete(after, DatabaseFile+"-shm")
	if !maps.Equal(before, after) {
		t.Error("the files were changed")
	}
}

func TestMigration(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	m := fullMemory()
	addBatch(t, s, []*Memory{m})
	s.Close()
	boom := errors.New("boom")
	fails := Options{migrations: []migration{nil, addVectors, addContexts, addAgent, func(c conn, _ dialect) error {
		if err := c.exec("CREATE TABLE extra (x)"); err != nil {
			return err
		}
		return boom
	}}}
	if _, err := Open(t.Context(), dir, fails); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	works := Options{migrations: []migration{nil, addVectors, addContexts, addAgent, func(c conn, _ dialect) error { return c.exec("CREATE TABLE extra (x); INSERT INTO extra VALUES (5)") }}}
	s = openTest(t, dir, works)
	same(t, m, loadMemory(t, s, m.ID))
	if n, err := queryInt(s.writer.session.c, "SELECT x FROM extra"); n != 5 || err != nil {
		t.Error(n, err)
	}
	if n, err := queryInt(s.writer.session.c, "PRAGMA user_version"); n != 5 || err != nil {
		t.Error(n, err)
	}
	s.Close()
	openTest(t, dir, works).Close() // nothing more to do
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, errs.SchemaVersion) {
		t.Error(err)
	}
	names := files(t, dir)
	for _, name := range []string{DatabaseFile + ".v4", DatabaseFile + ".v4-2"} {
		if names[name] == "" {
			t.Errorf("the copy %s is missing", name)
		}
	}
	if len(names) != 3 {
		t.Error(len(names))
	}
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, DatabaseFile), []byte(names[DatabaseFile+".v4"]), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, old, Options{}) // a copy is a store as it was
	same(t, m, loadMemory(t, s, m.ID))
}

// TestInterruptedStart opens what a crash in the midst of the initialisation
// may leave.
func TestInterruptedStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DatabaseFile)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir, Options{}).Close()
	dir = t.TempDir()
	execFile(t, filepath.Join(dir, DatabaseFile), "PRAGMA journal_mode=WAL; CREATE TABLE t (x); DROP TABLE t; VACUUM") // a header, no tables
	addBatch(t, openTest(t, dir, Options{}), []*Memory{fullMemory()})
}

// TestDamaged overwrites pages: reading them is an error with a code, never
// wrong data and never a panic.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	var batch []*Memory
	for i := range 2000 {
		batch = append(batch, testMemory(rng, i))
	}
	addBatch(t, s, batch)
	s.Close()
	path := filepath.Join(dir, DatabaseFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		text := bytes.Clone(whole)
		for range 20 {
			page := 1 + rng.IntN(len(text)/4096-1)
			for i := range 512 {
				text[page*4096+i] = byte(rng.Uint32())
			}
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), dir, Options{})
		if err == nil {
			check, err := s.DeepCheck(t.Context())
			if err == nil && check.Integrity == "ok" {
				t.Error("the damage was not noticed")
			}
			for _, m := range batch[:500] {
				err := s.Read(t.Context(), func(tx *ReadTx) error { _, err := tx.Memory(m.ID); return err })
				if err != nil && errs.CodeOf(err) == "" {
					t.Fatal(err)
				}
			}
			s.Close()
		} else if errs.CodeOf(err) == "" {
			t.Error(err)
		}
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	now := time.UnixMicro(1_700_000_000_000_000)
	l, err := LockDirectory(dir, "v9", now)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockDirectory(dir, "v9", now)
	if !errors.Is(err, errs.Locked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d since 2023-11-14T22:13:20Z", os.Getpid())) {
		t.Error(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	l, err = LockDirectory(dir, "v9", now)
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
}

// TestLockIsNoLink checks that what bears the lock file's name and is none is left
// alone: a folder that came from elsewhere must not have another file written over.
func TestLockIsNoLink(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, LockFile)
	for _, make := range []func() error{
		func() error { return os.Symlink(other, path) },
		func() error { return os.Symlink(filepath.Join(dir, "nowhere"), path) },
		func() error { return os.Mkdir(path, 0o700) },
	} {
		if err := make(); err != nil {
			t.Skip(err) // a system where links need a privilege
		}
		_, err := LockDirectory(dir, "v9", time.Now())
		if errs.CodeOf(err) != errs.IO || !strings.Contains(err.Error(), "is no regular file") {
			t.Error(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "mine" {
		t.Errorf("the other file holds %q: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a file was made behind a link")
	}
}

// TestLogStaysBounded writes under readers that never leave the log alone: one
// snapshot or the other is always open.
func TestLogStaysBounded(t *testing.T) {
	fs := faultvfs.Register("log-bound")
	t.Cleanup(fs.Close)
	dir := t.TempDir()
	const pages = 100
	s := openTest(t, dir, Options{VFS: fs.Name(), CheckpointPages: pages})
	rng := rand.New(rand.NewPCG(1, 1))
	addBatch(t, s, []*Memory{testMemory(rng, 0)})
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				err := s.Read(context.Background(), func(tx *ReadTx) error {
					time.Sleep(5 * time.Millisecond)
					_, err := tx.Memory(1)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var largest int64
	for range 150 {
		batch := make([]*Memory, 100)
		for i := range batch {
			batch[i] = testMemory(rng, i)
		}
		addBatch(t, s, batch)
		if info, err := os.Stat(filepath.Join(dir, DatabaseFile+"-wal")); err == nil {
			largest = max(largest, info.Size())
		}
	}
	stop.Store(true)
	wg.Wait()
	written := fs.Written("-wal")
	t.Logf("log at most %d KiB of %d KiB written", largest>>10, written>>10)
	if limit := int64(4 * logLimitFactor * pages * 4096); largest > limit || written < 2*limit {
		t.Errorf("the log grew to %d bytes, %d were written to it", largest, written)
	}
}

func TestDictIsBounded(t *testing.T) {
	d := newDict()
	d.generationCapacity = 10
	d.add(1, "kept")
	for i := range int64(1000) {
		d.add(i+2, fmt.Sprint(i))
		if id, ok := d.id("kept"); !ok || id != 1 {
			t.Fatal("what is in use was dropped")
		}
		if text, ok := d.text(1); !ok || text != "kept" {
			t.Fatal("what is in use was dropped")
		}
	}
	if n := len(d.ids) + len(d.oldIDs); n > 20 {
		t.Error(n)
	}
	if _, ok := d.id("5"); ok {
		t.Error("what is not in use was kept")
	}
}

func TestClosedStore(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := openTest(t, t.TempDir(), Options{})
	addBatch(t, s, []*Memory{fullMemory()})
	loadMemory(t, s, 1)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Write(t.Context(), func(*WriteTx) error { return nil }); !errors.Is(err, errs.Closed) {
		t.Error(err)
	}
}

// TestDeepCheckFindsDisagreement spoils what the store keeps twice.
func TestDeepCheckFindsDisagreement(t *testing.T) {
	for sql, want := range map[string]string{
		"DELETE FROM record_tags WHERE record_id = 1 AND tag_id = (SELECT min(tag_id) FROM record_tags)": "record 1 is not listed",
		"INSERT INTO record_tags VALUES (1, 1, 99)":                                                      "tags are listed",
		"UPDATE counts SET n = 5": "are counted",
		"PRAGMA foreign_keys=OFF; INSERT INTO evidence VALUES (77, 0, 's', '', NULL, NULL, NULL, '', NULL)": "",
	} {
		dir := t.TempDir()
		s := openTest(t, dir, Options{})
		addBatch(t, s, []*Memory{fullMemory()})
		s.Close()
		execFile(t, filepath.Join(dir, DatabaseFile), sql)
		s = openTest(t, dir, Options{})
		check, err := s.DeepCheck(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && check.ForeignKeyErrors != 1 || want != "" && !strings.Contains(check.Integrity, want) {
			t.Errorf("%s: %+v", sql, check)
		}
	}
}

func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions mean something else on Windows")
	}
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	mode := func(want os.FileMode) {
		t.Helper()
		addBatch(t, s, []*Memory{testMemory(rand.New(rand.NewPCG(1, 1)), 1)})
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(filepath.Join(dir, DatabaseFile+suffix)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%q: %v, %v", suffix, info.Mode(), err)
			}
		}
	}
	mode(0o600)
	s.Close()
	if err := os.Chmod(filepath.Join(dir, DatabaseFile), 0o640); err != nil { // somebody's wish
		t.Fatal(err)
	}
	s = openTest(t, dir, Options{})
	mode(0o640)
}

// TestConcurrent lets writers that succeed, fail and panic share commits while
// readers look: every snapshot holds whole batches only, as many as its
// counters say.
func TestConcurrent(t *testing.T) {
	var order hookOrder
	s := openTest(t, t.TempDir(), Options{Hooks: &order, CheckpointPages: 50})
	const size = 5
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var writers, readers sync.WaitGroup
	var committed atomic.Int64
	for g := range 6 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 9))
			var mine [][]*Memory
			for i := range rounds {
				var batch []*Memory
				for range size {
					m := testMemory(rng, i)
					m.Scope = fmt.Sprint("of ", g)
					m.Tags = append(m.Tags, fmt.Sprint("new ", g, i))
					slices.Sort(m.Tags)
					batch = append(batch, m)
				}
				how := rng.IntN(5)
				_, err := s.Write(context.Background(), func(tx *WriteTx) error {
					for k, m := range batch {
						if err := adds(m)(tx); err != nil {
							return err
						}
						if k == 2 && how == 0 {
							return errors.New("changed my mind")
						}
						if k == 3 && how == 1 {
							panic("lost my mind")
						}
					}
					if how == 2 && len(mine) > 0 { // one batch comes, another goes
						for _, m := range mine[0] {
							if err := tx.Delete(&m.Record); err != nil {
								return err
							}
						}
					}
					return nil
				})
				if (err == nil) != (how > 1) {
					t.Error(how, err)
				}
				if err == nil {
					committed.Add(1)
					if how == 2 && len(mine) > 0 {
						mine = mine[1:]
					}
					mine = append(mine, batch)
				}
			}
		})
	}
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			var last int64
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := s.Read(context.Background(), func(tx *ReadTx) error {
					if tx.Revision() < last {
						t.Errorf("revision %d after %d", tx.Revision(), last)
					}
					last = tx.Revision()
					all, _, err := tx.ScanRecords(0, 1<<20)
					if err != nil {
						return err
					}
					perRevision := map[int64]int{}
					for _, m := range all {
						perRevision[m.Head().Revision]++
					}
					for revision, n := range perRevision {
						if n != size || revision > tx.Revision() {
							t.Errorf("%d records of revision %d in a snapshot of %d", n, revision, tx.Revision())
						}
					}
					stored, err := queryInt(tx.c, "SELECT coalesce(sum(n), 0) FROM counts")
					if stored != int64(len(all)) {
						t.Errorf("%d records, counted %d", len(all), stored)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if c := s.Counters(); c.Revision != committed.Load() || order.revision != c.Revision {
		t.Errorf("revision %d, staged %d, %d operations", c.Revision, order.revision, committed.Load())
	}
	if order.wrong != "" {
		t.Error(order.wrong)
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
		t.Errorf("%+v, %v", check, err)
	}
}

// hookOrder checks that the hooks are called as they should.
type hookOrder struct {
	revision int64
	staged   bool
	wrong    string
}

func (h *hookOrder) Stage(revision int64, changes []Change) {
	seen := map[int64]bool{}
	for _, c := range changes {
		if seen[c.ID] {
			h.wrong = "a record twice in a commit"
		}
		seen[c.ID] = true
	}
	if h.staged || revision <= h.revision {
		h.wrong = fmt.Sprintf("staged %d after %d", revision, h.revision)
	}
	h.staged, h.revision = true, revision
}

func (h *hookOrder) Publish() {
	if !h.staged {
		h.wrong = "published nothing"
	}
	h.staged = false
}

func (h *hookOrder) Discard() { h.wrong = "discarded" }

func TestCanceledOpen(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, t.TempDir(), Options{}); !errors.Is(err, errs.Canceled) {
		t.Error(err)
	}
}
