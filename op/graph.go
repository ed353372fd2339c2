package op

import (
	"context"

	"github.com/loci-memory/loci"
)

// Match says which entity one without an id becomes.
type Match string

// The matches.
const (
	matchName Match = Match(loci.MatchByName) // the one of that name and type in the scope, or a new one
	matchNone Match = "none"                  // always a new one
)

// EntityWrite is an entity to write. It differs from loci.EntityInput in that
// it matches by name unless told otherwise.
type EntityWrite struct {
	loci.EntityInput
	Match Match `json:"match,omitempty"` // without an id: name (default) merges with the entity of that name and type in the scope, none makes a new one
}

// GraphWrite is written whole or not at all, entities first, then relations,
// then events.
type GraphWrite struct {
	Entities  []EntityWrite        `json:"entities,omitempty"`  // at most 10000 records in one batch
	Relations []loci.RelationInput `json:"relations,omitempty"` // without an id, one of the same subject, predicate and object is merged with
	Events    []loci.EventInput    `json:"events,omitempty"`    // without an id, one of the same name and participants is merged with
}

func (w GraphWrite) batch() loci.GraphBatch {
	b := loci.GraphBatch{Relations: w.Relations, Events: w.Events, Entities: make([]loci.EntityInput, len(w.Entities))}
	for i, e := range w.Entities {
		b.Entities[i] = e.EntityInput
		if e.Match == matchName || e.Match == "" && e.ID == 0 {
			b.Entities[i].Match = loci.MatchByName
		}
	}
	return b
}

