package op

import (
	"context"

	"github.com/loci-memory/loci"
)

// GraphStats are the figures of a graph.
type GraphStats struct {
	NodeCount      int   `json:"node_count"`      // entities; those declared the same are one
	EdgeCount      int   `json:"edge_count"`      // relations and what predicate rules add to them
	ComponentCount int   `json:"component_count"` // parts that no edge connects
	Revision       int64 `json:"revision"`        // the store's revision that this is about
}

// EgoQuery asks for the entities around one.
type EgoQuery struct {
	Root loci.ID `json:"root"` // the entity's id
	loci.EgoOptions
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// PathQuery asks for a way from one entity to another.
type PathQuery struct {
	From loci.ID `json:"from"` // the entity's id where it begins
	To   loci.ID `json:"to"`   // the entity's id where it ends
	loci.GraphOptions
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// FoundEntities are entities in the order in which they were found.
type FoundEntities struct {
	Entities []loci.Entity `json:"entities"` // empty when there is none, or no way
}

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
			Description: "Entities are the nodes; relations, and what predicate rules add to them, the edges. Entities that sys:same_as relates are one node.",
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
			Description: "Walks the relations, and what predicate rules add to them, for as many steps as depth says.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"root"},
			Covers:     []string{"GraphStore.Ego"},
		}, func(ctx context.Context, db *loci.DB, in EgoQuery) (*FoundEntities, error) {
			found, err := db.Graph().Ego(ctx, in.Root, in.Filter, in.EgoOptions)
			return &FoundEntities{found}, err
		}),
		Define(Spec{
			Name:        "graph.path",
			Summary:     "Find a shortest path from one entity to another",
			Description: "Gives the entities on the path, both ends included; none when no path leads there.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"from", "to"},
			Covers:     []string{"GraphStore.Path"},
		}, func(ctx context.Context, db *loci.DB, in PathQuery) (*FoundEntities, error) {
			found, err := db.Graph().Path(ctx, in.From, in.To, in.Filter, in.GraphOptions)
			return &FoundEntities{found}, err
		}),
		Define(Spec{
			Name:        "graph.strongly_connected",
			Summary:     "Find the sets of entities that lead to each other",
			Description: "Each set has more than one entity, and from each of its entities relations lead to every other.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"GraphStore.StronglyConnected"},
		}, func(ctx context.Context, db *loci.DB, in GraphPart) (*StrongComponents, error) {
			found, err := db.Graph().StronglyConnected(ctx, in.Filter)
			return &StrongComponents{found}, err
		}),
	}
}
