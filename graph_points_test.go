package loci

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// pointChart writes an agent memory's facts and relations straight into the truth,
// and knows the facts by their keys.
type pointChart struct {
	t   testing.TB
	db  *DB
	row *store.AgentMemory
	of  map[uint64]ID
	key map[ID]uint64
}

func newPointChart(t testing.TB, db *DB, scope string) *pointChart {
	t.Helper()
	c := &pointChart{t: t, db: db, of: map[uint64]ID{}, key: map[ID]uint64{}}
	c.write(func(tx *store.WriteTx) error {
		c.row = &store.AgentMemory{Namespace: DefaultNamespace, Scope: scope, Dimension: 4, Space: "agent-4"}
		return tx.AddAgentMemory(c.row)
	})
	return c
}

func (c *pointChart) write(fn func(*store.WriteTx) error) {
	c.t.Helper()
	if _, err := c.db.eng.write(c.t.Context(), fn); err != nil {
		c.t.Fatal(err)
	}
}

// points adds points of a kind that expire at a time; 0 is never.
func (c *pointChart) points(kind store.Kind, expires int64, keys ...uint64) *pointChart {
	c.t.Helper()
	c.write(func(tx *store.WriteTx) error {
		for _, key := range keys {
			p := &store.Point{Record: store.Record{Kind: kind, Namespace: c.row.Namespace, Scope: c.row.Scope}, Key: key, Version: 1, Content: fmt.Sprint("point ", key)}
			if expires != 0 {
				p.Expires = &expires
			}
			if err := tx.AddPoint(c.row.Place(kind), p); err != nil {
				return err
			}
			c.of[key], c.key[ID(p.ID)] = ID(p.ID), key
		}
		return nil
	})
	return c
}

func (c *pointChart) relate(from uint64, typ string, to uint64, properties ...string) *pointChart {
	c.t.Helper()
	c.write(func(tx *store.WriteTx) error {
		source, err := tx.Point(int64(c.of[from]))
		if err != nil {
			return err
		}
		e := &store.PointEdge{Source: source.ID, Type: typ, Target: int64(c.of[to]), Key: rand.Uint64(), Created: c.db.eng.clock().UnixMicro()}
		if len(properties) > 0 {
			e.Properties = []byte(properties[0])
		}
		return tx.AddPointEdge(source.ScopeID, e)
	})
	return c
}

func (c *pointChart) filter(kinds ...Kind) ReadFilter {
	if kinds == nil {
		kinds = []Kind{KindFact}
	}
	return ReadFilter{Scopes: []string{c.row.Scope}, Kinds: kinds}
}

func (c *pointChart) view(f ReadFilter, d ...Direction) *GraphView {
	c.t.Helper()
	var o GraphOptions
	if len(d) > 0 {
		o.Direction = d[0]
	}
	return must[*GraphView](c.t)(c.db.Graph().BuildGraph(c.t.Context(), f, o))
}

func (c *pointChart) wantCounts(f ReadFilter, nodes, edges, components int) {
	c.t.Helper()
	v := c.view(f)
	if v.NodeCount() != nodes || v.EdgeCount() != edges || v.ComponentCount() != components {
		c.t.Errorf("%d nodes, %d edges, %d components; want %d, %d, %d", v.NodeCount(), v.EdgeCount(), v.ComponentCount(), nodes, edges, components)
	}
}

func (c *pointChart) keys(ids []ID) []uint64 {
	out := []uint64{}
	for _, id := range ids {
		out = append(out, c.key[id])
	}
	return out
}

// around gives what lies in a few steps around a point, by walking the view and by
// asking for the points, which must be the same.
func (c *pointChart) around(root uint64, depth int, f ReadFilter, d ...Direction) []uint64 {
	c.t.Helper()
	keys := c.keys(must[[]ID](c.t)(c.view(f, d...).EgoIDs(c.of[root], depth, 50)))
	o := EgoOptions{Depth: &depth}
	if len(d) > 0 {
		o.Direction = d[0]
	}
	found := must[[]any](c.t)(c.db.Graph().EgoPoints(c.t.Context(), c.of[root], f, o))
	if got := pointKeys(c.t, found); !slices.Equal(got, keys) {
		c.t.Errorf("points %d around %d, want %d", got, root, keys)
	}
	return keys
}

