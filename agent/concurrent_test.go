package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// deed is a write of a fact that returned.
type deed struct {
	revision int64
	id       loci.PointID
	what     string // "put", "ttl" or "gone"
	content  string
	expires  *int64
}

// ledger is what writers were told.
type ledger struct {
	mu    sync.Mutex
	deeds []deed
	edges map[loci.PointID]bool // that returned
	given map[loci.PointID]bool // ids that store_unique gave
	uses  atomic.Int64
	wins  atomic.Int64
	// embeds says that there is an embedder, which some vectors are left to.
	embeds bool
}

func newLedger() *ledger {
	return &ledger{edges: map[loci.PointID]bool{}, given: map[loci.PointID]bool{}}
}

func (l *ledger) note(d deed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deeds = append(l.deeds, d)
}

// state is what there must be of a fact once all that was told is told in order.
type state struct {
	content string
	expires *int64
	version int64
}

// replay is a naive map of the writes that returned, in the order of their
// revisions.
func (l *ledger) replay(t testing.TB) map[loci.PointID]*state {
	t.Helper()
	slices.SortStableFunc(l.deeds, func(a, b deed) int { return cmp.Compare(a.revision, b.revision) })
	out := map[loci.PointID]*state{}
	at := map[loci.PointID]int64{}
	for _, d := range l.deeds {
		if at[d.id] == d.revision {
			t.Errorf("two writes of fact %d are told to be revision %d", d.id, d.revision)
		}
		at[d.id] = d.revision
		s := out[d.id]
		switch {
		case d.what == "gone":
			delete(out, d.id)
		case d.what == "ttl" && s == nil:
			t.Errorf("fact %d got an expiry in revision %d, and was not there", d.id, d.revision)
		case d.what == "ttl":
			s.expires = d.expires
		case s == nil:
			out[d.id] = &state{d.content, d.expires, 1}
		default:
			out[d.id] = &state{d.content, d.expires, s.version + 1}
		}
	}
	return out
}

// Facts below anchors are stored first and never deleted; those from sharedIDs on are
// store_unique's.
const (
	anchors   = 4
	sharedIDs = 12
	uniqueIDs = loci.PointID(1 << 40)
)

