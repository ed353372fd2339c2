package loci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/graph"
	"github.com/loci-memory/loci/internal/store"
)

// chart writes entities and relations by their names, each name one entity of
// its namespace and scope.
type chart struct {
	t    testing.TB
	db   *DB
	ns   string
	ids  map[string]ID
	name map[ID]string
}

func newChart(t testing.TB, db *DB) *chart {
	return &chart{t: t, db: db, ns: DefaultNamespace, ids: map[string]ID{}, name: map[ID]string{}}
}

func (c *chart) entities(names ...string) *chart {
	c.t.Helper()
	for _, name := range names {
		r := must[*Receipt[GraphBatchResult]](c.t)(c.db.Graph().ApplyBatch(c.t.Context(), GraphBatch{
			Entities: []EntityInput{{RecordInput: RecordInput{Namespace: &c.ns}, Name: name}}}))
		id := r.Value.Entities[0].ID
		c.ids[name], c.name[id] = id, name
	}
	return c
}

// relate writes a relation and gives its id.
func (c *chart) relate(subject, predicate, object string, in ...RecordInput) ID {
	c.t.Helper()
	var record RecordInput
	if len(in) > 0 {
		record = in[0]
	}
	record.Namespace = &c.ns
	r := must[*Receipt[GraphBatchResult]](c.t)(c.db.Graph().ApplyBatch(c.t.Context(), GraphBatch{Relations: []RelationInput{{
		RecordInput: record, Subject: EntityRef{ID: c.ids[subject]}, Predicate: predicate, Object: EntityRef{ID: c.ids[object]}}}}))
	return r.Value.Relations[0].ID
}

func (c *chart) rule(r PredicateRule) {
	c.t.Helper()
	must[*Receipt[PredicateRule]](c.t)(c.db.Graph().SetPredicateRule(c.t.Context(), r))
}

func (c *chart) filter() ReadFilter { return ReadFilter{Namespace: &c.ns} }

func (c *chart) view(d ...Direction) *GraphView {
	c.t.Helper()
	var o GraphOptions
	if len(d) > 0 {
		o.Direction = d[0]
	}
	return must[*GraphView](c.t)(c.db.Graph().BuildGraph(c.t.Context(), c.filter(), o))
}

func (c *chart) wantCounts(nodes, edges, components int) {
	c.t.Helper()
	v := c.view()
	if v.NodeCount() != nodes || v.EdgeCount() != edges || v.ComponentCount() != components {
		c.t.Errorf("%d nodes, %d edges, %d components; want %d, %d, %d", v.NodeCount(), v.EdgeCount(), v.ComponentCount(), nodes, edges, components)
	}
}

