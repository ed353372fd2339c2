package op

import (
	"context"
	"slices"

	"github.com/loci-memory/loci"
)

// GraphStats are the figures of a graph.
type GraphStats struct {
	NodeCount      int   `json:"node_count"`      // entities, or points of agent memory; those declared the same are one
	EdgeCount      int   `json:"edge_count"`      // relations and what predicate rules add to them
	ComponentCount int   `json:"component_count"` // parts that no edge connects
	Revision       int64 `json:"revision"`        // the store's revision that this is about
}

// EgoQuery asks for the entities around one, or for points of agent memory.
type EgoQuery struct {
	Root loci.ID `json:"root"` // the entity's id, or the point's record_id
	loci.EgoOptions
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// PathQuery asks for a way from one entity to another, or from one point of agent
// memory.
type PathQuery struct {
	From loci.ID `json:"from"` // the entity's id where it begins, or the point's record_id
	To   loci.ID `json:"to"`   // the entity's id where it ends, or the point's record_id
	loci.GraphOptions
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// FoundEntities are entities in the order in which they were found or, where the
// filter's kinds are of agent memory, its points.
type FoundEntities struct {
	Entities []loci.Entity `json:"entities"`         // empty when there is none, or no way
	Points   []any         `json:"points,omitempty"` // facts, episodes and procedures
}

// ofPoints says whether a filter asks for points of agent memory.
func ofPoints(f *loci.ReadFilter) bool {
	return slices.ContainsFunc(f.Kinds, func(k loci.Kind) bool {
		return k == loci.KindFact || k == loci.KindEpisode || k == loci.KindProcedure
	})
}

// foundPoints is the answer where points are asked for.
func foundPoints(points []any, err error) (*FoundEntities, error) {
	return &FoundEntities{Entities: []loci.Entity{}, Points: points}, err
}

// graphKinds is how a graph of points is asked for.
const graphKinds = " With the filter's kinds fact, episode and procedure, or some of them, the nodes are the live points of " +
	"agent memory and the edges the relations between them."

// GraphPart asks about a part of the graph.
type GraphPart struct {
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// StrongComponents are sets of entities.
type StrongComponents struct {
	Components [][]loci.ID `json:"components"` // ids ascending, sets by their first
}

func graphViewOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "graph.stats",
			Summary:     "Count the nodes, edges and components of a graph",
			Description: "Entities are the nodes; relations, and what predicate rules add to them, the edges. Entities that sys:same_as relates are one node." + graphKinds,
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"GraphStore.BuildGraph"},
		}, func(ctx context.Context, db *loci.DB, in GraphPart) (*GraphStats, error) {
			v, err := db.Graph().BuildGraph(ctx, in.Filter, loci.GraphOptions{})
			if err != nil {
				return nil, err
			}
			return &GraphStats{v.NodeCount(), v.EdgeCount(), v.ComponentCount(), v.Revision()}, nil
		}),
		Define(Spec{
			Name:        "graph.ego",
			Summary:     "Find the entities around one, nearest first",
			Description: "Walks the relations, and what predicate rules add to them, for as many steps as depth says." + graphKinds,
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"root"},
			Covers:     []string{"GraphStore.Ego", "GraphStore.EgoPoints"},
		}, func(ctx context.Context, db *loci.DB, in EgoQuery) (*FoundEntities, error) {
			if ofPoints(&in.Filter) {
				return foundPoints(db.Graph().EgoPoints(ctx, in.Root, in.Filter, in.EgoOptions))
			}
			found, err := db.Graph().Ego(ctx, in.Root, in.Filter, in.EgoOptions)
			return &FoundEntities{Entities: found}, err
		}),
		Define(Spec{
			Name:        "graph.path",
			Summary:     "Find a shortest path from one entity to another",
			Description: "Gives the entities on the path, both ends included; none when no path leads there." + graphKinds,
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"from", "to"},
			Covers:     []string{"GraphStore.Path", "GraphStore.PathPoints"},
		}, func(ctx context.Context, db *loci.DB, in PathQuery) (*FoundEntities, error) {
			if ofPoints(&in.Filter) {
				return foundPoints(db.Graph().PathPoints(ctx, in.From, in.To, in.Filter, in.GraphOptions))
			}
			found, err := db.Graph().Path(ctx, in.From, in.To, in.Filter, in.GraphOptions)
			return &FoundEntities{Entities: found}, err
		}),
		Define(Spec{
			Name:        "graph.strongly_connected",
			Summary:     "Find the sets of entities that lead to each other",
			Description: "Each set has more than one entity, and from each of its entities relations lead to every other." + graphKinds,
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"GraphStore.StronglyConnected"},
		}, func(ctx context.Context, db *loci.DB, in GraphPart) (*StrongComponents, error) {
			found, err := db.Graph().StronglyConnected(ctx, in.Filter)
			return &StrongComponents{found}, err
		}),
	}
}