func pointKeys(t testing.TB, points []any) []uint64 {
	t.Helper()
	out := []uint64{}
	for _, p := range points {
		switch p := p.(type) {
		case *Fact:
			out = append(out, uint64(p.ID))
		case *Episode:
			out = append(out, uint64(p.ID))
		case *Procedure:
			out = append(out, uint64(p.ID))
		default:
			t.Errorf("%T is no point", p)
		}
	}
	return out
}

func wantKeys(t testing.TB, what string, got []uint64, want ...uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func TestGraphOfFacts(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	other := newPointChart(t, db, "elsewhere").points(store.KindFact, 0, 1, 2).relate(1, "knows", 2)
	newChart(t, db).entities("A", "B").relate("A", "knows", "B")
	c := newPointChart(t, db, PublicScope)
	c.wantCounts(c.filter(), 0, 0, 0)
	c.points(store.KindFact, 0, 1, 2, 3, 4).points(store.KindEpisode, 0, 5, 6).points(store.KindProcedure, 0, 7)
	c.wantCounts(c.filter(), 4, 0, 4)
	c.relate(1, "knows", 2).relate(2, "knows", 3).relate(1, "seen in", 5).relate(5, "led to", 7).relate(5, "then", 6)
	c.wantCounts(c.filter(), 4, 2, 2)
	c.wantCounts(c.filter(KindEpisode), 2, 1, 1)
	c.wantCounts(c.filter(KindFact, KindEpisode, KindProcedure, KindFact), 7, 5, 2)
	wantKeys(t, "one step", c.around(1, 1, c.filter()), 2)
	wantKeys(t, "two steps", c.around(1, 2, c.filter()), 2, 3)
	wantKeys(t, "backwards", c.around(3, 2, c.filter(), DirectionIn), 2, 1)
	wantKeys(t, "across kinds", c.around(1, 2, c.filter(KindFact, KindEpisode, KindProcedure)), 2, 5, 3, 6, 7)
	path := must[[]any](t)(db.Graph().PathPoints(t.Context(), c.of[1], c.of[3], c.filter(), GraphOptions{}))
	wantKeys(t, "path", pointKeys(t, path), 1, 2, 3)
	if path[1].(*Fact).Content != "point 2" {
		t.Errorf("%+v", path[1])
	}
	wantKeys(t, "no path", pointKeys(t, must[[]any](t)(db.Graph().PathPoints(t.Context(), c.of[3], c.of[1], c.filter(), GraphOptions{}))))
	c.relate(3, "knows", 1)
	sets := must[[][]ID](t)(db.Graph().StronglyConnected(t.Context(), c.filter()))
	if len(sets) != 1 {
		t.Fatalf("strongly connected: %v", sets)
	}
	wantKeys(t, "strongly connected", c.keys(sets[0]), 1, 2, 3)

	// Other memories, and entities, have graphs of their own.
	c.wantCounts(ReadFilter{}, 2, 1, 1)
	other.wantCounts(other.filter(), 2, 1, 1)
	both := c.filter()
	both.Scopes = append(both.Scopes, "elsewhere", "nowhere")
	c.wantCounts(both, 6, 4, 3)
	c.wantCounts(ReadFilter{Namespace: new("nowhere"), Kinds: []Kind{KindFact}}, 0, 0, 0)
	_, err := other.view(other.filter()).EgoIDs(c.of[1], 1, 9)
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("%v for a fact of another scope", err)
	}
}

func TestGraphOfFactsHasTheRulesOfPredicates(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newPointChart(t, db, PublicScope).points(store.KindFact, 0, 1, 2, 3, 4, 5)
	c.relate(1, "Knows", 2).relate(2, "parent of", 3).relate(5, PredicateSameAs, 4).relate(3, "likes", 5)
	c.wantCounts(c.filter(), 4, 3, 1)
	wantKeys(t, "without rules", c.around(2, 9, c.filter()), 3, 4)
	rule := func(r PredicateRule) {
		t.Helper()
		must[*Receipt[PredicateRule]](t)(db.Graph().SetPredicateRule(t.Context(), r))
	}
	rule(PredicateRule{Predicate: "knows", Symmetric: true})
	rule(PredicateRule{Predicate: "parent of", Inverse: "child of"})
	rule(PredicateRule{Predicate: "never used", Symmetric: true})
	c.wantCounts(c.filter(), 4, 5, 1)
	wantKeys(t, "with rules", c.around(3, 1, c.filter()), 2, 4)
	wantKeys(t, "and a step further", c.around(3, 2, c.filter()), 2, 4, 1)
	rule(PredicateRule{Namespace: DefaultNamespace, Predicate: "knows"}) // the namespace's own wins
	wantKeys(t, "without that rule", c.around(3, 2, c.filter()), 2, 4)
	wantKeys(t, "from one that is the same", c.around(5, 1, c.filter(), DirectionIn), 3)
}

