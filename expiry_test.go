package loci

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/store/faultvfs"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// TestLifeClock holds the clock of expiry against what it promises: it is the greater
// of the system's and of what it was with the time that has passed, which it never
// loses a part of.
func TestLifeClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, 1<<50).Draw(t, "stored")
		c := lifeClock{at: at}
		system := time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "system"))
		want := time.UnixMicro(at) // in nanoseconds
		for i := range rapid.IntRange(1, 50).Draw(t, "reads") {
			if i > 0 {
				step := time.Duration(rapid.Int64Range(-5_000_000_000, 5_000_000_000).Draw(t, "step"))
				system = system.Add(step)
				want = want.Add(max(step, 0))
			}
			if system.After(want) {
				want = system
			}
			got := c.now(func() time.Time { return system })
			// The rest below a microsecond may be told a microsecond late, where the
			// system's clock takes over in between.
			if d := want.UnixMicro() - got; d < 0 || d > 1 {
				t.Fatalf("read %d: %d, want %d", i, got, want.UnixMicro())
			}
			if got < at {
				t.Fatalf("it went back from %d to %d", at, got)
			}
			at = got
		}
	})
}

func TestLifeClockSavesParts(t *testing.T) {
	system := time.UnixMicro(1_000_000)
	c := lifeClock{at: 5_000_000} // ahead, so that only what passes counts
	read := func() int64 { return c.now(func() time.Time { return system }) }
	read()
	for range 10_000 {
		system = system.Add(300 * time.Nanosecond)
		read()
	}
	if got := read(); got != 5_003_000 {
		t.Errorf("after 3 ms in steps of 300 ns: %d", got)
	}
}

// pointsDB is a store whose background sweeps nothing.
func pointsDB(t testing.TB, clock func() time.Time) *DB {
	t.Helper()
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), &Options{Clock: clock, WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true}))
	t.Cleanup(func() { db.Close() })
	return db
}

// addPoint writes a point to the agent memory of the default namespace and public
// scope, which it makes if need be.
func addPoint(t testing.TB, db *DB, p store.Point, vector []float32, space string) ID {
	t.Helper()
	p.Namespace, p.Scope = DefaultNamespace, PublicScope
	l := engineLink{db.eng}
	_, err := db.eng.write(context.Background(), func(tx *store.WriteTx) error {
		row, err := tx.AgentMemory(p.Namespace, p.Scope)
		if err != nil {
			return err
		}
		if row == nil {
			row = &store.AgentMemory{Namespace: p.Namespace, Scope: p.Scope, Dimension: 4, Space: "words"}
			if err := tx.AddAgentMemory(row); err != nil {
				return err
			}
		}
		p.Recorded, p.Version = l.Clock(), 1
		p.Created, p.Updated = l.Clock(), l.Clock()
		if err := tx.AddPoint(row.Place(p.Kind), &p); err != nil {
			return err
		}
		if err := l.StagePoint(tx, &p, l.PreparePoint(&p, nil)); err != nil || vector == nil {
			return err
		}
		sp, err := tx.Space(space)
		if err != nil {
			return err
		}
		return tx.PutVector(sp, &p.Record, store.TextOfCaller, vector)
	})
	if err != nil {
		t.Fatal(err)
	}
	return ID(p.ID)
}

func newFact(key uint64, content string, expires *int64) store.Point {
	return store.Point{Record: store.Record{Kind: store.KindFact}, Key: key, Content: content, Expires: expires}
}

// factKeys are the ids of the facts that a search finds.
func factKeys(t testing.TB, db *DB, req SearchRequest) []PointID {
	t.Helper()
	req.Kinds = []Kind{KindFact}
	out := []PointID{}
	for _, h := range must[*SearchResult](t)(db.Search(t.Context(), req)).Hits {
		out = append(out, h.Record.(*Fact).ID)
	}
	slices.Sort(out)
	return out
}

