package loci

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/graph"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/store/faultvfs"
	"github.com/loci-memory/loci/internal/text"
)

// TestGraphAfterFailedCommits lets commits fail at random and holds that the
// view is always that of a graph built anew.
func TestGraphAfterFailedCommits(t *testing.T) {
	fs := faultvfs.Register("graph-commits")
	defer fs.Close()
	opts := withFakeIndex(&Options{Clock: newTestClock().Now}, nil)
	opts.store.VFS = fs.Name()
	db, err := Open(t.Context(), t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	g, rng := db.Graph(), rand.New(rand.NewPCG(3, 4))
	var ids []ID
	failed := 0
	for step := range 120 {
		batch := GraphBatch{Entities: []EntityInput{{Ref: "new", Name: fmt.Sprint("e", step)}}}
		if len(ids) > 0 {
			batch.Relations = []RelationInput{{Subject: EntityRef{Ref: "new"}, Predicate: "to", Object: EntityRef{ID: ids[rng.IntN(len(ids))]}}}
		}
		if step > 0 && rng.IntN(3) == 0 {
			fs.FailAt(1, faultvfs.Write|faultvfs.Sync, faultvfs.ErrDiskFull, false)
		}
		r, err := g.ApplyBatch(t.Context(), batch)
		fs.FailAt(0, 0, nil, false)
		if err != nil {
			failed++
		} else {
			ids = append(ids, r.Value.Entities[0].ID)
		}
		if step%3 == 0 {
			continue
		}
		err = db.eng.readGraph(t.Context(), DefaultNamespace, func(_ *store.ReadTx, s *graph.Snapshot) error {
			wantSameGraph(t, s.View(graph.Filter{}, nil), freshGraph(t, db, DefaultNamespace).View(graph.Filter{}, nil), ids)
			if s.Entities() != len(ids) {
				t.Errorf("%d entities, want %d", s.Entities(), len(ids))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if failed == 0 || len(ids) == 0 {
		t.Errorf("%d commits failed, %d did not", failed, len(ids))
	}
}

// TestGraphOfAnOlderSnapshot holds that a reader whose snapshot of the truth is
// not the latest gets the graph that belongs to it.
func TestGraphOfAnOlderSnapshot(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("A", "B")
	c.wantCounts(2, 0, 2)
	x := &db.eng.graphs
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		id, _, err := tx.StringID(DefaultNamespace)
		if err != nil {
			return err
		}
		c.relate("A", "to", "B") // another reader sees these first
		c.relate("B", "to", "A")
		c.wantCounts(2, 2, 1)
		s, _, err := x.at(id, tx.Revision())
		if err != nil || s == nil || s.Relations() != 0 {
			t.Errorf("%v: %+v", err, s)
		}
		if _, _, err := x.at(id, tx.Revision()+1); !errors.Is(err, errAgain) {
			t.Errorf("between two snapshots that were made: %v", err)
		}
		for i := range graphSpans {
			c.relate("A", fmt.Sprint("p", i), "B")
			c.view()
		}
		if _, _, err := x.at(id, tx.Revision()); !errors.Is(err, errAgain) {
			t.Errorf("a snapshot that is not kept any more: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGraphDuringACommit looks at what a graph that is first asked for between
// a commit's two halves learns of it.
func TestGraphDuringACommit(t *testing.T) {
	changes := []store.Change{{ID: 1, Namespace: 5, Kind: store.KindEntity}, {ID: 2, Namespace: 5, Kind: store.KindMemory}, {ID: 3, Namespace: 6, Kind: store.KindRelation}}
	for _, commit := range []bool{true, false} {
		var x graphIndex
		x.stage(10, nil)
		x.publish()
		x.stage(11, changes)
		_, g, err := x.at(5, 10)
		if err != nil || g.from != 10 || len(g.dirty) != 1 || g.dirty[0].id != 1 {
			t.Fatalf("%v: %+v", err, g)
		}
		if _, _, err := x.at(5, 9); !errors.Is(err, errAgain) {
			t.Errorf("a snapshot from before: %v", err)
		}
		if commit {
			x.publish()
		} else {
			x.discard()
		}
		if _, g, _ = x.at(5, 11); commit != (len(g.dirty) == 1) {
			t.Errorf("committed %v: %+v", commit, g.dirty)
		}
		if _, g, _ = x.at(6, 11); len(g.dirty) != 0 || commit != (g.from == 11) {
			t.Errorf("committed %v: %+v", commit, g)
		}
	}
}

// TestGraphIsCompacted writes enough for a compaction and looks at the graph
// meanwhile.
func TestGraphIsCompacted(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	g, ctx := db.Graph(), t.Context()
	newChart(t, db).entities("first").wantCounts(1, 0, 1)
	const batches, size = 6, 1500
	for i := range batches {
		batch := GraphBatch{Entities: []EntityInput{{Ref: "hub", Name: fmt.Sprint("hub", i)}}}
		for j := range size {
			name := fmt.Sprint("e", i, "-", j)
			batch.Entities = append(batch.Entities, EntityInput{Ref: name, Name: name})
			batch.Relations = append(batch.Relations, RelationInput{Subject: EntityRef{Ref: "hub"}, Predicate: "has", Object: EntityRef{Ref: name}})
		}
		hub := must[*Receipt[GraphBatchResult]](t)(g.ApplyBatch(ctx, batch)).Value.Entities[0].ID
		v := must[*GraphView](t)(g.BuildGraph(ctx, ReadFilter{}, GraphOptions{}))
		if got := must[[]ID](t)(v.EgoIDs(hub, 1, MaxPage)); len(got) != size || v.NodeCount() != 1+(i+1)*(size+1) || v.EdgeCount() != (i+1)*size {
			t.Errorf("%d around the hub, %d nodes, %d edges", len(got), v.NodeCount(), v.EdgeCount())
		}
	}
	x := &db.eng.graphs
	deadline := time.Now().Add(10 * time.Second)
	for {
		x.mu.Lock()
		compacting := slices.ContainsFunc(graphsOf(x), func(g *namespaceGraph) bool { return g.compacting })
		x.mu.Unlock()
		if !compacting {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the compaction does not end")
		}
		time.Sleep(time.Millisecond)
	}
	v := must[*GraphView](t)(g.BuildGraph(ctx, ReadFilter{}, GraphOptions{}))
	if v.NodeCount() != 1+batches*(size+1) || v.ComponentCount() != 1+batches {
		t.Errorf("%d nodes, %d components", v.NodeCount(), v.ComponentCount())
	}
	must[*HealthReport](t)(db.RebuildIndexes(ctx))
	x.mu.Lock()
	if len(x.graphs) != 0 {
		t.Error("a rebuild leaves the graphs")
	}
	x.mu.Unlock()
	if v := must[*GraphView](t)(g.BuildGraph(ctx, ReadFilter{}, GraphOptions{})); v.EdgeCount() != batches*size {
		t.Errorf("%d edges", v.EdgeCount())
	}
}

// TestGraphFollowsAnImport imports into a store whose graph is in use.
func TestGraphFollowsAnImport(t *testing.T) {
	from, to := openTestDB(t, t.TempDir()), openTestDB(t, t.TempDir())
	newChart(t, from).entities("A", "B").relate("A", "to", "B")
	setEquivalents(t, from, DefaultNamespace, []string{"to", "towards"})
	c := newChart(t, to).entities("C")
	c.wantCounts(1, 0, 1)
	wantExpanded(t, to, DefaultNamespace, "to")
	var b bytes.Buffer
	must[*ExportReport](t)(from.Export(t.Context(), &b, nil))
	must[*ImportReport](t)(to.Import(t.Context(), &b, nil))
	c.wantCounts(3, 1, 2)
	wantExpanded(t, to, DefaultNamespace, "to", "to", "towards")
}

func graphsOf(x *graphIndex) (out []*namespaceGraph) {
	for _, g := range x.graphs {
		out = append(out, g)
	}
	return out
}

// TestExpandQueryModel compares the expansion with a plain look for every word.
func TestExpandQueryModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"夫", "妻", "配", "偶", "a", "b", "é", "-", " ", "c++", "ß", "ไ", "'"}
	word := func(n int) string {
		var b strings.Builder
		for range 1 + rng.IntN(n) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		return normalize(b.String())
	}
	for range 3000 {
		groupOf := map[string]int64{}
		for range rng.IntN(12) {
			if w := word(3); w != "" {
				groupOf[w] = int64(rng.IntN(4))
			}
		}
		var words []store.Equivalent
		for w, g := range groupOf {
			words = append(words, store.Equivalent{Word: w, Group: g})
		}
		query := word(12)
		got := map[string]bool{}
		for _, e := range newEquivalents(words).expand(query) {
			if got[e.text] {
				t.Fatalf("%q comes twice", e.text)
			}
			got[e.text] = true
		}
		for w, g := range groupOf {
			want := false
			for other, h := range groupOf {
				want = want || g == h && text.Contains(query, other)
			}
			if got[w] != want {
				t.Fatalf("%q expands %q: %v, want %v (%v)", query, w, got[w], want, groupOf)
			}
		}
	}
}

// TestEquivalentsOfAnOlderSnapshot holds that a reader whose snapshot of the
// truth is not the latest gets the words that belong to it.
func TestEquivalentsOfAnOlderSnapshot(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	setEquivalents(t, db, DefaultNamespace, []string{"mate", "friend"})
	wantExpanded(t, db, DefaultNamespace, "mate", "friend", "mate")
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		setEquivalents(t, db, DefaultNamespace, []string{"mate", "buddy"})
		for range 2 {
			wantExpanded(t, db, DefaultNamespace, "mate", "buddy", "mate")
			x, err := db.eng.equivalentsOf(tx, DefaultNamespace)
			if err != nil || len(x.groups) != 1 || !slices.Equal(x.groups[0].words, []string{"friend", "mate"}) {
				t.Errorf("%v: %+v", err, x.groups)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEquivalentsWhileWriting holds that a change of equivalents shows at once,
// whatever else goes on.
func TestEquivalentsWhileWriting(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	g, ctx := db.Graph(), t.Context()
	stop := make(chan struct{})
	var others sync.WaitGroup
	busy := func(fn func() error) {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := fn(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	busy(func() error {
		_, err := db.Memories().Upsert(ctx, MemoryInput{Judgment: "x"})
		return err
	})
	busy(func() error {
		words, err := g.ExpandQuery(ctx, DefaultNamespace, "old mate")
		if len(words) != 0 && len(words) != 2 {
			return fmt.Errorf("half a group: %v", words)
		}
		return err
	})
	for range 50 {
		setEquivalents(t, db, DefaultNamespace, []string{"mate", "friend"})
		wantExpanded(t, db, DefaultNamespace, "old mate", "friend", "mate")
		must[*Receipt[int]](t)(g.DeletePredicateEquivalents(ctx, DefaultNamespace, nil))
		wantExpanded(t, db, DefaultNamespace, "old mate")
	}
	close(stop)
	others.Wait()
}
