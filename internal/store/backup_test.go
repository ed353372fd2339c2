package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

func noProgress(int64, int64) {}

func filled(t testing.TB, opts Options, records int) *Store {
	t.Helper()
	s := openTest(t, t.TempDir(), opts)
	rng := rand.New(rand.NewPCG(1, 2))
	for records > 0 {
		batch := make([]*Memory, min(records, 1000))
		for i := range batch {
			batch[i] = testMemory(rng, i)
		}
		records -= len(batch)
		addBatch(t, s, batch)
	}
	return s
}

// wantFiles holds that a folder holds exactly these files.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// restored opens what a snapshot restores to and checks it in depth.
func restored(t *testing.T, snapshot string) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "store")
	if err := Restore(t.Context(), snapshot, dir, Options{}, noProgress); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, DatabaseFile)
	wantFiles(t, filepath.Dir(dir), "store")
	s := openTest(t, dir, Options{})
	if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
		t.Fatalf("%+v, %v", check, err)
	}
	return s
}

// TestBackupWhileWriting makes backups under four writers: each is the store at
// one revision, every batch whole, and holds what was acknowledged before.
func TestBackupWhileWriting(t *testing.T) {
	const size = 7
	s := openTest(t, t.TempDir(), Options{CheckpointPages: 50})
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for i := 0; !stop.Load(); i++ {
				batch := make([]*Memory, size)
				for k := range batch {
					batch[k] = testMemory(rng, k)
				}
				addBatch(t, s, batch)
			}
		})
	}
	defer writers.Wait()
	defer stop.Store(true)
	waitFor(t, func() bool { return s.Counters().Records() > 500 })
	for round := range 5 {
		target := filepath.Join(t.TempDir(), "copy")
		before := s.Counters()
		var steps int
		report, err := s.Backup(t.Context(), target, func(done, total int64) {
			if steps++; done < 0 || done > total {
				t.Errorf("progress %d of %d", done, total)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		after := s.Counters()
		if report.Revision < before.Revision || report.Revision > after.Revision || steps == 0 {
			t.Errorf("round %d: revision %d, the store was at %d and then at %d; %d steps", round, report.Revision, before.Revision, after.Revision, steps)
		}
		wantFiles(t, filepath.Dir(target), "copy")
		if info, err := os.Stat(target); err != nil || info.Size() != report.Bytes {
			t.Errorf("%v, %v, want %d bytes", info, err, report.Bytes)
		}
		copied := restored(t, target)
		if c := copied.Counters(); c.Revision != report.Revision || c.Records() != report.Records || report.Records != report.Revision*size {
			t.Errorf("restored %+v, reported %+v", c, report)
		}
		if copied.Lineage() == s.Lineage() {
			t.Error("the copy has the lineage of the store it was made of")
		}
		wantFiles(t, filepath.Dir(target), "copy")
	}
}

// TestBackupEveryFailure lets operation N of the file system fail during a
// backup, for every N: the backup then fails with a code and leaves nothing, or
// succeeds and is whole; the store goes on either way.
func TestBackupEveryFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		ops    faultvfs.Op
		err    error
		goesOn bool
	}{
		{"once", faultvfs.Any, faultvfs.ErrIO, false},
		{"from then on", faultvfs.Any, faultvfs.ErrIO, true},
		{"disk full", faultvfs.Write | faultvfs.Truncate, faultvfs.ErrDiskFull, true},
		{"syncs", faultvfs.Sync, faultvfs.ErrIO, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := faultvfs.Register("backup-" + c.name)
			t.Cleanup(fs.Close)
			s := filled(t, Options{VFS: fs.Name()}, 300)
			step := int64(1)
			if testing.Short() {
				step = 9
			}
			var n int64
			for n = 1; ; n += step {
				target := filepath.Join(t.TempDir(), "copy")
				fs.FailAt(n, c.ops, c.err, c.goesOn)
				_, err := s.Backup(t.Context(), target, noProgress)
				failed := fs.Failed()
				fs.FailAt(0, 0, nil, false)
				if err == nil {
					restored(t, target)
					if !failed {
						break
					}
					continue
				}
				if !failed || errs.CodeOf(err) != errs.IO && errs.CodeOf(err) != errs.Storage {
					t.Errorf("operation %d: %v", n, err)
				}
				wantFiles(t, filepath.Dir(target))
			}
			t.Logf("%d places to fail", n)
			addBatch(t, s, []*Memory{testMemory(rand.New(rand.NewPCG(3, 3)), 1)})
		})
	}
}