// TestSweeperWakesWhenSomethingIsDue lets the time of a bubble pass. // T14
func TestSweeperWakesWhenSomethingIsDue(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		clock := func() time.Time {
			looks.Add(1)
			return time.Now()
		}
		db, err := Open(context.Background(), dir, withFakeIndex(&Options{Clock: clock, NoBackgroundEmbedding: true}, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		start := time.Now()
		at := func(d time.Duration) *int64 { return new(start.Add(d).UnixMicro()) }
		facts := func() int64 { return db.eng.store.Counters().Counts[store.KindFact] }
		sleepTo := func(d time.Duration) {
			time.Sleep(time.Until(start.Add(d)))
			synctest.Wait()
		}
		addPoint(t, db, newFact(1, "later", at(10*time.Second)), nil, "")
		synctest.Wait()
		addPoint(t, db, newFact(2, "sooner", at(5*time.Second)), nil, "")
		for _, step := range []struct {
			at   time.Duration
			left int64
		}{{5*time.Second - time.Microsecond, 2}, {5 * time.Second, 1}, {10*time.Second - time.Microsecond, 1}, {10 * time.Second, 0}} {
			sleepTo(step.at)
			if got := facts(); got != step.left {
				t.Errorf("after %s there are %d facts in the file, want %d", step.at, got, step.left)
			}
		}
		before := looks.Load()
		sleepTo(24 * time.Hour)
		if n := looks.Load() - before; n != 0 {
			t.Errorf("the clock was read %d times with nothing due", n)
		}
		addPoint(t, db, newFact(3, "again", at(25*time.Hour)), nil, "")
		sleepTo(25*time.Hour - time.Microsecond)
		if got := facts(); got != 1 {
			t.Errorf("%d facts", got)
		}
		sleepTo(25 * time.Hour)
		if got := facts(); got != 0 {
			t.Errorf("%d facts", got)
		}
	})
}

func TestSweepOnAFullDisk(t *testing.T) { // T15
	fs := faultvfs.Register("sweep")
	clock := newTestClock()
	opts := withFakeIndex(&Options{Clock: clock.Now, NoBackgroundEmbedding: true, NoBackgroundSweep: true}, nil)
	opts.store.VFS = fs.Name()
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), opts))
	t.Cleanup(func() { db.Close() })
	expires := clock.Now().UnixMicro() + 10
	for i := range 600 {
		addPoint(t, db, newFact(uint64(i), fmt.Sprint("tide ", i), &expires), nil, "")
	}
	clock.Set(expires)
	health := func() *HealthReport { return must[*HealthReport](t)(db.Health(t.Context())) }
	fs.FailAt(1, faultvfs.Write|faultvfs.Truncate, faultvfs.ErrDiskFull, true)
	removed, err := db.eng.sweep(t.Context())
	if err == nil || removed != 0 {
		t.Fatalf("%d removed, %v", removed, err)
	}
	if h := health(); h.SweepError == "" || h.RecordCount != 600 {
		t.Errorf("health %+v", h)
	}
	if got := factKeys(t, db, SearchRequest{Query: "tide"}); len(got) != 0 {
		t.Errorf("search finds %v", got)
	}
	fs.FailAt(0, 0, nil, false)
	if removed, err = db.eng.sweep(t.Context()); err != nil || removed != 600 {
		t.Errorf("%d removed, %v", removed, err)
	}
	if h := health(); h.SweepError != "" || h.RecordCount != 0 {
		t.Errorf("health %+v", h)
	}
}

