package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/crash"
)

// TestCrashChild is what the child processes of this package's tests run; in any
// other process it does nothing.
func TestCrashChild(t *testing.T) {
	role, args := crash.Role()
	switch role {
	case "":
		t.Skip("only in a child process")
	case "snapshot":
		childSnapshot(t, args[0])
	case "restore":
		childRestore(t, args[0])
	case "expire":
		childExpire(t, args[0])
	case "write":
		childWrite(t, args[0], args[1])
	default:
		t.Fatalf("unknown role %q", role)
	}
}

// inChild opens the memory of a store in a child process, with the clock at a time,
// and says so.
func inChild(t *testing.T, dir string, at int64) *AgentMemory {
	db, err := loci.Open(context.Background(), dir, quiet(&testClock{at: at}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(context.Background(), db, Config{Dimension: 4})
	if err != nil {
		t.Fatal(err)
	}
	crash.Say("open")
	return m
}

// killed starts a child with a role and kills it after some time. It gives what the
// child said.
func killed(t *testing.T, random *rand.Rand, role string, longest time.Duration, args ...string) []string {
	t.Helper()
	child, err := crash.Start("TestCrashChild", role, args...)
	if err != nil {
		t.Fatal(err)
	}
	if line, ok := child.First(); !ok || line != "open" {
		_, _, output := child.Wait()
		t.Fatalf("the child did not open the store: %q %s", line, output)
	}
	// The moment is what these tests vary; nothing depends on which it is.
	time.Sleep(time.Duration(random.Int64N(int64(longest))))
	child.Kill()
	said, ended, output := child.Wait()
	if ended || strings.Contains(output, "FAIL") {
		t.Fatalf("the child ended by itself: %s", output)
	}
	return said[1:]
}

// crashRounds is how often a test kills a child.
func crashRounds(t *testing.T) int {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	if testing.Short() {
		return 2
	}
	return 8
}

// crashMemory is a memory whose store is opened between the rounds only.
func crashMemory(t *testing.T) *testMemory {
	m := openMemory(t, 4)
	m.store(1_000_000, "there", x())
	return m
}

// away closes the store while fn runs.
func (m *testMemory) away(fn func()) {
	m.t.Helper()
	if err := m.db.Close(); err != nil {
		m.t.Fatal(err)
	}
	fn()
	m.open(4)
}

// childSnapshot stores pairs of facts and takes snapshots. It never ends.
func childSnapshot(t *testing.T, dir string) {
	m := inChild(t, dir, T)
	for {
		id, err := m.Semantic().PutUnique(t.Context(), fact(2_000_000, "first", x()))
		if err == nil {
			err = m.Semantic().StoreBatch(t.Context(), []FactInput{fact(id.Value.ID, "first", x()), fact(id.Value.ID+1, "second", y())})
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		crash.Say("snapshot %d %d", s.Version, s.Facts)
	}
}

func TestKillDuringSnapshots(t *testing.T) { // N6
	if testing.Short() {
		t.Skip("kills children, in which the race detector sees nothing")
	}
	rounds := crashRounds(t)
	m := crashMemory(t)
	setPolicyOf(t, m.AgentMemory, Policy{MaxSnapshots: new(1000)})
	random := rand.New(rand.NewPCG(1, 6))
	contents := map[int64][sha256.Size]byte{}
	greatest := int64(0)
	for range rounds {
		var said []string
		m.away(func() { said = killed(t, random, "snapshot", 400*time.Millisecond, m.dir) })
		listed := map[int64]SnapshotInfo{}
		for _, s := range snapshotsOf(t, m.AgentMemory) {
			if !s.OK {
				t.Errorf("snapshot %d is listed and not whole: %s", s.Version, s.Problem)
			}
			raw, err := os.ReadFile(fileOf(m.AgentMemory, s.Version))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(raw)
			if before, ok := contents[s.Version]; ok && before != sum {
				t.Errorf("snapshot %d has two contents", s.Version)
			}
			contents[s.Version], listed[s.Version] = sum, s
			greatest = max(greatest, s.Version)
		}
		for _, line := range said {
			var version, facts int64
			if n, err := fmt.Sscanf(line, "snapshot %d %d", &version, &facts); n != 2 {
				t.Fatalf("the child said %q: %v", line, err)
			}
			if s, ok := listed[version]; !ok || s.Facts != facts {
				t.Errorf("snapshot %d of %d facts was acknowledged: %+v", version, facts, s)
			}
		}
		s := takeSnapshot(t, m.AgentMemory)
		if s.Version <= greatest {
			t.Errorf("version %d after %d", s.Version, greatest)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(fileOf(m.AgentMemory, 1)), "*"+unfinished))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
		m.deepCheck()
	}
	t.Logf("%d snapshots in %d rounds", greatest, rounds)
}

// childRestore restores one snapshot and the other in turns. It never ends.
func childRestore(t *testing.T, dir string) {
	m := inChild(t, dir, T)
	for i := 0; ; i++ {
		version := int64(1 + i%2)
		crash.Say("begin %d", version)
		if _, err := m.RestoreVersion(t.Context(), RestoreRequest{version}); err != nil {
			t.Fatal(err)
		}
		crash.Say("done %d", version)
	}
}

func TestKillDuringRestores(t *testing.T) { // N7, Z8
	if testing.Short() {
		t.Skip("kills children, in which the race detector sees nothing")
	}
	rounds := crashRounds(t)
	m := crashMemory(t)
	random := rand.New(rand.NewPCG(7, 7))
	var want [3]string
	for version, n := range []int{0, 30, 900} {
		if version == 0 {
			continue
		}
		must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context()))
		var batch []FactInput
		for id := range n {
			batch = append(batch, fact(loci.PointID(id), fmt.Sprintf("tide of %d", version), x()))
		}
		must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{batch}))
		keepEpisode(t, m.AgentMemory, oldEpisode(loci.PointID(version), T))
		join(t, &m.episodes.points, loci.PointID(version), "of", loci.KindFact, 7, "")
		takeSnapshot(t, m.AgentMemory)
		want[version] = whole(t, m.AgentMemory)
	}
	now, seen := int64(2), [3]int{}
	for range rounds {
		var said []string
		m.away(func() { said = killed(t, random, "restore", 600*time.Millisecond, m.dir) })
		begun := now
		for _, line := range said {
			var what string
			if n, err := fmt.Sscan(line, &what, &begun); n != 2 {
				t.Fatalf("the child said %q: %v", line, err)
			}
			if what == "done" {
				now = begun
			}
		}
		got := whole(t, m.AgentMemory)
		if got == want[begun] {
			now = begun
		}
		seen[now]++
		wantWhole(t, fmt.Sprintf("restoring %d over %d", begun, now), m.AgentMemory, want[now])
		m.deepCheck()
		m.sweep()
		if h := m.deepCheck(); h.Counts["fact"] != int64([]int{0, 30, 900}[now]) {
			t.Errorf("%v points are left of %d", h.Counts, now)
		}
		err := m.link.Read(t.Context(), func(tx *store.ReadTx) error {
			places, err := tx.EmptyPlaces()
			if len(places) > 0 {
				t.Errorf("places %v are left", places)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		wantWhole(t, "swept", m.AgentMemory, want[now])
	}
	t.Logf("after %d rounds: %v", rounds, seen)
}

// childExpire does what the policy says, again and again, until it is killed.
func childExpire(t *testing.T, dir string) {
	m := inChild(t, dir, T+100*second)
	crash.Say("begin")
	for {
		if _, err := m.AutoExpire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKillDuringAutoExpire(t *testing.T) { // A9, K1
	if testing.Short() {
		t.Skip("kills children, in which the race detector sees nothing")
	}
	rounds := crashRounds(t)
	m := crashMemory(t)
	setPolicyOf(t, m.AgentMemory, Policy{ConsolidateAfterSeconds: new(int64(3600))})
	random := rand.New(rand.NewPCG(9, 1))
	const episodes, expiring = 1500, 2500
	interrupted := 0
	m.clock.Set(T + 100*second)
	for round := range rounds {
		first := loci.PointID(round * episodes)
		var old []EpisodeInput
		var short []FactInput
		for i := range loci.PointID(episodes) {
			in := oldEpisode(first+i, T-day)
			in.Embedding = x()
			old = append(old, in)
		}
		for i := range loci.PointID(expiring) {
			short = append(short, fact(2_000_000+i, "expires", y(), withTTL(50), withTags("nova")))
		}
		must[*loci.Receipt[BatchResult]](t)(m.episodes.RecordBatch(t.Context(), EpisodeBatch{old}))
		must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{short}))
		join(t, &m.episodes.points, first, "next", "", first+1, "")
		m.clock.Set(m.clock.at + 60*second)
		m.away(func() { killed(t, random, "expire", 500*time.Millisecond, m.dir) })
		m.deepCheck()
		left := 0
		for id := first; id < first+episodes; id++ {
			f := m.get(id)
			e := must[*Found[loci.Episode]](t)(m.episodes.Get(t.Context(), GetRequest{ID: id})).Point
			if (f == nil) == (e == nil) {
				t.Fatalf("%d is a fact: %v, an episode: %v", id, f != nil, e != nil)
			}
			if e != nil {
				left++
			}
		}
		if left > 0 && left < episodes {
			interrupted++
		}
		if want := int64((round+1)*episodes + 1 - left); m.count() != want {
			t.Fatalf("%d facts, want %d", m.count(), want)
		}
		if got := must[*Edges](t)(m.facts.IncomingRelations(t.Context(), RelationsRequest{ID: first + 1})).Edges; left < episodes && len(got) != 1 {
			t.Errorf("the relation became %+v", got)
		}
		for out := (AutoExpired{Truncated: true}); out.Truncated; {
			out = autoExpire(t, m.AgentMemory)
		}
		if h := m.deepCheck(); h.Counts["fact"] != int64((round+1)*episodes+1) || h.Counts["episode"] != 0 {
			t.Fatalf("%v", h.Counts)
		}
	}
	t.Logf("killed between two transactions in %d of %d rounds", interrupted, rounds)
}

// childWrite writes and says what was acknowledged. Each number i begins as a fact i,
// is superseded by i+1, and has its metadata changed with its content. It never ends.
func childWrite(t *testing.T, dir, round string) {
	m := inChild(t, dir, T)
	facts := m.Semantic()
	var from loci.PointID
	if _, err := fmt.Sscan(round, &from); err != nil {
		t.Fatal(err)
	}
	for id := from; ; id++ {
		word := fmt.Sprintf("word%dq", id)
		steps := []func() error{
			func() error { return facts.Store(t.Context(), id, word, x()) },
			func() error {
				_, err := facts.UpdateMetadata(t.Context(), UpdateRequest{ID: id, Updates: loci.Metadata(fmt.Sprintf(`{"content":"changed %s","n":%d}`, word, id))})
				return err
			},
			func() error {
				if id == from {
					return nil
				}
				_, err := facts.Supersede(t.Context(), SupersedeRequest{Old: id - 1, New: id, FromUS: new(T + int64(id)*second)})
				return err
			},
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			crash.Say("%d %d", id, i)
		}
	}
}

func TestKillDuringWrites(t *testing.T) { // K2
	if testing.Short() {
		t.Skip("kills children, in which the race detector sees nothing")
	}
	rounds := crashRounds(t)
	m := crashMemory(t)
	random := rand.New(rand.NewPCG(2, 2))
	acknowledged := 0
	for round := range rounds {
		from := loci.PointID(1 + 10_000*round)
		var said []string
		m.away(func() { said = killed(t, random, "write", 300*time.Millisecond, m.dir, fmt.Sprint(from)) })
		acknowledged += len(said)
		done := map[loci.PointID]int{}
		for _, line := range said {
			var id loci.PointID
			var step int
			if n, err := fmt.Sscan(line, (*uint64)(&id), &step); n != 2 {
				t.Fatalf("the child said %q: %v", line, err)
			}
			done[id] = step + 1
		}
		for id := from; ; id++ {
			f := m.get(id)
			if f == nil {
				if done[id] > 0 {
					t.Fatalf("%d was acknowledged and is not there", id)
				}
				break
			}
			word := fmt.Sprintf("word%dq", id)
			changed := f.Content == "changed "+word && string(f.Metadata) == fmt.Sprintf(`{"n":%d}`, id)
			if !changed && (f.Content != word || done[id] > 1) {
				t.Errorf("%d is %q %s after %d steps", id, f.Content, f.Metadata, done[id])
			}
			edges := must[*Edges](t)(m.facts.Relations(t.Context(), RelationsRequest{ID: id})).Edges
			var ended bool
			if id > from {
				before := m.get(id - 1)
				ended = before.ValidToUS != nil
			}
			if ended != (f.ValidFromUS != nil) || ended != (len(edges) == 1) || !ended && done[id] > 2 && id > from {
				t.Errorf("%d: superseded %v, valid from %v, relations %v after %d steps", id, ended, f.ValidFromUS, edges, done[id])
			}
			hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: word, K: new(1), Selection: Selection{AsOfValidUS: new(T + int64(id)*second)}})).Hits
			wantIDs(t, word, hitIDs(hits), id)
		}
		m.deepCheck()
	}
	if t.Logf("%d writes were acknowledged in %d rounds", acknowledged, rounds); acknowledged < rounds {
		t.Error("too little was acknowledged to show anything")
	}
}

