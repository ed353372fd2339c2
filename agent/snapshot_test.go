package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"pgregory.net/rapid"
)

func takeSnapshot(t testing.TB, m *AgentMemory) *SnapshotTaken {
	t.Helper()
	return must[*SnapshotTaken](t)(m.Snapshot(t.Context()))
}

func restoreVersion(t testing.TB, m *AgentMemory, version int64) Restored {
	t.Helper()
	return must[*loci.Receipt[Restored]](t)(m.RestoreVersion(t.Context(), RestoreRequest{version})).Value
}

func snapshotsOf(t testing.TB, m *AgentMemory) []SnapshotInfo {
	t.Helper()
	return must[*SnapshotList](t)(m.Snapshots(t.Context())).Snapshots
}

// versionsOf are the versions that are listed; bad ones below 0.
func versionsOf(t testing.TB, m *AgentMemory) []int64 {
	t.Helper()
	out := []int64{}
	for _, s := range snapshotsOf(t, m) {
		if s.OK != (s.Problem == "") {
			t.Errorf("snapshot %d: ok %v, problem %q", s.Version, s.OK, s.Problem)
		}
		if !s.OK {
			s.Version = -s.Version
		}
		out = append(out, s.Version)
	}
	return out
}

func wantVersions(t testing.TB, m *AgentMemory, want ...int64) {
	t.Helper()
	if got := versionsOf(t, m); !slices.Equal(got, want) {
		t.Errorf("snapshots %v, want %v", got, want)
	}
}

// fileOf is the path of a snapshot.
func fileOf(m *AgentMemory, version int64) string {
	return filepath.Join(m.link.Directory(), filesDir, folderName(m.namespace), folderName(m.scope), snapshotName(version))
}

// TestSnapshotIsWhatIsListed holds that a snapshot is listed as it was told, its time
// too, by a clock that does not stand still.
func TestSnapshotIsWhatIsListed(t *testing.T) {
	db := must[*loci.DB](t)(loci.Open(t.Context(), t.TempDir(), nil))
	defer db.Close()
	m := must[*AgentMemory](t)(Open(t.Context(), db, Config{Dimension: 4}))
	taken := takeSnapshot(t, m).SnapshotInfo
	if listed := snapshotsOf(t, m); len(listed) != 1 || listed[0] != taken {
		t.Errorf("taken as %+v, listed as %+v", taken, listed)
	}
}

func TestSnapshotAndRestore(t *testing.T) { // N1
	m := openMemory(t, 4)
	furnish(t, m)
	ctx := t.Context()
	policy := Policy{KeepVersions: new(5), MaxSnapshots: new(7)}
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(ctx, policy))
	before := whole(t, m.AgentMemory)
	first := takeSnapshot(t, m.AgentMemory)
	if first.Version != 1 || first.Facts != 3 || first.Episodes != 2 || first.Procedures != 1 || first.Relations != 9 || !first.OK {
		t.Errorf("%+v", first)
	}
	m.store(0, "changed", y())
	m.store(50, "new", y())
	must[*loci.Receipt[bool]](t)(m.facts.Delete(ctx, greatestID))
	must[*loci.Receipt[bool]](t)(m.episodes.Delete(ctx, 5))
	m.relate2(50, 0)
	must[*loci.Receipt[Reinforced]](t)(m.procedures.Reinforce(ctx, 9, false))
	must[*loci.Receipt[Stored]](t)(m.SetEpisodicTTL(ctx, TTLRequest{6, 5}))
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(ctx, Policy{EvictBelowConfidence: new(0.1)}))
	if second := takeSnapshot(t, m.AgentMemory); second.Version != 2 {
		t.Errorf("%+v", second)
	}
	after := whole(t, m.AgentMemory)
	infos := snapshotsOf(t, m.AgentMemory)
	if len(infos) != 2 || infos[0] != first.SnapshotInfo || infos[0].CreatedAtUS != m.clock.Now().UnixMicro() {
		t.Errorf("%+v, want %+v", infos, first)
	}
	if st, err := os.Stat(fileOf(m.AgentMemory, 1)); err != nil || st.Size() != first.Bytes || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	if out := restoreVersion(t, m.AgentMemory, 1); out.Version != 1 || out.Facts != 3 || out.Relations != 9 || out.DroppedRelations != 0 {
		t.Errorf("%+v", out)
	}
	wantWhole(t, "restored 1", m.AgentMemory, before)
	m.deepCheck()
	if out := must[*loci.Receipt[Restored]](t)(m.RestoreLatest(ctx)); out.Value.Version != 2 || out.Value.Warnings != nil {
		t.Errorf("%+v", out)
	}
	wantWhole(t, "restored 2", m.AgentMemory, after)
	m.reopen()
	wantWhole(t, "reopened", m.AgentMemory, after)
	wantVersions(t, m.AgentMemory, 1, 2)
	m.sweep()
	m.deepCheck()
	wantWhole(t, "swept", m.AgentMemory, after)
}

