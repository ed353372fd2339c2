package loci

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// vectorPath is what the vector path of a search was prepared with, before the
// search's snapshot.
type vectorPath struct {
	known  bool         // the space was there
	space  *store.Space // with query
	query  []float32    // of unit length; nil: the query has no vector
	code   Degrade      // why it has none, if there is more to say than that none was needed
	pruned bool
	ids    []int64  // under prune: all that the path may look at, ascending
	weight *float64 // what the embedder says of itself
	fusion Fusion
}

// sees says whether the path may look at a record, as far as prune goes.
func (v *vectorPath) sees(id int64) bool {
	if !v.pruned {
		return true
	}
	_, ok := slices.BinarySearch(v.ids, id)
	return ok
}

// vectorScope is what the vector path may look at in a snapshot.
type vectorScope struct {
	space   *store.Space // nil: the path stands aside
	kinds   []index.Kind // that have vectors; none: likewise
	missing []VectorMissing
	code    Degrade // why the path stands aside; "" when nothing was to be expected of it
}

// prepareVectors has the query embedded for searches that have it in common, with
// its namespace and space, if the vector path of any of them will run. It ends the
// stages prepare and embed.
func (e *engine) prepareVectors(ctx context.Context, t *trace, plans ...*searchPlan) ([]*vectorPath, error) {
	paths := make([]*vectorPath, len(plans))
	for i, p := range plans {
		paths[i] = &vectorPath{}
		if err := e.prune(ctx, p, paths[i]); err != nil {
			return nil, err
		}
	}
	if e.embedders.count.Load() == 0 {
		for _, v := range paths {
			v.code = DegradeNoEmbedder
		}
		t.stage("prepare")
		return paths, nil
	}
	var space *store.Space
	err := e.readKeptPair(ctx, func(tx *store.ReadTx, view index.View) error {
		space = nil
		for i, p := range plans {
			if p.req.NoVector {
				continue
			}
			scope, err := e.vectorScope(tx, view, p, p.req.EmbedSpace)
			if err != nil {
				return err
			}
			paths[i].known = scope.space != nil
			if len(scope.kinds) > 0 {
				space = scope.space
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.stage("prepare")
	if space == nil {
		return paths, nil
	}
	ready := vectorPath{known: true, code: DegradeNoEmbedder}
	// A space made again under its name meanwhile is another one.
	if b := e.embedderOf(space.Name); b != nil && b.space.ID == space.ID {
		ready.code = DegradeEmbedFailed
		if query := e.embedQuery(ctx, b, plans[0].req.Query); len(query) == space.Dimension {
			ready = vectorPath{known: true, space: space, query: query, weight: b.weight, fusion: b.fusion}
		}
		t.stage("embed")
	}
	for _, v := range paths {
		pruned, ids := v.pruned, v.ids
		*v = ready
		v.pruned, v.ids = pruned, ids
	}
	return paths, ctx.Err()
}

// embedQuery turns a query into a vector of unit length; nil when that fails.
func (e *engine) embedQuery(ctx context.Context, b *boundEmbedder, query string) []float32 {
	ctx, stop := e.untilClosing(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, e.models.embedWait())
	defer cancel()
	vectors, err := b.embed(ctx, []string{query}, embed.Query)
	if err != nil || len(vectors) != 1 {
		return nil // the search says embed_failed
	}
	return vectors[0]
}

// vectorScope says what the vector path of a search may look at. asked is the
// space's name; "" leaves it to the namespace. The view may be nil.
//
// Reasons to stand aside come in this order: no space, although there are some;
// the namespace is switched off; the tiers of what is asked for are, which is no
// reason to tell; there are records and not one vector. A space that is asked for
// and unknown is ErrNotFound unless switches keep the path from it anyway.
func (e *engine) vectorScope(tx *store.ReadTx, view index.View, p *searchPlan, asked string) (s vectorScope, err error) {
	namespace := p.filter.Namespace
	if asked == "" {
		if s.space, err = e.searchSpace(tx, namespace, ""); err != nil {
			return s, err
		}
		if s.space == nil {
			return e.noSpace(tx, p)
		}
	}
	on, err := e.switchesOf(tx, namespace)
	if err != nil {
		return s, err
	}
	if !on.master() {
		s.code = DegradeNamespaceDisabled
		return s, nil
	}
	kinds := p.vectorKinds()
	kinds = slices.DeleteFunc(kinds, func(k index.Kind) bool { return !on.tier(tierOf(k)) })
	if len(kinds) == 0 {
		return s, nil
	}
	if asked != "" {
		if s.space, err = e.searchSpace(tx, namespace, asked); err != nil {
			return s, err
		}
	}
	return s, e.countVectors(tx, view, p, kinds, &s)
}

// noSpace is the scope where there is no space to search in. A store that knows
// of none at all does without vectors, which is nothing to tell of.
func (e *engine) noSpace(tx *store.ReadTx, p *searchPlan) (s vectorScope, err error) {
	if p.req.NoText {
		return s, errs.Invalid("no_text", "leaves no path to search by: there is no embedding space to search in; register one or name one as embed_space")
	}
	spaces, err := tx.Spaces()
	if len(spaces) > 0 {
		s.code = DegradeNoSpace
	}
	return s, err
}

// vectorKinds are the kinds that the vector path is asked for.
func (p *searchPlan) vectorKinds() []index.Kind {
	kinds := slices.Clone(p.kinds)
	if p.req.Prune != nil {
		kinds = slices.DeleteFunc(kinds, func(k index.Kind) bool { return k != index.Kind(store.KindEntity) })
	}
	return kinds
}

// countVectors leaves of the kinds those that take part, and says what of them is
// missing. Without a view nothing is known of that and all take part.
func (e *engine) countVectors(tx *store.ReadTx, view index.View, p *searchPlan, kinds []index.Kind, s *vectorScope) error {
	namespace, ok, err := tx.StringID(p.filter.Namespace)
	if err != nil || !ok {
		return err
	}
	ready := map[Tier]bool{}
	some := false
	for _, k := range kinds {
		tier := tierOf(k)
		if _, known := ready[tier]; !known {
			ready[tier] = true
			if p.req.RequireReady {
				if ready[tier], err = e.vectorReady(tx, namespace, s.space.ID, tier); err != nil {
					return err
				}
			}
		}
		n := index.VectorCount{Records: 1, Vectors: 1}
		var left int64 // texts that the model will not have: nothing is to come of them
		if view != nil {
			n = view.CountVectors(s.space.ID, namespace, k)
			left = e.leftOf(s.space, namespace, k)
		}
		some = some || n.Records > 0
		if n.Vectors > 0 && ready[tier] {
			s.kinds = append(s.kinds, k)
		}
		if missing := n.Records - n.Vectors - left; missing > 0 {
			s.addMissing(tier, missing, n.Records)
		}
	}
	if some && len(s.kinds) == 0 {
		s.code = DegradeVectorNotReady
	}
	return nil
}

func (s *vectorScope) addMissing(tier Tier, missing, total int64) {
	i := slices.IndexFunc(s.missing, func(m VectorMissing) bool { return m.Tier == tier })
	if i < 0 {
		i = len(s.missing)
		s.missing = append(s.missing, VectorMissing{Tier: tier})
	}
	s.missing[i].Missing += missing
	s.missing[i].Total += total
}

// prune finds the entities that the vector path is narrowed to. The graph is
// walked on a snapshot of its own, just before the search's; what goes in between
// is found by neither.
func (e *engine) prune(ctx context.Context, p *searchPlan, v *vectorPath) error {
	around := p.req.Prune
	if around == nil || p.req.NoVector {
		return nil
	}
	v.pruned = true
	// What narrows the hits to look for does not narrow the graph, apart from
	// where it lies.
	f := ReadFilter{Namespace: &p.filter.Namespace, Scopes: p.filter.Scopes}
	return e.viewGraph(ctx, f, GraphOptions{}, func(_ *store.ReadTx, g *GraphView) error {
		root, ok := g.view.Resolve(int64(around.Root))
		if !ok {
			return &errs.Error{Code: errs.NotFound, Field: "prune.root", Message: "there is no such entity under the filter"}
		}
		ids, err := g.view.EgoIDs(root, around.Depth, around.Limit-1, g.direction)
		if err != nil {
			return err
		}
		v.ids = append(ids, root, int64(around.Root))
		slices.Sort(v.ids)
		v.ids = slices.Compact(v.ids)
		return nil
	})
}
