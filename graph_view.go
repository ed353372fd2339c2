package loci

import (
	"context"
	"errors"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/graph"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// GraphOptions say how a graph is walked.
type GraphOptions struct {
	Direction Direction `json:"direction,omitempty"` // out (default), in or both
}

// EgoOptions say how far an ego network reaches.
type EgoOptions struct {
	GraphOptions
	Depth *int `json:"depth,omitempty"` // steps from the root; default 1
	Limit *int `json:"limit,omitempty"` // entities, nearest first; 1..10000, default 50
}

// GraphView is the graph that a filter covers, as it was when BuildGraph gave
// it: nodes are entities, edges relations and what predicate rules add to them.
// Entities that PredicateSameAs declares to be the same are one node; the ids of
// all of them are understood, and one of them, always the same one, is given for
// it. A view never changes, needs no closing and is safe for concurrent use. It
// keeps working when its store is closed.
//
// Where the filter's kinds are of agent memory, nodes are the points that were live
// then, by their records, PointHeader.RecordID, and edges the relations between
// them.
type GraphView struct {
	view      *graph.View
	direction graph.Direction
	revision  int64
	points    bool // rather than entities
}

// Revision is the store's revision that the view shows.
func (v *GraphView) Revision() int64 { return v.revision }

// NodeCount is the number of nodes, isolated ones included.
func (v *GraphView) NodeCount() int { return v.view.NodeCount() }

// EdgeCount is the number of edges, those that rules add included.
func (v *GraphView) EdgeCount() int { return v.view.EdgeCount() }

// ComponentCount is the number of parts that no edge connects, whichever way
// edges go.
func (v *GraphView) ComponentCount() int { return v.view.ComponentCount() }

// EgoIDs gives the entities at most depth steps from root, nearest first, by
// ascending id within a distance, root left out, at most limit of them. An
// entity that the view does not cover is ErrNotFound.
func (v *GraphView) EgoIDs(root ID, depth, limit int) ([]ID, error) {
	const op = "graph.ego"
	if depth < 0 {
		return nil, errs.WithOp(op, errs.Invalid("depth", "must not be negative"))
	}
	if limit < 0 {
		return nil, errs.WithOp(op, errs.Invalid("limit", "must not be negative"))
	}
	ids, err := v.view.EgoIDs(int64(root), depth, limit, v.direction)
	return asIDs(ids), errs.WithOp(op, v.named(err))
}

// PathIDs gives a shortest path by number of steps, both ends included, among
// several the one of the lowest ids; none when no path leads from one to the
// other. An entity that the view does not cover is ErrNotFound.
func (v *GraphView) PathIDs(from, to ID) ([]ID, error) {
	ids, err := v.view.PathIDs(int64(from), int64(to), v.direction)
	return asIDs(ids), errs.WithOp("graph.path", v.named(err))
}

// named makes the error for a node that the view does not cover name what its nodes
// are.
func (v *GraphView) named(err error) error {
	var e *errs.Error
	if !v.points || !errors.As(err, &e) || e.Code != errs.NotFound {
		return err
	}
	return &errs.Error{Code: errs.NotFound, Field: e.Field, Message: "no record of a live point under this filter"}
}

// StronglyConnected gives the sets of more than one node in which edges lead
// from each to every other. Sets and ids ascend.
func (v *GraphView) StronglyConnected() [][]ID {
	found := v.view.StronglyConnected()
	out := make([][]ID, len(found))
	for i, ids := range found {
		out[i] = asIDs(ids)
	}
	return out
}

func asIDs(ids []int64) []ID {
	out := make([]ID, len(ids))
	for i, id := range ids {
		out[i] = ID(id)
	}
	return out
}

var directions = map[Direction]graph.Direction{
	"": graph.Out, DirectionOut: graph.Out, DirectionIn: graph.In, DirectionBoth: graph.Both,
}

// BuildGraph gives a view of the graph that a filter covers. Namespace and
// scopes hold for entities and relations; tags, times, thread and metadata
// conditions narrow the relations only, so that the entities stay as nodes.
//
// With the kinds KindFact, KindEpisode and KindProcedure, or some of these, it is the
// graph of the agent memories of the scopes: the points of these kinds that are live
// and the relations between them, with the types of these as predicates. There,
// conditions are on the properties of relations, and tags and threads, which these do
// not have, are ErrValidation. To build it takes time and memory that grow with the
// number of points and relations; it is kept until the next write.
func (s *GraphStore) BuildGraph(ctx context.Context, f ReadFilter, o GraphOptions) (*GraphView, error) {
	const op = "graph.build"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	var v *GraphView
	err := s.eng.viewGraph(ctx, f, o, func(_ *store.ReadTx, view *GraphView) error {
		v = view
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return v, nil
}

// Ego gives the entities around one, nearest first, itself left out.
func (s *GraphStore) Ego(ctx context.Context, root ID, f ReadFilter, o EgoOptions) ([]Entity, error) {
	const op = "graph.ego"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	depth, limit, err := o.check()
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return s.walk(ctx, op, f, o.GraphOptions, func(v *GraphView) ([]ID, error) { return v.EgoIDs(root, depth, limit) })
}

// check gives the depth and the limit, or their defaults.
func (o *EgoOptions) check() (depth, limit int, err error) {
	depth = 1
	if o.Depth != nil {
		depth = *o.Depth
	}
	limit, err = checkLimit("limit", o.Limit, defaultPage)
	return depth, limit, err
}

// Path gives the entities of a shortest path, both ends included; none when no
// path leads from one to the other.
func (s *GraphStore) Path(ctx context.Context, from, to ID, f ReadFilter, o GraphOptions) ([]Entity, error) {
	const op = "graph.path"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	return s.walk(ctx, op, f, o, func(v *GraphView) ([]ID, error) { return v.PathIDs(from, to) })
}

// StronglyConnected gives the sets of more than one entity in which edges lead
// from each to every other, as GraphView does.
func (s *GraphStore) StronglyConnected(ctx context.Context, f ReadFilter) ([][]ID, error) {
	const op = "graph.strongly_connected"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	var sets [][]ID
	err := s.eng.viewGraph(ctx, f, GraphOptions{}, func(_ *store.ReadTx, v *GraphView) error {
		sets = v.StronglyConnected()
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return sets, nil
}

// walk loads the entities that a walk over a view gives.
func (s *GraphStore) walk(ctx context.Context, op string, f ReadFilter, o GraphOptions, ids func(*GraphView) ([]ID, error)) ([]Entity, error) {
	if f.ofPoints() {
		return nil, errs.WithOp(op, errs.Invalid("filter.kinds", "names points of agent memory, and this gives entities: EgoPoints and PathPoints give points"))
	}
	entities := []Entity{}
	err := s.eng.viewGraph(ctx, f, o, func(tx *store.ReadTx, v *GraphView) error {
		entities = entities[:0]
		found, err := ids(v)
		if err != nil {
			return err
		}
		for _, id := range found {
			r, err := tx.Entity(int64(id))
			if err != nil {
				return err
			}
			if r == nil {
				return errs.New(errs.Index, "the graph knows an entity that is not there: rebuild the indexes")
			}
			entities = append(entities, entityOf(r))
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return entities, nil
}

// viewGraph runs fn with a view and the snapshot of the truth that it shows.
func (e *engine) viewGraph(ctx context.Context, f ReadFilter, o GraphOptions, fn func(*store.ReadTx, *GraphView) error) error {
	direction, ok := directions[o.Direction]
	if !ok {
		return errs.Invalid("direction", "must be out, in or both")
	}
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return err
	}
	kinds, err := filter.pointKinds()
	if err != nil {
		return err
	}
	if len(kinds) > 0 {
		return e.viewPoints(ctx, filter, kinds, direction, fn)
	}
	return e.readGraph(ctx, filter.Namespace, func(tx *store.ReadTx, snapshot *graph.Snapshot) error {
		covered, err := filter.graph(tx)
		if err != nil {
			return err
		}
		rules, err := graphRules(tx, filter.Namespace)
		if err != nil {
			return err
		}
		return fn(tx, &GraphView{view: snapshot.View(covered, rules), direction: direction, revision: tx.Revision()})
	})
}

// covers says whether the filter covers records of a kind at all.
func (f *readFilter) coversKind(kind store.Kind) bool {
	return len(f.noteIDs) == 0 && (len(f.kinds) == 0 || slices.Contains(f.kinds, index.Kind(kind)))
}

// graph is the filter as a view takes it.
func (f *readFilter) graph(tx *store.ReadTx) (out graph.Filter, err error) {
	out.Scopes = []int64{}
	if !f.coversKind(store.KindEntity) {
		return out, nil
	}
	for _, scope := range f.Scopes {
		id, ok, err := tx.StringID(scope)
		if err != nil {
			return out, err
		}
		if ok {
			out.Scopes = append(out.Scopes, id)
		}
	}
	any := f.coversKind(store.KindRelation)
	for _, tag := range f.Tags {
		id, ok, err := tx.StringID(tag)
		if err != nil {
			return out, err
		}
		any = any && ok
		out.Tags = append(out.Tags, id)
	}
	switch {
	case !any:
		out.Edge = func(graph.Edge) bool { return false }
	case f.Thread != "" || len(f.where) > 0:
		// The graph does not know these, so the relations are looked through.
		covered := map[int64]bool{}
		relations := f.Filter
		relations.Kind = store.KindRelation
		err := tx.Scan(relations, 0, 0, func(r store.Stored) (bool, error) {
			if f.coversMetadata(r.Head()) {
				covered[r.Head().ID] = true
			}
			return true, tx.Context().Err()
		})
		if err != nil {
			return out, err
		}
		out.Edge = func(e graph.Edge) bool { return covered[e.ID] }
	case f.From != nil || f.To != nil:
		from, to := f.From, f.To
		out.Edge = func(e graph.Edge) bool {
			return (from == nil || e.CreatedAt >= *from) && (to == nil || e.CreatedAt < *to)
		}
	}
	return out, nil
}

// graphRules gives the rules that hold in a namespace, in the dictionary's
// numbers. A rule for a predicate that nothing uses is left out.
func graphRules(tx *store.ReadTx, namespace string) (graph.Rules, error) {
	id, _, err := tx.StringID(namespace)
	if err != nil {
		return nil, err
	}
	stored, err := tx.PredicateRules(id)
	if err != nil || len(stored) == 0 {
		return nil, err
	}
	rules := make(graph.Rules, len(stored))
	for _, r := range stored { // a namespace's own come last and win
		predicate, ok, err := tx.StringID(r.Predicate)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		rule := graph.Rule{Symmetric: r.Symmetric}
		if r.Inverse != "" {
			if rule.Inverse, ok, err = tx.StringID(r.Inverse); err != nil {
				return nil, err
			}
			if !ok {
				rule.Inverse = unknownPredicate
			}
		}
		rules[predicate] = rule
	}
	return rules, nil
}

// unknownPredicate is the number of a predicate that no relation has: the edges
// that a rule adds under it are there all the same.
const unknownPredicate = -1