func TestGraphOfFactsIsOfLiveOnes(t *testing.T) {
	clock := newTestClock()
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), withFakeIndex(&Options{Clock: clock.Now, NoBackgroundSweep: true}, nil)))
	t.Cleanup(func() { db.Close() })
	now := clock.Now().UnixMicro()
	c := newPointChart(t, db, PublicScope).points(store.KindFact, 0, 1, 3).points(store.KindFact, now+10, 2)
	c.relate(1, "a", 2).relate(2, "a", 3)
	early := c.view(c.filter())
	wantKeys(t, "live", c.around(1, 2, c.filter()), 2, 3)
	clock.Set(now + 10)
	c.wantCounts(c.filter(), 2, 0, 2)
	wantKeys(t, "expired", c.around(1, 2, c.filter()))
	_, err := c.view(c.filter()).PathIDs(c.of[2], c.of[1])
	if e := wantCode(t, err, ErrNotFound); e.Field != "from" {
		t.Errorf("%v", err)
	}
	wantKeys(t, "a view that is held", c.keys(must[[]ID](t)(early.EgoIDs(c.of[1], 2, 9))), 2, 3)
	clock.Set(now - 10) // the clock of expiry does not go back
	c.wantCounts(c.filter(), 2, 0, 2)

	// A place that is given up is out of the graph at once.
	c.write(func(tx *store.WriteTx) error {
		place, err := tx.StagePlace(c.row, store.KindFact)
		if err != nil {
			return err
		}
		if err := tx.SetPlace(c.row, store.KindFact, place); err != nil {
			return err
		}
		return tx.UpdateAgentMemory(c.row)
	})
	c.wantCounts(c.filter(), 0, 0, 0)
}

func TestGraphOfFactsUnderAFilter(t *testing.T) {
	clock := newTestClock()
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), withFakeIndex(&Options{Clock: clock.Now}, nil)))
	t.Cleanup(func() { db.Close() })
	start := clock.Now().UnixMicro()
	c := newPointChart(t, db, PublicScope).points(store.KindFact, 0, 1, 2, 3).relate(1, "a", 2, `{"w":1}`)
	clock.Set(start + 10)
	c.relate(1, "b", 3, `{"w":2}`).relate(2, "c", 3)
	f := c.filter()
	f.Where = []Condition{{Key: "w", Op: "ge", Value: []byte("2")}}
	c.wantCounts(f, 3, 1, 2)
	wantKeys(t, "by a property", c.around(1, 2, f), 3)
	f = c.filter()
	f.CreatedFromUS = new(start + 10)
	wantKeys(t, "from a time on", c.around(1, 1, f), 3)
	f.CreatedFromUS, f.CreatedToUS = nil, new(start+10)
	wantKeys(t, "before a time", c.around(1, 1, f), 2)
	f.Where = []Condition{{Key: "w", Op: "ge", Value: []byte("2")}}
	c.wantCounts(f, 3, 0, 3)

	g := db.Graph()
	for field, change := range map[string]func(*ReadFilter){
		"filter.kinds":    func(f *ReadFilter) { f.Kinds = []Kind{KindFact, KindEntity} },
		"filter.tags":     func(f *ReadFilter) { f.Tags = []string{"nova"} },
		"filter.thread":   func(f *ReadFilter) { f.Thread = new("talk") },
		"filter.note_ids": func(f *ReadFilter) { f.NoteIDs = []ID{1} },
	} {
		f := c.filter()
		change(&f)
		_, err := g.BuildGraph(t.Context(), f, GraphOptions{})
		if e := wantCode(t, err, ErrValidation); e.Field != field {
			t.Errorf("%v, want field %s", err, field)
		}
	}
	_, err := g.Ego(t.Context(), c.of[1], c.filter(), EgoOptions{})
	wantCode(t, err, ErrValidation)
	_, err = g.Path(t.Context(), c.of[1], c.of[2], c.filter(), GraphOptions{})
	wantCode(t, err, ErrValidation)
	_, err = g.EgoPoints(t.Context(), c.of[1], ReadFilter{}, EgoOptions{})
	wantCode(t, err, ErrValidation)
	_, err = g.PathPoints(t.Context(), c.of[1], c.of[2], ReadFilter{}, GraphOptions{})
	wantCode(t, err, ErrValidation)
	_, err = g.EgoPoints(t.Context(), c.of[1], c.filter(), EgoOptions{Limit: new(0)})
	wantCode(t, err, ErrValidation)
	_, err = g.EgoPoints(t.Context(), 99999, c.filter(), EgoOptions{})
	wantCode(t, err, ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.relate(3, "a", 1)
	if _, err = g.BuildGraph(ctx, c.filter(), GraphOptions{}); !errors.Is(err, ErrCanceled) {
		t.Errorf("%v for a context that ended", err)
	}
}