func (c *chart) wantNames(what string, entities []Entity, want ...string) {
	c.t.Helper()
	got := []string{}
	for _, e := range entities {
		got = append(got, e.Name)
	}
	if entities == nil || !slices.Equal(got, want) {
		c.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (c *chart) wantEgo(root string, depth int, want ...string) {
	c.t.Helper()
	entities := must[[]Entity](c.t)(c.db.Graph().Ego(c.t.Context(), c.ids[root], c.filter(), EgoOptions{Depth: &depth}))
	c.wantNames(fmt.Sprintf("%d steps around %s", depth, root), entities, want...)
	ids := must[[]ID](c.t)(c.view().EgoIDs(c.ids[root], depth, 50))
	if len(ids) != len(entities) || len(ids) > 0 && ids[0] != entities[0].ID {
		c.t.Errorf("ids %v of %v", ids, entities)
	}
}

func (c *chart) wantPath(from, to string, want ...string) {
	c.t.Helper()
	c.wantNames("path "+from+" "+to, must[[]Entity](c.t)(c.db.Graph().Path(c.t.Context(), c.ids[from], c.ids[to], c.filter(), GraphOptions{})), want...)
}

func (c *chart) wantStrong(want ...[]string) {
	c.t.Helper()
	got := [][]string{}
	for _, ids := range must[[][]ID](c.t)(c.db.Graph().StronglyConnected(c.t.Context(), c.filter())) {
		var names []string
		for _, id := range ids {
			names = append(names, c.name[id])
		}
		got = append(got, names)
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		c.t.Errorf("strongly connected: %v, want %v", got, want)
	}
}

func TestGraphChain(t *testing.T) {
	c := newChart(t, openTestDB(t, t.TempDir())).entities("A", "B", "C", "D")
	c.wantCounts(4, 0, 4)
	c.relate("A", "knows", "B")
	c.relate("B", "knows", "C")
	c.wantCounts(4, 2, 2)
	c.wantEgo("A", 1, "B")
	c.wantEgo("A", 2, "B", "C")
	c.wantEgo("A", 0)
	c.wantEgo("C", 1)
	c.wantPath("A", "D")
	c.wantPath("A", "C", "A", "B", "C")
	c.wantPath("C", "A")
	c.wantPath("A", "A", "A")
	c.wantStrong()
	for d, want := range map[Direction][]ID{DirectionOut: {c.ids["C"]}, DirectionIn: {c.ids["A"]}, DirectionBoth: {c.ids["A"], c.ids["C"]}} {
		if got := must[[]ID](t)(c.view(d).EgoIDs(c.ids["B"], 1, 9)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", d, got, want)
		}
	}
	if got := must[[]ID](t)(c.view(DirectionIn).PathIDs(c.ids["C"], c.ids["A"])); len(got) != 3 {
		t.Errorf("against the edges: %v", got)
	}
	c.relate("D", "self", "D")
	c.wantStrong()
	c.relate("B", "knows", "A")
	c.wantStrong([]string{"A", "B"})
}

func TestGraphShortestPath(t *testing.T) {
	c := newChart(t, openTestDB(t, t.TempDir())).entities("A", "B", "C", "D", "E")
	for _, e := range []string{"AB", "BC", "CE", "AD", "DE"} {
		c.relate(e[:1], "to", e[1:])
	}
	c.wantPath("A", "E", "A", "D", "E")
	c = newChart(t, openTestDB(t, t.TempDir())).entities("hub", "1", "2", "3", "4", "5")
	for i := 1; i <= 5; i++ {
		c.relate("hub", "to", fmt.Sprint(i))
	}
	got := must[[]Entity](t)(c.db.Graph().Ego(t.Context(), c.ids["hub"], ReadFilter{}, EgoOptions{Limit: new(3)}))
	c.wantNames("three of five", got, "1", "2", "3")
}

func TestGraphNamespaces(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	x, y := newChart(t, db), newChart(t, db)
	x.ns, y.ns = "x", "y"
	x.entities("A", "B")
	x.relate("A", "knows", "B")
	y.entities("C")
	x.wantCounts(2, 1, 1)
	y.wantCounts(1, 0, 1)
	nobody := newChart(t, db)
	nobody.ns = "nobody"
	nobody.wantCounts(0, 0, 0)
	_, err := db.Graph().Ego(t.Context(), x.ids["A"], y.filter(), EgoOptions{})
	wantCode(t, err, ErrNotFound)
}

func TestGraphRules(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("小满", "老柳")
	c.relate("小满", "师父", "老柳")
	c.wantEgo("老柳", 1)
	c.wantPath("老柳", "小满")
	c.rule(PredicateRule{Predicate: "师父", Inverse: "徒弟"})
	c.wantEgo("老柳", 1, "小满")
	c.wantPath("老柳", "小满", "老柳", "小满")
	c.wantCounts(2, 2, 1)
	if h := must[*HealthReport](t)(db.Health(t.Context())); h.RecordCount != 3 {
		t.Errorf("%d records", h.RecordCount)
	}
	// The rule is about the predicate that it was set on, not its inverse.
	other := newChart(t, db)
	other.ns = "other"
	other.entities("小满", "老柳")
	other.relate("老柳", "徒弟", "小满")
	other.wantEgo("小满", 1)
	other.wantCounts(2, 1, 1)

	c = newChart(t, db)
	c.ns = "ship"
	c.entities("a", "b")
	c.relate("a", "Shares Ship", "b")
	c.rule(PredicateRule{Predicate: "shares  ship", Symmetric: true})
	c.wantEgo("b", 1, "a")
	c.wantCounts(2, 2, 1)
	c.wantStrong([]string{"a", "b"})
	// A namespace's own rule stands before the one for the whole store.
	c.rule(PredicateRule{Namespace: "ship", Predicate: "shares ship"})
	c.wantEgo("b", 1)
	c.wantStrong()
	must[*Receipt[bool]](t)(db.Graph().DeletePredicateRule(t.Context(), "ship", "shares ship"))
	c.wantEgo("b", 1, "a")
	must[*Receipt[bool]](t)(db.Graph().DeletePredicateRule(t.Context(), "", "shares ship"))
	c.wantEgo("b", 1)
	// And holds nowhere else.
	c.rule(PredicateRule{Namespace: "x", Predicate: "shares ship", Symmetric: true})
	c.wantEgo("b", 1)
}

func TestGraphSameAs(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("阿青", "青姑", "茶馆")
	c.relate("青姑", "掌柜", "茶馆")
	c.wantCounts(3, 1, 2)
	c.relate("阿青", PredicateSameAs, "青姑") // nothing used that predicate when the first view was made
	for range 2 {
		c.wantCounts(2, 1, 1)
		c.wantEgo("阿青", 1, "茶馆")
		c.wantEgo("青姑", 1, "茶馆")
		if p := must[[]Entity](t)(db.Graph().Path(t.Context(), c.ids["阿青"], c.ids["茶馆"], ReadFilter{}, GraphOptions{})); len(p) != 2 {
			t.Errorf("%v", p)
		}
		if r := must[*Receipt[bool]](t)(db.Graph().DeletePredicateRule(t.Context(), "", PredicateSameAs)); r.Value {
			t.Error("what is built in was deleted")
		}
	}
	c = newChart(t, db)
	c.ns = "three"
	c.entities("a", "b", "c")
	c.relate("a", "SYS:Same_As", "b")
	c.relate("b", PredicateSameAs, "c")
	c.wantCounts(1, 0, 1)
	if p := must[[]ID](t)(c.view().PathIDs(c.ids["a"], c.ids["c"])); len(p) != 1 {
		t.Errorf("%v", p)
	}
	c.wantStrong()
}

func TestGraphUnknown(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("A")
	g, ctx, a := db.Graph(), t.Context(), c.ids["A"]
	for _, id := range []ID{0, -1, 777} {
		_, err := g.Ego(ctx, id, ReadFilter{}, EgoOptions{})
		wantCode(t, err, ErrNotFound)
		_, err = g.Path(ctx, id, a, ReadFilter{}, GraphOptions{})
		wantCode(t, err, ErrNotFound)
		_, err = g.Path(ctx, a, id, ReadFilter{}, GraphOptions{})
		wantCode(t, err, ErrNotFound)
		_, err = c.view().EgoIDs(id, 1, 1)
		wantCode(t, err, ErrNotFound)
		_, err = c.view().PathIDs(id, a)
		wantCode(t, err, ErrNotFound)
	}
	_, err := g.Ego(ctx, a, ReadFilter{Scopes: []string{"private"}}, EgoOptions{})
	wantCode(t, err, ErrNotFound)
	for _, o := range []EgoOptions{{Depth: new(-1)}, {Limit: new(0)}, {Limit: new(MaxPage + 1)}, {GraphOptions: GraphOptions{Direction: "up"}}} {
		_, err := g.Ego(ctx, a, ReadFilter{}, o)
		wantCode(t, err, ErrValidation)
	}
	_, err = g.BuildGraph(ctx, ReadFilter{Scopes: []string{}}, GraphOptions{})
	wantCode(t, err, ErrValidation)
	_, err = c.view().EgoIDs(a, 1, -1)
	wantCode(t, err, ErrValidation)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = g.BuildGraph(canceled, ReadFilter{}, GraphOptions{})
	wantCode(t, err, ErrCanceled)
}

func TestGraphViewNeverChanges(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("A", "B", "C")
	c.relate("A", "knows", "B")
	v := c.view()
	id := c.relate("B", "knows", "C")
	c.rule(PredicateRule{Predicate: "knows", Symmetric: true})
	if v.NodeCount() != 3 || v.EdgeCount() != 1 {
		t.Errorf("the view in hand has %d edges", v.EdgeCount())
	}
	c.wantCounts(3, 4, 1)
	must[*Receipt[bool]](t)(db.Graph().Delete(t.Context(), KindRelation, id, ReadFilter{}))
	c.wantCounts(3, 2, 2)
	// A failed batch leaves no trace.
	_, err := db.Graph().ApplyBatch(t.Context(), GraphBatch{
		Entities:  []EntityInput{{Ref: "new", Name: "new"}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "new"}, Predicate: "knows", Object: EntityRef{ID: 999}}},
	})
	wantCode(t, err, ErrNotFound)
	c.wantCounts(3, 2, 2)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := must[[]ID](t)(v.EgoIDs(c.ids["A"], 2, 9)); len(got) != 1 {
		t.Errorf("after closing: %v", got)
	}
	_, err = db.Graph().BuildGraph(t.Context(), ReadFilter{}, GraphOptions{})
	wantCode(t, err, ErrClosed)
}