func TestClockIsKeptAtTheEnd(t *testing.T) { // T9, T11
	clock := newTestClock()
	dir := t.TempDir()
	open := func() *DB {
		return must[*DB](t)(Open(t.Context(), dir, withFakeIndex(&Options{Clock: clock.Now, NoBackgroundSweep: true}, nil)))
	}
	db := open()
	start := clock.Now().UnixMicro()
	addPoint(t, db, newFact(1, "tide", new(start+10_000_000)), nil, "")
	revision := db.eng.store.Counters().Revision
	clock.Set(start + 20_000_000)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Set(start)
	db = open()
	if got := db.eng.lifeNow(); got != start+20_000_000 {
		t.Errorf("the clock says %d, want %d", got, start+20_000_000)
	}
	if got := db.eng.store.Counters().Revision; got != revision {
		t.Errorf("keeping the clock made revision %d of %d", got, revision)
	}
	if got := factKeys(t, db, SearchRequest{Query: "tide"}); len(got) != 0 {
		t.Errorf("search finds %v", got)
	}
	// A sweep is a commit, and so keeps the clock too, whatever comes then: nothing is
	// left that closing would keep it for.
	clock.Set(start + 50_000_000)
	if n, err := db.eng.sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	swept := db.eng.lifeNow()
	clock.Set(start)
	for range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = open()
		if got := db.eng.lifeNow(); got != swept {
			t.Errorf("the clock says %d, want %d", got, swept)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSearchShowsWhatIsCurrent(t *testing.T) {
	for _, c := range []struct {
		name    string
		noIndex bool
	}{{"with the index", false}, {"without an index", true}} {
		t.Run(c.name, func(t *testing.T) {
			clock := newTestClock()
			opts := &Options{Clock: clock.Now, WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true}
			if c.noIndex {
				opts.openIndex = func(context.Context, *engine, *Options) error { return nil }
			}
			db := must[*DB](t)(Open(t.Context(), t.TempDir(), opts))
			t.Cleanup(func() { db.Close() })
			fake := fakeembed.New(16)
			bind(t, db, "words", fake, nil)
			now := clock.Now().UnixMicro()
			v := fake.Vector("tide")
			addPoint(t, db, newFact(1, "tide", nil), v, "words")
			addPoint(t, db, newFact(2, "tide", new(now+10)), v, "words")
			superseded := newFact(3, "tide", nil)
			superseded.ValidTo = new(now + 10)
			addPoint(t, db, superseded, v, "words")
			later := newFact(4, "tide", nil)
			later.ValidFrom = new(now + 10)
			addPoint(t, db, later, v, "words")
			addMemory(t, db, MemoryInput{Judgment: "tide"})
			for _, step := range []struct {
				at, valid int64
				want      []PointID
			}{{now, now, []PointID{1, 2, 3}}, {now + 9, now + 9, []PointID{1, 2, 3}}, {now + 10, now + 10, []PointID{1, 4}}, {now + 10, now, []PointID{1, 3}}, {now, now, []PointID{1, 3}}} {
				clock.Set(step.at)
				if got := factKeys(t, db, SearchRequest{Query: "tide", NoText: c.noIndex, ValidAtUS: &step.valid}); !slices.Equal(got, step.want) {
					t.Errorf("at %d, valid at %d: %v, want %v", step.at-now, step.valid-now, got, step.want)
				}
			}
			// Kinds that do not expire are not looked at that way.
			if c.noIndex {
				return
			}
			if res := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "tide", ValidAtUS: new(int64(1))})); len(res.Hits) != 1 {
				t.Errorf("%d memories", len(res.Hits))
			}
		})
	}
}

func TestCopyOfHidesWhatIsExpired(t *testing.T) {
	clock := newTestClock()
	db := pointsDB(t, clock.Now)
	now := clock.Now().UnixMicro()
	id := addPoint(t, db, newFact(1, "tide", new(now+10)), nil, "")
	l := engineLink{db.eng}
	got, err := l.CopyOf(t.Context(), DefaultNamespace, store.KindFact, int64(id))
	if err != nil || got == nil || got.Content != "tide" || got.Scope != PublicScope {
		t.Errorf("%+v, %v", got, err)
	}
	for _, other := range []struct {
		namespace string
		kind      store.Kind
	}{{"other", store.KindFact}, {DefaultNamespace, store.KindEpisode}} {
		if got, err := l.CopyOf(t.Context(), other.namespace, other.kind, int64(id)); got != nil || err != nil {
			t.Errorf("%+v: %+v, %v", other, got, err)
		}
	}
	clock.Set(now + 10)
	if got, err := l.CopyOf(t.Context(), DefaultNamespace, store.KindFact, int64(id)); got != nil || err != nil {
		t.Errorf("expired: %+v, %v", got, err)
	}
}