// hammer does random things with a memory and notes what returned. It ends with the
// first error, or when enough says so.
func (l *ledger) hammer(ctx context.Context, m *AgentMemory, seed uint64, enough func() bool) error {
	r := rand.New(rand.NewPCG(seed, 7))
	facts, procedures := m.Semantic(), m.Procedural()
	for n := 0; !enough(); n++ {
		id := loci.PointID(r.IntN(sharedIDs))
		content := fmt.Sprintf("tide %d of %d", n, seed)
		v := x()
		if l.embeds && r.IntN(2) == 0 {
			v = nil
		}
		var err error
		switch r.IntN(12) {
		case 0, 1:
			var done *loci.Receipt[Stored]
			if done, err = facts.Put(ctx, fact(id, content, v)); err == nil {
				l.note(deed{done.Revision, id, "put", content, nil})
			}
		case 2:
			var done *loci.Receipt[BatchResult]
			other := (id + 1) % sharedIDs
			if done, err = facts.PutBatch(ctx, FactBatch{Facts: []FactInput{fact(id, content, v, withTTL(1e6)), fact(other, content, y())}}); err == nil {
				l.note(deed{done.Revision, id, "put", content, new(T + 1e6*second)})
				l.note(deed{done.Revision, other, "put", content, nil})
			}
		case 3:
			var done *loci.Receipt[Stored]
			if done, err = facts.PutUnique(ctx, fact(uniqueIDs, content, d())); err == nil {
				l.mu.Lock()
				if l.given[done.Value.ID] {
					err = fmt.Errorf("store_unique gave %d twice", done.Value.ID)
				}
				l.given[done.Value.ID] = true
				l.mu.Unlock()
				l.note(deed{done.Revision, done.Value.ID, "put", content, nil})
			}
		case 4:
			ttl := 2e6 + seed*1e6 + uint64(n) // no two are the same, so that each changes something
			var done *loci.Receipt[Stored]
			if done, err = facts.SetTTL(ctx, TTLRequest{ID: id, TTLSeconds: ttl}); err == nil {
				l.note(deed{done.Revision, id, "ttl", "", new(T + int64(ttl)*second)})
			} else if errors.Is(err, loci.ErrNotFound) {
				err = nil
			}
		case 5:
			if id < anchors {
				continue
			}
			var done *loci.Receipt[bool]
			if done, err = facts.Delete(ctx, id); err == nil && done.Value {
				l.note(deed{done.Revision, id, "gone", "", nil})
			}
		case 6:
			var done *loci.Receipt[Edge]
			from, to := id%anchors, loci.PointID(r.IntN(anchors))
			if done, err = facts.Relate(ctx, RelateRequest{From: from, To: to, Type: fmt.Sprint("by ", seed)}); err == nil {
				l.mu.Lock()
				l.edges[done.Value.ID] = true
				l.mu.Unlock()
			}
		case 7:
			success := r.IntN(2) == 0
			if _, err = procedures.Reinforce(ctx, 1, success); err == nil {
				l.uses.Add(1)
				if success {
					l.wins.Add(1)
				}
			}
		case 8:
			_, err = m.link.Sweep(ctx)
		case 9:
			_, err = facts.QueryHits(ctx, QueryRequest{Embedding: x()})
		case 10:
			_, err = facts.QueryText(ctx, TextRequest{Text: "tide"})
		default:
			if r.IntN(4) == 0 {
				_, err = m.AutoExpire(ctx)
			} else {
				_, err = facts.ListAll(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin stores what hammer takes to be there.
func (l *ledger) begin(t testing.TB, m *AgentMemory) {
	t.Helper()
	for id := range loci.PointID(anchors) {
		done := must[*loci.Receipt[Stored]](t)(m.Semantic().Put(t.Context(), fact(id, "anchor", x())))
		l.note(deed{done.Revision, id, "put", "anchor", nil})
	}
	must[*loci.Receipt[Stored]](t)(m.Procedural().Learn(t.Context(), ProcedureInput{PointInput: PointInput{ID: 1}, Name: "deploy", Steps: []string{"go"}}))
}

// holds fails unless a memory holds what the ledger says and, where nothing was cut
// off, nothing else.
func (l *ledger) holds(t testing.TB, m *AgentMemory, cutOff bool) {
	t.Helper()
	want := l.replay(t)
	have := map[loci.PointID]loci.Fact{}
	for cursor := ""; ; {
		page := must[*Page[loci.Fact]](t)(m.Semantic().List(t.Context(), ListRequest{Limit: new(1000), Cursor: cursor}))
		for _, f := range page.Items {
			have[f.ID] = f
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	last := int64(0)
	for _, d := range l.deeds {
		last = max(last, d.revision)
	}
	for id, s := range want {
		f, there := have[id]
		if cutOff && (!there || f.Version > s.version) {
			continue // by a write that was not told of
		}
		if !there || f.Content != s.content || f.Version != s.version || !cutOff && !samePtr(f.ExpiresAtUS, s.expires) {
			t.Errorf("fact %d is %+v, there: %v; the writes that returned make %+v", id, f, there, *s)
		}
	}
	for id := range have {
		if want[id] == nil && !cutOff {
			t.Errorf("fact %d is there, and no write of it returned last", id)
		}
	}
	for id := range l.given {
		if _, there := have[id]; !there {
			t.Errorf("fact %d, which store_unique stored, is lost", id)
		}
	}
	found := map[loci.PointID]bool{}
	for id := range loci.PointID(anchors) {
		for _, e := range must[*Edges](t)(m.Semantic().Relations(t.Context(), RelationsRequest{ID: id, Limit: new(10000)})).Edges {
			found[e.ID] = true
		}
	}
	if lost := maps.Clone(l.edges); len(lost) > 0 {
		maps.DeleteFunc(lost, func(id loci.PointID, _ bool) bool { return found[id] })
		if len(lost) > 0 {
			t.Errorf("%d relations are lost", len(lost))
		}
	}
	p := must[*Found[loci.Procedure]](t)(m.Procedural().Get(t.Context(), GetRequest{ID: 1})).Point
	uses, wins := l.uses.Load(), l.wins.Load()
	if p.Uses < uses || p.Successes < wins || !cutOff && (p.Uses != uses || p.Successes != wins) {
		t.Errorf("%d uses and %d successes, %d and %d returned", p.Uses, p.Successes, uses, wins)
	}
}

// lively are options for a store in whose background all goes on.
func lively(clock *testClock) *loci.Options {
	return &loci.Options{Clock: clock.Now, WaitForIndex: true}
}

// TestManyAtOnce has 16 goroutines write and read one memory, while another one of the
// store is cleared and restored. Nothing that returned is lost. // K3, P8, U4
func TestManyAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir, clock := t.TempDir(), &testClock{at: T}
	open := func() (*loci.DB, *AgentMemory) {
		db := must[*loci.DB](t)(loci.Open(t.Context(), dir, lively(clock)))
		return db, must[*AgentMemory](t)(Open(t.Context(), db, Config{Dimension: 4}))
	}
	db, m := open()
	l := newLedger()
	l.begin(t, m)
	other := must[*AgentMemory](t)(Open(t.Context(), db, Config{Scope: "other", Dimension: 4}))
	steps := 150
	if testing.Short() {
		steps = 30
	}
	var group sync.WaitGroup
	for seed := range uint64(16) {
		group.Go(func() {
			left := steps
			err := l.hammer(t.Context(), m, seed, func() bool { left--; return left < 0 })
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range steps / 10 {
		must[*loci.Receipt[Stored]](t)(other.Semantic().Put(t.Context(), fact(1, "other", x())))
		must[*SnapshotTaken](t)(other.Snapshot(t.Context()))
		must[*loci.Receipt[int64]](t)(other.Semantic().Clear(t.Context()))
		must[*loci.Receipt[Restored]](t)(other.RestoreLatest(t.Context()))
	}
	group.Wait()
	l.holds(t, m, false)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, m = open()
	l.holds(t, m, false)
	h := must[*loci.HealthReport](t)(db.DeepHealth(t.Context()))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.SweepError != "" {
		t.Errorf("%+v", h)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCloseInTheMiddle closes the store while everything goes on. Calls end as done
// or as closed, and what returned is there when it is opened again. // K3
func TestCloseInTheMiddle(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	rounds, size := 4, 1000
	if testing.Short() {
		rounds, size = 2, 300
	}
	for round := range rounds {
		dir, clock := t.TempDir(), &testClock{at: T}
		db := must[*loci.DB](t)(loci.Open(t.Context(), dir, lively(clock)))
		bindEmbedder(t, db, "words", fakeembed.New(4))
		m := must[*AgentMemory](t)(Open(t.Context(), db, Config{Dimension: 4}))
		other := must[*AgentMemory](t)(Open(t.Context(), db, Config{Scope: "other", Dimension: 4}))
		l := newLedger()
		l.embeds = true
		l.begin(t, m)
		batch := make([]FactInput, size)
		for i := range batch {
			batch[i] = fact(loci.PointID(i), "a fact of another memory", nil, withTTL(100)) // the background embeds them
		}
		must[*loci.Receipt[BatchResult]](t)(other.Semantic().PutBatch(t.Context(), FactBatch{Facts: batch}))
		must[*SnapshotTaken](t)(other.Snapshot(t.Context()))
		clock.Set(T + int64(round%2)*200*second) // in every other round all of them are to be swept
		var group sync.WaitGroup
		var begun atomic.Int64
		run := func(fn func() error) {
			group.Go(func() {
				begun.Add(1)
				if err := fn(); err != nil && !errors.Is(err, loci.ErrClosed) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		for seed := range uint64(12) {
			run(func() error {
				return l.hammer(t.Context(), m, seed, func() bool { begun.Add(1); return false })
			})
		}
		whole := []func(context.Context) error{
			func(ctx context.Context) error { _, err := other.Snapshot(ctx); return err },
			func(ctx context.Context) error { _, err := other.RestoreLatest(ctx); return err },
			func(ctx context.Context) error {
				_, err := other.Semantic().Serialize(ctx, &bytes.Buffer{})
				return err
			},
			func(ctx context.Context) error { _, err := other.Semantic().Clear(ctx); return err },
			func(ctx context.Context) error { _, err := other.AutoExpire(ctx); return err },
		}
		for _, call := range whole {
			run(func() error {
				for {
					if err := call(t.Context()); err != nil {
						return err
					}
				}
			})
		}
		for begun.Load() < int64(60*(round+1)) {
			if _, err := m.Semantic().Count(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		group.Wait()
		db = must[*loci.DB](t)(loci.Open(t.Context(), dir, lively(clock)))
		m = must[*AgentMemory](t)(Open(t.Context(), db, Config{Dimension: 4}))
		l.holds(t, m, true)
		h := must[*loci.HealthReport](t)(db.DeepHealth(t.Context()))
		if h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
			t.Errorf("round %d: %+v", round, h)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplacingWhileWritten has pairs of facts written in batches while the memory is
// cleared, restored and read back from files. Others see both of a pair or neither,
// whatever they ask; what is stored after such a call returned stays; no snapshot
// holds half of a pair. // N8, Z7, L7
func TestReplacingWhileWritten(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	clock := &testClock{at: T}
	db := must[*loci.DB](t)(loci.Open(t.Context(), t.TempDir(), lively(clock)))
	m := must[*AgentMemory](t)(Open(t.Context(), db, Config{Dimension: 4}))
	facts := m.Semantic()
	ctx := t.Context()
	must[*loci.Receipt[Policy]](t)(m.SetPolicy(ctx, Policy{MaxSnapshots: new(3)}))
	var done atomic.Bool
	var group sync.WaitGroup
	defer group.Wait() // should the test end before its time
	defer done.Store(true)
	const pairs = 8
	for seed := range uint64(4) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for n := 0; !done.Load(); n++ {
				id := loci.PointID(2 * r.IntN(pairs))
				content := fmt.Sprintf("pair %d of %d", n, seed)
				if _, err := facts.PutBatch(ctx, FactBatch{Facts: []FactInput{fact(id, content, x()), fact(id+1, content, x())}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// paired fails for texts of which half of a pair is there.
	paired := func(what string, texts map[loci.PointID]string) {
		for id, text := range texts {
			if id < 2*pairs && texts[id^1] != text {
				t.Errorf("%s: %d is %q and %d %q", what, id, text, id^1, texts[id^1])
			}
		}
	}
	for range 3 {
		group.Go(func() {
			for !done.Load() {
				all, err := facts.ListAll(ctx)
				texts := map[loci.PointID]string{}
				for _, f := range all {
					texts[f.ID] = f.Content
				}
				paired("list_all", texts)
				hits, errQuery := facts.Query(ctx, x(), 100)
				texts = map[loci.PointID]string{}
				for _, h := range hits {
					texts[h.ID] = h.Content
				}
				paired("query", texts)
				if err = errors.Join(err, errQuery); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	mark := loci.PointID(1000)
	var file bytes.Buffer
	must[*Summary](t)(facts.Serialize(ctx, &file))
	for n := range rounds {
		must[*SnapshotTaken](t)(m.Snapshot(ctx))
		switch n % 4 {
		case 0:
			must[*loci.Receipt[int64]](t)(facts.Clear(ctx))
		case 1:
			must[*loci.Receipt[Restored]](t)(m.RestoreLatest(ctx))
		case 2:
			must[*loci.Receipt[Restored]](t)(facts.Deserialize(ctx, bytes.NewReader(file.Bytes())))
		default:
			file.Reset()
			must[*Summary](t)(facts.Serialize(ctx, &file))
		}
		content := fmt.Sprint("mark ", n)
		must[*loci.Receipt[Stored]](t)(facts.Put(ctx, fact(mark, content, y())))
		must[int64](t)(m.link.Sweep(ctx))
		got := must[*Found[loci.Fact]](t)(facts.Get(ctx, GetRequest{ID: mark})).Point
		if got == nil || got.Content != content {
			t.Fatalf("round %d: what was stored after the call is %+v", n, got)
		}
		if hits := must[*Hits](t)(facts.QueryText(ctx, TextRequest{Text: content, K: new(1)})).Hits; len(hits) != 1 || hits[0].ID != mark {
			t.Fatalf("round %d: words find %+v", n, hits)
		}
	}
	done.Store(true)
	group.Wait()
	list := must[*SnapshotList](t)(m.Snapshots(ctx)).Snapshots
	if len(list) != 3 {
		t.Errorf("snapshots %+v", list)
	}
	for _, s := range list {
		if !s.OK {
			t.Errorf("snapshot %+v", s)
			continue
		}
		must[*loci.Receipt[Restored]](t)(m.RestoreVersion(ctx, RestoreRequest{Version: s.Version}))
		texts := map[loci.PointID]string{}
		for _, f := range must[[]IDContent](t)(facts.ListAll(ctx)) {
			texts[f.ID] = f.Content
		}
		paired(fmt.Sprint("snapshot ", s.Version), texts)
	}
	h := must[*loci.HealthReport](t)(db.DeepHealth(ctx))
	if h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
		t.Errorf("%+v", h)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStoreAgainstStoreUnique has both write one id at once: either the unique one got
// another id, or it got this one and is in its history. // U5
func TestStoreAgainstStoreUnique(t *testing.T) {
	m := openMemory(t, 4)
	ctx := t.Context()
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for n := range rounds {
		must[*loci.Receipt[int64]](t)(m.facts.Clear(ctx))
		var id loci.PointID
		var group sync.WaitGroup
		var errStore, errUnique error
		group.Go(func() { errStore = m.facts.Store(ctx, 7, "stored", x()) })
		group.Go(func() { id, errUnique = m.facts.StoreUnique(ctx, 7, "unique", y()) })
		group.Wait()
		if err := errors.Join(errStore, errUnique); err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, v := range must[*Versions](t)(m.facts.History(ctx, PointRequest{ID: 7})).Versions {
			told = append(told, v.Content)
		}
		switch got := strings.Join(told, ", "); {
		case id == 7 && got == "stored, unique":
		case id == 8 && got == "stored" && m.get(8).Content == "unique":
		default:
			t.Fatalf("round %d: the unique one is %d, 7 is %s", n, id, got)
		}
	}
}