// TestRestoreEveryFailure is the same for a restore: no directory, or a whole
// store.
func TestRestoreEveryFailure(t *testing.T) {
	fs := faultvfs.Register("restore")
	defer fs.Close()
	snapshot := filepath.Join(t.TempDir(), "copy")
	if _, err := filled(t, Options{}, 300).Backup(t.Context(), snapshot, noProgress); err != nil {
		t.Fatal(err)
	}
	for _, goesOn := range []bool{false, true} {
		step := int64(1)
		if testing.Short() {
			step = 9
		}
		for n := int64(1); ; n += step {
			dir := filepath.Join(t.TempDir(), "store")
			fs.FailAt(n, faultvfs.Any, faultvfs.ErrIO, goesOn)
			err := Restore(t.Context(), snapshot, dir, Options{VFS: fs.Name()}, noProgress)
			failed := fs.Failed()
			fs.FailAt(0, 0, nil, false)
			if err != nil {
				if errs.CodeOf(err) != errs.IO && errs.CodeOf(err) != errs.Storage {
					t.Errorf("operation %d: %v", n, err)
				}
				wantFiles(t, filepath.Dir(dir))
				continue
			}
			if s := openTest(t, dir, Options{}); s.Counters().Records() != 300 {
				t.Errorf("operation %d: %+v", n, s.Counters())
			}
			if !failed {
				t.Logf("%d places to fail", n)
				break
			}
		}
	}
}

