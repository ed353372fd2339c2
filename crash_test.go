package loci

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/testkit/crash"
)

var crashRounds = flag.Int("crash.rounds", 50, "how often TestKillDuringLoad kills a writing process")

// TestCrashChild is what the child processes of this file run; in any other
// process it does nothing.
func TestCrashChild(t *testing.T) {
	role, args := crash.Role()
	switch role {
	case "":
		t.Skip("only in a child process")
	case "load":
		childLoad(t, args[0], args[1])
	case "rebuild":
		childRebuild(t, args[0], args[1])
	case "embed":
		childEmbed(t, args[0], args[1])
	case "backup", "restore", "import":
		childTransfer(t, role, args[0], args[1])
	case "open":
		_, err := Open(t.Context(), args[0], nil)
		crash.Say("%s %v", CodeOf(err), err)
	case "hold":
		db, err := Open(t.Context(), args[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		remember(t, db, "held walrus")
		crash.Say("open")
		select {} // until it is killed
	default:
		t.Fatalf("unknown role %q", role)
	}
}

// batchWord is a word that only one version of one batch holds.
func batchWord(batch, version int) string {
	word := []byte("zq")
	for n := batch*100 + version; n > 0; n /= 26 {
		word = append(word, byte('a'+n%26))
	}
	return string(append(word, "zx"...))
}

// batchSize is the number of records of a batch.
func batchSize(batch int) int { return 1 + batch*7%12 }

func batchTag(batch int) string { return fmt.Sprint("batch ", batch) }

func batchRecords(batch, version int) []MemoryInput {
	ins := make([]MemoryInput, batchSize(batch))
	words := []string{"harbor", "tide", "灯塔", "茶馆", "lamp"}
	for i := range ins {
		ins[i] = MemoryInput{
			Judgment:    fmt.Sprint(batchWord(batch, version), " ", words[(batch+i)%5], " ", words[i%5], " item ", i),
			RecordInput: RecordInput{Tags: []string{batchTag(batch)}, Thread: new(batchTag(batch)), Position: new(int64(i))}}
	}
	return ins
}

// childLoad writes batches, changes some of them and deletes some, announcing
// each step before it and after it, while the index is written out and rebuilt
// again and again. It never ends.
func childLoad(t *testing.T, dir, from string) {
	first, err := strconv.Atoi(from)
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(context.Background(), dir, &Options{WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var next atomic.Int64
	next.Store(int64(first))
	step := func(batch, version int, write func() error) {
		crash.Say("begin %d %d", batch, version)
		if err := write(); err != nil {
			crash.Say("failed %d %d: %v", batch, version, err)
			os.Exit(1)
		}
		crash.Say("done %d %d", batch, version)
	}
	crash.Say("open")
	writer := func() {
		for {
			batch := int(next.Add(1))
			var ids []ID
			step(batch, 1, func() error {
				r, err := db.Memories().UpsertMany(ctx, batchRecords(batch, 1))
				if err == nil {
					for _, m := range r.Value {
						ids = append(ids, m.ID)
					}
				}
				return err
			})
			if batch%3 == 0 {
				step(batch, 2, func() error {
					ins := batchRecords(batch, 2)
					for i := range ins {
						ins[i].ID = ids[i]
					}
					_, err := db.Memories().UpsertMany(ctx, ins)
					return err
				})
			}
			if batch%4 == 0 {
				step(batch, 0, func() error {
					_, err := db.Memories().DeleteByFilter(ctx, DeleteRequest{Filter: ReadFilter{Tags: []string{batchTag(batch)}}})
					return err
				})
			}
		}
	}
	index := func() {
		for i := 1; ; i++ {
			if i%5 == 0 {
				if _, err := db.RebuildIndexes(ctx); err != nil {
					crash.Say("failed rebuild: %v", err)
					os.Exit(1)
				}
				continue
			}
			if ix := db.eng.usableIndex(); ix != nil {
				if err := ix.Flush(); err != nil {
					crash.Say("failed flush: %v", err)
					os.Exit(1)
				}
			}
		}
	}
	var group sync.WaitGroup
	for range 3 { // several, so that commits come in groups
		group.Go(writer)
	}
	group.Go(index)
	group.Wait()
}

// ledger is what a killed child had said about its batches.
type ledger struct {
	done  map[int]int // batch -> version that was acknowledged
	begun map[int]int // batch -> version that was announced last
}

func (l *ledger) read(t *testing.T, said []string) {
	t.Helper()
	for _, line := range said {
		var what string
		var batch, version int
		if line == "open" {
			continue
		}
		if n, _ := fmt.Sscan(line, &what, &batch, &version); n != 3 || what != "begin" && what != "done" {
			t.Fatalf("the child said %q", line)
		}
		l.begun[batch] = version
		if what == "done" {
			l.done[batch] = version
		}
	}
}

// TestKillDuringLoad kills a loading process again and again, each time on top
// of what the last one left. What was acknowledged is there, every batch is in
// one of its versions as a whole, search finds it, and the index answers as one
// built anew from the same database does. 50 rounds, or as many as -crash.rounds
// says; 6 at most with -short.
func TestKillDuringLoad(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	rounds := *crashRounds
	if testing.Short() {
		rounds = min(rounds, 6)
	}
	random := rand.New(rand.NewPCG(11, 11))
	var dir string
	var l ledger
	acknowledged := 0
	for round := range rounds {
		if round%10 == 0 { // stores stay small, so that rounds stay fast
			dir = t.TempDir()
			l = ledger{map[int]int{}, map[int]int{}}
		}
		child, err := crash.Start("TestCrashChild", "load", dir, fmt.Sprint(round*1000))
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := child.First(); !ok || line != "open" {
			_, _, output := child.Wait()
			t.Fatalf("round %d: the child did not open the store: %q %s", round, line, output)
		}
		// The moment is what this test varies; nothing depends on which it is.
		time.Sleep(time.Duration(5000+random.IntN(55_000)) * time.Microsecond)
		child.Kill()
		said, ended, output := child.Wait()
		if ended {
			t.Fatalf("round %d: the child ended by itself: %s", round, output)
		}
		l.read(t, said)
		for _, line := range said {
			if strings.HasPrefix(line, "done ") {
				acknowledged++
			}
		}
		checkAfterKill(t, dir, &l)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d batches were acknowledged in %d rounds", acknowledged, rounds)
	if acknowledged == 0 {
		t.Error("no write was ever acknowledged: the test shows nothing")
	}
}

// checkAfterKill checks a store against what its writer had said, and settles
// the ledger on what is there.
func checkAfterKill(t *testing.T, dir string, l *ledger) {
	t.Helper()
	anew := copyDir(t, dir)
	defer os.RemoveAll(anew)
	if err := os.RemoveAll(filepath.Join(anew, indexFolder)); err != nil {
		t.Fatal(err)
	}
	open := func(dir string) *DB {
		t.Helper()
		return must[*DB](t)(Open(t.Context(), dir, &Options{Clock: newTestClock().Now, WaitForIndex: true}))
	}
	db := open(dir)
	defer db.Close()
	h := must[*HealthReport](t)(db.DeepHealth(t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || !h.IndexUsable || h.PendingIndexUpdates != 0 || h.IndexedDocuments != h.RecordCount {
		t.Errorf("%+v", h)
	}
	byTag := map[string][]Memory{}
	for _, m := range listMemories(t, db, ReadFilter{}) {
		byTag[m.Tags[0]] = append(byTag[m.Tags[0]], m)
	}
	reqs := []SearchRequest{{Query: "harbor"}, {Query: "灯塔 茶馆", Limit: new(50)}, {Query: "tide lamp item", NeighbourWeight: 0.5},
		{Query: "塔", Limit: new(50)}, {Query: "lamp", ThreadWeight: 0.5, Fusion: FusionScore}, {Query: "harbor", GroupBy: GroupThread}}
	for batch, begun := range l.begun {
		records := byTag[batchTag(batch)]
		delete(byTag, batchTag(batch))
		version := 0
		if len(records) > 0 {
			version = 1
			if strings.HasPrefix(records[0].Judgment, batchWord(batch, 2)+" ") {
				version = 2
			}
		}
		done, acked := l.done[batch]
		if version != begun && !(acked && version == done) && !(!acked && version == 0) {
			t.Errorf("batch %d is at version %d; acknowledged %d (%v), begun %d", batch, version, done, acked, begun)
		}
		if version > 0 {
			if len(records) != batchSize(batch) {
				t.Errorf("batch %d has %d records of %d", batch, len(records), batchSize(batch))
			}
			for i, m := range records {
				if want := batchRecords(batch, version)[i].Judgment; m.Judgment != want {
					t.Errorf("batch %d: %q, want %q", batch, m.Judgment, want)
				}
			}
		}
		for v := 1; v <= 2; v++ {
			req := SearchRequest{Query: batchWord(batch, v), Limit: new(50), WithTotal: true}
			want := 0
			if v == version {
				want = len(records)
			}
			if res := search(t, db, req); len(res.Hits) != want || *res.Total != int64(want) {
				t.Errorf("batch %d at version %d: %q finds %d of %d, want %d", batch, version, req.Query, len(res.Hits), *res.Total, want)
			}
		}
		l.begun[batch], l.done[batch] = version, version
	}
	if len(byTag) > 0 {
		t.Errorf("records of batches that nobody began: %v", byTag)
	}
	got := answersOf(t, db, reqs)
	fresh := open(anew)
	defer fresh.Close()
	wantAnswers(t, fresh, reqs, got)
}

// childRebuild opens a store without an index and kills itself at one of the
// rebuild's file operations, or right after its first checkpoint.
func childRebuild(t *testing.T, dir, at string) {
	last := int64(-1)
	if at != "checkpoint" {
		var err error
		if last, err = strconv.ParseInt(at, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	var n atomic.Int64
	var manifest atomic.Bool
	db, err := Open(context.Background(), dir, &Options{WaitForIndex: true, indexFS: hookIndexFS(func(op, name string) error {
		if n.Add(1) == last || last < 0 && op == "syncdir" && manifest.Load() {
			crash.Say("killed at %s %s", op, name)
			crash.Suicide()
		}
		if op == "rename" && name == "MANIFEST" {
			manifest.Store(true)
		}
		return nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	crash.Say("rebuilt in %d", n.Load())
}

// TestKillDuringRebuild kills a process at every file operation of a rebuild in
// turn: the next open ends with the same answers as a rebuild that nobody
// disturbed. Every fourth operation with -short.
func TestKillDuringRebuild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	dir, want := closedLibrary(t, 300)
	if err := os.RemoveAll(filepath.Join(dir, indexFolder)); err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 4
	}
	killed := 0
	for at := 1; ; at += step {
		work := copyDir(t, dir)
		child, err := crash.Start("TestCrashChild", "rebuild", work, fmt.Sprint(at))
		if err != nil {
			t.Fatal(err)
		}
		said, ended, output := child.Wait()
		if len(said) != 1 {
			t.Fatalf("operation %d: the child said %q, printed %s", at, said, output)
		}
		db := openReal(t, work)
		wantAnswers(t, db, libraryQueries(), want)
		if h := must[*HealthReport](t)(db.Health(t.Context())); h.IndexedDocuments != h.RecordCount || h.PendingIndexUpdates != 0 {
			t.Errorf("%s: %+v", said[0], h)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		os.RemoveAll(work)
		if t.Failed() {
			t.Fatal(said[0])
		}
		if ended {
			break
		}
		killed++
	}
	if killed < 5 {
		t.Errorf("killed at %d operations only", killed)
	}
}

// TestKillAfterCheckpoint kills a rebuild that has brought part of its work to
// disk: the next open takes it up from there. Not with -short.
func TestKillAfterCheckpoint(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	if testing.Short() {
		t.Skip("it needs more records than an index holds in memory")
	}
	dir, want := closedLibrary(t, 14_000) // more than an index holds in memory
	if err := os.RemoveAll(filepath.Join(dir, indexFolder)); err != nil {
		t.Fatal(err)
	}
	child, err := crash.Start("TestCrashChild", "rebuild", dir, "checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	if said, ended, output := child.Wait(); ended || len(said) != 1 {
		t.Fatalf("the child said %q, printed %s", said, output)
	}
	db := openReal(t, dir)
	if p := db.RebuildProgress(); p.Processed == 0 || p.Processed > p.Total-10_000 {
		t.Errorf("not taken up where it was: %+v", p)
	}
	wantAnswers(t, db, libraryQueries(), want)
	rebuild(t, db)
	wantAnswers(t, db, libraryQueries(), want)
}

// TestTwoProcesses is O2 across processes: a folder in use is locked, by name of
// its holder, and free again as soon as the holder is dead, however it died.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	db := openReal(t, dir)
	ids := remember(t, db, "mine")
	child, err := crash.Start("TestCrashChild", "open", dir)
	if err != nil {
		t.Fatal(err)
	}
	said, _, output := child.Wait()
	if len(said) != 1 || !strings.HasPrefix(said[0], "locked ") || !strings.Contains(said[0], fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("the child said %q, printed %s", said, output)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if child, err = crash.Start("TestCrashChild", "hold", dir); err != nil {
		t.Fatal(err)
	}
	if line, ok := child.First(); !ok || line != "open" {
		_, _, output := child.Wait()
		t.Fatalf("the child said %q, printed %s", line, output)
	}
	if _, err := Open(t.Context(), dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	child.Kill()
	child.Wait()
	db = openReal(t, dir)
	wantHits(t, db, SearchRequest{Query: "mine"}, ids...)
	if res := search(t, db, SearchRequest{Query: "held walrus"}); len(res.Hits) != 1 {
		t.Errorf("O5: what a killed process had written is not found: %v", hitIDs(res))
	}
}