func TestSnapshotRetention(t *testing.T) { // N2
	m := openMemory(t, 4)
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(t.Context(), Policy{MaxSnapshots: new(3)}))
	for i := range int64(5) {
		m.store(loci.PointID(i), "tide", x())
		got := takeSnapshot(t, m.AgentMemory)
		if want := []int64{i - 2}; got.Version != i+1 || i > 2 && !slices.Equal(got.Removed, want) || i <= 2 && len(got.Removed) > 0 {
			t.Errorf("%+v", got)
		}
	}
	wantVersions(t, m.AgentMemory, 3, 4, 5)
	_, err := m.RestoreVersion(t.Context(), RestoreRequest{1})
	wantField(t, err, loci.ErrNotFound, "version")
	_, err = m.RestoreVersion(t.Context(), RestoreRequest{0})
	wantField(t, err, loci.ErrValidation, "version")
	restoreVersion(t, m.AgentMemory, 3)
	if got := takeSnapshot(t, m.AgentMemory); got.Version != 6 {
		t.Errorf("%+v", got)
	}
	for version := int64(4); version <= 6; version++ {
		if err := os.Remove(fileOf(m.AgentMemory, version)); err != nil {
			t.Fatal(err)
		}
	}
	wantVersions(t, m.AgentMemory)
	m.reopen()
	if got := takeSnapshot(t, m.AgentMemory); got.Version != 7 {
		t.Errorf("%+v", got)
	}
	// A file of a version that was not given yet, wherever it came from, is not written over.
	if err := os.Rename(fileOf(m.AgentMemory, 7), fileOf(m.AgentMemory, 20)); err != nil {
		t.Fatal(err)
	}
	if got := takeSnapshot(t, m.AgentMemory); got.Version != 21 {
		t.Errorf("%+v", got)
	}
}