// TestBackupCanceled holds that an ended context leaves nothing behind.
func TestBackupCanceled(t *testing.T) {
	s := filled(t, Options{}, 3000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := filepath.Join(t.TempDir(), "copy")
	_, err := s.Backup(ctx, target, func(int64, int64) { cancel() })
	if !errors.Is(err, errs.Canceled) {
		t.Error(err)
	}
	wantFiles(t, filepath.Dir(target))
	if _, err := s.Backup(t.Context(), target, noProgress); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := Restore(ctx, target, dir, Options{}, func(int64, int64) { cancel() }); !errors.Is(err, errs.Canceled) {
		t.Error(err)
	}
	wantFiles(t, filepath.Dir(filepath.Dir(dir)))
}

// TestDamagedSnapshots changes a snapshot in every way: each is refused with the
// right code, stays as it is, and leaves no directory.
func TestDamagedSnapshots(t *testing.T) {
	s := filled(t, Options{}, 500)
	folder := t.TempDir()
	good := filepath.Join(folder, "good")
	if _, err := s.Backup(t.Context(), good, noProgress); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int, with ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], with)
		return b
	}
	unsealed := whole[:len(whole)-sealSize]
	type damage struct {
		name string
		text []byte
		code errs.Code
	}
	cases := []damage{
		{"empty", nil, errs.Validation},
		{"text", []byte("once upon a time"), errs.Validation},
		{"foreign id", changed(68, 1, 2, 3, 4), errs.Validation},
		{"no id", changed(68, 0, 0, 0, 0), errs.Validation},
		{"newer", changed(60, 0, 0, 0, 99), errs.SchemaVersion},
		{"header only", whole[:headerSize], errs.Storage},
		{"half a header", whole[:50], errs.Storage},
		{"half", whole[:len(whole)/2], errs.Storage},
		{"half, to the page", whole[:len(whole)/2/4096*4096], errs.Storage},
		{"without its last byte", whole[:len(whole)-1], errs.Storage},
		{"longer", append(bytes.Clone(whole), 1), errs.Storage},
		{"zeros inside", changed(8192, make([]byte, 4096)...), errs.Storage},
		{"seal of another length", changed(len(whole)-12, binary.BigEndian.AppendUint32(nil, 7)...), errs.Storage},
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 40 {
		at := headerSize + rng.IntN(len(unsealed)-headerSize)
		cases = append(cases, damage{fmt.Sprint("flipped at ", at), changed(at, whole[at]^1<<rng.IntN(8)), errs.Storage})
	}
	for _, c := range cases {
		dir := t.TempDir()
		snapshot := filepath.Join(dir, "snapshot")
		if err := os.WriteFile(snapshot, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		err := Restore(t.Context(), snapshot, filepath.Join(dir, "store"), Options{}, noProgress)
		if !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
		wantFiles(t, dir, "snapshot")
		if now, err := os.ReadFile(snapshot); err != nil || !bytes.Equal(now, c.text) {
			t.Errorf("%s: the snapshot was changed", c.name)
		}
	}
	// Without a seal, and as the database of a closed store, it restores too.
	plain := filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, unsealed, 0o400); err != nil {
		t.Fatal(err)
	}
	if n := restored(t, plain).Counters().Records(); n != 500 {
		t.Error(n)
	}
	live := filepath.Join(s.dir, DatabaseFile)
	if err := Restore(t.Context(), live, filepath.Join(folder, "of live"), Options{}, noProgress); !errors.Is(err, errs.Validation) {
		t.Errorf("of a store in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := restored(t, live).Counters().Records(); n != 500 {
		t.Error(n)
	}
	wantFiles(t, folder, "good", "plain")
}

// TestCompact keeps the last change of each record, in order.
func TestCompact(t *testing.T) {
	for _, c := range []struct{ ids, want []int64 }{
		{nil, nil}, {[]int64{5}, []int64{5}}, {[]int64{1, 2, 9}, []int64{1, 2, 9}}, {[]int64{2, 1}, []int64{2, 1}},
		{[]int64{1, 1}, []int64{1}}, {[]int64{1, 2, 1}, []int64{2, 1}}, {[]int64{1, 2, 2, 3, 1}, []int64{2, 3, 1}},
	} {
		var changes []Change
		for i, id := range c.ids {
			changes = append(changes, Change{ID: id, Doc: i})
		}
		var got []int64
		for _, change := range compact(changes) {
			got = append(got, change.ID)
			if last := change.Doc.(int); c.ids[last] != change.ID || slices.Contains(c.ids[last+1:], change.ID) {
				t.Errorf("%v: change %d of record %d is not its last", c.ids, last, change.ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.ids, got, c.want)
		}
	}
}

// TestRenameNew holds that nothing is ever overwritten, by either way.
func TestRenameNew(t *testing.T) {
	for name, rename := range map[string]func(from, to string) error{"at once": renameNew, "in steps": renameUnlessThere} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		for _, f := range []string{"a", "b"} {
			if err := os.WriteFile(at(f), []byte(f), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []string{"c", "d"} {
			if err := os.Mkdir(at(d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, pair := range [][2]string{{"a", "b"}, {"c", "d"}, {"a", "d"}, {"c", "b"}} {
			if err := rename(at(pair[0]), at(pair[1])); !errors.Is(err, os.ErrExist) {
				t.Errorf("%s: %v: %v", name, pair, err)
			}
		}
		for _, pair := range [][2]string{{"a", "e"}, {"c", "f"}} {
			if err := rename(at(pair[0]), at(pair[1])); err != nil {
				t.Errorf("%s: %v: %v", name, pair, err)
			}
		}
		wantFiles(t, dir, "b", "d", "e", "f")
	}
}

// BenchmarkBackup backs 100,000 records up while one writer writes, and reports
// the longest that a write took.
func BenchmarkBackup(b *testing.B) {
	s := filled(b, Options{}, 100_000)
	dir := b.TempDir()
	var stop atomic.Bool
	var worst atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		rng := rand.New(rand.NewPCG(9, 9))
		for i := 0; !stop.Load(); i++ {
			began := time.Now()
			addBatch(b, s, []*Memory{testMemory(rng, i)})
			worst.Store(max(worst.Load(), time.Since(began).Nanoseconds()))
		}
	})
	b.ResetTimer()
	for i := range b.N {
		if _, err := s.Backup(context.Background(), filepath.Join(dir, fmt.Sprint(i)), noProgress); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	stop.Store(true)
	writer.Wait()
	b.ReportMetric(float64(worst.Load())/1e6, "ms/longest-write")
}
