package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci/internal/errs"
)

// An opener opens a store on some database; the same dir is the same data.
type opener func(t *testing.T, dir string, hooks Hooks) *Store

func TestConformance(t *testing.T) {
	conform(t, func(t *testing.T, dir string, hooks Hooks) *Store {
		s, err := Open(t.Context(), dir, Options{Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// conform checks what every database under the store must do.
func conform(t *testing.T, open opener) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *Store, log *hookLog)
	}{
		{"round trip", conformRoundTrip},
		{"update and delete", conformUpdate},
		{"one failure among many", conformFailure},
		{"panic", conformPanic},
		{"cancel", conformCancel},
		{"snapshot", conformSnapshot},
		{"interrupt", conformInterrupt},
		{"journal", conformJournal},
		{"scan", conformScan},
		{"thread position", conformPosition},
		{"changes of one record", conformCompact},
		{"alone", conformAlone},
		{"graph round trip", conformGraphRoundTrip},
		{"graph look-ups", conformGraphLookups},
		{"graph references", conformGraphReferences},
		{"graph scan", conformGraphScan},
		{"predicates", conformPredicates},
		{"adjacency", conformAdjacency},
		{"notes", conformNotes},
		{"roots of notes", conformRoots},
		{"pages", conformPages},
		{"revisions of pages", conformPageRevisions},
		{"heads of pages", conformPageHeads},
		{"places of pages", conformPagePlaces},
		{"rows of pages", conformPageRowVersion},
		{"scopes of contexts", conformContexts},
		{"log of a context", conformContextLog},
		{"checkpoints of a context", conformCheckpoints},
		{"a page goes", conformRemovePage},
		{"a page goes with what it copies", conformCopies},
		{"a context goes", conformRemoveContext},
		{"pages that keep their ids", conformAdoptPages},
		{"points", conformPoints},
		{"ids of points", conformPointKeys},
		{"the life of points", conformPointLife},
		{"confidence of procedures", conformPointConfidence},
		{"hits", conformPointHits},
		{"versions of points", conformPointVersions},
		{"edges of points", conformPointEdges},
		{"agent memories", conformAgentMemories},
		{"places of points", conformPlaces},
		{"counts of agent memory", conformAgentCounts},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &hookLog{}
			s := open(t, t.TempDir(), log)
			defer s.Close()
			c.run(t, s, log)
			check, err := s.DeepCheck(t.Context())
			if err != nil || check != (Check{Integrity: "ok"}) {
				t.Errorf("%+v, %v", check, err)
			}
		})
	}
	t.Run("reopen", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir, nil)
		m := fullMemory()
		addBatch(t, s, []*Memory{m})
		before, lineage := *s.Counters(), s.Lineage()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, nil)
		defer s.Close()
		if *s.Counters() != before || s.Lineage() != lineage || len(lineage) != 32 {
			t.Errorf("%+v %s, was %+v %s", s.Counters(), s.Lineage(), before, lineage)
		}
		same(t, m, loadMemory(t, s, m.ID))
		next := fullMemory()
		next.Position = nil
		addBatch(t, s, []*Memory{next})
		if next.ID <= m.ID {
			t.Error(next.ID)
		}
	})
}

func fullMemory() *Memory {
	return &Memory{
		Record: Record{
			Namespace: "名字", Scope: "scope", Thread: "thread", Position: new(int64(-3)), Created: -5, Updated: 9,
			Tags: []string{"a", "b", "c"}, Metadata: []byte(`{"k": 1.0}`),
			Evidence: []Evidence{{Source: "s"}, {Source: "t", SourceRevision: "r", ChunkID: new(int64(4)), Offset: new(int64(1)),
				Limit: new(int64(2)), Quote: "q\x00q", Metadata: []byte(`{"x":[]}`)}},
		},
		Type: "skill", Judgment: "a\x00b", Reasoning: strings.Repeat("长", 100_000), JudgmentHash: -1,
		State: State{Pinned: true, Strength: 1e-300, UsefulCount: 1 << 60, UsefulScore: 0.1, LastRecalled: new(int64(1)), LastDecay: new(int64(0))},
	}
}

func loadMemory(t *testing.T, s *Store, id int64) (m *Memory) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) (err error) {
		m, err = tx.Memory(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func same(t *testing.T, want, got *Memory) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Record{}, Memory{})); d != "" {
		t.Error(d)
	}
}