func TestSnapshotDamage(t *testing.T) { // N3, N4
	if testing.Short() {
		t.Skip("one goroutine")
	}
	m := openMemory(t, 4)
	furnish(t, m)
	ctx := t.Context()
	for range 2 {
		takeSnapshot(t, m.AgentMemory)
	}
	want := whole(t, m.AgentMemory)
	m.store(100, "later", x())
	takeSnapshot(t, m.AgentMemory)
	path := fileOf(m.AgentMemory, 3)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := must[*AgentMemory](t)(Open(ctx, m.db, Config{Scope: "s2", Dimension: 4}))
	takeSnapshot(t, other)
	foreign, err := os.ReadFile(fileOf(other, 1))
	if err != nil {
		t.Fatal(err)
	}
	// One of another dimension, of this namespace and scope in another store.
	wide := openMemory(t, 8)
	takeSnapshot(t, wide.AgentMemory)
	of8, err := os.ReadFile(fileOf(wide.AgentMemory, 1))
	if err != nil {
		t.Fatal(err)
	}
	facts := serialized(t, &m.facts.points)
	flipped := bytes.Clone(good)
	flipped[len(good)/2] ^= 4
	for what, c := range map[string]struct {
		file []byte
		code loci.Code
	}{
		"cut":               {good[:len(good)-1], loci.ErrValidation},
		"empty":             {nil, loci.ErrValidation},
		"a byte changed":    {flipped, loci.ErrValidation},
		"of a newer":        {newerVersion(good), loci.ErrSchemaVersion},
		"of eight":          {of8, loci.ErrInvalidVector},
		"of another scope":  {foreign, loci.ErrValidation},
		"of one kind alone": {facts, loci.ErrValidation},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		before, unchanged := whole(t, m.AgentMemory), m.unchanged()
		wantVersions(t, m.AgentMemory, 1, 2, -3)
		_, err := m.RestoreVersion(ctx, RestoreRequest{3})
		if wantCode(t, err, c.code); t.Failed() {
			t.Fatalf("%s: %v", what, err)
		}
		unchanged()
		wantWhole(t, what, m.AgentMemory, before)
		out := must[*loci.Receipt[Restored]](t)(m.RestoreLatest(ctx)).Value
		if out.Version != 2 || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "snapshot 3 ") {
			t.Errorf("%s: %+v", what, out)
		}
		wantWhole(t, what, m.AgentMemory, want)
		m.store(100, "later", x())
	}
	for version := int64(1); version <= 3; version++ {
		if err := os.WriteFile(fileOf(m.AgentMemory, version), good[:10], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unchanged := m.unchanged()
	_, err = m.RestoreLatest(ctx)
	wantCode(t, err, loci.ErrValidation)
	wantVersions(t, m.AgentMemory, -1, -2, -3)
	for version := int64(1); version <= 3; version++ {
		if err := os.Remove(fileOf(m.AgentMemory, version)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = m.RestoreLatest(ctx)
	wantCode(t, err, loci.ErrNotFound)
	unchanged()
}

func TestSnapshotOfNothing(t *testing.T) { // Y1, Y3, Y4
	m := openMemory(t, 4)
	wantVersions(t, m.AgentMemory)
	_, err := m.RestoreLatest(t.Context())
	wantCode(t, err, loci.ErrNotFound)
	_, err = m.RestoreVersion(t.Context(), RestoreRequest{1})
	wantCode(t, err, loci.ErrNotFound)
	if _, err := os.Stat(filepath.Join(m.dir, filesDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	takeSnapshot(t, m.AgentMemory)
	for id := range loci.PointID(5) {
		m.store(id, "tide", x())
		keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: id}, Description: "e"})
		keepProcedure(t, m.AgentMemory, ProcedureInput{PointInput: PointInput{ID: id}, Name: "p", Steps: []string{"s"}})
	}
	restoreVersion(t, m.AgentMemory, 1)
	for _, s := range wholeKinds(m.AgentMemory) {
		if n := must[*Count](t)(s.Count(t.Context())); n.Count != 0 || s.Dimension() != 4 {
			t.Errorf("%s: %+v", s.noun, n)
		}
	}
	lazy := must[*AgentMemory](t)(OpenLazy(t.Context(), m.db, Config{Scope: "not there"}))
	_, err = lazy.Snapshot(t.Context())
	wantCode(t, err, loci.ErrNotFound)
	_, err = lazy.RestoreLatest(t.Context())
	wantCode(t, err, loci.ErrNotFound)
	wantVersions(t, lazy)
	if out := must[*AutoExpired](t)(lazy.AutoExpire(t.Context())); *out != (AutoExpired{}) {
		t.Errorf("%+v", out)
	}
	if out := must[*loci.Receipt[int64]](t)(lazy.Semantic().Clear(t.Context())); out.Value != 0 {
		t.Errorf("%+v", out)
	}
}

func TestSnapshotExpiry(t *testing.T) { // N5
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withTTL(60))
	m.store(2, "tide", x())
	m.relate2(2, 1)
	takeSnapshot(t, m.AgentMemory)
	m.clock.Set(T + 30*second)
	restoreVersion(t, m.AgentMemory, 1)
	if f := m.get(1); f == nil || *f.ExpiresAtUS != T+60*second {
		t.Errorf("%+v", f)
	}
	m.clock.Set(T + 61*second)
	if out := restoreVersion(t, m.AgentMemory, 1); out.Expired != 1 || out.DroppedRelations != 1 || out.Facts != 1 {
		t.Errorf("%+v", out)
	}
}

func TestSnapshotsAtOnce(t *testing.T) { // N8
	m := openMemory(t, 4)
	stop := make(chan struct{})
	var writing, group sync.WaitGroup
	writing.Go(func() {
		for id := loci.PointID(0); id < 2_000; id += 2 {
			select {
			case <-stop:
				return
			default:
				if err := m.facts.StoreBatch(t.Context(), []FactInput{fact(id, "a", x()), fact(id+1, "b", y())}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var mu sync.Mutex
	var versions []int64
	for range 4 {
		group.Go(func() {
			for range 3 {
				s, err := m.Snapshot(t.Context())
				if err != nil || s.Facts%2 != 0 {
					t.Errorf("%+v %v", s, err)
					return
				}
				mu.Lock()
				versions = append(versions, s.Version)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	close(stop)
	writing.Wait()
	slices.Sort(versions)
	for i, v := range versions {
		if v != int64(i+1) {
			t.Fatalf("versions %v", versions)
		}
	}
	list := snapshotsOf(t, m.AgentMemory)
	if len(list) != defaultSnapshots {
		t.Errorf("%d snapshots are kept", len(list))
	}
	for _, s := range list {
		if out := restoreVersion(t, m.AgentMemory, s.Version); !s.OK || out.Facts != s.Facts || m.count() != s.Facts {
			t.Errorf("%+v: %+v, %d facts", s, out, m.count())
		}
	}
}

// TestReadersDuringRestores holds that readers see one snapshot or the other, and that
// two restores at once are one after the other. // N8, Z7
func TestReadersDuringRestores(t *testing.T) {
	m := openMemory(t, 4)
	sizes := []int{40, 1300}
	if testing.Short() {
		sizes[1] = 600
	}
	for version, n := range sizes {
		must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context()))
		var batch []FactInput
		for id := range n {
			batch = append(batch, fact(loci.PointID(id), fmt.Sprintf("tide of %d", version+1), x()))
		}
		must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{batch}))
		takeSnapshot(t, m.AgentMemory)
	}
	var readers, restores sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				all, err := m.facts.ListAll(t.Context())
				if err != nil || !slices.Contains(sizes, len(all)) {
					t.Errorf("%d facts %v", len(all), err)
					return
				}
				for _, f := range all {
					if f.Content != all[0].Content {
						t.Errorf("%q beside %q", f.Content, all[0].Content)
						return
					}
				}
				if n, err := m.facts.Count(t.Context()); err != nil || !slices.Contains(sizes, int(n.Count)) {
					t.Errorf("%+v %v", n, err)
					return
				}
			}
		})
	}
	for i := range 2 {
		restores.Go(func() {
			for range 3 {
				if _, err := m.RestoreVersion(t.Context(), RestoreRequest{int64(i + 1)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	restores.Wait()
	close(stop)
	readers.Wait()
	m.sweep()
	m.deepCheck()
}

func TestSnapshotFolders(t *testing.T) { // N9, W5
	if testing.Short() {
		t.Skip("one goroutine")
	}
	m := openMemory(t, 4)
	long := strings.Repeat("港", 170) + "ab" // 512 bytes
	labels := []string{"..", ".", "a/b", `a\b`, "con", "CON", "com1", "nul", "Harbor", "harbor", "HARBOR", long, long[:510] + "cd", "a%2fb", "~x", "é", "e\u0301", "x.", "x y"}
	seen := map[string]string{}
	for _, label := range labels {
		for _, pair := range [][2]string{{label, "public"}, {"default", label}} {
			one := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Namespace: pair[0], Scope: pair[1], Dimension: 4}))
			name := pair[0] + "|" + pair[1]
			if err := one.Semantic().Store(t.Context(), 1, name, x()); err != nil {
				t.Fatal(err)
			}
			if s := takeSnapshot(t, one); s.Version != 1 {
				t.Errorf("%q: %+v", name, s)
			}
			if err := one.Semantic().Store(t.Context(), 1, "changed", x()); err != nil {
				t.Fatal(err)
			}
			path := strings.ToLower(fileOf(one, 1))
			if before, ok := seen[path]; ok {
				t.Errorf("%q and %q share %s", name, before, path)
			}
			seen[path] = name
		}
	}
	for _, label := range labels {
		for _, pair := range [][2]string{{label, "public"}, {"default", label}} {
			one := must[*AgentMemory](t)(OpenExisting(t.Context(), m.db, Config{Namespace: pair[0], Scope: pair[1]}))
			restoreVersion(t, one, 1)
			if f := must[*Found[loci.Fact]](t)(one.Semantic().Get(t.Context(), GetRequest{ID: 1})).Point; f.Content != pair[0]+"|"+pair[1] {
				t.Errorf("%v has %q", pair, f.Content)
			}
		}
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), snapshotSuffix) {
			t.Errorf("%s lies outside", e.Name())
		}
	}
	none := must[*AgentMemory](t)(Open(t.Context(), m.db, Config{Namespace: "n2", Dimension: 4}))
	_, err = none.RestoreVersion(t.Context(), RestoreRequest{1})
	wantCode(t, err, loci.ErrNotFound)
}

// TestFolderName holds that names of folders are told apart where case is ignored,
// and that every file system takes them.
func TestFolderName(t *testing.T) {
	for label, want := range map[string]string{
		"public": "public", "A": "%41", "..": "%2e%2e", "a/b": "a%2fb", "con": "%63on", "lpt9": "%6cpt9", "cone": "cone", "~": "%7e", "a%": "a%25",
	} {
		if got := folderName(label); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.StringN(1, 400, 1024)
		a, b := label.Draw(t, "a"), label.Draw(t, "b")
		name := folderName(a)
		if len(name) > maxComponent || strings.ToLower(name) != name || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_%~") != "" ||
			strings.HasPrefix(name, "~") {
			t.Fatalf("%q", name)
		}
		if a != b && name == folderName(b) {
			t.Fatalf("%q and %q are both %q", a, b, name)
		}
	})
}

func TestSnapshotsDoNotComeWithBackups(t *testing.T) { // N10
	m := openMemory(t, 4)
	furnish(t, m)
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(t.Context(), Policy{MaxSnapshots: new(3)}))
	for range 2 {
		takeSnapshot(t, m.AgentMemory)
	}
	before := whole(t, m.AgentMemory)
	target := t.TempDir()
	must[*loci.BackupReport](t)(m.db.Backup(t.Context(), filepath.Join(target, "backup")))
	db := must[*loci.DB](t)(loci.Restore(t.Context(), filepath.Join(target, "backup"), filepath.Join(target, "data"), quiet(m.clock)))
	defer db.Close()
	there := must[*AgentMemory](t)(OpenExisting(t.Context(), db, Config{}))
	wantWhole(t, "in the backup", there, before)
	wantVersions(t, there)
	if s := takeSnapshot(t, there); s.Version != 3 {
		t.Errorf("%+v", s)
	}
}

// TestSnapshotDiskFails fails each step of a snapshot: what was there stays, and
// nothing of the new one is listed. // N6
func TestSnapshotDiskFails(t *testing.T) {
	m := openMemory(t, 4)
	furnish(t, m)
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(t.Context(), Policy{MaxSnapshots: new(2)}))
	hooks := &fileHooks{}
	m.turns().files = hooks
	broken := errors.New("no space left on device")
	var version int64
	for _, step := range []string{"folder", "create", "write", "sync", "rename", "sync folder"} {
		hooks.before = func(at string) error {
			if at == step {
				return broken
			}
			return nil
		}
		_, err := m.Snapshot(t.Context())
		if wantCode(t, err, loci.ErrIO); !errors.Is(err, broken) {
			t.Errorf("%s: %v", step, err)
		}
		hooks.before = nil
		if step == "folder" {
			version++ // the next two may stay
			for range 2 {
				takeSnapshot(t, m.AgentMemory)
			}
			version = 2
			continue
		}
		version++
		for _, v := range versionsOf(t, m.AgentMemory) {
			if v < 0 {
				t.Errorf("%s: snapshot %d is listed", step, -v)
			}
		}
		got := takeSnapshot(t, m.AgentMemory)
		if version++; got.Version != version {
			t.Errorf("%s: version %d, want %d", step, got.Version, version)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(fileOf(m.AgentMemory, 1)), "*"+unfinished))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v %v", step, left, err)
		}
	}
	hooks.before = func(at string) error {
		if at == "remove" {
			return broken
		}
		return nil
	}
	got := takeSnapshot(t, m.AgentMemory)
	if len(got.Warnings) != 1 || len(got.Removed) != 0 {
		t.Errorf("%+v", got)
	}
	hooks.before = nil
	if got = takeSnapshot(t, m.AgentMemory); len(got.Removed) != 2 || len(got.Warnings) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatus(t *testing.T) {
	m := openMemory(t, 4)
	furnish(t, m)
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(t.Context(), Policy{MaxSnapshots: new(1)}))
	takeSnapshot(t, m.AgentMemory)
	takeSnapshot(t, m.AgentMemory)
	m.clock.Set(T + 70*second)
	got := must[*Status](t)(m.Status(t.Context()))
	want := Status{
		Namespace: "default", Scope: "public", Dimension: 4, Space: "agent-4", Revision: m.revision(), ClockUS: T + 70*second, Facts: 2,
		Episodes: 2, Procedures: 1, Policy: got.Policy, Snapshots: 1, LatestSnapshot: 2,
	}
	if *got != want || *got.Policy.MaxSnapshots != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
	m.db.Close()
	_, err := m.Status(t.Context())
	wantCode(t, err, loci.ErrClosed)
	_, err = m.Snapshot(t.Context())
	wantCode(t, err, loci.ErrClosed)
	_, err = m.AutoExpire(t.Context())
	if wantCode(t, err, loci.ErrClosed); errs.CodeOf(err) != errs.Closed {
		t.Error(err)
	}
}