// Tags, times, thread and metadata narrow the relations, scopes both.
func TestGraphFilters(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("A", "B")
	private := "private"
	c.relate("A", "p1", "B", RecordInput{Tags: []string{"kin"}, CreatedAtUS: new(int64(10))})
	c.relate("A", "p2", "B", RecordInput{Scope: &private, CreatedAtUS: new(int64(20))})
	c.relate("A", "p3", "B", RecordInput{Thread: new("log"), CreatedAtUS: new(int64(30)), Metadata: Metadata(`{"n":1}`)})
	for _, x := range []struct {
		filter       ReadFilter
		nodes, edges int
	}{
		{ReadFilter{}, 2, 2},
		{ReadFilter{Scopes: []string{"public", private}}, 2, 3},
		{ReadFilter{Scopes: []string{private}}, 0, 0},
		{ReadFilter{Scopes: []string{"nobody"}}, 0, 0},
		{ReadFilter{Tags: []string{"KIN"}}, 2, 1},
		{ReadFilter{Tags: []string{"kin", "nothing"}}, 2, 0},
		{ReadFilter{CreatedFromUS: new(int64(11))}, 2, 1},
		{ReadFilter{CreatedToUS: new(int64(10))}, 2, 0},
		{ReadFilter{Thread: new("log")}, 2, 1},
		{ReadFilter{Thread: new("log"), Tags: []string{"kin"}}, 2, 0},
		{ReadFilter{Where: []Condition{{Key: "n", Op: OpEq, Value: json.RawMessage("1")}}}, 2, 1},
		{ReadFilter{Where: []Condition{{Key: "n", Op: OpGt, Value: json.RawMessage("1")}}}, 2, 0},
		{ReadFilter{Kinds: []Kind{KindEntity}}, 2, 0},
		{ReadFilter{Kinds: []Kind{KindRelation}}, 0, 0},
		{ReadFilter{Kinds: []Kind{KindRelation, KindEntity}}, 2, 2},
		{ReadFilter{NoteIDs: []ID{1}}, 0, 0},
	} {
		v := must[*GraphView](t)(db.Graph().BuildGraph(t.Context(), x.filter, GraphOptions{}))
		if v.NodeCount() != x.nodes || v.EdgeCount() != x.edges {
			t.Errorf("%+v: %d nodes, %d edges", x, v.NodeCount(), v.EdgeCount())
		}
	}
}