func TestGraphsOfFactsAreKept(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newPointChart(t, db, PublicScope).points(store.KindFact, 0, 1, 2).points(store.KindEpisode, 0, 5)
	x := &db.eng.graphs.points
	kept := func() []*pointGraph {
		x.mu.Lock()
		defer x.mu.Unlock()
		return slices.Clone(x.kept)
	}
	c.wantCounts(c.filter(), 2, 0, 2)
	first := kept()
	c.wantCounts(c.filter(), 2, 0, 2)
	if second := kept(); len(first) != 1 || len(second) != 1 || first[0] != second[0] {
		t.Error("built again although nothing was written")
	}
	c.wantCounts(c.filter(KindEpisode), 1, 0, 1)
	if n := len(kept()); n != 2 {
		t.Errorf("%d graphs of one revision", n)
	}
	c.relate(1, "a", 2)
	c.wantCounts(c.filter(), 2, 1, 1)
	if n := len(kept()); n != 1 {
		t.Errorf("%d graphs after a write", n)
	}
	// Many at once, while others write.
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				v, err := db.Graph().BuildGraph(t.Context(), c.filter(), GraphOptions{})
				if err != nil || v.NodeCount() != 2 {
					t.Error(v, err)
					return
				}
			}
		})
	}
	for i := range 20 {
		c.relate(1, fmt.Sprint("more ", i), 2)
	}
	all.Wait()
	c.wantCounts(c.filter(), 2, 21, 1)
}

// BenchmarkGraphOfFacts is about a memory of 100,000 facts and 500,000 relations.
func BenchmarkGraphOfFacts(b *testing.B) {
	db, err := Open(b.Context(), b.TempDir(), withFakeIndex(&Options{}, nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	c := newPointChart(b, db, PublicScope)
	const n, m, batch = 100_000, 500_000, 10_000
	keys := make([]uint64, 0, batch)
	for i := range uint64(n) {
		if keys = append(keys, i); len(keys) == batch {
			c.points(store.KindFact, 0, keys...)
			keys = keys[:0]
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	place := c.row.Place(store.KindFact)
	for done := 0; done < m; done += batch {
		c.write(func(tx *store.WriteTx) error {
			for i := done; i < done+batch; i++ {
				// Of each fact go out five relations of types of their own.
				e := &store.PointEdge{
					Source: int64(c.of[uint64(i)%n]), Type: fmt.Sprint("type ", i/n), Target: int64(c.of[rng.Uint64N(n)]), Key: uint64(i) + 1, Created: int64(i),
				}
				if err := tx.AddPointEdge(place, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	view := func(b *testing.B) *GraphView {
		return must[*GraphView](b)(db.Graph().BuildGraph(b.Context(), c.filter(), GraphOptions{}))
	}
	b.Run("first view", func(b *testing.B) {
		for b.Loop() {
			db.eng.graphs.drop()
			view(b)
		}
		b.ReportMetric(float64(db.eng.graphs.points.kept[0].bytes()), "graph-bytes")
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			view(b)
		}
	})
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			view(b).ComponentCount()
		}
	})
	b.Run("ego of two steps", func(b *testing.B) {
		for i := uint64(0); b.Loop(); i++ {
			must[[]any](b)(db.Graph().EgoPoints(b.Context(), c.of[i%n], c.filter(), EgoOptions{Depth: new(2)}))
		}
	})
}