// OneGraphRecord names a record of the graph and the filter it must be under.
type OneGraphRecord struct {
	Kind   loci.Kind       `json:"kind"` // entity, relation or event
	ID     loci.ID         `json:"id"`   // the record's id
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// GraphRecord is a record of the graph.
type GraphRecord struct {
	Kind   loci.Kind `json:"kind"`
	Record any       `json:"record"` // an entity, a relation or an event
}

// GraphPage asks for one page of records of the graph in ascending id order.
type GraphPage struct {
	Kind loci.Kind `json:"kind"` // entity, relation or event
	loci.PageRequest
}

// ResolveName asks who goes by a name.
type ResolveName struct {
	Name   string          `json:"name"` // a name or an alias; case, width and blanks do not matter
	Filter loci.ReadFilter `json:"filter,omitzero"`
	Limit  *int            `json:"limit,omitempty"` // 1..10000, default 50
}

// ResolvedEntities are the entities that go by a name, best first.
type ResolvedEntities struct {
	Entities []loci.Entity `json:"entities"` // by name before by alias
}

// AroundEntity asks for what lies around an entity.
type AroundEntity struct {
	ID     loci.ID         `json:"id"` // the entity's id
	Filter loci.ReadFilter `json:"filter,omitzero"`
	Limit  *int            `json:"limit,omitempty"` // 1..10000, default 50
}

// EntityEvents are the events of an entity.
type EntityEvents struct {
	Events []loci.Event `json:"events"` // ascending by id
}

func graphOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "graph.apply_batch",
			Summary:     "Write entities, relations and events in one transaction",
			Description: "Everything is written or nothing is. Relations and events name entities by id, or by the ref that an entity of the same batch carries. What is known already is merged instead of kept twice, so the same batch may be sent again: an entity of the same name and type, a relation of the same ends and predicate, an event of the same name and participants, each within its namespace and scope.",
			Texts:       []string{"entities[].name!", "entities[].summary", "entities[].evidence[].quote", "relations[].reason", "relations[].evidence[].quote", "events[].name!", "events[].summary", "events[].reason", "events[].evidence[].quote"},
			Covers:      []string{"GraphStore.ApplyBatch"},
		}, func(ctx context.Context, db *loci.DB, in GraphWrite) (*loci.Receipt[loci.GraphBatchResult], error) {
			return db.Graph().ApplyBatch(ctx, in.batch())
		}),
		Define(Spec{
			Name:     "graph.get",
			Summary:  "Read one entity, relation or event by id",
			ReadOnly: true, Idempotent: true,
			Positional: []string{"kind", "id"},
			Covers:     []string{"GraphStore.Get"},
		}, func(ctx context.Context, db *loci.DB, in OneGraphRecord) (*GraphRecord, error) {
			r, err := db.Graph().Get(ctx, in.Kind, in.ID, in.Filter)
			if err != nil {
				return nil, err
			}
			return &GraphRecord{Kind: in.Kind, Record: r}, nil
		}),
		Define(Spec{
			Name:        "graph.list",
			Summary:     "List entities, relations or events by ascending id, page by page",
			Description: "The answer's next_cursor, given as after, asks for the next page; without one this was the last.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"kind"},
			Covers:     []string{"GraphStore.List"},
		}, func(ctx context.Context, db *loci.DB, in GraphPage) (*loci.Page[any], error) {
			return db.Graph().List(ctx, in.Kind, in.PageRequest)
		}),
		Define(Spec{
			Name:        "graph.resolve",
			Summary:     "Find the entities that go by a name",
			Description: "Those whose own name it is come before those that have it as an alias; among these, those with more relations come first.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"name"},
			Covers:     []string{"GraphStore.Resolve"},
		}, func(ctx context.Context, db *loci.DB, in ResolveName) (*ResolvedEntities, error) {
			found, err := db.Graph().Resolve(ctx, in.Name, in.Filter, in.Limit)
			if err != nil {
				return nil, err
			}
			return &ResolvedEntities{found}, nil
		}),
		Define(Spec{
			Name:        "graph.neighbors",
			Summary:     "Read the relations of an entity and the entities at their other ends",
			Description: "One hop, whichever way the relations go, the lowest relation ids first. The filter's scopes hold for the entities too, its other conditions for the relations only.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"id"},
			Covers:     []string{"GraphStore.Neighbors"},
		}, func(ctx context.Context, db *loci.DB, in AroundEntity) (*loci.Neighborhood, error) {
			return db.Graph().Neighbors(ctx, in.ID, in.Filter, in.Limit)
		}),
		Define(Spec{
			Name:        "graph.events_for_entity",
			Summary:     "Read the events that an entity takes part in",
			Description: "The filter's scopes hold for the entity too, its other conditions for the events only.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"id"},
			Covers:     []string{"GraphStore.EventsForEntity"},
		}, func(ctx context.Context, db *loci.DB, in AroundEntity) (*EntityEvents, error) {
			found, err := db.Graph().EventsForEntity(ctx, in.ID, in.Filter, in.Limit)
			if err != nil {
				return nil, err
			}
			return &EntityEvents{found}, nil
		}),
		Define(Spec{
			Name:        "graph.delete",
			Summary:     "Delete one entity, relation or event by id",
			Description: "An entity that a relation or an event refers to is a conflict. The value is false when there was nothing under the filter.",
			Idempotent:  true, Destructive: true,
			Positional: []string{"kind", "id"},
			Covers:     []string{"GraphStore.Delete"},
		}, func(ctx context.Context, db *loci.DB, in OneGraphRecord) (*loci.Receipt[bool], error) {
			return db.Graph().Delete(ctx, in.Kind, in.ID, in.Filter)
		}),
		Define(Spec{
			Name:        "graph.delete_by_filter",
			Summary:     "Delete every entity, relation and event that a filter covers",
			Description: "The filter must name its namespace and its scopes, or all must be true, which takes the defaults. An entity that is referred to by something the filter does not cover is a conflict, and nothing is deleted. With dry_run nothing is deleted and the value is the number that would be.",
			Idempotent:  true, Destructive: true,
			Covers: []string{"GraphStore.DeleteByFilter"},
		}, func(ctx context.Context, db *loci.DB, in DeleteMany) (*loci.Receipt[int64], error) {
			return db.Graph().DeleteByFilter(ctx, loci.DeleteRequest{Filter: in.Filter, DryRun: in.DryRun})
		}),
	}
}