// TestCloseDuringWork closes the store while it restores, writes a snapshot or waits
// for its turn: the call ends, and so does closing. // K3
func TestCloseDuringWork(t *testing.T) {
	m := openMemory(t, 4)
	var batch []FactInput
	for id := range 3000 {
		batch = append(batch, fact(loci.PointID(id), "tide", x()))
	}
	must[*loci.Receipt[BatchResult]](t)(m.facts.PutBatch(t.Context(), FactBatch{batch}))
	takeSnapshot(t, m.AgentMemory)
	calls := []func(context.Context) error{
		func(ctx context.Context) error { _, err := m.RestoreLatest(ctx); return err },
		func(ctx context.Context) error { _, err := m.RestoreVersion(ctx, RestoreRequest{1}); return err },
		func(ctx context.Context) error { _, err := m.Snapshot(ctx); return err },
		func(ctx context.Context) error { _, err := m.AutoExpire(ctx); return err },
		func(ctx context.Context) error { _, err := m.facts.Clear(ctx); return err },
	}
	ended := make(chan error, len(calls))
	for _, call := range calls[:4] {
		go func() { ended <- call(t.Context()) }()
	}
	done, err := m.take(t.Context(), workPlaces)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- calls[4](t.Context()) }()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := m.facts.Clear(ctx); !errors.Is(err, loci.ErrCanceled) {
		t.Errorf("%v", err)
	}
	if err := m.db.Close(); err != nil {
		t.Error(err)
	}
	done()
	for range calls {
		if err := <-ended; err != nil && !errors.Is(err, loci.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	m.open(4)
	if n := m.count(); n != 3000 && n != 0 {
		t.Errorf("%d facts", n)
	}
	m.sweep()
	m.deepCheck()
}
