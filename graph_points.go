package loci

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/graph"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
)

// Graphs of agent memories. Unlike that of the entities, such a graph does not
// follow the writes: it is built when it is asked for, and kept until the next
// write, so that several questions in a row pay for it once. To build one of
// 100,000 facts and 500,000 relations takes about a second.

const (
	// pointGraphBytes is about how much memory graphs of points may take. The one
	// asked for last stays, whatever its size.
	pointGraphBytes = 64 << 20
	// pointGraphLimit bounds their number.
	pointGraphLimit = 64
)

// pointGraphs are the graphs of points at the latest revision that one was asked
// for at.
type pointGraphs struct {
	mu   sync.Mutex
	turn chan struct{} // held by whoever builds one
	kept []*pointGraph // the one asked for last at the end
}

// pointGraph is the graph of the points of some places, expired ones included.
type pointGraph struct {
	places   []int64 // ascending
	revision int64
	snapshot *graph.Snapshot
	// expires is when a point expires, by its record, and soonest the first time that
	// one does.
	expires map[int64]int64
	soonest int64
	// predicates numbers the normal forms of the types of relations.
	predicates map[string]int64
}

// building is the turn to build a graph.
func (x *pointGraphs) building() chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.turn == nil {
		x.turn = make(chan struct{}, 1)
	}
	return x.turn
}

// at gives a graph that is kept; nil for none.
func (x *pointGraphs) at(places []int64, revision int64) *pointGraph {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, g := range x.kept {
		if g.revision == revision && slices.Equal(g.places, places) {
			x.kept = append(slices.Delete(x.kept, i, i+1), g)
			return g
		}
	}
	return nil
}

// keep keeps a graph, and gives up those that a write has left behind, and the ones
// asked for longest ago where there is no room for all.
func (x *pointGraphs) keep(g *pointGraph) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = append(slices.DeleteFunc(x.kept, func(o *pointGraph) bool { return o.revision < g.revision }), g)
	total := 0
	for _, o := range x.kept {
		total += o.bytes()
	}
	for len(x.kept) > 1 && (total > pointGraphBytes || len(x.kept) > pointGraphLimit) {
		total -= x.kept[0].bytes()
		x.kept = slices.Delete(x.kept, 0, 1)
	}
}

// bytes is about how much memory the graph takes.
func (g *pointGraph) bytes() int {
	const entry = 48 // of a map of numbers
	return g.snapshot.Bytes() + entry*len(g.expires)
}

// forget gives all graphs up.
func (x *pointGraphs) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept = nil
}

// EgoPoints is Ego for a graph of points: it gives the *Fact, *Episode and
// *Procedure around one. The root is its record, PointHeader.RecordID.
func (s *GraphStore) EgoPoints(ctx context.Context, root ID, f ReadFilter, o EgoOptions) ([]any, error) {
	const op = "graph.ego"
	depth, limit, err := o.check()
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return s.walkPoints(ctx, op, f, o.GraphOptions, func(v *GraphView) ([]ID, error) { return v.EgoIDs(root, depth, limit) })
}

// PathPoints is Path for a graph of points. Both ends are records,
// PointHeader.RecordID.
func (s *GraphStore) PathPoints(ctx context.Context, from, to ID, f ReadFilter, o GraphOptions) ([]any, error) {
	return s.walkPoints(ctx, "graph.path", f, o, func(v *GraphView) ([]ID, error) { return v.PathIDs(from, to) })
}