// freshGraph is the namespace's graph, built from the truth alone.
func freshGraph(t testing.TB, db *DB, namespace string) (s *graph.Snapshot) {
	t.Helper()
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		id, _, err := tx.StringID(namespace)
		if err != nil {
			return err
		}
		sameAs, _, err := tx.StringID(PredicateSameAs)
		if err != nil {
			return err
		}
		a, err := buildGraph(tx, id, sameAs, 0)
		if err == nil {
			s = a.Snapshot()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantSameGraph holds that two views show the same.
func wantSameGraph(t testing.TB, got, want *graph.View, ids []ID) {
	t.Helper()
	if got.NodeCount() != want.NodeCount() || got.EdgeCount() != want.EdgeCount() || got.ComponentCount() != want.ComponentCount() {
		t.Fatalf("%d nodes, %d edges, %d components; want %d, %d, %d", got.NodeCount(), got.EdgeCount(), got.ComponentCount(),
			want.NodeCount(), want.EdgeCount(), want.ComponentCount())
	}
	if a, b := got.StronglyConnected(), want.StronglyConnected(); len(a) != len(b) || len(a) > 0 && !reflect.DeepEqual(a, b) {
		t.Fatalf("strongly connected: %v, want %v", a, b)
	}
	for _, id := range ids {
		for _, d := range []graph.Direction{graph.Out, graph.In, graph.Both} {
			a, errA := got.EgoIDs(int64(id), 2, 100, d)
			b, errB := want.EgoIDs(int64(id), 2, 100, d)
			if (errA == nil) != (errB == nil) || !slices.Equal(a, b) {
				t.Fatalf("around %d: %v %v, want %v %v", id, a, errA, b, errB)
			}
		}
	}
}

// TestGraphFollowsWrites writes and deletes at random and holds after each step
// that the view is that of a graph built anew.
func TestGraphFollowsWrites(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	g, ctx := db.Graph(), t.Context()
	rng := rand.New(rand.NewPCG(7, 11))
	namespaces := []string{"x", "y"}
	var entities, relations [2][]ID
	predicates := []string{"p", "q", "P", PredicateSameAs}
	scopes := []string{PublicScope, "private"}
	pick := func(ids []ID) ID { return ids[rng.IntN(len(ids))] }
	for step := range 400 {
		n := rng.IntN(2)
		ns := namespaces[n]
		f := ReadFilter{Namespace: &ns, Scopes: scopes}
		var err error
		switch op := rng.IntN(10); {
		case op < 3 || len(entities[n]) < 3:
			var batch GraphBatch
			for range 1 + rng.IntN(3) {
				batch.Entities = append(batch.Entities, EntityInput{RecordInput: RecordInput{Namespace: &ns, Scope: &scopes[rng.IntN(4)/3]}, Name: fmt.Sprint("e", step)})
			}
			var r *Receipt[GraphBatchResult]
			if r, err = g.ApplyBatch(ctx, batch); err == nil {
				for _, e := range r.Value.Entities {
					entities[n] = append(entities[n], e.ID)
				}
			}
		case op < 7:
			in := RelationInput{RecordInput: RecordInput{Namespace: &ns, Scope: &scopes[rng.IntN(4)/3], Tags: []string{fmt.Sprint("t", rng.IntN(3))}},
				Subject: EntityRef{ID: pick(entities[n])}, Predicate: predicates[min(rng.IntN(8), 3)%4], Object: EntityRef{ID: pick(entities[n])}}
			if len(relations[n]) > 0 && rng.IntN(3) == 0 {
				in.ID, in.Scope = pick(relations[n]), nil
			}
			var r *Receipt[GraphBatchResult]
			if r, err = g.ApplyBatch(ctx, GraphBatch{Relations: []RelationInput{in}}); err == nil {
				relations[n] = append(relations[n], r.Value.Relations[0].ID)
			}
		case op < 8 && len(relations[n]) > 0:
			_, err = g.Delete(ctx, KindRelation, pick(relations[n]), f)
		case op < 9:
			_, err = g.Delete(ctx, KindEntity, pick(entities[n]), f)
		default:
			_, err = db.Memories().Upsert(ctx, MemoryInput{RecordInput: RecordInput{Namespace: &ns}, Judgment: fmt.Sprint(step)})
		}
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
		if step%7 == 3 {
			continue // several commits at once
		}
		if step == 200 {
			db.eng.graphs.drop()
		}
		n = rng.IntN(2)
		ns = namespaces[n]
		err = db.eng.readGraph(ctx, ns, func(tx *store.ReadTx, s *graph.Snapshot) error {
			wantSameGraph(t, s.View(graph.Filter{}, nil), freshGraph(t, db, ns).View(graph.Filter{}, nil), entities[n])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestGraphWhileWriting reads views while several writers write, and holds that
// each shows exactly the graph of its revision.
func TestGraphWhileWriting(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	g, ctx := db.Graph(), t.Context()
	const writers, rounds = 3, 40
	// Each batch adds a star of a hub and two entities, so that every snapshot
	// has three nodes and two edges for each batch.
	star := GraphBatch{
		Entities: []EntityInput{{Ref: "h", Name: "hub"}, {Ref: "a", Name: "a"}, {Ref: "b", Name: "b"}},
		Relations: []RelationInput{
			{Subject: EntityRef{Ref: "h"}, Predicate: "has", Object: EntityRef{Ref: "a"}},
			{Subject: EntityRef{Ref: "h"}, Predicate: "has", Object: EntityRef{Ref: "b"}},
		},
	}
	var writing, reading sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range rounds {
				if _, err := g.ApplyBatch(ctx, star); err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	for range 3 {
		reading.Go(func() {
			last := 0
			for {
				select {
				case <-stop:
					return
				default:
				}
				v, err := g.BuildGraph(ctx, ReadFilter{}, GraphOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				n := v.NodeCount() / 3
				if v.NodeCount() != 3*n || v.EdgeCount() != 2*n || v.ComponentCount() != n || n < last || int64(n) != v.Revision() {
					t.Errorf("at revision %d: %d nodes, %d edges after %d stars", v.Revision(), v.NodeCount(), v.EdgeCount(), last)
					return
				}
				last = n
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	if v := newChart(t, db).view(); v.NodeCount() != 3*writers*rounds {
		t.Errorf("%d nodes", v.NodeCount())
	}
}

// TestGraphsAreBounded asks about more namespaces than are kept.
func TestGraphsAreBounded(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	x := &db.eng.graphs
	for i := range 5 {
		c := newChart(t, db)
		c.ns = fmt.Sprint("n", i)
		c.entities("A", "B")
		c.relate("A", "to", "B")
		c.wantCounts(2, 1, 1)
	}
	x.mu.Lock()
	for _, g := range x.graphs {
		g.bytes = graphBytes // as if they were large
	}
	x.mu.Unlock()
	c := newChart(t, db)
	c.ns = "n3"
	c.entities("C")
	c.wantCounts(3, 1, 2)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.graphs) != 1 {
		t.Errorf("%d graphs are kept", len(x.graphs))
	}
}

// TestGraphFarBehind holds that a graph that nobody asks about does not gather
// changes for ever.
func TestGraphFarBehind(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("A")
	c.wantCounts(1, 0, 1)
	batch := GraphBatch{Entities: make([]EntityInput, graphSlack+1)}
	for i := range batch.Entities {
		batch.Entities[i].Name = "x"
	}
	must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), batch))
	if len(db.eng.graphs.graphs) != 0 {
		t.Error("it is still there")
	}
	c.wantCounts(graphSlack+2, 0, graphSlack+2)
}