func write(t *testing.T, s *Store, fn func(*WriteTx) error) int64 {
	t.Helper()
	revision, err := s.Write(t.Context(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func conformRoundTrip(t *testing.T, s *Store, log *hookLog) {
	m := fullMemory()
	addBatch(t, s, []*Memory{m})
	if m.ID == 0 || m.Revision != 1 || len(m.TagIDs) != 3 {
		t.Errorf("%+v", m)
	}
	same(t, m, loadMemory(t, s, m.ID))
	if loadMemory(t, s, m.ID+1) != nil {
		t.Error("a memory that is not there")
	}
	if log.stages != 1 || log.publishes != 1 || log.revision != 1 || len(log.changes) != 1 || log.changes[0].Namespace != m.NamespaceID {
		t.Errorf("%+v", log)
	}
	write(t, s, func(tx *WriteTx) error {
		found, err := tx.MemoriesByHash(-1)
		if err != nil || len(found) != 1 || found[0].ID != m.ID {
			t.Error(found, err)
		}
		found, err = tx.MemoriesByHash(7)
		if err != nil || len(found) != 0 {
			t.Error(found, err)
		}
		return nil
	})
	if log.stages != 1 || s.Counters().Revision != 1 {
		t.Error("reading moved the revision")
	}
}

func conformUpdate(t *testing.T, s *Store, log *hookLog) {
	m := fullMemory()
	addBatch(t, s, []*Memory{m})
	n := fullMemory()
	write(t, s, func(tx *WriteTx) error {
		old, err := tx.Memory(m.ID)
		if err != nil {
			return err
		}
		n.ID, n.Kind, n.Created = old.ID, old.Kind, old.Created
		n.Scope, n.Tags, n.Evidence, n.Thread, n.Position, n.Metadata = "other", []string{"b", "d"}, nil, "", nil, nil
		n.Judgment, n.Type, n.JudgmentHash = "new", "other type", 5
		if err := tx.UpdateMemory(old, n); err != nil {
			return err
		}
		tx.Stage(&n.Record, nil)
		return nil
	})
	same(t, n, loadMemory(t, s, m.ID))
	tagged := func(tag string) (ids []int64) {
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			return tx.ScanMemories(Filter{Namespace: "名字", Kind: KindMemory, Scopes: []string{"other"}, Tags: []string{tag}}, 0, 0,
				func(m *Memory) (bool, error) { ids = append(ids, m.ID); return true, nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if len(tagged("a"))+len(tagged("c")) != 0 || len(tagged("b")) != 1 || len(tagged("d")) != 1 {
		t.Error("tags did not follow")
	}
	n.State = State{Strength: 8}
	write(t, s, func(tx *WriteTx) error { return tx.UpdateState(n) })
	if n.Revision != 3 || len(log.changes) != 0 {
		t.Error(n.Revision, log.changes)
	}
	same(t, n, loadMemory(t, s, m.ID))
	write(t, s, func(tx *WriteTx) error {
		old, err := tx.Memory(m.ID)
		if err != nil {
			return err
		}
		return tx.Delete(&old.Record)
	})
	if loadMemory(t, s, m.ID) != nil || len(tagged("d")) != 0 || s.Counters().Records() != 0 {
		t.Error("something is left")
	}
}

// together runs fns so that they share a commit, and gives their errors.
func together(t *testing.T, s *Store, fns ...func(*WriteTx) error) []error {
	t.Helper()
	inside, hold := make(chan struct{}), make(chan struct{})
	results := make([]error, len(fns))
	done := make(chan int)
	go func() {
		_, err := s.Write(context.Background(), func(*WriteTx) error { close(inside); <-hold; return nil })
		if err != nil {
			t.Error(err)
		}
		done <- 0
	}()
	<-inside
	for i, fn := range fns {
		go func() {
			_, results[i] = s.Write(context.Background(), fn)
			done <- i
		}()
		waitFor(t, func() bool { return len(s.writer.queue) == i+1 }) // in this order
	}
	close(hold)
	for range len(fns) + 1 {
		<-done
	}
	return results
}

func adds(m *Memory) func(*WriteTx) error {
	return func(tx *WriteTx) error {
		if err := tx.AddMemory(m); err != nil {
			return err
		}
		tx.Stage(&m.Record, m)
		return nil
	}
}

func conformFailure(t *testing.T, s *Store, log *hookLog) {
	rng := rand.New(rand.NewPCG(1, 1))
	boom := errors.New("boom")
	a, b, c := testMemory(rng, 1), testMemory(rng, 2), testMemory(rng, 3)
	b.Tags = []string{"only of the one that fails"}
	results := together(t, s, adds(a), func(tx *WriteTx) error {
		if err := adds(b)(tx); err != nil {
			return err
		}
		return boom
	}, adds(c))
	if results[0] != nil || !errors.Is(results[1], boom) || results[2] != nil {
		t.Error(results)
	}
	if a.Revision != 1 || c.Revision != 2 || s.Counters().Revision != 2 || s.Counters().Records() != 2 {
		t.Error(a.Revision, c.Revision, *s.Counters())
	}
	if log.stages != 1 || log.publishes != 1 || len(log.changes) != 2 {
		t.Errorf("%+v", log)
	}
	if loadMemory(t, s, a.ID) == nil || loadMemory(t, s, c.ID) == nil {
		t.Error("one is missing")
	}
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		_, ok, err := tx.StringID(b.Tags[0])
		if ok {
			t.Error("a string of the failed operation is there")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	addBatch(t, s, []*Memory{b}) // its strings are added now
	same(t, b, loadMemory(t, s, b.ID))
}

func conformPanic(t *testing.T, s *Store, _ *hookLog) {
	rng := rand.New(rand.NewPCG(1, 1))
	a := testMemory(rng, 1)
	results := together(t, s, func(tx *WriteTx) error {
		if err := adds(testMemory(rng, 2))(tx); err != nil {
			return err
		}
		panic("boom")
	}, adds(a))
	if errs.CodeOf(results[0]) != errs.Storage || results[1] != nil || s.Counters().Records() != 1 {
		t.Error(results, *s.Counters())
	}
	err := s.Read(t.Context(), func(*ReadTx) error { panic("boom") })
	if errs.CodeOf(err) != errs.Storage {
		t.Error(err)
	}
	same(t, a, loadMemory(t, s, a.ID))
}

func conformCancel(t *testing.T, s *Store, _ *hookLog) {
	inside, hold := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := s.Write(ctx, func(tx *WriteTx) error { close(inside); <-hold; tx.Change(); return nil })
		first <- err
	}()
	<-inside
	second := make(chan error)
	go func() {
		_, err := s.Write(ctx, func(*WriteTx) error { t.Error("a canceled operation ran"); return nil })
		second <- err
	}()
	waitFor(t, func() bool { return len(s.writer.queue) == 1 })
	cancel()
	if err := <-second; !errors.Is(err, errs.Canceled) {
		t.Error(err)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Error("an operation that had begun was canceled: ", err)
	}
	if s.Counters().Revision != 1 {
		t.Error(*s.Counters())
	}
	if _, err := s.Write(ctx, nil); !errors.Is(err, errs.Canceled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func conformSnapshot(t *testing.T, s *Store, _ *hookLog) {
	rng := rand.New(rand.NewPCG(1, 1))
	a, b := testMemory(rng, 1), testMemory(rng, 2)
	addBatch(t, s, []*Memory{a})
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		if tx.Revision() != 1 {
			t.Error(tx.Revision())
		}
		addBatch(t, s, []*Memory{b}) // a writer does not wait for a reader
		if m, err := tx.Memory(b.ID); m != nil || err != nil {
			t.Error("a snapshot sees a later write", err)
		}
		return nil
	})
	if err != nil || loadMemory(t, s, b.ID) == nil {
		t.Error(err)
	}
}

func conformInterrupt(t *testing.T, s *Store, _ *hookLog) {
	batch := make([]*Memory, 3000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range batch {
		batch[i] = testMemory(rng, i)
	}
	addBatch(t, s, batch)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	err := s.Read(ctx, func(tx *ReadTx) error {
		for {
			err := tx.ScanMemories(Filter{Namespace: "default", Kind: KindMemory, Scopes: []string{"public"}}, 0, 0, func(*Memory) (bool, error) {
				cancel()
				return true, nil
			})
			if err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, errs.Canceled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Error(d)
	}
	if loadMemory(t, s, 1) == nil {
		t.Error("the connection does not serve any more")
	}
}

func conformJournal(t *testing.T, s *Store, _ *hookLog) {
	rng := rand.New(rand.NewPCG(1, 1))
	batch := make([]*Memory, 2*JournalPart+10)
	for i := range batch {
		batch[i] = testMemory(rng, i)
	}
	addBatch(t, s, batch)
	for range 3 {
		addBatch(t, s, []*Memory{testMemory(rng, 1)})
	}
	write(t, s, func(tx *WriteTx) error { return tx.Delete(&batch[0].Record) })
	read := func(after int64, limit int) (out []JournalEntry) {
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			cursor := AfterRevision(after)
			for {
				entries, next, err := tx.Journal(cursor, limit)
				if err != nil || len(entries) == 0 {
					return err
				}
				out, cursor = append(out, entries...), next
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := read(0, 100)
	if len(all) != len(batch)+4 || !slices.IsSortedFunc(all, func(a, b JournalEntry) int { return int(a.Revision - b.Revision) }) {
		t.Fatal(len(all))
	}
	if last := all[len(all)-1]; last != (JournalEntry{Revision: 5, ID: batch[0].ID, Namespace: batch[0].NamespaceID, Kind: KindMemory, Left: batch[0].ScopeID}) {
		t.Errorf("%+v", last)
	}
	if d := cmp.Diff(all[len(batch):], read(1, 2)); d != "" {
		t.Error(d)
	}
	for _, upTo := range []int64{2, 1, 99} {
		if err := s.PruneJournal(t.Context(), upTo); err != nil {
			t.Fatal(err)
		}
	}
	if c := s.Counters(); c.JournalFloor != 5 || c.Revision != 5 || len(read(0, 10)) != 0 {
		t.Errorf("%+v", c)
	}
	for range 2*pruneRows + 100 {
		write(t, s, func(tx *WriteTx) error { tx.Stage(&batch[1].Record, nil); return nil })
	}
	if err := s.PruneJournal(t.Context(), 1<<62); err != nil {
		t.Fatal(err)
	}
	if c := s.Counters(); c.JournalFloor != c.Revision || len(read(0, 10)) != 0 {
		t.Errorf("%+v", c)
	}
}

func conformScan(t *testing.T, s *Store, _ *hookLog) {
	var batch []*Memory
	for i := range 1000 {
		m := &Memory{Record: Record{Namespace: []string{"n", "other"}[i/900], Scope: fmt.Sprint("s", i%5), Created: int64(i)}, Type: "t", Judgment: "j"}
		if i%3 == 0 {
			m.Tags = []string{"third"}
		}
		if i%7 == 0 {
			m.Thread = "seven"
		}
		batch = append(batch, m)
	}
	addBatch(t, s, batch)
	for _, f := range []Filter{
		{Scopes: []string{"s1"}}, {Scopes: []string{"s3", "s0", "s3", "none"}}, {Scopes: []string{"none"}}, {Scopes: []string{"s0", "s1"}, Tags: []string{"third"}},
		{Scopes: []string{"s0", "s1", "s2", "s3", "s4"}, Thread: "seven"}, {Scopes: []string{"s0", "s2"}, From: new(int64(100)), To: new(int64(700))},
		{Scopes: []string{"s0"}, From: new(int64(100))}, {Scopes: []string{"s0"}, To: new(int64(100))}, {Scopes: []string{"s0"}, Tags: []string{"third", "none"}},
		{Scopes: []string{"s0"}, Tags: []string{"third"}, Thread: "seven", From: new(int64(50))},
	} {
		f.Namespace, f.Kind = "n", KindMemory
		for _, after := range []int64{0, 333} {
			for _, want := range []int{0, 1, 7} {
				var expect, got []int64
				for _, m := range batch {
					if m.ID > after && f.Covers(&m.Record) && (want == 0 || len(expect) < want) {
						expect = append(expect, m.ID)
					}
				}
				err := s.Read(t.Context(), func(tx *ReadTx) error {
					return tx.ScanMemories(f, after, want, func(m *Memory) (bool, error) {
						got = append(got, m.ID)
						return want == 0 || len(got) < want, nil
					})
				})
				if err != nil || !slices.Equal(got, expect) {
					t.Errorf("%+v after %d: %v, want %v, %v", f, after, got, expect, err)
				}
			}
		}
	}
	var n int
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		for after := int64(0); ; {
			found, next, err := tx.ScanRecords(after, 300)
			if n += len(found); err != nil || next == after {
				return err
			}
			after = next
		}
	})
	if err != nil || n != len(batch) {
		t.Error(n, err)
	}
}

func conformPosition(t *testing.T, s *Store, _ *hookLog) {
	a, b := fullMemory(), fullMemory()
	addBatch(t, s, []*Memory{a})
	_, err := s.Write(t.Context(), adds(b))
	var e *errs.Error
	if !errors.As(err, &e) || e.Code != errs.Conflict || e.Field != "position" || !strings.Contains(e.Message, fmt.Sprint(a.ID)) {
		t.Error(err)
	}
}

func conformCompact(t *testing.T, s *Store, log *hookLog) {
	m, other := fullMemory(), fullMemory()
	other.Thread, other.Position = "", nil
	write(t, s, func(tx *WriteTx) error {
		for _, step := range []func(*WriteTx) error{adds(m), adds(other), func(tx *WriteTx) error { return tx.Delete(&m.Record) }} {
			if err := step(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if len(log.changes) != 2 || log.changes[0].ID != other.ID || log.changes[1] != (Change{ID: m.ID, Namespace: m.NamespaceID, Kind: KindMemory}) {
		t.Errorf("%+v", log.changes)
	}
}