// walkPoints loads the points that a walk over a view gives.
func (s *GraphStore) walkPoints(ctx context.Context, op string, f ReadFilter, o GraphOptions, ids func(*GraphView) ([]ID, error)) ([]any, error) {
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if !f.ofPoints() {
		return nil, errs.WithOp(op, errs.Invalid("filter.kinds", "must name %s, %s or %s: Ego and Path walk over entities", KindFact, KindEpisode, KindProcedure))
	}
	points := []any{}
	err := s.eng.viewGraph(ctx, f, o, func(tx *store.ReadTx, v *GraphView) error {
		found, err := ids(v)
		if err != nil {
			return err
		}
		points = points[:0]
		for _, id := range found {
			p, err := tx.Point(int64(id))
			if err != nil {
				return err
			}
			if p == nil {
				return errs.New(errs.Index, "the graph knows a point that is not there: retry")
			}
			points = append(points, pointOf(p))
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return points, nil
}

// ofPoints says whether a filter asks for points of agent memories.
func (f *ReadFilter) ofPoints() bool {
	return slices.ContainsFunc(f.Kinds, func(k Kind) bool { return store.Kind(k.number()).IsPoint() })
}

// pointKinds are the kinds of points that a filter asks for; none where it is about
// other records.
func (f *readFilter) pointKinds() (kinds []store.Kind, err error) {
	others := false
	for _, k := range f.kinds {
		if kind := store.Kind(k); !kind.IsPoint() {
			others = true
		} else if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) == 0:
		return nil, nil
	case others:
		return nil, errs.Invalid("filter.kinds", "names %s, %s or %s beside other kinds, and no graph has both", KindFact, KindEpisode, KindProcedure)
	case len(f.Tags) > 0:
		return nil, errs.Invalid("filter.tags", "narrow the relations of a graph, and those between points have none")
	case f.Thread != "":
		return nil, errs.Invalid("filter.thread", "narrows the relations of a graph, and those between points stand in none")
	case len(f.noteIDs) > 0:
		return nil, errs.Invalid("filter.note_ids", "narrow a search: no graph knows notes")
	}
	return kinds, nil
}

// viewPoints is viewGraph for a graph of points of some kinds.
func (e *engine) viewPoints(ctx context.Context, f *readFilter, kinds []store.Kind, d graph.Direction, fn func(*store.ReadTx, *GraphView) error) error {
	return e.readPointGraph(ctx, f, kinds, func(tx *store.ReadTx, g *pointGraph) error {
		covered, err := g.filter(tx, f, e.lifeNow())
		if err != nil {
			return err
		}
		rules, err := g.rules(tx, f.Namespace)
		if err != nil {
			return err
		}
		return fn(tx, &GraphView{view: g.snapshot.View(covered, rules), direction: d, revision: tx.Revision(), points: true})
	})
}

// readPointGraph runs fn with a snapshot of the truth and the graph of points at the
// same revision. One graph is built at a time, since each takes a lot of memory.
func (e *engine) readPointGraph(ctx context.Context, f *readFilter, kinds []store.Kind, fn func(*store.ReadTx, *pointGraph) error) error {
	x := &e.graphs.points
	known := false
	err := e.read(ctx, func(tx *store.ReadTx) error {
		places, err := pointPlaces(tx, f, kinds)
		if err != nil {
			return err
		}
		g := x.at(places, tx.Revision())
		if known = g != nil; !known {
			return nil
		}
		return fn(tx, g)
	})
	if err != nil || known {
		return err
	}
	turn := x.building()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended before the graph was built")
	}
	release := sync.OnceFunc(func() { <-turn })
	defer release()
	return e.read(ctx, func(tx *store.ReadTx) error {
		places, err := pointPlaces(tx, f, kinds)
		if err != nil {
			return err
		}
		g := x.at(places, tx.Revision())
		if g == nil {
			if g, err = buildPointGraph(tx, places); err != nil {
				return err
			}
			x.keep(g)
		}
		release()
		return fn(tx, g)
	})
}

// pointPlaces are where the points lie that a filter covers, ascending.
func pointPlaces(tx *store.ReadTx, f *readFilter, kinds []store.Kind) (places []int64, err error) {
	namespace, ok, err := tx.StringID(f.Namespace)
	if err != nil || !ok {
		return nil, err
	}
	for _, scope := range f.Scopes {
		id, ok, err := tx.StringID(scope)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		of, ok, err := tx.Places(namespace, id)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			if ok {
				places = append(places, of[kind-store.KindFact])
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places), nil
}

// buildPointGraph reads the points of some places and the relations between them.
func buildPointGraph(tx *store.ReadTx, places []int64) (*pointGraph, error) {
	g := &pointGraph{
		places: places, revision: tx.Revision(), expires: map[int64]int64{}, soonest: math.MaxInt64, predicates: map[string]int64{},
	}
	sameAs := g.number(PredicateSameAs)
	predicate := map[int64]int64{} // by the dictionary's id of the type
	var err error
	a := graph.Build(sameAs,
		func(yield func(graph.Node) bool) {
			for _, place := range places {
				err = errors.Join(err, tx.PointIDs(place, func(id int64) bool { return yield(graph.Node{ID: id, Scope: place}) }))
			}
		},
		func(yield func(graph.Edge) bool) {
			for _, source := range places {
				for _, target := range places {
					err = errors.Join(err, g.read(tx, source, target, predicate, yield))
				}
			}
		})
	for _, place := range places {
		err = errors.Join(err, tx.PointExpiries(place, func(id, at int64) {
			g.expires[id], g.soonest = at, min(g.soonest, at)
		}))
	}
	if err == nil {
		err = tx.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	g.snapshot = a.Snapshot()
	return g, nil
}

// read reads the relations from the points of one place to those of another.
// predicate keeps the numbers of the types that were met.
func (g *pointGraph) read(tx *store.ReadTx, source, target int64, predicate map[int64]int64, yield func(graph.Edge) bool) error {
	var wrong error
	n := 0
	err := tx.EdgesBetween(source, target, func(e store.Edge) bool {
		number, ok := predicate[e.Predicate]
		if !ok {
			typ, err := tx.String(e.Predicate)
			if err != nil {
				wrong = err
				return false
			}
			number = g.number(normalize(typ))
			predicate[e.Predicate] = number
		}
		if n++; n%(1<<12) == 0 && tx.Context().Err() != nil {
			return false
		}
		return yield(graph.Edge{ID: e.ID, Subject: e.Subject, Predicate: number, Object: e.Object, Scope: source, CreatedAt: e.Created})
	})
	return errors.Join(err, wrong)
}

// number is the number of a predicate, 1 and up.
func (g *pointGraph) number(normal string) int64 {
	n, ok := g.predicates[normal]
	if !ok {
		n = int64(len(g.predicates)) + 1
		g.predicates[normal] = n
	}
	return n
}

// filter is a filter as a view of the graph takes it, for points that are live at now.
func (g *pointGraph) filter(tx *store.ReadTx, f *readFilter, now int64) (out graph.Filter, err error) {
	if g.soonest <= now {
		out.Node = func(n graph.Node) bool {
			at, ok := g.expires[n.ID]
			return !ok || at > now
		}
	}
	var covered map[int64]bool
	if len(f.where) > 0 {
		// The graph does not know properties, so the relations are looked through.
		if covered, err = edgesWhere(tx, g.places, f.where); err != nil {
			return out, err
		}
	}
	if covered == nil && f.From == nil && f.To == nil {
		return out, nil
	}
	from, to := f.From, f.To
	out.Edge = func(e graph.Edge) bool {
		return (covered == nil || covered[e.ID]) && (from == nil || e.CreatedAt >= *from) && (to == nil || e.CreatedAt < *to)
	}
	return out, nil
}

// edgesWhere gives the relations from the points of some places whose properties meet
// conditions.
func edgesWhere(tx *store.ReadTx, places []int64, where []index.Condition) (map[int64]bool, error) {
	covered := map[int64]bool{}
	for _, place := range places {
		for after := (*uint64)(nil); ; {
			found, err := tx.PointEdgesIn(place, after, MaxPage)
			if err != nil {
				return nil, err
			}
			for _, e := range found {
				after = &e.Key
				members, err := meta.Scan(e.Properties)
				if err != nil {
					return nil, errs.Wrap(errs.Storage, err, "the properties of relation %d are damaged", e.Key)
				}
				attributes := meta.Attributes(members)
				if !slices.ContainsFunc(where, func(c index.Condition) bool { return !index.Match(c, attributes) }) {
					covered[e.ID] = true
				}
			}
			if len(found) < MaxPage {
				break
			}
			if err := tx.Context().Err(); err != nil {
				return nil, err
			}
		}
	}
	return covered, nil
}

// rules gives the rules that hold in a namespace, in the graph's numbers. A rule for
// a predicate that no relation has is left out.
func (g *pointGraph) rules(tx *store.ReadTx, namespace string) (graph.Rules, error) {
	id, _, err := tx.StringID(namespace)
	if err != nil {
		return nil, err
	}
	stored, err := tx.PredicateRules(id)
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	rules := graph.Rules{}
	for _, r := range stored { // a namespace's own come last and win
		predicate, ok := g.predicates[r.Predicate]
		if !ok {
			continue
		}
		rule := graph.Rule{Symmetric: r.Symmetric}
		if r.Inverse != "" {
			if rule.Inverse, ok = g.predicates[r.Inverse]; !ok {
				rule.Inverse = unknownPredicate
			}
		}
		rules[predicate] = rule
	}
	return rules, nil
}
